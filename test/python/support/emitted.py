"""Run the very code that Inductor emits for a GPU that is not there, on CPU tensors in Triton's interpreter.

`offline.run_interpreted` has Inductor generate Triton code for the CPU, for which it decides some things otherwise
(what is materialised, how a concatenation is lowered).  Here it believes to the end that it compiles for the GPU.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch._inductor.codecache import PyCodeCache

from bridge import offline
from bridge.offline import _stubs
from bridge.offline.arch import resolve_arch
from bridge.support.fresh_code import fresh_entry

#: What a wrapper and its kernels say about the device, and what makes the CPU of it.
_MOVES = (
    (r"guards\._empty_strided_cuda", "guards._empty_strided_cpu"),
    (r"from torch\._C import _cuda_getCurrentRawStream as get_raw_stream", "get_raw_stream = lambda index: 0"),
    (r"torch\.cuda\._DeviceGuard\(0\)", "contextlib.nullcontext()"),
    (r"torch\.cuda\.set_device\(0\)", "pass"),
    (r"set_driver_to_gpu\(\)", "set_driver_to_cpu()"),
    (r"type='cuda'", "type='cpu'"),
    (r"device_str='cuda'", "device_str='cpu'"),
    (r"extern_kernels\.convolution\(", "convolution("),
    (r"torch\.ops\.aten\._scaled_dot_product_flash_attention\.default", "flash_attention"),
    (r"torch\.ops\.aten\._scaled_dot_product_efficient_attention\.default", "efficient_attention"),
)

#: Operators of a GPU, as a wrapper calls them: attention leaves heads and tokens in the order that it works in; a CPU's
#: convolution may have the channels last where a GPU's has not.
_OPERATORS = """
import contextlib
import torch

def flash_attention(q, k, v, dropout=0.0, causal=False, *_, scale=None):
    return efficient_attention(q, k, v, None, False, dropout, causal, scale=scale)

def efficient_attention(q, k, v, mask, log_sum, dropout=0.0, causal=False, *, scale=None):
    assert dropout == 0.0 and not log_sum
    attend = torch.nn.functional.scaled_dot_product_attention
    result = attend(q, k, v, mask, is_causal=causal, scale=scale)
    return (result.transpose(1, 2).contiguous().transpose(1, 2),)

def convolution(x, *arguments, **keywords):
    weight, *others = _in_order(*arguments, **keywords)
    # A GPU's result has its channels last where those of the input or of the weight are, a CPU's not always.
    formats = [torch._prims_common.suggest_memory_format(operand) for operand in (x, weight)]
    last = next((one for one in formats if one is not torch.contiguous_format), torch.contiguous_format)
    return torch.ops.aten.convolution.default(x, weight, *others).contiguous(memory_format=last)

def _in_order(weight, bias=None, *, stride, padding, dilation, transposed, output_padding, groups):
    return weight, bias, stride, padding, dilation, transposed, output_padding, groups
"""


def on_cpu(code: str) -> str:
    """Return a wrapper's source, changed to run on the CPU."""
    for pattern, replacement in _MOVES:
        code = re.sub(pattern, replacement, code)
    return _OPERATORS + code


class _Interpreted:
    """Hold the module of a generated wrapper, which is loaded at the first call."""

    runner = None
    _module: Any
    __file__ = ""

    def __init__(self, code: str) -> None:
        self._code, self._module = on_cpu(code), None

    def call(self, args: Any) -> Any:
        with offline.interpreter():
            self._module = self._module or PyCodeCache.load(self._code)
            return self._module.call(args)


@contextlib.contextmanager
def emitted_for(arch: str, codes: list[str]) -> Iterator[None]:
    """Make `torch.compile` on CPU tensors emit what it would for that GPU, and interpret it; sources go to `codes`."""
    original = _stubs._capture_module

    def capture(codes: list[str], graph: Any) -> _Interpreted:
        original(codes, graph)
        return _Interpreted(codes[-1])

    with (
        _stubs.scratch_caches(),
        mock.patch.object(_stubs, "_capture_module", capture),
        _stubs.codegen_only(resolve_arch(arch), codes),
        torch._inductor.config.patch(shape_padding=False),
        torch.no_grad(),
    ):
        yield


#: Has Inductor leave apart what it fuses by itself from torch 2.15 on, in stages: for tests of Bridge's own kernels.
NO_STAGES = {"triton.nested_reduction": False} if hasattr(torch._inductor.config.triton, "nested_reduction") else {}


def run_emitted(
    function: Callable,
    inputs: list[torch.Tensor],
    backend: Any = "inductor",
    dynamic: bool | None = False,
    **config: Any,
) -> tuple[Any, list[str]]:
    """Return (outputs, sources of the wrappers); `config` patches Inductor's."""
    codes: list[str] = []
    torch._dynamo.reset()
    with emitted_for("sm_90", codes), torch._inductor.config.patch(config):
        compiled = torch.compile(fresh_entry(function), backend=backend, dynamic=dynamic)
        return compiled(*inputs), codes
