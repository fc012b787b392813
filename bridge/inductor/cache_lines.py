"""Tell where the loops of C++ code do not go along memory, and how much of that caches hold; for cost only."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import gcd, prod

from .layouts import buffer_dtype
from .protocols import Dependency, Kernel, LoopNode
from .schedule import elements, innermost_step, loop_nodes, node_sizes, plain_accesses, stays_inside
from .sizes import contiguous_run, size_hint, step_along

#: Bytes of a line of a core's nearest cache, how many sets of lines it has at least, and how many lines a set has.
LINE, SETS, LINES_OF_SET = 64, 64, 8

#: Bytes of a page: what is contiguous for as long takes about the same time wherever the next piece is.
PAGE = 4096

#: Bytes of a core's next cache, and how many places in memory a core fetches ahead of at a time from beyond it.
NEXT_CACHE, PLACES_AHEAD = 1 << 19, 32


def bytes_across(kernel: Kernel) -> int:
    """Return the bytes that a kernel accesses in steps of a line or more along its innermost loops."""
    from torch._inductor.virtualized import V

    return sum(V.graph.get_dep_size_hint(dep) for _, dep, _ in _across(kernel))


def bytes_out_of_order(kernel: Kernel) -> int:
    """Return the bytes that a kernel accesses along memory in short pieces, which follow in another order than there.

    What the next cache holds as a whole does not count.
    """
    from torch._inductor.virtualized import V

    found = {dep for _, dep, step in _accesses(kernel) if step < LINE and not _follows_memory(dep)}
    sizes = (V.graph.get_dep_size_hint(dep) for dep in found)
    return sum(size for size in sizes if size > NEXT_CACHE)


def _follows_memory(dep: Dependency) -> bool:
    """Return True if the loops of an access have smaller steps the further inside they are, or long pieces."""
    variables = set(dep.var_names)
    loops = [
        (step_along(dep.index, name, variables), size_hint(size))
        for name, size in zip(dep.var_names, dep.size, strict=True)
    ]
    loops = [(step, size) for step, size in loops if step and size > 1]
    if all(outer[0] >= inner[0] for outer, inner in pairwise(loops)):
        return True
    return contiguous_run(reversed(loops)) * buffer_dtype(dep.name).itemsize >= PAGE


def holds_columns(kernel: Kernel) -> bool:
    """Return True if the nearest cache holds what a kernel accesses across memory in one iteration of its outer loops.

    Those are the loops around what it reduces. Elements that are a power of two apart are in few sets of the cache.
    """
    columns = _columns(kernel)
    lines = sum(length / _sets(step) for length, step in columns)
    is_near = all(length * step <= NEXT_CACHE for length, step in columns)
    return lines <= LINES_OF_SET and (is_near or sum(length for length, _ in columns) <= PLACES_AHEAD)


def _columns(kernel: Kernel) -> list[tuple[int, int]]:
    """Return (elements, bytes between two) of what a kernel accesses across memory: the longest of each buffer."""
    kept = [prod(map(size_hint, sizes[0])) for sizes in map(node_sizes, loop_nodes(kernel)) if sizes[1]]
    longest: dict[str, tuple[int, int]] = {}
    for node, dep, step in _across(kernel) if kept else ():
        column = elements(node) // max(min(kept), 1), step
        longest[dep.name] = max(longest.get(dep.name, column), column)
    return [*longest.values()]


def _sets(step: int) -> int:
    """Return in how many sets of the nearest cache the elements of a column are, by the bytes between two."""
    return SETS if step % LINE else SETS // gcd(step // LINE, SETS)


def _across(kernel: Kernel) -> Iterator[tuple[LoopNode, Dependency, int]]:
    """Return what `_accesses` does where the step is a line or more."""
    return (found for found in _accesses(kernel) if found[-1] >= LINE)


def _accesses(kernel: Kernel) -> Iterator[tuple[LoopNode, Dependency, int]]:
    """Return (node, access, bytes between two iterations of its innermost loop) of all that leaves the kernel."""
    names = kernel.get_operation_names()
    for node in loop_nodes(kernel):
        for dep in plain_accesses({*node.read_writes.reads, *node.read_writes.writes}):
            if not stays_inside(node.scheduler, dep.name, names):
                yield node, dep, innermost_step(dep) * buffer_dtype(dep.name).itemsize
