"""Bridge for the compilations of one server's configuration."""

from __future__ import annotations

import hashlib
import itertools
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..inductor import graphs, rescheduling
from ..options import Options
from ..reports import Report
from ..scheduling import hook
from ..support.version import __version__
from . import reporting

if TYPE_CHECKING:
    import torch

    from ..inductor.protocols import Schedule


@dataclass(frozen=True)
class Served:
    """Hold what a server's configuration holds of Bridge; it can be copied, pickled and compared.

    identity: stands for Bridge, its native library and the options in the keys of caches; folder: for the reports of
    graphs that nobody else tells of, with one folder a rank in it.
    """

    options: Options
    identity: str
    folder: str

    def active(self) -> bool:
        """Return True where a compilation of this context is to go through Bridge, and does not yet."""
        return not hook.is_withheld() and hook.current() is None and self.is_of_this_process()

    def is_of_this_process(self) -> bool:
        """Return False, with a warning, where the configuration was made with another Bridge than this process has."""
        if self.identity.endswith(_fingerprint(self.options)):
            return True
        reporting.warn_off("this process has another Bridge than the one that made the configuration")
        return False

    def key(self) -> str:
        """Return what identifies Bridge in the keys of caches."""
        return self.identity


class AfterFusion(Served):
    """Give the pass over the schedule, for compilations around which there is no scope of Bridge's."""

    def __call__(self, nodes: Schedule) -> Schedule:
        """Return the schedule after Bridge, and tell of its graph."""
        report = Report()
        with hook.active(self.options, report):
            changed = hook.run_after_fusion(nodes, self.options, report)
        layers = graphs.layers(rescheduling.current_graph().module.graph)
        place = reporting.Place(f"graph {next(_numbers)}", layers)
        reporting.tell(place, report, Path(self.folder, f"rank_{_rank()}"))
        return changed


class BeforeLowering(Served):
    """Give the pass over the graph, for the same compilations."""

    def __call__(self, graph: torch.fx.Graph, inference: bool) -> None:
        """Change a graph before Inductor lowers it."""
        with hook.active(self.options, Report()):
            hook.run_before_lowering(graph, inference)


def _rank() -> int:
    """Return the number of this process among those that run one model together."""
    from torch import distributed

    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0


#: Of graphs that have no other name, in the order in which the process schedules them.
_numbers = itertools.count(1)


def identity_of(options: Options) -> str:
    """Return what identifies Bridge, its native library and the options.

    Where the options ask for dumps it is a new one each time: what comes from a cache has nothing to dump.
    """
    fresh = f"{uuid.uuid4()} " if options.dump_dir is not None else ""
    return fresh + _fingerprint(options)


def _fingerprint(options: Options) -> str:
    digest = hashlib.sha256(repr(hook.identity(options)).encode()).hexdigest()
    return f"bridge {__version__} {digest}"
