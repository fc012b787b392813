"""Test that MLIR and the plug-in are loaded once, and refused where they do not belong together."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from bridge.affine import mlir_runtime
from bridge.affine.mlir_runtime import check_versions, context, ir, load_mlir, load_pass_plugins, mlir_errors_are_bugs
from bridge.reasons import InvariantError, Reason, Unsupported
from bridge.support.version import __version__


@pytest.mark.parametrize(
    ("plugin", "mlir", "fits"),
    [
        (__version__, "21.1.2", True),
        (__version__, "21.1", True),
        (__version__, "21.1.20", False),
        (__version__, "2", False),
        ("0.0.0.other", "21.1.2", False),
    ],
)
def test_plugin_package_and_mlir_are_of_one_release(monkeypatch, plugin, mlir, fits):
    monkeypatch.setattr(mlir_runtime, "mlir_version", lambda: "21.1.2")
    if fits:
        check_versions(plugin, mlir)
        return
    with pytest.raises(Unsupported) as refusal:
        check_versions(plugin, mlir)
    assert refusal.value.reason is Reason.plugin_version_mismatch


def test_without_the_wheel_there_is_no_version_and_no_module(monkeypatch):
    assert mlir_runtime.mlir_version() is not None
    monkeypatch.setitem(sys.modules, "mlir", None)
    assert mlir_runtime.mlir_version() is None
    with pytest.raises(Unsupported) as refusal:
        load_mlir("no_such_module")
    assert refusal.value.reason is Reason.mlir_missing


def test_each_thread_has_a_context_of_its_own():
    contexts = []
    thread = threading.Thread(target=lambda: contexts.append(context()))
    thread.start()
    thread.join()
    assert context() is context()
    assert contexts[0] is not context()


def test_pass_plugins_that_are_none_are_refused(tmp_path):
    with pytest.raises(Unsupported) as missing:
        load_pass_plugins((str(tmp_path / "libMissing.so"),))
    with pytest.raises(Unsupported, match="is no pass plug-in") as other:
        load_pass_plugins(("libc.so.6",))
    assert missing.value.reason is Reason.plugin_missing
    assert other.value.reason is Reason.plugin_version_mismatch


def test_ir_that_does_not_verify_is_a_bug():
    text = '"func.func"() ({}) {sym_name = "f"} : () -> ()'
    with context(), ir.Location.unknown(), pytest.raises(InvariantError, match="function_type"), mlir_errors_are_bugs():
        ir.Module.parse(text)


def test_a_plugin_is_looked_for_in_the_current_folder(tmp_path, monkeypatch):
    """Check that a plug-in's name without a folder is looked for in the current folder first.

    The system's loader takes such a name for an installed library.
    """
    loaded: list[str] = []
    monkeypatch.setattr(mlir_runtime, "_load_pass_plugin", loaded.append)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "libmine.so").write_text("")
    load_pass_plugins(("libmine.so", "libof_the_system.so"))
    assert loaded == [str(tmp_path / "libmine.so"), "libof_the_system.so"]


def test_mlir_finds_its_own_llvm_where_python_loads_libraries_for_all_to_see(monkeypatch):
    """Check that MLIR is loaded with RTLD_DEEPBIND, also where Python loads libraries globally.

    Triton 3.9, loaded so, ended the process: `LLVM ERROR: Option 'default' already exists!`.
    """
    seen, before = [], sys.getdlopenflags()
    monkeypatch.setattr(mlir_runtime.importlib, "import_module", lambda name: seen.append((name, sys.getdlopenflags())))
    try:
        sys.setdlopenflags(os.RTLD_LAZY | os.RTLD_GLOBAL)
        load_mlir.__wrapped__("ir")
        assert sys.getdlopenflags() == os.RTLD_LAZY | os.RTLD_GLOBAL
    finally:
        sys.setdlopenflags(before)
    assert seen == [("mlir.ir", os.RTLD_NOW | os.RTLD_DEEPBIND)]
