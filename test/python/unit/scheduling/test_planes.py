"""Test a group that is tried with its sums over planes.

What changes meanwhile, what comes back, what saves too little.
"""

from __future__ import annotations

import pytest
import torch
from schedules import look_at_gpu_schedule

from bridge import inductor
from bridge.horizontal.peak_memory import Room
from bridge.inductor.columns import is_column_part
from bridge.reasons import Reason, Unsupported
from bridge.reports import GroupReport
from bridge.scheduling import planes
from bridge.scheduling.commit import Commit
from bridge.scheduling.group_log import GroupLog
from bridge.scheduling.grouping import form_groups


def scaled(x, g, s):
    """Compute the gradients of relu(x) * s, for its input and its scale."""
    h = torch.where(x > 0, g, 0.01 * g)
    return h * s, (h * x).sum((0, 2, 3))


def normed(x, g, s):
    """Return the gradient of a norm, which waits for the sums and goes over the same planes."""
    h = torch.where(x > s[:, :1], g, g * s[:, 1:2]) * s
    return h - (h.sum((0, 2, 3), keepdim=True) + x * (h * x).sum((0, 2, 3), keepdim=True)) / 16, h


def in_turn(x, g, s):
    """Compute a sum that waits for another one, which has no kernel of its planes before it."""
    h = torch.tanh(x - x.sum((0, 2, 3), keepdim=True) / 16) * g
    return h * s, (h * x).sum((0, 2, 3))


def of_lines(x, g, s):
    """Compute sums with a number for each line, which keeps the loops over a plane apart."""
    h = x * g.amax(-1, keepdim=True)
    return h * s, (h * g).sum((0, 2, 3))


SHAPE = 16, 32, 113, 113


def look(check, function=scaled):
    """Call `check` with (a commit of the group of a function with a sum over planes, its log)."""
    seen = []

    def find(schedule):
        (group,), _ = form_groups(schedule, 16)
        log = GroupLog(GroupReport("group0", sorted(group.names), 3, 3))
        seen.append(group)
        check(Commit({}, group, schedule, Room.of(schedule)), log)

    look_at_gpu_schedule(function, [torch.empty(SHAPE), torch.empty(SHAPE), torch.empty(1, 32, 1, 1)], find)
    assert seen


def parts(commit):
    nodes = [node for kernel in commit.schedule for node in inductor.loop_nodes(kernel)]
    return [node for node in nodes if is_column_part(node)]


def assert_untouched(commit):
    """Check that no kernel came of a group, and that it is not asked for planes any more."""
    assert not commit.done and commit.check_gain is None and not commit.resized


def test_a_group_of_which_nothing_comes_is_as_it_was():
    def check(commit, log):
        (part,), schedule, levels = parts(commit), commit.schedule, dict(commit.room.levels)
        sizes, positions, tried = inductor.node_sizes(part), list(commit.group.positions), []

        def try_passes():
            tried.append(inductor.node_sizes(part))
            commit.room.levels = {}
            assert parts(commit) == []
            assert len(commit.group.positions) == len(positions) - 1, "the second stage is not among them"
            assert commit.resized and commit.check_gain is not None

        planes.try_in_planes(commit, log, try_passes)
        assert_untouched(commit)
        assert len(tried) == 1 and tried[0] != sizes
        assert (inductor.node_sizes(part), commit.schedule, commit.room.levels) == (sizes, schedule, levels)
        assert commit.group.positions == positions and commit.check_gain is None and not commit.resized

    look(check)


def test_a_group_without_sums_over_planes_is_not_tried_again(monkeypatch):
    monkeypatch.setattr(planes, "plane_sum", lambda part, rows: None)

    def check(commit, log):
        planes.try_in_planes(commit, log, pytest.fail)
        assert_untouched(commit)

    look(check)


def test_lines_are_tried_where_nothing_comes_of_pieces():
    def check(commit, log):
        (part,), tried = parts(commit), []

        def try_passes():
            tried.append([list(map(int, sizes)) for sizes in inductor.node_sizes(part)])
            log.keep_apart(Reason.not_liftable, str(len(tried)))

        planes.try_in_planes(commit, log, try_passes)
        assert_untouched(commit)
        images, channels, height, width = SHAPE
        assert tried[1:] == [[[images, channels, height], [width]]] and tried[0] != tried[1]
        assert [why for _, why in log.apart] == ["1", "2"]

    look(check, of_lines)


def test_what_waits_for_sums_is_not_tried_with_their_parts():
    def check(commit, log):
        tried = []

        def try_passes():
            tried.append([inductor.operation_names(commit.schedule[p]) for p in commit.group.positions])

        first, sums, *_ = [inductor.operation_names(commit.schedule[p]) for p in commit.group.positions]
        planes.try_in_planes(commit, log, try_passes)
        assert_untouched(commit)
        assert tried == [[first, sums]]

    look(check, normed)


def test_a_sum_that_waits_for_another_is_tried_where_nothing_comes_of_that():
    def check(commit, log):
        first, last = parts(commit)
        tried = []

        def try_passes():
            tried.append((is_column_part(first), is_column_part(last)))

        planes.try_in_planes(commit, log, try_passes)
        assert_untouched(commit)
        assert tried == [(True, False)], "alone, the first is in no kernel with another"

    look(check, in_turn)


@pytest.mark.parametrize("saves", [False, True])
def test_a_kernel_has_to_save_clearly_more_than_the_parts_are(monkeypatch, saves):
    monkeypatch.setattr(planes, "saved_bytes", lambda names, kernels: (200 << 20) if saves else (1 << 20))

    def check(commit, log):
        def try_passes():
            kernels = [commit.schedule[position] for position in commit.group.positions]
            if saves:
                commit.check_gain(kernels[-1], kernels)
                return
            with pytest.raises(Unsupported, match=r"sums over planes save 1\.0 of") as refused:
                commit.check_gain(kernels[-1], kernels)
            assert refused.value.reason is Reason.not_profitable

        planes.try_in_planes(commit, log, try_passes)

    look(check)


def test_a_sum_over_planes_does_not_save_what_inductors_stages_do_not_read(monkeypatch):
    """Check that a sum over planes does not claim reads that Inductor's stages do not make.

    The first stage of EDM's loss is in the kernel before: 1 MB and a launch, not the 64 MB that planes read.
    """
    kernels = {"rows": {"x": 128 << 20, "y": 64 << 20}, "planes": {"y": 64 << 20, "sums": 1 << 12}}
    monkeypatch.setattr(planes.inductor, "operation_names", lambda kernel: {kernel})
    monkeypatch.setattr(planes.inductor, "bytes_touched", kernels.__getitem__)
    monkeypatch.setattr(planes, "saved_bytes", lambda names, replaced: 69 << 20)
    given = [({"rows"}, kernels["rows"] | {"lines": 1 << 19}), ({"planes"}, {"lines": 1 << 19, "sums": 1 << 12})]
    planes._check_gain([], [({name}, kernels[name]) for name in kernels], "rows", list(kernels))
    with pytest.raises(Unsupported, match=r"sums over planes save 6\.0 of 193\.0 MB"):
        planes._check_gain([], given, "rows", list(kernels))
