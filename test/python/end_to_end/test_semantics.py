"""Test values at the edges.

NaN, ties, infinities, rounding, and checks of indices: as without Bridge, in one kernel.
"""

from __future__ import annotations

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.offline.interpret import interpreter

WIDTH = 64


def halves(x):
    return x.chunk(2, -1)


def reduced(kind):
    """Return a function of the reduction beside work on halves of the row: Bridge splits it and combines the parts."""

    def fn(x):
        value = getattr(x, kind)(-1, keepdim=True)
        first, second = halves(x * 2)
        return value, torch.maximum(first, second)

    return fn


def rows_of_edges():
    """Return rows with one NaN or several, in either half, or both; ties; infinities; signed zeros."""
    x = torch.arange(8 * WIDTH, dtype=torch.float32).reshape(8, WIDTH).sin()
    x[1, 3] = math.nan
    x[2, 40] = math.nan
    x[3, 50] = x[3, 10] = x[3, 20] = math.nan
    x[4, ::7] = 2.0
    x[4, 1::9] = -2.0
    x[5] = 1.0
    x[6, 33], x[6, 5], x[6, 63] = math.inf, -math.inf, math.inf
    x[7] = 0.0
    x[7, ::2] = -0.0
    return x


@pytest.mark.one_in(2)
@pytest.mark.parametrize("persistent", [True, False], ids=["persistent", "looped"])
@pytest.mark.parametrize("kind", ["amax", "amin", "argmax", "argmin"])
def test_nan_and_ties_on_gpu(kind, persistent):
    """Check that NaN wins, and the first of equals, and that the index is that of the whole row."""

    def backend(gm, inputs):
        return bridge_backend(gm, inputs, options={"persistent": persistent})

    x = rows_of_edges()
    (value, larger), (code,) = run_emitted(reduced(kind), [x], backend)
    assert bridge.report().fused and code.count(".run(") == 1
    expected, expected_larger = reduced(kind)(x)
    torch.testing.assert_close(value, expected, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(larger, expected_larger, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("kind", ["amax", "argmin", "logsumexp"])
def test_rows_in_a_loop(kind):
    """Check reductions over a symbolic length: the merge of partial results must not come before them in the loop."""
    x = rows_of_edges()[4:6]
    torch._dynamo.mark_dynamic(x, 1)
    (value, larger), _ = run_emitted(reduced(kind), [x], bridge_backend, dynamic=None)
    expected, expected_larger = reduced(kind)(x)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(larger, expected_larger)
    assert bridge.report().groups


@pytest.mark.parametrize("kind", ["amax", "argmin"])
def test_nan_and_ties_on_cpu(kind, compiler):
    x = rows_of_edges()
    value, larger = compiler(reduced(kind), backend="bridge")(x)
    expected, expected_larger = reduced(kind)(x)
    torch.testing.assert_close(value, expected, rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(larger, expected_larger, rtol=0, atol=0, equal_nan=True)


def test_softmax_of_infinities_and_nan():
    def fn(x):
        first, second = halves(torch.softmax(x, -1))
        return first + second

    x = rows_of_edges()
    result, _ = run_emitted(fn, [x], bridge_backend)
    assert bridge.report().fused
    torch.testing.assert_close(result, fn(x), equal_nan=True)


def test_predicates_of_nan():
    def fn(x):
        some, every = (x > 1.5).any(-1, keepdim=True), (x <= 1.5).logical_or(x > 1.5).all(-1, keepdim=True)
        first, second = halves(torch.where(some & every, x, -x))
        return first * second

    x = rows_of_edges()
    result, _ = run_emitted(fn, [x], bridge_backend)
    assert bridge.report().fused
    torch.testing.assert_close(result, fn(x), rtol=0, atol=0, equal_nan=True)


def test_a_row_of_two_elements_is_unrolled_to_the_end():
    """Check that a row of two elements compiles: one iteration was left of the loop over pairs.

    Inductor takes such a loop for a reduction, and asserts that it is one.
    """

    def fn(x):
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3)
        return y[..., :1] * torch.sigmoid(y[..., 1:])

    x, weights = torch.randn(2, dtype=torch.float64, requires_grad=True), torch.randn(1, dtype=torch.float64)
    with interpreter():
        compiled = torch.compile(
            fn, backend=functools.partial(bridge_backend, options={"strict": True, "training": True})
        )
        (found,) = torch.autograd.grad(compiled(x), x, weights)
    torch.testing.assert_close(found, torch.autograd.grad(fn(x), x, weights)[0])


def test_a_reduction_of_a_constant_has_no_loop_left():
    """Check a reduction of a constant (no integer is infinite), which has no loop.

    Inductor's scheduler asks each node for its kind of loops, and must get the right one.
    """

    def fn(x):
        row = torch.isinf(x)
        row = row ^ row.any(-1, keepdim=True)
        first, second = halves(row)
        return first & second, row.any(0)

    def backend(gm, example_inputs):
        return bridge_backend(gm, example_inputs, options={"strict": True})

    x = torch.arange(20 * 20).reshape(20, 20)
    result, _ = run_emitted(fn, [x], backend)
    report = bridge.report()
    assert report.kernels_after < report.kernels_before
    torch.testing.assert_close(result, fn(x))


def gated(x):
    y = x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype)
    first, second = halves(y)
    return F.relu(first) * second


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("emulate", [False, True], ids=["wide", "emulated"])
def test_rounding_of_intermediates(emulate, dtype):
    """Check that bits equal Inductor's, with and without rounding after each operation; sums here are exact."""
    x = (torch.randint(-8, 8, (6, WIDTH), generator=torch.Generator().manual_seed(0)) / 4).to(dtype)
    theirs, _ = run_emitted(gated, [x], emulate_precision_casts=emulate)
    ours, (code,) = run_emitted(gated, [x], bridge_backend, emulate_precision_casts=emulate)
    assert bridge.report().fused and code.count(".run(") == 1
    assert torch.equal(ours, theirs)


def test_emulated_rounding_is_eagers():
    """Check that emulated rounding gives what eager computes operation by operation."""
    x = (torch.randint(-8, 8, (6, WIDTH), generator=torch.Generator().manual_seed(1)) / 4).to(torch.bfloat16)
    ours, _ = run_emitted(gated, [x], bridge_backend, emulate_precision_casts=True)
    wide, _ = run_emitted(gated, [x], bridge_backend)
    error = (ours.double() - gated(x).double()).abs().max()
    assert error <= (wide.double() - gated(x).double()).abs().max()
    assert error <= 2**-8 * gated(x).double().abs().max()


def computed_again(x):
    """Compute with a factor that 16 bits hold: emulating, torch 2.15 rounds constants as well, which eager does not."""
    y = torch.tanh(x) * 1.125
    first, second = halves(y)
    return y, first - second * first, y.amax(-1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_emulated_rounding_is_that_of_a_value_computed_again(dtype):
    """Check that a recomputed value is rounded as its stored copy: other lanes read eager's bits."""
    x = torch.randn(8, 40, generator=torch.Generator().manual_seed(0)).to(dtype)
    ours, (code,) = run_emitted(computed_again, [x], bridge_backend, emulate_precision_casts=True)
    assert bridge.report().fused and code.count(".run(") == 1
    assert all(map(torch.equal, ours, computed_again(x)))


def narrowed(x):
    y = (x * 1.1).to(torch.float32)
    return y, y.flip(-1).double() * x.amax(-1, keepdim=True)


def test_a_rounding_of_the_programs_is_that_of_a_value_computed_again():
    """Check that a recomputed value keeps a rounding that the program asks for.

    Only the rounding to 16 bits by a buffer may be left out.
    """
    x = torch.randn(8, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ours, (code,) = run_emitted(narrowed, [x], bridge_backend)
    assert bridge.report().fused and code.count(".run(") == 1
    assert all(map(torch.equal, ours, narrowed(x)))


def stored_and_read_in_part(x):
    y = x - x.amin(-1, keepdim=True)
    y = y * (1 + 0.01 * y).prod(-1, keepdim=True)
    pieces = y.split(5, -1)
    return y, F.gelu(pieces[6]), torch.softmax(pieces[7], -1)


def test_a_stored_value_is_read_as_before_its_rounding_everywhere():
    """Check that all readers of a stored value read it before its rounding.

    The maximum that softmax subtracts was of unrounded values, and the minuend rounded.
    """
    x = torch.randn(32, 60, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    (*_, ours), _ = run_emitted(stored_and_read_in_part, [x], bridge_backend)
    assert bridge.report().fused
    *_, exact = stored_and_read_in_part(x.double())
    assert (ours.double() - exact).norm() / exact.norm() < 2**-9


def halves_turned(x):
    first, second = halves(x)
    return torch.cat([-second, first], -1)


OTHER = {torch.bfloat16: torch.float16, torch.float16: torch.bfloat16}


def only_stored(x):
    """Move halves unchanged, to float32 and to the other 16 bits, beside halves that are computed with."""
    return halves_turned(x.float()), halves_turned(x.to(OTHER[x.dtype])), x.float().sum(-1), halves_turned(x)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("simdlen", [None, 256, 1], ids=["widest", "avx2", "scalar"])
def test_a_load_that_is_only_stored_is_converted(simdlen, compiler):
    """Check that C++ converts a load whose only use is a store: its bits were those of the other type."""
    inputs = [torch.randn(9 + n, WIDTH).to(dtype) for n, dtype in enumerate(OTHER)]
    compiled = compiler(lambda xs: [only_stored(x) for x in xs], backend="bridge", options={"cpp.simdlen": simdlen})
    assert all(map(torch.equal, _flat(compiled(inputs)), _flat([only_stored(x) for x in inputs])))
    assert bridge.report().fused


def _flat(results):
    # What is summed is in another order.
    return [value for many in results for value in many if value.dim() > 1]


def flags_apart(x):
    """Store flags of two loads to every other row, beside constants."""
    flags = x ^ x.any(-2, keepdim=True)
    out = flags.new_zeros(*x.shape[:-2], 2 * x.shape[-2], x.shape[-1])
    out[..., ::2, :] = flags
    return out


@pytest.mark.parametrize("simdlen", [None, 256, 1], ids=["widest", "avx2", "scalar"])
def test_flags_under_a_mask_are_vectors_of_one_kind(simdlen, compiler):
    """Check that C++ has flags under a mask in vectors of one kind.

    Flags of integers and a constant had vectors of different kinds; Inductor expects those of floats.
    """
    x = torch.rand(4, 20, 27, generator=torch.Generator().manual_seed(0)) > 0.9
    compiled = compiler(flags_apart, backend="bridge", options={"cpp.simdlen": simdlen})
    assert torch.equal(compiled(x), flags_apart(x)) and bridge.report().fused


def several_uses(x, w):
    h = x + w
    y = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
    z = y * 1.7
    first, second = halves(z * h)
    return h, y, z, torch.cat([-second, first], -1)


@pytest.mark.in_turn(2)
def test_values_of_a_row_are_read_as_precisely_as_by_inductor(compiler):
    """Check that nodes in one C++ loop pass on float32: in loops of their own they would read rounded values."""
    inputs = [
        [torch.randn(32, WIDTH, generator=torch.Generator().manual_seed(seed + n)).half() for n in range(2)]
        for seed in range(0, 16, 2)
    ]
    errors = {}
    for backend in ("inductor", "bridge"):
        torch._dynamo.reset()
        compiled = compiler(several_uses, backend=backend, dynamic=False)
        errors[backend] = [_errors(compiled(*given), several_uses(*(x.double() for x in given))) for given in inputs]
    assert bridge.report().fused and bridge.report().kernels_after == 1
    theirs, ours = (torch.tensor(errors[name]).log().mean(0) for name in ("inductor", "bridge"))
    assert ((ours - theirs).exp() <= 1.05).all(), (ours - theirs).exp()


def _errors(results, exact):
    return [((a.double() - b).norm() / b.norm()).item() for a, b in zip(results, exact, strict=True)]


def looked_up(x, table, index):
    rows = table[index]
    y = rows * torch.rsqrt((x + rows).pow(2).mean(-1, keepdim=True) + 1e-6)
    first, second = halves(y)
    return first * second


@pytest.mark.parametrize("index", [[0, 1, 9], [0, -1, -10]], ids=["inside", "wrapped"])
def test_indirect_indices(index, compiler):
    x, table = torch.randn(3, WIDTH), torch.randn(10, WIDTH)
    compiled = compiler(looked_up, backend="bridge")
    torch.testing.assert_close(compiled(x, table, torch.tensor(index)), looked_up(x, table, torch.tensor(index)))


@pytest.mark.parametrize("index", [[0, 1, 10], [0, -11, 1]], ids=["above", "below"])
def test_index_out_of_bounds_is_noticed(index, compiler):
    """Check that Inductor's check of indices stays in the kernel."""
    # In one thread: OpenMP ends a process in which another raises.
    compiled = compiler(looked_up, backend="bridge", options={"cpp.threads": 1})
    with pytest.raises(Exception, match="index out of bounds"):
        compiled(torch.randn(3, WIDTH), torch.randn(10, WIDTH), torch.tensor(index))


def largest_scattered(x, source):
    y = x.scatter_reduce(1, torch.tensor([[0, 3]] * 10), source, "amax")
    return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-3)


@pytest.mark.in_turn(2)
def test_a_kernel_waits_for_none_that_comes_after_it(compiler):
    """Check that C++ keeps the order of a node of the derivative after the kernel that adds up its counts.

    Inductor forgets in C++ that it reads them.
    """
    x, source = torch.randn(10, 5, requires_grad=True), torch.randn(10, 2, requires_grad=True)
    compiled = compiler(largest_scattered, backend="bridge", options={"strict": True})
    with torch.enable_grad():
        result = compiled(x, source)
        torch.autograd.grad(result.sum(), [x, source])
    torch.testing.assert_close(result, largest_scattered(x, source))
