"""Test cyclic shifts by symbolic sizes: accesses in a shifted order, and when there is one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import sympy
from torch.utils._sympy.functions import ModularIndexing

from bridge.affine.translate.access import LinearAccess, View
from bridge.affine.translate.cyclic_shifts import (
    CyclicShift,
    ShiftedSubscripts,
    Shifts,
    linear_offset,
    shifted_subscripts,
    take_out_shifts,
)
from bridge.affine.translate.trace import NestTrace, Step, iteration_variable

H, W = (sympy.Symbol(name, integer=True, positive=True) for name in "hw")
I, J, C = map(iteration_variable, range(3))
EXTENTS = {I: H, J: W, C: sympy.Integer(8)}


def known(condition):
    """Return True for what follows from the signs of sizes."""
    return bool(condition == sympy.true)


def shift(number, extent=H, offset=3):
    return ModularIndexing(number + offset, 1, extent)


def nest(*accesses, steps=(), reduced=(), lines=H):
    """Return a nest with loads of all (buffer, index) but the last, which it stores to."""
    extents = {**EXTENTS, I: lines}
    ranges = {v: (sympy.Integer(0), extent - 1) for v, extent in extents.items()}
    found = [LinearAccess(buffer, sympy.expand(index), ranges, False) for buffer, index in accesses]
    found[-1] = replace(found[-1], is_write=True)
    loops = [(v, extent) for v, extent in extents.items() if v not in reduced]
    own = [Step("store" if a.is_write else "load", (), {}, access=a) for a in found]
    return NestTrace("op", loops, [(v, extents[v]) for v in reduced], steps=[*own, *steps], accesses=found)


def sums(**options):
    """Return a nest that reduces the 8 channels of each pixel, in the order of memory."""
    return nest(("x", 8 * (I * W + J) + C), ("sum", I * W + J), reduced=(C,), **options)


def rolled(offset=3):
    """Return a nest that reads pixels and their sums with the lines shifted."""
    line = shift(I, offset=offset)
    return nest(("x", 8 * (line * W + J) + C), ("sum", line * W + J), ("y", 8 * (I * W + J) + C))


def indices(*traces):
    return [[access.index for access in trace.accesses] for trace in traces]


def test_sums_are_seen_in_the_order_of_the_rolled_lines():
    reduced, read = sums(), rolled()
    present = indices(reduced)
    found = take_out_shifts([reduced, read], known)
    assert found.of_buffer == {"x": (CyclicShift(8 * W, H, 3),), "sum": (CyclicShift(W, H, 3),)}
    assert {access for access in found.numbers} == {*reduced.accesses, *read.accesses[:2]}
    assert {number for numbers in found.numbers.values() for number in numbers.values()} == {I}
    assert indices(reduced) == present
    assert indices(read) == [[sympy.expand(index) for index in (8 * (I * W + J) + C, I * W + J, 8 * (I * W + J) + C)]]
    assert [step.access for step in read.steps] == read.accesses


def computes_lines():
    return sums(steps=[Step("index_expr", (I, None), {}, index=I)])


def overwritten():
    """Return sums of a nest that overwrites what it reads."""
    return replace(sums(), overwrites={"new": "x"})


@pytest.mark.parametrize(
    "traces",
    [
        lambda: [sums()],
        lambda: [sums(), rolled(), rolled(offset=2)],  # two orders
        lambda: [sums(), rolled(), nest(("x", 8 * (I * W + J) + C), ("y", 8 * (I * W + J) + C))],  # of what is stored
        lambda: [sums(), nest(("x", 8 * (shift(I) * W + J) + C), ("x", 8 * (I * W + J) + C), ("y", C))],  # of one nest
        lambda: [computes_lines(), rolled()],  # a line's own number is computed with
        lambda: [overwritten(), rolled()],
        lambda: [nest(("x", 8 * (I * W + J) + C), ("sum", J), reduced=(I,)), rolled()],  # the order of a reduction
        lambda: [nest(("x", 8 * ((H - 1 - I) * W + J) + C), ("sum", I * W + J)), rolled()],  # another order of lines
        lambda: [sums(), nest(("x", 8 * (shift(I + J) * W) + C), ("sum", shift(I + J) * W), ("y", C))],  # may meet
        lambda: [sums(lines=H - 1), rolled()],  # without the last line in memory, which another line is then
    ],
)
def test_there_is_no_order_for_all(traces):
    own = traces()
    present = indices(*own)
    assert take_out_shifts(own, known) == Shifts() and indices(*own) == present


def test_the_shift_is_added_again_to_the_digits_of_a_number():
    """Check that the lines of windows, 2 of each, are one number again, and every element has its own place."""
    shifted = ShiftedSubscripts(CyclicShift(W, 2 * H, sympy.Integer(3)), ((0, sympy.Integer(2)), (1, sympy.Integer(1))))
    offset = linear_offset([I, J, C], [2 * W, W, sympy.Integer(1)], [shifted])
    assert offset == sympy.expand(W * ModularIndexing(2 * I + J + 3, 1, 2 * H) + C)
    sizes = {H: 3, W: 4}
    places = {
        offset.xreplace({**sizes, I: i, J: j, C: c}) for i, j, c in itertools.product(range(3), range(2), range(4))
    }
    assert places == set(range(24))
    assert linear_offset([I, J], [W, sympy.Integer(1)]) == I * W + J


def test_subscripts_that_are_another_number():
    access = LinearAccess("x", I * W + J, {v: (sympy.Integer(0), extent - 1) for v, extent in EXTENTS.items()}, False)
    lines = CyclicShift(W, H, sympy.Integer(3))
    shifts = Shifts({"x": (lines,)}, {access: {lines: I}})
    view = View("x", [W, sympy.Integer(1)], [H, W], {access: [I, J]})
    (found,) = shifted_subscripts(view, shifts)
    assert found.weights == ((0, 1),) and found.number([I, J]) == I
    assert found.restored(lambda e: sympy.sympify(e).xreplace({H: 7 * H})).shift.extent == 7 * H
    assert (
        shifted_subscripts(replace(view, strides=[sympy.Integer(1)], subscripts={access: [I * W + J]}), shifts) is None
    )
    assert shifted_subscripts(replace(view, subscripts={access: [I + C, J]}), shifts) is None
