"""Relations of sizes that a graph's guards lack, where a group would be fused with them."""

from __future__ import annotations

from dataclasses import replace

from ..inductor.protocols import Schedule
from ..options import Options
from ..reasons import Reason, Unsupported
from .group_log import GroupLog
from .grouping import Group
from .transformation import transform_unseen
from .translation import lacks_guards, loop_choices, translate_somehow


def name_missing_guard(group: Group, schedule: Schedule, options: Options, log: GroupLog) -> None:
    """Refuse the group with the relations of sizes under which it would be fused, if there are such."""
    conditions = _find_conditions(group, schedule, options)
    if conditions is None:
        return
    if log.record is not None:
        log.record.guards.insert(0, conditions)
    detail = f"fused only where {conditions}, which no guard says: torch._check in the function adds one"
    log.refuse(Reason.dynamic_extent, detail)


def _find_conditions(group: Group, schedule: Schedule, options: Options) -> str | None:
    if not lacks_guards(group, schedule):
        return None
    choices = loop_choices(group, schedule, assume=True)
    multiples = choices[0][0].multiples
    try:
        # Of a copy: the kernel at fault is the one without an assumption.
        translation = translate_somehow("assumed", replace(group), schedule, choices, options.max_accesses)
        bands = transform_unseen(translation, options, group)
    except Unsupported:
        return None
    sizes = {s.name: tuple([multiples.same(e) for e in part] for part in s.sizes) for s in choices[0]}
    if all(sizes[n.name] == (n.iter_sizes, n.reduce_sizes) for band in bands for n in band.nodes):
        return None
    return " and ".join(f"{d.lhs.args[0]} % {d.lhs.args[1]} == 0" for d in multiples.unproven)
