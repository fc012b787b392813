"""Sizes that no guard speaks of: a group is refused with the relation of them under which it would be fused."""

from __future__ import annotations

import pytest
import torch
from explained import example_inputs, halves
from torch._inductor import config as inductor_config

from bridge import inductor
from bridge.options import Options
from bridge.reasons import Reason
from bridge.reports import GroupReport
from bridge.scheduling.group_log import GroupLog
from bridge.scheduling.grouping import form_groups
from bridge.scheduling.missing_guards import name_missing_guard


class Seen(Exception):
    """Ends a compilation when its schedule has been looked at."""


def refusal_of(dynamic):
    """What is said of the one group of a schedule, which is compiled no further."""
    logs = []

    def look(schedule):
        (group,), _ = form_groups(schedule, 64)
        log = GroupLog(GroupReport("group0", [], 2, 2))
        name_missing_guard(group, schedule, Options(), log)
        logs.append(log)
        raise Seen

    torch._dynamo.reset()
    patches = {inductor.HOOK: look, "fx_graph_cache": False}
    with inductor_config.patch(patches), torch.no_grad(), pytest.raises(Exception, match="Seen"):
        torch.compile(halves, dynamic=dynamic)(*example_inputs())
    return logs[0].refusal


def test_a_relation_that_no_guard_has_is_named():
    reason, detail = refusal_of(dynamic=True)
    assert reason is Reason.dynamic_extent
    assert "% 2 == 0, which no guard says: torch._check in the function adds one" in detail


def test_constant_sizes_lack_nothing():
    assert refusal_of(dynamic=False) is None
