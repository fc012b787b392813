"""Test the loops of scheduler nodes: what replacing them changes, and that all of it is undone."""

import contextlib
from types import SimpleNamespace

import sympy
import torch
from emitted import run_emitted
from schedules import look_at_schedule
from torch._inductor import config

from bridge import inductor
from bridge.inductor.loops import made_once


def _users(node):
    """Return the names of all users of all buffers, in order."""
    scheduler = node.scheduler
    return {name: [user.get_name() for user in buffer.users] for name, buffer in scheduler.name_to_buf.items()}


def _loops(node):
    number = getattr(node, "_loop_state_gen", None)  # from torch 2.14 on: what was found out is kept by it
    return inductor.node_body(node), inductor.node_sizes(node), node.group, node.read_writes, number


def test_loops_that_are_taken_back_leave_no_users():
    """Check that loops that are taken back leave no users of buffers.

    A kernel would store a value for a user in another kernel that does not read it any more.
    """
    found = []

    def hook(schedule):
        nodes = [node for kernel in schedule for node in inductor.loop_nodes(kernel)]
        reader = next(node for node in nodes if "buf0" in inductor.buffers_read(node))
        other = next(node for node in nodes if node is not reader and node.get_name() != "op0")
        before = _users(other), _loops(other)
        numbers = [before[1][-1]]
        for _ in range(2):
            with contextlib.ExitStack() as undo:
                inductor.set_loop_body(other, inductor.node_body(reader), undo)
                numbers.append(_loops(other)[-1])
        assert len(set(numbers)) == (3 if hasattr(other, "_loop_state_gen") else 1)
        with contextlib.ExitStack() as undo:
            inductor.set_loop_body(other, inductor.node_body(reader), undo)
            assert _users(other)["buf0"] == [*before[0]["buf0"], other.get_name()]
        found.append((_users(other), _loops(other)) == before)
        return schedule

    def f(x, y):
        return x.sin().sum(0) + 1, y.t().contiguous()

    with config.patch({inductor.HOOK: hook, "fx_graph_cache": False}):
        torch.compile(f)(torch.randn(8, 8), torch.randn(4, 16))
    assert found == [True]


def test_iterations_that_are_sums_were_others_than_those_of_the_same_product():
    """Check that the number of iterations is a product: Inductor compares it with rows times length, term by term."""
    found = []

    def hook(schedule):
        reduction = next(n for kernel in schedule for n in inductor.loop_nodes(kernel) if n.is_reduction())
        with contextlib.ExitStack() as undo:
            inductor.set_loop_body(reduction, inductor.node_body(reduction), undo)
            _, (rows, length) = reduction.group
            found.append((isinstance(rows, sympy.Mul), rows * length == sympy.factor(sympy.expand(rows * length))))
        return schedule

    def f(x):
        return x[:, :-1].flatten(0, 1).sin().sum(-1)

    run_emitted(f, [torch.randn(4, 8, 16)], dynamic=True, **{inductor.HOOK: hook, "fx_graph_cache": False})
    assert found == [(True, True)]


def test_loops_that_read_a_buffer_no_more_are_no_users_of_it():
    """Check that a node whose new loops do not read a buffer is no user of it.

    Inductor's C++ asks the loops of each user where they read a buffer, and has none where they do not.
    """
    found = []

    def hook(schedule):
        nodes = [node for kernel in schedule for node in inductor.loop_nodes(kernel)]
        reader = next(node for node in nodes if "buf0" in inductor.buffers_read(node))
        maker = next(node for node in nodes if node.get_name() == "op0")
        before = _users(reader)
        with contextlib.ExitStack() as undo:
            inductor.set_loop_body(reader, inductor.node_body(maker), undo)
            found.append(reader.get_name() in _users(reader)["buf0"])
        found.append(_users(reader) == before and reader.get_name() in before["buf0"])
        return schedule

    with config.patch({inductor.HOOK: hook, "fx_graph_cache": False}):
        torch.compile(lambda x: x.sin().sum(0) + 1)(torch.randn(8, 8))
    assert found == [False, True]


def test_what_a_node_may_overwrite_is_kept_until_that_is_undone():
    found = []

    def hook(schedule):
        nodes = [node for kernel in schedule for node in inductor.loop_nodes(kernel)]
        reader = next(node for node in nodes if "buf0" in inductor.buffers_read(node))
        (user,) = [user for user in reader.scheduler.name_to_buf["buf0"].users if user.node is reader]
        found.append(user.can_inplace)
        with contextlib.ExitStack() as undo:
            inductor.keep_inputs(reader, undo)
            found.append(user.can_inplace)
        found.append(user.can_inplace)
        return schedule

    with config.patch({inductor.HOOK: hook, "fx_graph_cache": False}):
        torch.compile(lambda x: x.sin().sum(0) + 1)(torch.randn(8, 8))
    assert found == [True, False, True]


def test_a_piece_is_kept_where_its_kernel_reads_the_whole_by_its_own_name():
    """Check that a part of a buffer is kept where its kernel reads the whole by the whole's name.

    One program would write in the part's place what others, which run later, have to read of the whole.
    """
    found = []

    def look(schedule):
        windows, reader = [node for kernel in schedule for node in inductor.loop_nodes(kernel)][-2:]
        (user,) = [user for user in reader.scheduler.name_to_buf["buf0"].users if user.node is reader]
        for kernel in ([reader], [windows, reader]):
            with contextlib.ExitStack() as undo:
                inductor.keep_pieces(kernel, undo)
                found.append(user.can_inplace)
        found.append(user.can_inplace)

    def piece_and_whole(x, y):
        piece = x + x @ y
        means = torch.cat([piece, x]).unfold(0, 5, 1).mean(-1)
        return torch.tanh(piece - means[:8]), means

    look_at_schedule(piece_and_whole, [torch.randn(8, 8), torch.randn(8, 8)], look)
    assert found == [True, False, True]


def test_what_is_made_of_loops_is_made_once_for_each_key():
    made: list = []

    def make():
        made.append(len(made))
        return made[-1]

    loops, others = SimpleNamespace(), SimpleNamespace()
    assert [made_once(loops, key, make) for key in ("tile", "tile", "parts", "tile")] == [0, 0, 1, 0]
    assert [made_once(others, "tile", make), made_once(loops, "tile", make)] == [2, 0]
