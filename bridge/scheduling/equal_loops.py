"""Have one kernel of the same loops in the place of small sums across rows that have nothing in common."""

from __future__ import annotations

import contextlib
from functools import partial

from .. import inductor
from ..horizontal.equal_loops import merged, place_of, sets_to_merge
from ..horizontal.independence import positions_of
from ..horizontal.peak_memory import Room
from ..inductor.protocols import Kernel, Schedule
from ..lowering.triton import codegen
from ..reasons import Reason, Unsupported
from ..support.error_boundary import attempt, check_not_faulty, try_step
from .grouping import Group
from .logs import Logs
from .results import Fused


def merge_equal_loops(schedule: Schedule, logs: Logs, room: Room | None) -> Schedule:
    """Return the schedule with one kernel in the place of each such set, where there is room in memory."""
    for kernels in try_step(partial(sets_to_merge, schedule), []):
        with attempt():
            made, changed = _merge(schedule, kernels, room)
            _log(schedule, made, kernels, logs)
            schedule = changed
    return schedule


def _merge(schedule: Schedule, kernels: list[Kernel], room: Room | None) -> tuple[Kernel, Schedule]:
    """Return (the kernel, the schedule with it); Unsupported, and nothing changed, without room."""
    check_not_faulty(set().union(*map(inductor.operation_names, kernels)))
    place, positions = place_of(schedule, kernels), positions_of(schedule, kernels)
    if place is None:
        names = ", ".join(kernel.get_name() for kernel in kernels)
        raise Unsupported(Reason.cycle_through_other_node, f"{names}: others would run in another order")
    made = merged(kernels)
    changed = codegen.replace_kernels(made.scheduler, schedule, {place: made}, set(positions))
    try:
        if room is not None:
            room.check(schedule, positions, changed)
    except Unsupported:
        codegen.put_back(kernels)
        raise
    return made, changed


def _log(schedule: Schedule, made: Kernel, kernels: list[Kernel], logs: Logs) -> None:
    """Note the kernel in the log of the first group that has one of those before it, or in a new one."""
    free = [kernel for kernel in kernels if logs.owner(inductor.operation_names(kernel)) is None]
    if free:
        group = Group(positions_of(schedule, free), set().union(*map(inductor.operation_names, free)))
        logs.keep(logs.open(group, schedule))
    owners = [owner for kernel in kernels if (owner := logs.owner(inductor.operation_names(kernel))) is not None]
    first = owners[0]
    own = [kernel for kernel, owner in zip(kernels, owners, strict=True) if owner is first]
    decision = f"one kernel of the same loops for {len(kernels)}"
    first.take(Fused(made, frozenset(positions_of(schedule, own)), (decision,), contextlib.ExitStack()))
    for owner in owners:
        if owner is not first:
            owner.join_launch(first, decision)
