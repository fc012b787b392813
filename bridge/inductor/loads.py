"""Tell how many bytes kernels load, in one pass over their rows or in several."""

from __future__ import annotations

from collections.abc import Iterator

from .protocols import Dependency, Kernel
from .schedule import (
    buffer_dtype,
    buffers_made,
    elements_of_buffer,
    loop_nodes,
    node_sizes,
    plain_accesses,
    stays_inside,
)


def bytes_loaded(node: Kernel) -> int:
    """Return the bytes that a kernel loads if it keeps what it loads at equal subscripts of equal loops.

    For typical sizes, and for cost only.  A kernel with two subscripts for one row loads the row twice.
    """
    names = node.get_operation_names()
    loads = {dep.normalize() for dep in plain_accesses(node.read_writes.reads)}
    return sum(_amount(node, dep) for dep in loads if not stays_inside(node.scheduler, dep.name, names))


def bytes_loaded_in_passes(node: Kernel) -> int:
    """Return the bytes that a kernel loads if it goes over its rows in a loop, as often as their reductions have it.

    For typical sizes, and for cost only.  What needs the result of a reduction is in a later pass, and loads again;
    what has been made in a pass is at hand in it, and a reduction's result in the next one.
    """
    loads = {(number, dep.normalize()) for number, dep in _loads_in_passes(node)}
    return sum(_amount(node, dep) for _, dep in loads)


def bytes_read_back(node: Kernel) -> dict[str, int]:
    """Return the bytes of buffers that a kernel makes for itself alone, and in a loop loads in a later pass."""
    names = node.get_operation_names()
    own = [dep for _, dep in _loads_in_passes(node) if stays_inside(node.scheduler, dep.name, names)]
    return {dep.name: _amount(node, dep) for dep in own}


def buffers_loaded_again(node: Kernel) -> set[str]:
    """Return the buffers that a kernel loads in a second pass over its rows, or after a pass that has made them.

    What two reductions of one pass need is loaded once.
    """
    made = set().union(*map(buffers_made, loop_nodes(node)))
    passes: dict[str, set[int]] = {}
    for number, dep in _loads_in_passes(node):
        passes.setdefault(dep.name, set()).add(number)
    return {name for name, numbers in passes.items() if name in made or len(numbers) > 1}


def _loads_in_passes(node: Kernel) -> Iterator[tuple[int, Dependency]]:
    """Give (number of the pass, load) of what is not at hand in a pass."""
    at_hand: dict[str, int] = {}  # the first pass in which a buffer of the kernel's is
    for one in loop_nodes(node):
        reads = plain_accesses(one.read_writes.reads)
        number = max((at_hand.get(dep.name, 0) for dep in reads), default=0)
        yield from ((number, dep) for dep in reads if at_hand.get(dep.name) != number)
        at_hand |= dict.fromkeys(buffers_made(one), number + bool(node_sizes(one)[1]))


def _amount(node: Kernel, dep: Dependency) -> int:
    """Return the bytes of a kernel's load, at most those of its buffer: many iterations may load one element.

    Inductor's estimate knows it where the index says so, and takes one with divisions to reach as many elements as
    there are iterations: with finer loops and no division, the same load would seem to be less.
    """
    from torch._inductor.virtualized import V

    # After a library call has written into it, a buffer has the call's name, which has no layout.
    name = node.scheduler.mutation_real_name.get(dep.name, dep.name)
    return min(V.graph.get_dep_size_hint(dep), elements_of_buffer(name) * buffer_dtype(name).itemsize)
