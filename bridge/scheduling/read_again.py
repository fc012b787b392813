"""Find the values that a kernel reads together with what another kernel has made of them: all must have read the same.

A kernel that is fused with the one that computes a value has it as it was before it was rounded to 16 bits. A kernel
that stays apart reads it rounded. A softmax over such values subtracts their maximum, and divides by the sum of their
exponentials: if these are of the exact values and the elements are rounded, its results do not add up to 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .. import inductor
from ..affine import dtypes
from ..inductor.protocols import Kernel, Schedule

#: The number of the kernels that are not of the group.
OUTSIDE = -1


def buffers_read_again(positions: Sequence[int], schedule: Schedule) -> dict[str, frozenset[int]]:
    """Return the 16-bit buffers of a group that are read together with what a kernel of the group makes of them.

    By name: the numbers in the group of the kernels that do so.  The backward does so with what the forward keeps.
    """
    places = {kernel.get_name(): place for place, kernel in enumerate(schedule)}
    kept = inductor.kept_buffers()
    found = {}
    for position in positions:
        readers = sorted(places[name] for name in inductor.readers(schedule[position]) & places.keys())
        for name in _rounded_for_others(schedule[position]) if readers else ():
            own = [place for place in readers if name in inductor.buffers_read(schedule[place])]
            joining = frozenset(_joining(name, own, positions, schedule, kept))
            if joining:
                found[name] = joining
    return found


def _rounded_for_others(kernel: Kernel) -> list[str]:
    """Return the 16-bit buffers that a kernel writes and does not read itself: all others read them rounded."""
    read = set().union(*map(inductor.buffers_read, inductor.loop_nodes(kernel)))
    return [name for name in inductor.buffers_made(kernel) - read if _has_16_bits(name)]


def _has_16_bits(name: str) -> bool:
    return inductor.buffer_dtype(name) in dtypes.LOW_PRECISION


def _joining(
    name: str, readers: list[int], positions: Sequence[int], schedule: Schedule, kept: frozenset[str]
) -> Iterator[int]:
    """Yield the numbers of the kernels that read a buffer with results of another reader, which is of the group."""
    numbers = {position: number for number, position in enumerate(positions)}
    for first in (place for place in readers if place in numbers):
        results = set(inductor.buffers_written(schedule[first]))
        for place in range(first + 1, max(*readers, *positions) + 1):
            if results.isdisjoint(inductor.buffers_read(schedule[place])):
                continue
            if place in readers:
                yield numbers.get(place, OUTSIDE)
            # What a library call makes of results has its own errors, which are larger.
            if inductor.is_loop_kernel(schedule[place]):
                results |= inductor.buffers_written(schedule[place])
        if name in kept and not results.isdisjoint(kept):
            yield OUTSIDE
