"""For `bridge.export` and `bridge export`: the loops that Inductor has after its own fusion, as affine IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from .. import inductor
from ..affine.dtypes import UNSIGNED, dtype_name
from ..affine.mlir_runtime import context, ir
from ..horizontal.independence import find_obstacle
from ..inductor.protocols import Schedule
from ..options import Options
from ..reasons import Reason, Unsupported
from ..scheduling.grouping import Group, form_groups
from ..scheduling.translation import translate
from ..support.fresh_code import fresh_entry
from ..support.recorder import NO_STAGES
from .explaining import DEFAULT_TARGET, architecture_of


@dataclass
class Exported:
    """Hold what `export` found: the text of each function, and the kernels left out, with the reason."""

    functions: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def export(
    fn: Callable[..., Any],
    *args: Any,
    backend_target: str = DEFAULT_TARGET,
    dynamic: bool | None = False,
    locations: bool = False,
    **kwargs: Any,
) -> str:
    """Return the affine module of a function: a `func.func` for each group of kernels that share buffers.

    args, kwargs, backend_target, dynamic: as for `bridge.explain`.  locations: with the user's source lines, which
    MLIR prints after every operation.  Kernels that affine IR has no words for stand in a comment, with the reason.

    The arguments are labelled: `bridge.buffer` is Inductor's name, `bridge.output` says that something outside of
    the function uses what it stores there, `bridge.dtype` an unsigned type.  `bridge.lowering.compile_affine` takes
    the module back.
    """
    exported = Exported()

    def call(*arguments: Any) -> Any:
        return fn(*arguments, **kwargs)

    _compile(call, args, backend_target, dynamic, exported)
    comments = "".join(f"// left out: {line}\n" for line in exported.left_out)
    return comments + _joined(exported.functions, locations)


def _compile(call: Callable, args: tuple, target: str, dynamic: bool | None, exported: Exported) -> None:
    architecture = architecture_of(target)
    hook = inductor.hooked(inductor.scheduler_pass(_Export(exported)))
    if architecture is not None:
        from ..offline import compile_for_gpu  # weight: Triton, which may not be installed

        compile_for_gpu(call, args, arch=architecture, dynamic=dynamic, context=hook)
        return
    with hook, torch.no_grad():
        torch.compile(fresh_entry(call), dynamic=dynamic, options={"fx_graph_cache": False})(*args)


class _Export:
    """Look at a schedule, and change nothing."""

    def __init__(self, exported: Exported):
        self.exported = exported

    def active(self) -> bool:
        return True

    def key(self) -> None:
        return None

    def __call__(self, schedule: Schedule) -> Schedule:
        pending, refusals = form_groups(schedule, Options().max_nodes)
        self.exported.left_out += [f"{', '.join(r.nodes)} [{r.reason.name}] {r.detail}" for r in refusals]
        grouped = {position for group in pending for position in group.positions}
        pending += _alone(schedule, set(range(len(schedule))) - grouped)
        while pending:
            group = pending.pop(0)
            refused = self._add(group, schedule)
            rest = set(group.positions) - {refused} if refused is not None else set()
            pending = _alone(schedule, rest) + pending
        return schedule

    def _add(self, group: Group, schedule: Schedule) -> int | None:
        """Add the text of a group; where there is none because of one kernel, return that kernel's position."""
        name = f"group{len(self.exported.functions)}"
        try:
            self.exported.functions.append(_text(group, schedule, name))
        except Unsupported as refusal:
            names = ", ".join(sorted(group.names))
            self.exported.left_out.append(f"{names} [{refusal.reason.name}] {refusal.detail}")
            return getattr(refusal, "position", None)
        return None


def _alone(schedule: Schedule, positions: set[int]) -> list[Group]:
    """Return groups of one kernel each, of those kernels that may have a text at all."""
    fit = [p for p in sorted(positions) if find_obstacle(schedule[p]) is None]
    return [
        Group([p], inductor.operation_names(schedule[p]), device=inductor.device_of(schedule[p]), nodes=1) for p in fit
    ]


def _text(group: Group, schedule: Schedule, name: str) -> str:
    """Return a function with labelled arguments."""
    _, translation = translate(group, schedule, Options(), NO_STAGES, name)
    shifted = sorted(name for name, memref in translation.memrefs.items() if memref.shifted)
    if shifted:
        raise Unsupported(Reason.non_affine_index, f"cyclic shifts of {shifted} are left to the code")
    operations = set(group.names)
    lasting = {n for p in group.positions for n in inductor.bytes_touched(schedule[p], operations)}
    written = {n for p in group.positions for n in inductor.buffers_written(schedule[p])} | set(
        translation.new_contents
    )
    with translation.module.context:
        function = translation.module.body.operations[0].operation
        _label(function, {name: memref.dtype for name, memref in translation.memrefs.items()}, lasting & written)
        return function.get_asm(enable_debug_info=True)


def _label(function: ir.Operation, dtypes: dict[str, torch.dtype], outputs: set[str]) -> None:
    labelled = []
    for labels in ir.ArrayAttr(function.attributes["arg_attrs"]):
        own = {entry.name: entry.attr for entry in ir.DictAttr(labels)}
        name = ir.StringAttr(own["bridge.buffer"]).value if "bridge.buffer" in own else None
        if name in outputs:
            own["bridge.output"] = ir.UnitAttr.get()
        if name is not None and dtypes[name] in UNSIGNED:
            own["bridge.dtype"] = ir.StringAttr.get(dtype_name(dtypes[name]))
        labelled.append(ir.DictAttr.get(own))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(labelled)


def _joined(functions: list[str], locations: bool) -> str:
    """Return one module of all functions."""
    with context(), ir.Location.unknown():
        module = ir.Module.create()
        for text in functions:
            single = ir.Module.parse(text)  # which owns the function
            module.body.append(single.body.operations[0].operation.clone())
        return module.operation.get_asm(enable_debug_info=locations) + "\n"
