"""Print registers, spills and shared memory of every fused kernel, read off its cubin: no GPU is needed.

    python benchmarks/cubins.py
    python benchmarks/cubins.py --pattern swiglu --list long_rows --dtype float32 --arch 100

A kernel that spills is a failed choice: the exit status is 1.  Of those that Inductor has several blocks to time for,
it is one if all of them spill.
"""

from __future__ import annotations

import argparse
import sys

import torch
from patterns import LISTS, Pattern, selected

from bridge import offline
from bridge.backend import bridge
from bridge.bench.red import exit_status


def main() -> int:
    """Return the exit status: 1 if a kernel spills in all of its blocks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pattern", nargs="+", default=[""], help="parts of the names of those to compile")
    parser.add_argument("--list", choices=LISTS, nargs="+", default=list(LISTS), help="which functions (default: all)")
    parser.add_argument("--dtype", nargs="+", default=["bfloat16"])
    parser.add_argument("--arch", type=int, default=90, help="compute capability (default: %(default)s)")
    options = parser.parse_args()
    failed = []
    print(
        "| pattern | dtype | block | warps | registers a thread | spilled words | shared bytes |\n" + "|---" * 7 + "|"
    )
    for pattern in (p for name in options.list for p in selected(options.pattern, LISTS[name])):
        for dtype in options.dtype:
            if not print_kernels(pattern, dtype, options.arch):
                failed.append(f"{pattern.name} in {dtype}")
    print(f"spilling: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def print_kernels(pattern: Pattern, dtype: str, arch: int) -> bool:
    """Print a line for each cubin; return True if every kernel has a block in which it does not spill."""
    torch._dynamo.reset()
    inputs = pattern.make(None, getattr(torch, dtype), "cpu")
    fine = True
    for kernel in offline.compile_for_gpu(pattern.function, inputs, compile_fx=bridge, arch=arch).kernels:
        cubins = offline.compile_kernel(kernel, arch=arch)
        fine &= any(cubin.spills == 0 for cubin in cubins)
        for c in cubins:
            block = " ".join(
                f"{key}={size}" for key, size in c.config.items() if key.endswith("BLOCK") or "BLOCK_" in key
            )
            print(f"| {pattern.name} | {dtype} | {block or 'one row'} | {c.config['num_warps']} | {c.registers} "
                  f"| {c.spills} | {c.shared_bytes} |", flush=True)  # fmt: skip
    return fine


if __name__ == "__main__":
    sys.exit(exit_status(main()))
