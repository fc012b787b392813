"""What Bridge adds to a compilation, by the size of the graph: code generation for a GPU that need not be there.

    python benchmarks/compile_time.py
    python benchmarks/compile_time.py --graph fan --sizes 10 40 160

CPU seconds of the process.  Triton's own compilation, which follows on a GPU and takes longer, is in neither time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

#: A graph of a size: a function and its inputs.
Graph = tuple[Callable, list[torch.Tensor]]


def chain(size: int) -> Graph:
    """Norms with a gate each, one after the other."""

    def run(x, weight):
        for _ in range(size):
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
            gate, up = y.chunk(2, -1)
            x = torch.cat([gate * up, gate + up], -1)
        return x

    return run, [torch.randn(64, 512), torch.randn(512)]


def fan(size: int) -> Graph:
    """Slices and softmaxes of one input."""

    def run(x):
        slices = [x[:, i % 7 : 256 + i % 7] * (i + 1.0) for i in range(size)]
        return slices + [torch.softmax(x * (i + 1.0), -1) for i in range(size // 2)]

    return run, [torch.randn(64, 512)]


def blocks(size: int) -> Graph:
    """Transformer blocks, between whose library calls there is nothing to fuse."""

    def norm(x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    def block(x, qkv, out, up, down):
        heads = (norm(x) @ qkv).unflatten(-1, (3, 8, 64)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
        x = x + attended.transpose(1, 2).flatten(-2) @ out
        return x + F.silu(norm(x) @ up) @ down

    def run(x, *weights):
        for i in range(size):
            x = block(x, *weights[4 * i : 4 * i + 4])
        return x

    shapes = [(512, 1536), (512, 512), (512, 1024), (1024, 512)] * size
    return run, [torch.randn(2, 128, 512), *map(torch.randn, shapes)]


GRAPHS = {"chain": chain, "fan": fan, "blocks": blocks}


def seconds(graph: Graph, backend) -> tuple[float, int]:
    """(CPU seconds of a compilation, kernels)."""
    from bridge import offline

    torch._dynamo.reset()
    start = time.process_time()
    kernels = offline.compile_for_gpu(*graph, compile_fx=backend).n_kernels
    return time.process_time() - start, kernels


def measure(name: str, size: int) -> str:
    import bridge
    from bridge.backend import bridge as backend

    graph = GRAPHS[name](size)
    theirs, before = seconds(graph, None)
    ours, after = seconds(graph, backend)
    report = bridge.report()
    nodes = sum(len(group.nodes) for group in report.groups)
    each = f"{1e3 * report.total_seconds / nodes:.1f}" if nodes else "-"
    return (
        f"| {name} {size} | {before} -> {after} | {nodes} | {theirs:.2f} | {ours:.2f} "
        f"| {report.total_seconds:.3f} | {each} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", nargs="+", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[10, 20, 40])
    options = parser.parse_args()
    for name in options.graph:
        measure(name, 2)  # what a process does once is no part of it
    print("| graph | kernels | nodes of groups | Inductor s | with Bridge s | of that Bridge s | ms a node |")
    print("|---|---|---|---|---|---|---|")
    for name in options.graph:
        for size in options.sizes:
            print(measure(name, size), flush=True)


if __name__ == "__main__":
    main()
