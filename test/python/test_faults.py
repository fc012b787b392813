"""Faults of the environment and of the input: the user gets Inductor's result, and a named reason."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import threading
import warnings

import pytest
import torch
from conftest import rows, sample

import bridge
from bridge import dtypes, hook, mlir_runtime
from bridge.reasons import InvariantError, Reason, Unsupported


@pytest.fixture
def compile_checked(compiler):
    """Compiles twice, compares with eager, and returns the report and Bridge's warnings."""

    def run(function=rows, *inputs, times=2, **options):
        inputs = inputs or (sample(),)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(times):
                torch._dynamo.reset()
                compiled = torch.compile(function, backend="bridge", options=options)
                torch.testing.assert_close(compiled(*inputs), function(*inputs))
        assert torch._inductor.config._post_fusion_custom_pass is None
        return bridge.report(), [str(w.message) for w in caught if "bridge" in str(w.message)]

    return run


@pytest.fixture
def unloaded(monkeypatch):
    """As if no group had been translated yet: the plug-in and the context are to be loaded."""
    monkeypatch.setattr(mlir_runtime, "_contexts", threading.local())
    monkeypatch.setattr(mlir_runtime, "load_plugin", functools.cache(mlir_runtime.load_plugin.__wrapped__))


def assert_fell_back(outcome, reason: Reason, times: int = 1):
    report, said = outcome
    entries = [*report.groups, *report.refusals]
    assert not report.fused
    assert reason in [entry.reason for entry in entries]
    assert torch._dynamo.utils.counters["bridge"][f"refused.{reason.name}"] >= 2
    assert f"[{reason.name}]" in str(report)
    assert len(said) == times
    assert all(reason.name in text for text in said)


class TestGraph:
    """A graph with something that Bridge does not know, beside a group that it can fuse."""

    def test_complex_numbers(self, compile_checked):
        def function(x, z):
            return *rows(x), (z * 2).sum(-1)

        z = torch.randn(32, 64, dtype=torch.complex64)
        report, said = compile_checked(function, sample(), z, times=1)
        assert len(report.fused) == 1 and said == []
        assert Reason.node_not_loops in [refusal.reason for refusal in report.refusals]

    def test_unsupported_dtype(self, compile_checked, monkeypatch):
        # Inductor makes no loops of the dtypes that Bridge really lacks.
        monkeypatch.delitem(dtypes._TYPE_NAMES, torch.float8_e4m3fn)

        def function(x, eighths):
            return *rows(x), *rows(eighths.to(torch.float32))

        report, said = compile_checked(function, sample(), sample().to(torch.float8_e4m3fn), times=1)
        assert len(report.fused) == 1 and said == []
        assert [group.reason for group in report.groups] == [None, Reason.unsupported_dtype]

    def test_unsupported_op(self, compile_checked):
        def function(x, y, i):
            return *rows(x), torch.nn.functional.embedding(i, y).cumsum(-1), torch.sort(y)[0]

        report, said = compile_checked(function, sample(), sample() + 1, torch.arange(8), times=1)
        assert len(report.fused) == 1 and said == []
        assert Reason.node_not_loops in [refusal.reason for refusal in report.refusals]

    def test_unsupported_op_within_the_group(self, compile_checked, monkeypatch):
        def refuse(*_):
            raise Unsupported(Reason.unsupported_op, "frobnicate")

        monkeypatch.setattr("bridge.translate.group.translate_group", refuse)
        report, said = compile_checked(times=1)
        assert report.groups[0].reason is Reason.unsupported_op and said == []
        assert "[unsupported_op] frobnicate" in str(report)

    def test_refusal_outside_of_every_group(self, compile_checked, monkeypatch):
        def refuse(*_):
            raise Unsupported(Reason.budget_exceeded, "too large")

        monkeypatch.setattr(hook, "fuse_schedule", refuse)
        report, said = compile_checked(times=1)
        assert report.refusals[0].reason is Reason.budget_exceeded and said == []


class TestPlugin:
    def test_missing(self, compile_checked, unloaded, monkeypatch, tmp_path):
        monkeypatch.setattr(mlir_runtime, "plugin_path", lambda: tmp_path / "none.so")
        assert_fell_back(compile_checked(), Reason.plugin_missing)

    def test_not_a_library(self, compile_checked, unloaded, monkeypatch, tmp_path):
        (tmp_path / "bad.so").write_text("no ELF")
        monkeypatch.setattr(mlir_runtime, "plugin_path", lambda: tmp_path / "bad.so")
        assert_fell_back(compile_checked(), Reason.plugin_version_mismatch)

    @pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
    @pytest.mark.parametrize("source", ['const char *bridgeVersion() { return "0.0.1"; }', ""])
    def test_of_another_version(self, compile_checked, unloaded, monkeypatch, tmp_path, source):
        library = tmp_path / "other.so"
        source += '\nconst char *bridgeMlirVersion() { return "22.1.8"; }'
        command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=source, text=True, check=True)
        monkeypatch.setattr(mlir_runtime, "plugin_path", lambda: library)
        assert_fell_back(compile_checked(), Reason.plugin_version_mismatch)

    @pytest.mark.parametrize("installed", ["22.1.80", "23.0.0.1", None])
    def test_for_another_mlir(self, monkeypatch, installed):
        monkeypatch.setattr(mlir_runtime, "mlir_version", lambda: installed)
        with pytest.raises(Unsupported) as caught:
            mlir_runtime.check_versions(bridge.__version__, "22.1.8")
        assert caught.value.reason is Reason.plugin_version_mismatch
        assert str(installed) in caught.value.detail

    @pytest.mark.parametrize("installed", ["22.1.8", "22.1.8.4"])
    def test_for_this_mlir(self, monkeypatch, installed):
        monkeypatch.setattr(mlir_runtime, "mlir_version", lambda: installed)
        assert mlir_runtime.check_versions(bridge.__version__, "22.1.8") is None


MISSING_MLIR = """
import sys
sys.modules["mlir"] = None
import json, warnings
import torch
import torch._dynamo
from conftest import rows, sample
from bridge.backend import bridge as backend
import bridge
from torch._dynamo.utils import counters

with warnings.catch_warnings(record=True) as caught, torch.no_grad():
    warnings.simplefilter("always")
    for _ in range(2):
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(rows, backend=backend)(sample()), rows(sample()))
said = [str(w.message) for w in caught if "bridge" in str(w.message)]
print(json.dumps([str(bridge.report()), counters["bridge"], said]))
"""


class TestMlir:
    def test_missing(self, python):
        caches = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}
        text, counters, said = json.loads(python(MISSING_MLIR, BRIDGE_STRICT="1", **caches))
        assert "0 of 1 groups fused" in text and "[mlir_missing]" in text
        assert counters["refused.mlir_missing"] == 2
        assert len(said) == 1 and "mlir_missing" in said[0]

    @pytest.mark.parametrize(
        "pipeline", ["builtin.module(no-such-pass)", "not a pipeline", "builtin.module(transform-interpreter)"]
    )
    def test_pipeline(self, compile_checked, pipeline):
        outcome = compile_checked(pipeline=pipeline, strict=True)
        assert_fell_back(outcome, Reason.pass_failed)
        assert bridge.report().groups[0].detail

    def test_error_in_building_ir_is_a_bug(self):
        with pytest.raises(InvariantError), mlir_runtime.mlir_errors_are_bugs(), mlir_runtime.context():
            mlir_runtime.ir.Type.parse("no type")


class TestTorch:
    @pytest.mark.parametrize("version", ["2.14.0", "2.14.0.dev20260101+cpu", "3.0.0", "2.10.1"])
    def test_of_another_version(self, compile_checked, monkeypatch, version):
        monkeypatch.setattr(torch, "__version__", version)
        assert_fell_back(compile_checked(), Reason.torch_version)
        assert bridge.report().graphs == 1

    def test_of_another_version_for_the_process(self, compiler, monkeypatch):
        monkeypatch.setattr(torch, "__version__", "2.14.0")
        with pytest.warns(RuntimeWarning, match="torch_version"):
            bridge.install()
        with bridge.enabled() as report:
            torch.testing.assert_close(torch.compile(rows)(sample()), rows(sample()))
        assert hook.current() is None
        assert [refusal.reason for refusal in report.refusals] == [Reason.torch_version]

    @pytest.mark.parametrize("version", ["2.11.0+cu130", "2.12.1", "2.13.0a0+git123"])
    def test_of_a_version_that_works(self, monkeypatch, version):
        monkeypatch.setattr(torch, "__version__", version)
        assert hook.supported(bridge.Report())


class TestDump:
    def test_folder_that_cannot_be_written(self, compile_checked, tmp_path):
        taken = tmp_path / "file"
        taken.write_text("")
        report, said = compile_checked(dump_dir=str(taken))
        assert len(report.fused) == 1
        assert len(said) == 1 and str(taken) in said[0]


class TestInvariant:
    @pytest.fixture(params=["bridge.fuse.form_groups", "bridge.fuse._fuse_group"])
    def broken(self, request, monkeypatch):
        def break_it(*_):
            raise InvariantError("two and two")

        monkeypatch.setattr(request.param, break_it)

    def test_falls_back(self, compile_checked, broken):
        assert_fell_back(compile_checked(strict=False), Reason.internal_error)

    def test_raises_in_strict_mode(self, compile_checked, broken):
        with pytest.raises(torch._dynamo.exc.TorchDynamoException, match="two and two"):
            compile_checked(strict=True)
        assert torch._inductor.config._post_fusion_custom_pass is None


IMPORT = """
import sys
import torch
before = set(sys.modules)
import bridge
bridge.report()
heavy = ("torch._inductor", "torch._dynamo", "mlir", "sympy", "numpy", "triton")
print([m for m in set(sys.modules) - before if m.startswith(heavy)])
"""


def test_importing_bridge_loads_nothing_heavy(python):
    assert python(IMPORT).strip() == "[]"
