"""One launch for sibling kernels: independent of each other, they divide the program ids of one kernel.

They may overwrite what is not their own (the cache of keys and values): Inductor's dependences order such a kernel
after all that read the buffer before, and before all that read it afterwards, and siblings wait for none of their own.

Each keeps its loops, its block sizes and its choice of a persistent reduction; only, a short reduction that looped
becomes persistent beside one that is.  What is saved is a launch, and the tail of a kernel that leaves multiprocessors
idle; what it costs is that all share one number of warps and the registers of the largest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from .. import inductor
from ..lowering.triton import codegen
from ..lowering.triton.combo_kernels import cannot_share_launch
from ..reasons import Reason, Unsupported
from ..reports import GroupReport
from ..scheduling.grouping import admissible, reachable
from ..support.error_boundary import attempt, check_not_faulty, try_step
from .peak_memory import Liveness, Room

#: Kernels in one launch; Inductor's own limit for its combo kernels.
MAX_SIBLINGS = 8

#: Buffers of one launch: a kernel's parameters are limited to 4 KB, and sizes take some of them.
MAX_BUFFERS = 250

#: Kernels that may stand between siblings: what they wait for is computed, and kept, that much earlier.
MAX_DISTANCE = 16

#: Bytes that a kernel moves in many times what a launch takes (2 us in a graph on an H100, where 256 MB take 100).
LARGE_BYTES = 256 << 20

#: Bytes that kernels without reductions, and without a common group, may move in one launch: their inputs were written
#: just before, and are all in the L2 cache still (50 MB on an H100).
FRESH_BYTES = 32 << 20

#: Bytes that a kernel without reductions may move in a launch with some.  It runs with their registers, so fewer of
#: its warps at a time: on an H100, RoPE of 16 MB beside a norm gained 1 us, of 66 MB lost 0.6 us, of 260 MB 8 us.
MIXED_BYTES = 32 << 20


@dataclass(frozen=True)
class _Sibling:
    """A kernel or an earlier launch of several, the bytes that it moves of each buffer, and whether it reduces."""

    kernel: Any
    moved: dict[str, int]
    reduces: bool

    @property
    def total(self) -> int:
        return sum(self.moved.values())

    @property
    def name(self) -> str:
        return self.kernel.get_name()


def sharable(kernel: Any) -> Reason | None:
    """None for a kernel, or a launch of several, that may share a launch with others, else the reason why not."""
    reasons = map(_obstacle, inductor.launch_parts(kernel))
    return next((reason for reason in reasons if reason is not None), None)


def _obstacle(kernel: Any) -> Reason | None:
    reason = admissible(kernel)
    return None if reason is Reason.mutation and inductor.only_overwrites(kernel) else reason


def independent_sets(schedule: list[Any], names: set[str]) -> list[list[int]]:
    """Sets of schedule positions whose kernels may run in any order, or at the same time, and belong together.

    names: operations of one group.  Independent is what no chain of buffers connects; together belong kernels
    that read a common buffer or have as many rows.  The affine passes are to take this over.
    """
    return _sets(
        schedule, lambda k: inductor.operation_names(k) <= names and admissible(k) is None, _akin, len(schedule)
    )


def strangers(schedule: list[Any]) -> list[list[int]]:
    """As `independent_sets`, of kernels that no group has together: equal reductions over as many rows."""
    return _sets(schedule, lambda k: admissible(k) is None, _alike, MAX_DISTANCE)


def small_strangers(schedule: list[Any]) -> list[list[int]]:
    """As `strangers`: kernels that read a common buffer, and those that reduce nothing and have as many elements.

    They may overwrite buffers, which keeps them out of groups, and be launches of several.
    """
    return _sets(schedule, _is_small, _near, MAX_DISTANCE)


def small_sources(schedule: list[Any]) -> list[list[int]]:
    """As `small_strangers`: kernels whose results one kernel reads, an attention its query and its mask.

    None waits for long, so there is room in memory for a kernel that had none in a launch with its earlier equals.
    """
    return _sets(schedule, _is_small, _feed_one, MAX_DISTANCE)


def _is_small(kernel: Any) -> bool:
    return sharable(kernel) is None and _sibling(kernel).total <= FRESH_BYTES


def _sets(
    schedule: list[Any], eligible: Callable[[Any], bool], related: Callable[[Any, Any], bool], distance: int
) -> list[list[int]]:
    candidates = [p for p, kernel in enumerate(schedule) if _holds(eligible, kernel)]
    if len(candidates) < 2:
        return []
    reach = reachable(schedule, candidates)
    done: list[list[int]] = []
    near: list[list[int]] = []
    for position in candidates:
        done += [s for s in near if position - s[0] > distance]
        near = [s for s in near if position - s[0] <= distance]
        home = next((s for s in near if _belongs(schedule, s, position, reach, related)), None)
        if home is None:
            near.append([position])
        else:
            home.append(position)
    return [s for s in done + near if len(s) > 1]


def _belongs(
    schedule: list[Any], members: list[int], position: int, reach: dict[int, int], related: Callable[[Any, Any], bool]
) -> bool:
    """Whether a kernel is independent of each of the earlier `members` and related to one."""
    if any(reach[position] >> m & 1 for m in members):
        return False
    return any(_holds(related, schedule[position], schedule[m]) for m in members)


def _holds(condition: Callable[..., bool], kernel: Any, *others: Any) -> bool:
    """What a condition says of a kernel; False where a bug ends it."""
    return try_step(partial(condition, kernel, *others), False, kernel.get_name())


def _akin(one: Any, other: Any) -> bool:
    if inductor.device_of(one) != inductor.device_of(other):
        return False
    return bool(inductor.buffers_read(one) & inductor.buffers_read(other)) or _rows(one) == _rows(other)


def _alike(one: Any, other: Any) -> bool:
    if inductor.device_of(one) != inductor.device_of(other) or _rows(one) != _rows(other):
        return False
    return _reduced(one) is not None and _reduced(one) == _reduced(other)


def _near(one: Any, other: Any) -> bool:
    pairs = itertools.product(inductor.launch_parts(one), inductor.launch_parts(other))
    return any(_share_input(a, b) or _equal_elements(a, b) for a, b in pairs)


def _feed_one(one: Any, other: Any) -> bool:
    return bool(inductor.readers(one) & inductor.readers(other))


def _equal_elements(one: Any, other: Any) -> bool:
    """Whether both reduce nothing and compute as many elements."""
    if _reduced(one) is not None or _reduced(other) is not None:
        return False
    return _elements(one) == _elements(other)


def _elements(kernel: Any) -> Any:
    return prod(inductor.node_sizes(inductor.loop_nodes(kernel)[0])[0])


def _rows(kernel: Any) -> Any:
    """The extent of a kernel's outermost loop; None for a kernel with no loop outside its reductions."""
    sizes, _ = inductor.node_sizes(inductor.loop_nodes(kernel)[0])
    return sizes[0] if sizes else None


def _reduced(kernel: Any) -> Any:
    """The extents that a kernel reduces over; None for a kernel that reduces nothing."""
    return next((sizes for _, sizes in map(inductor.node_sizes, inductor.loop_nodes(kernel)) if sizes), None)


def partition(
    schedule: list[Any],
    sets: list[list[int]],
    entry: GroupReport,
    most_bytes: int | None = None,
    memory: tuple[Liveness | None, Room | None] = (None, None),
    force: bool = False,
) -> list[Any]:
    """The schedule with one kernel in the place of each set, as far as that is possible and pays.

    sets: positions of kernels that were proven independent of each other; most_bytes: that one launch may move;
    memory: what the kernels need of it and what the graph may, None where that is not known; force: whether a launch
    pays does not matter.
    What was done, or why not, goes into `entry`; a set whose kernels stay apart leaves the schedule as it was.
    """
    families: list[list[Any]] = []
    for positions in sets:
        with attempt(note=entry.keep_apart):
            families += [[schedule[p] for p in part] for part in _parts(schedule, positions, most_bytes)]
    for family in families:
        if not all(inductor.generates_triton(_device(kernel)) for kernel in family):
            continue
        live, _ = memory
        for kernels in [family] if live is None else _with_room(schedule, family, entry, live):
            with attempt(note=entry.keep_apart):
                schedule = _share(schedule, kernels, entry, memory, force)
    return schedule


def _with_room(schedule: list[Any], family: list[Any], entry: GroupReport, live: Liveness) -> list[list[Any]]:
    """A family in parts of two and more, none of which raises the graph's peak of memory.

    A kernel whose results would wait for too long begins the next part, which is nearer to their readers; what is alone
    then may find others (`small_sources`).
    """
    parts = [family[:1]]
    for kernel in family[1:]:
        joins = False
        with attempt(note=entry.keep_apart):
            live.check(schedule, positions_of(schedule, [*parts[-1], kernel]))
            joins = True
        if joins:
            parts[-1].append(kernel)
        else:
            parts.append([kernel])
    return [part for part in parts if len(part) > 1]


def _parts(schedule: list[Any], positions: list[int], most_bytes: int | None) -> list[list[int]]:
    """A set in parts that one launch may have."""
    parts: list[list[int]] = [[]]
    for position in positions:
        joined = [schedule[p] for p in [*parts[-1], position]]
        fits = sum(len(inductor.launch_parts(kernel)) for kernel in joined) <= MAX_SIBLINGS
        if fits and (most_bytes is None or sum(_sibling(kernel).total for kernel in joined) <= most_bytes):
            parts[-1].append(position)
        else:
            parts.append([position])
    return [part for part in parts if len(part) > 1]


def _share(
    schedule: list[Any],
    family: list[Any],
    entry: GroupReport,
    memory: tuple[Liveness | None, Room | None],
    force: bool,
) -> list[Any]:
    """The schedule with one kernel in the place of a family; where that ends in an error, nothing is changed."""
    live, room = memory
    _check_possible(schedule, family)
    siblings = [_sibling(kernel) for kernel in family]
    if force:
        _check_buffers(siblings)
    chosen = siblings if force else _worthwhile(siblings)
    positions = positions_of(schedule, [sibling.kernel for sibling in chosen])
    if live is not None:  # once more: earlier parts have joined, and those that gain nothing are left out
        live.check(schedule, positions)
    joined = codegen.share_launch([part for p in positions for part in inductor.launch_parts(schedule[p])])
    described = _describe(chosen)
    changed = _replaced(schedule, positions, joined, room)
    if live is not None:
        live.join(schedule, positions, joined)
    entry.decisions.append(described)
    entry.fused, entry.reason, entry.detail = True, None, ""
    entry.kernels_after -= len(positions) - 1
    return changed


def _replaced(schedule: list[Any], positions: list[int], joined: Any, room: Room | None) -> list[Any]:
    """The schedule with a launch in the place of kernels; Unsupported, and nothing changed, where there is no room."""
    changed = codegen.replace_kernels(joined.scheduler, schedule, {positions[0]: joined}, set(positions))
    if room is None:
        return changed
    try:
        room.check(schedule, positions, changed)
    except Unsupported:
        codegen.put_back([schedule[position] for position in positions])
        raise
    return changed


def positions_of(schedule: list[Any], kernels: list[Any]) -> list[int]:
    """Where kernels stand in a schedule, ascending."""
    wanted = set(map(id, kernels))
    return [position for position, kernel in enumerate(schedule) if id(kernel) in wanted]


def _device(kernel: Any) -> Any:
    return inductor.device_of(inductor.launch_parts(kernel)[0])


def _sibling(kernel: Any) -> _Sibling:
    reduces = any(inductor.node_sizes(node)[1] for node in inductor.loop_nodes(kernel))
    return _Sibling(kernel, inductor.bytes_touched(kernel), reduces)


def _check_possible(schedule: list[Any], family: list[Any]) -> None:
    """Unsupported where the kernels may not, or cannot, share a launch."""
    for kernel in family:
        check_not_faulty(inductor.operation_names(kernel))
        reason = sharable(kernel)
        if reason is not None:
            raise Unsupported(reason, f"{kernel.get_name()} is not a kernel of plain loops that it owns")
    device = _device(family[0])
    if any(_device(kernel) != device for kernel in family):
        raise Unsupported(Reason.different_device, _names(family))
    obstacle = cannot_share_launch(family[0].scheduler, device)
    if obstacle is not None:
        raise Unsupported(Reason.not_liftable, obstacle)
    members = positions_of(schedule, family)
    reach = reachable(schedule, members)
    if any(reach[later] >> earlier & 1 for earlier in members for later in members):
        raise Unsupported(Reason.cycle_through_other_node, f"one of {_names(family)} waits for another")
    if members[-1] - members[0] + 1 - len(members) > MAX_DISTANCE:
        raise Unsupported(Reason.budget_exceeded, f"more than {MAX_DISTANCE} kernels between {_names(family)}")


def _worthwhile(family: list[_Sibling]) -> list[_Sibling]:
    """The siblings that gain by a common launch; Unsupported, with the numbers, if there are no two.

    A reduction along which memory is far apart needs blocks of many rows, which it has alone: in common launches such
    took up to three times as long (docs/results.md, "A public corpus").
    """
    near = [s for s in family if not (s.reduces and inductor.bytes_beside_rows(s.kernel, 1))]
    reduces = any(sibling.reduces for sibling in near)
    chosen = [s for s in near if s.reduces or not reduces or s.total <= MIXED_BYTES]
    chosen = [
        s
        for s in chosen
        if s.total <= LARGE_BYTES or any(_share_input(s.kernel, o.kernel) for o in chosen if o is not s)
    ]
    if len(chosen) < 2:
        raise Unsupported(Reason.not_profitable, f"{_numbers(family)}: a launch saved is less than is lost")
    _check_buffers(chosen)
    return chosen


def _check_buffers(family: list[_Sibling]) -> None:
    buffers = {name for sibling in family for name in sibling.moved}
    if len(buffers) > MAX_BUFFERS:
        raise Unsupported(Reason.budget_exceeded, f"{len(buffers)} buffers, at most {MAX_BUFFERS}")


def _share_input(one: Any, other: Any) -> bool:
    return bool(inductor.buffers_read(one) & inductor.buffers_read(other))


def _describe(siblings: list[_Sibling]) -> str:
    return f"one launch for {len(siblings)} siblings, {len(siblings) - 1} saved: {_numbers(siblings)}"


def _numbers(siblings: list[_Sibling]) -> str:
    return ", ".join(f"{s.name}{' (reduces)' if s.reduces else ''} {_megabytes(s.total)}" for s in siblings)


def _names(kernels: list[Any]) -> str:
    return ", ".join(kernel.get_name() for kernel in kernels)


def _megabytes(amount: int) -> str:
    return f"{amount / 2**20:.1f} MB"
