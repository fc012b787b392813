"""What the logs of a graph's groups are numbered by, and what they add to the report."""

from __future__ import annotations

from bridge.reasons import Reason
from bridge.reports import GroupReport, Report
from bridge.scheduling.group_log import GroupLog
from bridge.scheduling.grouping import Group
from bridge.scheduling.logs import Logs


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
