"""Iteration spaces of affine IR, read from it and drawn."""

from __future__ import annotations

import html
import math
import re
from dataclasses import dataclass, field

from ..affine.mlir_runtime import context, ir
from .counts import argument_sizes, trip_count


@dataclass
class Block:
    """Hold loops one inside the other, and what stands in the innermost: further blocks, accesses, guards.

    reduces: whether they carry values; pieces: subscripts of its own accesses, by buffer; guards: conditions of
    `affine.if`s.
    """

    extents: list[int]
    band: bool
    reduces: bool
    inner: list[Block] = field(default_factory=list)
    pieces: dict[str, list[str]] = field(default_factory=dict)
    guards: list[str] = field(default_factory=list)


@dataclass
class Space:
    """Hold a nest: the nodes that it computes, and its loops."""

    nodes: list[str]
    root: Block


def read_spaces(text: str, sizes: dict[str, int]) -> list[Space]:
    """Return the nests of a module's first function."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        function = module.body.operations[0].operation
        body = function.regions[0].blocks[0]
        values = argument_sizes(function, sizes)
        names = _buffer_names(function)
        roots = [op.operation for op in body.operations if op.operation.name == "affine.for"]
        return [Space(_nodes(root), _read(root, values, names)) for root in roots]


def _buffer_names(function: ir.Operation) -> dict:
    arguments = function.regions[0].blocks[0].arguments
    if "arg_attrs" not in function.attributes:
        return {}
    labels = [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]
    named = zip(arguments, labels, strict=True)
    return {a: ir.StringAttr(d["bridge.buffer"]).value for a, d in named if "bridge.buffer" in d}


def _nodes(root: ir.Operation) -> list[str]:
    if "bridge.nodes" not in root.attributes:
        return []
    return [ir.StringAttr(node).value for node in ir.ArrayAttr(root.attributes["bridge.nodes"])]


def _read(loop: ir.Operation, sizes: dict, names: dict) -> Block:
    block = Block([trip_count(loop, sizes)], "bridge.band" in loop.attributes, len(loop.results) > 0)
    _collect(loop, block, sizes, names)
    if len(block.inner) == 1 and not block.pieces and not block.guards and block.inner[0].band == block.band:
        only = block.inner[0]
        only.extents.insert(0, block.extents[0])
        return only
    return block


def _collect(operation: ir.Operation, block: Block, sizes: dict, names: dict) -> None:
    for region in operation.regions:
        for nested in (op.operation for inner in region.blocks for op in inner.operations):
            if nested.name == "affine.for":
                block.inner.append(_read(nested, sizes, names))
            elif nested.name == "affine.if":
                block.guards.append(_set_text(nested.attributes["condition"]))
                _collect(nested, block, sizes, names)
            elif nested.name in ("affine.load", "affine.store"):
                memref = nested.operands[1 if nested.name == "affine.store" else 0]
                _add_piece(block.pieces.setdefault(names.get(memref, "?"), []), _map_text(nested.attributes["map"]))


def _add_piece(known: list[str], subscripts: str) -> None:
    if subscripts not in known:
        known.append(subscripts)


def _map_text(attribute: ir.Attribute) -> str:
    return re.sub(r".*-> \((.*)\)>$", r"[\1]", str(attribute))


def _set_text(attribute: ir.Attribute) -> str:
    return re.sub(r".*: \((.*)\)>$", r"\1", str(attribute))


# ---------------------------------------------------------------------------------------------------------
# Drawing
# ---------------------------------------------------------------------------------------------------------

_LINE, _GAP, _LEAST, _PER_DOUBLING = 18, 10, 150, 22

_HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line x1="0" y1="0" x2="0" y2="6" stroke="currentColor" stroke-width="1.5" opacity="0.25"/></pattern></defs>'
)


def draw(spaces: list[Space]) -> str:
    """Return an SVG: a box for each block, as wide as the logarithm of its iterations, inside of its band."""
    parts, top, width = [], 4, 0
    for space in spaces:
        drawn, height, across = _draw_block(space.root, 4, top, ", ".join(space.nodes))
        parts.append(drawn)
        top += height + _GAP
        width = max(width, across + 8)
    return f'<svg viewBox="0 0 {width} {top}" width="{width}" height="{top}" role="img">{_HATCH}{"".join(parts)}</svg>'


def _draw_block(block: Block, left: int, top: int, title: str) -> tuple[str, int, int]:
    """Return (SVG, height, width) of a block at a place."""
    lines = _lines(block, title)
    height = _LINE * len(lines) + 10
    inner = []
    across = max(
        _LEAST, int(_PER_DOUBLING * math.log2(2 + math.prod(block.extents))), *(8 * len(t) + 20 for t in lines)
    )
    for child in block.inner:
        drawn, taken, wide = _draw_block(child, left + 12, top + height, "")
        inner.append(drawn)
        height += taken + _GAP
        across = max(across, wide + 24)
    kind = "reduction" if block.reduces else "band" if block.band or block.inner else "lanes"
    box = f'<rect class="{kind}" x="{left}" y="{top}" width="{across}" height="{height}" rx="5"/>'
    if block.guards:
        box += f'<rect class="guard" x="{left}" y="{top}" width="{across}" height="{height}" rx="5"/>'
    words = "".join(
        f'<text x="{left + 8}" y="{top + _LINE * (i + 1) - 2}"{" class=small" if i else ""}>{html.escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return box + words + "".join(inner), height, across


def _lines(block: Block, title: str) -> list[str]:
    kind = "reduction over" if block.reduces else "band" if block.band else "loops"
    head = f"{title + ': ' if title else ''}{kind} {' x '.join(map(str, block.extents))}"
    pieces = [f"{name} {' '.join(subscripts)}" for name, subscripts in block.pieces.items()]
    return [head, *pieces, *(f"only where {guard}" for guard in block.guards)]
