"""Translation of one group: its loops, as the affine dialect has them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .. import inductor
from ..inductor.inspection import node_location
from ..inductor.protocols import Kernel, LoopNode, Schedule
from ..inductor.schedule import written_storage
from ..options import DEFAULT_PIPELINE, Options, default_pipeline
from ..reasons import Reason, Unsupported
from ..support.recorder import Stages
from .grouping import Group
from .read_again import buffers_read_again

if TYPE_CHECKING:
    from ..affine.translate.group import NodeSource, Translation
    from ..affine.translate.trace import NestTrace


def translate(
    group: Group, schedule: Schedule, options: Options, stages: Stages, name: str
) -> tuple[dict[str, LoopNode], Translation]:
    """Return (the group's scheduler nodes by name, the affine function of their loops)."""
    nodes = nodes_to_translate(group, schedule, options)
    stages.loop_bodies("loop-ir.txt", loop_bodies(schedule[p] for p in group.positions))
    translation = translate_somehow(name, group, schedule, loop_choices(group, schedule), options.max_accesses)
    _keep_stage(translation, group, options, stages)
    return nodes, translation


def translate_in_tiles(
    group: Group, schedule: Schedule, options: Options, stages: Stages, name: str
) -> Translation | None:
    """Return the affine function of a group's loops over blocks of a tile; None where there are none.

    They are all that is reduced, along several axes.
    """
    from ..affine.translate.group import in_tiles

    sources = in_tiles(_sources(group, schedule)) if inductor.generates_triton(group.device) else None
    if sources is None:
        return None
    translation = _translate_sources(name, group, schedule, sources, options.max_accesses)
    _keep_stage(translation, group, options, stages)
    return translation


def nodes_to_translate(group: Group, schedule: Schedule, options: Options) -> dict[str, LoopNode]:
    """Return a group's scheduler nodes by name; Unsupported where they are too many, or computed in 16 bits."""
    nodes = {n.get_name(): n for p in group.positions for n in inductor.loop_nodes(schedule[p])}
    if len(nodes) > options.max_nodes:
        raise Unsupported(Reason.budget_exceeded, f"{len(nodes)} nodes, at most {options.max_nodes}")
    if inductor.computes_in_16_bits(group.device):
        raise Unsupported(Reason.unsupported_dtype, "triton.codegen_upcast_to_fp32 is off: no float32 between 16 bits")
    return nodes


def _keep_stage(translation: Translation, group: Group, options: Options, stages: Stages) -> None:
    if stages.active:
        path = stages.write("affine.mlir", str(translation.module))
        stages.replay(path.name if path else "", pipeline_of(options, group, translation))


def pipeline_of(options: Options, group: Group, translation: Translation) -> str:
    """Return the user's pipeline, or the default for the group's code generator and roundings."""
    if options.pipeline != DEFAULT_PIPELINE:
        return options.pipeline
    triton = inductor.generates_triton(group.device)
    return default_pipeline(triton, options.force_fusion, translation.keeps_roundings, group.rows_of_segments)


def lacks_guards(group: Group, schedule: Schedule) -> bool:
    """Return True if sizes of a group are divided that no guard says are multiples of their divisors."""
    from ..affine.translate.group import sizes_as_multiples

    return bool(sizes_as_multiples(_sources(group, schedule), assume=True).unproven)


def loop_choices(group: Group, schedule: Schedule, assume: bool = False) -> list[list[NodeSource]]:
    """Return the choices of loops for all nodes of a group, the best first; assume: sizes are what would help."""
    from ..affine.translate.group import with_shared_loops

    pieces = sources_in_pieces(group, schedule) if group.in_pieces else None
    return with_shared_loops(_sources(group, schedule), assume) if pieces is None else [pieces]


def sources_in_pieces(group: Group, schedule: Schedule) -> list[NodeSource] | None:
    """Return the nodes of a group with loops in which one iteration has what one of another reads; None without any."""
    from ..affine.translate.group import in_pieces

    return in_pieces(_sources(group, schedule)) if inductor.generates_triton(group.device) else None


def _sources(group: Group, schedule: Schedule) -> list[NodeSource]:
    kernels = [(k, inductor.loop_nodes(schedule[p])) for k, p in enumerate(group.positions)]
    return [_source(node, kernel) for kernel, own in kernels for node in own]


def translate_somehow(
    name: str, group: Group, schedule: Schedule, choices: list[list[NodeSource]], max_accesses: int
) -> Translation:
    """Return the translation with the first choice of loops that has one; Unsupported with the last's reason."""
    for sources in choices[:-1]:
        with contextlib.suppress(Unsupported):
            return _translate_sources(name, group, schedule, sources, max_accesses)
    return _translate_sources(name, group, schedule, choices[-1], max_accesses)


def _translate_sources(
    name: str, group: Group, schedule: Schedule, sources: list[NodeSource], max_accesses: int
) -> Translation:
    from ..affine.translate.group import GroupTarget, make_prover, trace_group, translate_group

    traces = []
    for kernel, position in enumerate(group.positions):
        group.culprit = position
        traces += trace_group([s for s in sources if s.kernel == kernel])
    _check_gathers(group, sources, traces)
    group.culprit = None
    accesses = sum(len(trace.accesses) + len(trace.gathers) for trace in traces)
    if accesses > max_accesses:
        raise Unsupported(Reason.budget_exceeded, f"{accesses} loads and stores, at most {max_accesses}")
    target = GroupTarget(
        inductor.buffer_dtype,
        inductor.buffer_numel,
        make_prover(),
        inductor.rounds_at_conversion(group.device),
        inductor.storage_of,
        inductor.emulates_eager_rounding(),
        buffers_read_again(group.positions, schedule),
    )

    def blame(kernel: int) -> None:
        group.culprit = group.positions[kernel]

    return translate_group(name, sources, traces, target, blame)


def _check_gathers(group: Group, sources: list[NodeSource], traces: list[NestTrace]) -> None:
    """Raise Unsupported(indirect_index), with the kernel at fault, for a gather from what the group stores to."""
    from ..affine.translate.gather import check_only_read

    written = {written_storage(access.buffer) for trace in traces for access in trace.accesses if access.is_write}
    for source, trace in zip(sources, traces, strict=True):
        group.culprit = group.positions[source.kernel]
        check_only_read(trace.name, {written_storage(gather.buffer) for gather in trace.gathers}, written)


def loop_bodies(kernels: Iterable[Kernel]) -> Iterator[tuple[str, Any, Any]]:
    """Yield (name, sizes, LoopBody) of every scheduler node in the kernels."""
    for node in (n for kernel in kernels for n in inductor.loop_nodes(kernel)):
        yield node.get_name(), inductor.node_sizes(node), inductor.node_body(node)


def _source(node: LoopNode, kernel: int) -> NodeSource:
    from ..affine.translate.group import NodeSource

    body, sizes = inductor.node_body(node), inductor.node_sizes(node)
    overwrites = inductor.buffers_overwritten(node)
    return NodeSource(node.get_name(), body, sizes, kernel, node_location(node), overwrites=overwrites)
