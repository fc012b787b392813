from __future__ import annotations

from pathlib import Path

import pytest
from side_by_side_jobs import noted

from bridge.bench.side_by_side import side_by_side


@pytest.mark.parametrize("other", ["cannot be timed", "dies"])
def test_one_at_a_time_is_timed_and_only_when_all_are_prepared(tmp_path: Path, other: str) -> None:
    notes = tmp_path / "notes"

    results = dict(side_by_side(noted, [("a", str(notes)), (other, str(notes)), ("b", str(notes))]))

    assert results == {0: "timed a", 1: None if other == "dies" else "not timed", 2: "timed b"}
    lines = notes.read_text().splitlines()
    timed = [line for line in lines if not line.startswith("prepared")]
    assert [line.split()[1] for line in timed] in (["a", "a", "b", "b"], ["b", "b", "a", "a"])
    if other != "dies":  # Nobody waits for one that died.
        assert lines[-4:] == timed
