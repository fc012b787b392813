"""Compilations: the torch versions that work, options, counters."""

from __future__ import annotations

import functools
import re
import sys
import threading
from typing import Any

import torch

#: The first torch that works, and the first that is not known to.
TORCH_VERSIONS = (2, 11), (2, 14)


def torch_release() -> tuple[int, int]:
    major, minor = re.findall(r"\d+", torch.__version__)[:2]
    return int(major), int(minor)


def torch_supported() -> bool:
    return TORCH_VERSIONS[0] <= torch_release() < TORCH_VERSIONS[1]


def register_once(name: str, backend: Any) -> None:
    """Makes a backend known to Dynamo by its name; any thread may do so, and again."""
    from torch._dynamo.backends import registry

    with _registry_lock:
        if name not in registry._COMPILER_FNS:
            registry.register_backend(backend, name=name)


_registry_lock = threading.Lock()


def option_names() -> frozenset[str]:
    """What `options=` of `backend="inductor"` may name."""
    from torch._inductor import config

    return frozenset(config._config)


def config_patches(mode: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Inductor's configuration for a mode and options, validated as `backend="inductor"` does."""
    return dict(torch._TorchCompileInductorWrapper(mode, options, None).config)


def compile_plain(gm: Any, example_inputs: list[Any], patches: dict[str, Any]) -> Any:
    """What `backend="inductor"` does."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(gm, example_inputs, config_patches=patches)


def compile_graph(gm: Any, example_inputs: list[Any], patches: dict[str, Any], around: Any) -> Any:
    """compile_fx, within a context that `around()` makes; a backward that is compiled later gets its own."""
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    @functools.wraps(compile_fx_inner)
    def inner_compile(*args: Any, **kwargs: Any) -> Any:
        with around():
            return compile_fx_inner(*args, **kwargs)

    with around():
        return compile_fx(gm, example_inputs, inner_compile=inner_compile, config_patches=patches)


def codegen_error() -> type[Exception]:
    """What Inductor raises where it cannot lower a graph or generate its code."""
    from torch._inductor.exc import InductorError

    return InductorError


def is_dynamos_own(error: BaseException) -> bool:
    """Whether an error is how Dynamo is told something, to trace otherwise or not at all, and none of a compilation."""
    from torch._dynamo.exc import TorchDynamoException

    return isinstance(error, TorchDynamoException) and not isinstance(error, codegen_error())


def ends_in_graph_break(gm: Any) -> bool:
    """Whether Dynamo goes on compiling the same function after this graph."""
    return bool(getattr(getattr(gm, "compile_subgraph_reason", None), "graph_break", False))


def reset_compiler() -> None:
    """What `torch._dynamo.reset()` asks of `backend="inductor"`."""
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    if trees is not None:
        trees.reset_cudagraph_trees()


def raised_by_backend(error: Exception) -> Exception:
    """The same error, of a subclass that Dynamo hands to the user as it is and not inside BackendCompilerFailed."""
    kind: type = type(error)
    return _passed_through(kind)(*error.args, first_useful_frame=None)


@functools.cache
def _passed_through(kind: type) -> type:
    from torch._dynamo.exc import ShortenTraceback

    return type(kind.__name__, (ShortenTraceback, kind), {"__module__": kind.__module__})


_counters_lock = threading.Lock()


def add_counters(counts: dict[str, int]) -> None:
    """Adds to Dynamo's counters; other threads may be compiling."""
    from torch._dynamo.utils import counters

    with _counters_lock:
        for name, amount in counts.items():
            counters["bridge"][name] += amount
