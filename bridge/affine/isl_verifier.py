"""Prove what the passes made of a group a second time, by isl, with no code of the passes.

Checked are

- bands: no iteration of a band touches an element that another writes;
- lanes: below a band, a lane reads of what lanes write only what it has written itself, where one iteration may be
  several lanes (bridge/affine/isl_unroll_and_jam.py), or, in a function with rows of segments, what all lanes read
  after it was written;
- writes: every element that was written before the passes is written after them, and just once;
- bounds: no access is outside its buffer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import reduce
from itertools import product
from math import prod

import islpy as isl

from ..reasons import InvariantError
from .isl_accesses import AccessRelation, FunctionAccesses, group_by_memref
from .isl_relations import Expression, conjunction, constant, make_relation, variable
from .isl_unroll_and_jam import constant_extent, find_unrolled_copies
from .mlir_runtime import ir
from .ops_table import ROWS_OF_SEGMENTS


class Recheck:
    """Read a module before the passes, and check it after them."""

    def __init__(self, module: ir.Module):
        """Keep the elements that the module writes."""
        with _isl_errors():
            self.written = _written(FunctionAccesses(_function(module)))

    def verify(self, module: ir.Module) -> list[str]:
        """Return what was shown, a line each; InvariantError for the first thing that does not hold."""
        with _isl_errors():
            return self._verify(module)

    def _verify(self, module: ir.Module) -> list[str]:
        """Check everything."""
        after = FunctionAccesses(_function(module))
        find_unrolled_copies(after.found, after.is_shifted)
        lines = self._check_writes(after)
        lines += _check_bounds(after) + _check_gathered(after)
        for root in _bands(after):
            own = [access for access in after.found if root in access.loops]
            lines.append(_check_band(after, root, own))
            lines.append(_check_lanes(after, root, own))
        return lines

    def _check_writes(self, after: FunctionAccesses) -> list[str]:
        """Check that the same elements are written as before, each once."""
        written = _written(after)
        if written.keys() != self.written.keys():
            raise InvariantError("the passes changed which buffers are written")
        for memref, elements in written.items():
            if not elements.is_equal(self.written[memref]):
                raise InvariantError(f"the passes changed which elements of argument {memref} are written")
        for stores in group_by_memref(access for access in after.found if access.writes).values():
            _check_once(after, stores)
        return [f"writes: {len(written)} buffers, every element as before and once"]


def _check_gathered(after: FunctionAccesses) -> list[str]:
    """Check that what is read at places which depend on data is not written."""
    both = after.gathered & {access.memref for access in after.found if access.writes}
    if both:
        raise InvariantError(f"argument {min(both)} is written, and read at places which depend on data")
    return [f"gathers: {len(after.gathered)} buffers, which are only read"] if after.gathered else []


@contextlib.contextmanager
def _isl_errors() -> Iterator[None]:
    """Raise InvariantError for what isl cannot read or decide: it is not proven."""
    try:
        yield
    except isl.Error as error:
        raise InvariantError(f"isl: {error}") from error


def _written(accesses: FunctionAccesses) -> dict[int, isl.Set]:
    """Return the elements of each buffer that are written."""
    stores = group_by_memref(access for access in accesses.found if access.writes)
    images = {
        memref: [accesses.relation(access, access.loops).range() for access in own] for memref, own in stores.items()
    }
    return {memref: reduce(isl.Set.union, own) for memref, own in images.items()}


def _check_once(after: FunctionAccesses, stores: list[AccessRelation]) -> None:
    """Check that no two iterations and no two of the stores write one element."""
    before: list[isl.Set] = []
    for store in stores:
        relation = after.relation(store, store.loops)
        if not relation.is_injective():
            raise InvariantError(f"{_where(store)}: an element is written twice")
        elements = relation.range()
        if not all(elements.is_disjoint(others) for others in before):
            raise InvariantError(f"{_where(store)}: an element is written by two stores")
        before.append(elements)


def _check_bounds(after: FunctionAccesses) -> list[str]:
    """Check that no access to a buffer of constant shape is outside of it."""
    for access in after.found:
        shape = ir.MemRefType(after.arguments[access.memref].type).shape
        sizes = [size for size in shape if size >= 0]
        if len(sizes) != len(shape):
            continue
        elements = after.relation(access, access.loops).range()
        if _depends_on_sizes(elements):
            continue  # inside by the guards of the graph, which are not in the IR
        if not elements.is_subset(_box(sizes).align_params(elements.get_space())):
            raise InvariantError(f"{_where(access)}: outside its buffer")
    return [f"bounds: {len(after.found)} accesses inside their buffers"]


def _box(sizes: list[int]) -> isl.Set:
    """Return the elements of a buffer."""
    names = [f"e{i}" for i in range(len(sizes))]
    pairs = [(variable(name), size) for name, size in zip(names, sizes, strict=True)]
    inside = conjunction(c for e, size in pairs for c in (e.nonneg_set(), e.lt_set(constant(size))))
    return make_relation(inside, [], [], names).range()


def _depends_on_sizes(elements: isl.Set) -> bool:
    """Return True if a set of elements is not the same for every size."""
    kind = isl.dim_type.param
    return elements.involves_dims(kind, 0, elements.dim(kind))


def _check_band(after: FunctionAccesses, root: ir.Operation, own: list[AccessRelation]) -> str:
    """Check that no iteration of a band touches what another writes."""
    band, pairs = _band_loops(root), 0
    for accesses in group_by_memref(own).values():
        relations = [(access, after.relation(access, band)) for access in accesses]
        for write, written in relations:
            for _, touched in relations if write.writes else ():
                pairs += 1
                _check_same(written.apply_range(touched.reverse()), write)
    return f"band of {len(band)} loops: {pairs} pairs of accesses, no two iterations meet"


def _check_same(meetings: isl.Map, access: AccessRelation) -> None:
    """Check that only an iteration itself meets an iteration at an element."""
    if not _meets_itself(meetings):
        raise InvariantError(f"{_where(access)}: two iterations of a band meet")


def _meets_itself(meetings: isl.Map) -> bool:
    """Return True if no iteration meets another."""
    return meetings.is_subset(isl.Map.identity(meetings.get_space()))


def _check_lanes(after: FunctionAccesses, root: ir.Operation, own: list[AccessRelation]) -> str:
    """Check that lanes read what they wrote; they are numbered by the loops below the band that reduce nothing."""
    band, pairs = _band_loops(root), 0
    for accesses in group_by_memref(own).values():
        stores = [a for a in accesses if a.writes and _lanes(a, band)]
        loads = [a for a in accesses if not a.writes]
        for store, load in product(stores, loads):
            pairs += 1
            if not _is_broadcast(after, band, store, load):
                _check_lane(after, band, store, load)
    return f"lanes: {pairs} pairs of a store and a load, each in one lane"


def _is_broadcast(
    after: FunctionAccesses, band: list[ir.Operation], store: AccessRelation, load: AccessRelation
) -> bool:
    """Return True if all lanes of a band iteration read one element, which it wrote in a statement before."""
    if ROWS_OF_SEGMENTS not in after.function.attributes:
        return False
    written, read = after.relation(store, band), after.relation(load, band)
    is_before = after.found.index(store) < after.found.index(load)
    is_apart = not any(loop in load.loops for loop in store.loops if loop not in band)
    return is_before and is_apart and read.is_single_valued() and read.is_subset(written)


def _check_lane(after: FunctionAccesses, band: list[ir.Operation], store: AccessRelation, load: AccessRelation) -> None:
    """Check that a load reads in each lane what the store wrote in that lane."""
    writer = _lanes(store, band)
    reader = _lanes(load, band) + [loop for loop in load.loops if _carries(loop)]
    if writer and after.have_equal_bounds(writer, reader):
        # An iteration that stores the halves of a row looks unrolled, and is one lane: first the loops as they are.
        written, read = after.relation(store, [*band, *writer]), after.relation(load, [*band, *reader])
        if _meets_itself(written.apply_range(read.reverse())):
            return
        if store.factor == load.factor:
            written, read = _by_loops(after, band, store, writer), _by_loops(after, band, load, reader)
            _check_same(written.apply_range(read.reverse()), load)
            return
    written_extents, read_extents = _extents(store, writer), _extents(load, reader)
    if written_extents is None or not read_extents or prod(read_extents) % prod(written_extents):
        raise InvariantError(f"{_where(load)}: its lanes are not those of the store")
    written = _by_lane(after, band, store, _lane_number(after, store, writer, written_extents), 1)
    share = prod(read_extents) // prod(written_extents)
    read = _by_lane(after, band, load, _lane_number(after, load, reader, read_extents), share)
    _check_same(written.apply_range(read.reverse()), load)


def _by_loops(
    after: FunctionAccesses, band: list[ir.Operation], access: AccessRelation, lanes: list[ir.Operation]
) -> isl.Map:
    """Return (band iteration, iteration of each of `lanes` had none been unrolled) -> elements."""
    outer = [after.name(loop) for loop in band]
    counted = [f"lane{i}" for i in range(len(lanes))]
    maps = []
    for copy in access.copies:
        numbers = [_original_iteration(after, loop, access, copy) for loop in lanes]
        conditions = [variable(lane).eq_set(number) for lane, number in zip(counted, numbers, strict=True)]
        maps.append(after.relate([*outer, *counted], access, [*access.conditions, *conditions]))
    return reduce(isl.Map.union, maps)


def _by_lane(
    after: FunctionAccesses, band: list[ir.Operation], access: AccessRelation, numbers: list[Expression], share: int
) -> isl.Map:
    """Return (band iteration, lane) -> elements; `share` lanes of the access are one; numbers: the lane by copy."""
    outer = [after.name(loop) for loop in band]
    maps = []
    for number in numbers:
        lane = variable("lane").eq_set(number.div(constant(share)).floor())
        maps.append(after.relate([*outer, "lane"], access, [*access.conditions, lane]))
    return reduce(isl.Map.union, maps)


def _lane_number(
    after: FunctionAccesses, access: AccessRelation, lanes: list[ir.Operation], extents: list[int]
) -> list[Expression]:
    """Return the number of the lane that an access is in, for each copy of the unrolled loop."""
    numbers = []
    for copy in access.copies:
        number = constant(0)
        for loop, extent in zip(lanes, extents, strict=True):
            number = number.mul(constant(extent)).add(_original_iteration(after, loop, access, copy))
        numbers.append(number)
    return numbers


def _original_iteration(after: FunctionAccesses, loop: ir.Operation, access: AccessRelation, copy: int) -> Expression:
    """Return the iteration of a loop that an access would be in if the loop had not been unrolled."""
    own = variable(after.name(loop))
    return own.add(constant(copy * (constant_extent(loop) or 0))) if _is_unrolled(loop, access) else own


def _is_unrolled(loop: ir.Operation, access: AccessRelation) -> bool:
    """Return True if the loop is the one around the access that was unrolled."""
    return access.unrolled is not None and loop == access.unrolled


def _extents(access: AccessRelation, loops: list[ir.Operation]) -> list[int] | None:
    """Return the extents of loops around an access, had none been unrolled; None where one is not constant."""
    sizes = [(loop, size) for loop in loops if (size := constant_extent(loop)) is not None]
    extents = [size * access.factor if _is_unrolled(loop, access) else size for loop, size in sizes]
    return extents if len(extents) == len(loops) else None


def _function(module: ir.Module) -> ir.Operation:
    """Return the one function of a module."""
    return module.body.operations[0].operation


def _bands(accesses: FunctionAccesses) -> list[ir.Operation]:
    """Return the outermost loops of the bands."""
    block = accesses.function.regions[0].blocks[0]
    return [op.operation for op in block.operations if "bridge.band" in op.operation.attributes]


def _band_loops(root: ir.Operation) -> list[ir.Operation]:
    """Return the loops of a band, outermost first."""
    loops = [root]
    while True:
        inner = [op.operation for op in loops[-1].regions[0].blocks[0].operations]
        deeper = [op for op in inner if op.name == "affine.for" and "bridge.band" in op.attributes]
        if not deeper:
            return loops
        loops.append(deeper[0])


def _carries(loop: ir.Operation) -> bool:
    """Return True if a loop carries a value: it reduces."""
    return len(loop.results) > 0


def _lanes(access: AccessRelation, band: list[ir.Operation]) -> list[ir.Operation]:
    """Return the loops around an access below the band that carry no value."""
    return [loop for loop in access.loops if loop not in band and not _carries(loop)]


def _where(access: AccessRelation) -> str:
    """Return the location of an access, without the iteration of the first loops that the passes keep beside it."""
    location = access.operation.location
    return str(location.locations[0] if location.is_a_fused() else location)
