"""`torch.compile(f, backend="bridge")`."""

from __future__ import annotations

import time
from typing import Any, cast

from . import inductor
from .options import OptionError, Options, make_options, split_options
from .scheduling import hook
from .support.error_boundary import BUGS


def bridge(gm: Any, example_inputs: list[Any], *, mode: str | None = None, options: dict | None = None) -> Any:
    """Compile a graph as `inductor` does, and fuse what it left apart.

    mode, options: as for `inductor`; options of Bridge's own (see `bridge.Options`) are taken out.
    OptionError for a name that neither knows or a bad value of ours; Inductor's RuntimeError for one of its own.
    Where an error of any kind ends that, the graph is compiled once more, without Bridge; not where Bridge had no part
    in what failed, as the sizes that torch has learned on the way may let it pass where Inductor alone raises.
    """
    try:
        chosen, patches = _options(mode, options)
    except (OptionError, RuntimeError) as error:
        raise inductor.raised_by_backend(error) from None
    report = hook.report_for(chosen, inductor.ends_in_graph_break(gm))
    if not hook.supported(report):
        return inductor.compile_plain(gm, example_inputs, patches)
    earlier, start = report.mark(), time.perf_counter()
    try:
        compiled = inductor.compile_graph(gm, example_inputs, patches, lambda: hook.active(chosen, report))
        report.compile_seconds += time.perf_counter() - start
        return compiled
    except BUGS as error:
        if chosen.strict or inductor.is_dynamos_own(error) or not hook.took_part():
            raise
        detail = f"no code for its kernels: {error}"
    plain = inductor.compile_plain(gm, example_inputs, patches)  # raises what Inductor raises by itself
    hook.withdraw(report, earlier, detail)
    return plain


def _options(mode: str | None, options: dict | None) -> tuple[Options, dict[str, Any]]:
    ours, theirs = split_options(options, inductor.option_names())
    return make_options(ours), inductor.config_patches(mode, theirs)


def __getattr__(name: str) -> None:
    """Return None for `registered`, which the package's entry point names, after the backend is registered.

    Threads that ask at once for a backend that Dynamo knows by its entry point each load it, and each register what
    they got; torch raises at the second. So it is registered here, under a lock, and torch gets None, of which it
    registers nothing.
    """
    if name != "registered":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    inductor.register_once("bridge", bridge)


#: Dynamo calls this in `torch._dynamo.reset()`.
cast("Any", bridge).reset = inductor.reset_compiler
