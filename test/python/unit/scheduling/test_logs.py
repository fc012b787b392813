"""Test what the logs of a graph's groups are numbered by, and what they add to the report."""

from __future__ import annotations

import pytest

from bridge.horizontal.shared_launch import Launch, SharedLaunches
from bridge.reasons import Reason
from bridge.reports import GroupReport, KernelReport, Report
from bridge.scheduling import group_log
from bridge.scheduling import logs as logs_of_graph
from bridge.scheduling.group_log import GroupLog
from bridge.scheduling.grouping import Group
from bridge.scheduling.logs import Logs
from bridge.support.error_boundary import boundary


def test_numbers_go_on_after_the_reports_groups_and_the_logs_that_are_kept():
    report = Report(groups=[GroupReport("group0", [], 0, 0)], graphs=3)
    logs = Logs(report)
    log = logs.open(Group(), [])
    assert (log.name, log.given.graph, log.given.nodes) == ("group1", 3, [])
    assert logs.open(Group(), []).name == "group1", "the first is not kept"
    logs.keep(log)
    assert logs.open(Group(), []).name == "group2"


def test_entries_are_written_once_and_counted():
    logs = Logs(Report())
    for number, reason in enumerate((Reason.mutation, Reason.mutation, Reason.not_profitable)):
        log = GroupLog(GroupReport(f"group{number}", [], 2, 2))
        log.refuse(reason, "why")
        logs.keep(log)
    log.fused, log.refusal = True, None
    assert logs.report.groups == [], "an entry is made when all is done"
    logs.write([])
    logs.write([])
    assert [(g.name, g.fused) for g in logs.report.groups] == [("group0", False), ("group1", False), ("group2", True)]
    assert logs.report.counters == {"refused.mutation": 2, "groups_fused": 1}
    assert logs.kept == []


def test_faults_of_a_fused_group_are_counted_beside_its_fusion():
    logs = Logs(Report())
    log = GroupLog(GroupReport("group0", [], 2, 2), fused=True, faults=[(Reason.pass_failed, "x")] * 2)
    logs.keep(log)
    logs.write([])
    assert logs.report.counters == {"groups_fused": 1, "refused.pass_failed": 1}


def test_a_launch_is_noted_for_the_groups_of_all_its_kernels():
    logs = Logs(Report())
    for number, nodes in enumerate((["a", "b"], ["c"])):
        logs.keep(GroupLog(GroupReport(f"group{number}", nodes, len(nodes), len(nodes))))
    new = GroupLog(GroupReport("group2", ["d"], 1, 1))
    heads = tuple(frozenset({name}) for name in "bcd")
    logs.take_launches(SharedLaunches([], (Launch("one launch", heads),), ((Reason.mutation, "e writes"),)), new)
    logs.keep(new)
    logs.write([])
    assert [group.kernels_after for group in logs.report.groups] == [2, 0, 0], "the first has the launch"
    assert all(group.fused for group in logs.report.groups)
    assert logs.report.groups[2].own_launches == [(Reason.mutation, "e writes")]
    assert logs.owner({"x"}) is None


@pytest.mark.expects_internal_error
def test_kernels_that_cannot_be_looked_at_leave_the_entries_as_they_were_given():
    logs = Logs(Report())
    logs.keep(GroupLog(GroupReport("group0", ["a"], 2, 2), fused=True))
    with boundary(False, logs.report.refusals.append):
        logs.write([object()])
    assert [group.name for group in logs.report.groups] == ["group0"]
    assert [refusal.reason for refusal in logs.report.refusals] == [Reason.internal_error]


def test_a_kernel_of_two_groups_moves_its_bytes_for_both(monkeypatch):
    """Check that a kernel of two groups has its bytes divided between them.

    One group had 161.0 MB -> 0 B, and the other 65.0 MB -> 198.1 MB: all that the kernel moves.
    """
    kernel, logs = object(), Logs(Report())
    monkeypatch.setattr(logs_of_graph, "_parts_by_name", lambda _: dict.fromkeys("ab", (kernel, "k")))
    monkeypatch.setattr(group_log, "_kernel", lambda _, launch: KernelReport(["a", "b"], {"x": 8}, set(), launch))
    for number, (name, before) in enumerate((("a", 30), ("b", 10))):
        given = [KernelReport([name], {"y": before}), KernelReport(["elsewhere"], {"y": 500})]
        logs.keep(GroupLog(GroupReport(f"group{number}", [name], 1, 1, kernels=given), fused=True))
    logs.keep(GroupLog(GroupReport("group2", ["b"], 1, 1, kernels=[KernelReport(["b"], {"y": 10})])))
    logs.write([kernel])
    assert [group.bytes_after for group in logs.report.groups] == [6, 2, 10], "one that stays as it was has no share"
    assert [[known.nodes for known in group.kernels_now] for group in logs.report.groups[:2]] == [[["a", "b"]]] * 2


def test_shares_of_any_amount_add_up_to_it():
    shares = [group_log.Share(0, 3, 10), group_log.Share(3, 5, 10), group_log.Share(8, 2, 10)]
    assert [[share.of(amount) for share in shares] for amount in (0, 1, 7, 10)] == [
        [0, 0, 0],
        [0, 0, 1],
        [2, 3, 2],
        [3, 5, 2],
    ]
