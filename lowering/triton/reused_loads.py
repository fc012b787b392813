"""Use again what a kernel has loaded: the same element under another mask, or the other element of a pair of lanes.

Interleaved RoPE needs, for each lane of a row, both elements of its pair, the one if the lane is even and the other if
it is odd. Their addresses step by two from every second lane to the next, so that each is an access of its own; and the
row is in registers already. Where a row is one of two tensors', what they load stands under a mask for each of them.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import sympy
import torch

from ...inductor.layouts import buffer_dtype
from .kept_rows import KeptRowsMixin
from .row_tails import is_shared

if TYPE_CHECKING:  # Importing this loads no Inductor.
    from torch._inductor.codegen.common import CSEVariable
    from torch._inductor.codegen.simd import IterationRangesEntry

#: The two arguments of an operation.
Operands: TypeAlias = "tuple[CSEVariable, CSEVariable]"


@functools.cache
def noting_conjunctions(overrides: type) -> type:
    """Return Inductor's code for operations (`overrides`), of which kernels know what each conjunction is of."""
    return type(overrides.__name__, (_Conjunctions, overrides), {})


class _Conjunctions:
    """Emit a conjunction, and note it."""

    @staticmethod
    def and_(one: CSEVariable, other: CSEVariable) -> str:
        """Return code for a conjunction."""
        from torch._inductor.virtualized import V

        code = f"{one} & {other}"
        V.kernel.bridge_conjunctions[code] = one, other
        return code


class _Loaded(NamedTuple):
    """Hold what a kernel has loaded: masks: those in whose lanes, all of them together, it has; other: elsewhere."""

    variable: CSEVariable
    index: sympy.Expr
    masks: tuple[CSEVariable, ...]
    other: float | None


class ReusedLoadMixin(KeptRowsMixin):
    """Load nothing twice that the lanes of a kept row have, in kernels that Bridge fused."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bridge_masks: list[CSEVariable] = []
        self.bridge_conjunctions: dict[str, Operands] = {}
        self.bridge_kept_loads: dict[str, list[_Loaded]] = {}
        self.bridge_pairs: dict[CSEVariable, tuple[CSEVariable, CSEVariable]] = {}

    @contextlib.contextmanager
    def mask_loads(self, mask: Any, value: Any) -> Iterator[Any]:
        """Have a mask for all that is loaded meanwhile, with those that there are."""
        around = self.bridge_masks
        self.bridge_masks = [*around, *self._parts(mask)]
        try:
            with super().mask_loads(mask, value) as joined:
                yield joined
        finally:
            self.bridge_masks = around

    def _parts(self, mask: CSEVariable) -> list[CSEVariable]:
        """Return the masks of which one is the conjunction; itself, if it is none."""
        found = self.bridge_operands(mask, self.bridge_conjunctions)
        return [part for one in found for part in self._parts(one)] if found else [mask]

    def bridge_operands(self, value: CSEVariable, noted: Mapping[str, Operands]) -> Operands | None:
        """Return what a value is made of, where it is one of some operations whose code is noted."""
        return next((operands for code, operands in noted.items() if self.cse.try_get(code) is value), None)

    def load(self, name: str, index: sympy.Expr) -> CSEVariable:
        """Return the variable of an element that is loaded, or has been."""
        if not self.bridge_keeps_rows() or self.is_indirect_indexing(index) or name in self.args.inplace_buffers:
            return super().load(name, index)
        known = self.bridge_kept_loads.setdefault(name, [])
        same = next((one.variable for one in known if self._is_same(one, index)), None)
        if same is not None:
            return same
        found = next((again for one in known if (again := self._again(one, name, index)) is not None), None)
        if found is not None:
            return self._where_masked(found)
        loaded = super().load(name, index)
        known.append(_Loaded(loaded, index, tuple(self.bridge_masks), self._load_other))
        return loaded

    def _is_same(self, one: _Loaded, index: sympy.Expr) -> bool:
        """Return True if an element is loaded under the masks under which it has been, with as much elsewhere."""
        if not self.bridge_masks or _names(one.masks) != _names(self.bridge_masks):
            return False
        return (one.index, one.other) == (index, self._load_other)

    def _again(self, one: _Loaded, name: str, index: sympy.Expr) -> CSEVariable | None:
        """Return an element of a buffer, of what has been loaded; None where that has not all of its lanes."""
        if not _names(one.masks) <= _names(self.bridge_masks):
            return None
        if one.index == index:
            return one.variable if self.bridge_masks else None
        half = self._half(one.index, index)
        if half is None or not all(map(is_shared, one.masks)) or buffer_dtype(name).itemsize == 1:
            return None
        return self._of_pair(one.variable, half)

    def _half(self, whole: sympy.Expr, index: sympy.Expr) -> int | None:
        """Return which element of its pair each lane asks for; None where it does for another one.

        whole: an index at which each lane loads its own element.
        """
        row = self.bridge_row()
        lanes = None if row is None else _lanes(row.numel, self.bridge_loops(row))
        if row is None or lanes is None:
            return None
        lane, pair = lanes
        own, asked = sympy.expand(whole - lane), sympy.expand(index - 2 * pair)
        if (own.free_symbols | asked.free_symbols) & set(row.var_list):
            return None
        apart = sympy.expand(asked - own)
        return int(apart) if apart in (0, 1) else None

    def _of_pair(self, row: CSEVariable, half: int) -> CSEVariable | None:
        """Return, in both lanes of each pair, what one of them has; None for what is not a variable of all lanes."""
        *outer, lanes = sizes = self.dense_size_list()
        if str((row.shape or ("",))[-1]) != lanes:
            return None
        tile, pairs = f"[{', '.join(sizes)}]", [*outer, f"{lanes} // 2"]
        if row not in self.bridge_pairs:
            halves = tuple(self.cse.newvar(dtype=row.dtype, shape=tuple(pairs)) for _ in range(2))
            # Parameters, too, in the layout of the rows: each half would be brought into it alone.
            line = f"tl.split(tl.reshape(tl.broadcast_to({row}, {tile}), [{', '.join(pairs)}, 2]))"
            self.compute.writeline(f"{halves[0]}, {halves[1]} = {line}")
            self.bridge_pairs[row] = halves
        chosen = self.bridge_pairs[row][half]
        return self._made_of(row, f"tl.reshape(tl.join({chosen}, {chosen}), {tile})")

    def _where_masked(self, value: CSEVariable) -> CSEVariable:
        """Return a value; where nothing chooses among lanes afterwards, with what a load has in those of its mask."""
        if self._load_other is None:
            return value
        other = _literal(self._load_other, value.dtype)
        return self._made_of(value, f"tl.where({self._load_mask}, {value}, {other})")

    def _made_of(self, value: CSEVariable, line: str) -> CSEVariable:
        """Return the variable of a tile that a line makes of a value."""
        made = self.cse.generate(self.compute, line, dtype=value.dtype, shape=tuple(self.dense_size_list()))
        made.mask_vars = set(value.mask_vars)
        return made


def _names(masks: Iterable[CSEVariable]) -> set[str]:
    return set(map(str, masks))


def _literal(number: float, dtype: torch.dtype) -> str:
    """Return a number in Triton, of the type of those beside it: a choice between integers and 0.0 would be a float."""
    if dtype == torch.bool:
        return repr(bool(number))
    if not dtype.is_floating_point:
        return repr(int(number))
    return repr(number) if math.isfinite(number) else f'float("{number}")'


def _lanes(numel: sympy.Expr, loops: list[IterationRangesEntry]) -> tuple[sympy.Symbol, sympy.Symbol] | None:
    """Return the loops of a row that count its lanes, and its pairs of lanes; None where it has none of these."""
    lane = [one.symbol() for one in loops if one.divisor == 1 and one.length == numel]
    pair = [one.symbol() for one in loops if one.divisor == 2 and one.length * 2 == numel]
    return (lane[0], pair[0]) if lane and pair else None
