"""Test what the stages of a group hand on: remarks of the passes, and bands that became kernels."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest

from bridge.reasons import Reason
from bridge.reports import GroupReport
from bridge.scheduling.group_log import GroupLog
from bridge.scheduling.results import Fused, Transformed


def test_nothing_is_said_of_a_group_before_its_passes():
    assert dataclasses.astuple(Transformed()) == ((), (), (), False)


def test_a_result_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(Transformed(), "remarks", (("aliasing", "", ""),))  # noqa: B010 - mypy knows that it cannot be set


def test_a_band_saves_all_kernels_but_one():
    log = GroupLog(GroupReport("group0", [], 4, 4))
    log.take(Fused(object(), frozenset({1, 4, 6}), ("together",), contextlib.ExitStack()))
    entry = log.entry()
    assert (entry.fused, entry.kernels_after, entry.decisions) == (True, 2, ["together"])


def test_the_last_remark_becomes_the_reason():
    remarks = (("aliasing", "first", "a.py:1"), ("no_common_band", "second", "a.py:2"))
    log = GroupLog(GroupReport("group0", [], 2, 2), transformed=Transformed(remarks))
    log.explain_refusal()
    assert log.refusal == (Reason.no_common_band, "second at a.py:2")
