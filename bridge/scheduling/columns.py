"""Compute rows and columns in one kernel, which leaves partial sums of columns, and add these up in a second.

After all groups are fused: their kernels may take part.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TypeAlias

from .. import inductor
from ..horizontal.column_costs import blocks_to_try, check_worthwhile, cost_of, fastest_first, launches_by_torch
from ..horizontal.column_groups import Staged, Stages, orders_of_segments, put_in_order, stages_of, tiles_of_groups
from ..horizontal.column_orders import orders_of_writers, turn
from ..horizontal.column_sums import (
    MOST_COLUMNS,
    WINDOW,
    Tile,
    adds_up_columns,
    find_tile,
    have_same_elements,
    in_blocks_of,
    kernels_around,
    only_extents,
    ways_of,
)
from ..horizontal.column_waits import Divided, Division, find_divisions
from ..horizontal.column_wholes import find_with_wholes
from ..horizontal.independence import positions_of, stay_in_order
from ..horizontal.peak_memory import Room
from ..inductor import columns as sums
from ..inductor import mixed
from ..inductor.column_slices import Slices, put_in_slices
from ..inductor.grouped_sums import add_stage
from ..inductor.loops import made_once
from ..inductor.memory import estimated_peak, peak_bytes
from ..inductor.protocols import Kernel, LoopNode, Schedule
from ..inductor.row_order import RowOrder
from ..inductor.sizes import Extent, of_each
from ..lowering.triton import codegen
from ..lowering.triton.columns import Extents, column_band
from ..reasons import Reason, Refusal, Unsupported
from ..support.error_boundary import attempt, check_not_faulty, try_step
from .group_log import GroupLog
from .grouping import Group
from .logs import Logs
from .results import Fused

#: Why tiles stay as they are, by their sizes and the names of their kernels.
_Refused: TypeAlias = "dict[tuple[Hashable, ...], tuple[Reason, str]]"


@dataclass(frozen=True)
class _Seed:
    """Hold a kernel that adds up columns.

    extents: the rows and columns of its tile, None where its sums have two stages; order: in which kernels go over the
    rows, None where all of them do already; turned: if what stores rows in another order gets that of the tile.
    """

    kernel: Kernel
    extents: tuple[Extent, int] | None
    order: RowOrder | None = None
    turned: bool = False

    def put_in_order(self, kernels: list[Kernel], undo: contextlib.ExitStack) -> list[Kernel]:
        """Have kernels go over rows in the order of the tile, until `undo` is closed; return those that do so now."""
        if self.order is not None:
            return put_in_order(kernels, self.order, undo)
        return turn(orders_of_writers(self.kernel, kernels), undo) if self.turned else []


@dataclass(frozen=True)
class _Way:
    """Say what else may be in a tile: a part of a kernel that is divided, or kernels that add up all elements."""

    division: Division | None = None
    wholes: bool = False


@dataclass(frozen=True)
class _Change:
    """Hold the schedule after sums over rows have joined the kernels of their rows.

    made: each kernel with those that it replaces, at the position of the first; decision: a line about it.
    sums: launches of PyTorch's that are gone; tile: what the first kernel is over.
    """

    schedule: Schedule
    made: list[tuple[Kernel, list[Kernel]]]
    decision: str
    sums: int
    tile: Tile


@dataclass(frozen=True)
class Terms:
    """Hold what a change is compared with.

    room: for the whole graph, None where whether it pays does not matter; alone: what kernels cost with the other loops
    that they may get alone, in bytes.
    """

    room: Room | None
    alone: Mapping[Kernel, int] = field(default_factory=dict)

    def of(self, tile: Tile) -> Tile:
        """Return a tile whose kernels cost no more than they would with other loops alone."""
        costs = tuple((kernel, self.alone[kernel]) for kernel in tile.kernels if kernel in self.alone)
        return replace(tile, alone=costs)


def add_up_columns(schedule: Schedule, logs: Logs, terms: Terms) -> Schedule:
    """Return the schedule with one kernel for the rows and the columns of each tile, where that pays."""
    known: _Refused = {}
    for seed in try_step(partial(_seeds, schedule, logs), []):
        if _is_left(schedule, seed):
            changed = _try_seed(schedule, seed, logs, terms, known)
            known = known if changed is schedule else {}
            schedule = changed
    return schedule


def _is_left(schedule: Schedule, seed: _Seed) -> bool:
    """Return True if a kernel may still be tried: what has become the second stage of its only sum is the same one."""
    if not any(kernel is seed.kernel for kernel in schedule):
        return False
    return seed.extents is None or seed.order is not None or stages_of(seed.kernel, *seed.extents) is not None


def _try_seed(schedule: Schedule, seed: _Seed, logs: Logs, terms: Terms, known: _Refused) -> Schedule:
    """Return the schedule with one kernel for the tile of a kernel; as it was where that is refused."""
    change = None
    divisions = try_step(partial(find_divisions, schedule, seed.kernel, WINDOW), [])
    # Sums of all elements are tried last: what is one kernel without them has slices of rows, and reduces none.
    for way in [*map(_Way, divisions), _Way(), _Way(wholes=True)]:
        with attempt(note=partial(_refuse, seed.kernel, logs)):
            change = _change(schedule, seed, terms, way, known)
        if change is not None:
            break
    if change is None:
        return schedule
    with attempt():
        _log(schedule, change, logs)
    return change.schedule


def _seeds(schedule: Schedule, logs: Logs) -> list[_Seed]:
    """Return what may be tried: kernels of sums in two stages, then those of sums in groups of rows.

    And then kernels of sums of rows that have several rows of others as segments.
    """
    on_device = (kernel for kernel in schedule if inductor.device_of(kernel) is not None)  # not all calls are on one
    kernels = [kernel for kernel in on_device if inductor.generates_triton(inductor.device_of(kernel))]
    found = [seed for kernel in kernels if adds_up_columns(kernel) for seed in _seeds_of(schedule, kernel)]
    for kernel in kernels:
        with attempt(note=partial(_refuse, kernel, logs)):
            tiles = tiles_of_groups(kernel, kernels_around(schedule, kernel))
            found += [_Seed(kernel, extents) for extents in tiles if 1 < extents[1] <= MOST_COLUMNS]
    for kernel in kernels:
        orders = try_step(partial(_orders, schedule, kernel), [])
        found += [_Seed(kernel, (order.rows, order.columns), order) for order in orders]
    return found


def _seeds_of(schedule: Schedule, kernel: Kernel) -> list[_Seed]:
    """Return how a kernel that adds up columns in two stages may be tried: with rows of others turned, and without."""
    turned = try_step(partial(orders_of_writers, kernel, kernels_around(schedule, kernel)), [])
    return [*([_Seed(kernel, None, turned=True)] if turned else []), _Seed(kernel, None)]


def _orders(schedule: Schedule, kernel: Kernel) -> list[RowOrder]:
    return orders_of_segments(kernel, kernels_around(schedule, kernel))


def _refuse(seed: Kernel, logs: Logs, reason: Reason, detail: str) -> None:
    """Note why a kernel adds up columns as Inductor has it."""
    owner = logs.owner(inductor.operation_names(seed))
    if owner is not None:
        owner.keep_apart(reason, detail)
    else:
        logs.report.refusals.append(Refusal([seed.get_name()], reason, detail))


def _change(schedule: Schedule, seed: _Seed, terms: Terms, way: _Way, known: _Refused) -> _Change | None:
    """Return what becomes of the tile of a kernel; Unsupported, with nothing changed, where it stays as it is.

    None where the tile has nothing of what this way is for.
    """
    obstacle = mixed.cannot_mix()
    if obstacle is not None:
        raise Unsupported(Reason.not_liftable, f"{seed.kernel.get_name()}: {obstacle}")
    with contextlib.ExitStack() as undo:
        divided = None if way.division is None else _divide(way.division, undo)
        if divided is not None:
            schedule = divided.in_schedule(schedule)
        find = partial(_staged_tile, seed=seed, divided=divided)
        around = seed.extents or only_extents(seed.kernel), kernels_around(schedule, seed.kernel)
        found = find_with_wholes(schedule, undo, *around, find) if way.wholes else find(schedule, undo)
        if found is None or (way.division is not None and not found[1].divided):
            return None
        schedule, tile = found
        change = _change_unless_refused(schedule, terms.of(tile), terms.room, known)
        undo.pop_all()
    return change


def _change_unless_refused(schedule: Schedule, tile: Tile, room: Room | None, known: _Refused) -> _Change:
    """Return what becomes of a tile; Unsupported, also for what has been refused in this schedule before.

    Each kernel of a tile that adds up columns finds that tile again.
    """
    key = tile.rows, tile.columns, *map(_names, (tile.kernels, tile.readers, _wholes(tile)))
    if key in known:
        raise Unsupported(*known[key])
    try:
        return _change_of(schedule, tile, room)
    except Unsupported as refusal:
        known[key] = refusal.reason, refusal.detail
        raise


def _names(kernels: list[Kernel]) -> tuple[str, ...]:
    return tuple(kernel.get_name() for kernel in kernels)


def _wholes(tile: Tile) -> list[Kernel]:
    """Return the kernels of the schedule that are parts of kernels for a tile."""
    return [*(one.whole for one in tile.divided), *(one.whole for one in tile.staged)]


def _in_two(tile: Tile) -> list[Kernel]:
    """Return those of them that are two kernels now: not where all that is left of one has been added up."""
    ended = [one.whole for one in tile.staged if any(one.second is kernel for kernel in tile.ended)]
    return [whole for whole in _wholes(tile) if not any(whole is one for one in ended)]


def _divide(division: Division, undo: contextlib.ExitStack) -> Divided:
    """Return two kernels in the place of one, which are those of their nodes until `undo` is closed."""
    before, after = codegen.fuse_nodes(division.before), codegen.fuse_nodes(division.after)
    if before is None or after is None:
        detail = "Inductor's codegen cannot run its parts alone"
        raise Unsupported(Reason.not_liftable, f"{division.whole.get_name()}: {detail}")
    undo.callback(codegen.put_back, [division.whole])
    codegen.put_back([before, after])
    return Divided(division.whole, before, after)


def _staged_tile(
    schedule: Schedule, undo: contextlib.ExitStack, seed: _Seed, divided: Divided | None
) -> tuple[Schedule, Tile]:
    """Return (the schedule, the tile of a kernel in it); sums in groups of rows that join the tile have two stages.

    And those that join it have its order of rows. Until `undo` is closed.
    """
    around = kernels_around(schedule, seed.kernel)
    while True:
        with contextlib.ExitStack() as back:
            put = seed.put_in_order(around, back)
            changed, tile = _staged_tile_of(schedule, seed, kernels_around(schedule, seed.kernel), divided, back)
            joined = [*tile.kernels, *(one.whole for one in tile.staged)]
            left = [kernel for kernel in put if not any(kernel is other for other in joined)]
            if not left:
                undo.push(back.pop_all())
                return changed, tile
        around = [kernel for kernel in put if not any(kernel is other for other in left)]


def _staged_tile_of(
    schedule: Schedule, seed: _Seed, around: list[Kernel], divided: Divided | None, undo: contextlib.ExitStack
) -> tuple[Schedule, Tile]:
    """Return the same for kernels (`around`) whose rows have the order of the tile."""
    rows, columns = seed.extents or only_extents(seed.kernel)
    known = [stages for kernel in around if (stages := stages_of(kernel, rows, columns)) is not None]
    while True:
        with contextlib.ExitStack() as back:
            staged = [_stage(stages, back) for stages in known]
            changed = reduce(lambda schedule, one: one.in_schedule(schedule), staged, schedule)
            first = next((one.first for one in staged if one.whole is seed.kernel), seed.kernel)
            tile = find_tile(changed, positions_of(changed, [first])[0], divided, staged)
            if len(tile.staged) == len(staged):
                undo.push(back.pop_all())
                return changed, tile
        known = [stages for stages in known if any(one.whole is stages.whole for one in tile.staged)]


def _stage(stages: Stages, undo: contextlib.ExitStack) -> Staged:
    """Return two kernels in the place of one, with the two stages of its sums, until `undo` is closed."""
    cost = cost_of(stages.whole)
    undo.callback(codegen.put_back, [stages.whole])
    parts = [add_stage(one, undo) for one in stages.sums]
    # Each kernel that adds up columns nearby asks; loops and nodes of the stages are the same each time.
    key = "two stages", *((one.node.get_name(), one.loops) for one in stages.sums)
    first, second = made_once(stages.whole, key, partial(_kernels_of_stages, stages, parts))
    if first is None or second is None:
        detail = "Inductor's codegen cannot run its sums in two stages"
        raise Unsupported(Reason.not_liftable, f"{stages.whole.get_name()}: {detail}")
    codegen.put_back([first, second])
    return Staged(stages.whole, first, second, cost)


def _kernels_of_stages(stages: Stages, parts: list[LoopNode]) -> tuple[Kernel | None, Kernel | None]:
    return codegen.fuse_nodes([*stages.before, *parts]), codegen.fuse_nodes(stages.after)


def _change_of(schedule: Schedule, tile: Tile, room: Room | None) -> _Change:
    """Return what becomes of a tile; Unsupported, with nothing changed, where it stays as it is."""
    check_not_faulty(tile.names)
    if not stay_in_order(schedule, [set(positions_of(schedule, kernels)) for kernels in (tile.kernels, tile.readers)]):
        detail = "a path leads from one to another through other kernels"
        raise Unsupported(Reason.cycle_through_other_node, f"{sorted(tile.names)}: {detail}")
    processors = inductor.multiprocessors(inductor.device_of(tile.kernels[0]))
    check = None
    if room is not None:
        check = partial(room.check_all, most=_peak_with_workspaces(schedule, tile, processors, room.most))
    return _first([partial(_in_fastest_blocks, schedule, one, processors, check) for one in ways_of(tile)])


def _first(ways: Iterable[Callable[[], _Change]]) -> _Change:
    """Return what becomes of a tile in the first way that is wanted; Unsupported, of the first, where none is."""
    refused = []
    for way in ways:
        try:
            return way()
        except Unsupported as why:
            refused.append(why)
    raise refused[0]


def _in_fastest_blocks(
    schedule: Schedule, tile: Tile, processors: int, check: Callable[[Schedule], None] | None
) -> _Change:
    """Return what becomes of a tile in blocks of the rows that take the least time, of those that are wanted."""
    known = blocks_to_try(tile, processors)
    with contextlib.ExitStack() as undo:
        for one in tile.sums:
            sums.add_up_in_tile(one, undo)
        blocks = fastest_first(tile, known, processors)
        change = _in_first_blocks(schedule, tile, blocks, check)
        undo.pop_all()
    return change


def _peak_with_workspaces(schedule: Schedule, tile: Tile, processors: int, most: int) -> int:
    """Return the graph's peak with the partial sums of mix-order kernels, of which Inductor's estimate has fewer.

    most: bytes that are allowed without them; of a peak that is no higher, Inductor's order is not looked at.
    """
    own = [one for one in tile.sums if mixed.is_part_of_mixed_kernel(one.part)]
    with contextlib.ExitStack() as undo:
        sums.resize_to_workspace(own, processors, undo)
        peak = peak_bytes(schedule) if own else 0
        return estimated_peak(schedule, peak) if peak > most else peak


def _in_first_blocks(
    schedule: Schedule, tile: Tile, blocks: list[int], check: Callable[[Schedule], None] | None
) -> _Change:
    """Return what becomes of a tile in the first blocks that are wanted; Unsupported, of the first, where none are."""
    rows = _rows(tile)
    return _first(partial(_in_blocks, schedule, tile, rows, block, check) for block in blocks)


def _in_blocks(
    schedule: Schedule, tile: Tile, rows: Kernel, block: int, check: Callable[[Schedule], None] | None
) -> _Change:
    """Return what becomes of a tile in blocks of so many rows.

    rows: the kernel of all that is over the tile;
    check: raises Unsupported for a schedule that is not wanted; None where whether it pays does not matter.
    """
    blocks, by_torch, tile = tile.blocks(block), launches_by_torch(tile), in_blocks_of(tile, block)
    with contextlib.ExitStack() as undo:
        in_parts = tile.sums_in_parts
        for one in tile.sums:
            if any(one is other for other in in_parts):
                sums.add_up_blocks(one, blocks, undo)
            else:
                sums.leave_no_parts(one, undo)
        _put_in_slices(tile, rows, block, undo)
        band, adding = _band(tile, rows, block), _adding(schedule, tile)
        parts_of = {one.total.get_name(): of_each(blocks, one.groups) for one in in_parts}
        left = {name: parts for name, parts in parts_of.items() if parts != 1}  # what has one part is copied
        _check_loops(left, [kernel for kernel, _ in adding])
        decision = check_worthwhile(tile, rows, [kernel for kernel, _ in adding], block, check is None)
        made = [(band, [*tile.kernels, *tile.ended]), *adding]
        _keep_parts(band, left, undo)
        undo.callback(codegen.put_back, [*tile.kernels, *tile.readers, *tile.ended])
        changed = _replaced(schedule, made)
        if check is not None:
            check(changed)
        undo.pop_all()
    return _Change(changed, made, decision, by_torch, tile)


def _band(tile: Tile, rows: Kernel, block: int) -> Kernel:
    """Return the kernel whose programs have so many rows of a tile."""
    parts = {one.part.get_name(): one.buffer for one in tile.sums}
    ended = {one.total.get_name(): one.buffer for one in tile.sums}
    totals = {node: ended[node.get_name()] for kernel in tile.ended for node in inductor.loop_nodes(kernel)}
    extents = Extents(tile.rows, tile.width, block, tile.uneven_group(block), tile.slices, tile.own_step)
    return column_band(rows, extents, parts, totals)


def _put_in_slices(tile: Tile, rows: Kernel, block: int, undo: contextlib.ExitStack) -> None:
    """Have a kernel over a tile go over slices of its rows, if the tile has any, until `undo` is closed."""
    if tile.slices > 1:
        slices = Slices(tile.rows, tile.columns, block, tile.width)
        for node in inductor.loop_nodes(rows):
            put_in_slices(node, slices, undo)


def _rows(tile: Tile) -> Kernel:
    """Return one kernel of all that is over a tile, which is the same for blocks of any number of rows."""
    rows = codegen.fuse_in_lanes([node for kernel in tile.kernels for node in inductor.loop_nodes(kernel)])
    if rows is None:
        raise Unsupported(Reason.not_liftable, f"{sorted(tile.names)}: Inductor's codegen cannot run them together")
    return rows


def _adding(schedule: Schedule, tile: Tile) -> list[tuple[Kernel, list[Kernel]]]:
    """Return what adds up the parts of all sums: as few kernels as Inductor can have; each with what it replaces."""
    readers = [schedule[p] for p in positions_of(schedule, tile.readers)]
    if not readers:
        return []
    together = _fuse(readers)
    if together is not None:
        return [(together, readers)]
    made = [pair for kernels in _by_loops(readers) for pair in _fused_or_alone(kernels)]
    if any(kernel is None for kernel, _ in made):
        raise Unsupported(Reason.not_liftable, f"{sorted(tile.names)}: Inductor's codegen cannot add up their parts")
    return [(kernel, replaced) for kernel, replaced in made if kernel is not None]


def _check_loops(left: dict[str, Extent], adding: list[Kernel]) -> None:
    """Raise Unsupported where a kernel that adds up as many parts as a symbol says has to hold them all."""
    looped = not all(isinstance(parts, int) for parts in left.values())
    if looped and any(map(codegen.keeps_rows, adding)):
        detail = "what adds up their parts keeps a row whole, and has no loop"
        raise Unsupported(Reason.not_liftable, f"{sorted(left)}: {detail}")


def _by_loops(kernels: list[Kernel]) -> list[list[Kernel]]:
    """Return kernels in sets of as many results: sums in groups of rows, and others."""
    sets: dict[int, list[Kernel]] = {}
    for kernel in kernels:
        sets.setdefault(inductor.size_hint(kernel.group[1][0]), []).append(kernel)
    return list(sets.values())


def _fused_or_alone(kernels: list[Kernel]) -> list[tuple[Kernel | None, list[Kernel]]]:
    together = _fuse(kernels)
    return [(_fuse([kernel]), [kernel]) for kernel in kernels] if together is None else [(together, kernels)]


def _fuse(kernels: list[Kernel]) -> Kernel | None:
    nodes = [node for kernel in kernels for node in inductor.loop_nodes(kernel)]
    return codegen.fuse_nodes(nodes) if have_same_elements(kernels) else None


def _keep_parts(band: Kernel, left: dict[str, Extent], undo: contextlib.ExitStack) -> None:
    place = band.scheduler, inductor.device_of(band), left
    undo.callback(codegen.undo_add_up_parts, *place)
    codegen.add_up_parts(*place)


def _replaced(schedule: Schedule, made: list[tuple[Kernel, list[Kernel]]]) -> Schedule:
    positions = [positions_of(schedule, kernels) for _, kernels in made]
    new = {found[0]: kernel for (kernel, _), found in zip(made, positions, strict=True)}
    return codegen.replace_kernels(schedule[0].scheduler, schedule, new, {p for found in positions for p in found})


def _log(schedule: Schedule, change: _Change, logs: Logs) -> None:
    """Note the new kernels in the log of the first kernel of each, and in those of others that they replace."""
    made = [(kernel, list(map(change.tile.inductors, replaced))) for kernel, replaced in change.made]
    all_replaced = [kernel for _, kernels in made for kernel in kernels]
    free = [kernel for kernel in all_replaced if logs.owner(inductor.operation_names(kernel)) is None]
    if free:
        group = Group(positions_of(schedule, free), set().union(*map(inductor.operation_names, free)))
        logs.keep(logs.open(group, schedule))
    for kernel, replaced in made:
        owners = [owner for k in replaced if (owner := logs.owner(inductor.operation_names(k))) is not None]
        first: GroupLog = owners[0]
        own = [k for k, owner in zip(replaced, owners, strict=True) if owner is first]
        decisions = (change.decision,) if kernel is change.made[0][0] else ()
        first.take(Fused(kernel, frozenset(positions_of(schedule, own)), decisions, contextlib.ExitStack()))
        for owner in owners:
            if owner is not first:
                owner.join_launch(first, change.decision)
    if change.sums:
        first.spare_sums(change.sums)
    for divided in _in_two(change.tile):
        owner = logs.owner(inductor.operation_names(divided))
        assert owner is not None, "every kernel that was replaced has a log by now"
        owner.divide()
