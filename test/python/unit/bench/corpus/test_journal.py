"""Test the journal of a run over a corpus."""

from __future__ import annotations

from bridge.bench.corpus.journal import Journal


def test_a_journal_without_a_file_is_empty(tmp_path):
    journal = Journal(tmp_path / "none.jsonl")
    assert journal.records == {} and not journal.path.exists()


def test_records_are_read_again(tmp_path):
    path = tmp_path / "new" / "folder" / "records.jsonl"
    record = {"pattern": "größe_1", "status": "fused", "detail": "two\nlines"}
    Journal(path).add(record)
    assert Journal(path).records == {"größe_1": record}


def test_the_last_record_of_a_pattern_counts(tmp_path):
    path = tmp_path / "records.jsonl"
    journal = Journal(path)
    for pattern, status in [("a", "hang"), ("b", "same"), ("a", "fused")]:
        journal.add({"pattern": pattern, "status": status})
    assert len(path.read_text().splitlines()) == 3
    for one in (journal, Journal(path)):
        assert {name: record["status"] for name, record in one.records.items()} == {"a": "fused", "b": "same"}


def test_a_record_that_was_not_finished_is_cut_off(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text('{"pattern": "a"}\n{"patt')
    journal = Journal(path)
    journal.add({"pattern": "b"})
    assert list(Journal(path).records) == ["a", "b"]
