"""Test reasons why a fusion did not happen, and the exceptions that carry them."""

from __future__ import annotations

import importlib.util
import re

import pytest
from paths import ROOT

import bridge
from bridge.reasons import TEXTS, InvariantError, Reason, Refusal, Unsupported, advice, explanation, why_apart


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


def test_every_reason_has_a_text():
    assert list(TEXTS) == list(Reason)
    for reason, text in TEXTS.items():
        assert text.explanation and text.example and text.advice.endswith("."), reason


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.name)
def test_the_explanation_is_a_sentence_and_a_pair_has_its_names(reason):
    assert reason.explanation == explanation(reason) and reason.advice == advice(reason)
    assert re.fullmatch(r"[A-Z][^{}]*\.", reason.explanation)
    assert "{" not in why_apart(reason, "`mean`", "`mul`")


def test_a_pair_is_named_in_its_order():
    assert why_apart(Reason.loop_carried_dependence, "A", "B").startswith("B needs results of A from other rows")


def test_the_page_of_the_reasons_is_up_to_date():
    """Check that the page of the reasons, which `make docs` writes, is up to date."""
    spec = importlib.util.spec_from_file_location("reasons_page", ROOT / "docs" / "reasons.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.page()
