"""Test sums of columns inside groups of rows: what nodes are taken for, and their second stage."""

from __future__ import annotations

import contextlib

import pytest
import torch
from functions import norm
from schedules import look_at_gpu_schedule
from torch._inductor.virtualized import V

from bridge import inductor, offline
from bridge.inductor import columns, grouped_sums
from bridge.reasons import Reason, Unsupported

IMAGES, TOKENS, WIDTH = 64, 256, 1152


def shifts(x, g):
    return norm(x), (x * g).sum(1)


def whole_numbers(x, g):
    return norm(x), (x * g).int().sum(1)


def products(x, g):
    return norm(x), (x * g).prod(1)


def reducing(schedule):
    """Return the nodes that reduce something."""
    nodes = [node for kernel in schedule for node in inductor.loop_nodes(kernel)]
    return [node for node in nodes if inductor.node_sizes(node)[1]]


def look(function, check):
    """Call `check` with the node of the sums of a function of two tensors of images."""
    seen = []

    def find(schedule):
        (node,) = (node for node in reducing(schedule) if int(inductor.node_sizes(node)[1][0]) != WIDTH)
        seen.append(node)
        check(node)

    look_at_gpu_schedule(function, [torch.empty(IMAGES, TOKENS, WIDTH) for _ in range(2)], find)
    assert seen


def test_a_sum_over_the_tokens_of_each_image():
    def check(node):
        (one,) = grouped_sums.grouped_sums(node)
        assert (one.loops, one.groups, one.rows, one.columns) == (1, IMAGES, IMAGES * TOKENS, WIDTH)

    look(shifts, check)


@pytest.mark.parametrize("function", [whole_numbers, products])
def test_what_float32_does_not_hold_or_rows_do_not_add_up_is_no_such_sum(function):
    def check(node):
        assert grouped_sums.grouped_sums(node) == []

    look(function, check)


def test_a_sum_has_two_stages_until_they_are_undone():
    def check(node):
        (one,) = grouped_sums.grouped_sums(node)
        before, scheduler = inductor.node_sizes(node), node.scheduler
        with contextlib.ExitStack() as undo:
            part = grouped_sums.add_stage(one, undo)
            made = columns.column_sum(part)
            assert columns.is_column_part(part)
            assert (made.rows, made.columns, made.groups) == (IMAGES * TOKENS, WIDTH, IMAGES)
            assert inductor.buffers_made(part) == {made.buffer} == inductor.buffers_read(node)
            assert [int(size) for size in inductor.node_sizes(part)[0]] == [IMAGES, TOKENS, WIDTH]
            assert made.buffer in V.graph.name_to_buffer and part.get_name() in scheduler.name_to_node
        assert inductor.node_sizes(node) == before
        assert made.buffer not in V.graph.name_to_buffer and part.get_name() not in scheduler.name_to_node

    look(shifts, check)


def test_a_stage_that_was_undone_is_the_same_again():
    """Check that a stage that was undone is the same when it is added again.

    Its node and the loops of both stages are made once, and what was given to them is undone.
    """

    def stage(one):
        with contextlib.ExitStack() as undo:
            part = grouped_sums.add_stage(one, undo)
            (output,) = part.get_outputs()
            users = [user.get_name() for user in output.users]
            bodies = [inductor.node_body(node) for node in (part, one.node)]
            found = part, *bodies, part.node.layout, users, inductor.buffers_read(part)
            columns.add_up_in_tile(columns.column_sum(part), undo)
            columns.add_up_blocks(columns.column_sum(part), 2 * IMAGES, undo)
            assert part.node.layout is not found[3]
        return found

    def check(node):
        (one,) = grouped_sums.grouped_sums(node)
        first, second = stage(one), stage(one)
        assert all(a is b for a, b in zip(first[:4], second[:4], strict=True)) and first[4:] == second[4:]

    look(shifts, check)


def test_symbolic_columns_are_refused_and_tokens_are_not():
    """Check that symbolic columns are refused and symbolic tokens are not.

    To the norm, tokens are columns; the sums over them have as many rows as images and tokens together.
    """
    seen: list[object] = []

    def refused(schedule):
        for node in reducing(schedule):
            try:
                seen.extend((one.columns, str(one.rows / one.groups)[0]) for one in grouped_sums.grouped_sums(node))
            except Unsupported as refusal:
                seen.append(refusal.reason)
        return schedule

    torch._dynamo.reset()
    patches = {inductor.HOOK: refused, "fx_graph_cache": False}
    inputs = [torch.empty(IMAGES, TOKENS, WIDTH) for _ in range(2)]
    for tensor in inputs:
        torch._dynamo.mark_dynamic(tensor, 1)
    offline.compile_for_gpu(shifts, inputs, config_patches=patches)
    assert Reason.dynamic_extent in seen and (WIDTH, "s") in seen


def test_a_block_that_is_a_group_leaves_no_parts_until_it_is_undone():
    """Check that a block that is a group leaves no parts until that is undone.

    The second stage copies then, and a kernel of rows that has it among its nodes stores the sums.
    """

    def check(node):
        (one,) = grouped_sums.grouped_sums(node)
        with contextlib.ExitStack() as undo:
            made = columns.column_sum(grouped_sums.add_stage(one, undo))
            assert columns.is_ended_by_block(made, TOKENS) and not columns.is_ended_by_block(made, TOKENS // 2)
            with contextlib.ExitStack() as back:
                columns.leave_no_parts(made, back)
                assert inductor.buffer_numel(made.buffer) == 0 and not inductor.node_sizes(node)[1]
            assert inductor.buffer_numel(made.buffer) == IMAGES * TOKENS * WIDTH

    look(shifts, check)
