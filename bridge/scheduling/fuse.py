"""One group from scheduler nodes to scheduler nodes: translate, transform, lift, commit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .. import inductor
from ..diagnostics import recording, torch_logging
from ..diagnostics.dump import Dump
from ..horizontal.launch_sets import share_launches
from ..horizontal.peak_memory import Room
from ..inductor.cpp import comes_apart
from ..inductor.inspection import node_location
from ..lowering.triton import codegen
from ..lowering.triton.profitability import (
    LAUNCH_BYTES,
    MAX_ROW_REGISTERS,
    fits_in_registers,
    rows_and_warps,
    traffic,
    traffic_of_one,
)
from ..options import DEFAULT_PIPELINE, Options, default_pipeline
from ..reasons import InvariantError, Reason, Unsupported
from ..reports import Counterexample, GroupReport, Report
from ..support.error_boundary import attempt, boundary, check_not_faulty, try_step
from .benchmark_fusion import Timing
from .grouping import Group, form_groups, group_report, stay_in_order
from .persistent_reductions import make_persistent_reductions


@dataclass
class Outcome:
    """What became of a group.

    fused: new kernels by the position of the first that each replaces; removed: positions of all replaced;
    refused: position of the kernel that could not be translated; translated: operations of the group, if all were;
    undo: gives the nodes of the new kernels their old loops.
    """

    fused: dict[int, Any] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    refused: int | None = None
    translated: set[str] = field(default_factory=set)
    undo: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


def fuse_schedule(schedule: list[Any], options: Options, report: Report) -> list[Any]:
    """The schedule with every group fused that is proven and liftable; all else as it was."""
    earlier = len(report.groups)
    with boundary(options.strict, report.adder()):
        room = None if options.force_fusion else try_step(partial(Room.of, schedule), Room.unknown())
        schedule, translated = _fuse_groups(schedule, options, report, room)
        # After the last fusion: a group's test for cycles does not know of launches that kernels share.
        schedule = share_launches(schedule, translated, options, report, room)
        if options.persistent and options.unfused_rows:
            report.choices += try_step(partial(_keep_rows_of_others, schedule, report.groups[earlier:]), [])
    for entry in report.groups[earlier:]:
        report.count_all(entry.outcomes)
    return schedule


def _fuse_groups(
    schedule: list[Any], options: Options, report: Report, room: Room | None
) -> tuple[list[Any], list[tuple[set[str], GroupReport]]]:
    """(the schedule with a kernel in the place of each band, (operations, if translated, and entry) of each group)."""
    pending, refusals = try_step(partial(form_groups, schedule, options.max_nodes), ([], []))
    report.refusals += refusals
    report.count("groups_seen", len(pending))
    translated: list[tuple[set[str], GroupReport]] = []
    while pending:
        group = pending.pop(0)
        entry = try_step(partial(group_report, f"group{len(report.groups)}", group, schedule), None, *group.names)
        if entry is None:
            continue
        report.groups.append(entry)
        outcome = _try_group(group, schedule, options, entry, room)
        translated.append((outcome.translated, entry))
        if outcome.refused is not None:
            only = set(group.positions) - {outcome.refused}
            rest, _ = try_step(partial(form_groups, schedule, options.max_nodes, only=only), ([], []))
            pending = rest + pending
        if outcome.fused:
            schedule = _replace_or_undo(schedule, pending, outcome, entry)
    return schedule, translated


def _keep_rows_of_others(schedule: list[Any], groups: list[GroupReport]) -> list[str]:
    """Has kernels that no group changed keep the rows that they read several times; what was decided."""
    fused = {name for entry in groups if entry.fused for name in entry.nodes}
    return make_persistent_reductions(schedule, fused)


def _replace_or_undo(schedule: list[Any], groups: list[Group], outcome: Outcome, entry: GroupReport) -> list[Any]:
    """The schedule with a group's new kernels; where that fails the old one, whose nodes have their loops again."""

    def undo(reason: Reason, detail: str) -> None:
        outcome.undo.close()
        entry.refuse(reason, detail)
        entry.decisions, entry.kernels_after = [], entry.kernels_before

    with attempt(note=undo), entry.stage("replace"):
        return _replace(schedule, groups, outcome)
    return schedule


def _replace(schedule: list[Any], groups: list[Group], outcome: Outcome) -> list[Any]:
    """Replaces kernels and lets the groups that are still to come point at the same kernels as before."""
    scheduler = next(iter(outcome.fused.values())).scheduler
    changed = codegen.replace_kernels(scheduler, schedule, outcome.fused, outcome.removed)
    new_positions = {id(kernel): i for i, kernel in enumerate(changed)}
    for group in groups:
        group.positions = [new_positions[id(schedule[p])] for p in group.positions if id(schedule[p]) in new_positions]
    return changed


def _try_group(group: Group, schedule: list[Any], options: Options, entry: GroupReport, room: Room | None) -> Outcome:
    """Fuses a group, or says in `entry` why it is left alone."""
    outcome = Outcome()
    with attempt(note=entry.refuse):
        _fuse_group(group, schedule, options, entry, outcome, room)
    outcome.refused = group.culprit
    if not outcome.fused and entry.reason is not Reason.internal_error:
        with attempt(note=entry.lack):
            _name_missing_guard(group, schedule, options, entry)
    return outcome


def _fuse_group(
    group: Group, schedule: list[Any], options: Options, entry: GroupReport, outcome: Outcome, room: Room | None
) -> None:
    """Has the bands of a group in `outcome`, each as soon as it is a kernel; nothing after that may fail."""
    from ..affine.pipeline import run_pipeline
    from ..lowering.lift.band import lift_function

    dump = try_step(partial(_open_dump, options, entry), Dump(None, ""), *group.names)
    with entry.stage("translate"):
        nodes, translation = translate(group, schedule, options, dump, entry.name)
    pipeline = _pipeline(options, group, translation)
    with _rechecked(translation.module, options, entry, dump), entry.stage("passes"):
        remarks = run_pipeline(translation.module, pipeline, dump, options.isolate, options.plugins)
    entry.remarks = [(r.reason, r.text, r.location) for r in remarks]
    entry.counterexamples = [Counterexample(r.reason, r.text, r.location, r.notes) for r in remarks if r.notes]
    with entry.stage("lift"):
        tables, stores = _tables(translation, options, group)
        with translation.module.context:
            bands = lift_function(translation.module.body.operations[0].operation, tables, stores)
            judged = options.persistent and not options.force_fusion
            if tables.knows_lanes and judged and not codegen.times_fusions(group.device):
                bands = [band for band in bands if _pays(band, entry)]
            _Commit(nodes, group, schedule, entry, outcome, room).of(bands)
    outcome.translated = set(group.names)
    if not outcome.fused:
        _explain_refusal(entry)
    dump.loop_bodies("lifted-loop-ir.txt", _loop_bodies(outcome.fused.values()))
    with attempt(note=entry.lack):
        recording.finish_group(entry, translation.symbols, pipeline)


def _tables(translation: Any, options: Options, group: Group) -> tuple[Any, dict[str, set[str]]]:
    """(what the lift knows of the function's arguments, the buffers that each node writes)."""
    from ..lowering.lift.band import FunctionTables

    buffers = [(name, m.view.strides) for name, m in translation.memrefs.items()]
    stores = {t.name: {a.buffer for a in t.accesses if a.is_write} for t in translation.traces}
    triton = inductor.generates_triton(group.device)
    tables = FunctionTables(buffers, translation.symbols, triton, _keeps_row(options), translation.multiples.same)
    return tables, stores


@contextlib.contextmanager
def _rechecked(module: Any, options: Options, entry: GroupReport, dump: Dump) -> Iterator[None]:
    """Has isl prove what the block makes of a module; Unsupported(recheck_failed) for what it does not."""
    if not options.recheck:
        yield
        return
    from ..affine.isl_verifier import Recheck

    with _refusing(options), entry.stage("recheck"), module.context:
        recheck = Recheck(module)
    yield
    with _refusing(options), entry.stage("recheck"), module.context:
        entry.certificate = recheck.verify(module)
    dump.write("certificate.txt", "\n".join(entry.certificate) + "\n")


@contextlib.contextmanager
def _refusing(options: Options) -> Iterator[None]:
    try:
        yield
    except InvariantError as broken:
        if options.strict:
            raise
        raise Unsupported(Reason.recheck_failed, str(broken)) from broken


def _keeps_row(options: Options) -> Callable[[int | None], bool]:
    return lambda registers: options.persistent and fits_in_registers(registers)


def _open_dump(options: Options, entry: GroupReport) -> Dump:
    """For the stages of a group: to the user's folder, else torch's, and to whatever else wants them."""
    listeners = torch_logging.stage_listeners(entry.name)
    if entry.record is not None:
        listeners.append(entry.record.add_stage)
    return Dump(options.dump_dir or torch_logging.debug_folder(), entry.name, listeners)


def _pipeline(options: Options, group: Group, translation: Any) -> str:
    """The user's pipeline, or the default for the group's code generator and roundings."""
    if options.pipeline != DEFAULT_PIPELINE:
        return options.pipeline
    triton = inductor.generates_triton(group.device)
    return default_pipeline(triton, options.force_fusion, translation.keeps_roundings)


def translate(group: Group, schedule: list[Any], options: Options, dump: Dump, name: str):
    nodes = _nodes(group, schedule)
    if len(nodes) > options.max_nodes:
        raise Unsupported(Reason.budget_exceeded, f"{len(nodes)} nodes, at most {options.max_nodes}")
    if inductor.computes_in_16_bits(group.device):
        raise Unsupported(Reason.unsupported_dtype, "triton.codegen_upcast_to_fp32 is off: no float32 between 16 bits")
    dump.loop_bodies("loop-ir.txt", _loop_bodies(schedule[p] for p in group.positions))
    translation = _translate_somehow(name, group, _loop_choices(group, schedule), options.max_accesses)
    if dump.active:
        path = dump.write("affine.mlir", str(translation.module))
        dump.replay(path.name if path else "", _pipeline(options, group, translation))
    return nodes, translation


def _nodes(group: Group, schedule: list[Any]) -> dict[str, Any]:
    return {n.get_name(): n for p in group.positions for n in inductor.loop_nodes(schedule[p])}


def _loop_choices(group: Group, schedule: list[Any], assume: bool = False) -> list[list]:
    from ..affine.translate.group import with_shared_loops

    kernels = [(k, inductor.loop_nodes(schedule[p])) for k, p in enumerate(group.positions)]
    return with_shared_loops([_source(node, kernel) for kernel, own in kernels for node in own], assume)


def _translate_somehow(name: str, group: Group, choices: list[list], max_accesses: int):
    """The translation with the first choice of loops that has one; Unsupported with the last's reason."""
    for sources in choices[:-1]:
        with contextlib.suppress(Unsupported):
            return _translate_sources(name, group, sources, max_accesses)
    return _translate_sources(name, group, choices[-1], max_accesses)


def _translate_sources(name: str, group: Group, sources: list, max_accesses: int):
    from ..affine.translate.group import GroupTarget, make_prover, trace_group, translate_group

    traces = []
    for kernel, position in enumerate(group.positions):
        group.culprit = position
        traces += trace_group([s for s in sources if s.kernel == kernel])
    group.culprit = None
    accesses = sum(len(trace.accesses) for trace in traces)
    if accesses > max_accesses:
        raise Unsupported(Reason.budget_exceeded, f"{accesses} loads and stores, at most {max_accesses}")
    target = GroupTarget(
        inductor.buffer_dtype,
        inductor.buffer_numel,
        make_prover(),
        inductor.rounds_at_conversion(group.device),
        inductor.storage_of,
        inductor.emulates_eager_rounding(),
    )
    return translate_group(name, sources, traces, target)


def _loop_bodies(kernels: Iterable[Any]) -> Iterator[tuple[str, Any, Any]]:
    """(name, sizes, LoopBody) of every scheduler node in the kernels."""
    for node in (n for kernel in kernels for n in inductor.loop_nodes(kernel)):
        yield node.get_name(), inductor.node_sizes(node), inductor.node_body(node)


def _source(node: Any, kernel: int):
    from ..affine.translate.group import NodeSource

    body, sizes = inductor.node_body(node), inductor.node_sizes(node)
    return NodeSource(node.get_name(), body, sizes, kernel, node_location(node))


@dataclass
class _Commit:
    """Gives the nodes of each band their new loops and makes one kernel of them, or restores them.

    room: in memory, None where whether a band pays is not asked; merged: positions of the kernels in each new one.
    """

    nodes: dict[str, Any]
    group: Group
    schedule: list[Any]
    entry: GroupReport
    outcome: Outcome
    room: Room | None
    merged: list[set[int]] = field(default_factory=list)

    def of(self, bands: Iterable[Any]) -> None:
        for band in bands:
            with attempt(note=self._refuse):  # bands that are committed stay
                self._commit(band)

    def _refuse(self, reason: Reason, detail: str) -> None:
        self.entry.keep_apart(reason, detail)
        if not self.entry.fused:
            self.entry.refuse(reason, detail)

    def _commit(self, band: Any) -> None:
        positions = {self.group.positions[k] for k in band.kernels}
        if len(positions) == 1 and _has_loops_of(band, self.nodes):
            return
        replaced = [self.schedule[p] for p in positions]
        check_not_faulty({node.name for node in band.nodes})
        _check_whole(band, replaced)
        _check_order(band, self.schedule, [*self.merged, positions])
        check = None if self.room is None else partial(_check_room, self.room, self.schedule, self.outcome, positions)
        kernel, decisions, undo = rewrite(band, self.nodes, [] if self.room is None else replaced, check)
        self.outcome.undo.push(undo)
        self.outcome.fused[min(positions)] = kernel
        self.outcome.removed.update(positions)
        self.merged.append(positions)
        self.entry.decisions += decisions
        self.entry.fused, self.entry.reason, self.entry.detail = True, None, ""
        self.entry.kernels_after -= len(positions) - 1


def _check_room(room: Room, schedule: list[Any], outcome: Outcome, positions: set[int], kernel: Any) -> None:
    """Unsupported, and the schedule as it was, where the graph needs more memory with a kernel in the place of others.

    outcome: what else is to be replaced.
    """
    removed = {position: schedule[position] for position in positions}
    fused, replaced = {**outcome.fused, min(positions): kernel}, outcome.removed | positions
    with contextlib.ExitStack() as undo:
        undo.callback(codegen.put_back, removed.values())
        room.check(schedule, positions, codegen.replace_kernels(kernel.scheduler, schedule, fused, replaced))
        undo.pop_all()


def _check_whole(band, kernels: list[Any]) -> None:
    names = {node.name for node in band.nodes}
    if names != {n.get_name() for kernel in kernels for n in inductor.loop_nodes(kernel)}:
        raise Unsupported(Reason.not_liftable, f"{sorted(names)}: only a part of a kernel of Inductor's")


def _check_order(band, schedule: list[Any], merged: list[set[int]]) -> None:
    if not stay_in_order(schedule, merged):
        detail = "a path leads from one to another through other kernels"
        raise Unsupported(Reason.cycle_through_other_node, f"{sorted(n.name for n in band.nodes)}: {detail}")


def _pays(band, entry: GroupReport) -> bool:
    """Whether a fused kernel is expected to be faster than Inductor's: not where it reads its rows twice as well."""
    if band.in_registers or not band.registers:
        return True
    size = f"a row takes {band.registers} registers, of which {MAX_ROW_REGISTERS} can be kept: it would be read again"
    entry.reason, entry.detail = Reason.not_profitable, f"{sorted(n.name for n in band.nodes)}: {size}"
    entry.keep_apart(entry.reason, entry.detail)
    return False


def _has_loops_of(band, nodes: dict[str, Any]) -> bool:
    """Whether the passes left every extent of a kernel of Inductor's as it was: then there is nothing to gain."""
    return all(inductor.node_sizes(nodes[n.name]) == (n.iter_sizes, n.reduce_sizes) for n in band.nodes)


def rewrite(
    band, nodes: dict[str, Any], kernels: list[Any], check: Callable[[Any], None] | None = None
) -> tuple[Any, list[str], contextlib.ExitStack]:
    """(one kernel of the band's nodes over their new loops, decisions about it, what undoes it).

    kernels: those that it replaces, and has to be better than; none where that is not asked; check: raises Unsupported
    for a kernel that is not wanted.
    Where it ends in an error, Unsupported or another, nothing is changed.
    """
    names = {n.name for n in band.nodes}
    first = nodes[band.nodes[0].name]
    place = first.scheduler, inductor.device_of(first), names
    timing = Timing(kernels) if kernels and codegen.times_fusions(place[1]) else None
    with contextlib.ExitStack() as undo:
        for lifted in band.nodes:
            node = nodes[lifted.name]
            undo.callback(inductor.restore_loop_state, node, inductor.save_loop_state(node))
            inductor.set_loop_body(node, inductor.make_loop_body(lifted.body, lifted.iter_sizes, lifted.reduce_sizes))
        if inductor.generates_triton(inductor.device_of(first)):
            codegen.run_in_lanes(*place[:2])
        judged = [] if timing else kernels
        kernel, decisions = _one_kernel([nodes[n.name] for n in band.nodes], judged)
        if judged and inductor.generates_triton(place[1]):
            _check_rows(kernel, judged, band)
        if band.in_registers:
            undo.callback(codegen.undo_persistent, *place)
            codegen.make_persistent(*place, band.registers)
            decisions.append(f"persistent: a row takes {band.registers} registers")
        if timing is not None:
            decisions.append(timing.check(kernel))
        if check is not None:
            check(kernel)
        return kernel, decisions, undo.pop_all()


def _check_rows(kernel: Any, kernels: list[Any], band) -> None:
    """Unsupported where a kernel that keeps whole rows moves more bytes beside them than it saves.

    A row along which memory is far apart is for a tile of many rows, as Inductor has it: a block has too few.  In the
    place of one kernel it saves nothing but what is loaded again, and other loops alone only cost it its tiles.
    """
    names, alone = sorted(kernel.get_operation_names()), len(kernels) == 1
    if alone and not band.in_registers:
        raise Unsupported(Reason.not_profitable, f"{names}: other loops, and nothing less to load")
    if not band.in_registers:
        return
    rows, _ = rows_and_warps(band.registers) or (1, 0)
    beside, saved = inductor.bytes_beside_rows(kernel, 1 if alone else rows), _saved(kernel, kernels)
    if beside > max(saved, 0):
        amounts = f"saves {saved / 2**20:.1f} MB, a launch counted as {LAUNCH_BYTES >> 20}"
        detail = f"one kernel {amounts}, and moves {beside / 2**20:.1f} MB beside the rows that it keeps"
        raise Unsupported(Reason.not_profitable, f"{names}: {detail}")


def _saved(kernel: Any, kernels: list[Any]) -> int:
    """Bytes that one kernel in the place of others saves, and what a launch counts for."""
    apart, together = (
        [inductor.bytes_touched(k, own) for k in kernels] for own in (None, kernel.get_operation_names())
    )
    return traffic(apart) - traffic_of_one(together) + (len(kernels) - 1) * LAUNCH_BYTES


def _one_kernel(nodes: list[Any], kernels: list[Any]) -> tuple[Any, list[str]]:
    """(a kernel of the nodes, what was decided about it); Unsupported where Inductor has none, or one that is worse."""
    names = {node.get_name() for node in nodes}
    kernel = codegen.fuse_nodes(nodes)
    if kernel is not None and comes_apart(kernel):
        raise Unsupported(Reason.not_liftable, f"{sorted(names)}: Inductor's codegen gives each of them its own loops")
    if kernel is not None:
        return kernel, []
    kernel = codegen.fuse_nodes(nodes, tiles=False)
    if kernel is None:
        raise Unsupported(Reason.not_liftable, f"{sorted(names)}: Inductor's codegen cannot run them together")
    if not kernels:
        return kernel, ["no tiles"]
    saved, beside = _saved(kernel, kernels), inductor.bytes_beside(kernel)
    amounts = f"saves {saved / 2**20:.1f} MB, a launch counted as {LAUNCH_BYTES >> 20},"
    detail = f"{amounts} and without tiles moves {beside / 2**20:.1f} MB beside what it uses"
    if beside >= saved:
        raise Unsupported(Reason.not_profitable, f"{sorted(names)}: one kernel {detail}")
    return kernel, [f"no tiles: {detail}"]


def _name_missing_guard(group: Group, schedule: list[Any], options: Options, entry: GroupReport) -> None:
    """Says which relations of sizes the graph's guards lack, where the group would be fused with them."""
    choices = _loop_choices(group, schedule, assume=True)
    multiples = choices[0][0].multiples
    if not multiples.unproven:
        return
    try:
        bands = _bands(_translate_somehow(entry.name, group, choices, options.max_accesses), options, group)
    except Unsupported:
        return
    sizes = {s.name: tuple([multiples.same(e) for e in part] for part in s.sizes) for s in choices[0]}
    if all(sizes[n.name] == (n.iter_sizes, n.reduce_sizes) for band in bands for n in band.nodes):
        return
    conditions = " and ".join(f"{d.lhs.args[0]} % {d.lhs.args[1]} == 0" for d in multiples.unproven)
    if entry.record is not None:
        entry.record.guards.insert(0, conditions)
    entry.reason = Reason.dynamic_extent
    entry.detail = f"fused only where {conditions}, which no guard says: torch._check in the function adds one"


def _bands(translation: Any, options: Options, group: Group) -> list:
    """What the passes make of a translated group, for nobody to see."""
    from ..affine.pipeline import run_pipeline
    from ..lowering.lift.band import lift_function

    run_pipeline(
        translation.module, _pipeline(options, group, translation), Dump(None, ""), options.isolate, options.plugins
    )
    with translation.module.context:
        tables, stores = _tables(translation, options, group)
        return lift_function(translation.module.body.operations[0].operation, tables, stores)


def _explain_refusal(entry: GroupReport) -> None:
    """The group's reason is its passes' last word, or the lift's, or that it does not pay."""
    if entry.reason is not None:
        return
    if entry.remarks:
        reason, text, where = entry.remarks[-1]
        entry.reason, entry.detail = Reason[reason], f"{text} at {where}"
    else:
        entry.reason, entry.detail = Reason.no_common_band, "no two nests meet"
