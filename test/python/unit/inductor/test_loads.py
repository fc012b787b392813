"""Test how many bytes kernels load."""

from __future__ import annotations

import pytest
import torch
from schedules import look_at_gpu_schedule, scheduled

from bridge.inductor import loads


def of_row(x):
    return x.sum(-1) * 2 + 1


def softmax(x):
    y = (x - x.amax(-1, keepdim=True)).exp()
    return y / y.sum(-1, keepdim=True)


@pytest.mark.parametrize(("function", "passes"), [(of_row, 1), (softmax, 3)])
def test_a_loop_loads_its_rows_in_each_pass(function, passes):
    """Check that a loop loads its rows in each pass: x has 10,240 bytes, and the results of reductions fewer."""
    with scheduled(function, (10, 256)) as graph:
        kernels = graph.scheduler.nodes
        loaded = [loads.bytes_loaded_in_passes(kernel) for kernel in kernels]
    assert (len(loaded), sum(loaded) // 10240) == (1, passes)


@pytest.mark.parametrize(("function", "sizes"), [(of_row, []), (softmax, [10240])])
def test_a_loop_reads_back_what_it_makes_of_a_row(function, sizes):
    """Check that a loop reads back what it makes of a row only where a later pass needs it.

    The result of a reduction is a number for each row.
    """
    with scheduled(function, (10, 256)) as graph:
        (kernel,) = graph.scheduler.nodes
        read = loads.bytes_read_back(kernel)
    assert sorted(size for size in read.values() if size > 40) == sizes


def two_sums(x):
    return x.tanh().sum(-1), x.exp().amax(-1)


@pytest.mark.parametrize(("function", "again"), [(of_row, False), (two_sums, False), (softmax, True)])
def test_a_buffer_is_loaded_again_in_another_pass(function, again):
    """Check that a buffer is loaded again in another pass, and once for two reductions of one pass.

    What a reduction gives for each row is loaded after it, as a number.
    """
    with scheduled(function, (10, 256)) as graph:
        found = set().union(*map(loads.buffers_loaded_again, graph.scheduler.nodes))
        large = {name for name in found if loads.elements_of_buffer(name) > 10}
    assert bool(large) == again


def of_few(x, mask):
    """Mask with one mask for all batches: a flat index divides, and its 40 bytes seemed to be 10,240."""
    return torch.where(mask, x, 0.0).sum((0, 2, 3))


def test_no_load_is_more_than_its_buffer():
    seen: list[int] = []
    inputs = [torch.empty(2, 16, 1024, 1024), torch.empty(1024, 1024, dtype=torch.bool)]
    look_at_gpu_schedule(of_few, inputs, lambda kernels: seen.extend(map(loads.bytes_loaded, kernels)))
    assert max(seen) == (2 * 16 * 4 + 1) << 20
