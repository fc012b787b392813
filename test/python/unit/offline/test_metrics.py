"""Test loads and stores of kernels, counted."""

from __future__ import annotations

from bridge import offline


def test_loads_and_stores(plain):
    reduction, pointwise = plain.kernels
    assert offline.count_loads(reduction) == {"in_ptr0": 1, "in_ptr1": 1}
    assert offline.count_stores(reduction) == {"out_ptr0": 1}
    assert sum(offline.count_loads(pointwise).values()) == 7
    assert offline.count_stores(pointwise) == {"out_ptr0": 1}


def test_counts_follow_block_pointers_and_atomics():
    source = """
def kernel(in_ptr0, out_ptr0, xnumel):
    block = tl.make_block_ptr(in_ptr0 + 4, shape=[8], block_shape=[8])
    a = tl.load(block) + tl.load(in_ptr0 + (3 * xnumel))
    tl.atomic_add(out_ptr0 + tl.arange(0, 8), a)
"""
    assert offline.count_loads(source) == {"in_ptr0": 2}
    assert offline.count_stores(source) == {"out_ptr0": 1}
