"""Sums of columns inside groups of rows: of the tokens of each image, which the gradients of its scale and shift are.

Inductor reduces them in one stage, where there are columns enough for all multiprocessors. A kernel whose programs have
a block of rows each can add them up, too, if no block has rows of two groups. It needs a buffer between two stages,
which is made here, with the node that fills it. The node that there was adds up the parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import sympy
import torch

from ..reasons import Reason, Unsupported
from .columns import ColumnSum, is_column_part, kind, only_reduces, second_stage, tile_body
from .loops import made_once, set_loop_body
from .protocols import LoopNode
from .schedule import node_body
from .sizes import Extent, as_extent, is_there, of_each


@dataclass(frozen=True)
class GroupedSum:
    """Hold a sum in one stage of `rows` rows in `groups` groups of neighbours, for each group and some columns.

    loops: of the node's, outermost first, that go over the groups; those that are left go over the columns.
    """

    node: LoopNode
    loops: int
    groups: Extent
    rows: Extent
    columns: int


def grouped_sums(node: LoopNode) -> list[GroupedSum]:
    """Return what a node may be taken for: any of its outer loops may go over groups.

    Its rows are those of a group, one after the other, and then those of the next. Whether another node's rows are the
    same ones is for the accesses of both to say. Unsupported where the columns are a symbol, or there may be no row.
    """
    if is_column_part(node) or kind(node) is None:
        return []
    body = node_body(node)
    iterated, reduced = (list(map(as_extent, sizes)) for sizes in body.sizes)
    if len(iterated) < 2 or not reduced or not only_reduces(body):
        return []
    if not isinstance(iterated[-1], int) or not all(map(is_there, (*iterated, *reduced))):
        detail = f"{node.get_name()}: the columns that it adds up are symbols, or it may have no row"
        raise Unsupported(Reason.dynamic_extent, detail)
    split = [(loops, prod(iterated[:loops]), prod(iterated[loops:])) for loops in range(1, len(iterated))]
    return [
        GroupedSum(node, loops, groups, as_extent(groups * prod(reduced)), columns)
        for loops, groups, columns in split
        if groups != 1 and isinstance(columns, int)
    ]


def add_stage(one: GroupedSum, undo: contextlib.ExitStack) -> LoopNode:
    """Return a new node, the first stage of a sum, whose own node is the second, until `undo` is closed.

    The new node is over the tile, and in no kernel yet.
    """
    (result,) = one.node.get_outputs()
    name, parts = f"{result.get_name()}_parts", of_each(one.rows, one.groups)
    part = _new_node(one.node, name, [one.groups, one.columns, parts], [parts * one.columns, 1, one.columns], undo)
    whole = node_body(one.node)
    tile = tile_body(whole, name, one.loops)
    made = ColumnSum(part, one.node, name, one.rows, one.columns, parts, tile, one.groups, whole, one.loops)
    part.bridge_column_sum = made
    set_loop_body(part, tile, undo)
    set_loop_body(one.node, second_stage(made, parts), undo)
    return part


def _new_node(like: Any, name: str, sizes: list[Extent], strides: list[Extent], undo: contextlib.ExitStack) -> Any:
    """Return a node of loops that are to be given to it, for a new buffer of float32, before another node.

    It is the same one as long as `like` has the same loops: what it was given is undone by then.
    """
    from torch._inductor.virtualized import V

    key = "new node", name, tuple(sizes), tuple(strides)
    node = made_once(node_body(like), key, partial(_made_node, like, name, sizes, strides))
    scheduler: Any = like.scheduler
    (output,) = node.get_outputs()
    _register(V.graph.name_to_buffer, name, node.node, undo)
    _register(scheduler.name_to_buf, name, output, undo)
    _register(scheduler.name_to_node, node.get_name(), node, undo)
    _register(scheduler.name_to_fused_node, node.get_name(), node, undo)
    node.min_order, node.max_order, node.ancestors = like.min_order, like.max_order, like.ancestors
    return node


def _made_node(like: Any, name: str, sizes: list[Extent], strides: list[Extent]) -> Any:
    from torch._inductor import ir
    from torch._inductor.scheduler import SchedulerNode
    from torch._inductor.virtualized import V

    device, numbers = like.get_device(), [[sympy.sympify(number) for number in given] for given in (sizes, strides)]
    with ir.IRNode.current_origins(like.node.get_origins()):
        data = ir.Pointwise(device=device, dtype=torch.float32, inner_fn=_nothing, ranges=numbers[0])
        layout = ir.FixedLayout(device, torch.float32, *numbers)
        buffer = ir.ComputedBuffer(name=name, layout=layout, data=data)
    buffer.operation_name = f"{like.get_name()}_parts"
    with contextlib.ExitStack() as undo:
        _register(V.graph.name_to_buffer, name, buffer, undo)
        return SchedulerNode(like.scheduler, buffer)


def _nothing(_: Sequence[sympy.Symbol]) -> Any:
    from torch._inductor.virtualized import ops

    return ops.constant(0.0, torch.float32)


def _register(known: dict[str, Any], name: str, entry: object, undo: contextlib.ExitStack) -> None:
    known[name] = entry
    undo.callback(known.pop, name, None)
