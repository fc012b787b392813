"""Test the layouts of buffers, and which have none."""

from __future__ import annotations

import pytest
import sympy
import torch
from schedules import look_at_gpu_schedule, scheduled

from bridge.inductor import inspection, layouts, schedule


def test_what_a_kernel_writes_in_place_is_as_large_as_its_storage():
    """Check that a buffer written in place is as large as its storage.

    Of a diagonal Inductor has the sizes of the view, and the strides of the whole: a step over columns failed.
    """

    def diagonal(x, y):
        return torch.diagonal_scatter(x * 2, y)

    with scheduled(diagonal, (8, 160), (8,)) as graph:
        assert [layouts.buffer_numel(name) for name in graph.name_to_buffer] == [1280, 1280]


@torch.library.custom_op("bridge_schedule::double", mutates_args=("x",))
def double(x: torch.Tensor) -> None:
    x.mul_(2)


def test_what_a_call_has_overwritten_is_as_large_as_it_was():
    """Check that what a call has overwritten is as large as it was.

    Its new contents are a buffer of their own, without a layout: asking for their size was an error.
    """

    def overwritten(x):
        x = x + 1
        double(x)
        return x * 3

    def look(kernels):
        read = {name for kernel in kernels for name in schedule.buffers_read(kernel)}
        seen.extend(layouts.buffer_numel(name) for name in sorted(read - {"buf0"}))
        shapes.extend(map(inspection.buffer_shape, read))

    seen: list[sympy.Expr] = []
    shapes: list[list[str]] = []
    look_at_gpu_schedule(overwritten, [torch.empty(8, 160)], look)
    assert len(seen) > 1 and set(seen) == {1280}
    assert all(shape == ["8", "160"] for shape in shapes)


def _prod_by_call(x, rows):
    return torch.scatter_reduce(x + 1, 0, rows, x, "prod") * 3


def _added_in_order(x, rows):
    return torch.index_put(x + 1, (rows[:, 0],), x, accumulate=True) * 3


@pytest.mark.parametrize("function", [_prod_by_call, _added_in_order])
def test_what_a_call_of_torch_has_overwritten_is_as_large_as_it_was(function):
    """Check that what a call of torch has overwritten is as large as it was.

    Such a call stands for its new contents itself, without a layout: sums of them were an error.
    """

    def look(kernels):
        read = {name for kernel in kernels for name in schedule.buffers_read(kernel)}
        seen.extend(layouts.buffer_numel(name) for name in sorted(read) if name not in ("arg0_1", "arg1_1"))

    seen: list[sympy.Expr] = []
    deterministic = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        look_at_gpu_schedule(function, [torch.empty(8, 160), torch.zeros(8, 160, dtype=torch.long)], look)
    finally:
        torch.use_deterministic_algorithms(deterministic)
    assert seen and set(seen) == {1280}


def _found_by_one_call(x, ids):
    found, inverse = ids.unique(return_inverse=True)
    return torch.ones(found.shape[0], 16) * 2, x[inverse] * 2


def _read_off_a_tensor(x, ids):
    rows = ids.sum().item()
    torch._check(0 < rows)
    torch._check(rows < 8)
    return x[:rows].sum(0), x[rows:].sum(0)


@pytest.mark.parametrize("function", [_found_by_one_call, _read_off_a_tensor])
def test_a_kernel_reads_no_size_that_it_waits_for(function):
    """Check that a kernel does not read a size that it waits for.

    A size that a call finds has no layout: a sum over so many rows was an error.
    """

    def look(kernels):
        seen.extend(schedule.buffers_read(kernel) for kernel in kernels if schedule.is_loop_kernel(kernel))
        for name in set().union(*seen):
            layouts.buffer_numel(name)

    seen: list[set[str]] = []
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        look_at_gpu_schedule(function, [torch.ones(8, 16), torch.arange(8)], look)
    assert any(seen)
