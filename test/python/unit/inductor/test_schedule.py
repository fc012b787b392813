"""Tell what scheduler nodes read and write."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import sympy
import torch
from schedules import look_at_gpu_schedule
from torch._inductor.scheduler import FusedSchedulerNode
from torch.utils._sympy.functions import Identity

from bridge.inductor import schedule


def test_step_of_an_index_that_sympy_is_not_to_simplify():
    """Check the step of an index that Inductor hides from sympy in `Identity`, of which no size was known."""
    variable = sympy.Symbol("i0", integer=True)
    assert schedule.innermost_step(SimpleNamespace(var_names=(variable,), index=Identity(variable) * 3)) == 3


@pytest.mark.parametrize(("rows", "moved"), [(2, 2 * 7 * 4), (4096, 64 * 4)])
def test_what_a_kernel_searches_in_is_read(rows, moved):
    """Check that a search reads its boundaries, which have no subscript in Inductor: a report had none of the bytes."""
    seen: list[dict[str, int]] = []
    inputs = [torch.empty(rows), torch.empty(64)]
    look_at_gpu_schedule(torch.bucketize, inputs, lambda kernels: seen.extend(map(schedule.bytes_touched, kernels)))
    assert seen == [{"arg0_1": rows * 4, "arg1_1": moved, "buf0": rows * 8}]


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({}, None),
        ({"_multi_stream_nodes": False, "_mempool_nodes": False}, None),
        ({"_multi_stream_nodes": True}, "the graph runs on several streams"),
        ({"_mempool_nodes": True}, "the graph has memory of a pool of the user's"),
    ],
    ids=["older torch", "neither", "streams", "pool"],
)
def test_what_the_user_has_apart_stays_apart(attributes, said):
    kernel = SimpleNamespace(scheduler=SimpleNamespace(**attributes))
    assert schedule.apart_by_user([kernel]) == said
    assert schedule.apart_by_user([]) is None


def softmax(x):
    y = (x - x.amax(-1, keepdim=True)).exp()
    return y / y.sum(-1, keepdim=True)


def kinds(base: type) -> list[type]:
    """Return all classes that are derived from one."""
    derived: list[type] = base.__subclasses__()
    return derived + [kind for one in derived for kind in kinds(one)]


def test_fused_nodes_with_code_generators_of_their_own_are_no_loop_kernels():
    """Check that fused nodes with own code generators are no loop kernels: in stages, or of rows and columns."""
    others = [kind for kind in kinds(FusedSchedulerNode) if kind.__name__ != "OuterLoopFusedSchedulerNode"]
    assert "FusedMixOrderReductions" in {kind.__name__ for kind in others}
    assert not any(schedule.is_loop_kernel(object.__new__(kind)) for kind in others)


def transposed(x):
    return x - x.amax(-1, keepdim=True), (x - x.amax(-1, keepdim=True)).t().contiguous()


def stored_beside(kernel, rows):
    return sum(schedule.bytes_beside_stores(kernel, rows).values())


@pytest.mark.parametrize(("function", "apart"), [(transposed, 8192 * 4096 * 4), (softmax, 0)])
def test_only_what_is_stored_along_columns_has_other_bytes_beside_it(function, apart):
    """Check that only stores along columns move bytes beside theirs; columns of larger blocks fill sectors."""
    seen = []

    def look(kernels):
        seen.append([[stored_beside(kernel, rows) for rows in (1, 4, 8, 64)] for kernel in kernels])

    look_at_gpu_schedule(function, [torch.empty(8192, 4096)], look)
    assert seen == [[[apart * 7, apart, 0, 0]]]


def in_windows(x, width):
    """Store rows of windows of 8 lines, and all of them once more in planes of windows, line by line."""
    y = x.reshape(64, 8, width, 512)
    y = y - y.amax(-1, keepdim=True)
    return y, y.permute(0, 3, 1, 2).contiguous()


def in_windows_of_columns(x, width):
    """Store rows of windows, and their planes with columns of the windows' lines innermost."""
    y = x.reshape(64, 8, width, 512)
    y = y - y.amax(-1, keepdim=True)
    return y, y.permute(0, 3, 2, 1).contiguous()


@pytest.mark.parametrize(
    ("function", "width", "beside"),
    [
        (in_windows, 8, [7, 0, 0, 0]),  # the windows' lines follow each other
        (in_windows, 7, [7, 0, 0, 0]),  # 56 rows follow each other
        (in_windows_of_columns, 8, [7, 7, 7, 7]),  # the next line of a window is 8 rows later
    ],
)
def test_rows_share_a_sector_where_triton_knows_of_it(function, width, beside):
    """Check that rows share a sector where Triton knows of it.

    TinyViT's first layer norm took 83 us on an H100, not 41, and Swin-S3's of patches 361 us, not 84.
    """
    seen: list[list[int]] = []

    def look(kernels):
        seen.extend([stored_beside(kernel, rows) for rows in (1, 8, 16, 64)] for kernel in kernels)

    look_at_gpu_schedule(lambda x: function(x, width), [torch.empty(64 * 8 * width, 512)], look)
    size = 64 * 8 * width * 512 * 4
    assert seen == [[times * size for times in beside]]


def test_rows_that_are_neighbours_in_memory_share_what_is_around_their_elements():
    """Check that adjacent rows share the bytes around their elements: eight are moved for one, or for several rows."""
    seen = []

    def look(kernels):
        seen.append([[schedule.bytes_beside(kernel, rows) for rows in (1, 4, 8, 16)] for kernel in kernels])

    look_at_gpu_schedule(lambda x: x.t().amax(-1), [torch.empty(64, 65536)], look)
    size = 64 * 65536 * 4
    assert seen == [[[7 * size, size, 0, 0]]]
