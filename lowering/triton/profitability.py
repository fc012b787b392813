"""Decisions about a fused kernel that rest on its footprint."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple, SupportsInt

from .configurations import ENOUGH_BLOCKS, FEWEST_ELEMENTS

#: 32-bit registers of what one band iteration reduces, up to which a persistent kernel is chosen: half of the
#: 65536 that a multiprocessor has; the rest is left to the epilogue.  docs/results.md has the measurement.
MAX_ROW_REGISTERS = 32768

#: The same where one kernel of Inductor's stages is replaced, which reads a row a second time from the L2 cache: up to
#: 11264 registers take 0.64 to 0.98 of its time, 22528 take 1.09 (docs/results.md).
MAX_STAGED_REGISTERS = 12288


def fits_in_registers(registers: int | None) -> bool:
    """Return True if a kernel can load a row once and keep it; a symbolic or empty row cannot."""
    return registers is not None and 0 < registers <= MAX_ROW_REGISTERS


def power_of_2(size: SupportsInt) -> int:
    """Return the smallest power of two that is not below a size: the lanes of a block for a row of so many elements."""
    return 1 << (int(size) - 1).bit_length()


#: Registers of 32 bits of its row that each thread of a block holds: two loads of 16 bytes.  Blocks of so much are
#: within 2% of the fastest on an H100 in most measurements, and never 6% from it (docs/results.md).  Where there are
#: many, they have the same rows in fewer warps (`_with_fewer_warps`).
THREAD_REGISTERS = 8
BLOCK_WARPS = 4

#: Elements of a row that a thread has at least, while it holds no more registers than that: 16 bytes of 16-bit numbers,
#: which one instruction loads; and where it has fewer than `FEWEST_ELEMENTS`, while it holds at most twice as many.
#: What is computed once for a row, as its place in a window, each of its threads computes, and some rows take many
#: registers for one element: a sum of three tensors, normalised, of 96 elements, took 93 us in blocks of 4 rows on an
#: H100, and Inductor's blocks of 8 or 32 took 51; the kernels of graph attention with rows of 1024 elements took 247 us
#: with 8 warps, and 198 with 4 (docs/results.md, "Blocks of a fused kernel").
#: Few blocks, as in decoding, leave multiprocessors idle: longer rows keep their threads there.
ELEMENTS_OF_A_LOAD = 8
MOST_THREAD_REGISTERS = 16
SHORTEST_ROWS = 256

#: Share of a row's lanes that have elements, at least, so that each of its warps has something to do; and lanes that
#: one warp has where they are fewer. Rows of 1030 elements have 2048 lanes: a norm of them took 32 us in eight warps on
#: an H200, and 20 or 21 in one, two or four (docs/results.md, "Fewer warps").
MOSTLY_FILLED = 2 / 3
LANES_OF_ONE_WARP = 1024

#: A longer row has a block for itself, with the warps of Inductor's heuristic.
LONGEST_IN_BLOCKS = 2048


#: Of rows whose lanes keep several elements for what they reduce, a longer one has so many registers a thread: with the
#: one warp of Inductor's heuristic for 1024 lanes, softmaxes of 8 elements each spilled 322 words.
STATE_REGISTERS = 64
MOST_WARPS = 16

#: Where lanes only add up, a longer row of so many lanes has four lanes a thread, up to these warps: the fastest on an
#: H100.  For some rows Inductor's heuristic has one warp, which spilled 978 words of a logsumexp of products.
LANES_OF_SUMS = 512
LANES_OF_WARP = 4 * 32
WARPS_OF_SUMS = 8


class Row(NamedTuple):
    """Tell what a row takes, in registers of 32 bits.

    keeps_states: its lanes keep several elements; unrolled: or they add them up.
    """

    registers: int
    keeps_states: bool = False
    unrolled: bool = False


def rows_and_warps(row: Row, lanes: int, there: int, elements: int) -> tuple[int, int] | None:
    """Return (rows a block, warps a block) for a persistent kernel of such rows.

    lanes: of a row in one vector of the kernel, a power of 2: fewer than the row's where its loop is unrolled;
    elements: how many of them have one; there: rows that there are, about.  No two threads of a block have the same
    element.  None: Inductor's.
    """
    registers = row.registers
    if row.keeps_states and registers > LONGEST_IN_BLOCKS:
        warps = min(max(power_of_2(-(-registers // (32 * STATE_REGISTERS))), BLOCK_WARPS), MOST_WARPS)
        return max(1, 32 * warps // lanes), warps
    if row.unrolled and registers > LONGEST_IN_BLOCKS and lanes >= LANES_OF_SUMS:
        return 1, min(lanes // LANES_OF_WARP, WARPS_OF_SUMS)
    if not 0 < registers <= LONGEST_IN_BLOCKS:
        return None
    warps = BLOCK_WARPS * max(1, -(-registers // (BLOCK_WARPS * 32 * THREAD_REGISTERS)))
    fitting = max(1, BLOCK_WARPS * 32 * THREAD_REGISTERS // registers)
    rows = max(1 << (fitting.bit_length() - 1), 32 * warps // lanes)
    if row.keeps_states or row.unrolled or (registers > SHORTEST_ROWS and there < rows * ENOUGH_BLOCKS):
        return rows, warps
    rows, warps = _with_loads(rows, warps, registers, lanes)
    return (rows, warps) if there < rows * ENOUGH_BLOCKS else _with_fewer_warps(rows, warps, registers, lanes, elements)


def _with_fewer_warps(rows: int, warps: int, registers: int, lanes: int, elements: int) -> tuple[int, int]:
    """Return (rows, warps) of a block of which there are many, with no more warps than keep its rows.

    Several warps of one row wait for each other when they reduce, and those of lanes without elements do nothing else.
    A row is in one warp where that loads all of it at once.
    """
    if elements >= MOSTLY_FILLED * lanes or lanes <= 32 * gcd(elements, ELEMENTS_OF_A_LOAD):
        return rows, max(1, min(warps, power_of_2(-(-rows * registers // (32 * MOST_THREAD_REGISTERS)))))
    rows = min(rows, max(1, LANES_OF_ONE_WARP // lanes))
    needed = max(rows * lanes // LANES_OF_ONE_WARP, -(-rows * registers // (2 * 32 * MOST_THREAD_REGISTERS)))
    return rows, min(warps, power_of_2(max(1, needed)))


def _with_loads(rows: int, warps: int, registers: int, lanes: int) -> tuple[int, int]:
    """Return (rows, warps) of a block, or fewer warps or more rows, for each thread to have elements enough."""
    while True:
        each, taken = rows * lanes / (32 * warps), rows * registers / (32 * warps)
        most = MOST_THREAD_REGISTERS * (1 if each >= FEWEST_ELEMENTS else 2)
        if each >= ELEMENTS_OF_A_LOAD or 2 * taken > most:
            return rows, warps
        rows, warps = (rows, warps // 2) if warps > BLOCK_WARPS else (2 * rows, warps)


#: Lanes of a row for which Inductor's heuristic has 16 warps, and those for one with few elements: on an H200 rows of
#: 9000 or 10000 took 101 -> 82 us for an RMS norm, 117 -> 111 for a layer norm, 106 -> 87 and 84 -> 66 for softmaxes.
LANES_OF_MOST_WARPS, WARPS_OF_FEW_ELEMENTS = 16384, 8

#: For shorter ones it has 8. Of a kernel that loads one buffer's rows, each of four has more loads on its way: on an
#: H200 softmaxes of 2500 to 7000 elements took 0.72 to 0.95 of the time, their logarithms 0.66 to 0.89, layer norms
#: 0.70 to 1.01. More registers than these a thread leave no room for a second block, or spill: the gradient of a
#: Jensen-Shannon divergence of 8192 took 190 us, and 120 in 16 warps (docs/results.md, "Warps of long rows").
WARPS_OF_LONG_ROWS, MOST_ROW_REGISTERS = 8, 48


class KeptRow(NamedTuple):
    """Tell what a row takes in a kernel of Inductor's that keeps it.

    registers: of 32 bits; buffers: whose rows it loads, or makes for itself.
    """

    registers: int
    buffers: int


def block_of_long_row(row: KeptRow, lengths: Sequence[int], there: int) -> tuple[int, int] | None:
    """Return (rows a block, warps a block) for a long row that a kernel of Inductor's keeps; None for its own choice.

    row: what one takes; lengths: of the loops over it; there: rows that there are, about.
    """
    lanes, elements = prod(map(power_of_2, lengths)), prod(lengths)
    if there < ENOUGH_BLOCKS:
        return None
    if lanes >= LANES_OF_MOST_WARPS:
        return (1, WARPS_OF_FEW_ELEMENTS) if elements < MOSTLY_FILLED * lanes else None
    if row.registers > MOST_ROW_REGISTERS * 32 * WARPS_OF_LONG_ROWS:
        return 1, MOST_WARPS
    return (1, BLOCK_WARPS) if row.buffers == 1 else None


#: Rows of a block, at least, where it is rows and not their elements that are side by side in memory: as many as a
#: sector has, 32 bytes of 16-bit numbers, twice; while a thread of the most warps has no more than so many elements.
ROWS_SIDE_BY_SIDE = 32
ELEMENTS_OF_A_THREAD = 32

#: Such a block has the fewest warps that its rows have room in, and at least so many: a thread has the values of eight
#: rows, which it computes for each of its elements anew if it has one of each row only.  Longer rows have so many
#: registers a thread.  On an H200 33 functions took 0.87 of their time with 32 elements a thread and at least four
#: warps (docs/results.md, "Warps of rows side by side").
FEWEST_WARPS = 2
REGISTERS_OF_A_LONG_ROW = 64

#: Lanes of a short row: where there are many, a block has twice as many, and a thread more tiles of them in registers.
#: So it has of longer ones that take no more registers than that, as where one buffer is loaded: rows of 128 elements
#: scaled to two bits took 58.6 -> 40.8 us on an H200, norms of 96 and 128 of them 8.7 -> 8.2 and 9.4 -> 8.4.
SHORT_ROW_LANES, REGISTERS_OF_A_SHORT_ROW = 64, 128


def block_of_rows_side_by_side(block: tuple[int, int], lanes: int, registers: int, there: int) -> tuple[int, int]:
    """Return (rows a block, warps a block) for rows of which a sector of memory has an element each.

    block: the same for rows whose elements are contiguous; lanes, registers: of a row; there: rows that there are,
    about.  With few rows a block most of each sector that is loaded is another block's.
    """
    taken, many = max(lanes, registers), 2 * ROWS_SIDE_BY_SIDE
    short = (lanes <= SHORT_ROW_LANES or taken <= REGISTERS_OF_A_SHORT_ROW) and there >= many * ENOUGH_BLOCKS
    fitting = max(1, MOST_WARPS * 32 * ELEMENTS_OF_A_THREAD // taken)
    rows = max(block[0], min(many if short else ROWS_SIDE_BY_SIDE, 1 << (fitting.bit_length() - 1)))
    most = REGISTERS_OF_A_SHORT_ROW if short else REGISTERS_OF_A_LONG_ROW
    fewest = min(max(FEWEST_WARPS, rows * lanes // (32 * ELEMENTS_OF_A_THREAD)), BLOCK_WARPS)
    least = fewest if short else max(block[1], BLOCK_WARPS)
    return rows, min(max(least, power_of_2(-(-rows * taken // (32 * most)))), MOST_WARPS)


def block_of_kept_rows(row: Row, lengths: Sequence[int], there: int, side_by_side: bool) -> tuple[int, int] | None:
    """Return (rows a block, warps a block) for a kernel that Bridge fused and that keeps rows; None for Inductor's.

    row: what one takes; lengths: of the loops over it; there: rows that there are, about; side_by_side: rows, not their
    elements, are contiguous.
    """
    lanes, elements = prod(map(power_of_2, lengths)), prod(lengths)
    block = rows_and_warps(row, lanes, there, elements)
    return block_of_rows_side_by_side(block, lanes, row.registers, there) if block and side_by_side else block


#: The same in the place of one, where each lane adds up several elements and has their loads in flight: with half as
#: many lanes, blocks took 0.90 to 1.00 of the time on an H100 (sums of 8 to 128 rows of 64 to 2048 elements, then
#: their RMS norm: 24.8 us and not 27.5 for 8192 x 64 x 64, 92.3 and not 94.5 for 2048 x 64 x 1024).
UNROLLED_REGISTERS = 2

#: Where one multiprocessor works alone, it moves this many times what it gets of memory while all work.  On an H100
#: 0.5 MB took one block 3.5 us longer than 33 KB, which is six times.
SHARES_OF_ONE = 4

#: Instructions of a lane that a GPU executes while a byte comes from memory: four fifths of an H100's 132
#: multiprocessors with four schedulers for 32 lanes each, at 1.755 GHz, and 3.35 TB/s.
INSTRUCTIONS_A_BYTE = 7.1

#: Elements that a thread has side by side where a kernel's instructions count: of 16 bits, one instruction loads them.
ELEMENTS_OF_THREAD = 8

#: Bytes that loads get from the caches of all multiprocessors while a byte comes from memory: an H100's give 16.5 TB/s
#: to ReLU below a pooling of 3 x 3, in float32 (`benchmarks/recomputed.py`).
CACHE_BYTES_A_BYTE = 5

#: Bytes of the largest buffer that is read from the L2 cache after a kernel has written it: half of an H100's. A column
#: sum of 17 MB that GELU's gradient has written takes 4.2 us, of 34 MB that two others have written 20.
CACHED_BYTES = 25e6

#: Registers of a multiprocessor, and those that a thread can have.
REGISTERS, MOST_REGISTERS = 1 << 16, 255

#: Bytes that a GPU moves in the time of a launch: 2 us in a graph on an H100, where 256 MB take 100 us.
LAUNCH_BYTES = 5 << 20


def traffic(kernels: list[dict[str, int]]) -> int:
    """Return the bytes that kernels move, each from the bytes of the buffers that it touches."""
    return sum(sum(touched.values()) for touched in kernels)


def traffic_of_one(kernels: list[dict[str, int]]) -> int:
    """Return the bytes that one kernel in their place would move, which touches each buffer once.

    kernels: without the buffers that nothing else would touch.
    """
    return sum(max(k.get(name, 0) for k in kernels) for name in {name for k in kernels for name in k})
