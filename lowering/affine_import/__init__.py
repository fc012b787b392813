"""Take affine functions that come from elsewhere: read, check and lift them, and put them into a graph.

In: the text of an MLIR module with affine functions (`standalone`).  Out: a function of tensors that Inductor compiles
(`importing`), through an operator whose loops are put in after scheduling (`functions`).  It may import the other rooms
of `lowering`, and what they may import.
"""
