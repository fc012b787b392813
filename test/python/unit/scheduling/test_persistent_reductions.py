"""Test kernels that Bridge does not fuse and that read their rows several times: which are kept in registers."""

from __future__ import annotations

import re

import pytest
import torch
from emitted import run_emitted
from functions import norm
from torch.nn import functional as F

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.scheduling import persistent_reductions


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


def residual_norm(x):
    hidden = x + 1
    return hidden, norm(hidden)


def softmax(x):
    return torch.softmax(x, -1)


def logsumexp_of_stored(x):
    """Reduce what Inductor stores, as it is too much to repeat: a loop reads x once, and this in each pass."""
    return torch.logsumexp(F.mish(F.mish(F.mish(x * 3))) * F.gelu(x), -1)


def norm_and_rotate(x):
    """Do what olmo2 does with queries: the norm is over all heads, the rotation in each."""
    heads = norm(x).unflatten(-1, (-1, 128))
    first, second = heads.chunk(2, -1)
    return heads + torch.cat([-second, first], -1)


def two_sums(x):
    """Reduce a row twice, in one loop that loads it once."""
    return x.tanh().sum(-1), x.exp().amax(-1)


READ_AGAIN = [norm, layer_norm, residual_norm, softmax, logsumexp_of_stored]


def generate(fn, *shape, dynamic=False, **options):
    x = torch.randn(shape)
    if dynamic:
        torch._dynamo.mark_dynamic(x, 0)
    return generate_of(fn, [x], None if dynamic else False, **options)


def generate_of(fn, inputs, dynamic=False, **options):
    def backend(gm, inputs):
        return bridge_backend(gm, inputs, options={"strict": True, **options})

    return offline.compile_for_gpu(fn, inputs, compile_fx=backend, dynamic=dynamic)


def is_persistent(result):
    (kernel,) = result.kernels
    return keeps_row(kernel)


def keeps_row(kernel):
    """Return True for a kernel without a loop over its row, whose block Inductor or Bridge has chosen."""
    return kernel.name.startswith("triton_per_")


def sources(result):
    return [kernel.source for kernel in result.kernels]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("fn", READ_AGAIN)
def test_row_is_kept(fn, dynamic):
    assert is_persistent(generate(fn, 4096, 4096, dynamic=dynamic))
    assert any("registers" in choice for choice in bridge.report().choices)
    assert not any(choice.startswith("op") for choice in bridge.report().choices), "the user's names"


@pytest.mark.parametrize(
    ("fn", "columns", "kept"),
    [(norm, 6144, True), (norm, 6145, False), (layer_norm, 12288, True), (layer_norm, 12289, False)],
)
def test_long_rows_that_a_loop_reads_as_fast_as_memory_does(fn, columns, kept):
    """Check that long rows that a loop reads as fast as memory does stay in a loop.

    RMS norms of 9000 elements took 101 us and not 79 on an H200, layer norms of 16384 131 and not 94.
    """
    assert is_persistent(generate(fn, 2048, columns)) is kept


@pytest.mark.parametrize(
    ("rows", "columns", "warps"),
    [(2048, 10000, "8"), (2048, 14000, None), (500, 10000, None), (2048, 5000, "4"), (500, 5000, None)],
)
def test_a_long_row_has_fewer_warps(rows, columns, warps):
    """Check that warps are those that were faster: rows of 10000 took 84 us in 16 on an H200, and 66 in 8."""
    (kernel,) = generate(softmax, rows, columns).kernels
    assert kernel.heuristic == ("fixed_config" if warps else "persistent_reduction")
    assert re.findall(r"config=\{'XBLOCK': 1, 'num_warps': (\d+)", kernel.source) == ([warps] if warps else [])


def test_inductor_would_not():
    assert not is_persistent(offline.compile_for_gpu(norm, [torch.randn(4096, 4096)]))


def test_a_row_that_a_kernel_makes_for_itself_is_not_stored():
    """Check that a row that a kernel makes for itself is not stored.

    A softmax of a batch norm had its input and its exponentials in memory, 128 MB for 32, though no row was read twice
    of what others make.
    """
    x = torch.randn(1024, 8192)
    theirs, ours = offline.compile_for_gpu(logsumexp_of_stored, [x]), generate(logsumexp_of_stored, 1024, 8192)
    stores = [sum(offline.count_stores(kernel).values()) for (kernel,) in (theirs.kernels, ours.kernels)]
    assert stores[1] == 1 < stores[0]


def test_little_that_is_read_again_is_not_worth_the_registers_of_all_that_is_loaded():
    """Check that a row is kept only if enough is read again for the registers of all that is loaded.

    A gradient that reads 2 of 20 bytes again took 15 us longer than a loop's 130 on an H100.
    """

    def many_maps(x, *maps):
        row = torch.softmax(x, -1)
        for one in maps:
            row = row * one
        return row

    maps = [torch.randn(64, 1, 4096).expand(64, 8, 4096) for _ in range(8)]
    result = generate_of(many_maps, [torch.randn(64, 8, 4096), *maps[:3]])
    assert is_persistent(result)
    assert not is_persistent(generate_of(many_maps, [torch.randn(64, 8, 4096), *maps]))


@pytest.mark.parametrize("options", [{"unfused_rows": False}, {"persistent": False}], ids=str)
def test_options_turn_it_off(options):
    theirs = offline.compile_for_gpu(norm, [torch.randn(4096, 4096)])
    assert sources(generate(norm, 4096, 4096, **options)) == sources(theirs)
    assert not bridge.report().choices


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("fn", "shape"),
    [
        (lambda x: x.sum(-1), (4096, 4096)),
        (two_sums, (4096, 4096)),
        (norm, (4096, 32768)),
        (lambda x: x - x.mean(0), (4096, 4096)),
        (norm_and_rotate, (4096, 4096)),
    ],
    ids=["one pass", "two sums of one pass", "too long", "not neighbours", "several subscripts"],
)
def test_loop_stays(fn, shape):
    theirs = offline.compile_for_gpu(fn, [torch.randn(shape)])
    assert sources(generate(fn, *shape)) == sources(theirs)


@pytest.mark.parametrize("fn", READ_AGAIN)
def test_numerics(fn):
    torch.manual_seed(0)
    x = torch.randn(3, 1536)
    ours, _ = run_emitted(fn, [x], bridge_backend)
    expected = fn(x.double())
    torch.testing.assert_close(ours, expected, check_dtype=False, rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------------------------------------------------
# Kernels that share a launch
# ---------------------------------------------------------------------------------------------------------


def norms_of_parts(x):
    """Do what DeepSeek does with its compressed queries, keys and values."""
    first, second, rest = x.split([1536, 512, 64], -1)
    return norm(first), norm(second), rest.contiguous()


def test_row_is_kept_in_a_shared_launch():
    """Check that a row is kept in a shared launch: its part has no loop, and the others not the warps of a loop."""
    (kernel,) = generate(norms_of_parts, 4096, 2112).kernels
    assert "tl.range(" not in kernel.source and "num_warps=16" not in kernel.source
    (looped,) = generate(norms_of_parts, 4096, 2112, unfused_rows=False).kernels
    assert "tl.range(" in looped.source


def test_numerics_of_a_shared_launch():
    torch.manual_seed(0)
    x = torch.randn(3, 2112)
    ours, _ = run_emitted(norms_of_parts, [x], bridge_backend)
    torch.testing.assert_close(ours, norms_of_parts(x.double()), check_dtype=False, rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------------------------------------------------
# Kernels that update a tensor in place
# ---------------------------------------------------------------------------------------------------------


def norm_of_transposed(a, b, c, d, e, t):
    total = (a * b + c * d) * e + t.mT
    return layer_norm(total) * a, (layer_norm(total) * b).sum(-1)


def test_a_kernel_that_stays_a_loop_is_not_said_to_be_persistent():
    """Check that a kernel that stays a loop is not called persistent.

    An operation beside the reductions read a transposed tensor: the report said `persistent`, the code had loops.
    """
    rows = [torch.randn(4, 1536) for _ in range(5)]
    result = generate_of(norm_of_transposed, [*rows, torch.randn(1536, 4)])
    claimed = any("persistent" in choice for choice in bridge.report().choices)
    assert claimed == is_persistent(result)
    assert not bridge.report().refusals


def in_place_then_norm(total, y):
    """Add to `total` in a kernel that waits for all earlier readers: such a dependency has no subscript."""
    n = norm(y)
    total.add_(n)
    return n, norm(total)


def test_a_kernel_that_updates_in_place_keeps_its_rows_and_ends_nothing():
    result = generate_of(in_place_then_norm, [torch.randn(4, 2048) for _ in range(2)])
    assert not bridge.report().refusals
    assert all(map(keeps_row, result.kernels))


def test_in_place_numerics():
    torch.manual_seed(0)
    total, y = torch.randn(2, 4, 2048)
    expected_total = total.double()
    expected = in_place_then_norm(expected_total, y.double())
    ours, _ = run_emitted(in_place_then_norm, [total, y], bridge_backend)
    torch.testing.assert_close([*ours, total], [*expected, expected_total], check_dtype=False, rtol=1e-5, atol=1e-5)


def test_a_search_in_a_buffer_has_no_subscript():
    """Check a search in a buffer, of which `bucketize` may read any element: it has no subscript."""

    def search(x, boundaries):
        return norm(x) + torch.bucketize(x, boundaries)

    inputs = [torch.randn(64, 2048), torch.linspace(-1, 1, 9)]
    assert is_persistent(generate_of(search, inputs))


@pytest.mark.expects_internal_error
def test_a_kernel_that_fails_is_one_kernel(monkeypatch):
    """Check that an error at one kernel leaves the other its rows."""
    row, seen = persistent_reductions.kept_row, []

    def fail_first(kernel):
        seen.append(kernel)
        if len(seen) == 1:
            raise NotImplementedError("no such subscript")
        return row(kernel)

    monkeypatch.setattr(persistent_reductions, "kept_row", fail_first)

    def two(x, y):
        return norm(x), norm(y)

    with pytest.warns(RuntimeWarning, match="no such subscript"):
        result = generate_of(two, [torch.randn(64, 2048), torch.randn(32, 4096)], strict=False)
    assert len(bridge.report().choices) == 1 and len(seen) == 2
    assert bridge.report().counters["refused.internal_error"] == 1
    assert [keeps_row(kernel) for kernel in result.kernels].count(True) == 1
