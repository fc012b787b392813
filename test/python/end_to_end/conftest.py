"""For every test of a whole compilation: its reports claim what was emitted."""

from __future__ import annotations

import pytest
from emitted_claims import contradictions
from watched_claims import emitted_meanwhile

import bridge


@pytest.fixture(autouse=True)
def no_wrong_claim():
    """Kernels, launches and bytes of all reports are those of the code, and no report contradicts itself."""
    last = bridge.report()
    with emitted_meanwhile() as found:
        yield
    report = bridge.report()
    if report is not None and report is not last:
        assert contradictions(report) == []
    assert [line for emitted in found for line in emitted.wrong_claims()] == []
