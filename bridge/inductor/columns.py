"""Sums along columns: what Inductor splits in two stages, and what a kernel of rows needs to have their first one.

The first stage is a tile of partial sums, [parts, columns]; the second adds them up. A kernel whose programs have a
block of rows each adds up the columns of its block, and the parts are then its blocks. The largest and the smallest
element of each column are found in the same way; what is said of sums holds for them, too.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import sympy
import torch

from ..reasons import Reason, Unsupported
from .loops import (
    inductor_ops,
    made_once,
    make_loop_body,
    ops_handler_base,
    remake_loop_body,
    run_loop_body,
    set_loop_body,
)
from .mixed import block_of_mixed_kernel
from .protocols import Kernel, LoopBody, LoopNode
from .schedule import buffers_read, loop_nodes, node_body, node_sizes
from .sizes import Extent, as_extent, divided_up, is_there, number_of_digits, of_each, size_hint

#: Types of reductions whose parts are reduced by the same type, and that hold in float32 what they are of.
KINDS = ("sum", "max", "min")


@dataclass(frozen=True)
class ColumnSum:
    """Hold a sum of `rows` rows for each of `columns` columns, in two stages.

    part, total: the nodes of the stages; buffer: the name of what is between them; parts: how many Inductor has;
    tile: the loops of the first as a node of a kernel of rows, which adds each element to the sum of its column;
    rows, groups and parts may be expressions of symbols;
    groups: of as many rows that follow each other, each with a sum of its own (see grouped_sums.py); whole: then, loops
    that store the sums, of which the outer `loops` go over the groups.
    """

    part: LoopNode
    total: LoopNode
    buffer: str
    rows: Extent
    columns: int
    parts: Extent
    tile: LoopBody
    groups: Extent = 1
    whole: LoopBody | None = None
    loops: int = 0


def is_column_part(node: LoopNode) -> bool:
    """Return True for the first stage of a reduction that is split, by Inductor or by Bridge; not for one in planes."""
    split = bool(getattr(node.node, "_split_size", None)) and not getattr(node, "bridge_in_planes", False)
    return split or made_sum(node) is not None


def made_sum(part: LoopNode) -> ColumnSum | None:
    """Return the sum of which Bridge has made the first stage; None for nodes of Inductor's."""
    made: ColumnSum | None = getattr(part, "bridge_column_sum", None)
    return made


def has_column_parts(kernel: Kernel) -> bool:
    """Return True if one of a kernel's nodes is the first stage of a reduction that Inductor has split."""
    return any(map(is_column_part, loop_nodes(kernel)))


def rows_and_columns(part: LoopNode) -> tuple[Extent, int] | None:
    """Return (rows, columns) of a sum of which `part` is the first stage; the rows may be an expression of symbols.

    None where the columns are a symbol, or there may be no row.
    """
    made = made_sum(part)
    if made is not None:
        return made.rows, made.columns
    reduced, kept, groups = prod(part.node._original_reduction_ranges), prod(part.node._original_ranges), _groups(part)
    rows, columns = as_extent(reduced * groups), of_each(as_extent(kept), groups)
    if not isinstance(columns, int) or not is_there(rows):
        return None
    return rows, columns


def _groups(part: LoopNode) -> Extent:
    """Return the groups of rows that have sums of their own, as a first stage's buffer says; 1 where there are none.

    Each group has its parts one after the other, and each part its columns.
    """
    layout = part.node.get_layout()
    (groups, *rest), (whole, *_) = layout.size[:-1] or [1], layout.stride
    own = groups != 1 and layout.stride[-1] == prod(rest) and whole == prod(rest) * layout.size[-1]
    return as_extent(groups) if own else 1


def sole_reader(part: LoopNode) -> tuple[str, Any]:
    """Return (the buffer that a node writes, the only node that reads it); None for that if there are others."""
    (output,) = part.get_outputs()
    readers = [user.node for user in output.users if not user.is_weak]
    return output.get_name(), readers[0] if len(readers) == 1 else None


def column_sum(part: LoopNode) -> ColumnSum:
    """Return the sum of which `part` is the first stage; Unsupported where its stages are not as expected."""
    made = made_sum(part)
    if made is not None:
        return made
    extents = rows_and_columns(part)
    if extents is None:
        raise Unsupported(Reason.dynamic_extent, f"{part.get_name()}: its columns are symbols, or it may have no row")
    name, total = sole_reader(part)
    if total is None or buffers_read(total) != {name} or kind(part) is None or kind(part) != kind(total):
        raise Unsupported(Reason.not_liftable, f"{part.get_name()}: no sum, max or min of float32 in two stages")
    return _sum_of_stages(part, total, name, *extents)


def _sum_of_stages(part: LoopNode, total: LoopNode, name: str, rows: Extent, columns: int) -> ColumnSum:
    """Return a sum of two stages of Inductor's; Unsupported where they are not as expected."""
    groups = _groups(part)
    parts = _parts_in_last_place(part, columns, groups)
    if parts is None or is_column_part(total) or _extents(total) != (groups * columns, parts):
        raise Unsupported(Reason.not_liftable, f"{part.get_name()}: its parts are not whole rows of columns")
    body = as_one_stage(part)
    extents = [as_extent(prod(sizes)) for sizes in body.sizes]
    if extents != [groups * columns, of_each(rows, groups)] or not stores_in_order(body):
        raise Unsupported(Reason.not_liftable, f"{part.get_name()}: its columns are in another order in memory")
    if groups == 1:
        return ColumnSum(part, total, name, rows, columns, parts, tile_body(body, name))
    whole = node_body(total)
    if not _first_loop_is(groups, body, whole) or not only_reduces(whole):
        raise Unsupported(Reason.not_liftable, f"{part.get_name()}: no loop of its own goes over its groups of rows")
    tile = tile_body(body, name, 1)
    return ColumnSum(part, total, name, rows, columns, groups * parts, tile, groups, whole, 1)


def _first_loop_is(groups: Extent, *bodies: LoopBody) -> bool:
    return all(len(body.sizes[0]) > 1 and body.sizes[0][0] == groups for body in bodies)


def only_reduces(body: LoopBody) -> bool:
    """Return True if loops have one reduction, and store nothing but its result."""
    called = [op for block in (body.root_block, *body.subblocks.values()) for op in block.graph.nodes]
    reductions = [op for op in called if op.target == "reduction"]
    stores = [op for op in called if op.target in ("store", "store_reduction")]
    return len(reductions) == len(stores) == 1 and stores[0].args[3] is reductions[0]


def _extents(node: LoopNode) -> tuple[Any, Any]:
    iterated, reduced = node_sizes(node)
    return prod(iterated), prod(reduced)


def kind(node: LoopNode) -> str | None:
    """Return the type of a reduction whose parts and input have no more digits than float32; None for others."""
    narrow = (torch.float32, torch.bfloat16, torch.float16)
    data = node.node.data
    found, dtypes = getattr(data, "reduction_type", None), (getattr(data, "src_dtype", None), node.node.get_dtype())
    return found if found in KINDS and all(dtype in narrow for dtype in dtypes) else None


def _parts_in_last_place(part: LoopNode, columns: int, groups: Extent) -> Extent | None:
    """Return how many parts of a group a first stage's buffer has, if each of them is `columns` neighbours in it."""
    from torch._inductor.ir import FlexibleLayout

    layout = part.node.get_layout()
    first = 0 if groups == 1 else 1
    *sizes, parts = layout.size[first:]
    *strides, step = layout.stride[first:]
    expected = FlexibleLayout.contiguous_strides(sizes)
    row = [pair for pair, size in zip(zip(strides, expected, strict=True), sizes, strict=True) if size != 1]
    whole = prod(sizes) == columns and step == columns and layout.offset == 0 and layout.dtype == torch.float32
    return as_extent(parts) if whole and all(ours == theirs for ours, theirs in row) else None


def as_one_stage(part: LoopNode) -> LoopBody:
    """Return the loops that a reduction that Inductor has split would have had without the split."""
    return made_once(part, "one stage", partial(_as_one_stage, part))


def _as_one_stage(part: LoopNode) -> LoopBody:
    node = part.node
    with node.with_original_inner_fn():
        _, body = node.simplify_and_reorder()
    node.get_default_sizes_body.clear_cache(node)  # it has the loops of one stage, which are not the node's
    return body


def stores_in_order(body: LoopBody) -> bool:
    """Return True if the columns are neighbours in memory in the order of the loops."""
    return sympy.expand(stored_at(body)[1] - number_of_digits(body.iter_vars, body.sizes[0])) == 0


def stored_at(body: LoopBody) -> tuple[str, sympy.Expr]:
    """Return (the buffer, the address) to which a body stores the result of its reduction."""
    from torch._inductor.loop_body import MemoryUsageType

    (entry,) = body.memory_usage[MemoryUsageType.STORE_REDUCTION]
    return entry.buffer_name, body.indexing_exprs[entry.index_name]


def add_up_in_tile(one: ColumnSum, undo: contextlib.ExitStack) -> None:
    """Give a sum's first stage the loops of its tile, rows first, until `undo` is closed.

    It is then one node of a kernel of rows: what it adds up, the kernel adds to the sum of its block.
    """
    set_loop_body(one.part, one.tile, undo)


def add_up_blocks(one: ColumnSum, blocks: Extent, undo: contextlib.ExitStack) -> None:
    """Give a sum's second stage the parts of `blocks` blocks, until `undo` is closed."""
    resize_parts(one, blocks, undo)
    set_loop_body(one.total, second_stage(one, of_each(blocks, one.groups)), undo)


def is_ended_by_block(one: ColumnSum, block: int) -> bool:
    """Return True if a block of so many rows has all of a group, and the sums of groups follow each other in memory."""
    return of_each(one.rows, one.groups) == block and one.whole is not None and stores_in_order(one.whole)


def leave_no_parts(one: ColumnSum, undo: contextlib.ExitStack) -> None:
    """Have the buffer between the stages of a sum that blocks end take no memory, until `undo` is closed.

    The second stage has loops that copy a part; a kernel of rows has it among its nodes, and never runs these.
    """
    resize_parts(one, 0, undo)
    set_loop_body(one.total, second_stage(one, 1), undo)


def second_stage(one: ColumnSum, parts: Extent) -> LoopBody:
    """Return the loops that add up so many parts of each column."""
    if one.whole is not None:
        key = "second stage", one.buffer, one.loops, parts
        return made_once(one.whole, key, partial(_second_stage_of_groups, one, one.whole, parts))
    body, sizes = node_body(one.total), (node_sizes(one.total)[0], [sympy.sympify(parts)])
    return made_once(body, ("second stage", parts), partial(remake_loop_body, body, *sizes))


def _second_stage_of_groups(one: ColumnSum, whole: LoopBody, parts: Extent) -> LoopBody:
    sizes = whole.sizes[0]

    def place(indices: Sequence[sympy.Symbol], part: sympy.Symbol) -> sympy.Expr:
        group = number_of_digits(indices[: one.loops], sizes)
        column = number_of_digits(indices[one.loops :], sizes[one.loops :])
        return (group * parts + part) * one.columns + column

    return sum_of_parts(one.total, whole, one.buffer, parts, place)


def sum_of_parts(
    total: LoopNode,
    whole: LoopBody,
    buffer: str,
    parts: Extent,
    place: Callable[[Sequence[sympy.Symbol], sympy.Symbol], sympy.Expr],
) -> LoopBody:
    """Return the loops of a sum, `whole` in one stage, that add up the parts in a buffer; of one part they copy it.

    place: where in the buffer a part is, by the iteration of `whole` and the number of the part.
    """
    dtype, found, sizes = total.node.get_dtype(), kind(total), whole.sizes[0]
    name, stored, variables = *stored_at(whole), whole.iter_vars

    def copy(indices: Sequence[sympy.Symbol], _: Sequence[sympy.Symbol]) -> None:
        ops, only = inductor_ops(), sympy.Integer(0)
        at = stored.subs(dict(zip(variables, indices, strict=True)))
        ops.store(name, at, ops.load(buffer, place(indices, only)))

    def run(indices: Sequence[sympy.Symbol], reduced: Sequence[sympy.Symbol]) -> None:
        ops, (part,) = inductor_ops(), reduced
        value = ops.reduction(dtype, torch.float32, found, ops.load(buffer, place(indices, part)))
        ops.store_reduction(name, stored.subs(dict(zip(variables, indices, strict=True))), value)

    return make_loop_body(copy, sizes, []) if parts == 1 else make_loop_body(run, sizes, [sympy.sympify(parts)])


def resize_parts(one: ColumnSum, blocks: Extent, undo: contextlib.ExitStack) -> None:
    """Have the buffer between the stages of a sum have the parts of `blocks` blocks, until `undo` is closed."""
    from torch._inductor import ir

    node = one.part.node
    layout = node.layout
    undo.callback(setattr, node, "layout", layout)
    parts = sympy.sympify(of_each(blocks, one.groups))
    sizes = [*layout.size[:-1], parts]
    strides = layout.stride if _groups(one.part) == 1 else [parts * one.columns, *layout.stride[1:]]
    node.layout = ir.FixedLayout(layout.device, layout.dtype, sizes, strides)


def resize_to_workspace(found: Iterable[ColumnSum], processors: int, undo: contextlib.ExitStack) -> None:
    """Have the buffer of each sum have the parts that a mix-order kernel leaves, until `undo` is closed.

    Inductor's estimate of memory has those of a sum in two stages, which are fewer.
    """
    for one in found:
        block = block_of_mixed_kernel(size_hint(one.rows), processors)
        resize_parts(one, divided_up(one.rows, block), undo)


def tile_body(body: LoopBody, buffer: str, groups: int = 0) -> LoopBody:
    """Return loops that compute the elements of a sum, rows first, and add each to the partial sum of its column.

    body: of the sum in one stage; buffer: of the partial sums; groups: how many of its loops go over groups of rows.
    """
    return made_once(body, ("tile", buffer, groups), partial(_tile_body, body, buffer, groups))


def _tile_body(body: LoopBody, buffer: str, groups: int) -> LoopBody:
    iterated, reduced = body.sizes
    rows = groups + len(reduced)

    def run(indices: Sequence[sympy.Symbol], _: Sequence[sympy.Symbol]) -> None:
        from torch._inductor.virtualized import V

        kept = [*indices[:groups], *indices[rows:]]
        run_loop_body(body, (kept, indices[groups:rows]), _partial_sums()(V.get_ops_handler(), buffer, rows))

    return remake_loop_body(run, [*iterated[:groups], *reduced, *iterated[groups:]], [])


@functools.cache
def _partial_sums() -> Any:
    """Return the class of a handler that records a partial sum where a body has a reduction and its store."""

    class PartialSums(ops_handler_base()):  # type: ignore[misc]
        def __init__(self, inner: Any, buffer: str, rows: int) -> None:
            self._inner, self._buffer, self._rows = inner, buffer, rows

        def _default(self, name: str, args: tuple, kwargs: dict) -> Any:
            return getattr(self._inner, name)(*args, **kwargs)

        def reduction(self, dtype: object, src_dtype: object, reduction_type: str, value: Any) -> Any:
            return reduction_type, value

        def store_reduction(self, name: str, index: object, value: Any) -> None:
            self._inner.partial_accumulate(self._buffer, *value, {"num_reduction_dims": self._rows})

    return PartialSums
