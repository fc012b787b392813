"""Test what a program may hold besides loops.

It is compiled as Inductor does, and what stands around it still fuses.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from emitted import emitted_for, run_emitted
from functions import gate, norm
from torch._subclasses import FakeTensorMode
from torch.library import custom_op, triton_op, wrap_triton

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason


def sample(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@triton.jit
def _twice(x, out, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + i, tl.load(x + i, i < n) * 2, i < n)


@triton_op("bridge_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(_twice)[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), block=64)
    return out


@custom_op("bridge_test::add_one", mutates_args={"x"})
def add_one(x: torch.Tensor) -> None:
    x.add_(1)


@custom_op("bridge_test::reverse", mutates_args=())
def reverse(x: torch.Tensor) -> torch.Tensor:
    return x.flip(0).contiguous()


@reverse.register_fake
def _(x):
    return torch.empty_like(x)


@custom_op("bridge_test::positive_rows", mutates_args=())
def positive_rows(x: torch.Tensor) -> torch.Tensor:
    return x[x[:, 0] > -1].clone()


@positive_rows.register_fake
def _(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(), x.shape[1])


class TestUsersTritonKernels:
    def test_fusion_on_both_sides(self):
        """Check that kernels before and after a custom kernel fuse; its buffer has another name for its readers."""

        def fn(x):
            return gate(twice(gate(x)))

        result = offline.compile_for_gpu(fn, [sample(8, 64)], compile_fx=bridge_backend)
        assert [name.startswith("triton_") for name in result.launches] == [True, False, True]
        assert len(bridge.report().fused) >= 2

    def test_reader_of_what_is_overwritten(self):
        """Check that a kernel before and one after a write to a buffer, which both read, stay on their sides of it."""

        def fn(x):
            y = gate(x)
            before = gate(y)
            z = twice(y)
            return before, gate(z), gate(y)

        theirs = offline.compile_for_gpu(fn, [sample(8, 64)])
        ours = offline.compile_for_gpu(fn, [sample(8, 64)], compile_fx=bridge_backend)
        assert ours.n_kernels < theirs.n_kernels
        assert sum("twice" in name for name in ours.launches) == sum("twice" in name for name in theirs.launches)


def with_custom_op(x):
    return gate(reverse(gate(x)))


def with_writing_op(x):
    y = gate(x)
    add_one(y)
    return gate(y), y


def with_complex(x):
    return gate(torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * (1 + 2j)).flatten(-2))


def with_index_put(x):
    y = gate(x)
    index = torch.tensor([1, 3, 1], device=x.device)
    return gate(y.index_put((index,), x[:3, : y.shape[1]], accumulate=True))


def with_assertion(x):
    torch._assert_async(x.sum() < 1e6)
    return gate(x)


def with_rows_that_depend_on_data(x):
    return gate(positive_rows(x))


def with_length_that_depends_on_data(x):
    columns = positive_rows(x).t().contiguous()
    n = columns.shape[1]
    torch._check(n >= 2)
    # No slices: Inductor of torch 2.11 cannot lower them where their length depends on data.
    first, second = norm(torch.cat([columns, columns.cos()], -1)).unflatten(-1, (2, n)).unbind(1)
    return first * second


ON_CPU = [
    with_custom_op,
    with_writing_op,
    with_complex,
    with_index_put,
    with_rows_that_depend_on_data,
    with_length_that_depends_on_data,
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("fn", ON_CPU, ids=lambda fn: fn.__name__)
def test_cpu(fn, compiler):
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        results = compiler(fn, backend="bridge", fullgraph=True)(sample(8, 64))
    assert bridge.report().fused, bridge.report()
    expected = fn(sample(8, 64).double()) if fn is not with_complex else fn(sample(8, 64))
    for one, other in zip(as_tuple(results), as_tuple(expected), strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-4, atol=1e-5)


def as_tuple(results):
    return (results,) if isinstance(results, torch.Tensor) else results


def scan(x):
    return torch.cumsum(x, 0)


def scattered(x):
    index = (torch.arange(x.shape[1], device=x.device) * 7 % x.shape[1]).expand(x.shape[0], -1)
    return torch.zeros_like(x).scatter_add(1, index, x)


def gathered(x):
    index = x.argmax(-1, keepdim=True).expand(-1, x.shape[1])
    return torch.gather(x, 1, index) + x


def sorted_rows(x):
    return torch.sort(x, -1)[0]


def mapped(x):
    return torch.vmap(lambda row: F.pad(gate(row.unsqueeze(0)), (0, row.shape[0] // 2)).squeeze(0))(x)


#: What stands between two functions that are fused, and why they are not, where they are not.
BETWEEN = [
    (scan, None),
    (scattered, None),
    (gathered, None),
    (sorted_rows, Reason.node_not_loops),
    (mapped, None),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("between, reason", BETWEEN, ids=lambda value: getattr(value, "__name__", ""))
def test_gpu_results(between, reason):
    """Check results of the emitted kernels in Triton's interpreter; test_beside.py counts the kernels."""

    def fn(x):
        return gate(between(gate(x)))

    result, _ = run_emitted(fn, [sample(5, 64)], bridge_backend)
    report = bridge.report()
    assert bool(report.fused) == (reason is None), report
    assert reason is None or reason in [*(g.reason for g in report.groups), *(r.reason for r in report.refusals)]
    torch.testing.assert_close(result.double(), fn(sample(5, 64).double()), rtol=1e-4, atol=1e-5)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("fallback", [False, True], ids=["inductor", "eager"])
def test_random_numbers_are_inductors(fallback, compiler):
    def fn(x):
        return gate(F.dropout(gate(x), 0.5, training=True) + torch.rand_like(x[:, : x.shape[1] // 2]))

    def run(backend):
        torch._dynamo.reset()
        torch.manual_seed(3)
        return compiler(fn, backend=backend)(sample(8, 64))

    with torch._inductor.config.patch(fallback_random=fallback):
        ours, theirs = run("bridge"), run("inductor")
    torch.testing.assert_close(ours, theirs)
    assert (ours == 0).any() == (theirs == 0).any()


@pytest.mark.in_turn(2)
def test_autocast(compiler):
    weight = sample(64, 64)

    def fn(x):
        with torch.autocast("cpu", torch.bfloat16):
            return gate(x @ weight)

    results = {backend: compiler(fn, backend=backend)(sample(8, 64)) for backend in ("inductor", "bridge")}
    assert bridge.report().fused
    assert results["bridge"].dtype == torch.bfloat16
    torch.testing.assert_close(results["bridge"], results["inductor"], rtol=2**-7, atol=2**-7)


def test_graph_breaks(compiler):
    def fn(x):
        y = gate(x)
        print(end="")
        return gate(y) + float(y.sum() > 1e9)

    torch.testing.assert_close(compiler(fn, backend="bridge")(sample(8, 64)), fn(sample(8, 64)))
    assert torch._dynamo.utils.counters["bridge"]["groups_fused"] == 2


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD], ids=lambda kind: kind.__name__)
def test_foreach_optimizers(kind, compiler):
    def steps(compile_step):
        torch.manual_seed(0)
        parameters = [torch.nn.Parameter(sample(n, 8)) for n in (3, 5)]
        optimizer = kind(parameters, lr=0.1, foreach=True, **({"momentum": 0.9} if kind is torch.optim.SGD else {}))
        step = compile_step(optimizer.step)
        for _ in range(2):
            for parameter in parameters:
                parameter.grad = parameter.detach().sin()
            step()
        return [p.detach() for p in parameters]

    for ours, expected in zip(steps(lambda s: compiler(s, backend="bridge")), steps(lambda s: s), strict=True):
        torch.testing.assert_close(ours, expected)


@pytest.fixture
def process_group():
    import torch.distributed as dist

    if not dist.is_available():
        pytest.skip("torch without distributed")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_collectives(compiler, process_group):
    from torch.distributed import _functional_collectives as collectives

    def fn(x):
        return gate(collectives.all_reduce(gate(x), "sum", process_group))

    torch.testing.assert_close(compiler(fn, backend="bridge", fullgraph=True)(sample(8, 64)), gate(gate(sample(8, 64))))
    assert bridge.report().fused


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_two_devices_in_one_graph(compiler):
    def fn(x, y):
        return gate(x).cpu() + gate(y)

    result = compiler(fn, backend="bridge")(sample(8, 64).cuda(), sample(8, 64))
    torch.testing.assert_close(result, 2 * gate(sample(8, 64)))
    assert len(bridge.report().fused) == 2


class _Emitted(Exception):
    """Stand for the end of a compilation: it is raised instead of running the emitted code."""


def emitted_for_rows(rows, dynamic):
    """Return the code of the one kernel for that many rows of 2^13 elements, without allocating them."""
    codes: list[Any] = []

    def emit(gm, inputs):
        bridge_backend(gm, inputs)
        raise _Emitted

    with FakeTensorMode(allow_non_fake_inputs=True):
        x = torch.empty(rows, 8192, dtype=torch.bfloat16)
    if dynamic:
        torch._dynamo.mark_dynamic(x, 0)
    with emitted_for("sm_90", codes), pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="_Emitted"):
        torch.compile(gate, backend=emit, dynamic=None if dynamic else False)(x)
    assert bridge.report().fused and codes[0].count(".run(") == 1
    return codes[0]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("rows, wide", [(1 << 15, False), (1 << 20, True)], ids=["2^28 elements", "2^33 elements"])
def test_index_type(rows, wide, dynamic):
    """Check that addresses have 64 bits where 32 do not suffice, and only there."""
    assert ("tl.program_id(0).to(tl.int64)" in emitted_for_rows(rows, dynamic)) == wide


def test_index_type_of_a_small_result():
    """Check that addresses have 64 bits for few rows that are far apart in memory, though the result is small."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        x = torch.empty(1 << 20, 8192, dtype=torch.bfloat16)[:: 1 << 18]
    (kernel,) = offline.compile_for_gpu(gate, [x], compile_fx=bridge_backend).kernels
    assert "tl.program_id(0).to(tl.int64)" in kernel.source
