"""Lift fused affine loops back to Inductor's loop bodies.

In: a module after the passes, and what its arguments stand for (`band.FunctionTables`).  Out: for each band the loop
bodies of its nodes (`band.LiftedBand`), and the kernel that Inductor makes of them (`commit`).  It may import
`bridge.affine`, the adapter to Inductor, `lowering.triton` and `reasons`.
"""
