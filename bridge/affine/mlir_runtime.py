"""MLIR's Python bindings and the Bridge plug-in, loaded at the first group that is worth a look.

`ir` is a stand-in module: an attribute access loads the real `mlir.ir`.  Importing this file costs nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib
import importlib.metadata
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..reasons import InvariantError, Reason, Unsupported
from ..support.version import __version__
from .ops_table import ROUNDING_MODE

PLUGIN_NAME = "libBridgePasses.so"
WHEEL = "xtc-mlir-python-bindings"
_OWN_SYMBOLS = os.RTLD_NOW | getattr(os, "RTLD_DEEPBIND", 0)  # glibc has it
_BINDINGS = ("_bridge_ops_gen.py", "_bridge_enum_gen.py", "_reasons_gen.py")


class _LazyModule:
    """Stand in for a module of MLIR's until something of it is used."""

    def __init__(self, name: str):
        """Stand in for `mlir.<name>`."""
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Load the module and return what it has under that name."""
        return getattr(load_mlir(self._name), attribute)


if TYPE_CHECKING:
    from mlir import ir
else:
    ir = _LazyModule("ir")
passmanager = _LazyModule("passmanager")


@contextlib.contextmanager
def _own_symbols() -> Iterator[None]:
    """Have libraries that Python loads in the block look up symbols in their own LLVM first.

    Where a program has Python load libraries with RTLD_GLOBAL, the LLVM in Triton 3.9 is seen by all later ones.
    """
    before = sys.getdlopenflags()
    sys.setdlopenflags(_OWN_SYMBOLS)
    try:
        yield
    finally:
        sys.setdlopenflags(before)


@functools.cache
def load_mlir(name: str) -> ModuleType:
    """Import `mlir.<name>`; Unsupported(mlir_missing) where the wheel is not installed."""
    try:
        with _own_symbols():
            return importlib.import_module(f"mlir.{name}")
    except ImportError as error:
        raise Unsupported(Reason.mlir_missing, f"MLIR Python bindings: {error}") from error


def plugin_folder() -> Path:
    """Return the folder of the plug-in and of its generated Python files."""
    return Path(__file__).parents[1] / "_native"


def plugin_path() -> Path:
    """Return the file of the plug-in."""
    return plugin_folder() / PLUGIN_NAME


@functools.cache
def load_plugin() -> ctypes.CDLL:
    """Load the plug-in into the process' one MLIR and register its passes and pipelines.

    Raises Unsupported(plugin_missing) or Unsupported(plugin_version_mismatch).
    """
    load_mlir("ir")
    path = plugin_path()
    if not path.exists():
        raise Unsupported(Reason.plugin_missing, f"{path.name} is not installed beside the package")
    try:
        library = ctypes.CDLL(str(path), _OWN_SYMBOLS)
        library.bridgeVersion.restype = library.bridgeMlirVersion.restype = ctypes.c_char_p
        library.bridgeBindingsHash.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:
        raise Unsupported(Reason.plugin_version_mismatch, str(error)) from error
    check_versions(library.bridgeVersion().decode(), library.bridgeMlirVersion().decode())
    if library.bridgeBindingsHash().decode() != bindings_hash():
        raise Unsupported(Reason.plugin_version_mismatch, "the plug-in and its Python bindings are of two builds")
    library.bridgeRegisterDialects.argtypes = [ctypes.c_void_p]
    library.bridgeRegisterPasses()
    return library


def bindings_hash() -> str:
    """Return the hash of the generated Python files, whose numbers are those of one build (see BindingsHash.cmake)."""
    files = [plugin_folder() / name for name in _BINDINGS]
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


class _PluginInfo(ctypes.Structure):
    """Lay out MLIR's PassPluginLibraryInfo."""

    _fields_ = (
        ("api_version", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("version", ctypes.c_char_p),
        ("register", ctypes.CFUNCTYPE(None)),
    )


#: What MLIR's release calls MLIR_PLUGIN_API_VERSION.
PLUGIN_API = 1


@functools.cache
def load_pass_plugins(paths: tuple[str, ...]) -> None:
    """Register the passes of libraries that have MLIR's interface for plug-ins, once a process.

    They have to be linked against the `libMLIRPythonCAPI.so` of the wheel.  A path is from the current folder on.
    Raises Unsupported(plugin_missing) for a file that does not load, Unsupported(plugin_version_mismatch) for one that
    is no plug-in of this release.
    """
    load_plugin()
    for path in paths:
        _load_pass_plugin(str(Path(path).absolute()) if Path(path).is_file() else path)


@functools.cache
def _load_pass_plugin(path: str) -> None:
    """Register the passes of one library."""
    try:
        library = ctypes.CDLL(path, _OWN_SYMBOLS)
    except OSError as error:
        raise Unsupported(Reason.plugin_missing, f"pass plug-in: {error}") from error
    try:
        describe = library.mlirGetPassPluginInfo
    except AttributeError as error:
        raise Unsupported(Reason.plugin_version_mismatch, f"{path} is no pass plug-in: {error}") from error
    describe.restype = _PluginInfo
    info = describe()
    if info.api_version != PLUGIN_API:
        detail = f"{path} is for version {info.api_version} of MLIR's plug-ins, not {PLUGIN_API}"
        raise Unsupported(Reason.plugin_version_mismatch, detail)
    info.register()


def check_versions(plugin: str, mlir: str) -> None:
    """Raise Unsupported(plugin_version_mismatch) unless plug-in, package and MLIR belong together.

    The plug-in speaks C++ with the wheel's MLIR, so both must be the release that it was built with.
    """
    installed = mlir_version()
    if plugin != __version__:
        raise Unsupported(Reason.plugin_version_mismatch, f"plug-in {plugin}, package {__version__}")
    if installed is None or not f"{installed}.".startswith(f"{mlir}."):
        raise Unsupported(Reason.plugin_version_mismatch, f"plug-in for MLIR {mlir}, installed {installed}")


def mlir_version() -> str | None:
    """Return the version of the wheel with MLIR's Python bindings, which is not loaded for it; None without one."""
    if "mlir" in sys.modules and sys.modules["mlir"] is None:  # Python's way to forbid an import.
        return None
    try:
        return importlib.metadata.version(WHEEL)
    except importlib.metadata.PackageNotFoundError:
        return None


@contextlib.contextmanager
def mlir_errors_are_bugs() -> Iterator[None]:
    """Raise InvariantError for an error of MLIR's in the block: Bridge has built IR that does not verify."""
    try:
        yield
    except load_mlir("ir").MLIRError as error:
        raise InvariantError(str(error)) from error


_contexts = threading.local()


def context() -> ir.Context:
    """Return this thread's MLIR context, with the bridge dialect; without MLIR's thread pool, so that fork is safe."""
    if not hasattr(_contexts, "value"):
        library = load_plugin()
        value = ir.Context()
        value.enable_multithreading(False)
        library.bridgeRegisterDialects(_pointer(value))
        _contexts.value = value
    return _contexts.value


def meant_rounding() -> dict[str, ir.Attribute]:
    """Return the attribute that tells a rounding that is meant from a store's own: its mode, to nearest even."""
    return {ROUNDING_MODE: ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)}


def defining_operation(value: ir.Value) -> ir.Operation | None:
    """Return the operation that computes a value; None for an argument of a block."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    return owner.operation if hasattr(owner, "operation") else owner


def induction_variable(loop: ir.Operation) -> ir.Value:
    """Return the induction variable of a loop."""
    return loop.regions[0].blocks[0].arguments[0]


def _pointer(value: ir.Context) -> int:
    """Return the address of a context in C."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    capsule = value._CAPIPtr
    return get_pointer(capsule, get_name(capsule))
