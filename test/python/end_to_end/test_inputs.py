"""Test inputs of every kind: how they lie in memory, what they share, how small or large they are, what they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from emitted import run_emitted
from functions import gate, norm
from interpreted_accesses import recorded_accesses

import bridge
from bridge.backend import bridge as bridge_backend


def sample(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


@dataclass(frozen=True)
class Case:
    """Hold a function, which may overwrite its inputs, and its kernels for a GPU (None where it is not fused)."""

    function: Callable
    inputs: Callable[[], list[torch.Tensor]]
    kernels: int | None = 1


def write_into_input(x):
    x.mul_(2).add_(1)
    return gate(x)


def write_into_alias(x, y):
    """Overwrite x, which shares its storage with y, and then read y."""
    x.add_(1)
    return gate(y)


def write_into_slice(x):
    y = norm(x)
    y[:, :16] = y[:, 16:32] * 2
    first, second = y.chunk(2, -1)
    return first * second


def write_output_into_input(x):
    x[:, :32] = gate(x)
    return x.sum(-1)


def views_of_views(x):
    y = norm(x.view(4, 2, 64).transpose(0, 1).unsqueeze(1).expand(2, 3, 4, 64))
    first, second = y.permute(1, 0, 2, 3).chunk(2, -1)
    return torch.sigmoid(first) * second


def flipped(x):
    first, second = norm(x.flip(-1)).flip(-1).chunk(2, -1)
    return first.flip(-1) * second


def other_rows(x):
    """Compute each row of the result from another row of the input."""
    first, second = norm(x).flip(0).chunk(2, -1)
    return first * second


def overlapping_windows(x):
    return gate(x.unfold(-1, 32, 8))


def aliased_outputs(x):
    y = gate(x)
    return y, y[:, 1:], y.t()


def of_scalar(x, scale):
    return gate(x * scale), scale * 2


def without_dimensions(x):
    return gate(x).sum()


def whole_to_float(x):
    first, second = norm(x.float()).chunk(2, -1)
    return (first * second * 8).to(torch.int8)


def truth(x):
    found = (x & x.roll(1, -1)).any(-1, keepdim=True)
    first, second = (x ^ found).chunk(2, -1)
    return first | second


def of_eighths(x):
    first, second = norm(x.float()).chunk(2, -1)
    return (first * second).to(torch.float8_e4m3fn).float()


def largest(x):
    """Subtract the maximum of each row and add its sum, in integers, which are exact in any order."""
    y = x - x.amax(-1, keepdim=True) + x.sum(-1, keepdim=True)
    first, second = y.chunk(2, -1)
    return first * second


def whole_bytes(*shape):
    return sample(*shape).abs().mul(60).to(torch.uint8)


def unsigned_of_one_column(x, y):
    """Subtract `y` from a column less its own maximum: Inductor folds it to `0 - y`, unsigned, where 1 - 2 is 255."""
    first, second = norm(((x - x.amax(-1, keepdim=True)) - y).float()).chunk(2, -1)
    return torch.cat([second, first * 2], -1)


def aliases():
    x = sample(8, 64)
    return [x, x.view(4, 128)]


#: The fake device of the offline code generator has no copies into a slice.
NOT_EMITTED = {"write into alias", "write into slice", "write output into input"}

CASES = {
    "storage offset": Case(gate, lambda: [sample(9, 70)[1:, 3:67]]),
    "transposed": Case(gate, lambda: [sample(64, 8).t()]),
    "columns apart": Case(gate, lambda: [sample(8, 128)[:, ::2]]),
    "expanded rows": Case(gate, lambda: [sample(64).expand(8, 64)]),
    "expanded columns": Case(gate, lambda: [sample(8, 1).expand(8, 64)]),
    "overlapping": Case(gate, lambda: [torch.as_strided(sample(600), (8, 64), (24, 1))]),
    "views of views": Case(views_of_views, lambda: [sample(8, 64)]),
    "flipped": Case(flipped, lambda: [sample(8, 64)]),
    "other rows": Case(other_rows, lambda: [sample(8, 64)]),
    "windows": Case(overlapping_windows, lambda: [sample(3, 64)]),
    "one tensor twice": Case(lambda x, y: gate(x + y), lambda: [sample(8, 64)] * 2),
    "aliased outputs": Case(aliased_outputs, lambda: [sample(8, 64)]),
    "0-d": Case(of_scalar, lambda: [sample(8, 64), torch.tensor(1.5)]),
    "0-d result": Case(without_dimensions, lambda: [sample(8, 64)], kernels=None),
    "one row": Case(gate, lambda: [sample(1, 64)]),
    "one column each": Case(gate, lambda: [sample(8, 2)], kernels=None),
    "one of all": Case(gate, lambda: [sample(1, 2)], kernels=None),
    "no rows": Case(gate, lambda: [sample(0, 64)], kernels=None),
    "no columns": Case(gate, lambda: [sample(8, 0)], kernels=None),
    "int8": Case(whole_to_float, lambda: [sample(8, 64).mul(40).to(torch.int8)]),
    "uint8": Case(whole_to_float, lambda: [sample(8, 64).abs().mul(40).to(torch.uint8)]),
    "unsigned zero": Case(unsigned_of_one_column, lambda: [whole_bytes(8, 1), whole_bytes(8, 64)]),
    "int64": Case(largest, lambda: [sample(8, 64).mul(1000).to(torch.int64)]),
    "bool": Case(truth, lambda: [sample(8, 64) > 0]),
    "fp8": Case(of_eighths, lambda: [sample(8, 64).to(torch.float8_e4m3fn)]),
    "float64": Case(gate, lambda: [sample(8, 64, dtype=torch.float64)]),
    "write into input": Case(write_into_input, lambda: [sample(8, 64)]),
    "write into alias": Case(write_into_alias, aliases),
    "write into slice": Case(write_into_slice, lambda: [sample(8, 64)]),
    "write output into input": Case(write_output_into_input, lambda: [sample(8, 64)]),
}


def outcome(function, inputs):
    """Return results and then the inputs after the call as one list; floating point in float64."""
    results = function(*inputs)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    return [t.double() if t.is_floating_point() else t.clone() for t in [*results, *inputs]]


def expected_of(case):
    """Return the outcome of a case in float64, computed from the very values of its inputs."""
    return outcome(case.function, widened(case.inputs()))


def widened(tensors):
    """Return float32 tensors in float64, with storages that are shared as theirs are; others as they are."""
    storages: dict[Any, Any] = {}
    for t in tensors:
        whole = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage())
        storages.setdefault(t.untyped_storage().data_ptr(), whole.double() if t.dtype == torch.float32 else whole)
    wide = [storages[t.untyped_storage().data_ptr()] for t in tensors]
    return [s.as_strided(t.shape, t.stride(), t.storage_offset()) for s, t in zip(wide, tensors, strict=True)]


def assert_same(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        # What is cast to fewer bits may fall to either side.
        coarse = not one.is_floating_point() and other.dtype == torch.int8
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1 if coarse else 1e-5)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [name for name in CASES if name not in NOT_EMITTED])
def test_gpu(name):
    """Check results and number of the emitted kernels, in Triton's interpreter."""
    case = CASES[name]
    inputs = case.inputs()
    results, codes = run_emitted(case.function, inputs, bridge_backend)
    fused = any(group.fused for group in bridge.report().groups)
    assert fused == (case.kernels is not None), bridge.report()
    if fused:
        assert sum(code.count(".run(") for code in codes) == case.kernels
    assert_same(outcome(lambda *_: results, inputs), expected_of(case))


#: What C++ may treat otherwise than Triton: writes, storages that are shared, and where there is little or nothing.
ON_CPU = NOT_EMITTED | {
    "write into input",
    "aliased outputs",
    "overlapping",
    "0-d",
    "one of all",
    "no rows",
    "unsigned zero",
    "bool",
    "fp8",
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", sorted(ON_CPU))
def test_cpu(name, compiler):
    case = CASES[name]
    inputs = case.inputs()
    assert_same(outcome(compiler(case.function, backend="bridge", dynamic=False), inputs), expected_of(case))


def test_columns_of_a_wider_tensor_are_not_read_behind_its_end():
    """Check that columns of a wider tensor are not read beyond its end.

    Lanes beyond their length read what follows in the wider row, and after the last row nothing follows.
    """

    def less_maximum(x, part):
        maximum = x.amax(-1, keepdim=True)
        return x - maximum, part - maximum

    given = [sample(2, 24), sample(2, 24)[:, 16:]]
    with recorded_accesses(whole=True) as touched:
        ours, _ = run_emitted(less_maximum, given, bridge_backend)
    assert bridge.report().fused
    assert not touched.outside()
    assert all(map(torch.equal, ours, less_maximum(*given)))
