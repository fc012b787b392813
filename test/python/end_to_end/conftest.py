"""For every test of a whole compilation: its reports claim what was emitted. And what has few rows go as many do."""

from __future__ import annotations

import pytest
from emitted_claims import contradictions
from torch._inductor.choices import InductorChoices
from watched_claims import emitted_meanwhile

import bridge
from bridge import inductor
from bridge.horizontal import column_costs


@pytest.fixture(autouse=True)
def no_wrong_claim():
    """Check that all reports claim the kernels, launches and bytes of the code, and do not contradict themselves."""
    last = bridge.report()
    with emitted_meanwhile() as found:
        yield
    report = bridge.report()
    if report is not None and report is not last:
        assert contradictions(report) == []
    assert [line for emitted in found for line in emitted.wrong_claims()] == []


@pytest.fixture
def few_processors(monkeypatch):
    """Make Inductor split sums of columns, on a GPU so small that a hundred rows are enough for it."""
    monkeypatch.setattr(inductor, "multiprocessors", lambda device: 4)
    split = staticmethod(lambda device, rows, columns, inner_reduction: 1 if inner_reduction else 9)
    monkeypatch.setattr(InductorChoices, "reduction_split_factor", split)


@pytest.fixture
def few_processors_one_stage(few_processors, monkeypatch):
    """Set up `few_processors`, but let Inductor split no sum, as where all sequences together have columns enough."""
    split = staticmethod(lambda device, rows, columns, inner_reduction: 1)
    monkeypatch.setattr(InductorChoices, "reduction_split_factor", split)


@pytest.fixture
def as_if_large(monkeypatch):
    """Give few short rows the cost of many long ones: memory is busy, and blocks have one row."""
    monkeypatch.setattr(column_costs, "BYTES_OF_A_ROW", 0)
    monkeypatch.setattr(column_costs, "ELEMENTS_OF_ROWS", 1)
