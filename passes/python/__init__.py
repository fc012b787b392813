"""What the C++ build makes: the plug-in, generated wrappers and bridge-opt.

- ``libBridgePasses.so``: the passes and the dialect, loaded with ctypes;
- ``bridge``: the dialect in Python, over ``_bridge_ops_gen`` and
  ``_bridge_enum_gen``;
- ``_reasons_gen``: the refusal reasons; imports without MLIR;
- ``bin/bridge-opt``: the passes on the command line.

Importing this package loads none of them.
"""
