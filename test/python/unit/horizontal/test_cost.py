"""Test which kernels gain by a common launch."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from torch._inductor.loop_body import MemoryUsageType

from bridge import inductor
from bridge.horizontal.cost import (
    LARGE_BYTES,
    MAX_BUFFERS,
    MIXED_BYTES,
    TRIED_BYTES,
    Part,
    check_buffers,
    choose_worthwhile,
    describe_launch,
    measure,
    share_input,
)
from bridge.reasons import Reason, Unsupported


def kernel(name, *reads, sizes=((8,), ())):
    one = SimpleNamespace(get_name=lambda: name, get_operation_names=lambda: {name}, _sizes=sizes)
    one.read_writes = SimpleNamespace(reads=[SimpleNamespace(name=buffer) for buffer in reads])
    one.get_nodes = lambda: [one]
    one._body = SimpleNamespace(memory_usage={MemoryUsageType.LOAD_SEED: [SimpleNamespace(buffer_name="seeds")]})
    return one


pytestmark = pytest.mark.usefixtures("only_tensors")


@pytest.fixture(autouse=True)
def along_rows(monkeypatch):
    """Answer for all kernels that they do not reduce across rows, as they have no loops here."""
    monkeypatch.setattr(inductor, "reduces_across_rows", lambda kernel: False)


def part(name, size, *reads, reduces=False, rows=1, row=1, symbolic=False):
    """Return a kernel that moves bytes, a third of them of each buffer that it reads, and that of one element."""
    moved = {read: 4 if read == "scalar" else size // 3 for read in reads}
    return Part(kernel(name, *reads), {**moved, name: size - sum(moved.values())}, reduces, rows, row, symbolic)


def names(parts):
    return [p.name for p in parts]


def test_large_kernels_share_a_launch_where_they_share_an_input():
    alike = [part("a", LARGE_BYTES + 1, "x"), part("b", LARGE_BYTES + 1, "x"), part("c", LARGE_BYTES + 1, "y")]
    assert names(choose_worthwhile(alike)) == ["a", "b"]
    assert share_input(alike[0].kernel, alike[1].kernel)
    assert not share_input(alike[0].kernel, alike[2].kernel)
    assert not share_input(kernel("a", "x", "seeds"), kernel("b", "y", "seeds"))


def test_large_kernels_that_share_a_scalar_stay_alone():
    """Check that large kernels that share a scalar stay alone.

    EDM's losses of 300 MB read its sigma of a batch, and took 4 percent longer in one launch.
    """
    with pytest.raises(Unsupported) as refusal:
        choose_worthwhile([part(name, LARGE_BYTES + 1, name * 2, "scalar", reduces=True) for name in "ab"])
    assert refusal.value.reason is Reason.not_profitable


def test_a_long_reduction_of_symbolic_rows_stays_alone():
    """Check that a long reduction of symbolic rows stays alone.

    Norms of heads, whose number is a symbol, beside a copy of the values: 405 us, and 230 apart.
    """
    parts = [part("norms", TRIED_BYTES + 1, reduces=True, symbolic=True), part("copy", MIXED_BYTES)]
    with pytest.raises(Unsupported) as refusal:
        choose_worthwhile(parts)
    assert refusal.value.reason is Reason.not_profitable
    parts = [part("norms", TRIED_BYTES, reduces=True, symbolic=True), part("copy", MIXED_BYTES)]
    assert names(choose_worthwhile(parts)) == ["norms", "copy"]


def test_beside_a_reduction_a_kernel_without_one_is_small():
    parts = [
        part("norm", LARGE_BYTES, reduces=True),
        part("small", MIXED_BYTES),
        part("large", MIXED_BYTES + 1),
    ]
    assert names(choose_worthwhile(parts)) == ["norm", "small"]
    assert names(choose_worthwhile(parts[1:])) == ["small", "large"]


def test_a_reduction_over_memory_that_is_far_apart_stays_alone(monkeypatch):
    monkeypatch.setattr(inductor, "bytes_beside_rows", lambda kernel, rows: int(kernel.get_name() == "columns"))
    parts = [part("columns", 1 << 20, reduces=True), part("rows", 2 << 20, reduces=True)]
    with pytest.raises(Unsupported, match=r"columns \(reduces\) 1\.0 MB, rows \(reduces\) 2\.0 MB") as refusal:
        choose_worthwhile(parts)
    assert refusal.value.reason is Reason.not_profitable


def test_a_reduction_that_steps_over_other_rows_stays_alone(monkeypatch):
    """Check that a reduction that steps over other rows stays alone.

    So it was with ConViT's softmax over positions of nine heads each, beside one over contiguous rows.
    """
    monkeypatch.setattr(inductor, "bytes_beside_rows", lambda kernel, rows: 0)
    monkeypatch.setattr(inductor, "reduces_across_rows", lambda kernel: kernel.get_name() == "heads")
    parts = [part(name, 1 << 20, reduces=True) for name in ("heads", "rows", "others")]
    assert names(choose_worthwhile(parts)) == ["rows", "others"]
    with pytest.raises(Unsupported, match="a launch saved is less"):
        choose_worthwhile(parts[:2])


def test_many_short_rows_do_not_get_the_warps_of_a_long_one():
    """Check that many short rows do not get the warps of a long one.

    Sums of 131,072 rows of 1024 beside 512 rows of 65,536 took 183 us longer in the one launch.
    """
    long = part("long", 80 << 20, reduces=True, rows=512, row=65536)
    short = part("short", 128 << 20, reduces=True, rows=131072, row=1024)
    assert (long.warps, short.warps) == (16, 4)
    with pytest.raises(Unsupported, match="less than is lost"):
        choose_worthwhile([long, short])
    few = part("few", 2 << 20, reduces=True, rows=2048, row=1024)
    alike = part("alike", 128 << 20, reduces=True, rows=131072, row=1024)
    assert names(choose_worthwhile([long, few])) == ["long", "few"]
    assert names(choose_worthwhile([short, alike])) == ["short", "alike"]


def test_norms_of_heads_share_a_launch_without_the_norm_of_a_row():
    """Check that norms of heads share a launch without the norm of a row.

    In the warps of a row of 3072, those of the heads of q and k took 26 us longer than their 39.
    """
    rows = part("rows", 96 << 20, "x", reduces=True, rows=4096, row=3072)
    heads = [part(name, 48 << 20, "x", reduces=True, rows=98304, row=128) for name in ("q", "k")]
    with pytest.raises(Unsupported, match="less than is lost"):
        choose_worthwhile([rows, *heads])
    assert names(choose_worthwhile(heads)) == ["q", "k"]


def test_a_launch_has_a_limit_of_distinct_buffers():
    halves = [dict.fromkeys(range(MAX_BUFFERS // 2), 1), dict.fromkeys(range(MAX_BUFFERS // 2, MAX_BUFFERS), 1)]
    parts = [Part(kernel("k"), moved, False) for moved in halves]
    check_buffers([*parts, *parts])
    with pytest.raises(Unsupported, match=f"{MAX_BUFFERS + 1} buffers, at most {MAX_BUFFERS}"):
        check_buffers([*parts, part("more", 1)])


def test_kernels_are_measured_and_described(monkeypatch):
    monkeypatch.setattr(inductor, "bytes_touched", lambda kernel: {"x": 1 << 20, "y": 1 << 19})
    parts = [measure(kernel("sum", sizes=((8,), (4,)))), measure(kernel("copy"))]
    assert [(p.reduces, p.total) for p in parts] == [(True, 3 << 19), (False, 3 << 19)]
    assert [(p.rows, p.row) for p in parts] == [(8, 4), (1, 1)]
    assert describe_launch(parts) == "one launch for 2 kernels, 1 saved: sum (reduces) 1.5 MB, copy 1.5 MB"
