"""Test any error in any step, at one kernel or one group.

That is left alone, and the compilation is no worse for it.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any

import pytest
import sympy
import torch
from functions import rotary, rows

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.lowering.triton import codegen

#: One of each kind: of programs, torch, sympy, MLIR and the system.
ERRORS = [
    KeyError("planted"),
    NotImplementedError("planted"),
    RecursionError("planted"),
    MemoryError("planted"),
    OSError("planted"),
    StopIteration("planted"),
    sympy.PolynomialError("planted"),
    torch._inductor.exc.InductorError(ValueError("planted"), None),
]


def two_groups(x, y):
    """Compute two groups that share nothing."""
    return *rows(x), *rows(y)


def inputs():
    return [torch.linspace(-1, 1, 32 * 64).reshape(32, 64), torch.linspace(-2, 1, 16 * 128).reshape(16, 128)]


def fail_once(monkeypatch, place, error, after=False):
    """Make the first call of a function raise, before or after its work; return the list of its calls."""
    module, _, name = place.rpartition(".")
    original, calls = getattr(sys.modules[module], name), []

    def fail(*arguments, **keywords):
        calls.append(name)
        result = original(*arguments, **keywords) if after or len(calls) > 1 else None
        if len(calls) == 1:
            raise error
        return result

    monkeypatch.setattr(place, fail)
    return calls


def generate(strict=False, **options):
    def backend(gm, example_inputs):
        return bridge_backend(gm, example_inputs, options={"strict": strict, **options})

    return offline.compile_for_gpu(two_groups, inputs(), compile_fx=backend, dynamic=False)


#: Steps, by where they are, and how many of the two groups are fused when the first call of each has failed.
STEPS = {
    "bridge.scheduling.grouping.find_obstacle": 1,
    "bridge.scheduling.grouping._single": 1,
    "bridge.scheduling.grouping._is_candidate": 1,
    "bridge.scheduling.group_log.traffic": 1,
    "bridge.scheduling.translation.loop_choices": 1,
    "bridge.scheduling.fuse._open_stages": 2,
    "bridge.scheduling.fuse.pipeline_of": 1,
    "bridge.scheduling.transformation._tables": 1,
    "bridge.scheduling.commit._check_whole": 1,
    "bridge.lowering.lift.commit._one_kernel": 1,
    "bridge.scheduling.commit.rewrite": 1,
    "bridge.scheduling.fuse._replace": 1,
    "bridge.lowering.triton.codegen.replace_kernels": 1,
    "bridge.lowering.triton.codegen.make_persistent": 1,
    "bridge.diagnostics.recording.finish_group": 2,
    "bridge.diagnostics.recording.finish_graph": 2,
    "bridge.horizontal.peak_memory.live_bytes": 2,
    "bridge.horizontal.candidates.find_launch_obstacle": 2,
    "bridge.horizontal.candidates._belongs": 2,
    "bridge.diagnostics.torch_logging.tell": 2,
    "bridge.scheduling.hook._report_changes": 2,
}


def check(fused):
    """Check what is to be seen of one error."""
    report = bridge.report()
    assert len(report.fused) == fused, str(report)
    assert report.counters["refused.internal_error"] == 1, report.counters
    assert [detail for reason, detail in report.reasons() if reason is bridge.Reason.internal_error]


@pytest.mark.one_in(4)
@pytest.mark.expects_internal_error
@pytest.mark.parametrize("place", STEPS)
def test_a_step_fails_for_one(place, monkeypatch, compiler):
    calls = fail_once(monkeypatch, place, KeyError("planted"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = generate()
    assert calls
    check(STEPS[place])
    assert sum("planted" in str(warning.message) for warning in caught) == 1
    assert result.n_kernels <= 4


@pytest.mark.one_in(2)
@pytest.mark.expects_internal_error
@pytest.mark.filterwarnings("ignore:bridge leaves the code")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_any_error_fails_for_one(error, monkeypatch, compiler):
    fail_once(monkeypatch, "bridge.scheduling.transformation._tables", error)
    generate()
    check(1)


@pytest.mark.parametrize(
    "place",
    [
        "bridge.scheduling.grouping.find_obstacle",
        "bridge.scheduling.commit.rewrite",
        "bridge.horizontal.candidates.find_launch_obstacle",
    ],
)
def test_strict_mode_raises(place, monkeypatch, compiler):
    fail_once(monkeypatch, place, KeyError("planted"))
    with pytest.raises(Exception, match="planted"):
        generate(strict=True)


@pytest.mark.one_in(2)
@pytest.mark.expects_internal_error
@pytest.mark.filterwarnings("ignore:bridge leaves the code")
@pytest.mark.parametrize("place", ["bridge.scheduling.fuse._replace", "bridge.lowering.triton.codegen.replace_kernels"])
def test_loops_are_restored_where_the_schedule_is_not_changed(place, monkeypatch, compiler):
    """Check that loops are restored where an error comes after the work, and no kernel is made for the new loops."""
    fail_once(monkeypatch, place, KeyError("planted"), after=True)
    ours = compiler(two_groups, backend="bridge", options={"bridge.strict": False})(*inputs())
    torch.testing.assert_close(ours, two_groups(*inputs()))
    check(1)


@pytest.mark.expects_internal_error
@pytest.mark.filterwarnings("ignore:bridge")
def test_a_cache_key_that_fails_is_no_key(monkeypatch, compiler):
    monkeypatch.setattr("bridge.scheduling.hook.implementation_hash", lambda: 1 / 0)
    with torch._inductor.config.patch(fx_graph_cache=True):
        ours = compiler(two_groups, backend="bridge", options={"bridge.strict": False})(*inputs())
    torch.testing.assert_close(ours, two_groups(*inputs()))
    assert len(bridge.report().fused) == 2
    assert torch._dynamo.utils.counters["bridge"]["refused.internal_error"] == 1


@pytest.fixture
def no_code_once(monkeypatch):
    """Make code generation fail for the first kernel of Bridge's that it reaches; return the kernels that failed."""
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.virtualized import V

    codegen_node = CppScheduling.codegen_node
    failed: list[Any] = []

    def codegen(self, node):
        if node is V.graph.scheduler.current_node and not failed:  # and not one that is tried
            report, own = bridge.report(), set(node.get_operation_names())
            fused = [set(group.nodes) for group in report.fused if group.graph == report.graphs - 1]
            if any(own & nodes for nodes in fused):
                failed.append(own)
                raise KeyError("planted")
        return codegen_node(self, node)

    monkeypatch.setattr(CppScheduling, "codegen_node", codegen)
    return failed


def two_backwards(x, y):
    """Compute two groups of the backward."""
    return rotary(x, torch.ones(64)), rotary(y, torch.ones(128))


def call(function, given):
    """Return results, and gradients of those inputs that have some."""
    with torch.set_grad_enabled(given[0].requires_grad):
        results = [*function(*given)]
        if given[0].requires_grad:
            torch.autograd.backward([result.sin().sum() for result in results])
    return [*results, *(x.grad for x in given if x.requires_grad)]


def compile_by(way, function, **options):
    """Return (a block to call it in, the compiled function), as the user asked for it."""
    if way == "backend":
        named = {f"bridge.{name}": value for name, value in options.items()}
        return contextlib.nullcontext(), torch.compile(function, backend="bridge", options=named)
    return bridge.enabled(**options), torch.compile(function)


@pytest.mark.one_in(2)
@pytest.mark.expects_internal_error
@pytest.mark.parametrize("train", [False, True], ids=["inference", "backward"])
@pytest.mark.parametrize("way", ["backend", "enabled"])
def test_a_kernel_without_code_is_left_alone(way, train, no_code_once, compiler):
    """Check that a kernel without code is left alone, and that the other group is fused all the same.

    A backward is compiled when nothing of the backend's is around it.
    """
    function, given = (two_backwards if train else two_groups), [x.requires_grad_(train) for x in inputs()]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        within, compiled = compile_by(way, function, strict=False, training=train)
        with within:
            results = call(compiled, given)
    expected = call(function, [x.requires_grad_(train) for x in inputs()])
    torch.testing.assert_close(results, expected, rtol=1e-4, atol=1e-5)
    report, counted = bridge.report(), torch._dynamo.utils.counters["bridge"]
    assert no_code_once and report.counters["refused.internal_error"] == counted["refused.internal_error"] == 1
    (refused,) = [group for group in report.groups if group.reason is bridge.Reason.internal_error]
    assert set(refused.nodes) & no_code_once[0] and "planted" in refused.detail and report.fused
    assert counted["groups_fused"] == len(report.fused) and counted["groups_seen"] == len(report.groups)
    assert sum("planted" in str(warning.message) for warning in caught) == 1


@pytest.mark.expects_internal_error
@pytest.mark.filterwarnings("ignore:bridge leaves the code")
def test_a_graph_without_code_is_inductors(monkeypatch, compiler):
    """Check that a graph without code is Inductor's, as the kernel at fault is not known."""
    replace = codegen.replace_kernels

    def plant(scheduler, *arguments):
        planted: dict[str, Any] = {}
        scheduler.codegen = lambda: planted["planted"]
        return replace(scheduler, *arguments)

    monkeypatch.setattr("bridge.lowering.triton.codegen.replace_kernels", plant)
    with bridge.enabled(strict=False) as report:
        results = compiler(two_groups)(*inputs())
    torch.testing.assert_close(results, two_groups(*inputs()))
    assert report.fused == [] and report.kernels_after == report.kernels_before
    assert report.counters["graphs_withdrawn"] == 1 and report.counters["groups_fused"] == 0


@pytest.mark.parametrize("way", ["backend", "enabled"])
def test_strict_mode_raises_what_code_generation_does(way, no_code_once, compiler):
    within, compiled = compile_by(way, two_groups, strict=True)
    with within, pytest.raises(Exception, match="planted"):
        compiled(*inputs())
