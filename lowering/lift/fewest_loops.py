"""Order a kernel's nodes for the fewest loops over its rows.

Inductor's code generators have nodes that follow each other in one loop over a row, until one needs what the loop has
added up, or works on the results alone. A sum that needs none of these results, and comes after them, would have a loop
of its own, and load the row again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ... import inductor
from ...inductor.protocols import LoopNode


@dataclass(frozen=True)
class Step:
    """Hold what a node does.

    in_loop: over the elements of a row, or else over results of rows; reduces: a row to one result; needs: the numbers
    of the nodes whose results it reads.
    """

    in_loop: bool
    reduces: bool
    needs: frozenset[int]


def in_fewest_loops(nodes: Sequence[LoopNode]) -> Sequence[LoopNode]:
    """Return a kernel's nodes in an order that has fewer loops over its rows; as they are if none has.

    Nothing is stored in one loop and loaded in a later one that was not before.
    """
    steps = _steps(nodes)
    if steps is None:
        return nodes
    return [nodes[number] for number in best_order(steps)]


def _steps(nodes: Sequence[LoopNode]) -> list[Step] | None:
    """Return what each node does; None where they reduce nothing, or another order may change what is stored."""
    reducing = [node for node in nodes if inductor.node_sizes(node)[1]]
    if not reducing or any(map(inductor.mutates_or_aliases, nodes)):
        return None
    whole = inductor.elements(reducing[0])
    made = {name: number for number, node in enumerate(nodes) for name in inductor.buffers_made(node)}
    return [
        Step(
            in_loop=inductor.elements(node) == whole,
            reduces=bool(inductor.node_sizes(node)[1]),
            needs=frozenset(made[name] for name in inductor.buffers_read(node) & made.keys()),
        )
        for node in nodes
    ]


def best_order(steps: Sequence[Step]) -> Sequence[int]:
    """Return the numbers of the steps in the order with the fewest loops, in which no loop hands on more."""
    order = _in_first_loops(steps)
    before, after = _loops(steps, range(len(steps))), _loops(steps, order)
    fewer = _count(steps, after) < _count(steps, before)
    return order if fewer and _handed_on(steps, after) <= _handed_on(steps, before) else range(len(steps))


def _in_first_loops(steps: Sequence[Step]) -> list[int]:
    """Return the numbers of the steps, each in the first loop in which it can be; what a loop hands on, in the last."""
    loops: list[int] = []
    for step in steps:
        ended = [loops[n] + (step.in_loop and _ends(steps[n])) for n in step.needs]
        loops.append(max(ended, default=0 if step.in_loop else -1))
    for number in reversed(range(len(steps))):
        readers = [loops[n] for n, step in enumerate(steps) if number in step.needs]
        if readers and not _ends(steps[number]):
            loops[number] = max(loops[number], min(readers))
    return sorted(range(len(steps)), key=lambda number: (loops[number], not steps[number].in_loop))


def _ends(step: Step) -> bool:
    """Return True if what a step makes is there when a loop has ended."""
    return step.reduces or not step.in_loop


def _loops(steps: Sequence[Step], order: Sequence[int]) -> list[int]:
    """Return the number of each step's loop, as code generators begin a new one; beside loops, that of the next one."""
    loop, is_open, ended, found = 0, False, set[int](), [0] * len(steps)
    for number in order:
        step = steps[number]
        if is_open and (not step.in_loop or step.needs & ended):
            loop, is_open, ended = loop + 1, False, set()
        if step.in_loop:
            is_open = True
            ended |= {number} if step.reduces else set()
        found[number] = loop
    return found


def _count(steps: Sequence[Step], loops: Sequence[int]) -> int:
    """Return how many loops there are."""
    return len({loop for loop, step in zip(loops, steps, strict=True) if step.in_loop})


def _handed_on(steps: Sequence[Step], loops: Sequence[int]) -> set[int]:
    """Return the steps in a loop whose elements a later loop loads."""
    return {
        needed
        for number, step in enumerate(steps)
        for needed in step.needs
        if not _ends(steps[needed]) and loops[needed] != loops[number]
    }
