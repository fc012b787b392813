"""Test the benchmarks' patterns.

Kernels for a GPU that is not there, numerics of the Triton and of the C++ code, loads.
"""

from __future__ import annotations

import math

import pytest
import torch
from emitted import emitted_for, run_emitted
from emitted_claims import wrong_claims
from fuzz import ROUNDING, error
from interpreted_loads import recorded_loads
from kernel_counts import chosen_lists
from patterns import ROWS, TESTED, Pattern

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.diagnostics.recording import recorded
from bridge.inductor.compiling import torch_release
from bridge.support.fresh_code import fresh_entry

DRAWS = 4

#: Rows at full width for loads to be counted: the interpreter is slow.
LOAD_ROWS = 2

#: One row of these is thousands; they are short anyway.
LOADS_AT_SMALL_SIZE = {
    "layernorm_roll_windows",
    "softmax_padded_rows",
    "layernorm_rolled",
    "rmsnorm_heads_transposed",
    "rmsnorm_repeated_heads",
    "layernorm_channels_first",
    "silu_fp8_square_blocks",
}

#: Batches of the patterns whose rows have further dimensions.
CPU_ROWS = {
    "layernorm_roll_windows": 16,
    "layernorm_padded_windows": 16,
    "layernorm_rolled": 64,
    "layernorm_token_mean": 64,
    "groupnorm_silu": 64,
    "rmsnorm_heads_transposed": 128,
    "rmsnorm_repeated_heads": 32,
    "layernorm_channels_first": 64,
    "silu_fp8_square_blocks": 256,
}

every_pattern = pytest.mark.parametrize("pattern", TESTED, ids=lambda pattern: pattern.name)


def compile_offline(pattern: Pattern, dynamic: bool, backend=None) -> offline.OfflineResult:
    inputs = pattern.make(None, torch.bfloat16, "cpu")
    if dynamic:
        pattern.mark_dynamic_rows(inputs)
    return offline.compile_for_gpu(pattern.function, inputs, compile_fx=backend, dynamic=None if dynamic else False)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@every_pattern
def test_gpu_kernels(pattern, dynamic):
    """Check that each pattern has as many kernels as its list says, and that the report claims what is in the code.

    Fewer are progress, to be written down there, and more a regression.
    """
    if dynamic and not pattern.dynamic:
        pytest.skip("its rows are static")
    inductor = compile_offline(pattern, dynamic).n_kernels
    assert inductor <= pattern.inductor
    # A newer Inductor may have fused by itself what Bridge does not.
    with recorded() as recording:
        result = compile_offline(pattern, dynamic, bridge_backend)
    assert result.n_kernels == min(pattern.reached, inductor)
    assert wrong_claims(bridge.report(), [graph.code for graph in result.graphs], recording.kernels) == []


def test_the_list_says_what_is_open():
    assert all(pattern.bridge <= pattern.reached <= pattern.inductor for pattern in TESTED)


def draws(pattern: Pattern, dtype: torch.dtype, rows: int | None) -> list[list[torch.Tensor]]:
    torch.manual_seed(0)
    return [pattern.make(rows, dtype, "cpu", small=True) for _ in range(DRAWS)]


def outputs(result) -> list[torch.Tensor]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def results(pattern: Pattern, backend, sets: list[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
    """Return the outputs for every set of inputs, of one compilation."""
    torch._dynamo.reset()
    compiled = torch.compile(fresh_entry(pattern.function), backend=backend, dynamic=False)
    with torch.no_grad():
        return [outputs(compiled(*inputs)) for inputs in sets]


def levels(tensor: torch.Tensor) -> torch.Tensor:
    """Return quantised values as integers whose difference counts steps."""
    if not tensor.is_floating_point():
        return tensor.long()
    bits = tensor.view(torch.int8).long()
    return torch.where(bits < 0, -(bits & 127), bits)


def assert_ties_at_most(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Check that quantised values are equal but where rounding was a tie, up to the last bits of the value."""
    steps = (levels(ours) - levels(theirs)).abs()
    assert steps.max() <= 1
    assert (steps != 0).double().mean() <= 0.01


def assert_error_is_inductors(ours: tuple, theirs: tuple, references: tuple, dtype: torch.dtype) -> None:
    """Check one output over all draws: the geometric mean of the ratios of errors is about 1.05 at most."""
    negligible, ratios = 1e-3 * torch.finfo(dtype).eps, []
    for our, their, expected in zip(ours, theirs, references, strict=True):
        error_ours, error_theirs = error(our, expected), error(their, expected)
        assert error_ours <= ROUNDING[dtype]
        ratios.append((error_ours + negligible) / (error_theirs + negligible))
    assert math.prod(ratios) ** (1 / len(ratios)) <= 1.05 + spread(ours)


def spread(results: tuple[torch.Tensor, ...]) -> float:
    """Return how far the ratio of errors of two equally good float32 results is from 1 by chance.

    A row has one error, that of its statistic; in 16 bits the rounding of each element is larger.
    """
    if results[0].itemsize < 4:
        return 0.0
    rows = sum(t.numel() // t.shape[-1] if t.dim() else 1 for t in results)
    return 3 / math.sqrt(rows)


def check_numerics(pattern: Pattern, dtype: torch.dtype, rows: int | None = None) -> None:
    sets = draws(pattern, dtype, rows)
    ours, theirs = (results(pattern, backend, sets) for backend in (bridge_backend, "inductor"))
    references = [outputs(pattern.function(*[t.double() for t in inputs])) for inputs in sets]
    for our, their, expected in zip(zip(*ours), zip(*theirs), zip(*references), strict=True):
        if expected[0].is_floating_point() and expected[0].itemsize > 1:
            assert_error_is_inductors(our, their, expected, dtype)
        else:
            for one, other in zip(our, their, strict=True):
                assert_ties_at_most(one, other)


@pytest.mark.one_in(15)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@every_pattern
def test_gpu_numerics(pattern, dtype):
    """Check the numerics of the code emitted for a GPU, in Triton's interpreter."""
    with emitted_for("sm_90", []):
        check_numerics(pattern, dtype)


@pytest.mark.one_in(6)
@every_pattern
def test_cpu_numerics(pattern, compiler):
    """Check the numerics of the C++ code, over so many rows that chance does not explain a larger error."""
    check_numerics(pattern, torch.float32, rows=CPU_ROWS.get(pattern.name, 1024))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("pattern", [p for p in TESTED if p.loads_once], ids=lambda pattern: pattern.name)
def test_gpu_loads_no_element_twice(pattern):
    """Check at full width that no element is loaded twice.

    A kernel without room for a row in registers would load the row again.
    """
    if pattern.name == "rmsnorm_fp8_blocks" and torch_release() >= (2, 15):
        pytest.skip("one kernel of Inductor's, in stages, which loads its row twice")
    small = pattern.name in LOADS_AT_SMALL_SIZE
    inputs = pattern.make(None if small else LOAD_ROWS, torch.bfloat16, "cpu", small)
    with recorded_loads() as loads:
        run_emitted(pattern.function, inputs, bridge_backend)
    for tensor, shape in zip(inputs, pattern.full.shapes, strict=True):
        assert loads.most_often(tensor) == 1
        if shape[0] == ROWS:
            assert loads.elements(tensor) == tensor.numel()


def test_without_a_list_the_patterns_of_the_engine_are_counted():
    assert chosen_lists([]) == ["engine"]
    assert chosen_lists(["widths", "orders"]) == ["widths", "orders"]
