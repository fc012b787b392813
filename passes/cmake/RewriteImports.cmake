# Makes a module from -gen-python-*-bindings importable outside the package
# `mlir.dialects`, which its relative imports expect to be in.
#
#   cmake -DINPUT=... -DOUTPUT=... [-DWITHOUT_MLIR=ON] -P RewriteImports.cmake
#
# WITHOUT_MLIR drops the imports of MLIR: an enum that is no attribute does not
# need them, and must be importable where MLIR is missing.
file(READ "${INPUT}" text)
if(WITHOUT_MLIR)
  string(REPLACE "from ._ods_common import _cext as _ods_cext\n" "" text "${text}")
  string(REPLACE "from ..ir import register_attribute_builder\n" "" text "${text}")
  string(REPLACE "_ods_ir = _ods_cext.ir\n" "" text "${text}")
else()
  string(REPLACE "from ._ods_common " "from mlir.dialects._ods_common " text "${text}")
  string(REPLACE "from ..ir " "from mlir.ir " text "${text}")
endif()
file(WRITE "${OUTPUT}" "${text}")
