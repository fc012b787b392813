"""Test that kernels which overwrite buffers of others (a cache of keys and values) share launches, and nothing more."""

from __future__ import annotations

import ast
import re

import pytest
import torch
from emitted import run_emitted

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend

HEADS, SIZE, ROOM = 2, 32, 16


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def decode(hidden, wq, wk, wv, cos, sin, keys, values, position):
    """Do what a decoder does with one token before its attention; keys, values: (heads, ROOM, SIZE)."""
    q, k, v = ((hidden @ w).view(1, -1, SIZE).transpose(0, 1) for w in (wq, wk, wv))
    keys.index_copy_(1, position, rotate(k, cos, sin))
    values.index_copy_(1, position, v)
    return rotate(q, cos, sin), *((cache + 0.0).repeat_interleave(2, 0) for cache in (keys, values))


def inputs_of_decode(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    projections = [(64, 4 * SIZE), (64, HEADS * SIZE), (64, HEADS * SIZE)]
    shapes = [(1, 64), *projections, (1, SIZE), (1, SIZE), *[(HEADS, ROOM, SIZE)] * 2]
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes] + [torch.tensor([5])]


def kernels(function, inputs, backend=None):
    return offline.compile_for_gpu(function, inputs, compile_fx=backend).n_kernels


def check(function, inputs, backend=bridge_backend):
    """Check that what the kernels return, and what they leave in their inputs, is as in eager mode."""
    ours, theirs = ([t.clone() for t in inputs] for _ in range(2))
    result, _ = run_emitted(function, ours, backend)
    expected = function(*theirs)
    for got, wanted in zip([*result, *ours], [*expected, *theirs], strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


def test_cache_is_written_in_the_launch_of_the_rotation():
    """Check that q, k and v are one launch, and the copies into both caches, which wait for them, another one."""
    assert kernels(decode, inputs_of_decode(torch.bfloat16)) == 5
    assert kernels(decode, inputs_of_decode(torch.bfloat16), bridge_backend) == 2, bridge.report()


def test_cache_holds_what_eager_mode_writes():
    check(decode, inputs_of_decode())


def test_readers_of_the_old_and_of_the_new_cache_stay_on_their_side():
    """Check that readers of the old and of the new cache stay on their side of the write; all are equally large."""

    def function(cache, row):
        before = cache * 2
        cache.copy_(cache + row)
        return before, cache * 3

    inputs = [torch.randn(8, 32), torch.randn(8, 32)]
    assert kernels(function, inputs, bridge_backend) == kernels(function, inputs)
    check(function, inputs)


def test_two_overwrites_of_one_buffer_keep_their_order():
    def function(cache, a, b, first, second):
        cache.index_copy_(0, first, a * 2)
        cache.index_copy_(0, second, b * 3)
        return (cache + 1,)

    inputs = [torch.zeros(8, 32), torch.randn(2, 32), torch.randn(2, 32), torch.tensor([1, 2]), torch.tensor([2, 3])]
    assert kernels(function, inputs, bridge_backend) == kernels(function, inputs)
    check(function, inputs)


def test_a_counter_that_others_read_is_advanced_after_them():
    """Check that a counter is increased after its readers, as the length of a static cache."""

    def function(cache, other, row, length):
        position = torch.arange(1) + length
        cache.index_copy_(0, position, row)
        other.index_copy_(0, position, row * 2)
        length.add_(1)
        return (cache + 1,)

    check(function, [torch.zeros(8, 32), torch.zeros(8, 32), torch.randn(1, 32), torch.tensor(3)])


def atomic(x, y, index):
    return torch.zeros_like(x).index_add_(0, index, y), torch.zeros_like(x).index_add_(0, index, y * 2)


def test_atomic_additions_have_launches_of_their_own():
    """Check that atomic additions have launches of their own: autotuning could add several times, in any order."""
    inputs = [torch.randn(8, 32), torch.randn(8, 32), torch.randint(0, 8, (8,))]
    sources = [k.source for k in offline.compile_for_gpu(atomic, inputs, compile_fx=bridge_backend).kernels]
    alone = [k.source for k in offline.compile_for_gpu(atomic, inputs).kernels]
    added = [source for source in sources if "tl.atomic_add(" in source]
    assert added
    assert all("num_blocks_1" not in source for source in added)
    assert len(added) == sum("tl.atomic_add(" in source for source in alone)


def biases(rows):
    """Return a function of three projections, each with a bias and an order of its heads, and its inputs."""

    def function(*inputs):
        return tuple((x + b).view(rows, 4, SIZE).transpose(0, 1).contiguous() for x, b in zip(inputs[:3], inputs[3:]))

    return function, [*(torch.randn(rows, 4 * SIZE) for _ in range(3)), *(torch.randn(4 * SIZE) for _ in range(3))]


def test_equal_kernels_without_a_common_buffer():
    function, inputs = biases(8)
    assert kernels(function, inputs) == 3
    assert kernels(function, inputs, bridge_backend) == 1
    check(function, inputs)


def rotate_some(x, cos, sin):
    """Rotate the first half of each head in pairs."""
    rotated, kept = x.chunk(2, -1)
    turned = torch.stack([-rotated[..., 1::2], rotated[..., ::2]], -1).flatten(-2)
    return torch.cat([rotated * cos + turned * sin, kept], -1)


def repeated_heads(queries, keys, frequencies):
    """Return what GLM's attention is called with; queries, keys: (tokens, heads, 64)."""
    angles = torch.arange(len(keys))[:, None, None] * frequencies.repeat_interleave(2)
    queries, keys = (rotate_some(x, angles.cos(), angles.sin()) for x in (queries, keys))
    keys = keys.transpose(0, 1).contiguous()
    return queries, keys, keys[:, None].expand(-1, 16, -1, -1).reshape(-1, *keys.shape[1:])


def test_kernels_of_a_group_that_has_no_lift_share_a_launch():
    """Check that kernels of a group without a lift share a launch: keys, and each of them 16 times.

    Sines are computed once, and nothing is reduced in registers.
    """
    many = [torch.empty(2048, heads, 128) for heads in (32, 2)] + [torch.empty(32)]
    assert kernels(repeated_heads, many, bridge_backend) < kernels(repeated_heads, many) == 3
    check(repeated_heads, [torch.randn(8, 32, 64), torch.randn(8, 2, 64), torch.randn(16)])


@pytest.mark.parametrize(("rows", "expected"), [(8192, 1), (16000, 2), (65536, 3)])
def test_as_many_bytes_share_a_launch_as_the_cache_holds(rows, expected):
    """Check that as many bytes share a launch as the L2 cache holds: an input just written is read from it."""
    function, inputs = biases(rows)
    assert kernels(function, inputs, bridge_backend) == expected


def count_up(one, other):
    one.add_(1)
    other.add_(1)
    return (torch.ones(4, 32),)


def test_autotuning_knows_what_a_launch_overwrites():
    """Check that autotuning knows what a launch overwrites: it runs a kernel many times, on copies of that."""
    inputs = [torch.tensor(3), torch.tensor(4)]
    result = offline.compile_for_gpu(count_up, inputs, compile_fx=bridge_backend)
    (source,) = [kernel.source for kernel in result.kernels if "num_blocks_1" in kernel.source]
    (names,) = re.findall(r"'mutated_arg_names': (\[.*?\])", source)
    overwritten = set(re.findall(r"'(out_ptr\d+)': '\*", source))
    assert len(overwritten) == 2 and overwritten <= {*ast.literal_eval(names)}
    check(count_up, inputs)
