"""Test rows of which a symbol says how many there are, and their columns, in one kernel.

One compilation for all numbers.
"""

from __future__ import annotations

import functools

import pytest
import torch
from column_tests import decisions
from torch._dynamo.utils import counters
from torch._inductor.choices import InductorChoices
from training import PATTERNS, adaln_residual, adaln_residual_images, count, graphs, norm_swiglu, rms

import bridge
from bridge.backend import bridge as backend
from bridge.inductor import column_slices
from bridge.offline.interpret import interpreter
from bridge.reasons import Reason
from bridge.scheduling import fuse, hook

FORCED = {"training": True, "strict": True, "force_fusion": True}


def refused():
    apart = [pair for group in bridge.report().groups for pair in group.apart]
    return [*apart, *((refusal.reason, refusal.detail) for refusal in bridge.report().refusals)]


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("q, k, v: split, norms, RoPE", "5"),
        ("a, b = rms(x).chunk(2); silu(a) * b", "2"),
        ("AdaLN, h = x + gate * y", "2"),
        ("ln(x + dropout(y))", "2"),
        ("gelu(x @ w + b)", "2"),
        ("norms of heads, gated", "2"),
    ],
)
def test_a_backward_has_as_few_kernels_as_for_one_number_of_rows(name, kernels):
    """Check that a backward has as few kernels for a symbolic number of rows as for a fixed one.

    The cases have what Inductor's mix-order kernel leaves apart, and groups and segments of rows.
    """
    function, make = PATTERNS[name]
    compile_fx = functools.partial(backend, options={"strict": True, "training": True})
    found = [count(code) for code in graphs(function, make(), compile_fx, dynamic=True)]
    assert found == ["1", kernels], bridge.report()
    assert decisions()


def short_convolution(x, taps, weight):
    before, after, rows = x.chunk(3, -1)
    tokens, padded = x.shape[1], torch.nn.functional.pad(before * rows, (0, 0, 2, 0))
    shifted = padded[:, :tokens] * taps[0] + padded[:, 1 : tokens + 1] * taps[1] + padded[:, 2 : tokens + 2] * taps[2]
    return rms(after * shifted, weight)


def modulated_groups(x, scale, weight, bias):
    y = torch.nn.functional.group_norm(x, 8, weight, bias)
    return torch.nn.functional.silu(y * (1 + scale[..., None, None]))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (short_convolution, [(63, 34, 1536), (3, 512), (512,)]),
        (modulated_groups, [(2, 64, 30, 33), (2, 64), (64,), (64,)]),
    ],
)
def test_two_symbols_kept_more_kernels_than_numbers(function, shapes):
    """Check that two symbolic sizes, of batch and tokens or of rows and columns of pixels, need no more kernels.

    Sums of columns blamed the kernels of their rows, and paddings were stored; a group of channels had other loops over
    pixels than one channel.
    """
    found = []
    for dynamic in (False, True):
        inputs = [torch.randn(shape, dtype=torch.bfloat16).requires_grad_() for shape in shapes]
        if dynamic and len(shapes[0]) == 4:
            torch._dynamo.mark_dynamic(inputs[0], 3)
        compile_fx = functools.partial(backend, options={"strict": True, "training": True})
        kernels = [int(count(code)) for code in graphs(function, inputs, compile_fx, dynamic)]
        found.append(sum(kernels))
    numbers, symbolic = found
    assert symbolic <= numbers


@pytest.fixture
def one_stage(few_processors, as_if_large, monkeypatch):
    """Set up `few_processors` and `as_if_large`, and let Inductor split no sum."""
    split = staticmethod(lambda device, rows, columns, inner_reduction: 1)
    monkeypatch.setattr(InductorChoices, "reduction_split_factor", split)


def gradients(function, inputs, marked=()):
    """Return results and gradients; marked: (input, dimension) pairs whose sizes are symbols."""
    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in inputs]
        for number, dim in marked:
            torch._dynamo.mark_dynamic(leaves[number], dim)
        outputs = function(*leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        generator = torch.Generator().manual_seed(1)
        weights = [torch.randn(output.shape, generator=generator, dtype=torch.float64) for output in outputs]
        found = torch.autograd.grad(outputs, leaves, [w.to(o.dtype) for w, o in zip(weights, outputs, strict=True)])
    return [*outputs, *found]


def check_sizes(function, shapes, sizes, place=0):
    """Compile once, for the first size in the place of each None, and compare all of them with float64."""
    torch._dynamo.reset()
    counters.clear()
    marked = [(number, place) for number, shape in enumerate(shapes) if None in shape]
    with interpreter():
        compiled = torch.compile(function, backend="bridge", options=FORCED, fullgraph=True)
        for size in sizes:
            generator = torch.Generator().manual_seed(0)
            given = [[size if extent is None else extent for extent in shape] for shape in shapes]
            inputs = [torch.randn(shape, generator=generator) for shape in given]
            found = gradients(compiled, inputs, marked)
            for one, other in zip(found, gradients(function, [t.double() for t in inputs]), strict=True):
                torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1


def extremes(x):
    """Return maxima below 0 and minima above 0 of columns, beside a softmax."""
    y = torch.softmax(x - 100, -1)
    return y, (x - 100).amax(0), ((x - 100) * -y).amin(0), x.sum(0)


def gated_by_deviation(x):
    first, second = (x / (x.std(-1, keepdim=True) + 1e-5)).chunk(2, -1)
    return torch.nn.functional.silu(first) * second


def test_a_gradient_of_a_deviation_had_a_kernel_of_its_own():
    """It has the number `2 / (s - 1)`, which no map has, for rows of `s` elements."""
    compile_fx = functools.partial(backend, options={"strict": True, "training": True})
    code = graphs(gated_by_deviation, [torch.randn(64, 600).requires_grad_()], compile_fx, dynamic=True)
    assert [count(graph) for graph in code] == ["1", "1"], bridge.report()
    check_sizes(gated_by_deviation, [(5, None)], (24, 50, 130), place=1)


def split_heads(x, q_weight, k_weight):
    q, k, v = x.view(x.shape[0], -1, 16).split((2, 2, 2), dim=1)
    return rms(q, q_weight), rms(k, k_weight), v


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (adaln_residual, [(None, 24)] * 2 + [(24,)] * 3),
        (norm_swiglu, [(None, 32), (32,)]),
        (split_heads, [(None, 96), (16,), (16,)]),
    ],
)
def test_numbers_of_rows_that_were_not_compiled_for(few_processors, as_if_large, function, shapes):
    """Check numbers of rows that were not compiled for: fewer than a block, one block, no multiple of it, and many.

    Many rows are added up in a loop of several steps; for 75 rows, a step has 16 parts.
    """
    check_sizes(function, shapes, [75, 2, 8, 300])
    assert decisions(), bridge.report().details()


def test_rows_that_are_not_there_are_no_extremes(few_processors, as_if_large):
    torch._dynamo.reset()
    counters.clear()
    with interpreter(), torch.no_grad():
        compiled = torch.compile(extremes, backend="bridge", options=FORCED, fullgraph=True)
        for rows in (75, 2, 17, 130):
            x = torch.randn(rows, 24, generator=torch.Generator().manual_seed(0))
            x[rows - 1, 5] = float("nan") if rows == 17 else 0
            torch._dynamo.mark_dynamic(x, 0)
            for one, other in zip(compiled(x), extremes(x), strict=True):
                torch.testing.assert_close(one, other, equal_nan=True)
    assert len(decisions()) == 1, bridge.report().details()
    assert counters["stats"]["unique_graphs"] == 1


def weight_of_heads(o, w, g):
    """Compute a norm of each head with a weight of its own, and a gate."""
    scaled = o * torch.rsqrt(o.pow(2).mean(-1, keepdim=True) + 1e-5)
    return scaled * w * torch.nn.functional.silu(g)


@pytest.mark.parametrize(
    ("place", "sizes", "shape"), [(0, [3, 2, 7], (None, 40, 3, 24)), (1, [40, 33, 7], (3, None, 3, 24))]
)
def test_numbers_of_weights_of_segments(few_processors, as_if_large, place, sizes, shape):
    """Check weights of heads for symbolic numbers of sequences or tokens: blocks end with the rows of each head."""
    check_sizes(weight_of_heads, [shape, (3, 24), shape], sizes, place)
    assert decisions(), bridge.report().details()


@pytest.mark.in_turn(2)
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("tokens", "width", "block"), [(32, 24, 16), (40, 640, 8), (60, 36, 20)])
def test_numbers_of_sums_inside_so_many_sequences(one_stage, tokens, width, block):
    """Check sums inside a symbolic number of sequences.

    Each sequence has the same number of parts, so the kernel that adds them up holds all of them.
    """
    check_sizes(adaln_residual_images, [(None, tokens, width)] * 2 + [(None, width)] * 3, [3, 2, 7])
    (decision,) = decisions()
    assert f"blocks of {block} rows" in decision


def test_numbers_of_sums_inside_sequences_of_so_many_tokens(one_stage):
    """Check sums inside sequences of a symbolic length: the last block of each has fewer rows.

    Only blocks of one row would end with a sequence of any length.
    """
    check_sizes(adaln_residual_images, [(3, None, 24)] * 2 + [(3, 24)] * 3, [40, 32, 33, 7, 75], place=1)
    (decision,) = decisions()
    assert "blocks of 32 rows" in decision


def biased(x, w, b):
    return torch.nn.functional.gelu(x * w + b)


def test_numbers_of_slices_of_rows_that_were_not_compiled_for(few_processors, as_if_large, monkeypatch):
    """Check slices of rows that are not reduced, for numbers of rows that were not compiled for.

    The last block has fewer rows, and as many slices as others.
    """
    monkeypatch.setattr(column_slices, "NARROWEST", 8)
    check_sizes(biased, [(None, 40), (40,), (40,)], [100, 96, 7, 33])
    (decision,) = decisions()
    assert "and 8 columns" in decision


@pytest.fixture
def one_try(monkeypatch):
    """Form no smaller groups: without a sum whose loops are not affine, the rest of its group is one kernel."""
    monkeypatch.setattr(fuse, "groups_to_try_again", lambda *_: [])


def test_sums_of_columns_that_memory_is_not_aligned_for_stay_apart(few_processors, as_if_large, one_try):
    """Check that sums of 6 columns stay apart, as memory is not aligned for them.

    The second of two sums would begin at a multiple of 16 bytes only for even numbers of blocks.
    """
    check_sizes(adaln_residual, [(None, 6)] * 2 + [(6,)] * 3, [75, 96])
    assert not decisions()
    assert any(reason is Reason.not_liftable and "multiple of 16 bytes" in why for reason, why in refused())


def test_no_guard_is_added_for_it(few_processors, as_if_large, monkeypatch):
    from torch._inductor.virtualized import V

    added, fuse_schedule = [], hook.fuse_schedule

    def fuse_and_record(*arguments):
        before = len(V.graph.sizevars.shape_env.guards)
        schedule = fuse_schedule(*arguments)
        added.extend(V.graph.sizevars.shape_env.guards[before:])
        return schedule

    monkeypatch.setattr(hook, "fuse_schedule", fuse_and_record)
    check_sizes(adaln_residual, [(None, 24)] * 2 + [(24,)] * 3, [75])
    assert decisions() and not added


def test_partial_sums_of_more_than_32_bits(monkeypatch):
    """Check that a program's number times the columns is computed in 64 bits where elements are counted so.

    It was in 32 bits, whatever the kernel counts its elements in.
    """
    from torch._inductor.codegen.simd import SIMDScheduling

    monkeypatch.setattr(SIMDScheduling, "can_use_32bit_indexing", staticmethod(lambda numel, buffers: False))
    function, make = PATTERNS["gelu(x @ w + b)"]
    compile_fx = functools.partial(backend, options=FORCED)
    _, backward = graphs(function, make(), compile_fx, dynamic=True)
    assert "tl.store(ws_ptr + (tl.program_id(0).to(tl.int64) + 0 * tl.num_programs(0)) * r0_numel" in backward
    assert "(tl.program_id(0) + " not in backward


def gelu_of_sequences(x, weight, gate):
    """Compute a gated GELU; the gate's gradient is the only sum of its kernel."""
    return torch.nn.functional.gelu(x * weight) * gate


def test_a_second_stage_that_is_a_kernel_of_before_is_not_tried_again(few_processors, as_if_large, one_try):
    """Check that a second stage that was a kernel by itself is not tried again.

    It was an internal error: a kernel of one node is that node, whose first stage had left it.
    """
    check_sizes(gelu_of_sequences, [(None, 8, 24), (24,), (None, 1, 24)], [12, 2])
    assert decisions(), bridge.report().details()
