"""Test results that Inductor writes over an input, as the emitted code has them."""

import re

import pytest
import torch
from schedules import scheduled
from torch._inductor import config

from bridge import inductor, offline
from bridge.inductor.in_place import bytes_in_place
from bridge.inductor.memory import live_bytes
from bridge.offline.capture import compiling_for_gpu

X = (32, 32)
SIZE = 32 * 32 * 4


def overwritten(function, *shapes) -> list[int]:
    with scheduled(function, *shapes) as graph:
        return bytes_in_place(graph.scheduler.nodes)


def test_the_last_reader_of_a_product_overwrites_it():
    assert overwritten(lambda x: (x @ x).exp(), X) == [0, SIZE]


def test_an_input_of_the_graph_is_kept():
    assert overwritten(lambda x: x.exp(), X) == [0]


def test_what_is_read_later_or_returned_is_kept():
    def read_later(x):
        y = x @ x
        return y.exp() @ x, y @ y

    assert sum(overwritten(read_later, X)) == 0
    assert sum(overwritten(lambda x: ((y := x @ x), y.exp()), X)) == 0


def test_a_node_that_reads_other_elements_too_overwrites_nothing():
    assert sum(overwritten(lambda x: (y := x @ x).exp() + y.permute(1, 0), X)) == 0
    assert sum(overwritten(lambda x: (x @ x).sum(-1), X)) == 0


def test_what_a_kernel_reads_at_two_indices_is_kept():
    """Check that what a kernel reads at two indices is not overwritten.

    A launch was shared for memory that it did not spare: OLMo 2 reads a head and its rotated half.
    """

    def rows_by_columns(x):
        return (y := x @ x) * y.permute(1, 0).exp().sum(-1, keepdim=True)

    ((schedule, overwriting, code),) = of_graphs(rows_by_columns, torch.empty(X))
    assert [len(kernel.get_nodes()) for kernel in schedule] == [1, 2]
    assert sum(overwriting) == 0
    assert "(in_out_ptr0" not in code


def test_an_input_is_overwritten_by_one_of_two_results():
    def two(x):
        y = x @ x
        return y.exp(), y.sin()

    assert sum(overwritten(two, X)) == 0  # each is one reader of two, and neither knows which is the last


def test_of_two_inputs_one_is_overwritten():
    assert overwritten(lambda x, y: (x @ x) * (x @ y), X, X) == [0, 0, SIZE]


def of_graphs(function, *inputs):
    """Return for each graph of a function, for a GPU, its schedule with the bytes, and its code."""
    found = []

    def look(schedule):
        live_bytes(schedule)  # plans the memory
        found.append((schedule, bytes_in_place(schedule)))
        return schedule

    torch._dynamo.reset()
    with config.patch({inductor.HOOK: look, "fx_graph_cache": False}), compiling_for_gpu() as codes:
        torch.compile(function)(*inputs)
    return [(*pair, code) for pair, code in zip(found, codes, strict=True)]


def test_what_one_kernel_makes_and_reads_has_no_memory_to_be_overwritten():
    """Check that what one kernel makes and reads has no memory to overwrite.

    The sums so far are in registers; a report had a peak below the size of the result.
    """
    ((schedule, overwriting, _),) = of_graphs(lambda x: torch.cumsum(x, -1) + 1, torch.empty(X))
    assert [len(kernel.get_nodes()) for kernel in schedule] == [2]
    assert overwriting == [0]


def test_nothing_is_overwritten_where_inductor_is_told_so():
    with config.patch(inplace_buffers=False):
        assert overwritten(lambda x: (x @ x).exp(), X) == [0, 0]


def test_a_value_that_the_forward_saved_is_overwritten_by_the_backward():
    """Check that the backward overwrites a value that the forward saved, and not the gradient of the result."""
    inputs = [torch.zeros(X, requires_grad=True) for _ in range(2)]
    graphs = of_graphs(lambda x, y: torch.sigmoid(x @ y).sin(), *inputs)
    assert [overwriting for _, overwriting, _ in graphs] == [[0, 0], [SIZE, 0, 0]]
    assert "(in_out_ptr0" in graphs[1][-1]


FUNCTIONS = {
    "product": lambda x: (x @ x).exp(),
    "kept": lambda x: ((y := x @ x), y.exp()),
    "other elements": lambda x: (y := x @ x).exp() + y.permute(1, 0),
    "two inputs": lambda x: (x @ x) * (x @ (x + 1)),
    "cat": lambda x: torch.cat([x @ x, x.exp()], -1).sin() @ torch.cat([x, x]),
    "norm": lambda x: (y := x @ x) * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6),
    "chain": lambda x: ((x @ x).relu() @ x).sigmoid() @ x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_what_the_emitted_kernels_overwrite(name):
    with scheduled(FUNCTIONS[name], X) as graph:
        expected = sum(amount > 0 for amount in bytes_in_place(graph.scheduler.nodes))
    result = offline.compile_for_gpu(FUNCTIONS[name], (torch.empty(X),))
    sources = {kernel.name: kernel.source for kernel in result.kernels}
    assert sum(bool(re.search(r"def triton_\w+\(in_out_ptr0", sources[one])) for one in result.launches) == expected
