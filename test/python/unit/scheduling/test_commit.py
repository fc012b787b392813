"""Test what a commit refuses before it changes anything, and what it knows of the bands that became kernels."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from bridge.lowering.lift.band import LiftedBand, LiftedNode
from bridge.lowering.triton.profitability import MAX_ROW_REGISTERS
from bridge.reasons import Reason
from bridge.reports import GroupReport
from bridge.scheduling import commit as commits
from bridge.scheduling.commit import Commit, pays
from bridge.scheduling.group_log import GroupLog
from bridge.scheduling.grouping import Group
from bridge.scheduling.results import Fused
from bridge.support.error_boundary import boundary, without


class Kernel(SimpleNamespace):
    """Stand for a kernel of one node, which makes a buffer of its own name."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, name, *awaited):
        super().__init__(name=name, unmet_dependencies=[SimpleNamespace(name=a) for a in awaited], _sizes=([8], []))

    def get_name(self):
        return self.name

    def get_nodes(self):
        return [self]

    def get_buffer_names(self):
        return [self.name]


def band(*nodes, kernels=None, registers=None, in_registers=False):
    lifted = [LiftedNode(name, [8], [], lambda *_: None) for name in nodes]
    return LiftedBand(lifted, list(range(len(nodes))) if kernels is None else kernels, registers, in_registers)


@pytest.fixture
def log():
    return GroupLog(GroupReport("group0", ["a", "b", "c"], 3, 3))


def refusal(commit, lifted, log):
    """Return what the log says after a commit of one band, which no other step refuses."""
    others: list = []
    with boundary(strict=True, refuse=others.append):
        commit.commit_all([lifted], log)
    assert (others, commit.done, log.fused) == ([], [], False)
    return log.refusal


def chain():
    """Return kernels a -> b -> c."""
    return [Kernel("a"), Kernel("b", "a"), Kernel("c", "b")]


def test_a_band_that_leaves_a_kernel_as_it_was_is_no_fusion_and_no_refusal(log):
    schedule = chain()
    commit = Commit({"a": schedule[0]}, Group([0]), schedule, None)
    assert refusal(commit, band("a"), log) is None


def test_a_band_with_a_part_of_a_kernel_is_refused(log):
    commit = Commit({}, Group([0, 1]), chain(), None)
    reason, detail = refusal(commit, band("a", kernels=[0, 1]), log)
    assert (reason, detail) == (Reason.not_liftable, "['a']: only a part of a kernel of Inductor's")
    assert commit.parted
    commit.take_back()
    assert not commit.parted


def test_kernels_around_another_that_waits_between_them_are_refused(log):
    commit = Commit({}, Group([0, 2]), chain(), None)
    reason, detail = refusal(commit, band("a", "c"), log)
    assert reason is Reason.cycle_through_other_node
    assert detail == "['a', 'c']: a path leads from one to another through other kernels"


@pytest.mark.expects_internal_error
def test_operations_whose_kernel_had_no_code_are_refused_with_the_error(log):
    commit = Commit({}, Group([0, 1]), chain(), None)
    with without({"b"}, "KeyError: x"):
        assert refusal(commit, band("a", "b"), log) == (Reason.internal_error, "KeyError: x")


def test_kernels_stand_at_the_first_they_replace_and_the_last_is_undone_first():
    order: list = []
    commit = Commit({}, Group(), [], None)
    for kernel, positions in (("first", {4, 2}), ("second", {3, 7})):
        undo = contextlib.ExitStack()
        undo.callback(order.append, kernel)
        commit.done.append(Fused(kernel, frozenset(positions), (), undo))
    assert commit.kernels == {2: "first", 3: "second"}
    assert commit.removed == {2, 3, 4, 7}
    commit.undo()
    assert order == ["second", "first"]
    assert Commit({}, Group(), [], None).removed == set()


@pytest.mark.parametrize(
    ("registers", "in_registers", "expected"),
    [(None, False, True), (0, False, True), (MAX_ROW_REGISTERS, True, True), (40_000, False, False)],
)
def test_a_row_that_would_be_read_again_does_not_pay(log, registers, in_registers, expected):
    commit = Commit({}, Group([5, 7]), [], None)
    assert pays(band("b", "a", registers=registers, in_registers=in_registers), commit, log) is expected
    assert commit.refused == ([] if expected else [{5, 7}])
    if expected:
        assert log.refusal is None
    else:
        reason, detail = log.refusal
        assert reason is Reason.not_profitable
        assert detail == "['a', 'b']: a row takes 40000 registers, of which 32768 can be kept: it would be read again"


@pytest.mark.parametrize("resized", [False, True])
@pytest.mark.parametrize("checks_gain", [False, True])
def test_the_whole_graphs_memory_is_asked_where_buffers_have_other_sizes(monkeypatch, resized, checks_gain):
    """Check that the whole graph's memory is asked just where buffers have other sizes.

    The same field had answered whether a gain is asked.
    """
    asked = []
    room = SimpleNamespace(most=8, check=lambda *_: asked.append("kernels"), check_all=lambda *_: asked.append("all"))
    monkeypatch.setattr("bridge.scheduling.commit.codegen.replace_kernels", lambda scheduler, given, *_: given)
    monkeypatch.setattr("bridge.scheduling.commit.codegen.put_back", lambda kernels: None)
    monkeypatch.setattr(Kernel, "scheduler", None, raising=False)
    commit = Commit({}, Group([0]), [Kernel("a")], room, check_gain=(lambda *_: None) if checks_gain else None)
    commit.resized = resized
    commit._check_room(room, {0}, Kernel("b"))
    assert asked == ["all" if resized else "kernels"]


def test_what_is_taken_back_has_its_old_loops_and_may_be_tried_again():
    undone: list = []
    undo = contextlib.ExitStack()
    undo.callback(undone.append, "old loops")
    commit = Commit({}, Group([0, 1]), chain(), None)
    commit.done.append(Fused(Kernel("ab"), frozenset({0}), (), undo))
    commit.refused.append({1})
    commit.take_back()
    assert (undone, commit.done, commit.refused) == (["old loops"], [], [])


def test_a_kernel_with_sums_over_planes_was_looked_for_in_the_schedule_without_them(log, monkeypatch):
    """Check that a kernel with sums over planes is looked for in its own schedule, with kernels made for it."""
    kernel = Kernel("a")
    monkeypatch.setattr(commits, "rewrite", lambda *_: (kernel, (), contextlib.ExitStack()))
    monkeypatch.setattr(commits, "cost_of", lambda kernel: 5)
    monkeypatch.setattr(commits, "_has_loops_of", lambda *_: False)
    commit = Commit({"a": kernel}, Group([0]), [Kernel("a")], None, waits=lambda schedule, _: schedule == [kernel])
    commit.schedule = [kernel]
    assert refusal(commit, band("a"), log) is None
    assert commit.waiting == {kernel: 5}


def test_a_kernel_that_waits_has_its_old_loops_and_says_what_it_would_cost(log, monkeypatch):
    undone: list = []
    undo = contextlib.ExitStack()
    undo.callback(undone.append, "old loops")
    kernel = Kernel("a")
    monkeypatch.setattr(commits, "rewrite", lambda *_: (kernel, ("other loops",), undo))
    monkeypatch.setattr(commits, "cost_of", lambda kernel: 5)
    monkeypatch.setattr(commits, "_has_loops_of", lambda *_: False)
    commit = Commit({"a": kernel}, Group([0]), [kernel], None, waits=lambda _, one: one is kernel)
    assert refusal(commit, band("a"), log) is None
    assert (commit.waiting, undone, log.decisions) == ({kernel: 5}, ["old loops"], [])
