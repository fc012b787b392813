"""Compare what a report claims with the code that was emitted: kernels by graph and by group, and what they move."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

import torch

from bridge import Report
from bridge.diagnostics.recording import Kernel
from bridge.offline import parse_wrapper


def launches(code: str) -> int:
    """Count launches of generated kernels, Triton's and C++, without library calls, templates and users' kernels."""
    return len(_loops(code)) + len(re.findall(r"^ +cpp_fused\w*\(", code, re.MULTILINE))


def _loops(code: str) -> list[str]:
    """Return the names of launched Triton kernels that have loops; of several that the first call tries, one."""
    return [name for name in parse_wrapper(code).launches if re.match(r"triton_(?!tem_)|multi_kernel_", name)]


def _only_tried(code: str) -> set[str]:
    """Return kernels beside the first of those that one launch chooses from (`multi_kernel`)."""
    lists = re.findall(r"= async_compile\.multi_kernel\('\w+', \[(.*?)\]", code, re.DOTALL)
    return {name for names in lists for name in re.findall(r"\w+", names)[1:]}


def loop_nests(code: str) -> int:
    """Count loop nests in a wrapper's C++ functions; Inductor puts consecutive kernels into one function."""
    return code.count("\n    {\n")


def _functions(code: str) -> list[tuple[str, str]]:
    """Return the C++ functions of a wrapper, as (name, source); equal kernels are calls of one."""
    pattern = r"^(\w+) = async_compile\.cpp\w*\((.*?)^'''"
    return re.findall(pattern, code, re.MULTILINE | re.DOTALL)


def _calls_of(name: str, code: str) -> int:
    return len(re.findall(rf"^ +{name}\(", code, re.MULTILINE))


def most_kernels(code: str) -> float:
    """Return the most kernels that a wrapper may be said to have: for C++ as many as loop nests.

    One C++ function has several kernels. A kernel may have several nests, too, or none of its own in a block, and a
    parallel region several kernels.
    """
    nests = len(_loops(code)) + sum(loop_nests(body) * _calls_of(name, code) for name, body in _functions(code))
    return math.inf if "#pragma omp parallel" in code else max(nests, launches(code))


def wrong_claims(report: Report, codes: Iterable[str], kernels: Iterable[Kernel] = ()) -> list[str]:
    """Return what a report claims that differs from the wrappers of its graphs.

    kernels: with their nodes, where they were recorded; then the kernels of the groups are compared, too.
    """
    codes = list(codes)
    tried = {(graph, name) for graph, code in enumerate(codes) for name in _only_tried(code)}
    kernels = [kernel for kernel in kernels if (kernel.graph, kernel.name) not in tried]
    emitted, wrong = sum(map(launches, codes)), contradictions(report)
    if not emitted <= report.kernels_after <= sum(map(most_kernels, codes)):
        wrong.append(f"{report.kernels_after} kernels are claimed, {emitted} are launched")
    wrong += [line for group in report.groups for line in _of_group(group, kernels, report.device)]
    return wrong + (_wrong_bytes(report, codes, kernels) if kernels and not wrong else [])


def contradictions(report: Report) -> list[str]:
    """Return contradictions inside a report: totals that are not those of the groups, and nodes in two groups."""
    wrong = []
    saved = sum(group.kernels_before - group.kernels_after for group in report.groups)
    if report.kernels_before - report.kernels_after != saved:
        wrong.append(f"the groups save {saved} kernels, the graphs {report.kernels_before - report.kernels_after}")
    less = sum(group.bytes_before - group.bytes_after for group in report.groups)
    if report.bytes_before - report.bytes_after != less:
        wrong.append(f"the groups save {less} bytes, the graphs {report.bytes_before - report.bytes_after}")
    nodes = [(group.graph, node) for group in report.groups for node in group.nodes]
    wrong += [f"{node} is in two groups" for node in sorted(set(nodes)) if nodes.count(node) > 1]
    return wrong + [line for group in report.groups for line in _contradictions(group)]


def _contradictions(group) -> Iterator[str]:
    if group.kernels_after != group.kernels_before - group.done.saved:
        yield f"{group.name} says {group.done}, and has {group.kernels_after} of {group.kernels_before} kernels"
    if group.fused != (str(group.done) != "nothing changed"):
        yield f"{group.name} is {'' if group.fused else 'not '}fused, and says {group.done}"
    if sum(sum(kernel.moved.values()) for kernel in group.kernels_now) != group.bytes_after:
        yield f"{group.name} moves {group.bytes_after} bytes, its kernels otherwise"
    if not {node for kernel in group.kernels_now for node in kernel.nodes} >= set(group.nodes):
        yield f"{group.name} has lost nodes"


def _of_group(group, kernels: list[Kernel], device: str) -> list[str]:
    """Return a line if a group claims other kernels than it has: its own launches, and shared ones.

    A C++ function may have several kernels in it.
    """
    own = [kernel for kernel in kernels if kernel.graph == group.graph and set(kernel.nodes) & set(group.nodes)]
    least = 1 if device == "cpu" else group.kernels_after
    if not kernels or least <= len(own) <= group.kernels_after + group.done.joined:
        return []
    return [f"{group.name} claims {group.kernels_after} kernels, its nodes are in {len(own)}"]


# ---------------------------------------------------------------------------------------------------------
# Bytes, of Triton's launches
# ---------------------------------------------------------------------------------------------------------


def _wrong_bytes(report: Report, codes: list[str], kernels: list[Kernel]) -> list[str]:
    """Return claims of groups whose bytes are not those of the buffers of their launches.

    A combo kernel of Inductor's may be several launches, each of which is recorded with the nodes of all.
    """
    wrong: list[str] = []
    for graph, code in enumerate(codes):
        own = [kernel for kernel in kernels if kernel.graph == graph]
        calls = _calls(code)
        if len(own) != len(calls):
            return wrong  # C++ functions have several kernels in them; of others the number was compared
        roots, sizes = _roots(code), _sizes(code)
        for kernel in own:
            passed = set().union(*(call for part, call in zip(own, calls, strict=True) if part.nodes == kernel.nodes))
            wrong += _of_launch(report, kernel, {roots.get(name, name) for name in passed}, roots, sizes)
    return wrong


def _of_launch(report: Report, kernel: Kernel, passed: set[str], roots: dict[str, str], sizes: dict[str, int]):
    """Yield a line where a launch whose kernels are all in groups moves other buffers, or more bytes, than claimed."""
    groups = [group for group in report.groups if group.graph == kernel.graph]
    parts = [part for group in groups for part in group.kernels_now if set(part.nodes) & set(kernel.nodes)]
    if {node for part in parts for node in part.nodes} != set(kernel.nodes):
        return
    claimed = {roots.get(name, name) for part in parts for name in part.moved}
    if claimed != {name for name in passed if name in claimed or not name.startswith(_WORKSPACE)}:
        yield f"{kernel.name} is said to move {sorted(claimed)}, and is passed {sorted(passed)}"
    for part in parts:
        for name, amount in part.moved.items():
            if amount > sizes.get(name, math.inf):
                yield f"{kernel.name} is said to move {amount} bytes of {name}, which has {sizes[name]}"


#: Buffers, and the memory that a kernel of rows leaves its partial sums in, of which the sums that read it are claimed.
_MEMORY, _WORKSPACE = r"buf\d+(_parts)?|workspace_\d+", "workspace_"


def _calls(code: str) -> list[set[str]]:
    """Return the buffers that each launch is passed; inputs of a backward are named after operations."""
    inputs = re.findall(r"\w+", " ".join(re.findall(r"^ +(.+) = args$", code, re.MULTILINE)))
    calls = re.findall(r"^ +\w+\.run\((.*)\)$", code, re.MULTILINE)
    names = [re.findall(r"\w+", call) for call in calls]
    return [{name for name in call if name in inputs or re.fullmatch(_MEMORY, name)} for call in names]


def _roots(code: str) -> dict[str, str]:
    """Return, for each buffer in the memory of another, that other one."""
    roots: dict[str, str] = {}
    for name, of in re.findall(r"^ +(\w+) = (?:reinterpret_tensor\()?(\w+)[;,].*$", code, re.MULTILINE):
        roots[name] = roots.get(of, of)
    return roots


def _sizes(code: str) -> dict[str, int]:
    """Return the bytes of the buffers that a wrapper allocates, where their shapes are numbers."""
    found = {}
    for name, shape, dtype in re.findall(r"(\w+) = empty_strided\w*\(\(([\d, ]*)\), .*?, torch\.(\w+)\)", code):
        found[name] = math.prod(map(int, re.findall(r"\d+", shape))) * getattr(torch, dtype).itemsize
    return found
