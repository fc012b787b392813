"""Compilations: the torch versions that work, the scheduler hook, options and caches."""

from __future__ import annotations

import contextlib
import copy
import functools
import re
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import torch

HOOK = "_post_fusion_custom_pass"

#: The first torch that works, and the first that is not known to.
TORCH_VERSIONS = (2, 11), (2, 14)


def torch_release() -> tuple[int, int]:
    major, minor = re.findall(r"\d+", torch.__version__)[:2]
    return int(major), int(minor)


def torch_supported() -> bool:
    return TORCH_VERSIONS[0] <= torch_release() < TORCH_VERSIONS[1]


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


class CacheIdentity:
    """Stands for the hook in the configuration that torch 2.11 pickles into its cache key."""

    def __init__(self, key: Any):
        self.key = key

    def __call__(self, nodes: list[Any]) -> list[Any]:
        return nodes

    def __reduce__(self) -> Any:
        return CacheIdentity, (self.key() if callable(self.key) else self.key,)


def scheduler_pass(implementation: Any) -> Any:
    """Makes what `hooked` takes of an object with `active()`, `key()` and `__call__(nodes)`.

    Where it is not active it is as if it were not there; its key may be None, for no caching.
    """
    return _scheduler_pass_class()(implementation)


@functools.cache
def _scheduler_pass_class() -> type:
    from torch._inductor import codecache, custom_graph_pass

    # A later torch than 2.11 asks this class for uuid(); 2.11 copies and pickles its configuration.
    keyed = getattr(custom_graph_pass, "CustomSchedulerPass", None)

    class BridgeSchedulerPass(keyed or object):  # type: ignore[misc]
        def __init__(self, implementation: Any):
            self.implementation = implementation

        def __call__(self, nodes: list[Any]) -> list[Any]:
            users = users_pass()
            nodes = nodes if users is None else users(nodes)
            return self.implementation(nodes) if self.implementation.active() else nodes

        def uuid(self) -> Any:
            users = users_pass()
            theirs = users.uuid() if hasattr(users, "uuid") else None
            ours = self.implementation.key() if self.implementation.active() else ()
            if ours is None or (users is not None and theirs is None):
                raise codecache.BypassFxGraphCache("bridge dumps or explains, or a pass in its hook has no uuid()")
            return (*ours, theirs) if ours else theirs

        def __deepcopy__(self, memo: Any) -> Any:
            if keyed is None and self.implementation.active():
                return CacheIdentity(self.uuid)
            return copy.deepcopy(users_pass(), memo)

    return BridgeSchedulerPass


@functools.cache
def _hook_entry() -> Any:
    from torch._inductor import config

    return config._config[HOOK]


def _configured() -> Any:
    """The value that the user's code gave the hook: of this context, or of the process in torch 2.11."""
    override = _hook_entry().user_override
    return override.get() if isinstance(override, ContextVar) else override


def _configure(value: Any) -> None:
    entry = _hook_entry()
    if isinstance(entry.user_override, ContextVar):
        entry.user_override.set(value)
    else:
        entry.user_override = value


def users_pass() -> Any:
    """The pass in the hook that is not Bridge's, or None."""
    value = _configured()
    unset = type(value) is object or isinstance(value, _scheduler_pass_class())  # torch marks it by an object()
    return None if unset else value


_held: list[Any] = []
_held_lock = threading.Lock()


@contextlib.contextmanager
def hooked(hook: Any) -> Iterator[None]:
    """Has Inductor call `hook` in every thread meanwhile, without touching what the user put there.

    The value is set where torch keeps those that an environment variable forces: it is above the user's, which
    `users_pass` still reads, and there is one for the process, while the user's is one a thread from 2.12 on.
    """
    before = _configured()
    _hold([hook], [])
    try:
        yield
    finally:
        _hold([], [hook])
        # A config.patch of the hook inside has "restored" the value that it could read, which was ours.
        if _configured() is hook:
            _configure(before)


def _hold(added: list[Any], removed: list[Any]) -> None:
    from torch.utils._config_module import _UNSET_SENTINEL

    with _held_lock:
        _held.extend(added)
        for hook in removed:
            _held.remove(hook)
        _hook_entry().env_value_force = _held[-1] if _held else _UNSET_SENTINEL
