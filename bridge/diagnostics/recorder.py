"""Send on what a compilation tells: to dumps, to torch's logs and traces, and to what explains it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, cast

from ..reports import Report, write_with
from ..support import recorder
from . import dump, recording, torch_logging
from .first_screen import report_text

if TYPE_CHECKING:  # Inductor and sympy are heavy, and `import bridge` is to be quick.
    import sympy

    from ..inductor.protocols import Kernel, Schedule


class Diagnostics:
    """Implement `bridge.support.recorder.Recorder`."""

    def is_recording(self) -> bool:
        """Return True inside of `recording.recorded`."""
        return recording.current() is not None

    def begin_group(self, kernels: Sequence[Kernel]) -> recorder.GroupRecord | None:
        """Record a group as it arrives; None where nobody asks."""
        return recording.begin_group(kernels)

    def open_stages(self, group: str, dump_dir: str | None, record: recorder.GroupRecord | None) -> recorder.Stages:
        """Open the user's folder, else torch's, and whatever else wants the stages of a group."""
        listeners = torch_logging.stage_listeners(group)
        if record is not None:
            listeners.append(record.add_stage)
        return dump.Dump(dump_dir or torch_logging.debug_folder(), group, listeners)

    def finish_group(
        self, record: recorder.GroupRecord | None, fused: bool, sizes: Sequence[sympy.Symbol], pipeline: str
    ) -> None:
        """Record the sizes of a group, and which values of theirs would make it fuse if it did not."""
        recording.finish_group(cast("recording.GroupRecord | None", record), fused, sizes, pipeline)

    def finish_graph(self, schedule: Schedule, report: Report, earlier: int) -> None:
        """Record what became of a report's groups from number `earlier` on."""
        recording.finish_graph(schedule, report, earlier)

    def watch(self, schedule: Schedule) -> None:
        """Record the kernels that code is yet to be generated for."""
        recording.watch(schedule)

    def timed(self, name: str) -> AbstractContextManager[None]:
        """Add the block's time to torch's times of compilation."""
        return torch_logging.timed(name)

    def tell(self, report: Report) -> None:
        """Log a report."""
        torch_logging.tell(report)


def register() -> None:
    """Make the diagnostics what compilations tell, and their artifacts known to torch's logging."""
    recorder.use(Diagnostics())
    write_with(report_text)
    torch_logging.register()
