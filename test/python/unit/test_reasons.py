"""Reasons why a fusion did not happen, and the exceptions that carry them."""

from __future__ import annotations

import re

import pytest
from paths import ROOT

import bridge
from bridge.reasons import InvariantError, Reason, Refusal, Unsupported


def test_the_enum_has_the_reasons_of_the_passes_in_their_order():
    text = (ROOT / "passes" / "include" / "Bridge" / "Support" / "Reasons.td").read_text()
    listed = text.partition("defvar bridgeReasons = [")[2].partition("]")[0]
    assert re.findall(r'^ *"(\w+)"', listed, re.MULTILINE) == [reason.name for reason in Reason]


def test_an_unsupported_case_names_its_reason():
    with pytest.raises(Unsupported, match=r"^\[atomics\] of op3$") as raised:
        raise Unsupported(Reason.atomics, "of op3")
    assert raised.value.reason is Reason.atomics and raised.value.detail == "of op3"


def test_equal_refusals_are_one():
    refusal = Refusal(["op0"], Reason.random, "a seed")
    assert refusal == Refusal(["op0"], Reason.random, "a seed")
    assert refusal != Refusal(["op0"], Reason.mutation, "a seed")


def test_a_broken_invariant_is_no_refusal():
    assert issubclass(InvariantError, AssertionError) and not issubclass(InvariantError, Unsupported)
    assert not issubclass(Unsupported, AssertionError)
    assert bridge.Reason is Reason
