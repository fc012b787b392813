"""Test tables of what a corpus became."""

from __future__ import annotations

from bridge.bench.corpus import tables


def test_tables_have_the_reasons_and_gaps_of_what_stays_apart():
    group = {"kernels": [3, 3], "bytes": [3 << 20, 1 << 20], "why": [["mutation", "words"]]}
    left = {"pattern": "a", "status": "refused", "inductor": 3, "bridge": 3, "reasons": ["mutation"], "apart": [group]}
    timed = {"pattern": "b", "status": "same", "inductor": 1, "bridge": 1, "reasons": [], "over_inductor": 1.1}
    text = "\n".join(tables.describe([left, timed], 9))
    assert "2 of 9 patterns" in text and "| mutation | 1 |" in text
    assert "| a | 3 -> 3 | 3.0 | 1.0 | mutation |" in text and "- b: 1.100" in text
