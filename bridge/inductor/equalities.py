"""Find loop nodes that ask if what they load equals something else, as the gradient of a maximum does."""

from __future__ import annotations

from typing import Any

from .protocols import LoopBlock, LoopNode
from .schedule import node_body

_EQUALITIES = {"eq", "ne"}


def compares(node: LoopNode, name: str) -> bool:
    """Return True if an equality of computed values depends on what a node loads of a buffer."""
    body = node_body(node)
    return any(_compares(block, name) for block in [body.root_block, *body.subblocks.values()])


def _compares(block: LoopBlock, name: str) -> bool:
    found: set[Any] = set()
    for op in block.graph.nodes:
        loads = op.target == "load" and op.args[1] == name
        if loads or not found.isdisjoint(op.all_input_nodes):
            found.add(op)
            if op.target in _EQUALITIES and not any(map(_is_constant, op.all_input_nodes)):
                return True
    return False


def _is_constant(op: Any) -> bool:
    return op.target == "constant"
