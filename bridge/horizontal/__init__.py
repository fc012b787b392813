"""Have independent kernels share a launch.

In: a schedule, and positions of kernels.  Out: the schedule with shared launches, or why kernels stay apart.
`independence` says what may run in any order, `candidates` what has a reason to share a launch, `cost` whether it pays,
and `peak_memory` whether there is room.  It may import lowering, support and the adapter.
"""
