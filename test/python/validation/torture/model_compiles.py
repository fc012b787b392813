"""Compile one model with Inductor alone and with Bridge, and look at what came out."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from emitted import emitted_for
from torch import nn
from torch._inductor import metrics

from bridge.inductor.inspection import is_generated
from bridge.inductor.memory import live_bytes
from bridge.offline import _stubs, capture, parse_wrapper
from bridge.offline.arch import resolve_arch
from bridge.reasons import Reason
from bridge.scheduling import hook
from bridge.support.fresh_code import fresh_entry

from .model_inputs import flags, tensors

#: Of Bridge's options, those of passes over the graph.
GRAPH_PASSES = (
    *("concatenate_slices", "contiguous_rows", "store_reread", "shrink_domains"),
    *("scatter_by_comparison", "share_operands", "reduce_pieces"),
)


@dataclasses.dataclass
class Model:
    """Hold a module with inputs by name; training: whether its backward is compiled too."""

    module: nn.Module
    inputs: dict[str, torch.Tensor]
    training: bool

    def call(self) -> Callable[..., tuple[torch.Tensor, ...]]:
        """Return the function that is compiled: tensors in the order of `inputs`, to the tensors of the output."""
        module, names, options = self.module, list(self.inputs), flags(self.module)

        def run(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tensors(module(**dict(zip(names, given, strict=True)), **options))

        return run

    def to(self, dtype: torch.dtype, device: str | None = None) -> Model:
        """Return the model, changed in place, in another dtype and on another device; integers keep their dtype."""
        inputs = {n: t.to(device, dtype if t.is_floating_point() else t.dtype) for n, t in self.inputs.items()}
        return Model(self.module.to(device, dtype), inputs, self.training)


@dataclasses.dataclass
class Compilation:
    """Hold what one compilation gave.

    kernels: those of the schedules that code is generated for; launches: calls of Triton kernels in the code; peaks: of
    each graph, the bytes that Inductor estimates; changed: what Bridge fused or decided; reasons: of its refusals;
    fault: an internal error.
    """

    kernels: int = 0
    launches: int = 0
    peaks: list[int] = dataclasses.field(default_factory=list)
    fused: int = 0
    changed: list[str] = dataclasses.field(default_factory=list)
    reasons: list[str] = dataclasses.field(default_factory=list)
    fault: str = ""

    @property
    def peak(self) -> int:
        return max(self.peaks, default=0)


def backend_of(name: str, training: bool, **options: Any) -> Any:
    """Return Inductor's or Bridge's entry, as a backend."""
    if name == "inductor":
        return torch._inductor.compile_fx.compile_fx
    from bridge.backend import bridge as compile_with_bridge

    chosen = {**options, "training": True} if training else options
    return lambda gm, inputs: compile_with_bridge(gm, inputs, options=chosen)


def compile_offline(model: Model, backend: Any, only_scheduled: bool = False) -> Compilation:
    """Generate the code for an H100, without running it; only_scheduled: and the kernels alone, without their code."""
    codes: list[str] = []
    with watched(only_scheduled) as result, _codegen_only(codes, only_scheduled):
        entry = capture._offline_backend(backend)
        compiled = torch.compile(fresh_entry(model.call()), backend=entry, dynamic=False)
        with torch.set_grad_enabled(model.training):
            compiled(*model.inputs.values())
    result.launches = sum(len(parse_wrapper(code).launches) for code in codes)
    return result


@contextlib.contextmanager
def compiled_to_run(model: Model, backend: Any, target: str) -> Iterator[tuple[Callable, Compilation]]:
    """Yield a model's compiled function, which runs in the block: Triton's code in the interpreter, or for real."""
    codes: list[str] = []
    emitted = _emitted(codes) if target == "triton" else _only_fresh()
    with watched() as result, emitted, torch.set_grad_enabled(model.training):
        yield torch.compile(fresh_entry(model.call()), backend=backend, dynamic=False), result


@contextlib.contextmanager
def watched(only_scheduled: bool = False) -> Iterator[Compilation]:
    """Collect what the compilations of the block, of all graphs, came to."""
    result = Compilation()
    schedules: list[Any] = []
    reports: dict[Any, Any] = {}
    torch._dynamo.reset()
    with _seen_schedules(schedules, only_scheduled), _seen_reports(reports):
        yield result
    result.peaks = [peak for peak, _ in schedules]
    result.kernels = sum(count for _, count in schedules)
    for report in reports.values():
        _read(report, result)


@contextlib.contextmanager
def _seen_schedules(seen: list[tuple[int, int]], only_scheduled: bool) -> Iterator[None]:
    """Collect (peak of memory, generated kernels) of every schedule that code is generated for."""
    from torch._inductor.scheduler import Scheduler

    original = Scheduler.codegen

    def codegen(scheduler: Any) -> Any:
        peak, kernels = _figures(scheduler)
        with _came_apart(scheduler) as more:
            given = None if only_scheduled else original(scheduler)
        seen.append((peak, kernels + sum(more)))
        return given

    with mock.patch.object(Scheduler, "codegen", codegen):
        yield


def _figures(scheduler: Any) -> tuple[int, int]:
    levels = [level for level, _ in live_bytes(scheduler.nodes)]
    return max(levels, default=0), sum(map(is_generated, scheduler.nodes))


@contextlib.contextmanager
def _came_apart(scheduler: Any) -> Iterator[list[int]]:
    """Yield a list that gets, after the block that generates code, the number of C++ loop nests beyond its kernels.

    Nodes that share outer loops only are one kernel of the schedule.  As Inductor writes their code it may find that
    they split these loops differently for vectors, and gives each node a loop nest of its own.
    """
    more: list[int] = []
    shared = [len(node.get_outer_nodes()) for node in scheduler.nodes if hasattr(node, "get_outer_nodes")]
    before = len(metrics.cpp_outer_loop_fused_inner_counts)
    yield more
    merged = [found.inner_kernel_number for found in metrics.cpp_outer_loop_fused_inner_counts[before:]]
    more.append(sum(shared) - sum(merged) - (len(shared) - len(merged)))


def _capture_schedule(codes: list[str], graph: Any) -> Any:
    """Make a schedule, without code for its kernels, which takes as long again."""
    graph.init_wrapper_code()
    graph._update_scheduler()
    graph.scheduler.codegen()
    graph.cache_key, graph.cache_path, graph.cache_linemap = "", "", []
    return _stubs._NeverLaunched()


@contextlib.contextmanager
def _codegen_only(codes: list[str], only_scheduled: bool) -> Iterator[None]:
    captured = _capture_schedule if only_scheduled else _stubs._capture_module
    with (
        mock.patch.object(_stubs, "_capture_module", captured),
        _stubs.scratch_caches(),
        torch._inductor.config.patch(shape_padding=False),
        torch._functorch.config.patch(force_non_lazy_backward_lowering=True),
        _stubs.codegen_only(resolve_arch("sm_90"), codes),
    ):
        yield


@contextlib.contextmanager
def _emitted(codes: list[str]) -> Iterator[None]:
    with emitted_for("sm_90", codes):
        yield


@contextlib.contextmanager
def _only_fresh() -> Iterator[None]:
    """Turn off caches, so that no graph of before is found, as in a new process."""
    with (
        torch._inductor.config.patch(fx_graph_cache=False),
        torch._functorch.config.patch(enable_autograd_cache=False),
    ):
        yield


@contextlib.contextmanager
def _seen_reports(seen: dict[int, Any]) -> Iterator[None]:
    """Collect the reports that are published meanwhile: one a function, several where Dynamo starts anew."""
    published = hook.publish

    def publish(report: Any) -> None:
        seen[id(report)] = report
        published(report)

    with mock.patch.object(hook, "publish", publish):
        yield


def _read(report: Any, result: Compilation) -> None:
    result.fused += len(report.fused)
    result.changed += [f"fused {group.name}" for group in report.fused] + report.choices
    refused = [entry for entry in (*report.groups, *report.refusals) if entry.reason is not None]
    result.reasons += [entry.reason.name for entry in refused]
    faults = [entry.detail for entry in refused if entry.reason is Reason.internal_error]
    result.fault = result.fault or "; ".join(dict.fromkeys(faults))
