"""Test the line about what takes long."""

from __future__ import annotations

import io
import time

import pytest

from bridge.commands import _progress
from bridge.commands._progress import Progress


class Terminal(io.StringIO):
    """Stand for a stream that is a terminal."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    monkeypatch.setattr(_progress, "INTERVAL", 0.005)


def shown(stream):
    with Progress(stream) as progress:
        progress("measuring", 5, 10)
        end = time.monotonic() + 5
        while "measuring" not in stream.getvalue() and stream.isatty() and time.monotonic() < end:
            time.sleep(0.001)
    return stream.getvalue()


def test_a_terminal_shows_it_and_is_left_empty():
    text = shown(Terminal())
    assert "bridge: measuring [##########..........] 5/10, 0 s" in text
    assert text.endswith("\r\x1b[K")


def test_nothing_else_does():
    assert shown(io.StringIO()) == ""


def test_a_log_has_a_line_for_each_step_that_lasts():
    """Check that a log has a line for each step that lasts: beside other work `bridge time` took minutes silently."""
    stream = io.StringIO()
    with Progress(stream, lines=True) as progress:
        for step in ("compiling", "measuring"):
            progress(step, 1, 2)
            end = time.monotonic() + 5
            while step not in stream.getvalue() and time.monotonic() < end:
                time.sleep(0.001)
    shown = [line.partition(" [")[0] for line in stream.getvalue().splitlines() if " [" in line]
    assert shown == ["bridge: compiling", "bridge: measuring"]


def test_a_log_repeats_what_takes_long(monkeypatch):
    monkeypatch.setattr(_progress, "REMINDER", 0.01)
    stream = io.StringIO()
    with Progress(stream, lines=True) as progress:
        progress("compiling")
        end = time.monotonic() + 5
        while stream.getvalue().count("compiling") < 2 and time.monotonic() < end:
            time.sleep(0.001)
    assert stream.getvalue().count("compiling") >= 2


def test_what_is_quick_shows_nothing(monkeypatch):
    monkeypatch.setattr(_progress, "PATIENCE", 60.0)
    stream = Terminal()
    with Progress(stream):
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_a_line_without_an_end_has_no_bar():
    progress = Progress(Terminal())
    progress("compiling")
    assert progress.line(7.4) == "bridge: compiling, 7 s"
    progress("measuring", 10, 10)
    assert progress.line(8) == "bridge: measuring [####################] 10/10, 8 s"
