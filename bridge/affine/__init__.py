"""Translate Inductor's loops to MLIR's affine dialect, run the passes, and verify what they made by isl."""
