"""Have Inductor call Bridge: after its passes over a graph, and after its own fusion.

Each may hold a pass of the user's, which is called first.  Both are set for the process and do something only in the
compilations that are Bridge's; to all others it is as if they were not there, in the keys of Inductor's caches, too.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from . import trial
from .protocols import Schedule

if TYPE_CHECKING:
    from torch.fx import Graph

#: What identifies a pass in the keys of Inductor's caches; None for no caching.
Identity: TypeAlias = "tuple[object, ...] | None"

#: Inductor's option for the pass over the schedule, and for the one over the graph.
HOOK = "_post_fusion_custom_pass"
GRAPH_HOOK = "post_grad_custom_post_pass"


class Implementation(Protocol):
    """Declare what Bridge does in a hook: it is called where it is active; its key may be None, for no caching."""

    def active(self) -> bool: ...

    def key(self) -> Identity: ...

    def __call__(self, *args: Any) -> Any: ...


class Kept(Protocol):
    """Declare what Bridge does in a pass that a configuration keeps; its key identifies it, active or not."""

    def active(self) -> bool: ...

    def key(self) -> str: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


class InstalledPass:
    """Hold a pass that Bridge puts into a hook."""

    hook: str

    def __init__(self, implementation: Implementation):
        self.implementation = implementation

    def __deepcopy__(self, memo: dict[int, object]) -> Any:
        return copy.deepcopy(users_pass(self.hook), memo)


class CacheIdentity:
    """Stand for the hook in the configuration that torch 2.11 pickles into its cache key."""

    def __init__(self, key: object):
        self.key = key

    def __call__(self, nodes: Schedule) -> Schedule:
        return nodes

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return CacheIdentity, (self.key() if callable(self.key) else self.key,)


def scheduler_pass(implementation: Implementation) -> InstalledPass:
    """Make a pass for HOOK, which `hooked` takes; it calls `implementation(nodes)`.

    Where it is not active it is as if it were not there.
    """
    return _scheduler_pass_class()(implementation)


@functools.cache
def _scheduler_pass_class() -> type:
    from torch._inductor import codecache, custom_graph_pass

    # A later torch than 2.11 asks this class for uuid(); 2.11 copies and pickles its configuration.
    keyed = getattr(custom_graph_pass, "CustomSchedulerPass", None)

    class BridgeSchedulerPass(InstalledPass, keyed or object):  # type: ignore[misc]
        hook = HOOK

        def __call__(self, nodes: Schedule) -> Schedule:
            if trial.running.get():
                return nodes
            users = users_pass()
            nodes = nodes if users is None else users(nodes)
            return self.implementation(nodes) if self.implementation.active() else nodes

        def uuid(self) -> Any:
            """Return what identifies the pass; Bridge's and the user's one."""
            users = users_pass()
            theirs = users.uuid() if hasattr(users, "uuid") else None
            ours = self.implementation.key() if self.implementation.active() else ()
            if ours is None or (users is not None and theirs is None):
                raise codecache.BypassFxGraphCache("bridge dumps or explains, or a pass in its hook has no uuid()")
            return (*ours, theirs) if ours else theirs

        def __deepcopy__(self, memo: dict[int, object]) -> Any:
            if keyed is None and self.implementation.active():
                return CacheIdentity(self.uuid)
            return super().__deepcopy__(memo)

    return BridgeSchedulerPass


def kept_pass(implementation: Kept) -> Any:
    """Make a pass for HOOK that a configuration keeps: it can be copied and pickled, as the implementation can.

    It calls `implementation(nodes)` where that is active.
    """
    return _kept_pass_class()(implementation)


@functools.cache
def _kept_pass_class() -> type:
    from torch._inductor import custom_graph_pass

    keyed = getattr(custom_graph_pass, "CustomSchedulerPass", None)

    class KeptPass(keyed or object):  # type: ignore[misc]
        def __init__(self, implementation: Kept):
            self.implementation = implementation

        def __call__(self, nodes: Schedule) -> Schedule:
            return nodes if trial.running.get() or not self.implementation.active() else self.implementation(nodes)

        def uuid(self) -> Any:
            """Return what identifies the pass, active or not."""
            return self.implementation.key()

        def __reduce__(self) -> tuple[Any, tuple[object, ...]]:
            return kept_pass, (self.implementation,)

        def __repr__(self) -> str:
            return f"<{self.implementation.key()}>"

    return KeptPass


def kept_graph_pass(implementation: Kept, base: type) -> Any:
    """Make a pass for GRAPH_HOOK that a configuration keeps, as `kept_pass` does for HOOK.

    base: a subclass of CustomGraphPass that the owner of the configuration wants it to be of.
    It calls `implementation(graph, inference)` where that is active, and where it is told what the graph is for.
    """
    return _kept_graph_pass_class(base)(implementation)


@functools.cache
def _kept_graph_pass_class(base: type) -> type:
    bases = tuple(filter(None, (base, _told_of_inference())))

    class KeptGraphPass(*bases):  # type: ignore[misc]
        def __init__(self, implementation: Kept):
            self.implementation = implementation

        def __call__(self, graph: Graph, is_inference: bool | None = None) -> None:
            inference = _traced_for_inference() if is_inference is None else is_inference
            if self.implementation.active():
                self.implementation(graph, inference)

        def uuid(self) -> Any:
            """Return what identifies the pass, active or not."""
            return self.implementation.key()

        def __reduce__(self) -> tuple[Any, tuple[object, ...]]:
            return kept_graph_pass, (self.implementation, base)

        def __repr__(self) -> str:
            return f"<{self.implementation.key()}>"

    return KeptGraphPass


def graph_pass(implementation: Implementation) -> InstalledPass:
    """Make a pass for GRAPH_HOOK, which `hooked` takes; it calls `implementation(graph, inference)`.

    Where it is not active it is as if it were not there.
    """
    return _graph_pass_class()(implementation)


@functools.cache
def _graph_pass_class() -> type:
    from torch._inductor import custom_graph_pass

    class BridgeGraphPass(InstalledPass, _told_of_inference() or custom_graph_pass.CustomGraphPass):  # type: ignore[misc]
        hook = GRAPH_HOOK

        def __call__(self, graph: Graph, is_inference: bool | None = None) -> None:
            inference = _traced_for_inference() if is_inference is None else is_inference
            for users in _one_by_one(users_pass(GRAPH_HOOK)):
                told = isinstance(users, _told_of_inference() or ())
                users(graph, is_inference=inference) if told else users(graph)
            if self.implementation.active():
                self.implementation(graph, inference)

        def __bool__(self) -> bool:
            """Return whether there is a pass: False is none, to the keys of Inductor's caches."""
            return self.implementation.active() or bool(users_pass(GRAPH_HOOK))

        def uuid(self) -> Any:
            """Return None, which Inductor takes, for a pass that must not be cached."""
            theirs = _users_identity()
            ours = self.implementation.key() if self.implementation.active() else ()
            if theirs is None or ours is None:
                return None
            return (*ours, theirs) if ours else theirs or "no pass"

    return BridgeGraphPass


def _told_of_inference() -> Any:
    """Return the class of the passes that are told whether the graph is one for inference; None before torch 2.13."""
    from torch._inductor import custom_graph_pass

    return getattr(custom_graph_pass, "CustomInferenceAwareGraphPass", None)


def _users_identity() -> Any:
    """Identify, as torch does, what the user put into the hook of the graph.

    Return () for nothing, None for a pass that has no identity.
    """
    from torch._inductor.custom_graph_pass import CustomGraphPass

    users = users_pass(GRAPH_HOOK)
    identities = tuple(one.uuid() if isinstance(one, CustomGraphPass) else None for one in _one_by_one(users))
    if not all(identities):
        return None
    return identities if isinstance(users, (list, tuple)) or not identities else identities[0]


def _one_by_one(users: Any) -> tuple[Any, ...]:
    if not users:
        return ()
    return tuple(users) if isinstance(users, (list, tuple)) else (users,)


def _traced_for_inference() -> bool:
    """Return what AOTAutograd noted of the graph that is being compiled; False where it had no part in it."""
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    # Of 2.11 alone: a later torch tells the pass.
    known = context.fw_metadata if context is not None else None
    return known is not None and not getattr(known, "is_train", True)


@functools.cache
def _entry(hook: str) -> Any:
    from torch._inductor import config

    return config._config[hook]


def _configured(hook: str) -> Any:
    """Return the value that the user's code gave a hook: of this context, or of the process in torch 2.11."""
    override = _entry(hook).user_override
    return override.get() if isinstance(override, ContextVar) else override


def _configure(hook: str, value: object) -> None:
    entry = _entry(hook)
    if isinstance(entry.user_override, ContextVar):
        entry.user_override.set(value)
    else:
        entry.user_override = value


def users_pass(hook: str = HOOK) -> Any:
    """Return the pass in a hook that is not Bridge's (or a list of them, in that of the graph), or None."""
    value = _configured(hook)
    unset = type(value) is object or isinstance(value, InstalledPass)  # torch marks it by an object()
    return None if unset else value


_held: dict[str, list[InstalledPass]] = {HOOK: [], GRAPH_HOOK: []}
_held_lock = threading.Lock()


class hooked(contextlib.AbstractContextManager):
    """Have Inductor call a pass of `scheduler_pass` or `graph_pass` in every thread meanwhile.

    What the user put into the hook is not touched.  The value is set where torch keeps those that an environment
    variable forces: it is above the user's, which `users_pass` still reads, and there is one for the process, while
    the user's is one a thread from 2.12 on.

    It is no generator: Python ends those that are left when the process does, and nothing may be done then.
    """

    def __init__(self, ours: InstalledPass):
        """Take the pass; nothing happens yet."""
        self._ours = ours
        self._before: list[Any] = []

    def __enter__(self) -> None:
        """Put the pass into its hook."""
        self._before.append(_configured(self._ours.hook))
        _unset()  # imports, which is too late where a generator of the user's is ended with the process
        _hold(self._ours.hook, [self._ours], [])

    def __exit__(self, *error: object) -> None:
        """Take the pass out of its hook."""
        ours, before = self._ours, self._before.pop()
        _hold(ours.hook, [], [ours])
        # A config.patch of the hook inside has "restored" the value that it could read, which was ours.
        if _configured(ours.hook) is ours:
            _configure(ours.hook, before)


def _hold(hook: str, added: list[InstalledPass], removed: list[InstalledPass]) -> None:
    with _held_lock:
        held = _held[hook]
        held.extend(added)
        for ours in removed:
            held.remove(ours)
        _entry(hook).env_value_force = held[-1] if held else _unset()


@functools.cache
def _unset() -> object:
    """Return what torch has where a value is not forced."""
    from torch.utils._config_module import _UNSET_SENTINEL

    return _UNSET_SENTINEL
