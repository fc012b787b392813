"""Bytes that are live in a schedule, counted by hand for a few matrix products."""

import torch
from schedules import products, scheduled
from torch._inductor import config

from bridge.inductor import memory


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
    def two(x, y):
        """Two results of 16 KB, each of them read by a product that makes 512 bytes of it."""
        one, other = x @ y, (x + 1) @ y
        return one @ x, other @ x

    with config.patch(reorder_for_peak_memory=False), scheduled(two, (64, 2), (2, 64)) as graph:
        schedule = graph.scheduler.nodes
        assert memory.peak_bytes(schedule) > 2 * 16384
        assert memory.estimated_peak(schedule) == memory.peak_bytes(schedule)
        with config.patch(reorder_for_peak_memory=True):
            assert 16384 < memory.estimated_peak(schedule) < 2 * 16384


def test_parts_of_a_cat_have_the_memory_of_the_whole():
    """4096 bytes for x, 8192 for the cat from its first part on; each part has none of its own."""

    def joined(x):
        return torch.cat((x @ x, x.exp()), -1).sin()

    with config.patch(max_pointwise_cat_inputs=0), scheduled(joined, (32, 32)) as graph:
        product, rest, whole, sine = memory.live_bytes(graph.scheduler.nodes)
        assert product == (4096 + 8192, 8192)
        assert rest == (4096 + 8192, 0)
        assert whole == (8192, 0)
        assert sine == (2 * 8192, 8192)


def test_an_input_that_is_read_several_times_an_element_is_no_larger():
    """x has 64 bytes, and a loop of 256 iterations reads it."""
    with scheduled(lambda x: x.repeat_interleave(16, -1) + 1, (4, 4)) as graph:
        assert memory.live_bytes(graph.scheduler.nodes) == [(64 + 1024, 1024)]
