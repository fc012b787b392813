"""Whether results are as good as Inductor's: errors against eager in float64, types, shapes and strides."""

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

Results = Sequence[torch.Tensor]


def is_inexact(t: torch.Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def _numbers(t: torch.Tensor) -> torch.Tensor:
    t = torch.view_as_real(t.resolve_conj().to(torch.complex128)) if t.is_complex() else t
    return t.detach().cpu().double()


def error(result: torch.Tensor, reference: torch.Tensor) -> float:
    """Relative error; infinite where one is finite or a number and the other is not."""
    if result.shape != reference.shape or result.is_complex() != reference.is_complex():
        return float("inf")
    got, expected = _numbers(result), _numbers(reference)
    if not torch.equal(got.isfinite(), expected.isfinite()) or not torch.equal(got.isnan(), expected.isnan()):
        return float("inf")
    got, expected = (torch.nan_to_num(t, 0.0, 0.0, 0.0) for t in (got, expected))
    return ((got - expected).norm() / expected.norm().clamp_min(1e-30)).item()


def tolerance(dtype: torch.dtype, *tensors: torch.Tensor) -> float:
    """Of the coarsest type: the program's, and those of results."""
    return max(ROUNDING.get(d, 0.0) for d in (dtype, *(t.dtype for t in tensors))) or 1e-5


def good(ours: Results, reference: Results, dtype: torch.dtype) -> bool:
    """Whether no look at Inductor's is needed; integers and types are to be its own."""
    return len(ours) == len(reference) and all(_good(o, r, dtype) for o, r in zip(ours, reference, strict=True))


def _good(our: torch.Tensor, reference: torch.Tensor, dtype: torch.dtype) -> bool:
    if is_inexact(our) and is_inexact(reference):
        return error(our, reference) <= tolerance(dtype, our)
    return our.shape == reference.shape and torch.equal(our.cpu(), reference.cpu().to(our.dtype))


def problem(
    ours: Results, theirs: Results, reference: Results, nudged: Callable[[], Sequence[Results]], dtype: torch.dtype
) -> str | None:
    """What is worse than Inductor's in the first result that is.

    nudged: the reference for inputs that differ in their last bits, asked for where something seems worse: where they
    move a result, as a comparison does that falls the other way, neither is wrong.
    """
    if len(ours) != len(theirs):
        return f"{len(ours)} results for {len(theirs)}"
    for i, (our, their, expected) in enumerate(zip(ours, theirs, reference, strict=True)):
        fault = _differs(our, their)
        if fault is None and _inaccurate(our, their, expected, dtype, 0.0):
            moved = max((_distance(result[i], expected) for result in nudged()), default=0.0)
            fault = _inaccurate(our, their, expected, dtype, 2 * moved)
        if fault:
            return f"result {i}: {fault}"
    return None


def _differs(our: torch.Tensor, their: torch.Tensor) -> str | None:
    """In what is not numbers."""
    what = [(t.dtype, tuple(t.shape), _strides(t)) for t in (our, their)]
    return None if what[0] == what[1] else f"{what[0]} for {what[1]}"


def _strides(t: torch.Tensor) -> list[int]:
    return [stride for size, stride in zip(t.shape, t.stride(), strict=True) if size > 1] if t.numel() else []


def _distance(result: torch.Tensor, other: torch.Tensor) -> float:
    """An error, or the part of integers that differ."""
    if is_inexact(result) and is_inexact(other):
        return error(result, other)
    return _differing(result, other) / max(result.numel(), 1)


def _differing(result: torch.Tensor, other: torch.Tensor) -> int:
    if result.shape != other.shape:
        return result.numel()
    return int((result.cpu() != other.cpu().to(result.dtype)).sum())


def _inaccurate(
    our: torch.Tensor, their: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype, allowed: float
) -> str | None:
    """allowed: an error, or a part of integers, that needs no excuse."""
    if not is_inexact(our) or not is_inexact(expected):
        return _far(our, their, expected, allowed)
    error_ours, error_theirs = error(our, expected), error(their, expected)
    if error_theirs > 100 * tolerance(dtype, our):  # Not what eager computes in float64: Inductor alone can judge.
        error_ours, error_theirs = error(our, their), 0.0
    if error_ours <= max(tolerance(dtype, our), WORSE * error_theirs, allowed):
        return None
    return f"error {error_ours:.2e}, Inductor's {error_theirs:.2e}"


def _far(our: torch.Tensor, their: torch.Tensor, expected: torch.Tensor, allowed: float) -> str | None:
    """Where fewer integers are the reference's than Inductor has, or than its own where that has others."""
    differ = _differing(our, their)
    if not differ or _differing(our, expected) <= max(_differing(their, expected), allowed * our.numel()):
        return None
    return f"{differ} of {our.numel()} {our.dtype} are not Inductor's, of which {_differing(their, expected)} differ"
