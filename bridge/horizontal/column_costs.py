"""Compare a kernel over a tile of rows and columns with the kernels that it replaces: its blocks, and its time.

Time is told in bytes: those that an H100's memory moves meanwhile, 3.35 MB in a microsecond. What a GPU with faster
memory moves counts for less, while what it computes takes as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from .. import inductor
from ..inductor import columns as sums
from ..inductor import mixed, tiles
from ..inductor.columns import ColumnSum
from ..inductor.protocols import Kernel, LoopNode
from ..inductor.sizes import Extent, divided_up, of_each
from ..lowering.lift.times import bytes_in_cache
from ..lowering.triton.column_loads import (
    STAGES,
    columns_of_thread,
    rows_of_long_step,
    rows_of_step,
    stages_of_loop,
    warps_of_row,
    warps_of_step,
)
from ..lowering.triton.columns import MOST_PARTS, SUM_ELEMENTS, sum_block
from ..lowering.triton.profitability import (
    ELEMENTS_OF_THREAD,
    INSTRUCTIONS_A_BYTE,
    LAUNCH_BYTES,
    MOST_REGISTERS,
    REGISTERS,
    power_of_2,
    traffic,
)
from ..reasons import Reason, Unsupported
from .column_sums import SMALLEST_BLOCK, Tile, in_blocks_of

#: Bytes a second of an H100's memory, and the power of a faster memory's multiple by which kernels take less time: an
#: H200's is 1.43 times as fast, and norms and gates of 20 to 100 us take 0.74 to 0.80 of their time on an H100
#: (docs/results/torch_2_11.md), not 0.70. A pair of SiLU's gradient and its sum, of 49152 x 384, gains nothing there in
#: blocks of 128 rows, and 0.5 MB would be told by an H100's speed.
BANDWIDTH, FASTER_BY = 3.35e12, 2 / 3

#: Registers of a thread for its rows, at most, where it may have fewer rows: code has up to a fourth more than that.
MOST_THREAD_REGISTERS = 160

#: Programs for each multiprocessor, at least: a bit less than one, as the last block need not be there.
FEWEST_PROGRAMS = 0.9

#: Bytes that memory moves while a program waits for a row, 0.6 us of an H100, if no other is on its way: kernels of
#: `benchmarks/pairs.py` in blocks of 16 rows, two of which are loaded ahead, take 3 to 7 us more than their bytes (8 to
#: 36 us in all), in blocks of 8 with one ahead as much, and where both blocks have to take turns 12 us more than that.
BYTES_OF_A_ROW = 2.0e6

#: Bytes that memory moves while a block of `SUM_ELEMENTS` partial sums is added up, 3 us: kernels of
#: `benchmarks/pairs.py` take 1.4 us for one sum of 128 parts, 2.2 for three, 3.6 for one of 1028 and 10.5 for three. On
#: an H200, one sum of 784 parts takes 1.8 us in programs of 8 columns and 2.4 of 16, three take 4.7 and 6.6.
BYTES_OF_A_SUM = 1.0e7

#: Rows that Inductor's kernels which add up columns load at a time: those of `benchmarks/pairs.py` take 1 to 10 us more
#: than their bytes, for 128 rows.
ROWS_AT_A_TIME = 16

#: The same where rows are side by side in memory, as pixels are whose channels lie in planes.
ROWS_SIDE_BY_SIDE = 1024

#: Bytes that memory moves in the meantime, 0.3 us.
BYTES_OF_A_STEP = 1.0e6

#: Columns that a program of Inductor's has that adds them up. Those of so few lie one after the other in memory, and no
#: more steps wait than these: 1568 rows of 16 and 2048 of 64 (an H200) take 11.6 and 35 us, as long as their bytes, but
#: 1152 rows of 256 50 us, half as long again.
COLUMNS_OF_PROGRAM, STEPS_OF_WHOLE_ROWS = 64, 8

#: Warps with which a multiprocessor executes all instructions that it could, of those for one element after another:
#: OLMo 2's sines take 92 us in 8 warps, 56 in 16, and 42 in as many as there are room for (`benchmarks/pairs.py`).
ALL_BUSY = 24

#: Warps with which it executes all of the others: kernels of 96 to 384 columns (ConvNeXt, Swin) take about as long in 6
#: as in 24, twice as long in 3, and four times as long in 1.5 (`benchmarks/column_blocks.py`).
MOST_BUSY = 5

#: Schedulers of a multiprocessor, each with the instructions of a fourth of the warps.
SCHEDULERS = 4

#: Registers of each element of a program's rows: always; for each buffer that is loaded; for each sum; for each value
#: that is computed for one element after another.  So many programs run at a time as by the registers of their code
#: (cubins of 45 kernels of `benchmarks/pairs.py`, Triton 3.9), or less by a fourth. GLA's gradient in blocks of 256
#: rows, eight at a time, is told 208 a thread and has 168.
ELEMENT_REGISTERS, LOAD_REGISTERS, SUM_REGISTERS, SERIAL_REGISTERS = 3.0, 0.5, 1.5, 1.0

#: Warps of a program at most, of rows for which the runtime has one or two where it keeps one row; and those of a
#: multiprocessor that are few.
TUNED_WARPS, FEW_WARPS = 4, 4

#: Bytes that memory moves before the first rows of a kernel over a tile are there, 1.5 us.
BYTES_OF_FIRST_ROWS = 5.0e6

#: Elements of what a kernel of Inductor's reduces at a time, at most: of shorter rows it has several.
ELEMENTS_OF_ROWS = 4096

#: What share of the time is saved, at least, where as many launches are left: the bytes say it no better than that.
CLEAR_GAIN = 1 / 8

#: The same where there are fewer, of rows in slices, along which nothing is reduced: RWKV-6's gradient of five mixtures
#: was told 0.96 of its time, and took 1.05 of it, when few warps counted as spread evenly over the schedulers.
#: `sum_sum_b38468e7a324` of the corpus is told 0.98 since, and takes 0.81.
GAIN_OF_SLICES = 1 / 50


@dataclass(frozen=True)
class Work:
    """Hold what a kernel over a tile does.

    moved: bytes; executed: instructions of all lanes, of them serial: for one element of a thread after another;
    registers: of 32 bits, for each element; scattered: instructions that could be executed while scattered accesses are
    answered.
    """

    moved: int
    executed: float
    serial: float
    registers: float
    scattered: float


def blocks_to_try(tile: Tile, processors: int) -> list[int]:
    """Return the rows of a block, the fewest first; fewer programs leave fewer partial sums.

    Unsupported where multiprocessors would be idle.
    """
    rows = tile.typical_rows
    block = mixed.block_of_mixed_kernel(rows, processors)
    fewest = FEWEST_PROGRAMS * processors / tile.slices  # blocks of rows
    while rows / block < fewest and block > SMALLEST_BLOCK:
        block //= 2
    block = max(block // 2, SMALLEST_BLOCK)
    while divided_up(rows, block) > MOST_PARTS:
        block *= 2
    known = [block << more for more in range(5)]
    if any(one.groups != 1 for one in tile.sums):
        known = _inside_groups(known, tile)
    known = [block for block in known if tile.typical_blocks(block) >= fewest]
    if not known:
        detail = f"{rows} rows in blocks of {block} are too few for {processors} multiprocessors"
        if any(one.groups != 1 for one in tile.sums):
            size = _rows_of_group(tile)
            detail = f"no block of rows ends with each group of {size} and keeps {processors} multiprocessors busy"
        raise Unsupported(Reason.not_profitable, f"{_names(tile)}: {detail}")
    return _aligned(_in_own_steps(known, tile), tile)


def _in_own_steps(known: list[int], tile: Tile) -> list[int]:
    """Return the blocks of which programs compute other rows at a time than they would; all, where none do.

    Unsupported where all blocks are the same in the steps that Inductor's runtime chooses, or have few of long ones.
    """
    own = tile.own_step
    if own is None:
        return known
    if own == rows_of_long_step(tile.width):
        found = [block for block in known if stages_of_loop(block, own) == STAGES]
        detail = f"no block has more than a few times the {own} rows that are computed at a time"
    else:
        found = [block for block in known if rows_of_step(tile.width, block) > own]
        detail = f"no block has fewer than {own} rows computed at a time"
    if not found:
        raise Unsupported(Reason.not_profitable, f"{_names(tile)}: {detail}")
    return found


def _rows_of_group(tile: Tile) -> Extent:
    """Return the rows of a group: a number in whose multiples all of them end, or an expression that has none."""
    sizes = [of_each(one.rows, one.groups) for one in tile.sums]
    return next((size for size in sizes if not isinstance(size, int)), tile.group)


def _aligned(known: list[int], tile: Tile) -> list[int]:
    """Return the blocks whose partial sums begin at a multiple of 16 bytes, as all memory does that a kernel is given.

    Unsupported where none do, for any number of rows.
    """
    found = [block for block in known if tile.blocks(block) * tile.columns % 4 == 0 or len(tile.sums) == 1]
    if not found:
        detail = f"sums of {tile.columns} columns, one after the other, begin at no multiple of 16 bytes"
        raise Unsupported(Reason.not_liftable, f"{_names(tile)}: {detail}")
    return found


def fastest_first(tile: Tile, blocks: Sequence[int], processors: int) -> list[int]:
    """Return blocks of so many rows in the order of the time that they, and the sums of what they leave, take.

    Those that compute so many rows at a time that few programs have registers come last, as they leave fewer partial
    sums than others. Unsupported where the registers of all spill.
    """
    work = _work(tile.kernels, tile)
    cost = partial(_cost_with_parts, tile, work, processors)
    taken = {block: _registers_of_thread(tile, work, block) for block in blocks}
    fitting = sorted((block for block in blocks if taken[block] <= MOST_THREAD_REGISTERS), key=cost)
    others = [block for block in blocks if MOST_THREAD_REGISTERS < taken[block] <= MOST_REGISTERS]
    found = [*fitting, *sorted(others, key=cost)] or sorted(_tuned(tile, taken, processors), key=cost)
    if not found:
        detail = f"registers spill: {min(map(tile.step, blocks))} rows of {tile.width} columns or more at a time"
        raise Unsupported(Reason.not_profitable, f"{_names(tile)}: {detail}")
    return found


def _registers_of_thread(tile: Tile, work: Work, block: int) -> float:
    """Return the registers of a thread of a program with so many rows; 0 where it has as few as of a small block."""
    step = tile.step(block)
    if step <= rows_of_step(tile.width, SMALLEST_BLOCK):
        return 0
    return work.registers * step * power_of_2(tile.width) / (32 * warps_of_step(tile.width, step))


def _tuned(tile: Tile, registers: Mapping[int, float], processors: int) -> list[int]:
    """Return the blocks of few programs that have registers in the most warps that Inductor's runtime tries.

    registers: of a thread, by block, in the fewest warps. Of few programs of one warp, with steps of their own, memory
    is not busy: 288 of 1024 rows of 256 took 137 us in steps of four, and 97 in steps of 16 and more warps.
    """
    warps = warps_of_row(tile.width)
    spared = max(TUNED_WARPS // warps, 1)
    few = [block for block in registers if tile.typical_blocks(block) * tile.slices * warps < FEW_WARPS * processors]
    return [block for block in few if tile.own_step is None and registers[block] <= spared * MOST_REGISTERS]


def _inside_groups(known: list[int], tile: Tile) -> list[int]:
    """Return blocks of which each group has several, all its own: those of `known`, or else others about as large.

    Of others, the last block of a group may have fewer rows. And the one that is a group, where that is no larger than
    the largest.
    """
    group = tile.group
    parts = [block for block in known if group % block == 0 and block < group]
    largest = min(known[-1], group - 1)
    others = [b for b in range(SMALLEST_BLOCK, largest + 1, SMALLEST_BLOCK) if group % b == 0 and _in_steps(b, tile)]
    found = parts or [*sorted(others, key=lambda block: abs(block - known[0])), *_uneven(known, tile)]
    return [*found, group] if 1 < group <= known[-1] and _in_steps(group, tile) else found


def _in_steps(block: int, tile: Tile) -> bool:
    """Return True if a program goes through a block in whole steps, whose rows are a power of two, as Triton asks."""
    step = tile.step(block)
    return block % step == 0 and power_of_2(step) == step


def _uneven(known: list[int], tile: Tile) -> list[int]:
    """Return the blocks of which a group typically has several, the last with fewer rows, if all groups are alike."""
    return [] if tile.only_group is None else [b for b in known if b < inductor.size_hint(tile.only_group)]


def parts_bytes(tile: Tile, block: int) -> int:
    """Return the bytes of the partial sums of blocks of so many rows."""
    return tile.typical_blocks(block) * tile.columns * 4 * len(tile.sums_in_parts)


def check_worthwhile(tile: Tile, rows: Kernel, adding: list[Kernel], block: int, force: bool = False) -> str:
    """Return a line about a kernel over a tile, and those that add up what it leaves; Unsupported where it costs more.

    rows: a kernel of all that is over the tile. A kernel of rows that has its sums of PyTorch, and nothing else beside
    it, stays as it is.
    """
    known = _without_doubles(map(tile.inductors, [*tile.kernels, *tile.readers, *tile.ended]))
    emitted = [k for k in known if not all(map(mixed.done_by_mixed_kernel, k.get_nodes()))]
    by_torch, apart = _added_by_torch(tile), [one.after for one in tile.divided]
    launches = len(emitted) + launches_by_torch(tile)
    left = 1 + len(adding) + len(apart)
    parts = parts_bytes(tile, block)
    size = f"{parts / 2**20:.1f} MB of partial sums"
    if left > len(emitted):
        raise Unsupported(Reason.not_profitable, f"{_names(tile)}: no kernel less, with {size}")
    before = sum(_cost_before(tile, kernel) for kernel in emitted) + _beside_stores(tile)
    summed = _cost_of_what_is_left(tile, block) * len(by_torch) // len(tile.sums)
    before += max(summed, launches_by_torch(tile) * LAUNCH_BYTES)
    after = _in_time(parts, rows) + _cost_of_ends(tile) + _cost_of_band(tile, rows, block)
    after += max(_moved(adding), _cost_of_adding(tile, block), LAUNCH_BYTES) if adding else 0
    after += int(sum(one.steps for one in tile.wholes) * BYTES_OF_A_ROW)
    saved = before - after - sum(map(cost_of, apart))
    effect = "save" if saved > 0 else "lose"
    detail = f"{launches} launches become {left}, which {effect} the time of {abs(saved) / 2**20:.1f} MB, with {size}"
    if saved <= before * _least_gain(tile, launches - left) and not force:
        unclear = ", too little to be sure of" if saved > 0 else ""
        raise Unsupported(Reason.not_profitable, f"{_names(tile)}: {detail}{unclear}")
    columns = f" and {tile.width} columns" if tile.slices > 1 else ""
    return f"rows and columns: blocks of {block} rows{columns}: {detail}"


def _least_gain(tile: Tile, spared: int) -> float:
    """Return what share of the time has to be saved, where so many launches are spared."""
    if spared == 0:
        return CLEAR_GAIN
    return GAIN_OF_SLICES if tile.slices > 1 else 0


def launches_by_torch(tile: Tile) -> int:
    """Return the launches in which PyTorch adds up what mix-order kernels leave, and rounds it."""
    return launches_to_add_up(_added_by_torch(tile))


def launches_to_add_up(found: Iterable[ColumnSum]) -> int:
    """Return the launches in which PyTorch adds up what a mix-order kernel leaves of sums, and rounds it."""
    return sum(1 if _is_float(one) else 2 for one in found)


def _added_by_torch(tile: Tile) -> list[ColumnSum]:
    return [one for one in tile.sums if mixed.is_part_of_mixed_kernel(one.part)]


def _moved(kernels: list[Kernel]) -> int:
    """Return the bytes that an H100 moves in the time of what kernels move, at least one."""
    return _in_time(traffic(list(map(inductor.bytes_touched, kernels))), kernels[0])


def _in_time(moved: int, kernel: Kernel) -> int:
    """Return the bytes that an H100 moves while the GPU of a kernel moves so many: fewer if its memory is faster."""
    bandwidth = inductor.memory_bandwidth(inductor.device_of(kernel))
    return int(moved * (BANDWIDTH / max(bandwidth, BANDWIDTH)) ** FASTER_BY)


def _without_doubles(kernels: Iterable[Kernel]) -> list[Kernel]:
    return list({id(kernel): kernel for kernel in kernels}.values())


def _cost_before(tile: Tile, kernel: Kernel) -> int:
    """Return what a kernel of Inductor's costs, or did before its sums had two stages, or would with other loops."""
    if mixed.is_mixed(kernel):
        processors = inductor.multiprocessors(inductor.device_of(kernel))
        block = mixed.block_of_mixed_kernel(tile.typical_rows, processors)
        whole = replace(tile, slices=1)
        work, ahead = _work([kernel], whole), mixed.loads_rows_ahead()
        return _beside(whole, [kernel], block) + _cost_in_blocks(whole, work, processors, block, ahead)
    staged = next((one.cost for one in tile.staged if one.whole is kernel), None)
    cost = staged or cost_of(kernel, bytes_in_cache(kernel, tile.kernels)) + _cost_of_parts(tile, kernel)
    return min([cost, *(alone for other, alone in tile.alone if other is kernel)])


def _cost_of_parts(tile: Tile, kernel: Kernel) -> int:
    """Return the bytes that could be moved while a kernel that adds up columns goes from row to row."""
    nodes = inductor.loop_nodes(kernel)
    added = [one for one in tile.sums if any(one.part is node for node in nodes)]
    steps = max(map(_steps_of_part, added), default=0)
    return int(BYTES_OF_A_STEP * (min(steps, STEPS_OF_WHOLE_ROWS) if tile.columns <= COLUMNS_OF_PROGRAM else steps))


def _steps_of_part(one: ColumnSum) -> float:
    """Return how often a program of Inductor's that adds up columns loads rows, one after the other."""
    together = inductor.rows_are_together(one.tile, one.rows, one.columns)
    rows = inductor.size_hint(one.rows) / inductor.size_hint(one.parts)
    return rows / (ROWS_SIDE_BY_SIDE if together else ROWS_AT_A_TIME)


def cost_of(kernel: Kernel, in_cache: int = 0) -> int:
    """Return the bytes that a kernel moves, or could move in its time, if its instructions or a launch take longer.

    in_cache: bytes that it reads in half of the time.
    """
    executed = int(inductor.instructions_of(kernel) / INSTRUCTIONS_A_BYTE)
    return max(_moved([kernel]) - _in_time(in_cache // 2, kernel), executed, LAUNCH_BYTES)


def _beside_stores(tile: Tile) -> int:
    """Return the bytes around what the kernels that are divided store in large steps, which alone have tiles for it."""
    rows = max(ELEMENTS_OF_ROWS // tile.columns, 1)
    beside = [(one.whole, sum(inductor.bytes_beside_stores(one.whole, rows).values())) for one in tile.divided]
    return sum(_in_time(size, kernel) for kernel, size in beside)


def _cost_of_band(tile: Tile, band: Kernel, block: int) -> int:
    """Return the bytes that a kernel over a tile moves, or could move in the time that it takes.

    What its blocks leave is not among them.
    """
    processors = inductor.multiprocessors(inductor.device_of(band))
    return _beside(tile, [band], block) + _cost_in_blocks(tile, _work([band], tile), processors, block)


def _beside(tile: Tile, kernels: Iterable[Kernel], block: int) -> int:
    """Return the bytes around what kernels read and write, of the rows that a program has at a time."""
    rows = tile.step(block)
    return sum(_in_time(inductor.bytes_beside(kernel, rows), kernel) for kernel in kernels)


def _work(kernels: Sequence[Kernel], tile: Tile) -> Work:
    """Return what one kernel over a tile has to do for others.

    A row has as many lanes as the next power of two, and all of them compute.
    """
    touched: dict[str, int] = {}
    for kernel in kernels:
        for name, size in inductor.bytes_touched(kernel, tile.names).items():
            touched[name] = max(touched.get(name, 0), size)
    nodes = [node for kernel in kernels for node in inductor.loop_nodes(kernel)]
    in_tile = [node for node in nodes if not tiles.covers_rows(node, tile.rows)]
    lanes = tile.typical_rows * tile.slices * power_of_2(tile.width)
    executed, serial = inductor.instructions(in_tile, 0), sum(inductor.serial_instructions(in_tile))
    scattered, registers = _scattered(in_tile, tile), _registers(in_tile, tile)
    moved = _in_time(sum(touched.values()), kernels[0])
    return Work(moved, executed * lanes, serial * lanes, registers, scattered * lanes)


def _scattered(nodes: Sequence[LoopNode], tile: Tile) -> float:
    """Return the instructions that could be executed for an element while scattered accesses are answered."""
    step = rows_of_step(tile.width, SMALLEST_BLOCK)
    beside = min(step * columns_of_thread(tile.width), ELEMENTS_OF_THREAD)
    bodies = [inductor.node_body(node) for node in nodes if not sums.is_column_part(node)]
    bodies += [one.tile for one in tile.sums if any(one.part is node for node in nodes)]
    return inductor.instructions_along_rows(bodies, tile.rows, tile.columns, beside, step)


def _registers(nodes: Sequence[LoopNode], tile: Tile) -> float:
    """Return the registers of each element of a tile that one kernel of the nodes has."""
    loaded = [name for name in inductor.buffers_loaded(nodes) if inductor.buffer_numel(name) != tile.rows]
    serial, added = len(inductor.serial_instructions(nodes)), sum(map(sums.is_column_part, nodes))
    return ELEMENT_REGISTERS + LOAD_REGISTERS * len(loaded) + SUM_REGISTERS * added + SERIAL_REGISTERS * serial


def _cost_with_parts(tile: Tile, work: Work, processors: int, block: int) -> int:
    alone = _beside(tile, tile.kernels, block) + _cost_in_blocks(tile, work, processors, block)
    in_blocks = in_blocks_of(tile, block)
    return alone + _cost_of_what_is_left(in_blocks, block) + _cost_of_ends(in_blocks)


def _cost_of_ends(tile: Tile) -> int:
    """Return the bytes that could be moved while the sums are written that programs add up to their end."""
    made = [(kernel, sum(map(inductor.buffer_bytes, inductor.buffers_made(kernel)))) for kernel in tile.ended]
    return sum(_in_time(size, kernel) for kernel, size in made)


def _cost_of_what_is_left(tile: Tile, block: int) -> int:
    """Return the bytes that could be moved while partial sums are written, and added up."""
    parts = _in_time(parts_bytes(tile, block), tile.kernels[0])
    return parts + max(parts, _cost_of_adding(tile, block))


def _cost_of_adding(tile: Tile, block: int) -> int:
    """Return the bytes that could be moved while one program adds up what the blocks of a few columns leave."""
    blocks, added = tile.typical_blocks(block), tile.sums_in_parts
    parts = max((blocks // inductor.size_hint(one.groups) for one in added), default=1)
    columns, _ = sum_block(parts, tile.columns)
    return int(len(added) * columns * power_of_2(parts) / SUM_ELEMENTS * BYTES_OF_A_SUM)


def _cost_in_blocks(tile: Tile, work: Work, processors: int, block: int, ahead: bool = True) -> int:
    """Return the bytes that could be moved in the time of a kernel over a tile.

    A program has one row after another, and those for which there are no registers begin when the first have ended. The
    multiprocessor with the most programs ends last. ahead: whether rows may be loaded while others are computed.
    """
    step, lanes = tile.step(block), power_of_2(tile.width)
    programs = tile.typical_blocks(block) * tile.slices / processors
    resident = max(int(REGISTERS / (work.registers * step * lanes)), 1)
    in_turn = ceil(programs / resident) * block / step
    stages = stages_of_loop(block, step) if ahead else 1
    waits = in_turn * BYTES_OF_A_ROW / stages + BYTES_OF_FIRST_ROWS
    of_program = warps_of_step(tile.width, step)
    warps, most = min(programs, resident) * of_program, _longest_queue(programs, of_program)
    executed = (work.executed - work.serial) * max(most, MOST_BUSY / warps) + work.serial * max(most, ALL_BUSY / warps)
    # What is scattered comes row by row, and nothing else is on its way: a kernel that takes moving means of series
    # from their gradient took 121 us, and was told 74, of which what is scattered has 12.
    return int(max(work.moved, executed / INSTRUCTIONS_A_BYTE) + work.scattered / INSTRUCTIONS_A_BYTE + waits)


def _longest_queue(programs: float, warps: int) -> float:
    """Return how many times its share the scheduler of a multiprocessor executes that has the most to do.

    programs: that each multiprocessor has, of so many warps. A warp stays with its scheduler: nine programs of one warp
    are two, two, two and three. 1176 programs of one warp (ConvNeXt's GELU with the sum of its gradient, an H200) took
    120 us, 1.3 times what their instructions take, 1176 of four warps (MLP-Mixer's) 95, and were told to take 93 each.
    """
    return ceil(ceil(programs) * warps / SCHEDULERS) * SCHEDULERS / (programs * warps)


def _is_float(one: ColumnSum) -> bool:
    return one.total.node.get_dtype().itemsize == 4


def _names(tile: Tile) -> str:
    return ", ".join(kernel.get_name() for kernel in tile.kernels)
