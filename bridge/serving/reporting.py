"""Write a server's log of each graph that Bridge compiled, and the files with the whole reports."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..reports import Report, warn_once
from ..support.error_boundary import BUGS, describe

#: Below vLLM's own logger, whose handler and level it has so.  In a server without one it is a logger as any.
log = logging.getLogger("vllm.bridge")


@dataclass(frozen=True)
class Place:
    """Tell where in a model a graph stands.

    name: of the graph, `graph 2 of 9`; layers: module paths of the layers that it computes; sizes: the numbers of
    tokens that it is for, or nothing where that is not known.
    """

    name: str
    layers: tuple[str, ...] = ()
    sizes: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.name, _shortened(self.layers), self.sizes)))

    @property
    def file(self) -> str:
        """Return the name of the file with its report."""
        words = re.sub(r"\W+", "_", f"{self.name} {self.sizes}".strip())
        return f"{words}.txt"


def _shortened(layers: Sequence[str]) -> str:
    """Return `layers.0 to layers.31` for many."""
    return ", ".join(layers) if len(layers) < 4 else f"{layers[0]} to {layers[-1]}"


def tell(place: Place, report: Report, folder: Path) -> None:
    """Log a line at INFO, and write the whole report into a folder of files, one a graph.

    A graph that was not compiled (the server had it in its cache, or an equal one in memory) has a line at DEBUG.
    What goes wrong here is a warning, once.
    """
    try:
        _tell(place, report, folder)
    except BUGS as error:
        warn_once("serving report", f"bridge cannot report: {describe(error)}")


def _tell(place: Place, report: Report, folder: Path) -> None:
    if not report.graphs:
        log.debug("Bridge: %s: not compiled, it is in the cache or equal to an earlier one", place)
        return
    log.info("Bridge: %s: %s; report in %s", place, _summary(report), _written(place, report, folder))


def _summary(report: Report) -> str:
    groups = f"{len(report.fused)} of {len(report.groups)} groups fused"
    return f"{report.kernels_before} -> {report.kernels_after} kernels, {groups}"


def _written(place: Place, report: Report, folder: Path) -> Path:
    path = folder / place.file
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{place}\n\n{report}\n\n{report.details()}\n", encoding="utf-8")
    return path


def warn_off(detail: str) -> None:
    """Warn, once a process, that Bridge does nothing in this server, and why."""
    warn_once("serving", f"bridge is off, and Inductor compiles without it: {detail}")


def warn_plain(graph: str, detail: str) -> None:
    """Warn, once a process, that a graph was compiled without Bridge, and why."""
    warn_once("serving graph", f"bridge leaves {graph} to Inductor, as it could not be compiled: {detail}")
