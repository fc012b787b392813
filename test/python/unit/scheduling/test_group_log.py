"""Test what a group's log makes of the results of its stages."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from bridge.reasons import Reason
from bridge.reports import GroupReport
from bridge.scheduling.group_log import GroupLog
from bridge.scheduling.results import Fused, Transformed


@pytest.fixture
def log():
    return GroupLog(GroupReport("group0", ["a", "b", "c"], 3, 3))


def fused(*positions):
    return Fused(SimpleNamespace(), frozenset(positions), (f"kernels {positions}",), contextlib.ExitStack())


def test_a_band_and_a_shared_launch_save_kernels_and_outweigh_a_refusal(log):
    log.refuse(Reason.not_profitable, "too large")
    log.take(fused(0, 1))
    log.keep_apart(Reason.mutation, "d writes")
    log.take_launch("one launch")
    log.join_launch(log, "one launch")
    entry = log.entry()
    assert (entry.fused, entry.reason, entry.detail) == (True, None, "")
    assert (entry.kernels_before, entry.kernels_after) == (3, 1)
    assert str(entry.done) == "2 kernels merged into 1; launch shared, 1 saved"
    apart = ["apart [not_profitable]: too large", "apart [mutation]: d writes"]
    assert entry.decisions == ["kernels (0, 1)", *apart, "one launch"], "what was refused before is still said"


def test_what_several_tries_end_in_is_said_once(log):
    log.keep_apart(Reason.not_profitable, "the graph would need 8 bytes of memory more")
    log.keep_apart(Reason.not_profitable, "the graph would need 8 bytes of memory more")
    assert len(log.apart) == len(log.decisions) == 1


def test_a_launch_that_is_not_shared_says_nothing_of_why_kernels_are_apart(log):
    """Check that a launch that is not shared is not the reason why kernels are apart, as the first screen said."""
    log.keep_launches(Reason.not_profitable, "a launch saved is less than is lost")
    entry = log.entry()
    assert (entry.apart, len(entry.own_launches)) == ([], 1)
    assert entry.decisions == ["own launches [not_profitable]: a launch saved is less than is lost"]


@pytest.mark.parametrize("helped", [True, False])
def test_what_kept_kernels_apart_in_other_loops_is_said_only_where_these_do_not_help(log, helped):
    log.refuse_band(Reason.extents_do_not_agree, "in rows")
    earlier = log.set_aside()
    assert (log.refusal, log.apart) == (None, [])
    if helped:
        log.take(fused(0, 1))
        assert (log.entry().reason, log.entry().apart) == (None, [])
        return
    log.refuse_band(Reason.not_profitable, "in pieces")
    log.say_again(earlier)
    assert log.refusal == (Reason.extents_do_not_agree, "in rows")
    assert log.apart == [(Reason.extents_do_not_agree, "in rows"), (Reason.not_profitable, "in pieces")]


def test_a_refused_band_refuses_the_group_only_where_no_other_was_fused(log):
    log.refuse_band(Reason.not_profitable, "first")
    assert log.refusal == (Reason.not_profitable, "first")
    log.take(fused(0, 1))
    log.refuse_band(Reason.internal_error, "second")
    entry = log.entry()
    assert (entry.fused, entry.reason) == (True, None)
    assert entry.faults == [(Reason.internal_error, "second")], "the first is no fault"
    assert entry.outcomes == ["groups_fused", "refused.internal_error"]


def test_what_is_taken_back_leaves_the_kernels_as_they_were(log):
    log.take(fused(0, 1, 2))
    assert log.entry().kernels_after == 1
    log.take_back(Reason.internal_error, "no code")
    entry = log.entry()
    assert (entry.fused, entry.kernels_after, entry.decisions) == (False, 3, [])
    assert (entry.reason, entry.detail) == (Reason.internal_error, "no code")


def test_what_was_tried_in_other_loops_is_not_said_and_its_fault_counts(log):
    log.take(fused(0))
    log.keep_apart(Reason.internal_error, "a bug")
    log.begin_again()
    entry = log.entry()
    assert (entry.fused, entry.reason, entry.kernels_after) == (False, None, 3)
    assert (str(entry.done), entry.decisions, entry.apart) == ("nothing changed", [], [])
    assert entry.faults == [(Reason.internal_error, "a bug")]


def test_the_last_remark_explains_a_refusal_unless_a_step_did(log):
    log.transformed = Transformed((("mutation", "x", "f.py:1"), ("not_profitable", "y", "f.py:2")))
    log.explain_refusal()
    assert log.refusal == (Reason.not_profitable, "y at f.py:2")
    log.transformed = Transformed()
    log.explain_refusal()
    assert log.refusal == (Reason.not_profitable, "y at f.py:2")
    silent = GroupLog(GroupReport("group1", [], 0, 0))
    silent.explain_refusal()
    assert silent.refusal == (Reason.no_common_band, "no two nests meet")


def test_time_of_a_stage_adds_up_and_counts_where_it_fails(log):
    with log.stage("lift"):
        pass
    once = log.seconds["lift"]
    with pytest.raises(KeyError), log.stage("lift"):
        raise KeyError
    assert log.seconds["lift"] > once > 0
    assert list(log.entry().seconds) == ["lift"]


def test_a_launch_of_two_groups_is_one_less_for_the_second_only(log):
    other = GroupLog(GroupReport("group1", ["d"], 1, 1))
    log.take_launch("one launch")
    other.join_launch(log, "one launch")
    assert (log.entry().kernels_after, other.entry().kernels_after) == (3, 0)
    assert str(log.entry().done) == "launch shared with another group"
    assert other.entry().decisions == ["in a launch of group0: one launch"]


def test_one_kernel_with_other_loops_is_not_called_merged(log):
    log.take(fused(0))
    assert str(log.entry().done) == "1 kernel with other loops" and log.entry().kernels_after == 3


def test_what_a_later_step_says_of_one_kernel_is_not_said_of_the_group(log):
    first = Transformed(remarks=(("mutation", "of all", "here"),), certificate=("proof of all",))
    log.transformed = first
    with log.kept_remarks():
        pass
    assert log.transformed == first
    with log.kept_remarks():
        log.transformed = Transformed(remarks=(("mutation", "of one", "here"),), certificate=("proof of one",))
    assert log.transformed == Transformed(first.remarks, certificate=("proof of all", "proof of one"))
