"""Test which kernels of a schedule wait for which, and whether merged ones still have an order."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bridge import inductor
from bridge.horizontal.independence import find_obstacle, positions_of, reachable, span, stay_in_order
from bridge.inductor import inspection
from bridge.reasons import Reason


def kernel(name, *awaited):
    dependencies = [SimpleNamespace(name=buffer) for buffer in awaited]
    return SimpleNamespace(unmet_dependencies=dependencies, get_buffer_names=lambda: {name})


#: a -> b -> d, and c by itself.
SCHEDULE = [kernel("a"), kernel("b", "a"), kernel("c"), kernel("d", "b")]


def test_kernels_are_found_by_identity_and_in_order():
    twin = kernel("a")
    assert positions_of(SCHEDULE, [SCHEDULE[3], twin, SCHEDULE[1]]) == [1, 3]
    assert span([3, 1]) == range(1, 4)
    assert list(span([])) == []


def test_a_kernel_waits_for_others_directly_or_not():
    assert reachable(SCHEDULE, [0, 3]) == {0: 0, 1: 0b1, 2: 0, 3: 0b11}
    assert reachable(SCHEDULE, [3, 1]) == {1: 0, 2: 0, 3: 0b10}


@pytest.mark.parametrize(
    ("merged", "ordered"), [([{0, 2}], True), ([{0, 1}], True), ([{0, 3}], False), ([{0, 2}, {1, 3}], True)]
)
def test_what_leads_from_a_kernel_to_one_merged_with_it_leaves_no_order(merged, ordered):
    assert stay_in_order(SCHEDULE, merged) is ordered


def test_two_merged_sets_that_wait_for_each_other_have_no_order():
    crossed = [kernel("a"), kernel("b"), kernel("c", "a"), kernel("d", "b")]
    assert stay_in_order(crossed, [{0, 3}])
    assert stay_in_order(crossed, [{1, 2}])
    assert not stay_in_order(crossed, [{0, 3}, {1, 2}])


@pytest.mark.parametrize(
    ("is_loop", "is_call", "is_left", "mutations", "adds", "expected"),
    [
        (False, True, False, [], False, Reason.extern_kernel),
        (False, False, False, [], False, Reason.node_not_loops),
        (True, False, True, [], False, Reason.reduction_not_splittable),
        (True, False, False, ["buf0"], True, Reason.atomics),
        (True, False, False, ["buf0"], False, Reason.mutation),
        (True, False, False, [], False, None),
    ],
)
def test_calls_and_kernels_that_overwrite_take_no_part(
    monkeypatch, is_loop, is_call, is_left, mutations, adds, expected
):
    monkeypatch.setattr(inductor, "adds_atomically", lambda kernel: adds)
    monkeypatch.setattr(inductor, "has_left_sums", lambda kernel: is_left)
    monkeypatch.setattr(inductor, "is_loop_kernel", lambda kernel: is_loop)
    monkeypatch.setattr(inspection, "is_library_call", lambda kernel: is_call)
    output = SimpleNamespace(get_mutations=lambda: mutations, get_aliases=list)
    assert find_obstacle(SimpleNamespace(get_outputs=lambda: [output])) is expected
