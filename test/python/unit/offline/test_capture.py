"""Test ``bridge.offline``: no GPU is needed, nor used where there is one."""

import contextlib
import os
import re
from typing import Any

import pytest
import torch
import triton.language as tl
from offline_functions import COLUMNS, ROWS, matrix, norm_inputs, norm_to_fp8, to_int8
from rfc import swiglu_norm
from torch._inductor import config as inductor_config
from torch._inductor import scheduler
from torch._inductor.virtualized import V

from bridge import offline


def attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v) * 2


def _process_state():
    """Return what the stubs replace, as seen from outside."""
    owners = (torch.cuda, torch._inductor.compile_fx, tl, tl.core, tl.tensor, tl.math)
    attributes = [{k: id(v) for k, v in vars(owner).items()} for owner in owners]
    settings = inductor_config.force_disable_caches, inductor_config.cpu_backend
    return attributes, settings, dict(os.environ), torch.cuda.is_available()


@contextlib.contextmanager
def _unchanged_process():
    before = _process_state()
    yield
    assert _process_state() == before


@pytest.mark.parametrize("dynamic", [False, True])
def test_plain_inductor_needs_two_kernels(dynamic):
    result = offline.compile_for_gpu(swiglu_norm, norm_inputs(), dynamic=dynamic)
    assert result.n_kernels == 2
    assert [kernel.name for kernel in result.kernels] == result.launches
    assert result.extern_calls == []
    symbolic = any("ks0" in kernel.signature for kernel in result.kernels)
    assert symbolic == dynamic


def test_marked_rows_are_symbolic():
    inputs = norm_inputs()
    for tensor in inputs[:2]:
        torch._dynamo.mark_dynamic(tensor, 0)
    result = offline.compile_for_gpu(swiglu_norm, inputs, dynamic=None)
    assert result.n_kernels == 2
    assert re.search(r"\bs\d+ = arg", result.code)


def _as_many_as_said(x, ids):
    found, inverse = ids.unique(return_inverse=True)
    rows = ids.sum().item()
    torch._check(0 < rows)
    torch._check(rows < 8)
    return torch.ones(found.shape[0] + 1, 16).softmax(-1), x[inverse], x[:rows].sum(0)


def test_the_shapes_of_results_may_depend_on_data():
    """Check that shapes of results may depend on data.

    Results are zeros, and a shape that data decide had no number: an error of torch's.
    """
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        result = offline.compile_for_gpu(_as_many_as_said, [torch.ones(8, 16), torch.arange(8)])
    assert result.n_kernels >= 2


def test_a_choice_by_booleans_asked_for_a_gpu():
    """Check a choice by booleans, which asked for a GPU: `nonzero` is a method whose binding sets the device first."""
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        chosen = offline.compile_for_gpu(lambda x: x[x[:, 0] > 0].softmax(-1), [matrix(8, 16)])
    assert chosen.graphs[-1].extern_calls == ("torch.ops.aten.index.Tensor",)


def test_one_compilation_does_not_make_the_next_dynamic():
    for rows in (64, 128, 256):
        result = offline.compile_for_gpu(swiglu_norm, norm_inputs(rows, 512), dynamic=None)
        assert not any("ks0" in kernel.signature for kernel in result.kernels)


def test_kernel_metadata(plain):
    reduction, pointwise = plain.kernels
    assert (reduction.heuristic, pointwise.heuristic) == ("reduction", "pointwise")
    assert reduction.size_hints == {"x": ROWS, "r0_": COLUMNS}
    assert reduction.signature["in_ptr0"] == "*bf16"
    assert "cc=90" in reduction.source


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_quantisation_to_fp8_is_one_kernel(dtype):
    inputs = [matrix(ROWS, 4096, dtype), matrix(1, 4096, dtype)[0]]
    result = offline.compile_for_gpu(norm_to_fp8, inputs)
    assert result.n_kernels == 1
    assert "*fp8e4nv" in result.kernels[0].signature.values()


def test_quantisation_to_int8_is_one_kernel():
    result = offline.compile_for_gpu(to_int8, [matrix(ROWS, 4096)])
    assert result.n_kernels == 1
    assert "*i8" in result.kernels[0].signature.values()


def test_matmul_is_a_library_call():
    inputs = [matrix(256, 512), matrix(512, 256)]
    result = offline.compile_for_gpu(lambda x, w: torch.relu(x @ w), inputs)
    assert result.extern_calls == ["extern_kernels.mm"]
    assert result.n_kernels == 1


def test_attention_takes_the_kernel_of_a_gpu():
    inputs = [matrix(1024, 64).view(2, 4, 128, 64) for _ in range(3)]
    result = offline.compile_for_gpu(attention, inputs)
    (call,) = result.extern_calls
    assert call == "torch.ops.aten._scaled_dot_product_flash_attention.default"


def test_constant_tensor():
    def fn(x):
        return x * torch.tensor([1.0, 2.0]) + torch.tensor(3.0)

    assert offline.compile_for_gpu(fn, [matrix(64, 2)]).n_kernels == 1


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: torch.where(x > 0, x, 0.0),
        lambda x: x + torch.arange(x.shape[1], device=x.device) * torch.full((x.shape[1],), 2.0, device=x.device),
        lambda x: torch.nn.functional.dropout(x, 0.1, training=True),
    ],
    ids=["number", "ranges", "dropout"],
)
def test_values_made_on_the_device(fn):
    assert offline.compile_for_gpu(fn, [torch.randn(8, 64)]).n_kernels >= 1


def test_parameters_of_a_module():
    module = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.LayerNorm(64))
    result = offline.compile_for_gpu(module, [matrix(8, 64, torch.float32)])
    assert result.extern_calls and result.n_kernels == 1


def test_inductor_writes_slices_in_place():
    """Check slices that Inductor writes in place: its pass calls `copy_` on fake tensors of the GPU, as for MLA."""

    def fn(x, y):
        both = x.new_empty(x.shape[0], x.shape[1] + y.shape[1])
        both[:, : x.shape[1]] = x + 1
        both[:, x.shape[1] :] = y * 2
        return both

    assert offline.compile_for_gpu(fn, [torch.randn(4, 8), torch.randn(4, 16)]).n_kernels >= 1


def test_convolution_of_one_dimension():
    """Check a convolution of one dimension: its shape function calls `contiguous` on fake tensors of the GPU."""

    def fn(x, weight):
        return torch.nn.functional.conv1d(x.transpose(1, 2), weight, groups=8).relu()

    result = offline.compile_for_gpu(fn, [torch.randn(2, 16, 8), torch.randn(8, 1, 3)])
    assert result.n_kernels >= 1


def test_graphs_on_both_sides_of_a_break():
    def fn(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos().sum(-1)

    result = offline.compile_for_gpu(fn, [matrix(64, 64)])
    assert (len(result.graphs), result.n_kernels) == (2, 2)


def test_example_inputs_are_not_written():
    x = matrix(8, 8)
    before = x.clone()
    offline.compile_for_gpu(lambda t: t.add_(1), [x])
    assert torch.equal(x, before)


def test_context_and_config_reach_the_scheduler():
    seen: list[Any] = []

    class Choices(torch._inductor.choices.InductorChoices):
        @staticmethod
        def can_fuse(*args, **kwargs):
            return False

    result = offline.compile_for_gpu(
        lambda x: (x + 1, x - 1),
        [matrix(64, 64)],
        context=V.set_choices_handler(Choices()),
        config_patches={"_post_fusion_custom_pass": _recording_pass(seen)},
    )
    assert result.n_kernels == 2
    assert all(isinstance(node, scheduler.BaseSchedulerNode) for node in seen[0])


def _recording_pass(seen):
    def record(nodes):
        seen.append(list(nodes))
        return nodes

    return record


def test_other_entry_than_compile_fx():
    def entry(gm, example_inputs):
        patches = {"triton.unique_kernel_names": False}
        return torch._inductor.compile_fx.compile_fx(gm, example_inputs, config_patches=patches)

    result = offline.compile_for_gpu(swiglu_norm, norm_inputs(), compile_fx=entry)
    assert result.n_kernels == 2


def test_wrong_arguments(plain):
    with pytest.raises(ValueError, match="unknown GPU architecture"):
        offline.compile_for_gpu(swiglu_norm, norm_inputs(), arch="sm_12")
    with pytest.raises(ValueError, match="RBLOCK"):
        offline.compile_kernel(plain.kernels[0], config={"RBLOCK": 1})


def test_process_is_restored():
    inputs = norm_inputs(64, 512)
    offline.run_interpreted(swiglu_norm, inputs)
    with _unchanged_process():
        result = offline.compile_for_gpu(swiglu_norm, inputs)
        offline.compile_kernel(result.kernels[0])
        offline.run_interpreted(swiglu_norm, inputs)


def test_process_is_restored_after_errors():
    def fail(nodes):
        raise RuntimeError("from the pass")

    inputs, patches = norm_inputs(8, 64), {"_post_fusion_custom_pass": fail}
    with _unchanged_process():
        with pytest.raises(Exception, match="from the pass"):
            offline.compile_for_gpu(swiglu_norm, inputs, config_patches=patches)
        with pytest.raises(Exception, match="from the pass"):
            offline.run_interpreted(swiglu_norm, inputs, config_patches=patches)


def test_ordinary_compilation_still_works():
    offline.compile_for_gpu(swiglu_norm, norm_inputs(64, 512))
    x = matrix(4, 64, torch.float32)
    compiled = torch.compile(lambda t: t.relu() + 1, backend="aot_eager")
    torch.testing.assert_close(compiled(x), x.relu() + 1)


def test_convolution_of_a_gpu_keeps_the_channels_last():
    def normed(x, weight):
        y = torch.nn.functional.conv2d(x, weight, padding=1).permute(0, 2, 3, 1)
        return torch.nn.functional.layer_norm(y, y.shape[-1:])

    inputs = torch.empty(2, 64, 8, 8), torch.empty(64, 64, 3, 3)
    assert "(4096, 1, 512, 64)" in offline.compile_for_gpu(normed, inputs).code
