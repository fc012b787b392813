"""Test what `bridge bench` would measure."""

from __future__ import annotations

import argparse

import pytest

from bridge.bench import command, zoo
from bridge.bench.arguments import MODES


def options(*words: str):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def names(*words: str) -> list[str]:
    return [command._job_name(job) for job in command.jobs(options(*words))]


def test_jobs_have_larger_batches_last():
    pytest.importorskip("transformers")
    chosen = names("--only", "llama", "dit", "--batches", "1", "16")
    first = ["llama3-8b prefill", "llama3-8b decode b1", "dit-xl vision", "llama3-8b decode b16"]
    assert chosen == [*first, "llama3-8b training", "dit-xl training"]


def test_jobs_of_one_mode():
    assert names("--only", "dit", "--modes", "vision") == ["dit-xl vision"]
    assert names("--only", "dit", "--modes", "decode") == []


def test_every_mode_of_every_model_is_a_mode():
    assert {mode for a in zoo.ZOO for mode in a.modes} == set(MODES)
    assert len({a.name for a in zoo.ZOO}) == len(zoo.ZOO) == 17
