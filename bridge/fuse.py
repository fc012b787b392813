"""One group from scheduler nodes to scheduler nodes: translate, transform, lift, commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import inductor_compat as inductor
from .config import Options
from .dump import Dump
from .groups import Group, Refusal, form_groups
from .reasons import InvariantError, Reason, Unsupported
from .report import GroupReport, Report


@dataclass(frozen=True)
class Kernel:
    """One kernel of Inductor's in a group; several parts where C++ codegen fuses outer loops alone."""

    position: int
    scheduled: Any


def fuse_schedule(schedule: list[Any], options: Options, report: Report) -> list[Any]:
    """The schedule with every group fused that is proven and liftable; all else as it was."""
    groups, refusals = form_groups(schedule)
    report.refusals += refusals
    report.count("groups_seen", len(groups))
    for number, group in enumerate(groups):
        entry = _group_report(f"group{number}", group, schedule)
        report.groups.append(entry)
        fused, removed = _try_group(group, schedule, options, entry)
        if fused:
            report.count("groups_fused")
            with entry.stage("replace"):
                schedule = _replace(schedule, groups, fused, removed)
        elif entry.reason is not None:
            report.count(f"refused.{entry.reason.name}")
    return schedule


def _replace(schedule: list[Any], groups: list[Group], fused: dict[int, Any], removed: set[int]) -> list[Any]:
    """Replaces kernels and lets the groups that are still to come point at the same kernels as before."""
    scheduler = next(iter(fused.values())).scheduler
    changed = inductor.replace_kernels(scheduler, schedule, fused, removed)
    new_positions = {id(kernel): i for i, kernel in enumerate(changed)}
    for group in groups:
        group.positions = [new_positions[id(schedule[p])] for p in group.positions if id(schedule[p]) in new_positions]
    return changed


def _group_report(name: str, group: Group, schedule: list[Any]) -> GroupReport:
    nodes = [n for p in group.positions for n in inductor.loop_nodes(schedule[p])]
    locations = [where for where in map(inductor.node_location, nodes) if where is not None]
    count = len(group.positions)
    return GroupReport(name, [n.get_name() for n in nodes], count, count, locations=locations)


def _try_group(group: Group, schedule: list[Any], options: Options, entry: GroupReport):
    """(new kernels by position, positions replaced); both empty where the group is left alone."""
    try:
        return _fuse_group(group, schedule, options, entry)
    except Unsupported as refusal:
        entry.reason, entry.detail = refusal.reason, refusal.detail
    except InvariantError as broken:
        if options.strict:
            raise
        entry.reason, entry.detail = Reason.internal_error, str(broken)
    return {}, set()


def _fuse_group(group: Group, schedule: list[Any], options: Options, entry: GroupReport):
    from .lowering.band import FunctionTables, lift_function
    from .pipeline import run_pipeline

    dump = Dump(options.dump_dir, entry.name)
    with entry.stage("translate"):
        nodes, translation = _translate(group, schedule, options, dump, entry.name)
    with entry.stage("passes"):
        remarks = run_pipeline(translation.module, options.pipeline, dump)
    entry.remarks = [(r.reason, r.text, r.location) for r in remarks]
    with entry.stage("lift"):
        buffers = [(name, m.view.strides) for name, m in translation.memrefs.items()]
        stores = {t.name: {a.buffer for a in t.accesses if a.is_write} for t in translation.traces}
        with translation.module.context:
            function = translation.module.body.operations[0].operation
            bands = lift_function(function, FunctionTables(buffers, translation.symbols), stores)
            dump.write("lifted.mlir", str(translation.module))
            fused, removed = _commit(bands, nodes, group, schedule, entry)
    if not fused:
        _explain_refusal(entry)
    return fused, removed


def _translate(group: Group, schedule: list[Any], options: Options, dump: Dump, name: str):
    from .translate.group import GroupTarget, NodeSource, make_prover, trace_group, translate_group

    sources, nodes = [], {}
    for kernel, position in enumerate(group.positions):
        for node in inductor.loop_nodes(schedule[position]):
            nodes[node.get_name()] = node
            where = inductor.node_location(node)
            body, sizes = inductor.node_body(node), inductor.node_sizes(node)
            sources.append(NodeSource(node.get_name(), body, sizes, kernel, where))
    if len(sources) > options.max_nodes:
        raise Unsupported(Reason.budget_exceeded, f"{len(sources)} nodes, at most {options.max_nodes}")
    dump.write("loop-ir.txt", "\n".join(f"{s.name} {s.sizes}\n{s.body.debug_str()}\n" for s in sources))
    target = GroupTarget(
        inductor.buffer_dtype, inductor.buffer_numel, make_prover(), inductor.rounds_at_conversion(group.device)
    )
    translation = translate_group(name, sources, trace_group(sources), target)
    if dump.active:
        path = dump.write("affine.mlir", str(translation.module))
        dump.replay(path.name if path else "", options.pipeline)
    return nodes, translation


def _commit(bands: list, nodes: dict[str, Any], group: Group, schedule: list[Any], entry: GroupReport):
    """Gives the nodes of each band their new loops and makes one kernel of them, or restores them."""
    fused: dict[int, Any] = {}
    removed: set[int] = set()
    for band in bands:
        positions = {group.positions[k] for k in band.kernels}
        whole = {n.get_name() for p in positions for n in inductor.loop_nodes(schedule[p])}
        if whole != {n.name for n in band.nodes}:
            entry.decisions.append(f"{[n.name for n in band.nodes]}: only a part of a kernel of Inductor's")
            continue
        kernel = _rewrite(band, nodes)
        if kernel is None:
            entry.decisions.append(f"{[n.name for n in band.nodes]}: Inductor's codegen cannot run them together")
            continue
        fused[min(positions)] = kernel
        removed |= positions
        entry.fused = True
        entry.kernels_after -= len(positions) - 1
    return fused, removed


def _rewrite(band, nodes: dict[str, Any]):
    """One kernel of the band's nodes over their new loops; None, and nothing changed, if there is no such."""
    bodies = {n.name: inductor.make_loop_body(n.body, n.iter_sizes, n.reduce_sizes) for n in band.nodes}
    saved = {name: inductor.save_loop_state(nodes[name]) for name in bodies}
    for name, body in bodies.items():
        inductor.set_loop_body(nodes[name], body)
    kernel = inductor.fuse_nodes([nodes[n.name] for n in band.nodes])
    if kernel is None:
        for name, state in saved.items():
            inductor.restore_loop_state(nodes[name], state)
    return kernel


def _explain_refusal(entry: GroupReport) -> None:
    """The group's reason is its passes' last word, or the lift's."""
    if entry.decisions:
        entry.reason, entry.detail = Reason.not_liftable, entry.decisions[-1]
    elif entry.remarks:
        reason, text, where = entry.remarks[-1]
        entry.reason, entry.detail = Reason[reason], f"{text} at {where}"
    else:
        entry.reason, entry.detail = Reason.no_common_band, "no two nests meet"


__all__ = ["fuse_schedule", "Refusal"]
