"""Test bytes that are live in a schedule, counted by hand for a few matrix products."""

import pytest
import torch
from schedules import products, scheduled
from torch._inductor import config, utils

from bridge.inductor import memory


def two(x, y):
    """Compute two results of 16 KB, each of them read by a product that makes 512 bytes of it."""
    one, other = x @ y, (x + 1) @ y
    return one @ x, other @ x


def test_live_bytes_of_each_kernel():
    with scheduled(products, (32, 32)) as graph:
        schedule = graph.scheduler.nodes
        assert memory.live_bytes(schedule) == [(8192, 4096), (12288, 4096)]
        assert memory.peak_bytes(schedule) == 12288
        assert [memory.bytes_held(kernel) for kernel in schedule] == [8192, 12288]


def test_nothing_is_live_in_an_empty_schedule():
    assert memory.live_bytes([]) == []
    assert memory.peak_bytes([]) == memory.estimated_peak([]) == 0


def test_estimated_peak_is_of_the_order_that_inductor_will_choose():
    with config.patch(reorder_for_peak_memory=False), scheduled(two, (64, 2), (2, 64)) as graph:
        schedule = graph.scheduler.nodes
        assert memory.peak_bytes(schedule) > 2 * 16384
        own = memory.peak_bytes(schedule)
        assert memory.estimated_peak(schedule) == memory.estimated_peak(schedule, own) == own
        with config.patch(reorder_for_peak_memory=True):
            assert 16384 < memory.estimated_peak(schedule) < 2 * 16384


@pytest.mark.parametrize("above", [False, True])
def test_an_order_of_inductors_is_taken_back_where_it_needs_too_much(above):
    with config.patch(reorder_for_peak_memory=False), scheduled(two, (64, 2), (2, 64)) as graph:
        taken, most = graph.scheduler.nodes, memory.peak_bytes(graph.scheduler.nodes) - above
        with config.patch(reorder_for_peak_memory=True):
            better = memory.in_order_of_least_peak(taken)
            memory.keep_order_below(better, most)
            graph.scheduler.process_grouped_nodes()
        assert better != taken
        assert graph.scheduler.nodes == (better if above else taken)


def test_the_order_of_collectives_stays_inductors(monkeypatch):
    """Check that collectives keep Inductor's order, which is for overlap and comes after that for the least peak."""
    monkeypatch.setattr(utils, "is_collective", lambda node: True)
    with config.patch(reorder_for_peak_memory=False), scheduled(two, (64, 2), (2, 64)) as graph:
        taken = graph.scheduler.nodes
        with config.patch(reorder_for_peak_memory=True):
            memory.keep_order_below(memory.in_order_of_least_peak(taken), 0)
            graph.scheduler.process_grouped_nodes()
        assert graph.scheduler.nodes == taken


def test_sizes_are_inductors_own_after_its_order_was_looked_at():
    """Check that sizes are Inductor's own again after its order was looked at.

    Each part of a cat has memory of its own by Inductor's estimate, which decides what is kept for later.
    """

    def joined(x, y):
        return torch.cat((x @ y, x.exp()), -1).sin(), (x + 1) @ y

    with config.patch(max_pointwise_cat_inputs=0), scheduled(joined, (32, 32), (32, 32)) as graph:
        own = _sizes(graph.scheduler.nodes)
        other = graph.scheduler.nodes[::-1]
        memory.keep_order_below(other, 1 << 60)
        assert memory.peak_bytes(graph.scheduler.nodes) and _sizes(graph.scheduler.nodes) != own
        graph.scheduler.process_grouped_nodes()
        assert _sizes(graph.scheduler.nodes) == own


def _sizes(schedule):
    return [buffer.mpi_buffer.size_alloc for kernel in schedule for buffer in kernel.get_outputs()]


def test_an_order_of_other_kernels_is_left_as_it_is():
    with scheduled(two, (64, 2), (2, 64)) as graph:
        taken = graph.scheduler.nodes
        memory.keep_order_below(taken[:-1], 0)
        graph.scheduler.process_grouped_nodes()
        assert graph.scheduler.nodes == taken


def test_parts_of_a_cat_have_the_memory_of_the_whole():
    """Check that parts of a cat have the memory of the whole: 4096 bytes for x, 8192 for the cat."""

    def joined(x):
        return torch.cat((x @ x, x.exp()), -1).sin()

    with config.patch(max_pointwise_cat_inputs=0), scheduled(joined, (32, 32)) as graph:
        product, rest, whole, sine = memory.live_bytes(graph.scheduler.nodes)
        assert product == (4096 + 8192, 8192)
        assert rest == (4096 + 8192, 0)
        assert whole == (8192, 0)
        assert sine == (2 * 8192, 8192)


def test_an_input_that_is_read_in_pieces_is_no_smaller():
    """Check that an input that is read in parts is not smaller.

    A kernel read each half of a row, and the input had the size of the last half.
    """
    with scheduled(lambda x: x[:, :2] + x[:, 2:], (4, 4)) as graph:
        assert memory.live_bytes(graph.scheduler.nodes) == [(64 + 32, 32)]


def test_an_input_that_is_read_several_times_an_element_is_no_larger():
    """Check that an input that is read several times an element is not larger: 64 bytes, read by 256 iterations."""
    with scheduled(lambda x: x.repeat_interleave(16, -1) + 1, (4, 4)) as graph:
        assert memory.live_bytes(graph.scheduler.nodes) == [(64 + 1024, 1024)]
