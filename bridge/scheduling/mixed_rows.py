"""Take Inductor's mix-order kernels apart, whose rows may rather be in others, and put them back together.

Inductor mixes a kernel of rows with one that adds up the columns of what it reads.  The rows are then in no kernel of
plain loops, and what follows them in other loops stays apart: the gradient of a gate and a value that are halves of a
row, behind that of a norm.  So such a kernel is two while groups are fused.  Where its rows have become a part of
another kernel, the columns may join that one (see columns.py); else the two are what Inductor made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from .. import inductor
from ..horizontal.column_costs import CLEAR_GAIN, launches_to_add_up
from ..horizontal.column_sums import adds_up_columns, goes_over, kernels_around, only_extents
from ..horizontal.independence import find_obstacle, positions_of, replaced_by_parts, stay_in_order
from ..horizontal.peak_memory import Room
from ..inductor import columns as sums
from ..inductor import mixed
from ..inductor.memory import estimated_peak
from ..inductor.protocols import Kernel, LoopNode, Schedule
from ..lowering.lift.commit import saved_bytes
from ..lowering.triton import codegen
from ..lowering.triton.profitability import LAUNCH_BYTES, traffic, traffic_of_one
from ..reasons import Reason, Unsupported
from ..support.error_boundary import attempt, try_step
from .logs import Logs


@dataclass(frozen=True)
class Parts:
    """Hold a mix-order kernel (`whole`) that is two: one of rows, and one of the sums of columns."""

    whole: Kernel
    rows: Kernel
    columns: Kernel

    @property
    def read_again(self) -> int:
        """Return the bytes that the two move, and the one does not."""
        return traffic(self._touched) - traffic_of_one(self._touched)

    @property
    def unclear(self) -> float:
        """Return the bytes that a gain has to be above: bytes say the time of a sum of columns no better than that."""
        return CLEAR_GAIN * traffic_of_one(self._touched)

    @property
    def _touched(self) -> list[dict[str, int]]:
        return [inductor.bytes_touched(kernel) for kernel in (self.rows, self.columns)]


def take_apart(schedule: Schedule, logs: Logs) -> tuple[Schedule, list[Parts]]:
    """Return (the schedule with two kernels for each mix-order kernel that others may join, these kernels)."""
    taken: list[Parts] = []
    for kernel in filter(mixed.is_mixed, schedule):
        parts = try_step(partial(_parts, schedule, kernel), None, kernel.get_name())
        if parts is not None:
            codegen.put_back([parts.rows, parts.columns])
            schedule = replaced_by_parts(schedule, kernel, parts.rows, parts.columns)
            logs.wholes |= {parts.rows: kernel, parts.columns: kernel}
            taken.append(parts)
    return schedule, taken


def _parts(schedule: Schedule, kernel: Kernel) -> Parts | None:
    """Return the parts of a mix-order kernel; None where no other kernel has enough in common with its rows.

    What is over the tile of its columns may join it as it is, in `columns.py`.
    """
    if not inductor.generates_triton(inductor.device_of(kernel)) or not adds_up_columns(kernel):
        return None
    parts = Parts(kernel, *map(_one_kernel, mixed.nodes_of_parts(kernel)))
    if not _column_sums(parts):
        return None
    rows, columns = only_extents(parts.columns)
    own = inductor.bytes_touched(parts.rows)
    for other in kernels_around(schedule, kernel):
        if other is kernel or find_obstacle(other) is not None or goes_over(other, rows, columns):
            continue
        theirs = inductor.bytes_touched(other)
        if sum(min(own[name], theirs[name]) for name in own.keys() & theirs.keys()) > LAUNCH_BYTES:
            return parts
    return None


def _one_kernel(nodes: list[LoopNode]) -> Kernel:
    kernel = codegen.fuse_nodes(nodes)
    if kernel is None:
        detail = "Inductor's codegen cannot run a part of a mix-order kernel alone"
        raise Unsupported(Reason.not_liftable, f"{nodes[0].get_name()}: {detail}")
    return kernel


def check_worthwhile(taken: Sequence[Parts], replaced: list[Kernel], saved: int) -> None:
    """Raise Unsupported for a kernel of rows of mix-order kernels and of others that saves less than it costs.

    saved: bytes that it saves, launches as bytes. The columns may have to read again what the rows read, in a launch
    of their own; and the others may save something without them.
    """
    apart = [parts for parts in taken if any(kernel is parts.rows for kernel in replaced)]
    if not apart:
        return
    others = [kernel for kernel in replaced if not any(kernel is parts.rows for parts in apart)]
    saved -= saved_bytes(set().union(*map(inductor.operation_names, others)), others) if len(others) > 1 else 0
    lost = sum(parts.read_again + LAUNCH_BYTES for parts in apart)
    if saved - lost <= sum(parts.unclear for parts in apart):
        names = ", ".join(parts.whole.get_name() for parts in apart)
        detail = f"a kernel with the rows alone saves {saved / 2**20:.1f} MB, and {lost / 2**20:.1f} MB are read again"
        raise Unsupported(Reason.not_profitable, f"{names}: {detail}")


def put_together(
    given: Schedule, schedule: Schedule, taken: Sequence[Parts], logs: Logs, room: Room | None
) -> Schedule:
    """Return the schedule with the mix-order kernels of which no part has become one of another kernel.

    given: as Inductor had it, with all of them, which needs room for what they leave.
    """
    apart = []
    for parts in taken:
        together = None
        with attempt(parts.whole.get_name()):
            together = _together(schedule, parts)
        if together is None:
            apart.append(parts)
        else:
            schedule = together
    if apart and room is not None:
        most = try_step(partial(_peak_with_workspaces, given, apart), 0)
        room.admit(most)
    for parts in apart:
        with attempt(parts.whole.get_name()):
            _log(parts, logs)
    return schedule


def _together(schedule: Schedule, parts: Parts) -> Schedule | None:
    """Return the schedule with a mix-order kernel in the place of its parts; None where it has them no more."""
    positions = positions_of(schedule, (parts.rows, parts.columns))
    if len(positions) != 2 or not stay_in_order(schedule, [set(positions)]):
        return None
    return codegen.replace_kernels(parts.whole.scheduler, schedule, {positions[0]: parts.whole}, set(positions))


def _column_sums(parts: Parts) -> list[sums.ColumnSum]:
    return [sums.column_sum(node) for node in inductor.loop_nodes(parts.columns) if sums.is_column_part(node)]


def _peak_with_workspaces(given: Schedule, apart: Sequence[Parts]) -> int:
    """Return the peak of Inductor's schedule with the partial sums of mix-order kernels: its estimate has fewer."""
    with ExitStack() as undo:
        for parts in apart:
            processors = inductor.multiprocessors(inductor.device_of(parts.rows))
            sums.resize_to_workspace(_column_sums(parts), processors, undo)
        return estimated_peak(given)


def _log(parts: Parts, logs: Logs) -> None:
    """Note that a kernel is two, in the log of its group, and that PyTorch does not add up what its programs leave."""
    owner = logs.owner(inductor.operation_names(parts.whole))
    assert owner is not None, "rows that are in another kernel have a group"
    owner.divide()
    owner.spare_sums(launches_to_add_up(_column_sums(parts)))
