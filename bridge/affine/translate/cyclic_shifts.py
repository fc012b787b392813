"""Cyclic shifts by a symbolic size: `(i + 3) mod h` is no affine index, but it only numbers `h` lines in another order.

`torch.roll` writes them, as for the windows of an image whose height is a symbol. Where each access to a buffer has
the same shift, the buffer is seen in the shifted order: its subscript is `i`, and the lift adds the shift again. What
a node that goes over the elements in their own order accesses is seen so, too: it goes over as many in the shifted one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import sympy
from torch.utils._sympy.functions import ModularIndexing

from ...reasons import Unsupported
from .access import ONE, ZERO, LinearAccess, bounds, exact_quotient, expand, is_iteration_atom, terms

if TYPE_CHECKING:
    from .access import View
    from .trace import NestTrace, Step


@dataclass(frozen=True)
class CyclicShift:
    """Hold a shift of one dimension of a buffer: number `i` of `extent` is element `(i + offset) mod extent`.

    stride: elements of the buffer from one to the next.
    """

    stride: sympy.Expr
    extent: sympy.Expr
    offset: sympy.Expr


@dataclass(frozen=True)
class ShiftedSubscripts:
    """Say which subscripts of a view are the digits of a number that is shifted.

    weights: of each of these subscripts, by its position.
    """

    shift: CyclicShift
    weights: tuple[tuple[int, sympy.Expr], ...]

    def number(self, subscripts: Sequence[sympy.Expr]) -> sympy.Expr:
        """Return the number whose digits the subscripts are."""
        return expand(sympy.Add(*(weight * subscripts[position] for position, weight in self.weights)))

    def restored(self, restore: Callable[[sympy.Expr], sympy.Expr]) -> ShiftedSubscripts:
        """Return the same in Inductor's variables of the sizes."""
        shift = CyclicShift(*map(restore, (self.shift.stride, self.shift.extent, self.shift.offset)))
        return ShiftedSubscripts(shift, tuple((position, restore(weight)) for position, weight in self.weights))


def linear_offset(
    subscripts: Sequence[sympy.Expr], strides: Sequence[sympy.Expr], shifted: Iterable[ShiftedSubscripts] = ()
) -> sympy.Expr:
    """Return the offset in elements of subscripts, with their shifts."""
    left = dict(enumerate(strides))
    offset = ZERO
    for one in shifted:
        for position, _ in one.weights:
            del left[position]
        place = ModularIndexing(one.number(subscripts) + one.shift.offset, ONE, one.shift.extent)
        offset += one.shift.stride * place
    return sympy.expand(offset + sympy.Add(*(stride * subscripts[position] for position, stride in left.items())))


#: Shifts of an access, each with the number that it shifts.
Numbers: TypeAlias = dict[CyclicShift, sympy.Expr]


@dataclass
class Shifts:
    """Hold the buffers that are seen in a shifted order, and by access the number of each shift."""

    of_buffer: dict[str, tuple[CyclicShift, ...]] = field(default_factory=dict)
    numbers: dict[LinearAccess, Numbers] = field(default_factory=dict)

    def add(self, access: LinearAccess, numbers: Numbers) -> bool:
        """Return True if the buffer of an access has its shifts, from now on where it had none."""
        ordered = tuple(sorted(numbers, key=str))
        self.numbers[access] = numbers
        return self.of_buffer.setdefault(access.buffer, ordered) == ordered


def take_out_shifts(traces: Sequence[NestTrace], known: Callable[[sympy.Basic], bool]) -> Shifts:
    """Replace shifted indices of nests by plain ones; return the shifts of each buffer that has some.

    Nothing is changed where a buffer would have to be seen in two orders.  known: whether a relation of sizes holds.
    """
    shifted = {access: _shifted_numbers(access, known) for trace in traces for access in trace.accesses}
    found = Shifts()
    if not any(shifted.values()) or not _are_agreed(found, traces, shifted):
        return Shifts()
    plain = {a: replace(a, index=_without_shifts(a.index, numbers)) for a, numbers in shifted.items() if numbers}
    for trace in traces:
        trace.accesses = [plain.get(access, access) for access in trace.accesses]
        for step in _all_steps(trace.steps):
            step.access = plain.get(step.access, step.access) if step.access is not None else None
    numbers = {plain.get(access, access): own for access, own in found.numbers.items()}
    return replace(found, numbers=numbers)


def shifted_subscripts(view: View, shifts: Shifts) -> tuple[ShiftedSubscripts, ...] | None:
    """Return the subscripts of a view that are shifted; None where those of an access are other numbers."""
    found = []
    for shift in shifts.of_buffer.get(view.buffer, ()):
        one = ShiftedSubscripts(shift, tuple(_weights(view.strides, shift)))
        for access, subscripts in view.subscripts.items():
            if not access.is_dead and expand(one.number(subscripts) - shifts.numbers[access][shift]) != 0:
                return None
        found.append(one)
    positions = [position for one in found for position, _ in one.weights]
    return tuple(found) if len(positions) == len({*positions}) else None


def _weights(strides: Sequence[sympy.Expr], shift: CyclicShift) -> Iterator[tuple[int, sympy.Expr]]:
    """Yield the position, and the weight, of each digit of the number that a shift is of."""
    for position, stride in enumerate(strides):
        weight = exact_quotient(stride, shift.stride)
        if weight is not None and exact_quotient(stride, shift.stride * shift.extent) is None:
            yield position, weight


def _shifted_numbers(access: LinearAccess, known: Callable[[sympy.Basic], bool]) -> Numbers:
    """Return the shifts by symbolic sizes in an access; none where it is not affine but for them."""
    try:
        parts = [_shift_and_number(stride, atom) for stride, atom in access.terms]
    except Unsupported:
        return {}
    return {
        shift: number
        for shift, number in filter(None, parts)
        if known(sympy.Ge(shift.offset, 0)) and _is_below(number, shift.extent, access, known)
    }


def _shift_and_number(stride: sympy.Expr, atom: sympy.Expr) -> tuple[CyclicShift, sympy.Expr] | None:
    """Return a remainder by a symbolic size as a shift, and the number that is shifted; None of anything else."""
    if not isinstance(atom, ModularIndexing) or atom.args[1] != ONE or atom.args[2].is_Integer:
        return None
    value, _, extent = atom.args
    offset = sympy.Add(*(part for part in sympy.Add.make_args(expand(value)) if not is_iteration_atom(part)))
    return CyclicShift(stride, extent, offset), expand(value - offset)


def _is_below(
    number: sympy.Expr, extent: sympy.Expr, access: LinearAccess, known: Callable[[sympy.Basic], bool]
) -> bool:
    """Return True if a number is at least 0 and below an extent wherever an access is executed."""
    try:
        span = bounds(number, access.ranges)
    except Unsupported:  # it is not affine
        return False
    return span is not None and all(known(sympy.Ge(expand(low), 0)) for low in (span[0], extent - 1 - span[1]))


def _without_shifts(index: sympy.Expr, numbers: Numbers) -> sympy.Expr:
    """Return an index with the numbers that are shifted in the place of the shifts."""
    atoms = {ModularIndexing(number + shift.offset, ONE, shift.extent): number for shift, number in numbers.items()}
    return expand(index.xreplace(atoms))


def _all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps of a nest and those of its masked blocks."""
    for step in steps:
        yield step
        yield from _all_steps(step.region or ())


def _are_agreed(found: Shifts, traces: Sequence[NestTrace], shifted: Mapping[LinearAccess, Numbers]) -> bool:
    """Return True if all accesses to each buffer can have the same shifts, which are added to those that are found."""
    if not all(found.add(access, numbers) for access, numbers in shifted.items() if numbers):
        return False
    shifting = [any(shifted[access] for access in trace.accesses) for trace in traces]
    count = -1
    while count != len(found.of_buffer):
        count = len(found.of_buffer)
        others = (trace for trace, shifts in zip(traces, shifting, strict=True) if not shifts)
        if not all(_goes_in_one_order(found, trace) for trace in others):
            return False
    plain = (a for t, shifts in zip(traces, shifting, strict=True) if shifts for a in t.accesses if not shifted[a])
    return not any(access.buffer in found.of_buffer for access in plain)


def _goes_in_one_order(found: Shifts, trace: NestTrace) -> bool:
    """Return True if a nest without shifts can go over all that it accesses in the order of one of its buffers.

    Its iterations are then the same ones in another order, so it has to go over each number once.
    """
    first = next((access for access in trace.accesses if access.buffer in found.of_buffer), None)
    if first is None:
        return True
    numbers = {shift: _number(first, shift) for shift in found.of_buffer[first.buffer]}
    extents = dict(trace.iter_vars)
    if not all(_counts(number, shift.extent, extents) for shift, number in numbers.items()):
        return False
    variables = [symbol for number in numbers.values() for symbol in number.free_symbols if symbol in extents]
    moved = set(variables)
    if len(moved) != len(variables) or not _only_accesses(trace, moved):
        return False
    return all(_agrees_along(found, access, numbers, moved) for access in trace.accesses)


def _agrees_along(found: Shifts, access: LinearAccess, numbers: Numbers, moved: set[sympy.Symbol]) -> bool:
    """Return True if an access can have the shifts of the numbers that a nest goes over."""
    index, own = access.index, Numbers()
    for shift, number in numbers.items():
        stride = _stride_of(index, number)
        if stride is None:
            return False
        index = expand(index - stride * number)
        if stride != 0:
            own[replace(shift, stride=stride)] = number
    if index.free_symbols & moved:
        return False
    return found.add(access, own) if own else access.buffer not in found.of_buffer


def _number(access: LinearAccess, shift: CyclicShift) -> sympy.Expr:
    """Return the number that an access in the own order has in the place of a shifted one."""
    whole = shift.stride * shift.extent
    parts = [(exact_quotient(c, shift.stride), c, atom) for c, atom in access.terms if atom != 1]
    return expand(sympy.Add(*(q * a for q, c, a in parts if q is not None and exact_quotient(c, whole) is None)))


def _counts(number: sympy.Expr, extent: sympy.Expr, extents: Mapping[sympy.Symbol, sympy.Expr]) -> bool:
    """Return True if loops go over each number below an extent once: they are its digits.

    extents: of the loops by variable.
    """
    weights = {atom: weight for weight, atom in terms(number)}
    size = ONE
    while weights:
        digit = next((atom for atom, weight in weights.items() if weight == size and atom in extents), None)
        if digit is None:
            return False
        del weights[digit]
        size = expand(size * extents[digit])
    return expand(size - extent) == 0


def _stride_of(index: sympy.Expr, number: sympy.Expr) -> sympy.Expr | None:
    """Return by how many elements an index moves from one number to the next; None where it does not do so alike."""
    strides = {exact_quotient(expand(index).coeff(atom), weight) for weight, atom in terms(number)}
    return strides.pop() if len(strides) == 1 else None


def _only_accesses(trace: NestTrace, moved: set[sympy.Symbol]) -> bool:
    """Return True if a nest computes nothing of the numbers of its iterations."""
    if not moved or trace.gathers or trace.overwrites or trace.unrolled:
        return False
    computed = [step.args[0] for step in _all_steps(trace.steps) if step.op == "index_expr"]
    guards = [guard for access in trace.accesses for guard in access.guards]
    return not any(sympy.sympify(expr).free_symbols & moved for expr in (*computed, *guards))
