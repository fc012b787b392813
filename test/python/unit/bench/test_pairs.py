"""Test which kernels took the place of which, and what a step gained."""

import pytest
from pairs import Pair, Timed, medians, pairs, table, timed

from bridge.bench.gpu_measurements import Launch
from bridge.diagnostics.recording import Kernel


def kernel(name: str, *operations: str, us: float = 1.0) -> Timed:
    return Timed(name, frozenset((0, one) for one in operations), name, us)


def names(found) -> list[tuple[list[str], list[str]]]:
    return [([one[0] for one in pair.before], [one[0] for one in pair.after]) for pair in found]


def test_a_launch_has_the_operations_of_the_kernel_of_its_name_in_the_order_of_both():
    defined = [Kernel("triton_a", ["op0"], "triton_a: x"), Kernel("triton_a", ["op1_op2"], "triton_a: x", 1)]
    one, two = timed(defined, [("triton_a", 1.0), ("cutlass", 9.0), ("triton_a", 2.0)])
    assert (one.operations, one.us, one.source) == (frozenset({(0, "op0")}), 1.0, "kernel: x")
    assert (two.operations, two.us) == (frozenset({(1, "op1"), (1, "op2")}), 2.0)


def test_what_pytorch_adds_up_is_a_part_of_the_kernel_before():
    (one,) = timed([Kernel("triton_a", ["op0"], "")], [("triton_a", 1.0), ("at::native::reduce_kernel<512>", 2.0)])
    assert one.us == 3.0


def test_a_launch_without_a_kernel_is_an_error():
    with pytest.raises(ValueError, match="triton_a was launched more often"):
        timed([], [("triton_a", 1.0)])


def test_kernels_with_operations_in_common_are_a_pair():
    before = [kernel("a", "op0"), kernel("b", "op1"), kernel("c", "op2")]
    after = [kernel("ab", "op0", "op1"), kernel("c", "op2")]
    assert names(pairs("m", "bands", before, after)) == [(["a", "b"], ["ab"])]


def test_kernels_are_a_pair_by_what_they_share_with_a_third():
    before = [kernel("a", "op0"), kernel("bc", "op1", "op2"), kernel("d", "op3")]
    after = [kernel("ab", "op0", "op1"), kernel("cd", "op2", "op3")]
    assert names(pairs("m", "bands", before, after)) == [(["a", "bc", "d"], ["ab", "cd"])]


def test_a_sum_that_no_kernel_had_belongs_to_the_kernel_whose_rows_it_is_of():
    before, after = [kernel("rows", "op0", "op1")], [kernel("rows of Bridge", "op0", "op1"), kernel("adds up", "op2")]
    assert names(pairs("m", "columns", before, after)) == [(["rows"], ["rows of Bridge"]), ([], ["adds up"])]
    linked = pairs("m", "columns", before, after, [{(0, "op1"), (0, "op2")}, {(0, "op8")}])
    assert names(linked) == [(["rows"], ["rows of Bridge", "adds up"])]


def test_a_round_of_which_launches_are_lost_does_not_count():
    rounds = [[Launch("a", 1.0), Launch("b", 5.0)], [Launch("b", 50.0)], [Launch("a", 3.0), Launch("b", 7.0)]]
    assert medians(rounds) == [("a", 2.0), ("b", 6.0)]


def test_the_table_names_what_lost_and_what_was_missed():
    def pair(step: str, before: float, after: float) -> Pair:
        return Pair("m", step, [("x", before, "")], [(f"{step} {after:.0f}", after, "")])

    found = [pair("bands", 100.0, 60.0), pair("bands", 100.0, 103.0), pair("bands", 100.0, 101.0)]
    lines = list(table([*found, pair("forced", 100.0, 90.0), pair("forced", 100.0, 900.0)]))
    assert "| bands | 3 | 40 | 1 | 4 | -3.0 us, m |" in lines[1:]
    assert [line.split("\n")[0] for line in lines if line.startswith("m,")] == [
        "m, forced: +10.0 us",
        "m, bands: -3.0 us",
    ]
