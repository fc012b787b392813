"""Test rows whose lanes step by two: one access of twice the width, where every address of it is inside the buffer."""

from __future__ import annotations

import functools

import pytest
import sympy
import torch
from emitted import NO_STAGES, run_emitted
from pattern_functions import norm_interleaved_rope, rms_norm
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.lowering.triton.kernels import StridedAccessMixin
from bridge.lowering.triton.strided_access import WIDE_LANE, LaneVariable, find_strided_pair

ROW, LANE, HEAD = sympy.symbols("x0 r0_1 r0_2", integer=True, nonnegative=True)
ONE_LOOP = [LaneVariable(LANE, 1, 64, 64)]
TWO_LOOPS = [LaneVariable(LANE, 1, 8, 64), LaneVariable(HEAD, 8, 8, 64)]


def is_even(expression) -> bool:
    return all(coefficient % 2 == 0 for coefficient in sympy.expand(expression).as_coefficients_dict().values())


@pytest.mark.parametrize(
    "address, variables, wide, half",
    [
        (2 * LANE, ONE_LOOP, WIDE_LANE, 0),
        (2 * LANE + 1 + 128 * ROW, ONE_LOOP, WIDE_LANE + 128 * ROW, 1),
        (2 * LANE + 7, ONE_LOOP, WIDE_LANE + 6, 1),
        (2 * LANE + 16 * HEAD, TWO_LOOPS, ModularIndexing(WIDE_LANE, 1, 16) + 16 * FloorDiv(WIDE_LANE, 16), 0),
        (2 * LANE + 10 * HEAD + 1, TWO_LOOPS, ModularIndexing(WIDE_LANE, 1, 16) + 10 * FloorDiv(WIDE_LANE, 16), 1),
        (LANE + 64 * ROW, ONE_LOOP, None, None),
        (4 * LANE, ONE_LOOP, None, None),
        (2 * LANE + 65 * ROW, ONE_LOOP, None, None),
        (2 * HEAD, TWO_LOOPS, None, None),
        (2 * ROW, ONE_LOOP, None, None),
    ],
)
def test_find_pair(address, variables, wide, half):
    pair = find_strided_pair(address, variables, is_even)
    assert (pair and pair.address, pair and pair.half) == (wide, half)


@pytest.mark.parametrize("variables, extents", [(ONE_LOOP, {LANE: 64}), (TWO_LOOPS, {LANE: 8, HEAD: 8})])
def test_both_halves_are_the_addresses_of_their_lanes(variables, extents):
    address = 2 * LANE + 1 + (20 * HEAD if HEAD in extents else 0)
    pair = find_strided_pair(address, variables, is_even)
    for lane in range(64):
        values = {v.symbol: lane // v.divisor % v.length for v in variables}
        assert pair.address.subs(WIDE_LANE, 2 * lane + pair.half) == address.subs(values)


def product(x, weight):
    normed = rms_norm(x, weight)
    return normed[..., 0::2] * normed[..., 1::2]


def one_half(x, weight):
    return rms_norm(x, weight)[..., 1::2] + 1


def nibbles(x):
    """Pack two values of four bits in a byte, with a scale for the row."""
    scale = x.float().abs().amax(-1, keepdim=True) / 7
    rounded = (x / scale).round().to(torch.int8)
    return (rounded[..., 1::2] << 4) | (rounded[..., 0::2] & 15), scale


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "function, inputs, loads, stores",
    [
        (product, [normal(5, 64), normal(64)], 2, 0),
        (product, [normal(5, 96), normal(96)], 2, 0),
        (product, [normal(3, 1024), normal(1024)], 2, 0),
        (one_half, [normal(5, 64), normal(64)], 2, 0),
        (nibbles, [normal(6, 48).bfloat16()], 1, 0),
        (norm_interleaved_rope, [normal(3, 4, 24), normal(24), normal(3, 1, 12), normal(3, 1, 12)], 2, 1),
        # Rows that start at odd elements, and a buffer whose last element has no neighbour.
        (product, [normal(5, 97)[:, :96], normal(96)], 1, 0),
        (product, [normal(5 * 128)[:-33].as_strided((5, 95), (128, 1))[:, :94], normal(94)], 2, 0),
        (one_half, [normal(5, 64)[:, 1:], normal(63)], 0, 0),
    ],
    ids=["64", "masked", "block of one row", "one half", "nibbles", "rope", "odd rows", "padded rows", "odd length"],
)
def test_wide_accesses(function, inputs, loads, stores):
    """Check results, and how many loads and stores are of pairs."""
    got, (code,) = run_emitted(function, inputs, bridge_backend, **NO_STAGES)
    expected = function(*[t.double() if t.dtype == torch.float32 else t for t in inputs])
    for one, other in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, expected)], strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-5, atol=1e-5)
    assert (code.count("tl.split("), code.count("tl.join(")) == (loads, stores)


def test_only_fused_kernels_have_them():
    """Check that only fused kernels have wide accesses: others stay Inductor's, whose rows may be in registers."""

    def alone(x):
        return x[:, 0::2] * x[:, 1::2].sum(-1, keepdim=True)

    _, (code,) = run_emitted(alone, [normal(4, 128)], bridge_backend)
    assert "tl.split(" not in code


def compiled(code: str) -> None:
    """Check that Triton, which is stricter than its interpreter, compiles every kernel of a wrapper."""
    for kernel in offline.parse_wrapper(code).kernels:
        offline.compile_kernel(kernel, config={})


def turned(x):
    """Turn each pair of normed elements by a quarter."""
    y = rms_norm(x, 1.0)
    return torch.stack([-y[..., 1::2], y[..., ::2]], -1).flatten(-2)


def with_row_means(x):
    y = rms_norm(x, 1.0)
    means = (y[..., ::2] * y[..., 1::2]).mean(-1, keepdim=True)
    return torch.stack([means.expand(*x.shape[:-1], x.shape[-1] // 2), y[..., ::2] - means], -1).flatten(-2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "function, inputs, config",
    [
        (turned, [normal(1, 64)], {}),
        (turned, [normal(1, 60).bfloat16()], {}),
        (turned, [normal(1, 1024)], {}),
        (turned, [normal(1, 64)], {"max_autotune": True}),
        (with_row_means, [normal(1, 64)], {}),
        (with_row_means, [normal(3, 48)], {}),
    ],
    ids=lambda value: "x".join(map(str, value[0].shape)) if isinstance(value, list) else "",
)
def test_pointer_of_a_wide_store_has_the_shape_of_what_is_stored(function, inputs, config):
    """Check that the pointer of a wide store has the shape of the value, which may be the same for rows or lanes.

    There may be one row, on which the address does not depend.
    """
    forced = functools.partial(bridge_backend, options={"force_fusion": True})  # one row is not worth it
    got, (code,) = run_emitted(function, inputs, forced, **config)
    compiled(code)
    assert code.count("tl.join(") == 1 and bridge.report().fused
    tolerance = {"rtol": 1e-2, "atol": 1e-2} if got.dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(got.double(), function(inputs[0].double()), **tolerance)


def signs(x):
    z = torch.where(rms_norm(x, 1.0) > 0, 2, -1).to(x.dtype)
    return torch.stack([-z[..., 1::2], z[..., ::2]], -1).flatten(-2)


def remainders(x):
    z = ((rms_norm(x, 1.0) * 10).to(torch.int32) % 3).to(x.dtype)
    return torch.stack([-z[..., 1::2], z[..., ::2]], -1).flatten(-2)


@pytest.mark.parametrize("function, exact", [(signs, True), (remainders, False)], ids=["signs", "remainders"])
def test_halves_of_two_types_are_one_store(function, exact):
    """Check that halves of two types are one store: a negated half is float32, the other has the result's 16 bits."""
    x = normal(4, 34).bfloat16()
    got, (code,) = run_emitted(function, [x], bridge_backend)
    compiled(code)
    assert code.count("tl.join(") == 1
    # An integer's last bit depends on how what it is made of was rounded.
    assert (got != function(x.double())).double().mean() <= (0 if exact else 0.1)


def beside_a_product(x, w):
    """Store a half beside one that needs a matrix product of the same kernel's results."""
    y = rms_norm(x, 1.0)
    return torch.stack([y[..., ::2] * y[..., 1::2], (y[..., 1::2] * 2) @ w], -1).flatten(-2)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("config", [{}, {"triton.multi_kernel": 1}, {"combo_kernels": True}], ids=lambda c: str([*c]))
def test_half_without_a_neighbour_is_stored_alone(config):
    """Check that a half without a neighbour is stored alone, with its buffer among the kernel's arguments."""
    inputs = [normal(16, 64), normal(32, 32)]
    got, (code,) = run_emitted(beside_a_product, inputs, bridge_backend, **config)
    compiled(code)
    assert "tl.split(" in code and "tl.join(" not in code and bridge.report().fused
    torch.testing.assert_close(got.double(), beside_a_product(*[t.double() for t in inputs]), rtol=1e-5, atol=1e-5)


class Stores:
    """Stand for Inductor's kernel: lines of the stores, a code of which may have been flushed."""

    def __init__(self) -> None:
        self.stores = self
        self._lines: list[list[str]] = []

    def store(self, name, index, value, mode=None):
        self._lines.append([f"{name}[{index}] = {value}"])


class Halves(StridedAccessMixin, Stores):
    def _pair(self, name, index):
        return find_strided_pair(index, ONE_LOOP, is_even)

    def _store_pair(self, first, second):
        self._lines.append([f"{first.name}[pairs] = {first.value}, {second.value}"])


@pytest.fixture
def kernel(monkeypatch):
    """Return a kernel that stores to a, which is named b after it was overwritten, and to c."""
    monkeypatch.setattr("bridge.lowering.triton.kernels.written_storage", lambda name: {"b": "a"}.get(name, name))
    return Halves()


def lines(kernel):
    return [line for (line,) in kernel._lines]


class TestOrderOfStores:
    def test_neighbours_meet(self, kernel):
        kernel.store("a", 2 * LANE, "even")
        kernel.store("c", LANE, "other")
        kernel.store("a", 2 * LANE + 1, "odd")
        assert lines(kernel) == ["c[r0_1] = other", "a[pairs] = even, odd"]

    def test_half_stays_before_what_overwrites_it(self, kernel):
        kernel.store("a", 2 * LANE, "even")
        kernel.store("b", LANE, "all")
        kernel.store("a", 2 * LANE + 1, "odd")
        assert lines(kernel) == ["a[2*r0_1] = even", "b[r0_1] = all", "a[2*r0_1 + 1] = odd"]

    def test_half_stays_before_an_atomic_addition(self, kernel):
        kernel.store("a", 2 * LANE, "even")
        kernel.store("a", 2 * LANE, "more", "atomic_add")
        kernel.store("a", 2 * LANE + 1, "odd")
        assert [line.split()[-1] for line in lines(kernel)] == ["even", "more", "odd"]

    def test_half_stays_before_code_that_may_load_it(self, kernel):
        kernel.store("a", 2 * LANE, "even")
        kernel._lines.clear()  # as Inductor does where it begins another part of the body
        kernel.store("a", 2 * LANE + 1, "odd")
        assert lines(kernel) == ["a[2*r0_1 + 1] = odd"]

    def test_last_of_two_halves_meets_the_neighbour(self, kernel):
        kernel.store("a", 2 * LANE, "first")
        kernel.store("a", 2 * LANE, "second")
        kernel.store("a", 2 * LANE + 1, "odd")
        assert lines(kernel) == ["a[2*r0_1] = first", "a[pairs] = second, odd"]


@pytest.mark.parametrize("option", ["cooperative_reductions", "force_cooperative_reductions"])
def test_rows_of_pairs_are_not_split_among_blocks(option):
    """Check that rows of pairs are not split among blocks, which would take pairs from the row's start."""
    inputs = [normal(3, 4, 24), normal(24), normal(3, 1, 12), normal(3, 1, 12)]
    got, (code,) = run_emitted(norm_interleaved_rope, inputs, bridge_backend, **{f"triton.{option}": True})
    assert "tl.split(" in code and "rsplit" not in code
    torch.testing.assert_close(got.double(), norm_interleaved_rope(*[t.double() for t in inputs]), rtol=1e-5, atol=1e-5)
