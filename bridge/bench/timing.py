"""For `bridge time`: a function of a user's, or the graphs of a script's, with Inductor alone and with Bridge."""

from __future__ import annotations

import copy
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..reasons import Reason
from ..reports import FAULTS
from ..support.gradients import WithBackward, modules_of, tensors_in
from . import cpu_measurements, gpu_measurements
from .cases import Case
from .exact import StepOf, alone, copied, reference, tensors_of
from .measure import Plan, measure
from .results import Result
from .training import Compiler


@dataclass(frozen=True)
class Timing:
    """Hold what was measured of one function: compared with what its errors are."""

    name: str
    device: str
    result: Result
    compared_with: str

    @property
    def faults(self) -> list[str]:
        """Return the names of what is missing or broken: with those the code is Inductor's on both sides."""
        return [reason for reason in self.result.reasons if Reason[reason] in FAULTS]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, strings and numbers."""
        return asdict(self)

    def __str__(self) -> str:
        rows = [(label, one, two, note) for label, one, two, note in _rows(self) if one or two]
        head = f"{self.name} on {self.device}, torch {torch.__version__}"
        lines = [head, f"  {'':14}{'Inductor':>14}{'Bridge':>14}"]
        lines += [f"  {label:14}{one:>14}{two:>14}  {note}".rstrip() for label, one, two, note in rows]
        apart = ", ".join(f"{count} {reason}" for reason, count in self.result.reasons.items())
        return "\n".join([*lines, *([f"  left apart by Bridge: {apart}"] if apart else [])])


def plan_for(device: str, **changes: Any) -> Plan:
    """Return how to measure on a device."""
    return Plan(meter=gpu_measurements if device == "cuda" else cpu_measurements, counted=True, **changes)


def time_function(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    name: str,
    device: str,
    plan: Plan,
    backward: bool = False,
) -> Timing:
    """Measure a function of a user's; its modules and its arguments are moved to the device.

    backward: with its backward, else for inference.  NoGradient where it has none.
    """
    placed(function, device)
    inputs: list[Any] = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), list(arguments))
    plan.progress("running in eager mode", 0, 0)
    step = WithBackward() if backward else alone
    with torch.no_grad():
        case = make_case(function, inputs, name, device, step)
        case.rewind()
        expected, compared_with = reference(function, inputs, step)
        plan.prepare()
        result = measure(case, plan=plan, reference=expected)
    return Timing(name, _device_name(device), result, compared_with)


def can_time(target: str) -> bool:
    """Return True if this machine has what code is generated for: `cpu`, or a GPU of that architecture."""
    if target == "cpu":
        return True
    if not gpu_measurements.has_gpu():
        return False
    major, minor = torch.cuda.get_device_capability()
    return target in ("cuda", f"cuda:sm_{major}{minor}")


def seconds_of_call(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    target: str,
    dynamic: bool,
    progress: Callable[..., None],
    backward: bool = False,
) -> tuple[float, float]:
    """Return seconds of a call with Inductor alone, and with Bridge; function and arguments stay where they are.

    target: as of `can_time`; progress: called with what is being done; backward: of a call with its backward.
    """
    device = "cpu" if target == "cpu" else "cuda"
    plan = plan_for(device, progress=progress, dynamic=dynamic, seconds=5)
    own = copy.deepcopy(function) if isinstance(function, nn.Module) else function
    result = time_function(own, copied(list(arguments)), "", device, plan, backward).result
    placed(function, "cpu")
    return result.inductor.total_us / 1e6, result.bridge.total_us / 1e6


def placed(function: Callable[..., Any], device: str) -> None:
    """Move a module to a device, or those that a function finds in its file."""
    for module in modules_of(function):
        module.to(device)


def make_case(function: Callable[..., Any], arguments: list[Any], name: str, device: str, step: StepOf = alone) -> Case:
    """Return a case of a function, which is called once, to find what it changes: that is put back before each call.

    step: what is called, for the function and what it is compiled to.
    """
    buffers = list(function.buffers()) if isinstance(function, nn.Module) else []
    kept = [buffer.clone() for buffer in buffers]
    tried = copied(arguments)
    before = [tensor._version for tensor in tensors_in(tried)]
    torch.manual_seed(0)
    call = step(function, function)
    call(*tried)
    pairs = list(zip(buffers, kept, strict=True))
    for own, other, version in zip(tensors_in(arguments), tensors_in(tried), before, strict=True):
        pairs += [(own, own.detach().clone())] if other._version != version else []

    def rewind() -> None:
        torch.manual_seed(0)
        for tensor, value in pairs:
            tensor.copy_(value)

    def assemble(compiler: Compiler) -> Callable[..., Any]:
        return step(function, compiler(function))

    return Case(name, device, 0, call, arguments, rewind, tensors=tensors_of, assemble=assemble)


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else f"cpu ({platform.machine()})"


def _rows(timing: Timing) -> Iterator[tuple[str, str, str, str]]:
    """Yield (what, Inductor's, Bridge's, a remark); empty where it was not measured."""
    r = timing.result
    one, two = r.inductor, r.bridge
    yield "time, us", f"{one.total_us:.1f}", f"{two.total_us:.1f}", f"ratio {r.ratio:.3f} +- {r.spread:.3f}"
    yield "  spread, us", f"{one.spread_us:.1f}", f"{two.spread_us:.1f}", "half of the range of the middle half"
    yield "  of that, us", _text(one.triton_us), _text(two.triton_us), "in generated kernels"
    yield "launches", _text(one.launches), _text(two.launches), ""
    yield "kernels", str(one.kernels), str(two.kernels), "of generated code"
    yield "they move, MB", f"{one.moved_bytes / 1e6:.2f}", f"{two.moved_bytes / 1e6:.2f}", ""
    yield "peak, MB", f"{one.peak_bytes / 1e6:.2f}", f"{two.peak_bytes / 1e6:.2f}", "beyond weights and inputs"
    yield "compiling, s", f"{one.compile_s:.1f}", f"{two.compile_s:.1f}", f"of that Bridge {r.bridge_s:.2f}"
    yield "error", f"{one.error:.1e}", f"{two.error:.1e}", f"relative to {timing.compared_with}"


def _text(measured: float) -> str:
    """Return a number; nothing where it was not measured."""
    return "" if not measured else str(measured) if isinstance(measured, int) else f"{measured:.1f}"


def total(timings: Sequence[Timing]) -> str:
    """Return one line about all graphs of a script."""
    theirs, ours = (
        [sum(getattr(side, name) for side in sides) for name in ("total_us", "kernels", "moved_bytes")]
        for sides in ([t.result.inductor for t in timings], [t.result.bridge for t in timings])
    )
    ratio = ours[0] / theirs[0] if theirs[0] else 1.0
    return (
        f"all {len(timings)} graphs, each once: {theirs[0]:.1f} -> {ours[0]:.1f} us (ratio {ratio:.3f}), "
        f"{theirs[1]} -> {ours[1]} kernels, {theirs[2] / 1e6:.2f} -> {ours[2] / 1e6:.2f} MB"
    )
