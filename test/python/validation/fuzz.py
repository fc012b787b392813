"""Compare Bridge with Inductor and eager in float64, in random functions.

    python test/python/validation/fuzz.py --seeds 1000:2000  # as emitted for a GPU, Triton for the CPU, C++
    python test/python/validation/fuzz.py --seeds 1000:2000 --target ir  # what the passes make, run by MLIR
    python test/python/validation/fuzz.py --seeds 1000:2000 --target cuda  # on a GPU
    python test/python/validation/fuzz.py --seeds 1000:2000 --symbolic-widths  # compiled for one width, called with two
    python test/python/validation/fuzz.py --seeds 1000:2000 --padded-rows  # results padded or cut into windows
    python test/python/validation/fuzz.py --seeds 1000:2000 --lookups  # tables, at places that depend on data
    python test/python/validation/fuzz.py --seeds 17:18 --target gpu --show

A seed makes a program (see programs.py); one that fails is shrunk before it is printed.
"""

from __future__ import annotations

import argparse
import collections
import copy
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[1] / "support"))  # where this file is a program

import differential_oracle
import validate
from emitted import emitted_for
from programs import Program, generate, runs, smaller_programs

import bridge
from bridge import offline
from bridge.reasons import Reason
from bridge.support.fresh_code import fresh_entry

#: Below these relative errors (Frobenius norm) a result is right.
ROUNDING = {torch.float32: 1e-5, torch.bfloat16: 1e-2}

#: How much worse than Inductor's an error above that may be.
WORSE = 1.5


def run_gpu(program: Program, backend) -> tuple[torch.Tensor, ...]:
    """Run what is emitted for a GPU in Triton's interpreter."""
    with emitted_for("sm_90", []):
        return _run_compiled(program, backend)


def run_interpreted(program: Program, backend) -> tuple[torch.Tensor, ...]:
    """Run Triton kernels for the CPU: also for what cannot be compiled for a GPU that is not there."""
    with offline.interpreter():
        return _run_compiled(program, backend)


def run_cpu(program: Program, backend) -> tuple[torch.Tensor, ...]:
    """Run the C++ kernels."""
    return _run_compiled(program, backend)


def run_cuda(program: Program, backend) -> tuple[torch.Tensor, ...]:
    """Run the Triton kernels on a GPU."""
    return _run_compiled(program, backend, "cuda")


def _run_compiled(program: Program, backend, device: str = "cpu") -> tuple[torch.Tensor, ...]:
    torch._dynamo.reset()
    config = {"triton.persistent_reductions": program.persistent}
    with torch._inductor.config.patch(config), torch.no_grad():
        compiled = torch.compile(fresh_entry(program.function), backend=backend, dynamic=_dynamic(program))
        return program.results(lambda *inputs: tuple(t.cpu() for t in compiled(*(_moved(t, device) for t in inputs))))


def _moved(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """Return a tensor on the device, with what is marked dynamic of it."""
    moved = tensor.to(device)
    moved.__dict__.update(tensor.__dict__)
    return moved


def _dynamic(program: Program) -> bool | None:
    return None if program.symbolic else False


def run_ir(program: Program, backend) -> tuple[torch.Tensor, ...]:
    """Execute the affine IR of what Bridge fuses, before and after the passes (see validate.py)."""
    if backend == "inductor":
        return run_gpu(program, backend)
    with validate.recorded() as found:
        offline.compile_for_gpu(program.function, program.inputs(), compile_fx=backend, dynamic=_dynamic(program))
    problems = validate.problems(found)
    assert not problems, problems
    # Not all of the graph's kernels may be in groups, and the IR is executed for one width only.
    results = validate.outputs_of(found) or []
    return (*results, *_reference(program)[len(results) :])


def _reference(program: Program) -> tuple[torch.Tensor, ...]:
    """Return eager's results in the program's type."""
    return tuple(_rounded(t, program.dtype) for t in program.reference())


def _rounded(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor rounded to a type, with the strides that it has."""
    if not tensor.is_floating_point():
        return tensor
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype).copy_(tensor)


def run_oracle(program: Program, backend) -> tuple[torch.Tensor, ...]:
    """Compare the affine IR of what Bridge fuses with torch-mlir's (see differential_oracle.py); sizes are numbers."""
    function, inputs = differential_oracle.float32(program)
    with validate.recorded() as found:
        offline.compile_for_gpu(function, inputs, compile_fx=backend, dynamic=False)
    if validate.outputs_of(found) is None:
        TALLY["not all kernels translated"] += 1
        return _reference(program)
    try:
        text = differential_oracle.affine_ir(program)
    except differential_oracle.NotTranslated as problem:
        TALLY[f"no oracle: {' '.join(str(problem).split())[:200]}"] += 1
        return _reference(program)
    problems = differential_oracle.disagreements(found, text, inputs)
    assert not problems, problems
    TALLY["three ways"] += 1
    return _reference(program)


RUNNERS = {
    "gpu": run_gpu,
    "interpreted": run_interpreted,
    "cpu": run_cpu,
    "cuda": run_cuda,
    "ir": run_ir,
    "oracle": run_oracle,
}


def error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """Return the relative error; infinite where one is finite or a number and the other is not."""
    got, reference = result.double(), reference.double()
    if got.shape != reference.shape or not torch.equal(got.isfinite(), reference.isfinite()):
        return float("inf")
    got, expected = (torch.nan_to_num(t, 0.0, 0.0, 0.0) for t in (got, reference))
    return ((got - expected).norm() / expected.norm().clamp_min(1e-30)).item()


def wrong_integers(result: torch.Tensor, other: torch.Tensor, reference: torch.Tensor, steps: int) -> bool:
    """Return True if integers are far from both, Inductor's and the reference's: rounding may tip one either way."""
    distances = [(result.long() - t.long()).abs() for t in (other, reference)]
    return bool((torch.minimum(*distances) > steps).any())


@dataclass(frozen=True)
class Outcome:
    """Hold why a program failed, in words; None if it did not. fused: whether there was a kernel of Bridge's."""

    problem: str | None
    fused: bool


def _suspicious(results, references, dtype: torch.dtype) -> bool:
    floats = [(r, e) for r, e in zip(results, references, strict=True) if e.is_floating_point()]
    return len(floats) < len(references) or any(error(r, e) > ROUNDING[dtype] for r, e in floats)


def compare(program: Program, ours, theirs, references) -> str | None:
    """Return the first output that is worse than Inductor's by more than rounding; None if there is none."""
    steps = 1 if program.dtype == torch.float32 else 3
    for name, our, their, expected in zip(program.result_names, ours, theirs, references, strict=True):
        if not expected.is_floating_point():
            if wrong_integers(our, their, expected, steps):
                return f"{name}: integers differ"
            continue
        if our.dtype != their.dtype or our.stride() != their.stride():
            return f"{name}: {our.dtype} {our.stride()} for {their.dtype} {their.stride()}"
        error_ours, error_theirs = error(our, expected), error(their, expected)
        if error_ours > max(ROUNDING[program.dtype], WORSE * error_theirs):
            return f"{name}: error {error_ours:.2e}, Inductor's {error_theirs:.2e}"
    return None


def check(program: Program, target: str) -> Outcome:
    """Compile and run a program with Bridge, and with Inductor where that is needed to judge it."""
    run, references = RUNNERS[target], program.reference()
    fused: list[bool] = []
    try:
        ours = run(program, fusing(fused, several_graphs=program.symbolic))
    except Exception as problem:  # noqa: BLE001 - any of them is a finding
        return Outcome(_blame(program, run, problem), True)
    TALLY["compiled anew"] += len(fused) > 1
    if not any(fused):
        return Outcome(None, False)
    if not _suspicious(ours, references, program.dtype):
        return Outcome(None, True)
    return Outcome(compare(program, ours, run(program, "inductor"), references), True)


def fusing(fused: list[bool], several_graphs: bool) -> Callable:
    """Return the backend for programs of which it makes kernels; eager where all kernels are Inductor's own.

    Not where calls may have graphs of their own: eager rounds more often than Inductor, with which all are compared.
    fused: gets for each graph whether there are kernels of Bridge's. isl has to agree with every fusion: a wrong one
    that happens to give the right numbers is found too.
    """
    from bridge.backend import bridge as backend

    def compile_graph(gm, example_inputs):
        eager = copy.deepcopy(gm)
        compiled = backend(gm, example_inputs, options={"recheck": True})
        report = bridge.report()
        fused.append(bool(report.fused))
        TALLY["guards missing"] += any(group.reason is Reason.dynamic_extent for group in report.groups)
        return compiled if fused[-1] or several_graphs else eager

    return compile_graph


def _blame(program: Program, run: Callable, problem: Exception) -> str | None:
    """Return what an exception says; None if Inductor raises, too, so that Bridge is not to blame."""
    try:
        run(program, "inductor")
    except Exception:  # noqa: BLE001
        TALLY["Inductor raises too"] += 1
        return None
    return f"{type(problem).__name__}: {' '.join(str(problem).split())[:400]}"


def _has_problem(target: str, program: Program) -> bool:
    return bool(check(program, target).problem)


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Return a smaller program that fails too."""
    smaller = next((p for p in smaller_programs(program) if runs(p) and fails(p)), None)
    return program if smaller is None else shrink(smaller, fails)


def run_program(program: Program, targets: list[str], shorten: bool) -> list[tuple[str, str]]:
    """Return [(target, what went wrong and the program)]; C++ that is all Inductor's is not compiled."""
    problems = []
    fused = len(targets) == 1
    for target in targets:
        if target == "cpu" and not fused:
            continue
        outcome = check(program, target)
        fused |= outcome.fused
        TALLY[f"{target} fused" if outcome.fused else f"{target} not fused"] += 1
        if outcome.problem:
            small = shrink(program, partial(_has_problem, target)) if shorten else program
            problems.append((target, f"{check(small, target).problem or outcome.problem}\n{small}"))
    return problems


TALLY: collections.Counter[str] = collections.Counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:25", help="first:last, the last one excluded")
    parser.add_argument("--target", nargs="+", default=["gpu", "interpreted", "cpu"], choices=list(RUNNERS))
    parser.add_argument("--symbolic-widths", action="store_true", help="other programs, each called with two widths")
    parser.add_argument("--padded-rows", action="store_true", help="other programs, which pad rows and cut windows")
    parser.add_argument("--lookups", action="store_true", help="other programs, which look up what the data says")
    parser.add_argument("--show", action="store_true", help="print every program")
    parser.add_argument("--no-shrink", action="store_true")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    os.environ.setdefault("BRIDGE_STRICT", "1")
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    for seed in range(first, last):
        program = generate(seed, options.symbolic_widths, options.padded_rows, options.lookups)
        if options.show:
            print(program, flush=True)
        print(f"seed {seed}", file=sys.stderr, flush=True)
        for target, problem in run_program(program, options.target, not options.no_shrink):
            TALLY["failures"] += 1
            print(f"--- {target}, seed {seed}: {problem}", flush=True)
    print(f"{last - first} seeds, {time.perf_counter() - start:.0f} s: {dict(TALLY)}")


if __name__ == "__main__":
    main()
