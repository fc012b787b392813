"""Check how `bridge bench` makes and compiles its cases."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest
import torch

from bridge.bench.arguments import add_arguments
from bridge.bench.cases import FULL, SMALL
from bridge.bench.conditions import Conditions


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", Conditions(torch.bfloat16, False, FULL, False, None, 1)),
        ("--dtype float16 --dynamic --compiles 3", Conditions(torch.float16, dynamic=True, compiles=3)),
        ("--max-autotune", Conditions(mode="max-autotune-no-cudagraphs")),
        ("--tokens 100 --images 3", Conditions(sizes=replace(FULL, prompt=100, encoded=25, images=3))),
        ("--tokens 2", Conditions(sizes=replace(FULL, prompt=2, encoded=1))),
        ("--small", Conditions(small=True, sizes=SMALL)),
    ],
)
def test_conditions_of_a_command_line(words, expected):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert Conditions.asked_for(parser.parse_args(words.split())) == expected


def test_a_case_is_measured_as_the_conditions_say(monkeypatch):
    asked = []
    monkeypatch.setattr("bridge.bench.measure.measure", lambda case, **how: asked.append((case, how)))
    Conditions(dynamic=True, mode="a mode", compiles=2).measured(7, rounds=5)("the case")
    ((case, how),) = asked
    assert (case, how["number"], how["compiles"]) == ("the case", 7, 2)
    assert (how["plan"].dynamic, how["plan"].mode, how["plan"].rounds) == (True, "a mode", 5)
