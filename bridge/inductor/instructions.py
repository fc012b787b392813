"""Count the instructions that a GPU executes for loop nodes.

For cost only, where arithmetic takes longer than memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import sympy

from .layouts import buffer_dtype
from .loops import made_once
from .protocols import Kernel, LoopBlock, LoopBody, LoopNode
from .scattered import bytes_apart, instructions_of_access
from .schedule import elements, loop_nodes, node_body

if TYPE_CHECKING:
    from torch.fx import Node as FxNode

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

#: Instructions of an access that each of a thread's elements has for itself, at an address that neighbours share: a
#: fourth of the lanes that compute can access memory at a time, and each computes its address and its mask.  Channel
#: attention, whose pads of a row's means were computed for each pixel, took 15.4 us on an H200 where 65 instructions
#: an element take 14.6, and apart 9.3 (docs/results.md, "Accesses under a mask").
ALONE = 10

#: Operations whose code has a branch, for extreme arguments: of a thread's elements, no two are interleaved.
SERIAL = {"sin", "cos", "tan"}

#: What takes none: it is a part of another operation, or done once.
_FREE = {"constant", "get_index", "load_seed", "to_dtype_bitcast"}

#: Share of the elements for which a value is computed that is the same for neighbours in memory: once for each of the
#: elements that a thread has side by side.
UNIFORM = 1 / 8

#: The same for operations that the assembler does not recognise as equal: their code has branches, or chooses between
#: polynomials: `benchmarks/instructions.py`.  What follows on them is computed for each element.  A decay of each head,
#: stored beside the head's 64 elements, each of which computed its `log1p`, took 29.1 us on an H200, and 19.5 apart.
UNIFORM_SHARES = {
    **dict.fromkeys(("log", "log1p", "log2", "log10", "atanh"), 0.45),
    **dict.fromkeys((
        "sqrt", "erf", "sin", "cos", "tan", "atan", "sinh", "asinh", "acosh", "pow", "atan2", "lgamma", "fmod",
        "remainder", "floordiv", "truncdiv", "mod", "rand", "randn", "randint64",
    ), 0.9),
}  # fmt: skip

#: Elements that a thread has side by side in the smaller one of the blocks that Inductor times for a kernel without
#: reductions: the faster one where accesses are scattered.
BESIDE = 2

#: An operation with its arguments, of which computed ones are numbers: a value that is used often would grow otherwise.
Value: TypeAlias = tuple[Hashable, ...]


class Operation(NamedTuple):
    """Describe an operation: its name, its value, and the share of all elements for which it is computed.

    apart: bytes between elements side by side, of an access that each of them has for itself; alone: each has one, and
    they are at one address; shared: of an access, all rows have the same elements.
    """

    name: str
    value: Value
    share: float
    apart: float = 0
    alone: bool = False
    shared: bool = False


def instructions(nodes: Sequence[LoopNode], beside: float = BESIDE) -> float:
    """Return the instructions that one kernel of the nodes executes for an element of their loops.

    All go over the same elements. What several of them compute is computed once, and nothing is loaded that one of them
    has made. What is used for some elements only, as parts of a `cat` are, is computed for all. beside: elements that a
    thread has side by side, which for scattered accesses are far apart.
    """
    return sum(_weight(one, beside) * one.share for one in _distinct(nodes))


def _weight(one: Operation, beside: float) -> float:
    return max(WEIGHTS.get(one.name, 1), instructions_of_access(one.apart, beside), ALONE if one.alone else 0)


def serial_instructions(nodes: Sequence[LoopNode]) -> list[float]:
    """Return those of `instructions` that are executed for one element of a thread after another, of each value."""
    return [WEIGHTS[one.name] * one.share for one in _distinct(nodes) if one.name in SERIAL]


def buffers_loaded(nodes: Sequence[LoopNode]) -> set[str]:
    """Return the buffers that one kernel of the nodes loads."""
    return {str(one.value[1]) for one in _distinct(nodes) if one.name == "load"}


def _distinct(nodes: Sequence[LoopNode]) -> list[Operation]:
    """Return what one kernel of the nodes computes, stores, or loads of what others have made."""
    if not nodes:
        return []
    made = frozenset(name for node in nodes for name in node.get_buffer_names())
    first, *others = map(node_body, nodes)
    return made_once(first, ("operations", *others, made), partial(_of_bodies, [first, *others], made))


def _of_bodies(bodies: Sequence[LoopBody], made: AbstractSet[str]) -> list[Operation]:
    """Return the operations of one kernel of bodies, which makes the named buffers."""
    numbers: dict[Value, int] = {}
    known: dict[Value, Operation] = {}
    for body in bodies:
        for one in _operations(body, numbers):
            if one.name != "load" or one.value[1] not in made:
                known[one.value] = max(one, known.get(one.value, one), key=attrgetter("share"))
    return list(known.values())


def instructions_of(kernel: Kernel, beside: float = BESIDE) -> int:
    """Return the instructions of all elements of a kernel, for typical sizes; beside: as of `instructions`."""
    return int(sum(size * instructions(nodes, beside) for size, nodes in _by_size(kernel).items()))


def bytes_asked_for(kernel: Kernel) -> int:
    """Return the bytes that the loads of all elements of a kernel ask the nearest cache for, for typical sizes.

    What several elements load, each asks for, but for neighbours in memory (see UNIFORM).
    """
    return int(sum(size * _bytes_loaded(nodes) for size, nodes in _by_size(kernel).items()))


def bytes_of_element(kernel: Kernel) -> float:
    """Return the bytes that are loaded for one element, of those loops of a kernel that load most."""
    return max(map(_bytes_loaded, _by_size(kernel).values()))


def bytes_of_own_element(kernel: Kernel) -> float:
    """Return the same without what all rows load, as parameters of columns are."""
    return max(_bytes_loaded(nodes, shared=False) for nodes in _by_size(kernel).values())


def _by_size(kernel: Kernel) -> dict[int, list[LoopNode]]:
    """Return the nodes of a kernel by how many elements their loops go over."""
    by_size: dict[int, list[LoopNode]] = {}
    for node in loop_nodes(kernel):
        by_size.setdefault(elements(node), []).append(node)
    return by_size


def _bytes_loaded(nodes: Sequence[LoopNode], shared: bool = True) -> float:
    """Return the bytes that are loaded for an element; shared: also of what all rows load."""
    loads = (one for one in _distinct(nodes) if one.name == "load" and (shared or not one.shared))
    return sum(buffer_dtype(str(one.value[1])).itemsize * one.share for one in loads)


def _operations(body: LoopBody, numbers: dict[Value, int]) -> Iterator[Operation]:
    """Yield all operations of a body that take instructions; numbers: of values so far."""
    variables = [*body.iter_vars, *body.reduce_vars]
    places = {v: sympy.Symbol(f"loop{number}") for number, v in enumerate(variables)}
    differ = {*variables[-1:], *body.indirect_vars}
    rows = _variables_of_rows(body)
    uniform = {name for name, index in body.indexing_exprs.items() if not differ & index.free_symbols}
    indices = {name: index.xreplace(places) for name, index in body.indexing_exprs.items()}
    for part, block in {"": body.root_block, **body.subblocks}.items():
        same = _same_for_neighbours(block, uniform, bool(part))
        for op, value in _numbered(block, part, indices, numbers):
            if op.op == "call_method" and op.target not in _FREE:
                apart = _apart(value, places[variables[-1]], set(places.values())) if variables else 0
                accessed = body.indexing_exprs[op.args[2].args[0]] if op.target in ("load", "store") else None
                alone = op not in same and accessed is not None and not differ & accessed.free_symbols
                shared = accessed is not None and not rows & accessed.free_symbols
                yield Operation(str(op.target), value, _share(op, same), apart, alone, shared)


def _variables_of_rows(body: LoopBody) -> set[sympy.Symbol]:
    """Return the variables by which loops go from row to row; of elements in one loop nobody tells the columns."""
    around = body.iter_vars if body.reduce_vars else body.iter_vars[:-1]
    return {*(around or body.iter_vars), *body.indirect_vars}


def _share(op: FxNode, same: AbstractSet[FxNode]) -> float:
    """Return the share of all elements for which an operation is executed; same: whose results neighbours share."""
    if op in same:
        return UNIFORM
    return UNIFORM_SHARES.get(str(op.target), 1.0) if _follows(op, same) else 1.0


def _apart(value: Value, last: sympy.Symbol, variables: AbstractSet[sympy.Symbol]) -> float:
    """Return the bytes between what elements side by side load or store, if each has an access for itself."""
    name, *arguments = value
    if name not in ("load", "store") or not isinstance(arguments[1], sympy.Expr):
        return 0
    return bytes_apart(arguments[1], last, variables, buffer_dtype(str(arguments[0])).itemsize)


def _same_for_neighbours(block: LoopBlock, uniform: AbstractSet[str], masked: bool) -> set[FxNode]:
    """Return the operations of a block whose values the elements side by side share; uniform: indices of that kind.

    A part under a mask, and an index that is loaded, count as different, and so does what the assembler does not
    recognise as equal. masked: the block is such a part: of what is loaded in it Triton does not see that neighbours
    share it.
    """
    same: set[FxNode] = set()
    for op in block.graph.nodes:
        if (masked and op.target == "load") or op.target in UNIFORM_SHARES:
            continue
        if op.op == "placeholder" or (op.args[0] in uniform if op.target == "get_index" else _follows(op, same)):
            same.add(op)
    return same


def _follows(op: FxNode, same: AbstractSet[FxNode]) -> bool:
    """Return True for an operation on values that elements side by side share, or that makes one of them."""
    return op.op == "call_method" and (op.target == "store_reduction" or same >= set(op.all_input_nodes))


def _numbered(
    block: LoopBlock, part: str, indices: Mapping[str, sympy.Expr], numbers: dict[Value, int]
) -> Iterator[tuple[FxNode, Value]]:
    """Yield (operation, its value) of a block, and give each new value a number.

    part: name of a block under a mask, or nothing: what is loaded under two masks is loaded twice; indices: of the
    loops, by name.
    """
    known: dict[object, Hashable] = {}

    def argument(value: object) -> Hashable:
        return tuple(map(argument, value)) if isinstance(value, (tuple, list)) else known.get(value, str(value))

    for op in block.graph.nodes:
        if op.target == "get_index":
            known[op] = indices[op.args[0]]
        elif op.op in ("call_method", "call_module"):
            # The first argument of a method is the handler of all operations.
            value = (str(op.target), *map(argument, op.args[op.op == "call_method" :]))
            value += (part,) * (op.target == "load")
            known[op] = numbers.setdefault(value, len(numbers))
            yield op, value
