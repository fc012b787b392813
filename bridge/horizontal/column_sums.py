"""Kernels of a tile's rows and sums of its columns that may be one: candidates and legality.

The kernel's programs have a block of rows each. Every element of the tile is one lane's, from its first load to the
partial sum of its column: what a node stores, another may read in the same row and column, or from its row's scalars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import gcd

from .. import inductor
from ..affine import ops_table
from ..inductor import columns as sums
from ..inductor import mixed, tiles
from ..inductor.column_slices import slices_of_row
from ..inductor.columns import ColumnSum
from ..inductor.protocols import Kernel, LoopNode, Schedule
from ..inductor.sizes import Extent, are_equal, divided_up, known_divisor, of_each
from ..lowering.triton.column_loads import STAGES, rows_of_long_step, rows_of_step, stages_of_loop
from ..lowering.triton.fixed_blocks import has_free_blocks
from ..reasons import Reason, Unsupported
from ..support.error_boundary import try_step
from .column_groups import Staged
from .column_waits import Divided
from .column_wholes import Wholes
from .independence import find_obstacle, positions_of, stay_in_order

#: Kernels between one and the next of those that are tried together.
WINDOW = 16

#: Columns of the widest tile: a program holds a whole row.
MOST_COLUMNS = 16384

#: Rows of a block, at least, so that it can have several in a tile.
SMALLEST_BLOCK = 4

#: Buffers of which a lane may load elements: with more, registers spill (pytorch/pytorch#179423).
MOST_LOADED = 10

#: Programs that are enough for a GPU, at least.
PROGRAMS_OF_A_GPU = 64

_OTHER_LOOPS = "it goes over the rows of its columns in other loops"


@dataclass(frozen=True)
class Tile:
    """Hold kernels over one tile of rows and columns.

    kernels: in the schedule's order; sums: of columns; readers: kernels that add up the parts of the sums, and what
    follows on the result alone; divided: Inductor's kernels of which only a part is among `kernels`; staged: those of
    which the rest is among `readers`; slices: of a row, of which each program has one; ended: kernels of nothing but
    sums of groups that are a block each, which its program adds up to their end; alone: what kernels cost with other
    loops that they may get alone, in bytes; wholes: those that add up all elements, in parts for each row; own_step:
    rows that a program computes at a time, where these are not as many as Inductor's runtime chooses.
    """

    rows: Extent
    columns: int
    kernels: list[Kernel]
    sums: list[ColumnSum]
    readers: list[Kernel]
    divided: tuple[Divided, ...] = ()
    staged: tuple[Staged, ...] = ()
    slices: int = 1
    ended: tuple[Kernel, ...] = ()
    alone: tuple[tuple[Kernel, int], ...] = ()
    wholes: tuple[Wholes, ...] = ()
    own_step: int | None = None

    def step(self, block: int) -> int:
        """Return how many rows a program computes at a time, of a block of so many."""
        return self.own_step or rows_of_step(self.width, block)

    @property
    def sums_in_parts(self) -> list[ColumnSum]:
        """Return the sums of which programs leave parts that have to be added up."""
        if not self.ended:
            return self.sums
        ended = set().union(*map(inductor.operation_names, self.ended))
        return [one for one in self.sums if one.total.get_name() not in ended]

    @property
    def width(self) -> int:
        """Return the columns that a program has."""
        return self.columns // self.slices

    @property
    def names(self) -> set[str]:
        """Return the operations of the kernels over the tile."""
        return set().union(*map(inductor.operation_names, self.kernels))

    def inductors(self, kernel: Kernel) -> Kernel:
        """Return a kernel, or the one of Inductor's that it is a part of."""
        for staged in self.staged:
            if kernel is staged.first or kernel is staged.second:
                return staged.whole
        for one in self.wholes:
            if kernel is one.now:
                return one.whole
        return next((one.whole for one in self.divided if one.before is kernel), kernel)

    @property
    def typical_rows(self) -> int:
        """Return how many rows there are typically, where a symbol says it: for cost only."""
        return inductor.size_hint(self.rows)

    @property
    def group(self) -> int:
        """Return a number of rows in whose multiples all groups end that have sums of their own."""
        return gcd(*(known_divisor(of_each(one.rows, one.groups)) for one in self.sums))

    @property
    def only_group(self) -> Extent | None:
        """Return the rows of each group that has sums of its own, where all such groups are the same; else None."""
        sizes = {of_each(one.rows, one.groups) for one in self.sums if one.groups != 1}
        return sizes.pop() if len(sizes) == 1 else None

    def uneven_group(self, block: int) -> Extent | None:
        """Return the rows of the groups whose last block of so many rows has fewer; None where all blocks are whole."""
        group = self.only_group
        return None if group is None or self.group % block == 0 else group

    def blocks(self, block: int) -> Extent:
        """Return how many blocks of so many rows the tile has; none has rows of two groups."""
        return divided_up(self.rows, block, self.uneven_group(block))

    def typical_blocks(self, block: int) -> int:
        """Return how many they are typically, where a symbol says it: for cost only."""
        return inductor.size_hint(self.blocks(block))


def in_blocks_of(tile: Tile, block: int) -> Tile:
    """Return a tile whose programs have so many rows: those that are all rows of a group end its sums.

    Their kernels are no readers any more, where these have nothing but such sums to do, and store them in order.
    """
    if not isinstance(tile.rows, int):
        return tile
    whole = {one.total.get_name() for one in tile.sums if sums.is_ended_by_block(one, block)}
    ended = [k for k in tile.readers if all(node.get_name() in whole for node in inductor.loop_nodes(k))]
    left = [k for k in tile.readers if not any(k is other for other in ended)]
    return replace(tile, readers=left, ended=tuple(ended)) if ended else tile


def in_slices(tile: Tile) -> Tile:
    """Return a tile whose programs have slices of its rows, where nothing is reduced along them; else the same."""
    nodes = [node for kernel in tile.kernels for node in inductor.loop_nodes(kernel)]
    slices, groups = slices_of_row(tile.columns), {one.groups for one in tile.sums}
    if slices == 1 or groups != {1}:
        return tile
    return replace(tile, slices=slices) if all(_is_over_slices(node, tile) for node in nodes) else tile


def ways_of(tile: Tile) -> list[Tile]:
    """Return the ways to have a tile that may be tried, the best first: whole rows or slices, steps of rows."""
    sliced = in_slices(tile)
    usual = [tile] if sliced is tile else [sliced, tile]
    if not has_free_blocks({}):
        return usual
    return [*filter(None, map(_in_long_steps, usual)), *usual, *map(in_short_steps, usual)]


def _in_long_steps(tile: Tile) -> Tile | None:
    """Return a tile of very short rows whose programs compute many of them at a time; None for another, or few rows."""
    step = rows_of_long_step(tile.width)
    if step is None or stages_of_loop(tile.typical_rows // PROGRAMS_OF_A_GPU, step) < STAGES:
        return None
    return replace(tile, own_step=step)


def in_short_steps(tile: Tile) -> Tile:
    """Return a tile whose programs compute as few rows of a block at a time as Inductor's runtime has of a small one.

    It has more of a large block, and registers spill. Large blocks leave fewer partial sums, for which there may be
    room in memory where there is none for those of smaller ones.
    """
    return replace(tile, own_step=rows_of_step(tile.width, SMALLEST_BLOCK))


def _is_over_slices(node: LoopNode, tile: Tile) -> bool:
    if sums.is_column_part(node):
        return True
    return tiles.covers_tile(node, tile.rows, tile.columns) and not tiles.reduction_types(node)


def adds_up_columns(kernel: Kernel) -> bool:
    """Return True for a kernel of loops that adds up columns, of which there are several, in two stages."""
    return _is_of_loops(kernel) and any(extents is None or extents[1] > 1 for extents in _extents(kernel))


def _extents(kernel: Kernel) -> set[tuple[Extent, int] | None]:
    """Return (rows, columns) of the tiles whose columns a kernel adds up in two stages; None for symbolic columns."""
    return {sums.rows_and_columns(node) for node in _parts(kernel)}


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
    if not goes_over(schedule[seed], rows, columns) or not _parts_agree(schedule[seed], rows, columns):
        raise Unsupported(Reason.no_common_band, f"{schedule[seed].get_name()}: {_OTHER_LOOPS}")
    members = [seed]
    around = [position for position in _around(schedule, seed) if _may_join(schedule, seed, position, rows, columns)]
    for position in around * 2:  # a kernel may share nothing with the seed, but with another that has joined it
        fits = partial(_joins, schedule, members, position, rows, columns)
        if position not in members and try_step(fits, False, schedule[position].get_name()):
            members = sorted([*members, position])
    kernels = [schedule[p] for p in members]
    found = [sums.column_sum(node) for kernel in kernels for node in _parts(kernel)]
    # Sums of one tile may be one kernel without any of its rows: they read it once.
    if len(kernels) == 1 and all(map(sums.is_column_part, inductor.loop_nodes(kernels[0]))):
        raise Unsupported(Reason.no_common_band, f"{schedule[seed].get_name()}: no other kernel of the same rows")
    joined = () if divided is None or not any(kernel is divided.before for kernel in kernels) else (divided,)
    return Tile(rows, columns, kernels, found, _readers(schedule, found), joined, _members_of(staged, kernels))


def _members_of(staged: Sequence[Staged], kernels: list[Kernel]) -> tuple[Staged, ...]:
    return tuple(one for one in staged if any(kernel is one.first for kernel in kernels))


def only_extents(kernel: Kernel) -> tuple[Extent, int]:
    """Return (rows, columns) of the tile whose columns a kernel adds up in two stages; Unsupported without one."""
    extents, name = _extents(kernel), kernel.get_name()
    if not extents:
        raise Unsupported(Reason.no_common_band, f"{name}: {_OTHER_LOOPS}")
    first, *others = extents
    if None in extents:
        raise Unsupported(
            Reason.dynamic_extent, f"{name}: the columns that it adds up are symbols, or it may have no row"
        )
    if first is None or others or not 1 < first[1] <= MOST_COLUMNS:
        raise Unsupported(Reason.extents_do_not_agree, f"{name}: no program has a whole row of its columns")
    return first


def kernels_around(schedule: Schedule, kernel: Kernel) -> list[Kernel]:
    """Return a kernel and those that may be near enough to be one with it."""
    (position,) = positions_of(schedule, [kernel])
    return list(schedule[max(position - WINDOW, 0) : position + WINDOW + 1])


def _parts(kernel: Kernel) -> list[LoopNode]:
    return [node for node in inductor.loop_nodes(kernel) if sums.is_column_part(node)]


def _around(schedule: Schedule, seed: int) -> list[int]:
    """Return the positions around one, those that come before it first, the nearest first."""
    before = list(range(seed - 1, max(seed - WINDOW, 0) - 1, -1))
    after = list(range(seed + 1, min(seed + WINDOW, len(schedule) - 1) + 1))
    return [*before, *after]


def _may_join(schedule: Schedule, seed: int, position: int, rows: Extent, columns: int) -> bool:
    """Return True if a kernel is of loops over a tile, of the device of the seed, whichever others join it."""
    kernel, first = schedule[position], schedule[seed]
    alone = partial(_is_over_tile, kernel, first, rows, columns)
    return try_step(alone, False, kernel.get_name())


def _is_over_tile(kernel: Kernel, other: Kernel, rows: Extent, columns: int) -> bool:
    same_device = _is_of_loops(kernel) and inductor.device_of(kernel) == inductor.device_of(other)
    return same_device and goes_over(kernel, rows, columns)


def _joins(schedule: Schedule, members: list[int], position: int, rows: Extent, columns: int) -> bool:
    """Return True if a kernel over a tile may be one with others; _parts of its are sums of the same tile."""
    kernel, others = schedule[position], [schedule[p] for p in members]
    if not any(_share_tile(kernel, other, inductor.size_hint(rows) * columns) for other in others):
        return False
    both = [schedule[p] for p in sorted([*members, position])]
    return (
        len(_inputs_of_lanes(both, rows)) <= MOST_LOADED
        and stay_in_order(schedule, [{*members, position}])
        and _parts_agree(kernel, rows, columns)
        # Others have joined each other before: their lanes agree.
        and all(_lanes_agree(*pair, rows, columns) for other in others for pair in ((kernel, other), (other, kernel)))
    )


def goes_over(kernel: Kernel, rows: Extent, columns: int) -> bool:
    """Return True if all nodes of a kernel go over the tile or its rows, or add up its columns."""
    for node in inductor.loop_nodes(kernel):
        if sums.is_column_part(node):
            if sums.rows_and_columns(node) != (rows, columns):
                return False
        elif not _is_in_tile(node, rows, columns):
            return False
        if any(kind.startswith(ops_table.LANE_KINDS) for kind in tiles.reduction_types(node)):
            return False
    return True


def _is_in_tile(node: LoopNode, rows: Extent, columns: int) -> bool:
    covers = tiles.covers_tile(node, rows, columns) or tiles.covers_rows(node, rows)
    return covers and tiles.splits_into_tile(node, rows, columns)


def _share_tile(one: Kernel, other: Kernel, elements: int) -> bool:
    """Return True if both use a buffer as large as the tile, or one of them what the other makes: of each row, say."""
    touched = [inductor.buffers_read(k) | inductor.buffers_written(k) for k in (one, other)]
    common, made = touched[0] & touched[1], inductor.buffers_made(one) | inductor.buffers_made(other)
    return any(name in made or inductor.size_hint(inductor.buffer_numel(name)) >= elements for name in common)


def _inputs_of_lanes(kernels: list[Kernel], rows: Extent) -> set[str]:
    """Return the buffers that kernels read and none of them makes, but those that have one number of each row.

    Such a number is a program's, and takes no register of each lane.
    """
    made = set().union(*map(inductor.buffers_made, kernels))
    read = set().union(*map(inductor.buffers_read, kernels)) - made
    return {name for name in read if not are_equal(inductor.buffer_numel(name), rows)}


def _parts_agree(kernel: Kernel, rows: Extent, columns: int) -> bool:
    """Return True if each sum of a kernel reads, of what the kernel itself writes, what its own row and column have.

    The sums get the loops of the tile, and what the kernel has beside them keeps its own: these may go over columns
    first. Unsupported for a sum that no kernel of rows can add up.
    """
    return all(
        writer is not None and tiles.agree(writer, sums.column_sum(part).tile, name, rows, columns)
        for part, writer, name in _reads(_parts(kernel), inductor.buffers_made(kernel))
    )


def _reads(readers: Iterable[LoopNode], names: set[str]) -> Iterator[tuple[LoopNode, LoopNode | None, str]]:
    """Yield (reader, what defines the buffer, its name) for what nodes read of some buffers."""
    for reader in readers:
        for name in inductor.buffers_read(reader) & names:
            yield reader, reader.scheduler.name_to_buf[name].defining_op, name


def _lanes_agree(one: Kernel, other: Kernel, rows: Extent, columns: int) -> bool:
    """Return True if each lane of `other` reads of what `one` writes only what its own row and column have written."""
    written = inductor.buffers_made(one)
    if any(inductor.storage_of(name) in inductor.buffers_read(other) for name in written):
        return False
    return all(_reads_own(*read, rows, columns) for read in _reads(inductor.loop_nodes(other), written))


def _reads_own(reader: LoopNode, writer: LoopNode | None, name: str, rows: Extent, columns: int) -> bool:
    if writer is None or sums.is_column_part(writer):
        return False
    # What the kernel has stored, it reads as it was before it was rounded, and so it would equal nothing.
    if inductor.buffer_dtype(name).itemsize == 2 and inductor.compares(reader, name):
        return False
    if sums.is_column_part(reader):
        return tiles.agree(writer, sums.column_sum(reader).tile, name, rows, columns)
    return tiles.agree(writer, inductor.node_body(reader), name, rows, columns)


def _readers(schedule: Schedule, found: list[ColumnSum]) -> list[Kernel]:
    """Return the kernels that add up the parts of sums, and those that read only what these make, at each element."""
    kernels = schedule[0].scheduler.name_to_fused_node
    adding = [kernels[one.total.get_name()] for one in found]
    wanted = [kernel for kernel in schedule if any(kernel is other for other in adding)]
    made = set().union(*map(inductor.buffers_made, wanted))
    sizes = {one.groups * one.columns for one in found}
    for kernel in schedule:
        awaited = inductor.buffers_awaited(kernel)
        if not awaited or not awaited <= made or any(kernel is other for other in wanted):
            continue
        over_elements = find_obstacle(kernel) is None and any(_is_over_elements(kernel, size) for size in sizes)
        if over_elements and _reads_own_elements(kernel, awaited):
            wanted.append(kernel)
    return wanted


def have_same_elements(kernels: Sequence[Kernel]) -> bool:
    """Return True if each element of kernels is made of the same one of what others of them make."""
    made = set().union(*map(inductor.buffers_made, kernels))
    return all(_reads_own_elements(kernel, made - inductor.buffers_made(kernel)) for kernel in kernels)


def _reads_own_elements(kernel: Kernel, others: set[str]) -> bool:
    """Return True if each element of a kernel is made of the same one of others' buffers: they may be one kernel."""
    return all(
        writer is not None and tiles.agree_on_elements(writer, node, name)
        for node, writer, name in _reads(inductor.loop_nodes(kernel), others)
    )


def _is_over_elements(kernel: Kernel, size: int) -> bool:
    """Return True for a kernel of the elements of a sum."""
    return all(tiles.covers_rows(node, size) for node in inductor.loop_nodes(kernel))
