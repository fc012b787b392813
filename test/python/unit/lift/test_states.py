"""Test what a lane does by itself whose state is several values: arithmetic on all that it combines."""

from __future__ import annotations

import pytest
from ssa_values import evaluating, operations

from bridge.reasons import Reason, Unsupported

LOADED = ["load(b0, 8*i0)", "load(b0, 8*i0 + 1)", "load(b0, 8*i0 + 2)"]
INFINITE = {"argmax": "0xFF800000", "argmin": "0x7F800000"}


def lane(body, element="f32"):
    """Return a loop without values of its own, which has three elements, %a, %b and %c."""
    loads = " ".join(f"%{n} = affine.load %x[%i, {k}] : memref<8x8x{element}>" for k, n in enumerate("abc"))
    return f"""func.func @f(%x: memref<8x8x{element}>) {{
      %none = arith.constant 0.0 : f32 %one = arith.constant 1.0 : f32 %two = arith.constant 2.0 : f32
      %i0 = arith.constant 0 : i64 %i1 = arith.constant 1 : i64 %i2 = arith.constant 2 : i64
      affine.for %i = 0 to 8 {{ {loads} {body} }} return }}"""


def combined(text, position):
    """Return a result of the last combination."""
    with evaluating(text) as (evaluator, module):
        last = operations(module, "bridge.combine")[-1]
        return evaluator.value(last.results[position])


def chain(kind, initial, *added, types="f32, f32"):
    """Return combinations of what is added, one after another."""
    size, state, steps = initial.count(",") + 1, initial, []
    for k, values in enumerate(added):
        steps.append(f"%s{k}:{size} = bridge.combine {kind} ({state}), ({values}) : {types}")
        state = ", ".join(f"%s{k}#{n}" for n in range(size))
    return "\n".join(steps)


def moments(*added, initial="%none, %none, %none"):
    return lane(chain("welford", initial, *added, types="f32, f32, f32"))


def extremum(kind, *added, worst=None, element="f32"):
    worst = worst or INFINITE[kind]
    steps = chain(kind, "%worst, %i0", *added, types=f"{element}, i64")
    return lane(f"%worst = arith.constant {worst} : {element}\n{steps}", element)


def test_moments_are_taken_in_two_passes():
    text = moments("%a, %none, %one", "%b, %none, %one", "%c, %none, %one")
    a, b, c = LOADED
    mean = f"truediv(add(add({a}, {b}), {c}), constant(3.0, torch.float32))"
    assert combined(text, 0) == mean
    squares = [f"mul(sub({x}, {mean}), sub({x}, {mean}))" for x in LOADED]
    assert combined(text, 1) == f"add(add({squares[0]}, {squares[1]}), {squares[2]})"
    assert combined(text, 2) == "constant(3.0, torch.float32)"


def test_moments_of_several_elements_keep_their_weights():
    text = moments("%a, %c, %two", "%b, %none, %one")
    a, b, c = LOADED
    two, one = "constant(2.0, torch.float32)", "constant(1.0, torch.float32)"
    weight = f"add({two}, {one})"
    mean = f"truediv(add(mul({a}, {two}), {b}), {weight})"
    assert (combined(text, 0), combined(text, 2)) == (mean, weight)
    first, second = (f"mul(sub({x}, {mean}), sub({x}, {mean}))" for x in (a, b))
    assert combined(text, 1) == f"add(add(mul({first}, {two}), {second}), {c})"


def test_a_state_that_something_is_in_is_one_of_those_combined():
    text = moments("%b, %none, %one", initial="%a, %none, %one")
    assert combined(text, 0) == f"truediv(add({LOADED[0]}, {LOADED[1]}), constant(2.0, torch.float32))"


def test_the_sum_of_exponentials_is_relative_to_the_maximum_of_all():
    steps = chain("online_softmax", "%least, %none", "%a, %one", "%b, %c")
    text = lane(f"%least = arith.constant 0xFF800000 : f32\n{steps}")
    a, b, c = LOADED
    maximum = f"maximum({a}, {b})"
    assert combined(text, 0) == maximum
    assert combined(text, 1) == f"add(exp(sub({a}, {maximum})), mul(exp(sub({b}, {maximum})), {c}))"


@pytest.mark.parametrize(("kind", "comparison"), [("argmax", "ge"), ("argmin", "le")])
def test_the_first_extremum_wins_and_a_nan_before_it(kind, comparison):
    a, b, _ = LOADED
    first = f"or_({comparison}({a}, {b}), ne({a}, {a}))"
    found = combined(extremum(kind, "%a, %i0", "%b, %i1"), 1)
    assert found == f"where({first}, constant(0, torch.int64), constant(1, torch.int64))"


def test_no_integer_is_a_nan():
    text = extremum("argmax", "%a, %i0", "%b, %i1", worst="-2147483648", element="i32")
    assert combined(text, 0) == "where(ge({0}, {1}), {0}, {1})".format(*LOADED)


def test_an_index_that_is_not_after_those_before_it_is_compared():
    assert "lt(constant(2, torch.int64), constant(1, torch.int64))" in combined(
        extremum("argmax", "%a, %i2", "%b, %i1"), 1
    )


def test_the_state_of_another_kind_is_one_value_of_several():
    """Check that the state of another kind is one value: a minimum of an argmax's result is not of its elements."""
    steps = chain("argmax", "%a, %i0", "%b, %i1", types="f32, i64")
    text = lane(f"{steps}\n%t:2 = bridge.combine argmin (%s0#0, %s0#1), (%c, %i2) : f32, i64")
    larger = "where(or_(ge({0}, {1}), ne({0}, {0})), {0}, {1})".format(*LOADED)
    assert f"lt({larger}, {LOADED[2]})" in combined(text, 0)


def test_other_combinations_are_refused():
    with pytest.raises(Unsupported, match="bridge.combine prod outside of loops") as refusal:
        combined(lane("%p = bridge.combine prod (%a), (%b) : f32"), 0)
    assert refusal.value.reason is Reason.not_liftable
