"""The bridge dialect in Python: its op builders and enums.

Importing it also tells MLIR's bindings where the dialect's classes are, so that
an operation met in a module is a ``SpecialOp`` and not a bare ``OpView``.
"""

from mlir.dialects._ods_common import _cext

from ._bridge_enum_gen import CombineKind, SpecialFn
from ._bridge_ops_gen import CombineOp, ConvertOp, SpecialOp, combine, convert, special

__all__ = [
    "CombineKind",
    "CombineOp",
    "ConvertOp",
    "SpecialFn",
    "SpecialOp",
    "combine",
    "convert",
    "special",
]

# The bindings look for <prefix>.<dialect>, which is this module.
_cext.globals.append_dialect_search_prefix(__package__)
