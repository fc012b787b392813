"""Say what is live while each kernel runs, which no decision may raise above what Inductor's own schedule needs.

A fused kernel needs all that its parts read and make at once, and a launch that kernels share makes the later ones'
buffers earlier.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..inductor.memory import SMALLEST_BLOCK, bytes_held, estimated_peak, live_bytes, peak_bytes
from ..inductor.protocols import Kernel, Schedule
from ..reasons import Reason, Unsupported

#: One part in so many of a peak is what the count of overwritten bytes may be wrong by: with two fusions that by it
#: need 2048 bytes of 480 MB more, a step of BERT was measured to need less.
FINEST = 10_000


def _allowance(most: int) -> int:
    """Return bytes above a peak that mean nothing where Inductor's own estimate is no block higher."""
    return max(SMALLEST_BLOCK, most // FINEST)


@dataclass
class Room:
    """most: bytes that Inductor's own schedule needs, in the order that it would have run in; levels: by kernel, bytes
    that are live while it runs, or more; counted: `most` with what kernels overwrite counted twice, as by Inductor."""

    most: int
    levels: dict[Kernel, int]
    counted: int = 0

    @staticmethod
    def of(schedule: Schedule) -> Room:
        """Return the room of kernels that are in the order in which Inductor would run them."""
        levels = _levels(schedule)
        return Room(max(levels.values(), default=0), levels, peak_bytes(schedule, in_place=False))

    @staticmethod
    def unknown() -> Room:
        """Return the room of a schedule that has no estimate: nothing is refused."""
        return Room(0, {})

    def check(self, before: Schedule, positions: Collection[int], after: Schedule) -> None:
        """Raise Unsupported for a schedule that needs more, in its own order and in the one that Inductor will give it.

        positions: of kernels that have become one since the schedule before, which may have become others, too.
        """
        if not self.levels:
            return
        levels = self._bounds(before, positions, after)
        if levels is None or max(levels.values()) > self.most:
            levels = self._levels_below(after, self.most)
        self.levels |= levels

    def _levels_below(self, after: Schedule, most: int) -> dict[Kernel, int]:
        """Return the levels of a schedule; Unsupported where they, in Inductor's order too, are above `most`."""
        levels = _levels(after)
        own = max(levels.values(), default=0)
        above = estimated_peak(after, own) - most if own > most else own - most
        if above > 0 and not self._means_nothing(above, after):
            raise Unsupported(Reason.not_profitable, f"the graph would need {above:,} bytes of memory more")
        return levels

    def _means_nothing(self, above: int, after: Schedule) -> bool:
        """Return True for bytes within what the count is exact to, if Inductor's own estimate is no block higher."""
        return above < _allowance(self.most) and peak_bytes(after, in_place=False) - self.counted < SMALLEST_BLOCK

    def check_all(self, after: Schedule, most: int) -> None:
        """Raise Unsupported for a schedule that needs more, some of whose buffers have other sizes than before.

        most: what Inductor's own schedule needs with such sizes, where that is more.
        """
        if not self.levels:
            return
        most = max(self.most, most)
        self.levels, self.most = self._levels_below(after, most), most

    def admit(self, most: int) -> None:
        """Note that Inductor's own schedule needs so many bytes, if these are more than its estimate has."""
        if self.levels:
            self.most = max(self.most, most)

    def _bounds(self, before: Schedule, positions: Collection[int], after: Schedule) -> dict[Kernel, int] | None:
        """Return what may be live while the kernels around run, if all that the new one needs is; None: unknown.

        In a new order, other kernels' buffers may be live for longer.
        """
        earlier, later = set(before), set(after)
        if [kernel for kernel in after if kernel in earlier] != [kernel for kernel in before if kernel in later]:
            return None
        around = before[min(positions) : max(positions) + 1]
        if any(kernel not in self.levels for kernel in around):
            return None
        more = sum(bytes_held(before[position]) for position in positions)
        made = [kernel for kernel in after if kernel not in earlier]
        levels = {kernel: self.levels[kernel] + more for kernel in [*around, *made] if kernel in self.levels}
        return {**dict.fromkeys(made, max(levels.values())), **levels}


def _levels(schedule: Schedule) -> dict[Kernel, int]:
    return {kernel: level for kernel, (level, _) in zip(schedule, live_bytes(schedule), strict=True)}


@dataclass
class Liveness:
    """Hold bytes by kernel: live while it runs (levels), of the buffers that it makes (made); peak: of the graph.

    counted: the same with what kernels overwrite counted twice, as by Inductor; without it nothing above the peak is
    allowed.
    """

    levels: dict[Kernel, int]
    made: dict[Kernel, int]
    peak: int
    counted: Liveness | None = None

    @staticmethod
    def of(schedule: Schedule) -> Liveness:
        """Return what is live in a schedule."""
        live = Liveness._of(schedule, in_place=True)
        live.counted = Liveness._of(schedule, in_place=False)
        return live

    @staticmethod
    def _of(schedule: Schedule, in_place: bool) -> Liveness:
        found = dict(zip(schedule, live_bytes(schedule, in_place), strict=True))
        levels, made = ({kernel: pair[i] for kernel, pair in found.items()} for i in (0, 1))
        return Liveness(levels, made, max(levels.values(), default=0))

    def check(self, schedule: Schedule, positions: list[int]) -> None:
        """Raise Unsupported if others that run then need more memory than the graph, with what waits for its readers.

        No launch pays for a block of the allocator's: in decoding all buffers are small.  What the launch itself needs,
        as its kernels' buffers are there at the same time, is the price of any launch.
        """
        above = self._above(schedule, positions)
        if self.counted is not None:
            counted = self.counted._above(schedule, positions)
            exact = above if above >= _allowance(self.peak) else 0
            above = max(counted if counted >= SMALLEST_BLOCK else 0, exact)
        if above > 0:
            detail = f"the graph would need {above:,} bytes of memory more, as a common launch's results wait"
            raise Unsupported(Reason.not_profitable, detail)

    def _above(self, schedule: Schedule, positions: list[int]) -> int:
        """Return the bytes above the graph's peak that others would need meanwhile."""
        levels, members = self._levels_of_one(schedule, positions), {schedule[p] for p in positions}
        return max((level for kernel, level in levels.items() if kernel not in members), default=0) - self.peak

    def join(self, schedule: Schedule, positions: list[int], joined: Kernel) -> None:
        """Note that `joined` is in the place of these kernels of a schedule."""
        if self.counted is not None:
            self.counted.join(schedule, positions, joined)
        self.levels |= self._levels_of_one(schedule, positions)
        self.levels[joined] = self.levels[schedule[positions[0]]]
        self.made[joined] = sum(self.made[schedule[p]] for p in positions)

    def _levels_of_one(self, schedule: Schedule, positions: list[int]) -> dict[Kernel, int]:
        """Return the levels from the first to the last of kernels whose buffers are all made at the first."""
        moved = {schedule[p] for p in positions[1:]}
        early = sum(self.made[kernel] for kernel in moved)
        levels = {}
        for kernel in schedule[positions[0] : positions[-1]]:
            early -= self.made[kernel] if kernel in moved else 0
            levels[kernel] = self.levels[kernel] + early
        return levels
