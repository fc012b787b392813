"""Generate programs of PyTorch's own operators, each in the contexts that Bridge fuses.

A case is `operator/variant/dtype/context/layout/sample`, and depends on nothing else: see operators.py, contexts.py and
layouts.py. A context may be followed by options of Bridge's, as in `chunk+looped`. A third of those that have a
derivative are run backward too.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from bridge.reasons import Refusal
from bridge.reports import FAULTS, GroupReport

from . import compiling, judging
from .compiling import Compilation, NothingChanged
from .contexts import CONTEXTS, MORE_CONTEXTS, context_and_options
from .generator import DEVICE_BROKEN, DEVICE_LOST
from .layouts import LAYOUTS, SYMBOLIC, resized, restrided, same_layout, with_symbols
from .operators import DTYPES, SAMPLES, Sample, dtypes, number, operators, sample
from .outcome import Outcome, Verdict

TIME_LIMIT = 180.0
CASES_A_PROCESS = 200

#: One in so many programs of which Bridge changed nothing is compiled without it too: the code has to be the same.
_COMPARED = 8

#: One in so many whose results are right is compared with Inductor's in types, strides and number of kernels.
_BESIDE = 4

#: Operators whose numbers depend on the generator of the compiled code.
_RANDOM = ("rand", "dropout", "bernoulli", "normal", "uniform", "exponential", "rrelu")

#: Eager does not look at the sizes of their running means: for more channels it reads and writes past the ends.
_OWN_SIZES = ("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")

_WIDER = {torch.complex64: torch.complex128}


class Skipped(Exception):
    """Stand for a case that does not run without Bridge either."""


def names(target: str) -> Sequence[str]:
    """Return all cases, in an order of which any beginning is a fair sample; the same for all targets."""
    return _names()


@functools.cache
def _names() -> list[str]:
    found = [_case(op, dtype, context) for op in operators() for dtype in dtypes(op) for context in CONTEXTS]
    return sorted(found, key=number)


def _case(op: str, dtype: str, context: str) -> str:
    """Choose a layout and a sample for each operator, type and context, by hash."""
    draw = number(op, dtype, context)
    return f"{op}/{dtype}/{context}/{LAYOUTS[draw % len(LAYOUTS)]}/{draw // 1009 % SAMPLES}"


@dataclass(frozen=True)
class Program:
    """Hold what a name says.

    options: of Bridge; inputs: the tensors of the sample; training: whether gradients of them are results too; random:
    whether its numbers are the generator's; symbolic: whether their first dimensions are symbols; nudge: a seed of what
    the operator's results are rounded otherwise by.
    """

    sample: Sample
    context: str
    options: dict[str, Any]
    dtype: torch.dtype
    inputs: list[torch.Tensor]
    device: str
    training: bool
    random: bool
    kind: int
    symbolic: bool = False
    nudge: int | None = None

    def function(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        leaves = list(self.sample.leaves)
        for place, tensor in zip(self.sample.tensors, tensors, strict=True):
            leaves[place] = tensor

        def operator(x: torch.Tensor) -> list[torch.Tensor]:
            leaves[self.sample.place] = x
            results = self.sample.call(leaves)
            return results if self.nudge is None else [_nudged(t, self.nudge, self.dtype) for t in results]

        with contextlib.nullcontext() if self.nudge is None else _NudgedMeans(self.nudge, self.dtype):
            return MORE_CONTEXTS[self.context](operator, leaves[self.sample.place], self.kind)

    def execute(self, function: Callable[..., Any], wide: bool = False) -> list[torch.Tensor]:
        """Return results of copies of the inputs, in float64 if they are to be wide; gradients, if asked for."""
        inputs = [same_layout(t, _wider(t.dtype) if wide else t.dtype, self.device) for t in self.inputs]
        inputs = with_symbols(inputs) if self.symbolic else inputs
        torch.manual_seed(0)
        if not self.training:
            with torch.no_grad():
                return list(function(*inputs))
        leaves = [t.requires_grad_() for t in inputs if t.is_floating_point()]
        results = list(function(*inputs))
        return [*(t.detach() for t in results), *_gradients(results, leaves)]


def _wider(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype.is_floating_point else _WIDER.get(dtype, dtype)


def _gradients(results: list[torch.Tensor], leaves: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the gradients of a sum of all results with weights that are the same for each shape."""
    used = [t for t in results if t.requires_grad and t.is_floating_point()]
    weights = [torch.linspace(-1, 1, t.numel(), dtype=t.dtype, device=t.device).reshape(t.shape) for t in used]
    gradients = torch.autograd.grad(used, leaves, weights, allow_unused=True)
    return [g for g in gradients if g is not None]


@dataclass(frozen=True)
class Case:
    """Hold a program with what eager makes of it."""

    name: str
    program: Program
    reference: list[torch.Tensor]
    target: str

    def compiled(self, compilation: Compilation, options: dict[str, Any] | None) -> list[torch.Tensor]:
        training = self.program.training
        if options is not None:
            options = {**options, **self.program.options, **({"training": True} if training else {})}
        execute = self.program.execute
        return compiling.run(self.program.function, execute, self.target, compilation, options, training)

    def nudged(self) -> list[judging.Results]:
        """Return what eager makes in float64 of inputs, and results of the operator, that differ in their last bits.

        And, of results of which eager's own types leave nothing but roundings, what these make of them: the sum of a
        normalised row, say, which is zero for all inputs.
        """
        found: list[judging.Results] = []
        for seed in range(0 if self.program.random else 4):
            inputs = [_nudged(t, seed, t.dtype) for t in self.program.inputs]
            program = replace(self.program, inputs=inputs, nudge=seed)
            found.append(program.execute(program.function, wide=True))
        own = [] if self.program.random else self.program.execute(self.program.function)
        return [*found, judging.roundings(own, self.reference)] if own else found

    @property
    def terms(self) -> int:
        """Return how many terms a sum may have."""
        return max((size for t in self.program.inputs for size in t.shape), default=1)


def _nudged(t: torch.Tensor, seed: int, dtype: torch.dtype) -> torch.Tensor:
    """Change a tensor by last bits of a type; of its own, where that type has none."""
    if not t.is_floating_point():
        return t
    generator = torch.Generator().manual_seed(seed)
    noise = torch.rand(t.shape, generator=generator, dtype=torch.float64).to(t.device) * 2 - 1
    return t.double() * (1 + noise * torch.finfo(dtype if dtype.is_floating_point else t.dtype).eps)


class _NudgedMeans(TorchFunctionMode):
    """Change means of rows a little: a program in 16 bits rounds them, and may not round their minuends."""

    def __init__(self, seed: int, dtype: torch.dtype):
        super().__init__()
        self._seed, self._dtype = seed, dtype

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return _nudged(result, self._seed, self._dtype) if func in (torch.mean, torch.Tensor.mean) else result


def _build(name: str, target: str) -> Case:
    """Build a case; raise Skipped where eager has no such program.

    It has the sample's own sizes where the layout's do not fit the operator.
    """
    op, variant, dtype, context, layout, which = name.split("/")
    try:
        found = sample(f"{op}/{variant}", dtype, int(which))
    except (ValueError, RuntimeError, KeyError) as problem:
        raise Skipped(f"no sample: {problem}") from None
    tensors = [found.leaves[i] for i in found.tensors]
    if not tensors or not isinstance(found.leaves[found.place], torch.Tensor):
        raise Skipped("a sample without tensors")
    draw = number(name, "how")
    training = found.grad and draw % 3 == 0
    device = "cuda" if target == "cuda" else "cpu"
    context, options = context_and_options(context)
    random = any(word in op for word in _RANDOM)
    symbolic = SYMBOLIC in layout.split("+")
    program = Program(found, context, options, DTYPES[dtype], [], device, training, random, draw // 7, symbolic)
    first = found.leaves[found.place]
    sizes = [tensors] if op in _OWN_SIZES else [resized(tensors, first, layout), tensors]
    return _runnable(name, target, program, sizes, layout)


def _runnable(name: str, target: str, program: Program, sizes: list[list[torch.Tensor]], layout: str) -> Case:
    """Return the case with the first of the sizes that eager takes."""
    for training in {program.training: None, False: None}:
        for tensors in sizes:
            inputs = [t.detach() for t in restrided(tensors, layout)]
            chosen = replace(program, inputs=inputs, training=training)
            try:
                chosen.execute(chosen.function)
                case = Case(name, chosen, chosen.execute(chosen.function, wide=True), target)
                _synchronize(target)
                return case
            except Exception as refusal:  # noqa: BLE001 - what eager refuses is no program
                problem = refusal
                _end_without_device(target, DEVICE_LOST)
    raise Skipped(f"eager: {_line(problem)}")


def run(name: str, target: str) -> Outcome:
    """Make, compile, run and judge one case."""
    start = time.perf_counter()
    with _quiet():
        try:
            outcome = _judged(_build(name, target))
        except Skipped as reason:
            outcome = Outcome(name, Verdict.skipped, str(reason)[:300])
    return replace(outcome, seconds=round(time.perf_counter() - start, 3))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Turn off what torch says of programs that it does not take."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with compiling.warnings_off():
            yield
    finally:
        logging.disable(before)


def _judged(case: Case) -> Outcome:
    ours = Compilation(run_anyway=False)
    try:
        results = case.compiled(ours, {})
        _synchronize(case.target)
    except NothingChanged:
        return _unchanged(case, ours)
    except Exception as problem:  # noqa: BLE001 - any of them is a finding, if Inductor has none
        return _raised(case, ours, problem)
    return _changed(case, ours, results)


def _synchronize(target: str) -> None:
    """Make a fault of a kernel raise where it was launched."""
    if target == "cuda":
        torch.cuda.synchronize()


def _end_without_device(target: str, status: int) -> None:
    """End this process if a kernel broke its device: every later call of CUDA would raise the same error."""
    try:
        _synchronize(target)
    except RuntimeError:
        os._exit(status)


def _raised(case: Case, ours: Compilation, problem: Exception) -> Outcome:
    _end_without_device(case.target, DEVICE_BROKEN)
    try:
        case.compiled(Compilation(), None)
        _synchronize(case.target)
    except Exception:  # noqa: BLE001 - Inductor raises too
        _end_without_device(case.target, DEVICE_LOST)
        return Outcome(case.name, Verdict.skipped, f"Inductor: {_line(problem)}")
    return _outcome(case, Verdict.crash, ours, f"{type(problem).__name__}: {_line(problem)}")


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:300]


def _unchanged(case: Case, ours: Compilation) -> Outcome:
    """Judge a program with nothing to run: for a sample of such programs, the code has to be Inductor's."""
    fault = _fault(ours)
    if fault:
        return _outcome(case, Verdict.internal_error, ours, fault)
    if number(case.name, "code") % _COMPARED == 0:
        theirs = Compilation(run_anyway=False)
        with contextlib.suppress(NothingChanged):
            case.compiled(theirs, None)
        difference = compiling.difference(ours, theirs)
        if difference:
            return _outcome(case, Verdict.worse, ours, f"nothing is reported, and Inductor's code is {difference}")
    return _outcome(case, Verdict.refused if _refused(ours) else Verdict.same, ours)


def _fault(ours: Compilation) -> str | None:
    """Return what went wrong inside of Bridge, though a result came of it."""
    faults = [entry.detail for entry in _refused(ours) if entry.reason in FAULTS]
    return faults[0][:300] if faults else None


def _refused(ours: Compilation) -> list[GroupReport | Refusal]:
    entries: list[GroupReport | Refusal] = []
    for report in ours.reports:
        entries += [*report.groups, *report.refusals]
    return entries


def _changed(case: Case, ours: Compilation, results: list[torch.Tensor]) -> Outcome:
    fault = _fault(ours)
    if fault:
        return _outcome(case, Verdict.internal_error, ours, fault)
    good = not (case.program.random or ours.outside) and judging.good(results, case.reference, case.program.dtype)
    if good and number(case.name, "beside") % _BESIDE:
        return _better(case, ours)
    theirs = Compilation()
    try:
        reference = case.compiled(theirs, None)
    except Exception as refusal:  # noqa: BLE001 - Bridge took what Inductor does not
        return Outcome(case.name, Verdict.skipped, f"Inductor: {_line(refusal)}")
    if ours.outside and not theirs.outside:
        return _outcome(case, Verdict.wrong, ours, f"an access outside of its buffer: {ours.outside[0]}")
    expected = reference if case.program.random else case.reference
    problem = judging.problem(results, reference, expected, case.nudged, case.program.dtype, case.terms)
    if problem and any(_differ(reference, case.compiled(Compilation(), None)) for _ in range(8)):
        return _outcome(case, Verdict.skipped, ours, f"Inductor's results are not the same twice: {problem}")
    if problem:
        return _outcome(case, Verdict.wrong, ours, problem)
    return _better(case, ours, theirs)


def _differ(results: list[torch.Tensor], others: list[torch.Tensor]) -> bool:
    """Return True if a compiler's results of the same inputs have other bits; NaN equals NaN."""
    pairs = zip(results, others, strict=True)
    return not all(((one == other) | (one.isnan() & other.isnan())).all() for one, other in pairs)


def _better(case: Case, ours: Compilation, theirs: Compilation | None = None) -> Outcome:
    """Judge a right result by kernels and bytes; Inductor's are counted in its code, where it was compiled too."""
    worse = _worse(case.target, ours, theirs)
    if worse:
        return _outcome(case, Verdict.worse, ours, worse)
    fused = any(report.fused for report in ours.reports)
    return _outcome(case, Verdict.fused if fused else Verdict.restructured, ours)


def _worse(target: str, ours: Compilation, theirs: Compilation | None) -> str | None:
    before = sum(report.kernels_before for report in ours.reports)
    after = sum(report.kernels_after for report in ours.reports)
    if after > before:
        return f"{after} kernels of {before}"
    if ours.kernels != after and target != "cpp":  # A C++ function may have several kernels in it.
        return f"{after} kernels are reported, and {ours.kernels} launched"
    if theirs is not None and _has_more_kernels(target, ours, theirs):
        return f"{ours.kernels} kernels, Inductor's {theirs.kernels}"
    pairs = zip(ours.peaks, theirs.peaks, strict=False) if theirs is not None else ()
    return next((f"{a.live} bytes live at once, Inductor's {b.live}" for a, b in pairs if a.is_above(b)), None)


def _has_more_kernels(target: str, ours: Compilation, theirs: Compilation) -> bool:
    """Return True if there are more kernels; for C++, more functions count only with more loop nests.

    The kernels between two library calls are one function, in whatever order.
    """
    return ours.kernels > theirs.kernels and (target != "cpp" or ours.loop_nests > theirs.loop_nests)


def _outcome(case: Case, verdict: Verdict, ours: Compilation, detail: str = "") -> Outcome:
    reasons = [entry.reason for entry in _refused(ours)]
    figures: dict[str, float] = {
        "before": sum(report.kernels_before for report in ours.reports),
        "after": sum(report.kernels_after for report in ours.reports),
        "training": case.program.training,
    }
    return Outcome(case.name, verdict, detail, tuple(r.name for r in reasons if r is not None), figures)


def prepare(target: str) -> None:
    """Load the database, and all that Inductor does at its first compilation."""
    run("abs/-/f32/norm-chunk/wide/0", target)
