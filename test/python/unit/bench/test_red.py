"""Test the exit status of a benchmark after internal errors of Bridge."""

from __future__ import annotations

import pytest

from bridge.bench.red import exit_status
from bridge.reports import note_bugs


def test_the_status_stays_without_an_internal_error(capsys):
    assert [exit_status(status) for status in (None, 0, 1, 2)] == [0, 0, 1, 2]
    assert capsys.readouterr().err == ""


@pytest.mark.expects_internal_error
def test_an_internal_error_makes_a_success_a_failure(capsys):
    note_bugs(["a lost buffer"])
    assert [exit_status(status) for status in (None, 0, 2)] == [1, 1, 2]
    assert capsys.readouterr().err == "internal_error: a lost buffer\n" * 3
