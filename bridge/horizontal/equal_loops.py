"""Small sums across rows, over the same loops of other buffers: the second stages of two gradients of weights, say.

Beside others in a launch such kernels would have blocks and warps that are not theirs. As one kernel of the same loops
they have those of each, and as many programs.
"""

from __future__ import annotations

from .. import inductor
from ..inductor import mixed
from ..inductor.protocols import Kernel, Schedule
from ..lowering.triton import codegen
from ..lowering.triton.profitability import LAUNCH_BYTES
from ..reasons import Reason, Unsupported
from .candidates import sets_of_equal_loops
from .column_sums import MOST_LOADED
from .cost import measure
from .independence import find_obstacle, positions_of, span

#: Elements that a kernel reduces to one, at most. One kernel of `benchmarks/pairs.py` takes 1.4 us for a sum of 128
#: parts, and 2.2 for three; of 1028 parts it takes 3.6 us and 10.5, as long as three kernels.
MOST_REDUCED = 128


def sets_to_merge(schedule: Schedule) -> list[list[Kernel]]:
    """Return sets of kernels of which one kernel does the work in less time: each takes no longer than a launch."""
    found = [[schedule[p] for p in positions] for positions in sets_of_equal_loops(schedule, _adds_up_few)]
    return [part for kernels in found for part in _in_parts(schedule, kernels) if len(part) > 1]


def place_of(schedule: Schedule, kernels: list[Kernel]) -> int | None:
    """Return the position of one of some kernels in whose place all of them can be; None without one.

    All others stay in their order: what a large one has read may be in the cache of the next one.
    """
    positions = positions_of(schedule, kernels)
    around = span(positions)
    awaited, made = (set().union(*map(of, kernels)) for of in (inductor.buffers_awaited, inductor.buffers_made))
    others = [p for p in around if p not in positions]
    makers = [p for p in others if inductor.buffers_made(schedule[p]) & awaited]
    readers = [p for p in others if inductor.buffers_awaited(schedule[p]) & made]
    place = next(p for p in positions if p > max(makers, default=-1))
    return place if place < min(readers, default=len(schedule)) else None


def _adds_up_few(kernel: Kernel) -> bool:
    """Return True for a kernel of Triton's that reduces few elements each across rows, and whose code is emitted."""
    if find_obstacle(kernel) is not None or not inductor.generates_triton(inductor.device_of(kernel)):
        return False
    reduced = inductor.size_hint(kernel.group[1][1])
    emitted = not any(map(mixed.done_by_mixed_kernel, inductor.loop_nodes(kernel)))
    return 1 < reduced <= MOST_REDUCED and emitted and inductor.reduces_across_rows(kernel)


def _in_parts(schedule: Schedule, kernels: list[Kernel]) -> list[list[Kernel]]:
    """Return kernels in parts that move no more than memory does in the time of a launch, of few buffers."""
    parts: list[list[Kernel]] = [[]]
    for kernel in kernels:
        together = [*parts[-1], kernel]
        if _is_one_launch(together) and place_of(schedule, together) is not None:
            parts[-1] = together
        else:
            parts.append([kernel])
    return parts


def _is_one_launch(kernels: list[Kernel]) -> bool:
    loaded = set().union(*map(inductor.buffers_read, kernels))
    return len(loaded) <= MOST_LOADED and sum(measure(kernel).total for kernel in kernels) <= LAUNCH_BYTES


def merged(kernels: list[Kernel]) -> Kernel:
    """Return one kernel of the nodes of several; Unsupported where Inductor has none."""
    made = codegen.fuse_nodes([node for kernel in kernels for node in inductor.loop_nodes(kernel)])
    if made is None:
        names = ", ".join(kernel.get_name() for kernel in kernels)
        raise Unsupported(Reason.not_liftable, f"{names}: Inductor's codegen cannot run them together")
    return made
