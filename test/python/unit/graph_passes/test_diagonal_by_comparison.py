"""Test that a scatter into the diagonal of a constant is a comparison of rows and columns, without its own kernel."""

from __future__ import annotations

import pytest
import torch
from emitted import run_emitted
from training import graphs as both_graphs

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.offline.wrapper import parse_wrapper


def changed():
    return bridge.report().counters.get("scatter_by_comparison", 0)


def placed(shape, *diagonal, fill=0.0, dtype=torch.float32):
    """Return a function that places values in a diagonal of a constant, and its inputs."""

    def function(x, values):
        return torch.full_like(x, fill).diagonal_scatter(values, *diagonal) + 2 * x

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=generator).to(dtype)
    values = torch.randn(torch.diagonal(x, *diagonal).shape, generator=generator).to(dtype)
    return function, [x, values]


@pytest.mark.parametrize(
    "shape, diagonal",
    [((6, 6), ()), ((6, 9), ()), ((9, 6), ()), ((6, 9), (3,)), ((9, 6), (-3,)), ((4, 6, 6), (0, 1, 2))],
    ids=str,
)
@pytest.mark.parametrize("fill", [0.0, 1.0])
def test_one_kernel_with_the_same_values(shape, diagonal, fill):
    function, given = placed(shape, *diagonal, fill=fill)
    ours, codes = run_emitted(function, given, bridge_backend)
    assert changed() == 1
    assert len(parse_wrapper(codes[0]).launches) == 1
    torch.testing.assert_close(ours, function(*given))


@pytest.mark.parametrize("shape, diagonal", [((3, 5, 7), (0, 2, 0)), ((4, 3, 5, 6), (0, 1, 3))], ids=str)
def test_other_strides_of_the_result_stay(shape, diagonal):
    """Check that a result with other strides is not changed: its comparison would be transposed, too."""
    function, given = placed(shape, *diagonal, dtype=torch.bfloat16)
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 0
    torch.testing.assert_close(ours, function(*given))


def test_a_diagonal_beside_the_longest_stays():
    function, given = placed((6, 6), 1)
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 0
    torch.testing.assert_close(ours, function(*given))


@pytest.mark.parametrize("dtype", [torch.uint32, torch.float8_e4m3fn], ids=str)
def test_numbers_that_torch_does_not_promote_have_no_comparison_in_cpp(dtype, compiler):
    """Check that dtypes that torch does not promote are not compared.

    C++ had no code for it, and the graph was compiled a second time.
    """

    def function(values):
        return torch.diagonal_scatter(torch.zeros(8, 8, dtype=dtype), (values + 1).to(dtype)).to(torch.float32) * 2

    values = torch.arange(8.0)
    ours = compiler(function, backend="bridge")(values)
    assert changed() == 0 and bridge.report().counters.get("refused.internal_error", 0) == 0
    assert torch.equal(ours, function(values))


def test_a_tensor_is_stored_into():
    """Check that a diagonal of a tensor is stored: a comparison would move all of the tensor."""

    def function(x, values):
        return x.exp().diagonal_scatter(values)

    given = placed((6, 6))[1]
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 0
    torch.testing.assert_close(ours, function(*given))


def test_an_unknown_number_of_diagonals():
    function, given = placed((4, 6, 6), 0, 1, 2)
    for tensor in given:
        torch._dynamo.mark_dynamic(tensor, 0)
    ours, _ = run_emitted(function, given, bridge_backend, dynamic=None)
    assert changed() == 1
    torch.testing.assert_close(ours, function(*given))


def redundancy(c):
    """Compute the loss of Barlow Twins: its gradient adds a diagonal to what is as large as the matrix."""
    diagonal, wide = torch.diagonal(c).float(), c.float()
    return (diagonal - 1).pow(2).sum() + 0.005 * (wide.pow(2).sum() - diagonal.pow(2).sum())


def test_the_gradient_of_a_loss_of_the_diagonal_is_one_kernel():
    c = torch.empty(4096, 4096, dtype=torch.bfloat16).requires_grad_()
    launches = [
        len(parse_wrapper(both_graphs(redundancy, (c,), compile_fx)[1]).launches)
        for compile_fx in (torch._inductor.compile_fx.compile_fx, bridge_backend)
    ]
    assert launches == [3, 1]


def test_its_values(compiler):
    c = torch.randn(40, 40, generator=torch.Generator().manual_seed(0))
    found = []
    for function, value in ((compiler(redundancy, backend="bridge"), c), (redundancy, c.double())):
        leaf = value.clone().requires_grad_()
        with torch.enable_grad():
            function(leaf).backward()
        found.append(leaf.grad.double())
    assert changed() == 1
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)
