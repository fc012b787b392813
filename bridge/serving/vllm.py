"""Plug Bridge into vLLM: its entry point group `vllm.general_plugins`, called in each of its processes.

    vllm serve MODEL --additional-config '{"bridge": {}}'        # or BRIDGE_VLLM=1

What vLLM supports does the work.  `inductor_compile_config` takes objects with a `uuid()` into Inductor's hooks: they
are part of vLLM's key, and travel with the configuration to the engine, to its workers and to every rank.
`additional_config` is part of the key as well, as JSON.

Two functions of vLLM's are wrapped, as it has nothing that calls a plug-in there:

- `VllmConfig.__post_init__`: general plug-ins are called before there is a configuration.  Without a wish for Bridge in
  it the wrapper does nothing.
- `CompilerManager.compile` (mode VLLM_COMPILE), in processes that were given such a configuration: it knows which
  piecewise graph is compiled, for how many tokens, and where its cache is.  Here Bridge's pass over the graph comes
  after vLLM's own, which the hook in `inductor_compile_config` would precede, and a graph that cannot be compiled with
  Bridge is compiled without.  Were it gone, the hook of the schedule would still do its part.
"""

from __future__ import annotations

import copy
import functools
import inspect
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import inductor
from ..inductor import graphs
from ..options import Options
from ..reports import Report
from ..scheduling import hook
from ..support.error_boundary import BUGS, describe
from . import reporting
from .request import requested
from .served import AfterFusion, BeforeLowering, Served, identity_of

#: The environment variable that asks for Bridge where `additional_config` does not mention it.
VARIABLE = "BRIDGE_VLLM"

#: What vLLM's `additional_config` has: what was asked for, and what identifies the Bridge that does it.
ASKED, IDENTITY = "bridge", "bridge.identity"

_log = logging.getLogger("vllm.bridge")


class _AfterFusion(AfterFusion):
    """Do the same in vLLM's configuration: in each process that this is sent to, piecewise graphs are watched."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.options, self.identity, self.folder)


def _restored(*parts: Any) -> _AfterFusion:
    watch_compilations()
    return _AfterFusion(*parts)


def register() -> None:
    """Have each configuration of vLLM's that asks for Bridge get it; vLLM calls this once or more in every process.

    A failure is a warning, and leaves plain Inductor.
    """
    try:
        from vllm.config import VllmConfig

        _wrap(VllmConfig, "__post_init__", _completing)
    except BUGS as error:
        if VARIABLE in os.environ:
            reporting.warn_off(f"it cannot be put into vLLM: {describe(error)}")


def _wrap(owner: type, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put a wrapper around a method, once."""
    method = getattr(owner, name)
    if not hasattr(method, "bridges"):
        wrapper = functools.wraps(method)(make(method))
        wrapper.__dict__["bridges"] = True
        setattr(owner, name, wrapper)


# ---------------------------------------------------------------------------------------------------------
# The configuration
# ---------------------------------------------------------------------------------------------------------


def _completing(post_init: Callable[..., None]) -> Callable[..., None]:
    def completed(config: Any, *args: Any, **kwargs: Any) -> None:
        post_init(config, *args, **kwargs)
        try:
            _complete(config)
        except BUGS as error:
            reporting.warn_off(describe(error))

    return completed


def _complete(config: Any) -> None:
    """Put into a configuration what it asks for; nothing of an earlier one stays that is used again.

    OptionError for a wish that cannot be read.
    """
    _leave_out(getattr(config, "compilation_config", None))
    given = getattr(config, "additional_config", None)
    options = requested(VARIABLE, given.get(ASKED) if isinstance(given, Mapping) else None)
    if options is None or not hook.supported(Report()):
        return
    identity = identity_of(options)
    if isinstance(given, dict):
        config.additional_config = {ASKED: True, **given, IDENTITY: identity}
    _put_in(config.compilation_config, options, identity)


def _report_folder() -> Path:
    from vllm import envs

    return Path(envs.VLLM_CACHE_ROOT, "bridge")


def _put_in(compilation: Any, options: Options, identity: str) -> None:
    """Set Inductor's hooks, in the configuration of the compilations; a pass of the user's over the graph stays."""
    from vllm.compilation.passes.inductor_pass import InductorPass

    theirs = compilation.inductor_compile_config
    if theirs.get(inductor.HOOK) is not None:
        raise RuntimeError(f"inductor_compile_config has a pass of its own in {inductor.HOOK}")
    folder = str(_report_folder())
    hooks = {
        inductor.HOOK: inductor.kept_pass(_AfterFusion(options, identity, folder)),
        inductor.GRAPH_HOOK: inductor.kept_graph_pass(BeforeLowering(options, identity, folder), InductorPass),
    }
    compilation.inductor_compile_config = {**hooks, **theirs}
    watch_compilations()
    _tell_once("Bridge is on, for what Inductor compiles.")


def _leave_out(compilation: Any) -> None:
    """Take out what `_put_in` has put in; do nothing for a configuration of another form."""
    entries = getattr(compilation, "inductor_compile_config", None)
    if isinstance(entries, dict) and any(map(served_of, entries.values())):
        compilation.inductor_compile_config = {n: value for n, value in entries.items() if served_of(value) is None}


def served_of(value: object) -> Served | None:
    """Return what Bridge is to do, of what a configuration has for a hook; None where that is not Bridge's."""
    implementation = getattr(value, "implementation", None)
    return implementation if isinstance(implementation, Served) else None


@functools.cache
def _tell_once(words: str) -> None:
    _log.info("%s", words)


# ---------------------------------------------------------------------------------------------------------
# Piecewise graphs
# ---------------------------------------------------------------------------------------------------------


def watch_compilations() -> None:
    """Have vLLM's compilations of piecewise graphs be Bridge's as a whole, in this process."""
    try:
        from vllm.compilation.backends import CompilerManager

        _wrap(CompilerManager, "compile", _within_bridge)
    except BUGS as error:
        _log.debug("Bridge sees no piecewise graphs: %s", describe(error))


def _within_bridge(compile_graph: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(compile_graph)

    def compiled(*args: Any, **kwargs: Any) -> Any:
        try:
            call = signature.bind(*args, **kwargs)
            call.apply_defaults()
            seen = _see(call.arguments)
        except BUGS as error:
            _log.debug("Bridge cannot see a piecewise graph: %s", describe(error))
            seen = None
        return compile_graph(*args, **kwargs) if seen is None else _compile(seen, call, compile_graph)

    return compiled


@dataclass(frozen=True)
class _Seen:
    """Hold a piecewise graph that is to be compiled: what Bridge is to do, what the graph is, and a copy of it."""

    served: Served
    place: reporting.Place
    folder: Path
    spare: Any


def _see(arguments: Mapping[str, Any]) -> _Seen | None:
    """Return what is to be compiled, of the arguments of `CompilerManager.compile`; None where it is not Bridge's."""
    served = served_of(arguments["additional_inductor_config"].get(inductor.HOOK))
    if served is None or not served.active():
        return None
    graph, sizes = arguments["graph"], arguments["compile_range"]
    tokens = f"{sizes.start} tokens" if sizes.is_single_size() else f"{sizes.start} to {sizes.end} tokens"
    name = f"graph {arguments['graph_index'] + 1} of {arguments['num_graphs']}"
    place = reporting.Place(name, graphs.layers(graph.graph), tokens)
    # Inductor takes the graph apart, and it may have to be compiled again.
    return _Seen(served, place, Path(arguments["self"].cache_dir, "bridge"), copy.deepcopy(graph))


def _compile(seen: _Seen, call: inspect.BoundArguments, compile_graph: Callable[..., Any]) -> Any:
    """Compile one piecewise graph and tell of it; without Bridge where that fails with it.

    Raises what vLLM raises without Bridge; in strict mode what it raises with.
    """
    options, report = seen.served.options, Report()
    try:
        with hook.active(options, report):
            compiled = compile_graph(*call.args, **call.kwargs)
    except BUGS as error:
        if options.strict:
            raise
        reporting.warn_plain(str(seen.place), describe(error))
    else:
        reporting.tell(seen.place, report, seen.folder)
        return compiled
    call.arguments["graph"] = seen.spare
    with hook.withheld():
        return compile_graph(*call.args, **call.kwargs)
