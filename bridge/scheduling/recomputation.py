"""Notes which values saved for the backward would be cheaper to compute again, with the kernels that there are now.

A kernel that reads a saved value, and what that is computed from, could compute it.  There are more such kernels after
Bridge has merged those of the same rows.  PyTorch decides what is saved, and nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .. import inductor
from ..graph_passes.saved_values import SavedValue
from ..inductor import inspection
from ..inductor.protocols import Schedule
from ..reports import Report

#: Part of the bytes that a backward moves which is worth a note.
LEAST_OF_ALL = 0.01


def keep_saved(report: Report, values: Iterable[SavedValue], schedule: Schedule) -> None:
    """Keep what a forward saves for the schedule of its backward."""
    for value in values:
        buffer = inductor.result_name(value.position)
        read_again = any(buffer in inductor.buffers_awaited(kernel) for kernel in schedule)
        report.saved[inductor.compilation(), value.name] = replace(value, read_again=read_again)


def note_recomputations(report: Report, schedule: Schedule) -> None:
    """Note what would be cheaper to compute again in the kernels of a backward; nothing where no value was kept."""
    own = inductor.compilation()
    saved = {name: value for (compilation, name), value in report.saved.items() if compilation == own}
    read = {name for kernel in schedule for name in inductor.buffers_read(kernel)} if saved else set()
    if read.isdisjoint(saved):
        return
    parts = [part for kernel in schedule for part in inductor.launch_parts(kernel)]
    touched = [inductor.bytes_touched(part) for part in parts if inspection.is_generated(part)]
    by_calls = {name for part in parts if not inspection.is_generated(part) for name in inductor.buffers_read(part)}
    least = LEAST_OF_ALL * sum(sum(amounts.values()) for amounts in touched)
    known = [name for name in read & saved.keys() - by_calls if saved[name].saved <= read]
    spared = {name: bytes_spared(name, saved[name], touched) for name in known}
    for name in sorted(known, key=lambda name: (-spared[name], name)):
        if spared[name] > least:
            report.notes.append(_note(saved[name], inductor.buffer_bytes(name), spared[name]))


def bytes_spared(name: str, value: SavedValue, touched: Iterable[dict[str, int]]) -> int:
    """Return the bytes that are not moved if no kernel reads a saved value, and each computes it from its sources.

    touched: bytes of each buffer that a kernel touches.  Negative where the kernels read too little of the sources.
    """
    sources = {source: inductor.buffer_bytes(source) for source in value.saved} | value.inputs
    spared = 0 if value.read_again else inductor.buffer_bytes(name)
    for amounts in touched:
        if name in amounts:
            more = sum(max(0, size - amounts.get(source, 0)) for source, size in sources.items())
            spared += amounts[name] - more
    return spared


def _note(value: SavedValue, size: int, spared: int) -> str:
    return (
        f"{value.place} is saved for the backward, {size / 2**20:.1f} MB: computed again in the kernels that read it, "
        f"it would spare {spared / 2**20:.1f} MB to move. `torch.utils.checkpoint` of that line has it computed again"
    )
