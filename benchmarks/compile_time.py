"""Measure what Bridge adds to a compilation, by the size of the graph: code for a GPU that need not be there.

    python benchmarks/compile_time.py
    python benchmarks/compile_time.py --graph fan --sizes 10 40 160
    python benchmarks/compile_time.py --graph blocks chain --pairs 5 --triton

CPU seconds; of Triton's own compilation, too, if asked for.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bridge import Report, offline, report
from bridge.backend import bridge as backend

#: A graph of a size: a function and its inputs.
Graph = tuple[Callable, list[Tensor]]


def chain(size: int) -> Graph:
    """Norms with a gate each, one after the other."""

    def run(x: Tensor, weight: Tensor) -> Tensor:
        for _ in range(size):
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
            gate, up = y.chunk(2, -1)
            x = torch.cat([gate * up, gate + up], -1)
        return x

    return run, [torch.randn(64, 512), torch.randn(512)]


def fan(size: int) -> Graph:
    """Slices and softmaxes of one input."""

    def run(x: Tensor) -> list[Tensor]:
        slices = [x[:, i % 7 : 256 + i % 7] * (i + 1.0) for i in range(size)]
        return slices + [torch.softmax(x * (i + 1.0), -1) for i in range(size // 2)]

    return run, [torch.randn(64, 512)]


def norm(x: Tensor) -> Tensor:
    """Return x over the root mean square of its rows."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def attention(x: Tensor, qkv: Tensor, out: Tensor) -> Tensor:
    """Return x plus its self-attention in eight heads."""
    heads = (norm(x) @ qkv).unflatten(-1, (3, 8, 64)).permute(2, 0, 3, 1, 4)
    query, key, value = heads.unbind(0)
    attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return x + attended.transpose(1, 2).flatten(-2) @ out


def blocks(size: int) -> Graph:
    """Return transformer blocks, between whose library calls there is nothing to fuse."""
    return _blocks(size, 1024, lambda x, up, down: x + F.silu(norm(x) @ up) @ down)


def gated_blocks(size: int) -> Graph:
    """Return transformer blocks with a normalised gate: two kernels for Inductor, one for Bridge."""

    def feed_forward(x: Tensor, up: Tensor, down: Tensor) -> Tensor:
        gate, value = norm(x @ up).chunk(2, -1)
        return x + (F.silu(gate) * value) @ down

    return _blocks(size, 2048, feed_forward)


def _blocks(size: int, width: int, feed_forward: Callable) -> Graph:
    def run(x: Tensor, *weights: Tensor) -> Tensor:
        for i in range(size):
            qkv, out, up, down = weights[4 * i : 4 * i + 4]
            x = feed_forward(attention(x, qkv, out), up, down)
        return x

    shapes = [(512, 1536), (512, 512), (512, width), (1024, 512)] * size
    return run, [torch.randn(2, 128, 512), *map(torch.randn, shapes)]


GRAPHS = {"chain": chain, "fan": fan, "blocks": blocks, "gated_blocks": gated_blocks}


@dataclass
class Cost:
    """Hold what one compilation costs, in CPU seconds, processes that it started included.

    codegen: Dynamo, AOTAutograd and Inductor; triton: every kernel's cubins, one for each block to choose from.
    """

    codegen: float
    triton: float
    kernels: int

    @property
    def total(self) -> float:
        """Return all CPU seconds."""
        return self.codegen + self.triton


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its children so far."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def cost(graph: Graph, compile_fx: Callable | None, with_triton: bool) -> Cost:
    """Compile a graph once; return what it cost."""
    torch._dynamo.reset()
    start = cpu_seconds()
    with torch.no_grad():
        compiled = offline.compile_for_gpu(*graph, compile_fx=compile_fx)
    middle = cpu_seconds()
    for kernel in {k.source: k for k in compiled.kernels}.values() if with_triton else ():
        offline.compile_kernel(kernel)
    return Cost(middle - start, cpu_seconds() - middle, compiled.n_kernels)


def calls(graph: Graph, compile_fx: Callable | None) -> int:
    """Count the interpreter's function calls in one compilation without Triton's, which have no noise."""
    profile = cProfile.Profile()
    profile.enable()
    cost(graph, compile_fx, with_triton=False)
    profile.disable()
    stats: Any = pstats.Stats(profile)  # its type does not say what it counts
    return stats.total_calls


def measure(name: str, size: int, pairs: int, with_triton: bool) -> str:
    """Return a line of the table; medians over pairs, whose order alternates."""
    graph = GRAPHS[name](size)
    costs: dict[Callable | None, list[Cost]] = {None: [], backend: []}
    stages: list[float] = []
    for pair in range(pairs):
        for chosen in (None, backend) if pair % 2 == 0 else (backend, None):
            costs[chosen].append(cost(graph, chosen, with_triton))
        made = report() or Report()
        stages.append(made.total_seconds)
    theirs, ours, own = costs[None], costs[backend], statistics.median(stages)
    nodes = sum(len(group.nodes) for group in made.groups)
    total, with_bridge = (statistics.median(c.total for c in side) for side in (theirs, ours))
    ratio = statistics.median(two.total / one.total for one, two in zip(theirs, ours, strict=True))
    more_calls = calls(graph, backend) / calls(graph, None)
    each = f"{1e3 * own / nodes:.1f}" if nodes else "-"
    return (
        f"| {name} {size} | {theirs[0].kernels} -> {ours[0].kernels} | {nodes} | {total:.2f} | {with_bridge:.2f} "
        f"| {ratio:.3f} | {more_calls:.4f} | {own:.3f} | {100 * own / total:.1f} % | {each} |"
    )


def import_milliseconds(processes: int = 9) -> tuple[float, bool]:
    """Return (median of what `import bridge` takes after `import torch`, in new processes; True if it loads MLIR)."""
    code = (
        "import sys, time, torch; t = time.perf_counter(); import bridge; "
        "print(time.perf_counter() - t, 'mlir' in sys.modules)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        for _ in range(processes)
    ]
    times, mlir = zip(*[run.stdout.split() for run in runs], strict=True)
    return 1e3 * statistics.median(map(float, times)), "True" in mlir


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[10, 20, 40])
    parser.add_argument("--pairs", type=int, default=1, help="compilations by each, in alternating order")
    parser.add_argument("--triton", action="store_true", help="also have Triton compile the kernels, as on a GPU")
    options = parser.parse_args()
    milliseconds, mlir = import_milliseconds()
    print(f"import bridge, after torch: {milliseconds:.1f} ms, {'with' if mlir else 'without'} MLIR")
    for name in options.graph:
        measure(name, 2, 1, options.triton)  # what a process does once is no part of it
    columns = (
        "graph | kernels | nodes of groups | Inductor s | with Bridge s | ratio | ratio of calls | "
        "of that Bridge s | share | ms a node"
    )
    print(f"| {columns} |\n" + "|---" * (columns.count("|") + 1) + "|")
    for name in options.graph:
        for size in options.sizes:
            print(measure(name, size, options.pairs, options.triton), flush=True)


if __name__ == "__main__":
    main()
