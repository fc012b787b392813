"""Derive from Inductor's Triton code generator: kernels, combo kernels, and their configurations."""
