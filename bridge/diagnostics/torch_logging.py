"""Register Bridge with torch's tools for looking at compilations: logs, artifacts, traces, timings, the debug folder.

Outside of bridge/inductor/ the one file that knows torch's private API; nothing of it
is part of what a compilation gives.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..reports import Report

#: `TORCH_LOGS="bridge"` has the decisions, `"+bridge"` also each refusal's details and the stages' times.
log = logging.getLogger("bridge")

#: `TORCH_LOGS="bridge,bridge_ir"` has the affine IR before and after the passes.
IR_ARTIFACT = "bridge_ir"
_IR_MEANING = "The affine IR of each group of kernels before and after Bridge's passes"


def register() -> None:
    """Make the artifact known to torch's logging, if torch is loaded; safe to repeat.

    torch imports a package that TORCH_LOGS names before it reads the names after it, so that one import is enough;
    where that import was before torch's own, `torch_names` asks again.
    """
    logs = sys.modules.get("torch._logging._internal")
    if logs is None:
        return
    if not logs.log_registry.is_artifact(IR_ARTIFACT):
        logs.register_artifact(IR_ARTIFACT, _IR_MEANING, visible=True, off_by_default=True)
    _ir_log()


#: Who logs, with a traceback, what is also raised.
_REPEATING = ("torch._subclasses.fake_tensor", "torch._inductor.utils")


@contextlib.contextmanager
def without_errors() -> Iterator[None]:
    """Have torch not log an error that it also raises: of a wrong shape it logs a traceback of 40 lines."""

    def leave_out(record: logging.LogRecord) -> bool:
        return record.levelno < logging.WARNING

    with contextlib.ExitStack() as stack:
        for logger in map(logging.getLogger, _REPEATING):
            logger.addFilter(leave_out)
            stack.callback(logger.removeFilter, leave_out)
        yield


def _ir_log() -> logging.Logger:
    from torch._logging import getArtifactLogger

    return getArtifactLogger(log.name, IR_ARTIFACT)


def stage_listeners(group: str) -> list[Callable[[str, str], None]]:
    """Return what wants each stage of a group, as (name, text): the trace, and the log of the affine IR."""
    listeners: list[Callable[[str, str], None]] = []
    if _tracing():
        listeners.append(lambda stage, text: trace(f"bridge_{group}_{stage}", text))
    register()
    ir_log = _ir_log()
    if ir_log.isEnabledFor(logging.DEBUG):
        listeners.append(lambda stage, text: _log_ir(ir_log, group, stage, text))
    return listeners


def _log_ir(ir_log: logging.Logger, group: str, stage: str, text: str) -> None:
    if stage in ("affine.mlir", "fused.mlir"):
        ir_log.debug("%s %s\n%s", group, stage, text)


def _tracing() -> bool:
    from torch._logging._internal import trace_log

    return bool(trace_log.handlers)


def trace(name: str, text: str) -> None:
    """Add an artifact for TORCH_TRACE, which tlparse shows under its name; do nothing without it."""
    from torch._logging import trace_structured

    described = {"name": name, "encoding": "json" if name.endswith(".json") else "string"}
    trace_structured("artifact", metadata_fn=lambda: described, payload_fn=lambda: text)


def tell(report: Report) -> None:
    """Log a report, its first lines at INFO and all of it at DEBUG, and add it to a trace."""
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s", report.details())
    elif log.isEnabledFor(logging.INFO):
        log.info("%s", "\n".join(line for line in report.details().splitlines() if not line.startswith("    ")))
    if _tracing():
        trace("bridge_report", report.details())


@contextlib.contextmanager
def timed(name: str) -> Iterator[None]:
    """Add the block's time to `torch._dynamo.utils.compile_times()` and to the events of a trace."""
    from torch._dynamo.utils import dynamo_timed

    with dynamo_timed(name):
        yield


def debug_folder() -> str | None:
    """Return where Inductor writes this graph under TORCH_COMPILE_DEBUG=1, with a folder for Bridge; None without."""
    from torch._inductor.virtualized import V

    path = getattr(V.debug, "_path", None)
    return str(Path(path, "bridge")) if path else None
