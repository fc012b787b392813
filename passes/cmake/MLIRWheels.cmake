# Finds MLIR and LLVM in the Python environment.
#
# The wheels put CMake packages, headers and libraries under the Python packages
# `mlir` and `llvm`, which have no __init__.py of their own in every wheel, so
# ask Python where they lie instead of importing them.
#
# Sets MLIR_DIR, LLVM_DIR (unless given) and:
#   BRIDGE_MLIR_CAPI_LIBRARY  the libMLIRPythonCAPI.so that Python's mlir loads
#   BRIDGE_LLVM_LIBRARY       the libLLVM.so under it

find_package(Python3 REQUIRED COMPONENTS Interpreter)

# Sets `out` to the first directory of the Python package `package` that holds
# `entry`, or to "<package>-NOTFOUND".
function(bridge_find_python_package out package entry)
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c "
import importlib.util, os
spec = importlib.util.find_spec('${package}')
paths = list(spec.submodule_search_locations or []) if spec else []
print(next((p for p in paths if os.path.exists(os.path.join(p, '${entry}'))), ''))
"
    OUTPUT_VARIABLE dir
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET)
  if(NOT dir)
    set(dir "${package}-NOTFOUND")
  endif()
  set(${out} "${dir}" PARENT_SCOPE)
endfunction()

# Sets the cache entry `var` to `path`, unless it names a directory already.
function(bridge_default_dir var path)
  if(NOT EXISTS "${${var}}" AND EXISTS "${path}")
    set(${var} "${path}" CACHE PATH "" FORCE)
  endif()
endfunction()

bridge_find_python_package(BRIDGE_MLIR_PACKAGE mlir _mlir_libs)
bridge_find_python_package(BRIDGE_MLIR_DEV mlir lib/cmake/mlir)
bridge_find_python_package(BRIDGE_LLVM_DEV llvm lib/cmake/llvm)
bridge_default_dir(MLIR_DIR "${BRIDGE_MLIR_DEV}/lib/cmake/mlir")
bridge_default_dir(LLVM_DIR "${BRIDGE_LLVM_DEV}/lib/cmake/llvm")

if(NOT MLIR_DIR OR NOT LLVM_DIR)
  message(FATAL_ERROR
    "No MLIR in the environment of ${Python3_EXECUTABLE}. Install there what "
    "pyproject.toml's build-system.requires lists, or set Python3_EXECUTABLE, "
    "or MLIR_DIR and LLVM_DIR.")
endif()
find_package(LLVM REQUIRED CONFIG)
find_package(MLIR REQUIRED CONFIG)

find_library(BRIDGE_MLIR_CAPI_LIBRARY MLIRPythonCAPI REQUIRED NO_DEFAULT_PATH
             HINTS "${BRIDGE_MLIR_PACKAGE}/_mlir_libs"
                   "${MLIR_DIR}/../../../_mlir_libs")
find_library(BRIDGE_LLVM_LIBRARY LLVM REQUIRED NO_DEFAULT_PATH
             HINTS "${LLVM_LIBRARY_DIR}")

message(STATUS "MLIR ${LLVM_PACKAGE_VERSION}: ${MLIR_DIR}")
message(STATUS "Plug-in host: ${BRIDGE_MLIR_CAPI_LIBRARY}")
