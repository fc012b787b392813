"""Take Inductor's loops to transformed affine IR.

In: the loop bodies of a group of kernels, with dtypes and sizes of the buffers (`translate/`).  Out: a module in MLIR's
affine dialect, the tables that the lift reads it back with, the remarks of the passes (`pipeline`), and what isl proved
of the result (`isl_verifier`).  It may import `support`, the adapter to Inductor and `reasons`.
"""
