"""Test indices with a largest, a smallest or an absolute value: computed by operations on integers, or refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
from emitted import run_emitted
from torch.utils._sympy.functions import FloorDiv, Max, Min

import bridge
from bridge import offline
from bridge.affine.translate.piecewise import compute_piecewise, is_piecewise, without_decided
from bridge.affine.translate.trace import iteration_variable
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason, Unsupported

i, j = (iteration_variable(n) for n in range(2))
size = sympy.Symbol("s0", integer=True, positive=True)

_EXACT: dict[str, Callable[..., int]] = {
    "maximum": max,
    "minimum": min,
    "abs": abs,
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
}


@pytest.mark.parametrize(
    "expr",
    [
        Max(0, i - j),
        Max(sympy.Float(0.0), i - j),
        Min(2, sympy.Abs(i - j)),
        3 - sympy.Abs(i - 2) + 4 * j,
        2 * Max(i, j) * sympy.Abs(j - 3) + i,
        Max(i, j, 2),
        sympy.Abs(size - 1 - sympy.Abs(i - 2 * size)),
    ],
    ids=str,
)
def test_the_same_number_for_every_iteration(expr):
    assert is_piecewise(expr)
    for a, b in itertools.product(range(5), range(5)):
        at = {i: a, j: b, size: 2}

        def index(part: sympy.Expr, at: dict[Any, int] = at) -> int:
            assert not is_piecewise(part) and not part.atoms(sympy.Float)
            return int(part.subs(at))

        assert compute_piecewise(expr, index, lambda name, operands: _EXACT[name](*operands)) == float(expr.subs(at))


@pytest.mark.parametrize("expr", [i + 2 * j, Max(size, 4) + i, FloorDiv(i, 2)], ids=str)
def test_an_affine_index_is_one_part(expr):
    assert not is_piecewise(expr)
    assert compute_piecewise(expr, lambda part: [part], lambda *_: pytest.fail("an operation")) == [expr]


@pytest.mark.parametrize("expr", [FloorDiv(Max(i, j), 2), Min(sympy.Float(1.5), i - j)], ids=str)
def test_what_other_operations_would_compute_is_refused(expr):
    with pytest.raises(Unsupported) as refusal:
        compute_piecewise(expr, lambda part: part, lambda name, operands: name)
    assert refusal.value.reason is Reason.non_affine_index


def _tokens(x):
    return torch.arange(x.shape[-1], device=x.device)


def _gated(scores):
    first, second = torch.softmax(scores, -1).chunk(2, -1)
    return first * second


def causal(x):
    at = _tokens(x)
    return _gated(x - 0.25 * (at[:, None] - at).clamp(min=0))


def causal_in_floats(x):
    at = _tokens(x).to(torch.float32)
    return _gated(x - 0.25 * (at[:, None] - at).clamp_min(0))


def symmetric(x):
    at = _tokens(x)
    return _gated(x - 0.25 * (at[:, None] - at).abs().clamp_max(8))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [causal, causal_in_floats, symmetric])
def test_distances_of_tokens_kept_the_kernels_apart(function, dynamic):
    """Check that biases by the distance of tokens fuse: `Max(0, i - j)` was refused as an index that is not affine."""
    x = torch.randn(3, 12, 12, generator=torch.Generator().manual_seed(0))
    with bridge.config.patch(strict=True):
        result, codes = run_emitted(function, [x], bridge_backend, dynamic=dynamic)
    assert offline.compile_for_gpu(function, [x], dynamic=dynamic).n_kernels == 2
    assert sum(len(offline.parse_wrapper(code).launches) for code in codes) == 1, bridge.report()
    torch.testing.assert_close(result.double(), function(x.double()), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (Min(i, Min(128, i + 1) - 1), i),
        (4 * Max(0, i) + Min(j, i + 9), 4 * i + j),
        (Min(size * i + j, size * i + j + size), size * i + j),
        (Max(0, i - 2), Max(0, i - 2)),
        (Min(Min(128, i + 1) - 1, Max(0, i - 2)), Min(i, Max(0, i - 2))),
        (Max(i, i, j), Max(i, j)),
        (Min(FloorDiv(i, 2), FloorDiv(i, 2) + 1), FloorDiv(i, 2)),
        (sympy.Abs(i - 2), sympy.Abs(i - 2)),
        (i + 2 * j, i + 2 * j),
    ],
    ids=str,
)
def test_an_extreme_that_the_ranges_decide_is_one_of_its_two(expr, wanted):
    """Check that an extreme that the ranges decide is replaced, as for windows that do not overlap."""
    zero = sympy.Integer(0)
    ranges = {i: (zero, sympy.Integer(127)), j: (zero, sympy.Integer(9))}
    assert without_decided(expr, ranges, lambda condition: condition is sympy.true) == wanted


def test_the_gradient_of_averages_of_windows_is_fused():
    """Check that the gradient of averages of windows fuses: its index, `min(i, min(4, i + 1) - 1)`, was refused."""

    def gradient(given, x):
        return torch.ops.aten.avg_pool2d_backward(given, x, [2, 2], [2, 2], [0, 0], False, True, None)

    def before_softmax(given, x):
        return _gated(gradient(given, x).flatten(2))

    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(2, 3, side, side, generator=generator) for side in (4, 8)]
    found, codes = run_emitted(before_softmax, inputs, bridge_backend)
    torch.testing.assert_close(found.double(), before_softmax(*[t.double() for t in inputs]), rtol=1e-5, atol=1e-6)
    assert sum(len(offline.parse_wrapper(code).launches) for code in codes) == 1, bridge.report().details()
