"""Compilations: the torch versions that work, options, counters."""

from __future__ import annotations

import functools
import logging
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule

from . import inventory

#: What a backend is given: a graph and its inputs; it returns what runs the graph.
Backend: TypeAlias = Callable[..., Callable[..., Any]]

#: The first torch that works, and the first that nobody has tested.
TORCH_VERSIONS = (2, 11), (2, 16)

_log = logging.getLogger("bridge")


def torch_release() -> tuple[int, int]:
    """Return torch's version, (major, minor)."""
    major, minor = re.findall(r"\d+", torch.__version__)[:2]
    return int(major), int(minor)


def tested_versions() -> str:
    """Return the versions of torch that Bridge is tested with, as text."""
    oldest, (major, too_new) = TORCH_VERSIONS
    return f"{oldest[0]}.{oldest[1]} - {major}.{too_new - 1}"


def torch_obstacle() -> str | None:
    """Return why Bridge does not work with this torch; None where it does.

    A newer torch than those that were tested works where it has all private names as they are expected.
    """
    release = torch_release()
    if release < TORCH_VERSIONS[0]:
        return f"bridge is tested with torch {tested_versions()}, and torch {torch.__version__} is older"
    if release < TORCH_VERSIONS[1]:
        return None
    return _obstacle_in_newer(release)


@functools.cache
def _obstacle_in_newer(release: tuple[int, int]) -> str | None:
    """Return what a newer torch has in another form, or log once that it has nothing so."""
    version = f"bridge is tested with torch {tested_versions()}; torch {torch.__version__}"
    differences = inventory.moved(release)
    if differences:
        return f"{version} differs in what bridge uses of it: {'; '.join(differences)}"
    _log.warning("%s has all that bridge uses of it, in the same form: bridge goes on", version)
    return None


def register_once(name: str, backend: Backend) -> None:
    """Make a backend known to Dynamo by its name; any thread may do so, and again."""
    from torch._dynamo.backends import registry

    with _registry_lock:
        if name not in registry._COMPILER_FNS:
            registry.register_backend(backend, name=name)


_registry_lock = threading.Lock()


def option_names() -> frozenset[str]:
    """Return what `options=` of `backend="inductor"` may name."""
    from torch._inductor import config

    return frozenset(config._config)


def config_patches(mode: str | None, options: Mapping[str, object]) -> dict[str, Any]:
    """Return Inductor's configuration for a mode and options, validated as `backend="inductor"` does."""
    return dict(torch._TorchCompileInductorWrapper(mode, options, None).config)


def compile_plain(
    gm: GraphModule, example_inputs: Sequence[object], patches: Mapping[str, object]
) -> Callable[..., Any]:
    """Compile as `backend="inductor"` does."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(gm, example_inputs, config_patches=patches)


def compile_graph(
    gm: GraphModule,
    example_inputs: Sequence[object],
    patches: Mapping[str, object],
    around: Callable[[], AbstractContextManager[object]],
) -> Callable[..., Any]:
    """Call compile_fx within a context that `around()` makes; a backward that is compiled later gets its own."""
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    @functools.wraps(compile_fx_inner)
    def inner_compile(*args: object, **kwargs: object) -> Any:
        with around():
            return compile_fx_inner(*args, **kwargs)

    with around():
        return compile_fx(gm, example_inputs, inner_compile=inner_compile, config_patches=patches)


def codegen_error() -> type[Exception]:
    """Return what Inductor raises where it cannot lower a graph or generate its code."""
    from torch._inductor.exc import InductorError

    return InductorError


def compilation() -> str:
    """Return what names the compilation that a graph belongs to; a forward and its backward have the same."""
    from torch._guards import CompileContext

    return str(CompileContext.current_compile_id())


def is_dynamos_own(error: BaseException) -> bool:
    """Return True if an error only tells Dynamo something: to trace otherwise, or not at all."""
    from torch._dynamo.exc import TorchDynamoException

    return isinstance(error, TorchDynamoException) and not isinstance(error, codegen_error())


def ends_in_graph_break(gm: GraphModule) -> bool:
    """Return True if Dynamo goes on compiling the same function after this graph."""
    return bool(getattr(getattr(gm, "compile_subgraph_reason", None), "graph_break", False))


def reset_compiler() -> None:
    """Reset what `torch._dynamo.reset()` asks of `backend="inductor"`."""
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    if trees is not None:
        trees.reset_cudagraph_trees()


def raised_by_backend(error: Exception) -> Exception:
    """Return the same error, of a subclass.

    Dynamo hands it to the user as it is and not inside BackendCompilerFailed.
    """
    kind: type = type(error)
    return _passed_through(kind)(*error.args, first_useful_frame=None)


@functools.cache
def _passed_through(kind: type) -> type:
    from torch._dynamo.exc import ShortenTraceback

    return type(kind.__name__, (ShortenTraceback, kind), {"__module__": kind.__module__})


_counters_lock = threading.Lock()


def add_counters(counts: dict[str, int]) -> None:
    """Add to Dynamo's counters; other threads may be compiling."""
    from torch._dynamo.utils import counters

    with _counters_lock:
        for name, amount in counts.items():
            counters["bridge"][name] += amount
