"""Test faults of the environment and of the input: the user gets Inductor's result, and a named reason."""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
import subprocess
import threading
import warnings

import pytest
import torch
from functions import norm, plain, rows, sample
from torch._functorch import config as functorch
from torch._inductor.graph import GraphLowering

import bridge
from bridge.affine import dtypes, mlir_runtime, pipeline
from bridge.diagnostics import dump
from bridge.inductor import codegen_error, compiling, inventory
from bridge.lowering.triton import codegen
from bridge.reasons import InvariantError, Reason, Unsupported
from bridge.scheduling import hook


@pytest.fixture
def compile_checked(compiler):
    """Return a function that compiles twice, compares with eager, and returns the report and Bridge's warnings."""

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
    """Reset the state to that before the first translation: the plug-in and the context are not loaded yet."""
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


class TestCodegen:
    """Test that a graph is compiled again without Bridge where Inductor cannot generate code for a fused group."""

    @pytest.fixture(autouse=True)
    def no_code(self, monkeypatch):
        fuse_nodes = codegen.fuse_nodes

        def fuse_for_no_use(nodes):
            monkeypatch.setattr(nodes[0].scheduler, "codegen", functools.partial(_raise, KeyError("no such row")))
            return fuse_nodes(nodes)

        monkeypatch.setattr(codegen, "fuse_nodes", fuse_for_no_use)

    @pytest.mark.expects_internal_error
    def test_graph_is_inductors(self, compile_checked):
        report, said = compile_checked(times=1, strict=False)
        (group,) = report.groups
        assert not group.fused and group.reason is Reason.internal_error and "no such row" in group.detail
        assert report.kernels_after == report.kernels_before and report.counters["graphs_withdrawn"] == 1
        assert len(said) == 1 and "no such row" in said[0]

    @pytest.mark.expects_internal_error
    def test_withdrawn_fusion_counts_as_internal_error(self, compile_checked, counters):
        """Check that a withdrawn fusion counts as an internal error in the report and in Dynamo's counters."""
        report, _ = compile_checked(times=1, strict=False)
        expected = {"groups_seen": 1, "groups_fused": 0, "graphs_withdrawn": 1, "refused.internal_error": 2}
        assert report.counters == expected and counters() == expected

    def test_strict_mode_raises(self, compile_checked):
        with pytest.raises(codegen_error(), match="no such row"):
            compile_checked(strict=True)

    def test_errors_that_are_inductors_own_stay(self, compile_checked, monkeypatch):
        monkeypatch.setattr("torch._inductor.scheduler.Scheduler.codegen", functools.partial(_raise, KeyError("own")))
        with pytest.raises(codegen_error(), match="own"):
            compile_checked(plain)


def _raise(error, *_):
    raise error


#: The setting that has a backward graph compiled with its forward graph.
WITH_FORWARD = "force_non_lazy_backward_lowering"


class TestLowering:
    """Test graphs that Inductor fails to lower once: at a second attempt, torch has learned of their sizes."""

    @pytest.fixture(autouse=True)
    def fails_once(self, monkeypatch):
        calls, call = [], GraphLowering.call_function

        def call_function(lowering, target, args, kwargs):
            if target is torch.ops.aten.cosh.default:
                calls.append(target)
                if len(calls) == 1:
                    raise KeyError("no such size")
            return call(lowering, target, args, kwargs)

        monkeypatch.setattr(GraphLowering, "call_function", call_function)
        return calls

    def test_error_of_lowering_is_not_counted_as_bridges(self, compile_checked, counters):
        with pytest.raises(codegen_error(), match="no such size"):
            compile_checked(lambda x: torch.cosh(norm(x)), times=1, strict=False)
        assert "refused.internal_error" not in counters()

    @pytest.mark.skipif(not hasattr(functorch, WITH_FORWARD), reason="this torch compiles a backward graph by itself")
    def test_error_of_a_backward_graph_is_not_blamed_on_the_forward_graph(self, counters):
        """Check that a backward's error, as of a Swin block in torch 2.13, is not blamed on the scheduled forward."""

        def function(x):
            return *rows(x), x.sinh()

        torch._dynamo.reset()
        compiled = torch.compile(function, backend="bridge", options={"training": True, "strict": False})
        at_once = functorch.patch({WITH_FORWARD: True, "enable_autograd_cache": False})
        with at_once, pytest.raises(codegen_error(), match="no such size"):
            compiled(sample().requires_grad_())
        assert bridge.report().groups and "refused.internal_error" not in counters()

    @pytest.mark.expects_internal_error
    def test_graph_that_bridge_has_changed_is_inductors(self, compile_checked, fails_once):
        inputs = sample().reshape(2, 16, 64), torch.ones(64, 4)
        report, _ = compile_checked(lambda x, w: torch.cosh(norm(x))[:, -1:] @ w, *inputs, times=1, strict=False)
        assert len(fails_once) == 2 and report.counters["refused.internal_error"] == 1


class TestGraph:
    """Test graphs that have something unknown to Bridge beside a group that it can fuse."""

    def test_complex_numbers(self, compile_checked):
        def function(x, z):
            return *rows(x), (z * 2).sum(-1)

        z = torch.randn(32, 64, dtype=torch.complex64)
        report, said = compile_checked(function, sample(), z, times=1)
        assert len(report.fused) == 1 and said == []
        assert Reason.extern_kernel in [refusal.reason for refusal in report.refusals]

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
        assert Reason.extern_kernel in [refusal.reason for refusal in report.refusals]

    def test_unsupported_op_within_the_group(self, compile_checked, monkeypatch):
        def refuse(*_):
            raise Unsupported(Reason.unsupported_op, "frobnicate")

        monkeypatch.setattr("bridge.affine.translate.group.translate_group", refuse)
        report, said = compile_checked(times=1)
        assert report.groups[0].reason is Reason.unsupported_op and said == []
        assert "[unsupported_op] frobnicate" in report.details()

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

    def test_of_another_build(self, compile_checked, unloaded, monkeypatch, tmp_path):
        """Check that a plug-in of another build is refused: its version is equal, but its enums have other numbers."""
        folder = shutil.copytree(mlir_runtime.plugin_folder(), tmp_path / "native", ignore=lambda *_: ["bin", "docs"])
        with (folder / "_bridge_enum_gen.py").open("a") as file:
            file.write("# changed\n")
        monkeypatch.setattr(mlir_runtime, "plugin_folder", lambda: folder)
        assert_fell_back(compile_checked(), Reason.plugin_version_mismatch)
        assert "two builds" in bridge.report().groups[0].detail

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
        mlir_runtime.check_versions(bridge.__version__, "22.1.8")


MISSING_MLIR = """
import sys
sys.modules["mlir"] = None
import json, warnings
import torch
import torch._dynamo
from functions import plain, rows, sample
from bridge.backend import bridge as backend
import bridge
import torch._functorch.config
import torch._inductor.config
from torch._dynamo.utils import counters

torch._inductor.config.fx_graph_cache = False
torch._functorch.config.enable_autograd_cache = False
with warnings.catch_warnings(record=True) as caught, torch.no_grad():
    warnings.simplefilter("always")
    for _ in range(2):
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(rows, backend=backend)(sample()), rows(sample()))
said = [str(w.message) for w in caught if "bridge" in str(w.message)]
print(json.dumps([str(bridge.report()), counters["bridge"], said]))
"""


class TestMlir:
    @pytest.mark.in_turn(3)
    def test_missing(self, fork):
        text, counters, said = json.loads(fork(MISSING_MLIR, BRIDGE_STRICT="1"))
        assert "changed, the largest" not in text and "[mlir_missing]" in text
        assert counters["refused.mlir_missing"] == 2
        assert len(said) == 1 and "mlir_missing" in said[0]

    @pytest.mark.parametrize(
        "pipeline",
        [
            "builtin.module(no-such-pass)",
            "not a pipeline",
            "builtin.module(transform-interpreter)",
            "builtin.module(bridge-fuse,transform-interpreter)",
        ],
    )
    def test_pipeline(self, compile_checked, pipeline):
        outcome = compile_checked(pipeline=pipeline, strict=True)
        assert_fell_back(outcome, Reason.pass_failed)
        assert bridge.report().groups[0].detail

    def test_error_in_building_ir_is_a_bug(self):
        with pytest.raises(InvariantError), mlir_runtime.mlir_errors_are_bugs(), mlir_runtime.context():
            mlir_runtime.ir.Type.parse("no type")


class TestTorch:
    @pytest.fixture(autouse=True)
    def newer_ones_differ(self, monkeypatch):
        monkeypatch.setattr(inventory, "moved", lambda release: ["torch.moved is gone"])
        compiling._obstacle_in_newer.cache_clear()
        yield
        compiling._obstacle_in_newer.cache_clear()

    @pytest.mark.parametrize("version", ["2.16.0", "2.16.0.dev20260101+cpu", "3.0.0", "2.10.1"])
    def test_of_another_version(self, compile_checked, monkeypatch, version):
        monkeypatch.setattr(torch, "__version__", version)
        assert_fell_back(compile_checked(), Reason.torch_version)
        assert bridge.report().graphs == 1

    def test_of_another_version_for_the_process(self, compiler, monkeypatch):
        monkeypatch.setattr(torch, "__version__", "2.16.0")
        with pytest.warns(RuntimeWarning, match="torch.moved is gone"):
            bridge.install()
        with bridge.enabled() as report:
            torch.testing.assert_close(torch.compile(rows)(sample()), rows(sample()))
        assert hook.current() is None
        assert [refusal.reason for refusal in report.refusals] == [Reason.torch_version]

    def test_newer_of_the_same_form(self, compile_checked, monkeypatch):
        monkeypatch.setattr(inventory, "moved", lambda release: [])
        monkeypatch.setattr(torch, "__version__", "2.16.0")
        report, said = compile_checked()
        assert len(report.fused) == 1 and said == []


class TestDump:
    def test_folder_that_cannot_be_written(self, compile_checked, tmp_path):
        taken = tmp_path / "file"
        taken.write_text("")
        report, said = compile_checked(dump_dir=str(taken))
        assert len(report.fused) == 1
        assert len(said) == 1 and str(taken) in said[0]

    def test_folder_with_something_else_in_it(self, compile_checked, monkeypatch, tmp_path):
        monkeypatch.setattr(dump, "_compilations", itertools.count())
        (tmp_path / f"{os.getpid()}-000-group0").write_text("no folder")
        (tmp_path / f"{os.getpid()}-001-group0" / "00-loop-ir.txt").mkdir(parents=True)
        report, said = compile_checked(dump_dir=str(tmp_path))
        assert len(report.fused) == 1
        assert len(said) == 1 and str(tmp_path) in said[0]

    @pytest.mark.parametrize("replacement", [None, "a file"])
    def test_folder_that_goes_away(self, compile_checked, monkeypatch, tmp_path, replacement):
        transform, folder = pipeline.transform, tmp_path / "dump"

        def remove_folder(*arguments):
            shutil.rmtree(folder)
            if replacement is not None:
                folder.write_text(replacement)
            return transform(*arguments)

        monkeypatch.setattr(pipeline, "transform", remove_folder)
        report, said = compile_checked(dump_dir=str(folder), times=1)
        assert len(report.fused) == 1
        assert len(said) == (replacement is not None)

    def test_names_that_the_locale_lacks(self, python, tmp_path):
        code = f"""
        from bridge.diagnostics.dump import Dump
        print(ascii(Dump({str(tmp_path)!r}, "group0").write("affine.mlir", "gr\\xf6\\xdfe").read_bytes()))
        """
        assert python(code, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0").strip() == ascii("größe".encode())


class TestBudget:
    """Test the limits on nodes, accesses and dependence checks, which are the same on every machine."""

    @pytest.mark.parametrize("limit", ["max_nodes", "max_accesses"])
    def test_of_the_group(self, compile_checked, limit):
        report, said = compile_checked(times=1, strict=True, **{f"bridge.{limit}": 1})
        assert report.fused == [] and said == []
        assert {entry.reason for entry in [*report.groups, *report.refusals]} == {Reason.budget_exceeded}

    def test_of_accesses_is_what_the_group_has(self, compile_checked):
        report, _ = compile_checked(times=1, strict=True, **{"bridge.max_accesses": 1})
        accesses = int(report.groups[0].detail.split()[0])
        assert accesses > 6  # x, and the sum of its squares; x twice, the sum twice, the result
        assert len(compile_checked(times=1, strict=True, **{"bridge.max_accesses": accesses})[0].fused) == 1
        report, _ = compile_checked(times=1, strict=True, **{"bridge.max_accesses": accesses - 1})
        assert report.groups[0].reason is Reason.budget_exceeded

    def test_of_dependence_checks(self, compile_checked):
        passes = "builtin.module(bridge-fuse{max-dependence-checks=1})"
        report, said = compile_checked(times=1, strict=True, pipeline=passes)
        assert report.groups[0].reason is Reason.budget_exceeded and said == []


KILLED = """
import os, signal
import torch
from functions import plain, rows, sample
from bridge.affine import pipeline
from bridge.backend import bridge as backend
import bridge

folder = os.environ["DUMP"]
if os.environ["DIES"] == "1":
    pipeline.transform = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
options = {"dump_dir": folder} if folder else {}
with torch.no_grad():
    torch.testing.assert_close(torch.compile(rows, backend=backend, options=options)(sample()), rows(sample()))
print(len(bridge.report().fused))
"""


@pytest.mark.in_turn(2)
def test_a_process_that_is_killed_leaves_nothing_that_harms_the_next(fork, tmp_path):
    folder, cache = tmp_path / "dump", str(tmp_path / "cache")  # with a graph from another test nothing would be killed
    for dump_dir in (str(folder), ""):  # with a dump, nothing is cached
        with pytest.raises(AssertionError):
            fork(KILLED, DIES="1", DUMP=dump_dir, BRIDGE_STRICT="1", TORCHINDUCTOR_CACHE_DIR=cache)
    assert list(folder.glob("*/*-affine.mlir"))
    survivor = fork(KILLED, DIES="0", DUMP="", BRIDGE_STRICT="1", TORCHINDUCTOR_CACHE_DIR=cache)
    assert survivor.strip() == "1"


def test_a_cache_folder_that_cannot_be_written_is_inductors_error(compiler, monkeypatch, tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(taken / "cache"))
    errors = []
    for backend in ("inductor", "bridge"):
        torch._dynamo.reset()
        with pytest.raises(Exception) as caught:
            torch.compile(rows, backend=backend)(sample())
        errors.append((type(caught.value), str(taken) in str(caught.value)))
    assert errors[0] == errors[1] and errors[0][1]
    assert torch._inductor.config._post_fusion_custom_pass is None


class TestInvariant:
    @pytest.fixture(params=["bridge.scheduling.fuse.form_groups", "bridge.scheduling.fuse._fuse_group"])
    def broken(self, request, monkeypatch):
        def break_it(*_):
            raise InvariantError("two and two")

        monkeypatch.setattr(request.param, break_it)

    @pytest.mark.expects_internal_error
    def test_falls_back(self, compile_checked, broken):
        assert_fell_back(compile_checked(strict=False), Reason.internal_error)

    def test_raises_in_strict_mode(self, compile_checked, broken):
        with pytest.raises(torch._dynamo.exc.TorchDynamoException, match="two and two"):
            compile_checked(strict=True)
        assert torch._inductor.config._post_fusion_custom_pass is None


#: Steps outside of what is tried group by group, and the groups that are fused when each has failed.
STEPS = {
    "scheduling.fuse.form_groups": 0,
    "scheduling.group_log.traffic": 0,
    "horizontal.peak_memory.live_bytes": 1,
    "scheduling.launches.sets_of_equal_reductions": 1,
    "scheduling.launches.sets_of_small_kernels": 1,
    "scheduling.launches.sets_with_common_reader": 1,
    "scheduling.fuse.make_persistent_reductions": 1,
}


class TestBug:
    """Test an internal error of Bridge in each step of a compilation."""

    @pytest.fixture
    def broken(self, request, monkeypatch):
        def break_it(*_):
            raise KeyError("two and two")

        monkeypatch.setattr(f"bridge.{request.param}", break_it)
        return STEPS[request.param]

    @pytest.mark.expects_internal_error
    @pytest.mark.parametrize("broken", STEPS, indirect=True)
    def test_what_was_fused_before_stays(self, compile_checked, broken):
        report, said = compile_checked(strict=False)
        assert len(report.fused) == broken
        assert [(r.reason, "two and two" in r.detail) for r in report.refusals] == [(Reason.internal_error, True)]
        assert len(said) == 1

    @pytest.mark.parametrize("broken", STEPS, indirect=True)
    def test_raises_in_strict_mode(self, compile_checked, broken):
        with pytest.raises(torch._dynamo.exc.TorchDynamoException, match="two and two"):
            compile_checked(strict=True)


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
