"""Kernels of a tile's rows and sums of its columns that may be one: candidates, legality, what it costs.

The kernel's programs have a block of rows each. Every element of the tile is one lane's, from its first load to the
partial sum of its column: what a node stores, another may read in the same row and column, or from its row's scalars.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd

from .. import inductor
from ..affine import ops_table
from ..inductor import columns as sums
from ..inductor import mixed, tiles
from ..inductor.columns import ColumnSum
from ..inductor.protocols import Kernel, LoopNode, Schedule
from ..lowering.triton.columns import MOST_PARTS, SUM_ELEMENTS, rows_of_step, sum_block, warps_of_row
from ..lowering.triton.profitability import LAUNCH_BYTES, power_of_2
from ..reasons import Reason, Unsupported
from ..support.error_boundary import try_step
from .column_groups import Staged
from .column_waits import Divided
from .independence import find_obstacle, positions_of, stay_in_order

#: Kernels between one and the next of those that are tried together.
WINDOW = 16

#: Columns of the widest tile: a program holds a whole row.
MOST_COLUMNS = 16384

#: Buffers that a program may read: with more, registers spill (pytorch/pytorch#179423).
MOST_READ = 10

#: Programs for each multiprocessor, at least: a bit less than one, as the last block need not be there.
FEWEST_PROGRAMS = 0.9

#: Bytes that memory moves while a program goes from one of its rows to the next, 0.3 us of an H100: kernels of
#: `benchmarks/pairs.py` in blocks of 16 rows take 3 to 7 us more than their bytes (8 to 36 us in all).
BYTES_OF_A_ROW = 1.0e6

#: Bytes that memory moves while a block of `SUM_ELEMENTS` partial sums is added up, 3 us: kernels of
#: `benchmarks/pairs.py` take 1.4 us for one sum of 128 parts, 2.2 for three, 3.6 for one of 1028 and 10.5 for three.
BYTES_OF_A_SUM = 1.0e7

#: Rows that Inductor's kernels which add up columns load at a time: those of `benchmarks/pairs.py` take 1 to 10 us more
#: than their bytes, for 128 rows.
ROWS_AT_A_TIME = 16

#: Warps with which a multiprocessor executes half of the instructions that it could: `benchmarks/column_blocks.py` has
#: 91 us for 8 warps and 56 for 16 where instructions take 42, and 29 and 26 where they take 18.
HALF_BUSY = 7

#: Warps that run at a time on a multiprocessor, each thread with 64 registers.
RESIDENT_WARPS = 32

#: Instructions of a lane that a GPU executes while a byte comes from memory: four fifths of an H100's 132
#: multiprocessors with four schedulers for 32 lanes each, at 1.755 GHz, and 3.35 TB/s.
INSTRUCTIONS_A_BYTE = 7.1

#: Elements of what a kernel of Inductor's reduces at a time, at most: of shorter rows it has several.
ELEMENTS_OF_ROWS = 4096

#: What share of the time is saved, at least, where as many launches are left: the bytes say it no better than that.
CLEAR_GAIN = 1 / 8

#: Rows of a block, at least, so that it can have several in a tile.
SMALLEST_BLOCK = 4


@dataclass(frozen=True)
class Tile:
    """Kernels over one tile of rows and columns.

    kernels: in the schedule's order; sums: of columns; readers: kernels that add up the parts of the sums, and what
    follows on the result alone; divided: Inductor's kernels of which only a part is among `kernels`; staged: those of
    which the rest is among `readers`.
    """

    rows: int
    columns: int
    kernels: list[Kernel]
    sums: list[ColumnSum]
    readers: list[Kernel]
    divided: tuple[Divided, ...] = ()
    staged: tuple[Staged, ...] = ()

    @property
    def names(self) -> set[str]:
        """Operations of the kernels over the tile."""
        return set().union(*map(inductor.operation_names, self.kernels))

    def inductors(self, kernel: Kernel) -> Kernel:
        """Return a kernel, or the one of Inductor's that it is a part of."""
        for staged in self.staged:
            if kernel is staged.first or kernel is staged.second:
                return staged.whole
        return next((one.whole for one in self.divided if one.before is kernel), kernel)

    @property
    def group(self) -> int:
        """Return a number of rows in whose multiples all groups end that have sums of their own."""
        return gcd(*(one.rows // one.groups for one in self.sums))


def adds_up_columns(kernel: Kernel) -> bool:
    """Return True for a kernel of loops that adds up columns, of which there are several, in two stages."""
    return _is_of_loops(kernel) and any(numbers is None or numbers[1] > 1 for numbers in _extents(kernel))


def _extents(kernel: Kernel) -> set[tuple[int, int] | None]:
    """Return (rows, columns) of the tiles whose columns a kernel adds up in two stages; None for symbols."""
    return {sums.row_and_column_numbers(node) for node in _parts(kernel)}


def _is_of_loops(kernel: Kernel) -> bool:
    if mixed.is_mixed(kernel):
        return not inductor.mutates_or_aliases(kernel)
    return find_obstacle(kernel) is None


def find_tile(schedule: Schedule, seed: int, divided: Divided | None = None, staged: Sequence[Staged] = ()) -> Tile:
    """Return the tile of the kernel at `seed`, with all kernels that may be one with it.

    divided: a kernel that was divided for it; staged: kernels whose sums have two stages for it.

    Unsupported where it has none, or its sums are not of the kind that a kernel of rows can add up.
    """
    rows, columns = only_extents(schedule[seed])
    members = [seed]
    for position in _around(schedule, seed):
        fits = partial(_joins, schedule, members, position, rows, columns)
        if try_step(fits, False, schedule[position].get_name()):
            members = sorted([*members, position])
    kernels = [schedule[p] for p in members]
    found = [sums.column_sum(node) for kernel in kernels for node in _parts(kernel)]
    if not any(not sums.is_column_part(node) for kernel in kernels for node in inductor.loop_nodes(kernel)):
        raise Unsupported(Reason.no_common_band, f"{schedule[seed].get_name()}: no kernel of the same rows")
    joined = () if divided is None or not any(kernel is divided.before for kernel in kernels) else (divided,)
    return Tile(rows, columns, kernels, found, _readers(schedule, found), joined, _members_of(staged, kernels))


def _members_of(staged: Sequence[Staged], kernels: list[Kernel]) -> tuple[Staged, ...]:
    return tuple(one for one in staged if any(kernel is one.first for kernel in kernels))


def only_extents(kernel: Kernel) -> tuple[int, int]:
    """Return (rows, columns) of the tile whose columns a kernel adds up in two stages; Unsupported without one."""
    extents = _extents(kernel)
    numbers, *others = extents
    name = kernel.get_name()
    if None in extents:
        raise Unsupported(Reason.dynamic_extent, f"{name}: a size of the columns that it adds up is a symbol")
    if numbers is None or others or not 1 < numbers[1] <= MOST_COLUMNS:
        raise Unsupported(Reason.extents_do_not_agree, f"{name}: no program has a whole row of its columns")
    return numbers


def kernels_around(schedule: Schedule, kernel: Kernel) -> list[Kernel]:
    """Return a kernel and those that may be near enough to be one with it."""
    (position,) = positions_of(schedule, [kernel])
    return list(schedule[max(position - WINDOW, 0) : position + WINDOW + 1])


def _parts(kernel: Kernel) -> list[LoopNode]:
    return [node for node in inductor.loop_nodes(kernel) if sums.is_column_part(node)]


def _around(schedule: Schedule, seed: int) -> list[int]:
    """Return the positions around one, those that come before it first, the nearest first.

    Twice: a kernel may share nothing with the seed, but with another that has joined it.
    """
    before = list(range(seed - 1, max(seed - WINDOW, 0) - 1, -1))
    after = list(range(seed + 1, min(seed + WINDOW, len(schedule) - 1) + 1))
    return [*before, *after] * 2


def _joins(schedule: Schedule, members: list[int], position: int, rows: int, columns: int) -> bool:
    """Return True if a kernel may be one with others over a tile; _parts of its are sums of the same tile."""
    kernel, others = schedule[position], [schedule[p] for p in members]
    if position in members or not _is_of_loops(kernel) or not _goes_over(kernel, rows, columns):
        return False
    if inductor.device_of(kernel) != inductor.device_of(others[0]):
        return False
    if not any(_share_tile(kernel, other, rows * columns) for other in others):
        return False
    both = [schedule[p] for p in sorted([*members, position])]
    return (
        len(_inputs(both)) <= MOST_READ
        and stay_in_order(schedule, [{*members, position}])
        and all(map(sums.column_sum, _parts(kernel)))
        and all(_lanes_agree(one, other, rows, columns) for one in both for other in both if one is not other)
    )


def _goes_over(kernel: Kernel, rows: int, columns: int) -> bool:
    """Return True if all nodes of a kernel go over the tile or its rows, or add up its columns."""
    for node in inductor.loop_nodes(kernel):
        if sums.is_column_part(node):
            if sums.row_and_column_numbers(node) != (rows, columns):
                return False
        elif not (tiles.covers_tile(node, rows, columns) or tiles.covers_rows(node, rows)):
            return False
        if any(kind.startswith((ops_table.GUARDED, ops_table.SEGMENTED)) for kind in tiles.reduction_types(node)):
            return False
    return True


def _share_tile(one: Kernel, other: Kernel, elements: int) -> bool:
    """Return True if both use a buffer as large as the tile."""
    touched = [inductor.buffers_read(k) | inductor.buffers_written(k) for k in (one, other)]
    return any(inductor.size_hint(inductor.buffer_numel(name)) >= elements for name in touched[0] & touched[1])


def _inputs(kernels: list[Kernel]) -> set[str]:
    """Return the buffers that kernels read and none of them makes."""
    made = set().union(*map(inductor.buffers_made, kernels))
    return set().union(*map(inductor.buffers_read, kernels)) - made


def _lanes_agree(one: Kernel, other: Kernel, rows: int, columns: int) -> bool:
    """Return True if each lane of `other` reads of what `one` writes only what its own row and column have written."""
    written = inductor.buffers_made(one)
    if any(inductor.storage_of(name) in inductor.buffers_read(other) for name in written):
        return False
    for reader in inductor.loop_nodes(other):
        for name in inductor.buffers_read(reader) & written:
            if not _reads_own(reader, one.scheduler.name_to_buf[name].defining_op, name, rows, columns):
                return False
    return True


def _reads_own(reader: LoopNode, writer: LoopNode | None, name: str, rows: int, columns: int) -> bool:
    if writer is None or sums.is_column_part(writer):
        return False
    if sums.is_column_part(reader):
        return tiles.agree(writer, sums.column_sum(reader).tile, name, rows, columns)
    return tiles.agree(writer, inductor.node_body(reader), name, rows, columns)


def _readers(schedule: Schedule, found: list[ColumnSum]) -> list[Kernel]:
    """Return the kernels that add up the parts of sums, and those that read only what these make."""
    kernels = schedule[0].scheduler.name_to_fused_node
    adding = [kernels[one.total.get_name()] for one in found]
    wanted = [kernel for kernel in schedule if any(kernel is other for other in adding)]
    made = set().union(*map(inductor.buffers_made, wanted))
    sizes = {one.groups * one.columns for one in found}
    for kernel in schedule:
        known = any(kernel is other for other in wanted)
        if not known and find_obstacle(kernel) is None and any(_is_epilogue(kernel, made, size) for size in sizes):
            wanted.append(kernel)
    return wanted


def _is_epilogue(kernel: Kernel, made: set[str], size: int) -> bool:
    """Return True for a kernel of the elements of a sum that reads a sum, and nothing that another kernel makes."""
    awaited = inductor.buffers_awaited(kernel)
    nodes = inductor.loop_nodes(kernel)
    return bool(awaited) and awaited <= made and all(tiles.covers_rows(node, size) for node in nodes)


# ---------------------------------------------------------------------------------------------------------
# What it costs
# ---------------------------------------------------------------------------------------------------------


def blocks_to_try(tile: Tile, processors: int) -> list[int]:
    """Return the rows of a block, the fewest first; fewer programs leave fewer partial sums.

    Unsupported where multiprocessors would be idle.
    """
    block = mixed.block_of_mixed_kernel(tile.rows, processors)
    while tile.rows / block < FEWEST_PROGRAMS * processors and block > SMALLEST_BLOCK:
        block //= 2
    block = max(block // 2, SMALLEST_BLOCK)
    while -(-tile.rows // block) > MOST_PARTS:
        block *= 2
    known = [block << more for more in range(5)]
    if any(one.groups > 1 for one in tile.sums):
        known = _inside_groups(known, tile.group)
    known = [block for block in known if tile.rows / block >= FEWEST_PROGRAMS * processors]
    if len(tile.sums) > 1:  # memory that a kernel is given begins at a multiple of 16 bytes
        known = [block for block in known if -(-tile.rows // block) * tile.columns % 4 == 0]
    if not known:
        detail = f"{tile.rows} rows in blocks of {block} are too few for {processors} multiprocessors"
        if tile.group < tile.rows:
            detail = (
                f"no block of rows ends with each group of {tile.group} and keeps {processors} multiprocessors busy"
            )
        raise Unsupported(Reason.not_profitable, f"{_names(tile)}: {detail}")
    return known


def fastest_first(tile: Tile, blocks: Iterable[int], processors: int) -> list[int]:
    """Return blocks of so many rows in the order of the time that they, and the sums of what they leave, take."""
    return sorted(blocks, key=partial(_cost_with_parts, tile, *_work(tile.kernels, tile), processors))


def _inside_groups(known: list[int], group: int) -> list[int]:
    """Return blocks of which each group has several, all its own: those of `known`, or else others about as large.

    Inductor's runtime has blocks of fewer than 64 rows in steps of 4, and larger ones in steps that grow.
    """
    whole = [block for block in known if group % block == 0 and block < group]
    others = [block for block in range(SMALLEST_BLOCK, min(64, group), SMALLEST_BLOCK) if group % block == 0]
    return whole or sorted(others, key=lambda block: abs(block - known[0]))


def parts_bytes(tile: Tile, block: int) -> int:
    """Return the bytes of the partial sums of blocks of so many rows."""
    return -(-tile.rows // block) * tile.columns * 4 * len(tile.sums)


def check_worthwhile(tile: Tile, band: Kernel, adding: list[Kernel], block: int, force: bool = False) -> str:
    """Return a line about a kernel over a tile, and those that add up what it leaves; Unsupported where it costs more.

    A kernel of rows that has its sums of PyTorch, and nothing else beside it, stays as it is.
    """
    known = _without_doubles(map(tile.inductors, [*tile.kernels, *tile.readers]))
    emitted = [k for k in known if not all(map(mixed.done_by_mixed_kernel, k.get_nodes()))]
    by_torch, apart = _added_by_torch(tile), [one.after for one in tile.divided]
    launches = len(emitted) + launches_by_torch(tile)
    left = 1 + len(adding) + len(apart)
    parts = parts_bytes(tile, block)
    size = f"{parts / 2**20:.1f} MB of partial sums"
    if left > len(emitted):
        raise Unsupported(Reason.not_profitable, f"{_names(tile)}: no kernel less, with {size}")
    before = sum(_cost_before(tile, kernel) for kernel in emitted) + _beside_stores(tile)
    before += _cost_of_what_is_left(tile, block) * len(by_torch) // len(tile.sums)
    after = max(_moved(adding), _cost_of_adding(tile, block)) + parts + _cost_of_band(tile, band, block)
    saved = before - after - sum(map(cost_of, apart))
    detail = f"{launches} launches become {left}, which save the time of {saved / 2**20:.1f} MB, with {size}"
    worth = saved + (launches - left) * LAUNCH_BYTES if launches > left else saved - CLEAR_GAIN * before
    if worth <= 0 and not force:
        raise Unsupported(Reason.not_profitable, f"{_names(tile)}: {detail}")
    return f"rows and columns: blocks of {block} rows: {detail}"


def launches_by_torch(tile: Tile) -> int:
    """Return the launches in which PyTorch adds up what mix-order kernels leave, and rounds it."""
    return sum(1 if _is_float(one) else 2 for one in _added_by_torch(tile))


def _added_by_torch(tile: Tile) -> list[ColumnSum]:
    return [one for one in tile.sums if mixed.is_part_of_mixed_kernel(one.part)]


def _moved(kernels: list[Kernel]) -> int:
    return sum(sum(inductor.bytes_touched(kernel).values()) for kernel in kernels)


def _without_doubles(kernels: Iterable[Kernel]) -> list[Kernel]:
    return list({id(kernel): kernel for kernel in kernels}.values())


def _cost_before(tile: Tile, kernel: Kernel) -> int:
    """Return what a kernel of Inductor's costs, or has cost before its sums had two stages."""
    if mixed.is_mixed(kernel):
        processors = inductor.multiprocessors(inductor.device_of(kernel))
        block = mixed.block_of_mixed_kernel(tile.rows, processors)
        return _cost_in_blocks(tile, *_work([kernel], tile), processors, block)
    staged = next((one.cost for one in tile.staged if one.whole is kernel), None)
    return staged or cost_of(kernel) + _cost_of_parts(tile, kernel)


def _cost_of_parts(tile: Tile, kernel: Kernel) -> int:
    """Return the bytes that could be moved while a kernel that adds up columns goes from row to row."""
    nodes = inductor.loop_nodes(kernel)
    rows = max((one.rows / one.parts for one in tile.sums if any(one.part is node for node in nodes)), default=0)
    return int(rows / ROWS_AT_A_TIME * BYTES_OF_A_ROW)


def cost_of(kernel: Kernel) -> int:
    """Return the bytes that a kernel moves, or could move in the time of its instructions, if these are more."""
    return max(_moved([kernel]), int(inductor.instructions_of(kernel) / INSTRUCTIONS_A_BYTE))


def _beside_stores(tile: Tile) -> int:
    """Return the bytes around what the kernels that are divided store in large steps, which alone have tiles for it."""
    rows = max(ELEMENTS_OF_ROWS // tile.columns, 1)
    return sum(inductor.bytes_beside_stores(one.whole, rows) for one in tile.divided)


def _cost_of_band(tile: Tile, band: Kernel, block: int) -> int:
    """Return the bytes that a kernel over a tile moves, or could move in the time that it takes.

    What its blocks leave is not among them.
    """
    processors = inductor.multiprocessors(inductor.device_of(band))
    return inductor.bytes_beside(band) + _cost_in_blocks(tile, *_work([band], tile), processors, block)


def _work(kernels: Sequence[Kernel], tile: Tile) -> tuple[int, int]:
    """Return what one kernel over a tile has to do for others: (bytes, instructions).

    A row has as many lanes as the next power of two, and all of them compute.
    """
    touched: dict[str, int] = {}
    for kernel in kernels:
        for name, size in inductor.bytes_touched(kernel, tile.names).items():
            touched[name] = max(touched.get(name, 0), size)
    nodes = [node for kernel in kernels for node in inductor.loop_nodes(kernel)]
    in_tile = [node for node in nodes if not tiles.covers_rows(node, tile.rows)]
    return sum(touched.values()), inductor.instructions(in_tile) * tile.rows * power_of_2(tile.columns)


def _cost_with_parts(tile: Tile, moved: int, executed: int, processors: int, block: int) -> int:
    return _cost_in_blocks(tile, moved, executed, processors, block) + _cost_of_what_is_left(tile, block)


def _cost_of_what_is_left(tile: Tile, block: int) -> int:
    """Return the bytes that could be moved while partial sums are written, and added up."""
    parts = parts_bytes(tile, block)
    return parts + max(parts, _cost_of_adding(tile, block))


def _cost_of_adding(tile: Tile, block: int) -> int:
    """Return the bytes that could be moved while one program adds up what the blocks of a few columns leave."""
    parts = -(-tile.rows // block)
    columns, _ = sum_block(parts)
    return int(len(tile.sums) * columns * power_of_2(parts) / SUM_ELEMENTS * BYTES_OF_A_SUM)


def _cost_in_blocks(tile: Tile, moved: int, executed: int, processors: int, block: int) -> int:
    """Return the bytes that could be moved in the time of a kernel over a tile.

    A program has one row after another; few warps do not keep a multiprocessor busy.
    """
    warps, programs = warps_of_row(tile.columns), -(-tile.rows // block)
    at_once = RESIDENT_WARPS // warps
    rounds = -(-programs // (processors * at_once))
    busy = 1 - 2 ** (-warps * min(programs / processors, at_once) / HALF_BUSY)
    in_turn = rounds * block / rows_of_step(tile.columns, block) * BYTES_OF_A_ROW
    return int(max(moved, executed / INSTRUCTIONS_A_BYTE / busy) + in_turn)


def _is_float(one: ColumnSum) -> bool:
    return one.total.node.get_dtype().itemsize == 4


def _names(tile: Tile) -> str:
    return ", ".join(kernel.get_name() for kernel in tile.kernels)
