"""Test sets of independent kernels that have a reason to share a launch."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from bridge import inductor
from bridge.horizontal import candidates
from bridge.horizontal.cost import FRESH_BYTES
from bridge.reasons import Reason

CPU, OTHER = torch.device("cpu"), torch.device("meta")

pytestmark = pytest.mark.usefixtures("only_tensors")


def kernel(name, reads=(), rows=8, reduced=(), awaits=(), device=CPU, mutations=(), mode=None):
    """Return a kernel as the sets see it: one node, with the buffer that has its name."""
    output = SimpleNamespace(get_mutations=lambda: mutations, get_aliases=list)
    one = SimpleNamespace(_sizes=((rows,), reduced), read_writes=SimpleNamespace())
    one.read_writes.reads = [SimpleNamespace(name=buffer) for buffer in reads]
    one.unmet_dependencies = [SimpleNamespace(name=buffer) for buffer in awaits]
    one.node = SimpleNamespace(get_origins=list)
    one._body = SimpleNamespace(memory_usage={"store": [SimpleNamespace(mode=mode)]})
    one.get_name = lambda: name
    one.get_buffer_names = one.get_operation_names = lambda: {name}
    one.get_nodes = lambda: [one]
    one.get_outputs = lambda: [output]
    one.get_device = lambda: device
    return one


@pytest.fixture(autouse=True)
def stand_ins_are_loops(monkeypatch):
    """Answer in Inductor's place: all kernels are loops and move 1 KB, and one named `large` moves too much."""
    monkeypatch.setattr(inductor, "is_loop_kernel", lambda kernel: True)
    size = {"large": FRESH_BYTES + 1}
    monkeypatch.setattr(inductor, "bytes_touched", lambda kernel: {"x": size.get(kernel.get_name(), 1 << 10)})


def test_sets_of_a_group_are_independent_and_related():
    schedule = [
        kernel("a", ["x"], rows=1),
        kernel("b", ["x"], rows=2, awaits=["a"]),
        kernel("c", ["x"], rows=3),
        kernel("d", ["y"], rows=3),
        kernel("outside", ["x"]),
        kernel("alone", ["z"], rows=7),
    ]
    names = {"a", "b", "c", "d", "alone"}
    assert candidates.sets_of_group(schedule, names) == [[0, 2, 3]]
    assert candidates.sets_of_group(schedule, {"a"}) == []


def test_equal_reductions_are_near_each_other():
    between = [kernel(f"k{n}", rows=n + 100) for n in range(candidates.MAX_DISTANCE)]
    one, other = kernel("one", reduced=(4,)), kernel("other", reduced=(4,))
    last = candidates.MAX_DISTANCE
    assert candidates.sets_of_equal_reductions([one, *between[1:], other]) == [[0, last]]
    assert candidates.sets_of_equal_reductions([one, *between, other]) == []


@pytest.mark.parametrize("other", [{"rows": 9}, {"reduced": (5,)}, {"reduced": ()}, {"device": OTHER}])
def test_other_rows_extents_and_devices_make_reductions_unequal(other):
    one = kernel("one", reduced=(4,))
    assert candidates.have_equal_reductions(one, kernel("same", reduced=(4,)))
    assert not candidates.have_equal_reductions(one, kernel("other", **{"reduced": (4,), **other}))


def test_small_kernels_may_overwrite_and_large_ones_are_left_out():
    schedule = [
        kernel("a"),
        kernel("large"),
        kernel("b", mutations=["x"]),
        kernel("c", mutations=["x"], mode="atomic_add"),
    ]
    assert candidates.sets_of_small_kernels(schedule) == [[0, 2]]
    found = [candidates.find_launch_obstacle(one) for one in schedule]
    assert found == [None, None, None, Reason.atomics]


def test_kernels_that_feed_one_kernel_have_a_common_reader(monkeypatch):
    fed = {"query": {"attention"}, "mask": {"attention"}, "other": {"matmul"}}
    monkeypatch.setattr(inductor, "readers", lambda kernel: fed[kernel.get_name()])
    schedule = [kernel("query"), kernel("other"), kernel("mask")]
    assert candidates.sets_with_common_reader(schedule) == [[0, 2]]


def test_equal_loops_are_of_as_many_elements_reduced_from_as_many():
    one, other, longer = (kernel(name, reduced=(4,)) for name in ("one", "other", "longer"))
    for member, group in ((one, (8, 4)), (other, (8, 4)), (longer, (8, 5))):
        member.group = CPU, group
    assert candidates.sets_of_equal_loops([one, longer, other], lambda _: True) == [[0, 2]]
    assert candidates.sets_of_equal_loops([one, longer, other], lambda member: member is not other) == []
