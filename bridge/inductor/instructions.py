"""Count the instructions that a GPU executes for loop nodes.

For cost only, where arithmetic takes longer than memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

import sympy

from .protocols import Kernel, LoopBlock, LoopBody, LoopNode
from .schedule import elements, loop_nodes, node_body

#: Instructions for one element, of operations that take more than one: `benchmarks/instructions.py` reads them off the
#: code for an H100 (23 November 2026, Triton 3.6).  Where part of the code is for extreme arguments alone, it does not
#: count: of sines beyond 1e5, of roots of denormal numbers.
WEIGHTS = {
    "load": 2, "store": 2, "index_expr": 3, "where": 2, "maximum": 3, "minimum": 3, "relu": 3, "reduction": 2,
    "exp": 5, "sigmoid": 12, "tanh": 22, "erf": 28, "erfc": 47, "expm1": 25,
    "log": 25, "log1p": 30, "log2": 27, "log10": 27, "sqrt": 10, "truediv": 9, "div": 9, "pow": 88,
    "sin": 27, "cos": 29, "tan": 25, "asin": 17, "acos": 16, "atan": 54, "atan2": 85,
    "sinh": 33, "cosh": 19, "asinh": 66, "acosh": 67, "atanh": 42, "lgamma": 211, "fmod": 68,
    "floordiv": 27, "truncdiv": 27, "mod": 26, "remainder": 26, "rand": 50, "randn": 174, "randint64": 55,
}  # fmt: skip

#: What takes none: it is a part of another operation, or done once.
_FREE = {"constant", "get_index", "load_seed", "to_dtype_bitcast"}

#: An operation with its arguments, of which computed ones are numbers: a value that is used often would grow otherwise.
Value: TypeAlias = tuple[Hashable, ...]


def instructions(nodes: Sequence[LoopNode]) -> int:
    """Return the instructions that one kernel of the nodes executes for an element of their loops.

    All go over the same elements. What several of them compute is computed once, and nothing is loaded that one of them
    has made.
    """
    made = {name for node in nodes for name in node.get_buffer_names()}
    numbers: dict[Value, int] = {}
    weights: dict[Value, int] = {}
    for node in nodes:
        for name, value in _values(node_body(node), numbers):
            weights[value] = 0 if name == "load" and value[1] in made else WEIGHTS.get(name, 1)
    return sum(weights.values())


def instructions_of(kernel: Kernel) -> int:
    """Return the instructions of all elements of a kernel, for typical sizes."""
    by_size: dict[int, list[LoopNode]] = {}
    for node in loop_nodes(kernel):
        by_size.setdefault(elements(node), []).append(node)
    return sum(size * instructions(nodes) for size, nodes in by_size.items())


def _values(body: LoopBody, numbers: dict[Value, int]) -> Iterator[tuple[str, Value]]:
    """Yield (operation, its value) of all operations of a body that take instructions; numbers: of values so far."""
    variables = [*body.iter_vars, *body.reduce_vars]
    places = {v: sympy.Symbol(f"loop{number}") for number, v in enumerate(variables)}
    indices = {name: index.xreplace(places) for name, index in body.indexing_exprs.items()}
    for block in [body.root_block, *body.subblocks.values()]:
        for name, value in _numbered(block, indices, numbers):
            if name not in _FREE:
                yield name, value


def _numbered(
    block: LoopBlock, indices: Mapping[str, sympy.Expr], numbers: dict[Value, int]
) -> Iterator[tuple[str, Value]]:
    """Yield (operation, its value) of a block, and give each new value a number; indices: of the loops, by name."""
    known: dict[object, Hashable] = {}

    def argument(value: object) -> Hashable:
        return tuple(map(argument, value)) if isinstance(value, (tuple, list)) else known.get(value, str(value))

    for op in block.graph.nodes:
        if op.target == "get_index":
            known[op] = indices[op.args[0]]
        elif op.op in ("call_method", "call_module"):
            # The first argument of a method is the handler of all operations.
            value = (str(op.target), *map(argument, op.args[op.op == "call_method" :]))
            known[op] = numbers.setdefault(value, len(numbers))
            if op.op == "call_method":
                yield str(op.target), value
