"""Estimate what one kernel takes that computes values again, and what those take in whose place it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ... import inductor
from ...inductor.protocols import Kernel
from ..triton.configurations import ENOUGH_BLOCKS, WARP
from ..triton.profitability import CACHE_BYTES_A_BYTE, CACHED_BYTES, ELEMENTS_OF_THREAD, LAUNCH_BYTES, traffic
from .programs import Executed, executed

#: Registers in which a thread may have what it loads, without that too few threads run at a time.  On an H100 a pooling
#: of 3 x 3 over a sum of four tensors, with 149, took 1.6 of the time of its instructions; over a sum of two, with 77,
#: 1.05 of it (`benchmarks/recomputed.py`).
LOADED_REGISTERS = 100

#: Registers of a thread for each byte that an element loads.
REGISTERS_A_BYTE = ELEMENTS_OF_THREAD / 4

#: Elements of a block of Inductor's smallest number of warps, where each thread has ELEMENTS_OF_THREAD.
ELEMENTS_OF_BLOCK = 4 * WARP * ELEMENTS_OF_THREAD


def times_apart(kernels: Sequence[Kernel], done: Iterable[Executed]) -> int:
    """Return the bytes that a GPU moves in the time of several kernels, without their launches.

    done: what each of them executes. What one has just written, another reads in half of the time.
    """
    return sum(
        int(max(_touched(kernel) - bytes_in_cache(kernel, kernels) // 2, one.moved))
        for kernel, one in zip(kernels, done, strict=True)
    )


def computed_again(kernel: Kernel, count: int, apart: int) -> tuple[int, int] | None:
    """Return (bytes in a kernel's own time, those in the time of `count` kernels that it replaces) if it is longer.

    Its own time is that of its instructions, which threads with much in registers hide less well, or of its loads from
    the nearest cache. None where it is not longer, where memory takes longer than either, or where the kernel reduces:
    what it makes of a row in several shapes counts for each of them, and is computed once. apart: the `times_apart` of
    those kernels. A value that several lanes need, as of a pooled window or of a shifted row, each of them computes,
    and loads what it is made of.
    """
    if inductor.reduces(kernel):
        return None
    instructions = executed(kernel).moved * max(_crowding(kernel), 1)
    own = int(max(instructions, inductor.bytes_asked_for(kernel) / CACHE_BYTES_A_BYTE))
    launches = (count - 1) * LAUNCH_BYTES if inductor.generates_triton(inductor.device_of(kernel)) else 0
    if own <= max(_touched(kernel), apart + launches):
        return None
    return own, apart + launches


def computes_long(kernel: Kernel) -> bool:
    """Return True if a kernel without reductions computes for half of the time that memory takes, or for longer.

    False for one that would have too few blocks, or too few threads at a time, if each thread had many elements, and
    where these are not side by side in memory: halves of GPT-OSS's experts, every other element, took 60 us of 32.
    """
    nodes = inductor.loop_nodes(kernel)
    elements = max(map(inductor.elements, nodes))
    if inductor.reduces(kernel) or elements < ENOUGH_BLOCKS * ELEMENTS_OF_BLOCK or _crowding(kernel) > 1:
        return False
    if any(inductor.skips_elements(inductor.node_body(node)) for node in nodes):
        return False
    return executed(kernel, beside=0).moved >= _touched(kernel) / 2


def bytes_in_cache(kernel: Kernel, kernels: Iterable[Kernel]) -> int:
    """Return the bytes that a kernel reads of what another one of several has just written."""
    others = [other for other in kernels if other is not kernel]
    made = set().union(*map(inductor.buffers_made, others)) & inductor.buffers_read(kernel)
    sizes = [size for name, size in inductor.bytes_touched(kernel).items() if name in made]
    return sum(size for size in sizes if size <= CACHED_BYTES)


def _crowding(kernel: Kernel) -> float:
    """Return the registers in which a thread has what it loads, over those with which enough threads run at a time."""
    if not inductor.generates_triton(inductor.device_of(kernel)):
        return 0
    return REGISTERS_A_BYTE * inductor.bytes_of_element(kernel) / LOADED_REGISTERS


def _touched(kernel: Kernel) -> int:
    return traffic([inductor.bytes_touched(kernel)])
