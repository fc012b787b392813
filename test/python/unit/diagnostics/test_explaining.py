"""Test bridge.explain: what it says is what was compiled."""

from __future__ import annotations

import json
import re
from pathlib import Path

import explained
import pytest
import torch
from explained import example_inputs, gated, halves, next_row, other_lane, two_orders

import bridge
from bridge.diagnostics.explaining import compiling, explain, make_explanation, pass_meaning
from bridge.diagnostics.guards import find_guards
from bridge.diagnostics.text import space
from bridge.options import DEFAULT_PIPELINE
from bridge.support.gradients import NoGradient

LINES = Path(explained.__file__).read_text().splitlines()


def line_of(code: str) -> str:
    return f"explained.py:{next(i for i, line in enumerate(LINES, 1) if code in line)}"


@pytest.fixture(scope="module")
def fused():
    return explain(gated, torch.zeros(2048, 8192))


class TestFused:
    def test_kernels_and_groups(self, fused):
        assert (fused.kernels_before, fused.kernels_after) == (2, 1)
        (group,) = fused.groups
        assert group.fused and (group.kernels_before, group.kernels_after) == (2, 1)

    def test_statements_have_spaces_and_source_lines(self, fused):
        statements = fused.groups[0].statements
        assert [space(s) for s in statements] == ["[2048] reduces [8192]", "[2048, 4096]"]
        assert [s.kernel for s in statements] == [0, 1]
        shown = str(fused)
        assert line_of("x.pow(2)") in shown and "x = x * torch.rsqrt(x.pow(2)" in shown
        assert line_of("torch.sigmoid(gate)") in shown

    def test_buffers_between(self, fused):
        ((name, buffer),) = fused.groups[0].buffers.items()
        assert (name, buffer.dtype, buffer.shape, buffer.bytes) == ("buf0", "float32", ["2048", "1"], 8192)
        assert buffer.temporary

    def test_bytes_are_those_of_the_tensors(self, fused):
        group, megabyte = fused.groups[0], 1 << 20
        row_values = 2 * 8192
        assert group.bytes_before == (2 * 64 + 32) * megabyte + row_values
        assert group.bytes_after == group.bytes_if_one == (64 + 32) * megabyte

    def test_times_are_the_rooflines(self, fused):
        group = fused.groups[0]
        assert group.seconds_before == pytest.approx(group.bytes_before / 3.35e12 + 2 * 2e-6)
        assert group.seconds_after == pytest.approx(group.bytes_after / 3.35e12 + 2e-6)

    def test_transformations_are_the_passes_that_changed_it(self, fused):
        names = [t.name for t in fused.groups[0].transformations]
        assert names == ["bridge-split-index-sets", "bridge-fuse-bands", "bridge-prove-parallel"]
        split, merged, _ = (t.counts for t in fused.groups[0].transformations)
        assert (split.nests, merged.nests) == (2, 1)
        assert split.loads == merged.loads == 5
        assert fused.groups[0].transformations[0].meaning == pass_meaning("bridge-split-index-sets") != ""

    def test_registers_are_of_the_kernel(self, fused):
        (kernel,) = fused.groups[0].kernels
        (used,) = fused.groups[0].resources
        assert set(kernel.nodes) == {"op0", "op1"} and f"def {kernel.name}(" in kernel.source
        assert used.kernel == kernel.name
        assert 16 <= used.registers <= 255 and used.spills == 0

    def test_json(self, fused):
        read = json.loads(fused.to_json())
        assert read["groups"][0]["bytes_after"] == fused.groups[0].bytes_after
        assert "affine.for" in read["groups"][0]["stages"]["affine.mlir"]


class TestRefused:
    def test_rows_collide(self):
        (group,) = explain(next_row, *example_inputs()).groups
        assert not group.fused
        refusals = [r for r in group.refusals if r.reason == "loop_carried_dependence"]
        assert refusals and all(refusal.accesses for refusal in refusals)
        for refusal in refusals:
            first, second = refusal.accesses
            written = re.fullmatch(r"iteration \((\d+).*\) writes element \[(\d+).*\] of (\w+)", first.words)
            assert written[1] == written[2] and written[3] in group.buffers
            reader = re.fullmatch(r"iteration \((\d+).*\) reads it", second.words)
            assert reader[1] != written[1]
            assert {first.node, second.node} <= {s.name for s in group.statements}

    def test_a_collision_names_rows_as_the_statements_have_them(self):
        """Check that a collision names rows as the statements have them.

        The passes give the sums of 64 rows the loops over (8, 8) of the reader of the columns.
        """
        (group,) = explain(two_orders, *example_inputs()).groups
        assert [space(s) for s in group.statements] == ["[64] reduces [1024]", "[8, 8, 1024]"]
        (refusal,) = [r for r in group.refusals if r.accesses]
        writer, reader = (access.words for access in refusal.accesses)
        row = re.fullmatch(r"iteration \((\d+)\) writes element \[(\d+)\] of buf0", writer)
        assert row[1] == row[2]
        i, j = re.fullmatch(r"iteration \((\d), (\d), \d+\) reads it", reader).groups()
        assert int(row[1]) == int(i) + 8 * int(j)  # x * rows.t()

    def test_lanes_collide(self):
        explanation = explain(other_lane, *example_inputs())
        (refusal,) = [r for r in explanation.groups[0].refusals if r.accesses]
        assert refusal.reason in ("cross_lane_dependence", "loop_carried_dependence")
        writer, reader = (access.words for access in refusal.accesses)
        element = [int(n) for n in re.search(r"element \[(\d+), (\d+)\]", writer).groups()]
        row, *lanes = [int(n) for n in re.search(r"\((.*)\)", reader)[1].split(", ")]
        assert row == element[0]
        # segments.repeat(1, 32): whatever loops it has, lane j of the row reads segment j mod 32.
        extents = [int(n) for n in re.findall(r"affine.for %\w+ = 0 to (\d+) \{", group_stage(explanation))][
            -len(lanes) :
        ]
        lane = 0
        for number, extent in zip(lanes, extents, strict=True):
            lane = lane * extent + number
        assert lane % 32 == element[1]
        assert line_of("segments.repeat") in str(explanation)

    def test_guards_of_a_dynamic_row(self):
        (x,) = example_inputs()
        torch._dynamo.mark_dynamic(x, 1)
        explanation = explain(halves, x, dynamic=None, registers=False)
        (group,) = explanation.groups
        assert group.reason == "dynamic_extent"
        multiple, constant = group.guards
        assert re.fullmatch(r"s\d+ % 2 == 0", multiple) and re.fullmatch(r"s\d+ == 1024", constant)
        assert f"would fuse with:\n    {multiple}\n    {constant}" in explanation.details()
        assert f"It would fuse with {multiple} or {constant}." in str(explanation)

    def test_a_guard_that_does_not_help_is_none(self):
        module = """
        func.func @f(%t: memref<?x?xf32>, %out: memref<?x?xf32>, %n: index {bridge.size = "n"}) {
          affine.for %i = 1 to %n {
            affine.for %j = 0 to 8 {
              %x = affine.load %out[%i, %j] : memref<?x?xf32>
              affine.store %x, %t[%i, %j] : memref<?x?xf32>
            }
          }
          affine.for %i = 1 to %n {
            affine.for %j = 0 to 8 {
              %x = affine.load %t[%i - 1, %j] : memref<?x?xf32>
              affine.store %x, %out[%i, %j] : memref<?x?xf32>
            }
          }
          return
        }
        """
        labelled = module.replace("%t: memref<?x?xf32>", "%t: memref<?x?xf32> {}")
        assert find_guards(labelled, {"n": 64}, DEFAULT_PIPELINE) == []

    def test_a_library_call_is_named(self):
        x = torch.zeros(64, 64)
        explanation = explain(lambda x: (x @ x).relu().sum(-1), x, registers=False)
        assert any(other.reason == "extern_kernel" for other in explanation.others)
        assert "[extern_kernel]" in explanation.details() and "1 library call is not counted" in str(explanation)


def group_stage(explanation) -> str:
    """Return the loops as they were when bands were merged."""
    stages = explanation.groups[0].stages
    before = [text for name, text in stages.items() if name.endswith(".mlir")]
    return next(text for name, text in reversed(stages.items()) if name == "fused.mlir") or before[-1]


def test_on_a_cpu_the_function_runs():
    explanation = explain(gated, *example_inputs(), backend_target="cpu")
    (group,) = explanation.groups
    assert group.fused and group.resources == []
    assert "cpp_fused" in group.kernels[0].name
    assert explanation.roofline.bandwidth > 1e8


def test_keywords_and_options():
    explanation = explain(lambda x, scale: gated(x) * scale, *example_inputs(), scale=2.0, options={"max_nodes": 1})
    assert all(not group.fused for group in explanation.groups)
    with pytest.raises(bridge.OptionError, match="nonsense"):
        explain(gated, *example_inputs(), options={"bridge.nonsense": 1})


@pytest.mark.filterwarnings("ignore:bridge leaves the code")
def test_a_pipeline_that_cannot_be_read_is_a_fault():
    explanation = explain(gated, *example_inputs(), options={"pipeline": "builtin.module(bridge-fus)"}, registers=False)
    ((reason, detail),) = explanation.faults
    assert reason == "pass_failed" and "'bridge-fus' does not refer to a registered pass" in detail
    assert explain(gated, *example_inputs(), registers=False).faults == []


@pytest.mark.parametrize("target", ["tpu", "cuda:sm_1", "sm_90"])
def test_unknown_target(target):
    with pytest.raises(ValueError, match="target|architecture"):
        explain(gated, *example_inputs(), backend_target=target)


def test_nothing_is_recorded_without_being_asked(compiler):
    compiler(gated, backend="bridge")(*example_inputs())
    assert [group.record for group in bridge.report().groups] == [None]


def scaled(x, weight):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight).relu()


@pytest.mark.parametrize("backend", ["inductor", "bridge"])
def test_a_backward_for_a_gpu_was_left_out(backend, compiler):
    """Check that a backward is compiled for the GPU too, and counts where the program runs it.

    What runs is eager mode, for which Inductor would compile no backward.
    """
    x, weight = torch.randn(64, 128, requires_grad=True), torch.ones(128, requires_grad=True)
    with torch.enable_grad(), compiling("cuda:sm_90", {}) as recording:
        loss = torch.compile(scaled, backend=backend)(x, weight).sum()
        forward = recording.kernels_before
        assert recording.graphs == 1
        loss.backward(retain_graph=True)
        loss.backward()
        expected = torch.autograd.grad(2 * scaled(x, weight).sum(), x)
    torch.testing.assert_close((x.grad,), expected)
    assert recording.graphs == 2 and recording.kernels_before > forward
    assert {kernel.graph for kernel in recording.kernels} == {0, 1}


def test_groups_of_several_reports_have_names_of_their_own():
    x = torch.randn(64, 512)
    with compiling("cuda:sm_90", {}) as recording, torch.no_grad():
        for rows in (64, 32):
            torch.compile(gated, backend="bridge", dynamic=False)(x[:rows])
    explanation = make_explanation(recording, "two", "cuda:sm_90")
    assert [group.name for group in explanation.groups] == ["graph 0 group0", "graph 1 group0"]
    assert all(f"({group.name})" in " ".join(str(explanation).split()) for group in explanation.groups)


def test_decisions_have_no_places_of_the_machine():
    """Check that decisions have no `loc(...)`; what was refused on the way has the user's lines."""

    def of_halves(x):
        first, second = x.chunk(2, -1)
        return first / first.sum(-1, keepdim=True), second / second.sum(-1, keepdim=True)

    explained_halves = explain(of_halves, torch.zeros(2048, 1024))
    decisions = [line for group in explained_halves.groups for line in group.decisions]
    assert any(line.startswith("apart [") for line in decisions)
    assert not any("loc(" in line for line in decisions), decisions


def test_a_function_is_explained_with_its_backward():
    """Check that a function is explained with its backward: kernels of both graphs.

    If no input wants a gradient, all are made to.
    """
    inputs = torch.zeros(4096, 2048, dtype=torch.bfloat16)
    assert explain(gated, inputs).graphs == 1
    both = explain(gated, inputs, backward=True)
    assert both.graphs == 2
    assert (both.kernels_before, both.kernels_after) == (3, 2)


def test_a_function_without_a_backward_is_refused():
    with pytest.raises(NoGradient):
        explain(lambda x: x + 1, torch.zeros(8, 8, dtype=torch.int64), backward=True)


def test_graphs_behind_a_break_have_their_backward_too():
    def broken(x):
        y = torch.exp(x)
        torch._dynamo.graph_break()
        return torch.tanh(y).sum(-1)

    assert explain(broken, torch.zeros(64, 256), backward=True).graphs == 4
