"""Test CPU versions of libdevice's functions: what they compute, and how they take the place of Triton's stubs."""

from __future__ import annotations

import types

import pytest
import torch
from emitted import run_emitted
from torch._inductor.ops_handler import OpsHandler

from bridge.offline import _interpreter_stubs as stubs
from bridge.offline.libdevice import TORCH_FUNCTIONS, cpu_libdevice


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("round", [-2.5, -0.5, 0.5, 2.5], [-3.0, -1.0, 1.0, 3.0]),
        ("rint", [-2.5, -0.5, 0.5, 2.5], [-2.0, -0.0, 0.0, 2.0]),
        ("cbrt", [-8.0, 0.0, 27.0], [-2.0, 0.0, 3.0]),
        ("llround", [-2.5, 2.4], torch.tensor([-3, 2])),
        ("ilogb", [0.75, 1.0, 8.0], torch.tensor([-1, 0, 3], dtype=torch.int32)),
        ("erfcx", [0.0, 30.0], [1.0, 0.018795888861416751]),
        ("isnan", [float("nan"), 1.0], torch.tensor([1, 0], dtype=torch.int32)),
        ("finitef", [float("inf"), 1.0], torch.tensor([0, 1], dtype=torch.int32)),
    ],
)
def test_function_computes_what_the_device_does(name, values, expected):
    torch.testing.assert_close(TORCH_FUNCTIONS[name](torch.tensor(values)), torch.as_tensor(expected))


def test_ldexp_keeps_the_type_of_its_first_operand():
    result = TORCH_FUNCTIONS["ldexp"](torch.tensor([1.5], dtype=torch.float64), torch.tensor([3], dtype=torch.int32))
    torch.testing.assert_close(result, torch.tensor([12.0], dtype=torch.float64))


@pytest.mark.skipif(not hasattr(OpsHandler, "mul_rn"), reason="this torch multiplies as always")
def test_a_scaled_product_that_is_added_runs_in_the_interpreter():
    """Check that a scaled product that is added runs in the interpreter, which had no version of `mul_rn`.

    A GPU's kernel uses it to round its first product by itself.
    """
    inputs = [torch.randn(5, 7) for _ in range(3)]
    result, (code,) = run_emitted(lambda a, b, c: torch.addcmul(a, b, c, value=0.3), inputs)
    assert "libdevice.mul_rn(" in code
    torch.testing.assert_close(result, torch.addcmul(*inputs, value=0.3))


def test_functions_are_replaced_within_the_block_only():
    def stub(x, _semantic=None):
        return None

    module = types.ModuleType("libdevice")
    module.erf, module.made_up, module.version = stub, stub, "13"
    x = torch.tensor([0.0, 0.5, -2.0, 1.0])
    with cpu_libdevice(module):
        (result,) = stubs.to_torch((module.erf(stubs.from_torch(x), _semantic=object()),))
        torch.testing.assert_close(result, torch.erf(x))
        with pytest.raises(NotImplementedError, match=r"no CPU version of libdevice\.made_up"):
            module.made_up(stubs.from_torch(x))
        assert module.version == "13"
    assert module.erf is stub
    assert module.made_up is stub
