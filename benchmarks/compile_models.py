"""Measure what real models take to compile, by Inductor and by Bridge, Triton's compilation included, without a GPU.

    python benchmarks/compile_models.py
    python benchmarks/compile_models.py --only deepseek gemma --modes prefill --slowest 3

CPU seconds, for the cases of `bridge bench` in their full sizes; the weights are never filled in.  "codegen" is what
Dynamo, AOTAutograd and Inductor take, "Triton" all configurations of all distinct kernels, ptxas included.  Where
torch's runtime tunes a shared launch itself, when it is first called (2.13), its first configuration alone counts here.
"""

from __future__ import annotations

import argparse
import resource
import sys
from typing import Any, NamedTuple

import torch

from bridge import offline
from bridge.backend import bridge
from bridge.bench import cases, zoo
from bridge.bench.red import exit_status
from bridge.bench.zoo import Architecture
from bridge.offline.wrapper import TritonKernelSource

#: The most that Bridge's kernels may take, over Inductor's.
LIMIT = 1.05


class Compiled(NamedTuple):
    """Hold, of a kernel, CPU seconds for its configurations, the least of the repeats, and their number."""

    seconds: float
    configurations: int
    kernel: TritonKernelSource


class Side(NamedTuple):
    """Hold what a compiler makes of a case: CPU seconds but Triton's, the least of the repeats, and its kernels."""

    codegen: float
    kernels: list[Compiled]

    @property
    def triton(self) -> float:
        """Return Triton's CPU seconds for all kernels."""
        return sum(kernel.seconds for kernel in self.kernels)

    @property
    def configurations(self) -> int:
        """Return the number of configurations of all kernels."""
        return sum(kernel.configurations for kernel in self.kernels)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its children so far."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def codegen(case: cases.Case, compile_fx: Any, arch: int) -> tuple[float, list[TritonKernelSource]]:
    """(CPU seconds of one compilation without Triton's, the kernels)."""
    torch._dynamo.reset()
    start = cpu_seconds()
    found = offline.compile_for_gpu(case.call, case.inputs, compile_fx=compile_fx, arch=arch).kernels
    return cpu_seconds() - start, found


def both_sides(case: cases.Case, options: argparse.Namespace) -> list[Side]:
    """Measure Inductor and Bridge, whose turns alternate; a kernel of both is compiled once, the slowest first."""
    backends = [None, bridge]
    runs: list[list[Any]] = [[], []]
    for i in range(options.repeats):
        for side in (0, 1) if i % 2 == 0 else (1, 0):
            runs[side].append(codegen(case, backends[side], options.arch))
    known: dict[str, Compiled] = {}
    return [Side(min(s for s, _ in taken), _kernels(taken[-1][1], options, known)) for taken in runs]


def _kernels(found: list[TritonKernelSource], options: argparse.Namespace, known: dict[str, Compiled]) -> list:
    distinct = {kernel.source.replace(kernel.name, "kernel"): kernel for kernel in found}
    for source, kernel in distinct.items():
        if source not in known:
            known[source] = _compile(kernel, options.arch, options.repeats)
    return sorted((known[source] for source in distinct), key=lambda k: k.seconds, reverse=True)


def _compile(kernel: TritonKernelSource, arch: int, repeats: int) -> Compiled:
    taken = []
    for _ in range(repeats):
        start = cpu_seconds()
        cubins = offline.compile_kernel(kernel, arch=arch)
        taken.append(cpu_seconds() - start)
    return Compiled(min(taken), len(cubins), kernel)


def measure(architecture: Architecture, mode: str, options: argparse.Namespace) -> bool:
    """Print a line of the table; return True if the ratio is within the limit."""
    try:
        case = cases.make_case(architecture, architecture.outline(torch.bfloat16), mode)
        theirs, ours = both_sides(case, options)
    except cases.FAILURES as failure:
        print(f"| {architecture.name} {mode} | fails: {cases.first_line(failure)[:80]} |" + " |" * 4, flush=True)
        return True
    before, after = theirs.codegen + theirs.triton, ours.codegen + ours.triton
    columns = [
        f"{len(theirs.kernels)} -> {len(ours.kernels)}",
        f"{theirs.configurations} -> {ours.configurations}",
        f"{theirs.codegen:.2f} -> {ours.codegen:.2f}",
        f"{theirs.triton:.2f} -> {ours.triton:.2f}",
        f"{after / before:.3f}",
    ]
    print(f"| {case.name} | {' | '.join(columns)} |", flush=True)
    for name, side in (("Inductor", theirs), ("Bridge", ours)):
        for k in side.kernels[: options.slowest]:
            print(
                f"    {name}: {k.seconds:.2f} s, {k.configurations} configurations of {k.kernel.name}", file=sys.stderr
            )
    return after <= LIMIT * before


def main() -> int:
    """Return the exit status: 1 if Bridge's kernels take too long to compile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="parts of the names of those to compile")
    parser.add_argument("--modes", nargs="+", default=["prefill", "vision"])
    parser.add_argument("--arch", type=int, default=90, help="compute capability (default: %(default)s)")
    parser.add_argument(
        "--repeats", type=int, default=1, help="compilations of each case and kernel, the fastest of which counts"
    )
    parser.add_argument("--slowest", type=int, default=0, help="kernels of each side to name")
    options = parser.parse_args()
    chosen = [a for a in zoo.selected(options.only) if a.available]
    columns = "case | distinct kernels | configurations | codegen s | Triton s | ratio of all"
    print(f"| {columns} |\n" + "|---" * (columns.count("|") + 1) + "|")
    pairs = [(a, mode) for a in chosen for mode in a.modes if mode in options.modes]
    slower = [f"{a.name} {mode}" for a, mode in pairs if not measure(a, mode, options)]
    print(f"over {LIMIT}: {', '.join(slower) or 'none'}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(exit_status(main()))
