"""`bridge.explain`: what became of each group of kernels that Inductor left apart, and why.

Everything is computed from the compilation that is explained: the groups and refusals from Bridge's report, examples
of dependences from the passes' own relations, guards by running the passes again, times from a roofline, registers
from the kernels, compiled.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from ..reasons import without_place
from ..reports import FAULTS, Counterexample, GroupReport, Report
from ..support.fresh_code import fresh_entry
from ..support.gradients import WithBackward
from .counts import count
from .explanation import (
    ExampleAccess,
    ExplainedRefusal,
    Explanation,
    GroupExplanation,
    Resources,
    Transformation,
)
from .first_screen import describe, named_groups
from .recording import Buffer, GroupRecord, Kernel, Recording, recorded
from .roofline import Roofline, roofline
from .source_lines import find_place

#: What `backend_target=` takes besides `cpu`: an architecture that bridge.offline knows.
DEFAULT_TARGET = "cuda:sm_90"


def explain(  # noqa: PLR0913 - one for each of torch.compile's, and what is said
    fn: Callable[..., Any],
    *args: Any,
    backend_target: str = DEFAULT_TARGET,
    dynamic: bool | None = False,
    options: Mapping[str, Any] | None = None,
    registers: bool = True,
    measured: tuple[float, float] | None = None,
    backward: bool = False,
    **kwargs: Any,
) -> Explanation:
    """Compile `fn(*args, **kwargs)` and explain what Bridge made of it.

    args, kwargs: on the CPU.  backend_target: `cpu`, or `cuda:sm_90` or `cuda:sm_80`, for which no GPU is needed and
    nothing of the generated code is run.  dynamic: as in `torch.compile`; None for inputs that went through
    `mark_dynamic`.  options: as of `torch.compile`.  registers: compile the kernels, some seconds each, for their
    registers.  measured: seconds of a call without Bridge and with it, to be said in the place of what is expected.
    backward: with the backward, else for inference: gradients of parameters, and of the inputs that want one; of all
    inputs where none does; NoGradient where no result has one.  ValueError for another target, OptionError for a bad
    option.
    """

    def call(*arguments: Any) -> Any:
        return fn(*arguments, **kwargs)

    with recorded() as recording:
        _compile(call, args, backend_target, dynamic, options, backward)
    name = getattr(fn, "__name__", type(fn).__name__)
    return make_explanation(recording, name, backend_target, registers, measured)


def _compile(
    call: Callable, args: tuple, target: str, dynamic: bool | None, options: Mapping | None, backward: bool
) -> None:
    from ..backend import bridge

    backend = functools.partial(bridge, options=dict(options or {}))
    architecture = architecture_of(target)
    if architecture is not None:
        from ..offline import compile_for_gpu

        compile_for_gpu(call, args, compile_fx=backend, arch=architecture, dynamic=dynamic, backward=backward)
        return
    compiled = torch.compile(fresh_entry(call), backend=backend, dynamic=dynamic)
    if backward:
        WithBackward()(call, compiled)(*args)
        return
    with torch.no_grad():
        compiled(*args)


def architecture_of(target: str) -> str | None:
    """Return `sm_90` of `cuda:sm_90` or `cuda`, None of `cpu`; ValueError for anything else."""
    if target == "cpu":
        return None
    device, _, architecture = target.partition(":")
    if device != "cuda":
        raise ValueError(f"unknown target {target!r}; a target is cpu or cuda:sm_90")
    from ..offline.arch import resolve_arch

    return f"sm_{resolve_arch(architecture or 'sm_90').capability}"


@contextlib.contextmanager
def compiling(target: str, options: Mapping[str, Any]) -> Iterator[Recording]:
    """Have what this context compiles with Inductor or Bridge go through Bridge, for a target, and record it.

    For a GPU, which need not be there, code is generated and the program goes on in eager mode on the CPU. A backward
    is recorded where the program runs it.
    """
    from .. import config
    from ..install import enabled

    architecture = architecture_of(target)
    with contextlib.ExitStack() as stack:
        recording = stack.enter_context(recorded())
        # `backend="bridge"` makes its own options, from there.
        stack.enter_context(config.patch(dict(options)))
        stack.enter_context(enabled(**options))
        if architecture is not None:
            from ..offline import compiling_for_gpu

            apart = functools.partial(_recorded_apart, recording)
            stack.enter_context(compiling_for_gpu(architecture, around_backward=apart))
        yield recording


@contextlib.contextmanager
def _recorded_apart(recording: Recording) -> Iterator[Callable[[], None]]:
    """Record the block by itself; gives what adds that to a recording."""
    from ..scheduling import hook

    with recorded() as own, hook.reporting_to(Report()):
        yield lambda: recording.add(own)


def make_explanation(
    recording: Recording,
    name: str,
    target: str,
    registers: bool = False,
    measured: tuple[float, float] | None = None,
) -> Explanation:
    """Explain what was recorded; registers: compile the kernels of fused groups for a GPU that is the target."""
    architecture = architecture_of(target)
    line = roofline(architecture or "cpu")
    named = [(entry, label) for _, entry, label in named_groups(recording.reports) if entry.record is not None]
    groups = [_explain_group(entry, label, recording, line) for entry, label in named]
    if registers and architecture is not None:
        for group in groups:
            group.resources = [_resources(kernel, architecture) for kernel in group.kernels if group.fused]
    refusals = [refusal for report in recording.reports for refusal in report.refusals]
    others = [ExplainedRefusal(r.reason.name, r.detail, ", ".join(r.nodes), "") for r in refusals]
    choices = [choice for report in recording.reports for choice in report.choices]
    before, after = recording.kernels_before, recording.kernels_after
    groups.sort(key=lambda group: group.seconds_after - group.seconds_before)
    screen = describe(recording.reports, f"{name} for {target}", measured)
    known = [entry for report in recording.reports for entry in report.reasons()]
    faults = list(dict.fromkeys((reason.name, detail) for reason, detail in known if reason in FAULTS))
    return Explanation(name, target, line, recording.graphs, before, after, groups, others, choices, screen, faults)


def _explain_group(entry: GroupReport, name: str, recording: Recording, line: Roofline) -> GroupExplanation:
    record = entry.record
    assert isinstance(record, GroupRecord), "recorded by `recording.begin_group`"
    lines = {statement.name: statement.lines for statement in record.statements}
    transformations = _transformations(record)
    first, last = _executed(record, "affine.mlir"), _executed(record, "fused.mlir" if entry.fused else "affine.mlir")
    own = [kernel for kernel in recording.kernels if kernel.graph == record.graph]
    kernels = [kernel for kernel in own if set(kernel.nodes) & set(entry.nodes)]
    return GroupExplanation(
        name=name,
        fused=entry.fused,
        done=str(entry.done),
        kernels_before=entry.kernels_before,
        kernels_after=entry.kernels_after,
        reason=entry.reason.name if entry.reason is not None else None,
        detail=entry.detail,
        statements=record.statements,
        buffers=_between(record),
        transformations=transformations,
        refusals=_refusals(entry, lines),
        decisions=list(map(without_place, entry.decisions)),
        guards=list(record.guards),
        bytes_before=entry.bytes_before,
        bytes_after=entry.bytes_after,
        bytes_if_one=entry.bytes_if_one,
        seconds_before=line.seconds(entry.bytes_before, first, entry.kernels_before),
        seconds_after=line.seconds(entry.bytes_after, last, entry.kernels_after),
        kernels=kernels,
        certificate=list(entry.certificate),
        stages=dict(record.stages),
        sizes=dict(record.sizes),
    )


def _between(record: GroupRecord) -> dict[str, Buffer]:
    """Return the buffers that one statement writes and another one reads."""
    written = {name for statement in record.statements for name in statement.writes}
    read = {name for statement in record.statements for name in statement.reads}
    return {name: record.buffers[name] for name in sorted(written & read)}


_STAGE = re.compile(r"after-(.*)\.mlir")


def _transformations(record: GroupRecord) -> list[Transformation]:
    """Return Bridge's passes that changed something, in order; the clean-up between them counts to the one before."""
    found = []
    for stage, text in record.stages.items():
        match = _STAGE.match(stage)
        if match and match[1].startswith("bridge-"):
            found.append(Transformation(match[1], pass_meaning(match[1]), count(text, record.sizes)))
    return found


def _executed(record: GroupRecord, stage: str) -> int:
    return count(record.stages[stage], record.sizes).executed if stage in record.stages else 0


@functools.cache
def _pass_reference() -> str:
    path = Path(__file__).parents[1] / "_native" / "docs" / "passes.md"
    return path.read_text() if path.exists() else ""


def pass_meaning(name: str) -> str:
    """Return the summary of a pass, from the reference that TableGen made."""
    found = re.search(rf"^### `-{re.escape(name)}`\n\n_(.*)_$", _pass_reference(), re.MULTILINE)
    return found[1] if found else ""


def _resources(kernel: Kernel, architecture: str) -> Resources:
    from ..offline import TritonKernelSource, compile_kernel

    source = TritonKernelSource(kernel.name, kernel.source, {}, {}, "", {})
    cubin = compile_kernel(source, config={}, arch=architecture)
    return Resources(kernel.name, cubin.registers, cubin.spills, cubin.shared_bytes, cubin.config)


def _refusals(entry: GroupReport, lines: dict[str, list[tuple[str, int]]]) -> list[ExplainedRefusal]:
    """Return the passes' remarks, each once, with the example that belongs to it."""
    examples = {(e.reason, e.text, e.location): e for e in entry.counterexamples}
    found = []
    for remark in dict.fromkeys(entry.remarks):
        reason, text, location = remark
        node, source = find_place(location, lines)
        found.append(ExplainedRefusal(reason, text, node, source, _accesses(examples.get(remark), lines)))
    return found


def _accesses(example: Counterexample | None, lines: dict[str, list[tuple[str, int]]]) -> tuple[ExampleAccess, ...]:
    if example is None:
        return ()
    placed = [(words, *find_place(location, lines)) for words, location in example.accesses]
    return tuple(ExampleAccess(node, words, source) for words, node, source in placed)
