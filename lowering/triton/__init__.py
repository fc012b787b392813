"""Derive classes from Inductor's Triton code generator.

In: fused scheduler nodes and their footprints.  Out: Triton kernels with lanes and segments (`kernels`), with wide
accesses (`strided_access`), shared launches (`combo_kernels`) and their `configurations`; `profitability` decides on
registers.  It may import affine, support and the adapter.
"""
