"""Estimate what a kernel loses that has fewer programs than those before: with few rows, multiprocessors are idle."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from ... import inductor
from ...inductor.protocols import Kernel
from ..triton.configurations import WARP
from ..triton.profitability import (
    INSTRUCTIONS_A_BYTE,
    SHARES_OF_ONE,
    UNROLLED_REGISTERS,
    Row,
    block_of_rows_side_by_side,
    power_of_2,
    rows_and_warps,
)

if TYPE_CHECKING:
    import torch

    from .band import LiftedBand

#: Instructions of the code over those by their weights: 0.67 to 0.85 in five of eight fused kernels of one row that
#: were compiled for an H100, 0.43 to 1.27 in all.  Of kernels that compute values again (`benchmarks/recomputed.py`) it
#: is what their time gives: nine took 0.8 to 1.3 of the estimate.
EMITTED = 0.75

#: Warps of a block, at most, of which a multiprocessor has registers for two: norms of 512 channels take 98 a thread
#: (cubins).
WARPS_OF_TWO = 8

#: Elements of a program of Inductor's of few elements without a reduction.
ELEMENTS_OF_PROGRAM = 256


#: Elements of a thread in a step of a loop over a row: 2048 of them are for 16 warps.
ELEMENTS_OF_STEP = 4

#: Instructions by which lanes reduce, at most: of 16 bytes each, half of what a multiprocessor's cache of them holds.
#: On an H200 a loop whose lanes add up 49 GELUs by 8296 instructions a step, 38 us of execution, took 216 us with what
#: follows it, and 87 apart.
MOST_CODE = 4096


class Executed(NamedTuple):
    """Tell what a kernel of Inductor's executes.

    moved: bytes that a busy GPU moves in that time; programs: how many do it.
    """

    moved: float
    programs: int


def executed(kernel: Kernel, beside: float = inductor.BESIDE) -> Executed:
    """Return what a kernel of Inductor's executes, while it has its own loops.

    beside: elements that a thread has side by side, which wait for scattered accesses; 0 for what it computes alone.
    """
    return Executed(EMITTED * inductor.instructions_of(kernel, beside) / INSTRUCTIONS_A_BYTE, _programs(kernel))


def programs_of(band: LiftedBand, rows: int) -> int:
    """Return how many programs a band's kernel has with so many rows a block; 0 of one that reduces nothing."""
    reducing = [node for node in band.nodes if node.reduce_sizes]
    return -(-max((inductor.size_hint(prod(node.iter_sizes)) for node in reducing), default=0) // rows)


def lost_bytes(kernel: Kernel, programs: int, device: torch.device, apart: Iterable[Executed], unrolled: bool) -> int:
    """Return the bytes that a GPU moves in the time which a kernel of so many programs takes longer.

    programs: 0 where it does not matter; apart: of the kernels that it replaces; unrolled: lanes reduce by themselves
    what had a program for a few elements of each row, and has one for whole rows now.
    """
    if not programs:
        return 0
    processors = inductor.multiprocessors(device)
    lost = sum(max(one.moved * _longer(programs, one.programs, processors), 0) for one in apart)
    if unrolled:
        idle = max(processors - programs, 0)
        lost = max(lost, sum(inductor.bytes_touched(kernel).values()) * idle / (programs * SHARES_OF_ONE))
    return int(lost)


def code_of_thread(kernel: Kernel, band: LiftedBand) -> int:
    """Return the instructions by which a thread reduces its elements in lanes: of a row, or of a step of a loop."""
    elements = max(map(inductor.elements, inductor.loop_nodes(kernel)))
    block = _block(band, unrolled=True)
    if block:
        rows, warps = block
        mine = rows * power_of_2(elements_of_row(band)) / (warps * WARP)
    else:
        mine = ELEMENTS_OF_STEP
    return int(EMITTED * mine * inductor.instructions_of(kernel, 0) / max(elements, 1))


def _longer(programs: int, before: int, processors: int) -> float:
    """Return how much longer programs execute something than those before, as a multiple of a busy GPU's time."""
    busy, busy_before = (min(max(count, 1), processors) for count in (programs, before))
    return processors / busy - processors / busy_before


def rows_of_block(band: LiftedBand, unrolled: bool, side_by_side: bool = False) -> int:
    """Return how many rows a block of a band's kernel has: one, unless it keeps them.

    side_by_side: rows, not their elements, are contiguous, and a block has as many as a sector of memory needs.  That
    is no gain for sure where a multiprocessor has room for one such block only, which loads nothing while it computes.
    """
    block = _block(band, unrolled)
    if block and side_by_side:
        row, there = row_of_block(band, unrolled), programs_of(band, rows=1)
        larger = block_of_rows_side_by_side(block, power_of_2(elements_of_row(band)), row.registers, there)
        block = larger if larger[1] <= WARPS_OF_TWO else block
    return block[0] if block else 1


def _block(band: LiftedBand, unrolled: bool) -> tuple[int, int] | None:
    """Return (rows, warps) of a block of a kernel that keeps its rows; None for others, or by Inductor's rule."""
    if not band.in_registers or band.registers is None:
        return None
    elements = elements_of_row(band)
    return rows_and_warps(row_of_block(band, unrolled), power_of_2(elements), programs_of(band, rows=1), elements)


def elements_of_row(band: LiftedBand) -> int:
    """Return the elements of the longest row that a band's nodes reduce, for typical sizes; 1 where none reduces."""
    return max(inductor.size_hint(prod(node.reduce_sizes)) for node in band.nodes)


def row_of_block(band: LiftedBand, unrolled: bool) -> Row:
    """Return what the block of a kernel that keeps its rows is chosen by."""
    registers = max(band.registers or 0, band.state_registers)
    return Row(registers * (UNROLLED_REGISTERS if unrolled else 1), band.state_registers > 0, unrolled)


def _programs(kernel: Kernel) -> int:
    """Return about how many programs Inductor has for a kernel of few rows: one for each, or for some elements."""
    sizes = [(iterations, reduced) for iterations, reduced in map(inductor.node_sizes, inductor.loop_nodes(kernel))]
    rows = [inductor.size_hint(prod(iterations)) for iterations, reduced in sizes if reduced]
    elements = max(inductor.size_hint(prod(iterations)) for iterations, _ in sizes)
    return max(rows) if rows else -(-elements // ELEMENTS_OF_PROGRAM)
