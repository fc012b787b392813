"""Test functional collectives.

Barriers that no group crosses, which stay in their order, with ordinary groups between them.

Two processes compute with gloo; the wrappers are of one process that has a group without communication.
"""

from __future__ import annotations

import re

import processes
import pytest
import torch
from functions import gate, norm

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend

dist = pytest.importorskip("torch.distributed")
if not dist.is_available():
    pytest.skip("torch without distributed", allow_module_level=True)

#: Collectives and waits in a wrapper.
CALL = re.compile(r"_c10d_functional\.(\w+)\.default\(")


@pytest.fixture(scope="module")
def group():
    """Yield a group of two processes, of which this process is one; nothing is sent."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield dist.group.WORLD
    dist.destroy_process_group()


def collectives():
    from torch.distributed import _functional_collectives

    return _functional_collectives


def sharded_mlp(x, up, down, residual):
    """Compute the second half of a layer in tensor parallelism, then the next layer's norm with its rows in 8 bits."""
    y = collectives().all_reduce(torch.relu(x @ up) @ down, "sum", dist.group.WORLD)
    residual = residual + y
    first, second = norm(residual.float()).to(x.dtype).chunk(2, -1)
    gated = torch.nn.functional.silu(first) * second
    scale = gated.abs().amax(-1, keepdim=True) / 127
    return residual, torch.round(gated / scale).to(torch.int8), scale


def three_collectives(x, y, z):
    """Call each of the three collectives between two kernels that Bridge fuses."""
    reduced = collectives().all_reduce(gate(x), "sum", dist.group.WORLD)
    scattered = collectives().reduce_scatter_tensor(gate(y), "sum", 0, dist.group.WORLD)
    gathered = collectives().all_gather_tensor(gate(z), 0, dist.group.WORLD)
    return gate(reduced), gate(scattered), gate(gathered)


def crossed(x, y):
    """Call two collectives of which the second does not wait: a kernel of the code around both would reorder them."""
    mean = x.pow(2).mean(-1, keepdim=True)
    first = collectives().all_reduce(mean, "sum", dist.group.WORLD)
    second = collectives().all_reduce(y, "sum", dist.group.WORLD)
    a, b = x.chunk(2, -1)
    return first, torch.sigmoid(a * mean) * b + second


INPUTS = {
    sharded_mlp: ((1024, 2048), (2048, 8192), (8192, 2048), (1024, 2048)),
    three_collectives: ((1024, 2048), (1024, 2048), (1024, 2048)),
    crossed: ((1024, 2048), (1024, 1024)),
}


def wrapper(fn, compile_fx=None):
    """Return the wrapper for a GPU, compiled where there is none."""
    inputs = [torch.randn(size, dtype=torch.bfloat16) for size in INPUTS[fn]]
    return offline.compile_for_gpu(fn, inputs, compile_fx=compile_fx).code


@pytest.mark.parametrize("fn", INPUTS, ids=lambda fn: fn.__name__)
def test_collectives_stay_in_their_order(fn, group):
    calls, expected = (CALL.findall(wrapper(fn, compile_fx)) for compile_fx in (bridge_backend, None))
    assert calls == expected
    assert calls.count("wait_tensor") == len(calls) / 2 >= 1


def test_no_group_crosses_a_collective(group):
    """Check that no group has kernels from both sides of a collective, and that each side is fused."""
    wrapper(three_collectives, bridge_backend)
    report = bridge.report()
    assert len(report.fused) == 6
    assert {refusal.reason for refusal in report.refusals} == {bridge.Reason.extern_kernel}


def test_what_follows_a_collective_is_an_ordinary_group(group):
    """Check that the residual, the norm, the gate and the quantisation are one kernel; Inductor has two."""
    codes = [wrapper(sharded_mlp, compile_fx) for compile_fx in (bridge_backend, None)]
    followed = [code[code.rindex("_c10d_functional.wait_tensor.default(") :] for code in codes]
    assert [code.count(".run(") for code in followed] == [1, 2]


@pytest.mark.in_turn(3)
def test_two_processes(inductor_cache):
    """Check that each rank's results with Bridge are those of eager."""
    code = """
        from torch.distributed import _functional_collectives as collectives
        from functions import gate
        import bridge
        from bridge.backend import bridge as backend

        group = dist.group.WORLD

        def fn(x):
            scattered = collectives.reduce_scatter_tensor(x, "sum", 0, group)
            gathered = collectives.all_gather_tensor(scattered, 0, group)
            return gate(gathered + collectives.all_reduce(x, "sum", group)), gathered

        torch.manual_seed(dist.get_rank())
        x = torch.randn(8, 64)
        with torch.no_grad():
            torch.testing.assert_close(torch.compile(fn, backend=backend, fullgraph=True)(x), fn(x))
        assert len(bridge.report().fused) == 1, bridge.report().details()
        print("equal")
    """
    assert processes.run_ranks(code) == ["equal\n", "equal\n"]
