"""Bridge: a torch.compile backend that fuses, through MLIR's affine dialect, what Inductor leaves apart.

    torch.compile(f, backend="bridge")

or, for all of Inductor's compilations, `bridge.install()` and `with bridge.enabled():`.
Importing this package loads neither MLIR nor Inductor.
"""

from __future__ import annotations

from .config import OptionError, Options
from .install import enabled, install, uninstall
from .reasons import InvariantError, Reason, Unsupported
from .report import GroupReport, Report, report
from .version import __version__

__all__ = [
    "GroupReport",
    "InvariantError",
    "OptionError",
    "Options",
    "Reason",
    "Report",
    "Unsupported",
    "__version__",
    "enabled",
    "install",
    "report",
    "uninstall",
]
