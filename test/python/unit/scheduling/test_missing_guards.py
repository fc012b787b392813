"""Test sizes that no guard speaks of: a group is refused with the relation of them under which it would be fused."""

from __future__ import annotations

from explained import example_inputs, halves
from schedules import look_at_schedule

from bridge.options import Options
from bridge.reasons import Reason
from bridge.reports import GroupReport
from bridge.scheduling.group_log import GroupLog
from bridge.scheduling.grouping import form_groups
from bridge.scheduling.missing_guards import name_missing_guard


def refusal_of(dynamic):
    """Return what is said of the one group of a schedule, which is compiled no further."""
    logs = []

    def look(schedule):
        (group,), _ = form_groups(schedule, 64)
        log = GroupLog(GroupReport("group0", [], 2, 2))
        group.culprit = group.positions[-1]
        name_missing_guard(group, schedule, Options(), log)
        assert group.culprit == group.positions[-1], "what is at fault without an assumption is"
        logs.append(log)

    look_at_schedule(halves, example_inputs(), look, dynamic)
    return logs[0].refusal


def test_a_relation_that_no_guard_has_is_named():
    reason, detail = refusal_of(dynamic=True)
    assert reason is Reason.dynamic_extent
    assert "% 2 == 0, which no guard says: torch._check in the function adds one" in detail


def test_constant_sizes_lack_nothing():
    assert refusal_of(dynamic=False) is None
