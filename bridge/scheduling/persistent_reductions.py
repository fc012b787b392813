"""Kernels of Inductor's that were not fused and go over their rows several times: they keep them in registers.

Inductor makes a reduction of more than 1024 elements a loop, which loads the row once for the reduction and again for
what is computed with its result.  This choice is all that Bridge changes in a kernel that it did not fuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .. import inductor
from ..inductor import inspection
from ..inductor.protocols import Kernel, LoopNode, Schedule
from ..inductor.tiles import reduction_types
from ..lowering.triton import codegen
from ..lowering.triton.combo_kernels import SHORT_ROW
from ..lowering.triton.profitability import KeptRow, fits_in_registers, power_of_2
from ..support.error_boundary import attempt

#: Elements of the longest row that is kept: the longest whose gain was measured (docs/results.md).
LONG_ROW = 16384

#: The same where a loop takes little more than memory does: it adds up once, as an RMS norm, or has moments, as a
#: layer norm. On an H200 RMS norms of 80 million elements took 92 -> 82 us in rows of 5000, 83 -> 82 in rows of 6000,
#: 76 -> 83 in rows of 8192, 79 -> 101 in rows of 9000; layer norms 128 -> 97 in rows of 12000, 94 -> 131 of 16384.
LONG_SUM, LONG_MOMENTS = 6144, 12288

#: What a row loads again, at least, as a share of all that is loaded for its elements, which takes registers, too. With
#: 2 bytes of 20 a gradient of pixels of 56 x 56 took 15 us longer than a loop's 130 on an H100.
LEAST_AGAIN = 1 / 8


def make_persistent_reductions(schedule: Schedule, given: Schedule) -> list[str]:
    """Make the kernels persistent for which that pays, also those of a shared launch; a line about each.

    given: the schedule before any fusion: a kernel that was not in it is Bridge's, and decided on.
    """
    lines: list[str] = []
    theirs = {frozenset(inductor.operation_names(kernel)) for kernel in given}
    for kernel in (part for node in schedule for part in inductor.launch_parts(node)):
        with attempt(kernel.get_name()):
            lines += _make_persistent(kernel) if inductor.operation_names(kernel) in theirs else []
    return lines


def _make_persistent(kernel: Kernel) -> list[str]:
    if not inductor.is_loop_kernel(kernel) or inductor.has_left_sums(kernel):
        return []
    device = inductor.device_of(kernel)
    row = kept_row(kernel) if inductor.generates_triton(device) else None
    if row is None or not fits_in_registers(row.registers):
        return []
    if not codegen.make_inner_persistent(kernel.scheduler, device, kernel, row):
        return []
    name = inspection.kernel_name(inductor.loop_nodes(kernel))
    return [f"{name}: persistent: a row that was read again stays in {row.registers} registers"]


def kept_row(kernel: Kernel) -> KeptRow | None:
    """Return what the rows take that a kernel loads, if it goes over one of them more than once; None if not.

    So it does over a row that it has made for itself: a loop stores that, and loads it in its next pass. A row that two
    reductions of one pass need is loaded once, and a loop needs no registers for it.

    Also None for rows that Inductor keeps by itself, that are too long, or whose length is not known; and where a loop
    body has several subscripts for one row, as RoPE has: it would be loaded several times all the same, and its
    registers be missed (a norm of 4096 and RoPE, of queries and keys at once: 71 us as a loop, 109 us kept, on an
    H100).
    """
    nodes = inductor.loop_nodes(kernel)
    reductions = [sizes for sizes in map(inductor.node_sizes, nodes) if sizes[1]]
    lengths = {prod(reduced) for _, reduced in reductions}
    length = lengths.pop() if len(lengths) == 1 else 0
    if not getattr(length, "is_Integer", False) or not SHORT_ROW < length <= _longest(nodes):
        return None
    rows = inductor.size_hint(prod(reductions[0][0]))
    touched, own = inductor.bytes_touched(kernel), inductor.bytes_read_back(kernel)
    whole, made = (_at_least(rows * int(length), amounts) for amounts in (touched, own))
    if not made and not whole & inductor.buffers_loaded_again(kernel):
        return None
    if any(len(inductor.subscripts_read(node, name)) > 1 for node in nodes for name in whole | made):
        return None
    if inductor.bytes_beside_rows(kernel, 1) or inductor.bytes_beside_stores(kernel, 1):
        return None  # Inductor's blocks have as many rows as make up for it
    again = whole & inductor.buffers_loaded_again(kernel) | made
    if LEAST_AGAIN * inductor.bytes_of_element(kernel) > _bytes_of(again):
        return None
    kept = whole & inductor.buffers_read(kernel) | made
    return KeptRow(power_of_2(length) * _bytes_of(kept) // 4, len(kept))


def _longest(nodes: Sequence[LoopNode]) -> int:
    """Return the elements of the longest row that is kept for what a kernel's nodes reduce."""
    kinds = [kind for node in nodes for kind in reduction_types(node)]
    if kinds == ["sum"]:
        return LONG_SUM
    return LONG_MOMENTS if "welford_reduce" in kinds else LONG_ROW


def _bytes_of(names: set[str]) -> int:
    return sum(inductor.buffer_dtype(name).itemsize for name in names)


def _at_least(size: int, amounts: dict[str, int]) -> set[str]:
    """Return the buffers of which as many bytes are moved, or more."""
    return {name for name, amount in amounts.items() if amount >= size}
