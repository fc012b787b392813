"""Judge whether results are as good as Inductor's: errors against eager in float64, types, shapes and strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

#: Below these relative errors (Frobenius norm) a result is right, by the coarsest type in it.
ROUNDING = {
    torch.float64: 1e-9,
    torch.complex128: 1e-9,
    torch.float32: 1e-5,
    torch.complex64: 1e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1e-2,
    torch.float8_e4m3fn: 0.1,
    torch.float8_e5m2: 0.2,
}

#: How much worse than Inductor's an error above that may be.
WORSE = 1.5

#: Of an element: a zero as float64 leaves it, and what errors of zeros are relative to.
_ZERO, _UNIT = 1e-12, 1e-2

Results = Sequence[torch.Tensor]


def is_inexact(t: torch.Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def _numbers(t: torch.Tensor) -> torch.Tensor:
    t = torch.view_as_real(t.resolve_conj().to(torch.complex128)) if t.is_complex() else t
    return t.detach().cpu().double()


def error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """Return the relative error; infinite where one is finite or a number and the other is not."""
    if result.shape != reference.shape or result.is_complex() != reference.is_complex():
        return float("inf")
    got, expected = _numbers(result), _numbers(reference)
    if not torch.equal(got.isfinite(), expected.isfinite()) or not torch.equal(got.isnan(), expected.isnan()):
        return float("inf")
    got, expected = (torch.nan_to_num(t, 0.0, 0.0, 0.0) for t in (got, expected))
    return ((got - expected).norm() / _size(expected)).item()


def _size(t: torch.Tensor) -> float:
    """Return the Frobenius norm of what is finite, or of hundredths where all is zero but for roundings of float64.

    Numbers of a few units cancel there, and what a type leaves of them is not relative to the result.
    """
    return max(_UNIT * t.numel() ** 0.5, 1e-30) if _is_zero(t) else _norm(t)


def _norm(t: torch.Tensor) -> float:
    return torch.nan_to_num(_numbers(t), 0.0, 0.0, 0.0).norm().item()


def _is_zero(t: torch.Tensor) -> bool:
    return _norm(t) <= _ZERO * t.numel() ** 0.5


def _only_roundings(result: torch.Tensor, reference: torch.Tensor) -> bool:
    """Return True if the error is as large as the reference, or the reference is zero."""
    found = error(result, reference)
    return found < float("inf") and (found >= 1 or _is_zero(reference))


def tolerance(dtype: torch.dtype, *tensors: torch.Tensor) -> float:
    """Return the tolerance of the coarsest type: the program's, and those of results."""
    return max(ROUNDING.get(d, 0.0) for d in (dtype, *(t.dtype for t in tensors))) or 1e-5


def good(ours: Results, reference: Results, dtype: torch.dtype) -> bool:
    """Return True if no look at Inductor's is needed; integers and types are to be its own."""
    return len(ours) == len(reference) and all(_good(o, r, dtype) for o, r in zip(ours, reference, strict=True))


def _good(our: torch.Tensor, reference: torch.Tensor, dtype: torch.dtype) -> bool:
    if is_inexact(our) and is_inexact(reference):
        return error(our, reference) <= tolerance(dtype, our)
    return our.shape == reference.shape and torch.equal(our.cpu(), reference.cpu().to(our.dtype))


def problem(
    ours: Results,
    theirs: Results,
    reference: Results,
    nudged: Callable[[], Sequence[Results]],
    dtype: torch.dtype,
    terms: int = 1,
) -> str | None:
    """Return what is worse than Inductor's in the first result that is.

    nudged: the reference for numbers that differ in their last bits, asked for where something seems worse: where they
    move a result, as a comparison does that falls the other way, neither is wrong; terms: of the longest sum.
    """
    if len(ours) != len(theirs):
        return f"{len(ours)} results for {len(theirs)}"
    for i, (our, their, expected) in enumerate(zip(ours, theirs, reference, strict=True)):
        fault = _differs(our, their)
        if fault is None and _inaccurate(our, their, expected, dtype, 0.0):
            moved = _moved([result[i] for result in nudged()], expected, terms)
            fault = _inaccurate(our, their, expected, dtype, 2 * moved)
        if fault:
            return f"result {i}: {fault}"
    return None


def _differs(our: torch.Tensor, their: torch.Tensor) -> str | None:
    """Return how types, shapes or strides differ; None if they do not."""
    what = [(t.dtype, tuple(t.shape), _strides(t)) for t in (our, their)]
    return None if what[0] == what[1] else f"{what[0]} for {what[1]}"


def _strides(t: torch.Tensor) -> list[int]:
    return [stride for size, stride in zip(t.shape, t.stride(), strict=True) if size > 1] if t.numel() else []


def _moved(nudged: Sequence[torch.Tensor], expected: torch.Tensor, terms: int) -> float:
    """Return the largest error of those that were nudged; of integers, the part that any of them moves.

    Where it is as large as the result, nothing is left but roundings: of the difference of a row of equal numbers and
    their mean, say. A GPU may add a row's terms one after the other, and round, in the same direction, at each.
    """
    if not is_inexact(expected):
        if any(t.shape != expected.shape for t in nudged):
            return 1.0
        differ = [t.cpu() != expected.cpu() for t in nudged if t.numel()]
        return torch.stack(differ).any(0).double().mean().item() if differ else 0.0
    moved = max((error(t, expected) for t in nudged), default=0.0)
    return moved * terms if any(_only_roundings(t, expected) for t in nudged) else moved


def roundings(results: Results, reference: Results) -> Results:
    """Return the results of which only roundings are left, and the reference in the places of others."""
    pairs = list(zip(results, reference, strict=True))
    return [ours if is_inexact(r) and _only_roundings(ours, r) else r for ours, r in pairs]


def _differing(result: torch.Tensor, other: torch.Tensor) -> int:
    if result.shape != other.shape:
        return result.numel()
    return int((result.cpu() != other.cpu().to(result.dtype)).sum())


def _inaccurate(
    our: torch.Tensor, their: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype, allowed: float
) -> str | None:
    """Return how our error is worse than Inductor's; None if it is not.

    allowed: an error, or a part of integers, that needs no excuse.
    """
    if not is_inexact(our) or not is_inexact(expected):
        return _far(our, their, expected, allowed)
    error_ours, error_theirs = error(our, expected), error(their, expected)
    if error_ours <= max(tolerance(dtype, our), allowed):
        return None
    if error_theirs > 100 * tolerance(dtype, our):  # Not what eager computes in float64: Inductor alone can judge.
        error_ours, error_theirs = error(our, their), 0.0
        allowed *= _size(expected) / _size(their)
    if error_ours <= max(tolerance(dtype, our), WORSE * error_theirs, allowed):
        return None
    return f"error {error_ours:.2e}, Inductor's {error_theirs:.2e}"


def _far(our: torch.Tensor, their: torch.Tensor, expected: torch.Tensor, allowed: float) -> str | None:
    """Return how integers differ from Inductor's; None where no fewer are the reference's than Inductor has."""
    differ = _differing(our, their)
    if not differ or _differing(our, expected) <= max(_differing(their, expected), allowed * our.numel()):
        return None
    return f"{differ} of {our.numel()} {our.dtype} are not Inductor's, of which {_differing(their, expected)} differ"
