"""For `compile_for_gpu` and `bridge bench --corpus`: read kernels, launches and library calls from a wrapper."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from typing import Any

# Functions of the wrapper that are not part of a call of the compiled graph.
_NOT_THE_CALL = frozenset({"benchmark_compiled_module", "get_args"})
_LIBRARY_PREFIXES = ("extern_kernels.", "torch.ops.", "aten.")


@dataclasses.dataclass(frozen=True)
class TritonKernelSource:
    """Hold one Triton kernel as Inductor writes it: a module of its own.

    ``signature`` maps argument names to Triton types, ``constants`` holds the
    arguments known when the code was generated, ``heuristic`` is the name of the
    decorator from ``triton_heuristics`` and ``size_hints`` its argument.
    """

    name: str
    source: str
    signature: dict[str, str]
    constants: dict[str, object]
    heuristic: str
    size_hints: dict[str, int]


@dataclasses.dataclass(frozen=True)
class WrapperCode:
    """Hold a wrapper source with what was read from it."""

    code: str
    kernels: tuple[TritonKernelSource, ...]
    launches: tuple[str, ...]
    extern_calls: tuple[str, ...]


def dotted_name(node: ast.expr) -> str:
    """Return ``a.b.c`` for such an expression, the empty string for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        prefix = dotted_name(node.value)
        return f"{prefix}.{node.attr}" if prefix else ""
    return ""


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal, the source of anything else."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def _literal_items(node: ast.expr | None) -> dict[Any, Any]:
    """Return the items of a dict display; each value is read by itself, as some are no literals."""
    if not isinstance(node, ast.Dict):
        return {}
    return {_literal(k): _literal(v) for k, v in zip(node.keys, node.values, strict=True) if k}


def _dict_entry(node: ast.expr | None, key: str) -> ast.expr | None:
    if not isinstance(node, ast.Dict):
        return None
    for name, value in zip(node.keys, node.values, strict=True):
        if isinstance(name, ast.Constant) and name.value == key:
            return value
    return None


def kernel_function(tree: ast.Module) -> ast.FunctionDef:
    """Return the function of a kernel's module that is the kernel.

    Combine functions of scans and reductions come before it, what the template of an attention calls after it.
    """
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return next((function for function in functions if _heuristics(function)), functions[-1])


def _heuristics(function: ast.FunctionDef) -> list[ast.Call]:
    calls = [decorator for decorator in function.decorator_list if isinstance(decorator, ast.Call)]
    return [call for call in calls if dotted_name(call.func).startswith("triton_heuristics.")]


def _heuristic_call(function: ast.FunctionDef) -> ast.Call:
    for call in _heuristics(function):
        return call
    raise ValueError(f"{function.name} has no decorator from triton_heuristics")


def parse_kernel(name: str, source: str) -> TritonKernelSource:
    """Read a kernel's metadata from its source."""
    call = _heuristic_call(kernel_function(ast.parse(source)))
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    meta = keywords.get("triton_meta")
    return TritonKernelSource(
        name=name,
        source=source,
        signature=_literal_items(_dict_entry(meta, "signature")),
        constants=_literal_items(_dict_entry(meta, "constants")),
        heuristic=dotted_name(call.func).rpartition(".")[2],
        size_hints=_literal_items(keywords.get("size_hints")),
    )


def _compiled_kernels(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Yield ``name = async_compile.<kind>(...)`` assignments of the wrapper."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target, call = node.targets[0], node.value
            if dotted_name(call.func).startswith("async_compile."):
                yield dotted_name(target), call


def _triton_kernels(tree: ast.Module) -> Iterator[TritonKernelSource]:
    for _, call in _compiled_kernels(tree):
        if dotted_name(call.func) == "async_compile.triton":
            # The name in the source may differ from the wrapper's.
            name, source = (ast.literal_eval(argument) for argument in call.args[:2])
            yield parse_kernel(name, source)


def _outermost_functions(node: ast.AST) -> Iterator[ast.FunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _outermost_functions(child)
        elif isinstance(child, ast.FunctionDef) and child.name not in _NOT_THE_CALL:
            yield child


def _calls_in_order(tree: ast.Module) -> list[str]:
    """Return the dotted names of all calls in the functions of the wrapper."""
    calls = [
        (node.lineno, node.col_offset, dotted_name(node.func))
        for function in _outermost_functions(tree)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
    ]
    return [name for _, _, name in sorted(calls) if name]


def parse_wrapper(code: str) -> WrapperCode:
    """Read everything ``OfflineResult`` reports from one wrapper source."""
    tree = ast.parse(code)
    names = {name for name, _ in _compiled_kernels(tree)}
    calls = _calls_in_order(tree)
    launched = [name.removesuffix(".run") for name in calls if name.endswith(".run")]
    return WrapperCode(
        code=code,
        kernels=tuple(_triton_kernels(tree)),
        launches=tuple(name for name in launched if name in names),
        extern_calls=tuple(n for n in calls if n.startswith(_LIBRARY_PREFIXES)),
    )
