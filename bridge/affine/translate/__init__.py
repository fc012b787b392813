"""Translate a group's loop bodies to one function of affine loop nests.

In: each node's loop body, loop extents and kernel.  Out: the module, and for each buffer the strides by
which its linear indices became subscripts.  It may import the tables and the runtime of `bridge.affine`, and the
adapter to Inductor.
"""
