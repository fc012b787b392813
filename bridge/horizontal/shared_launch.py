"""Horizontal fusion: independent kernels in one launch, of which each has its share of the program ids.

They may overwrite what is not their own (the cache of keys and values): Inductor's dependences order such a kernel
after all that read the buffer before, and before all that read it afterwards, and independent kernels wait for none of
each other's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .. import inductor
from ..inductor.protocols import Kernel, Schedule
from ..lowering.triton import codegen
from ..lowering.triton.combo_kernels import cannot_share_launch
from ..reasons import Reason, Unsupported
from ..support.error_boundary import attempt, check_not_faulty
from .candidates import MAX_DISTANCE, find_launch_obstacle
from .cost import MAX_KERNELS, Part, check_buffers, choose_worthwhile, describe_launch, measure
from .independence import positions_of, reachable
from .peak_memory import Liveness, Room

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Budget:
    """Hold what a launch may cost.

    live, room: what the kernels need of memory, and what the graph may; None where that does not matter;
    most_bytes: that one launch may move, None for any number; force: whether a launch pays does not matter.
    """

    live: Liveness | None = None
    room: Room | None = None
    most_bytes: int | None = None
    force: bool = False


@dataclass(frozen=True)
class Launch:
    """Hold one launch in the place of several.

    decision: a line about it; heads: operations of the first kernel in each of the launches that it replaces.
    """

    decision: str
    heads: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class SharedLaunches:
    """Hold the result for sets of kernels.

    schedule: with the launches; launches: what was joined;
    refused: (reason, detail) of kernels that stay apart.
    """

    schedule: Schedule
    launches: tuple[Launch, ...] = ()
    refused: tuple[tuple[Reason, str], ...] = ()


@dataclass
class _Progress:
    """Hold what is found while sets are looked at; `SharedLaunches` is what becomes of it."""

    schedule: Schedule
    launches: list[Launch] = field(default_factory=list)
    refused: list[tuple[Reason, str]] = field(default_factory=list)

    def refuse(self, reason: Reason, detail: str) -> None:
        self.refused.append((reason, detail))

    def finish(self) -> SharedLaunches:
        return SharedLaunches(self.schedule, tuple(self.launches), tuple(self.refused))


def share_launches_of_sets(schedule: Schedule, sets: list[list[int]], budget: Budget) -> SharedLaunches:
    """Return the schedule with one kernel in the place of each set, as far as that is possible and pays.

    sets: positions of kernels that were proven independent of each other. A set whose kernels stay apart leaves the
    schedule as it was.
    """
    progress = _Progress(schedule)
    launch_sets: list[list[Kernel]] = []
    for positions in sets:
        with attempt(note=progress.refuse):
            parts = _split_by_size(schedule, positions, budget.most_bytes)
            launch_sets += [[schedule[p] for p in part] for part in parts]
    for launch_set in launch_sets:
        if not all(inductor.generates_triton(_device(kernel)) for kernel in launch_set):
            continue
        for kernels in _split_by_room(progress, launch_set, budget.live):
            with attempt(note=progress.refuse):
                _share(progress, kernels, budget)
    return progress.finish()


def _split_by_room(progress: _Progress, launch_set: list[Kernel], live: Liveness | None) -> list[list[Kernel]]:
    """Split a launch set into parts of two and more, none of which raises the graph's peak of memory.

    A kernel whose results would wait for too long begins the next part, which is nearer to their readers; what is alone
    then may find others (`sets_with_common_reader`).
    """
    if live is None:
        return [launch_set]
    parts = [launch_set[:1]]
    for kernel in launch_set[1:]:
        joins = False
        with attempt(note=progress.refuse):
            live.check(progress.schedule, positions_of(progress.schedule, [*parts[-1], kernel]))
            joins = True
        if joins:
            parts[-1].append(kernel)
        else:
            parts.append([kernel])
    return [part for part in parts if len(part) > 1]


def _split_by_size(schedule: Schedule, positions: list[int], most_bytes: int | None) -> list[list[int]]:
    """Split a set into parts that one launch may have."""
    parts: list[list[int]] = [[]]
    for position in positions:
        joined = [schedule[p] for p in [*parts[-1], position]]
        fits = sum(len(inductor.launch_parts(kernel)) for kernel in joined) <= MAX_KERNELS
        if fits and (most_bytes is None or sum(measure(kernel).total for kernel in joined) <= most_bytes):
            parts[-1].append(position)
        else:
            parts.append([position])
    return [part for part in parts if len(part) > 1]


def _share(progress: _Progress, launch_set: list[Kernel], budget: Budget) -> None:
    """Put one kernel in the place of a launch set; where that ends in an error, nothing is changed."""
    schedule = progress.schedule
    _check_possible(schedule, launch_set)
    if not budget.force:
        launch_set = _with_their_tiles(launch_set)
    parts = [measure(kernel) for kernel in launch_set]
    if budget.force:
        check_buffers(parts)
    chosen = parts if budget.force else choose_worthwhile(parts)
    _check_arguments(chosen)
    positions = positions_of(schedule, [part.kernel for part in chosen])
    if budget.live is not None:  # once more: earlier parts have joined, and those that gain nothing are left out
        budget.live.check(schedule, positions)
    parts_of = [inductor.launch_parts(schedule[p]) for p in positions]
    joined = codegen.share_launch([part for parts in parts_of for part in parts])
    launch = Launch(describe_launch(chosen), tuple(frozenset(inductor.operation_names(p[0])) for p in parts_of))
    changed = _replace(schedule, positions, joined, budget.room)
    if budget.live is not None:
        budget.live.join(schedule, positions, joined)
    progress.schedule = changed
    progress.launches.append(launch)


def _replace(schedule: Schedule, positions: list[int], joined: Kernel, room: Room | None) -> Schedule:
    """Return the schedule with a launch in the place of kernels; Unsupported, and nothing changed, without room."""
    changed = codegen.replace_kernels(joined.scheduler, schedule, {positions[0]: joined}, set(positions))
    if room is None:
        return changed
    try:
        room.check(schedule, positions, changed)
    except Unsupported:
        codegen.put_back([schedule[position] for position in positions])
        raise
    return changed


def _device(kernel: Kernel) -> torch.device:
    return inductor.device_of(inductor.launch_parts(kernel)[0])


def _check_possible(schedule: Schedule, launch_set: list[Kernel]) -> None:
    """Raise Unsupported where the kernels may not, or cannot, share a launch."""
    for kernel in launch_set:
        check_not_faulty(inductor.operation_names(kernel))
        reason = find_launch_obstacle(kernel)
        if reason is not None:
            raise Unsupported(reason, f"{kernel.get_name()} is not a kernel of plain loops that it owns")
    device = _device(launch_set[0])
    if any(_device(kernel) != device for kernel in launch_set):
        raise Unsupported(Reason.different_device, _names(launch_set))
    obstacle = cannot_share_launch(launch_set[0].scheduler, device)
    if obstacle is not None:
        raise Unsupported(Reason.not_liftable, obstacle)
    members = positions_of(schedule, launch_set)
    reach = reachable(schedule, members)
    if any(reach[later] >> earlier & 1 for earlier in members for later in members):
        raise Unsupported(Reason.cycle_through_other_node, f"one of {_names(launch_set)} waits for another")
    if members[-1] - members[0] + 1 - len(members) > MAX_DISTANCE:
        raise Unsupported(Reason.budget_exceeded, f"more than {MAX_DISTANCE} kernels between {_names(launch_set)}")


def _with_their_tiles(launch_set: list[Kernel]) -> list[Kernel]:
    """Return the kernels that have the same tiles in a shared launch; Unsupported for fewer than two."""
    fitting = [kernel for kernel in launch_set if codegen.fits_in_two_dimensions(kernel)]
    if len(fitting) < 2:
        detail = f"one of {_names(launch_set)} has a tile of three dimensions alone, and a shared launch has two"
        raise Unsupported(Reason.not_profitable, detail)
    return fitting


def _check_arguments(parts: list[Part]) -> None:
    """Raise Unsupported for a launch without arguments, whose call Inductor writes with a comma before the stream.

    Checks of indices that the graph itself computes are kernels without buffers; their sizes are in the shared kernel.
    """
    if not any(part.total for part in parts):
        kernels = [part.kernel for part in parts]
        raise Unsupported(Reason.not_liftable, f"Inductor cannot call a kernel without arguments: {_names(kernels)}")


def _names(kernels: list[Kernel]) -> str:
    return ", ".join(kernel.get_name() for kernel in kernels)
