"""Do what Inductor calls: the hooks, the groups of kernels, and the steps of each group.

In: a graph, or a schedule after Inductor's own fusion (`hook`).  Out: the same with fused kernels, and the entries of
the report, which `group_log` writes once.  A group goes through `grouping`, `translation`, `transformation` and
`commit`; `launches` comes after all groups.  It may import every room below the public face.
"""
