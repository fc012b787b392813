"""How kernels are lowered."""
