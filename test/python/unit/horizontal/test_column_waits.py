"""Test which kernels are divided, as only a part of them waits for sums of columns."""

from __future__ import annotations

import pytest
import torch
from schedules import look_at_gpu_schedule

from bridge import inductor
from bridge.horizontal.column_sums import adds_up_columns
from bridge.horizontal.column_waits import Divided, find_divisions


def both(x):
    """Scale by rows and by columns: only the second copy waits for the columns' largest elements."""
    return x / x.abs().amax(-1, keepdim=True), (x / x.abs().amax(0)).t().contiguous()


def rows_of_columns(x):
    """Scale columns and then rows: nothing of the second kernel can begin before the columns are known."""
    y = x / x.abs().amax(0)
    return y / y.abs().amax(-1, keepdim=True)


def divisions(function, window=16):
    """Return for each kernel that is divided how many of its nodes do not wait, and how many do."""
    seen = []

    def look(schedule):
        (seed,) = filter(adds_up_columns, schedule)
        found = find_divisions(schedule, seed, window)
        seen.append([(len(one.before), len(one.after)) for one in found])
        for one in found:
            assert [*one.before, *one.after] != [] and one.whole in schedule
            made = set().union(*map(inductor.buffers_made, one.after))
            assert not any(inductor.buffers_read(node) & made for node in one.before)
            halves = Divided(one.whole, *(part[0] for part in (one.before, one.after)))
            assert len(halves.in_schedule(schedule)) == len(schedule) + 1

    look_at_gpu_schedule(function, [torch.empty(8192, 4096)], look)
    (found,) = seen
    return found


def test_what_does_not_wait_is_apart_from_what_does():
    ((before, after),) = divisions(both)
    assert before >= 2 and after == 1


@pytest.mark.parametrize(("function", "window"), [(rows_of_columns, 16), (both, 0)])
def test_nothing_is_divided(function, window):
    assert divisions(function, window) == []
