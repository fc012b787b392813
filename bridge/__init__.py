"""Bridge: a torch.compile backend that fuses, through MLIR's affine dialect, what Inductor leaves apart.

    torch.compile(f, backend="bridge")

or, for all of Inductor's compilations, `bridge.install()` and `with bridge.enabled():`.
`bridge.explain(f, *args)` shows what was fused, and why not.
Importing this package loads neither MLIR nor Inductor.
"""

from __future__ import annotations

import importlib
from typing import Any

from .diagnostics import recorder
from .install import enabled, install, uninstall
from .options import OptionError, Options
from .reasons import InvariantError, Reason, Unsupported
from .reports import Counterexample, GroupReport, Report, report
from .support.version import __version__

__all__ = [
    "Counterexample",
    "GroupReport",
    "InvariantError",
    "OptionError",
    "Options",
    "Reason",
    "Report",
    "Unsupported",
    "__version__",
    "config",
    "enabled",
    "expect_fused",
    "explain",
    "export",
    "fuse_or_explain",
    "install",
    "report",
    "uninstall",
]

#: Where to find what is loaded when it is asked for.
_LATER = {
    "config": ("config", None),
    "explain": ("diagnostics.explaining", "explain"),
    "expect_fused": ("diagnostics.expect", "expect_fused"),
    "fuse_or_explain": ("diagnostics.expect", "fuse_or_explain"),
    "export": ("diagnostics.exporting", "export"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, attribute = _LATER[name]
    module = importlib.import_module(f".{home}", __name__)
    globals()[name] = module if attribute is None else getattr(module, attribute)
    return globals()[name]


recorder.register()
