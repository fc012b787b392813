"""Test what the lift of a reduction may ask of an evaluator, and what IR values outside the loops mean by default."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
import sympy

from bridge.lowering.lift.environment import Environment, ValueEvaluator
from bridge.lowering.lift.evaluate import Evaluator


@pytest.mark.parametrize("method", ["value", "index", "reduce"])
def test_the_evaluator_takes_what_the_protocol_promises(method):
    promised = inspect.signature(getattr(ValueEvaluator, method)).parameters
    assert list(inspect.signature(getattr(Evaluator, method)).parameters) == list(promised)


def test_the_evaluator_has_the_protocols_attributes():
    environment = Environment(None, {}, {})
    evaluator = Evaluator(environment)
    assert evaluator.env is environment
    assert vars(evaluator).keys() >= ValueEvaluator.__annotations__.keys()


def test_a_reduction_is_over_the_whole_row_unless_said_otherwise():
    environment = Environment(None, {}, {})
    assert (environment.simt_target, environment.segment) == (True, None)
    assert (environment.in_registers, environment.looped) == (False, False)
    assert (environment.once, environment.in_parts) == (None, False)


def test_a_reduction_is_in_parts_where_lanes_have_a_segment_or_share_an_element():
    assert Environment(None, {}, {}, segment=4).in_parts
    assert Environment(None, {}, {}, once=sympy.Symbol("lane")).in_parts


def test_an_environment_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(Environment(None, {}, {}), "segment", 4)  # noqa: B010 - mypy knows that it cannot be set
