"""Estimate what a kernel loses that keeps longer rows than those in its place, or more: its threads have less room."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from ... import inductor
from ...inductor.protocols import Kernel
from ..triton.profitability import (
    LONGEST_IN_BLOCKS,
    MAX_STAGED_REGISTERS,
    MOST_REGISTERS,
    REGISTERS,
    power_of_2,
    traffic,
)
from .programs import elements_of_row, executed

if TYPE_CHECKING:
    from .band import LiftedBand

#: Elements of a long row that a thread has by Inductor's heuristic, but where there are fewer or more threads.
ELEMENTS_OF_A_THREAD = 32
FEWEST_THREADS, MOST_THREADS = 8 * 32, 16 * 32

#: Share of what a kernel moves that memory could move in the time that it takes longer, at least. On an H100
#: (27 November 2026, torch 2.15) rows of 8192 registers in the place of eight of 1024 took 25 MB longer for 68 MB than
#: their bytes say, two rows of 16384 registers each in one program 560 MB longer for 2000 MB, and rows of 16384 in the
#: place of 64 of 256 took 36 MB longer for 48 MB.
SHARE = 1 / 3

#: Rows that are kept in so many times the registers of what was loaded before are several, if without the parameters
#: of columns they are, too: these come from the nearest cache.
LONGER = 1.5


class Rows(NamedTuple):
    """Tell of the longest rows of kernels: lanes of a block, and 32-bit registers of what those load.

    own: of these registers those of what no other row loads.
    """

    lanes: int
    registers: float
    own: float


def longest_rows(kernels: Iterable[Kernel]) -> Rows:
    """Return the longest rows of kernels of Inductor's, with their own loops; one lane where nothing is reduced."""
    found = [Rows(1, 0, 0)]
    for kernel in kernels:
        lengths = [prod(map(inductor.size_hint, inductor.node_sizes(one)[1])) for one in inductor.loop_nodes(kernel)]
        lanes = power_of_2(max(lengths))
        sizes = inductor.bytes_of_element(kernel), inductor.bytes_of_own_element(kernel)
        found.append(Rows(lanes, *(lanes * size / 4 for size in sizes)))
    return Rows(*map(max, zip(*found, strict=True)))


def keeps_long_rows(band: LiftedBand) -> bool:
    """Return True if a band's kernel keeps rows of which a block has one, and each lane has one element."""
    return band.in_registers and (band.registers or 0) > LONGEST_IN_BLOCKS and not band.state_registers


def bytes_of_long_rows(kernel: Kernel, band: LiftedBand, before: Rows) -> int:
    """Return the bytes that a GPU moves in the time which a band's kernel takes longer; before: of what it replaces."""
    kept = (band.registers or 0, before.registers), (band.own_registers or 0, before.own)
    more = all(now >= LONGER * earlier for now, earlier in kept)
    if not keeps_long_rows(band) or not (more or longest_rows([kernel]).lanes > before.lanes):
        return 0
    return int(SHARE * traffic([inductor.bytes_touched(kernel)]))


def bytes_while_computing(kernel: Kernel, band: LiftedBand) -> int:
    """Return the bytes that a GPU could move while a band's kernel computes, and loads nothing.

    A multiprocessor has room for one block whose threads have ELEMENTS_OF_A_THREAD of a row of more than
    MAX_STAGED_REGISTERS: 172 registers each for 8192 lanes and 16384 registers (a cubin, an H100).  A kernel of
    Inductor's that goes from row to row loads the next one meanwhile.
    """
    if not keeps_long_rows(band) or (band.registers or 0) <= MAX_STAGED_REGISTERS:
        return 0
    length = elements_of_row(band)
    lanes = power_of_2(length)
    if lanes < ELEMENTS_OF_A_THREAD * FEWEST_THREADS:
        return 0
    computed = executed(kernel, beside=0).moved * lanes / length
    return int(min(computed, traffic([inductor.bytes_touched(kernel)])))


def registers_of_thread(kernel: Kernel) -> tuple[int, int]:
    """Return (registers of what a thread loads, how many it can have) for a kernel that keeps long rows.

    All loads come before anything is computed, in the code of Inductor's, and the assembler leaves them in their order.
    """
    rows = longest_rows([kernel])
    threads = min(max(rows.lanes // ELEMENTS_OF_A_THREAD, FEWEST_THREADS), MOST_THREADS)
    return int(rows.registers / threads), min(REGISTERS // threads, MOST_REGISTERS)
