"""For every test of a whole compilation: its report contradicts itself nowhere."""

from __future__ import annotations

import pytest
from emitted_claims import contradictions

import bridge


@pytest.fixture(autouse=True)
def no_contradiction():
    """The totals of the last report are those of its groups, no kernel is in two, and what was done adds up."""
    last = bridge.report()
    yield
    report = bridge.report()
    if report is not None and report is not last:
        assert contradictions(report) == []
