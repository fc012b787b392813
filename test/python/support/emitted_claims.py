"""Compares what a report claims with the code that was emitted: kernels by graph, and those of each group."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bridge import Report
from bridge.diagnostics.recording import Kernel
from bridge.offline import parse_wrapper


def launches(code: str) -> int:
    """Launches of generated kernels in a wrapper, Triton's and C++; library calls are not counted."""
    return len(parse_wrapper(code).launches) + len(re.findall(r"^ +cpp_fused\w*\(", code, re.MULTILINE))


def loop_nests(code: str) -> int:
    """Loop nests of the C++ functions in a wrapper: Inductor has all kernels that follow each other in one function."""
    return code.count("\n    {\n")


def wrong_claims(report: Report, codes: Iterable[str], kernels: Iterable[Kernel] = ()) -> list[str]:
    """What a report says otherwise than the wrappers of its graphs.

    kernels: with their nodes, where they were recorded; then the kernels of the groups are compared, too.
    """
    emitted, wrong = sum(map(launches, codes)), []
    if report.kernels_after != emitted:
        wrong.append(f"{report.kernels_after} kernels are claimed, {emitted} are launched")
    saved = sum(group.kernels_before - group.kernels_after for group in report.groups)
    if report.kernels_before - report.kernels_after != saved:
        wrong.append(f"the groups save {saved} kernels, the graphs {report.kernels_before - report.kernels_after}")
    for group in report.groups:
        if not group.fused and group.kernels_after != group.kernels_before:
            wrong.append(f"{group.name} is not fused, and has {group.kernels_after} of {group.kernels_before} kernels")
    return wrong + [line for group in report.groups for line in _of_group(group, list(kernels))]


def _of_group(group, kernels: list[Kernel]) -> list[str]:
    own = [kernel for kernel in kernels if set(kernel.nodes) & set(group.nodes)]
    if not kernels or not group.fused or len(own) <= group.kernels_after:
        return []  # a launch that it shares with another group is both's
    return [f"{group.name} claims {group.kernels_after} kernels, its nodes are in {len(own)}"]
