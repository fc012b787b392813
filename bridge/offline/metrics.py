"""For tests: count the memory accesses written in a Triton kernel's source."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from .wrapper import TritonKernelSource, dotted_name, kernel_function

_ATOMICS = "tl.atomic_"


def _assignments(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Return the expression last assigned to each local name."""
    return {
        node.targets[0].id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


def _leftmost(node: ast.expr) -> ast.expr:
    """Return the base of a pointer expression: ``p`` in ``p + (i + n*j)``."""
    while isinstance(node, (ast.BinOp, ast.Call)):
        if isinstance(node, ast.BinOp):
            node = node.left
        elif node.args:
            node = node.args[0]
        else:
            return node
    return node


def _pointer_name(node: ast.expr, parameters: set[str], assigned: dict[str, ast.expr]) -> str:
    """Return the kernel parameter that a pointer expression starts from, or ``""``.

    Block pointers and descriptors are local names: follow their assignments.
    """
    seen: set[str] = set()
    while True:
        name = dotted_name(_leftmost(node))
        if name in parameters:
            return name
        if name in seen or name not in assigned:
            return ""
        seen.add(name)
        node = assigned[name]


def _accessed(call: ast.Call, operation: str) -> ast.expr | None:
    """Return the pointer that ``call`` accesses if it is a ``load`` (or ``store``), else None."""
    name = dotted_name(call.func)
    atomic = operation == "store" and name.startswith(_ATOMICS)
    if name == f"tl.{operation}" or atomic:
        return call.args[0]
    if isinstance(call.func, ast.Attribute) and call.func.attr == operation:
        return call.func.value
    return None


def _accesses(source: str, operation: str) -> Iterator[str]:
    function = kernel_function(ast.parse(source))
    parameters = {argument.arg for argument in function.args.args}
    assigned = _assignments(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            pointer = _accessed(node, operation)
            if pointer is not None:
                yield _pointer_name(pointer, parameters, assigned)


def _count(kernel: TritonKernelSource | str, operation: str) -> dict[str, int]:
    source = kernel if isinstance(kernel, str) else kernel.source
    counts = Counter(name for name in _accesses(source, operation) if name)
    return dict(sorted(counts.items()))


def count_loads(kernel: TritonKernelSource | str) -> dict[str, int]:
    """Count the loads written per pointer argument; a load in a loop counts once."""
    return _count(kernel, "load")


def count_stores(kernel: TritonKernelSource | str) -> dict[str, int]:
    """Count the stores and atomics written per pointer argument."""
    return _count(kernel, "store")
