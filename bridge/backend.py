"""`torch.compile(f, backend="bridge")`."""

from __future__ import annotations

from typing import Any

from . import hook
from . import inductor_compat as inductor
from .config import make_options, split_options


def bridge(gm: Any, example_inputs: list[Any], *, mode: str | None = None, options: dict | None = None) -> Any:
    """Compiles a graph as `inductor` does, and fuses what it left apart.

    mode, options: as for `inductor`; options of Bridge's own (see `bridge.Options`) are taken out.
    OptionError for a bad option of ours; Inductor's own errors for the others.
    """
    ours, theirs = split_options(options)
    chosen = make_options(ours)
    patches = inductor.config_patches(mode, theirs)
    with hook.active(chosen):
        return inductor.compile_with_hook(gm, example_inputs, patches, lambda prev: hook.make_pass(chosen, prev, False))
