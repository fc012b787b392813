"""Lift fused affine loops back to Inductor's loop bodies."""
