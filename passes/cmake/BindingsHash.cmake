# Writes a header with the hash of generated Python files, as
# bridge/affine/mlir_runtime.py computes it: cmake -DINPUTS=... -DOUTPUT=... -P ...
set(hashes "")
foreach(input IN LISTS INPUTS)
  file(SHA256 "${input}" hash)
  string(APPEND hashes "${hash}")
endforeach()
string(SHA256 hash "${hashes}")
file(WRITE "${OUTPUT}" "#define BRIDGE_BINDINGS_HASH \"${hash}\"\n")
