"""For `compile_for_gpu`: move a graph that AOTAutograd traced on the CPU to a GPU that is not there.

Part of ``_stubs``, like it bound to PyTorch's internals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch._subclasses import fake_tensor
from torch.utils import _pytree as pytree

GPU = torch.device("cuda", 0)

aten = torch.ops.aten

#: An operand of an operator: of a call, or of a graph.
Operand: TypeAlias = torch.Tensor | torch.fx.Node


def _fused_attention(  # noqa: PLR0913 - the arguments of the operator
    half: bool,
    query: Operand,
    key: Operand,
    value: Operand,
    attn_mask: Operand | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> tuple[torch._ops.OpOverload, tuple[object, ...], dict[str, object]]:
    """Return the operator, arguments and keywords of a GPU's scaled dot product attention.

    ``half`` says whether the tensors are of 16 bits.
    """
    arguments: tuple[object, ...]
    if half and attn_mask is None:
        arguments = (query, key, value, dropout_p, is_causal, False)
        target = aten._scaled_dot_product_flash_attention.default
    else:
        arguments = (query, key, value, attn_mask, False, dropout_p, is_causal)
        target = aten._scaled_dot_product_efficient_attention.default
    return target, arguments, {"scale": scale}


def convolution_format(input_: torch.Tensor, weight: torch.Tensor, _: object) -> torch.memory_format:
    """Return the format of what a GPU's convolution returns: cuDNN's, in the place of the backend that is chosen here.

    It has the channels last where those of its input, or of its weight, are (``cudnn_conv_suggest_memory_format``).
    """
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(weight.ndim)
    if last is None or torch.float64 in (input_.dtype, weight.dtype):
        return torch.contiguous_format
    known = (one.is_contiguous(memory_format=last) and not one.is_contiguous() for one in (input_, weight))
    return last if any(known) else torch.contiguous_format


def _is_half(value: torch.Tensor) -> bool:
    return value.dtype in (torch.float16, torch.bfloat16)


def attention_on_gpu(query: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Stand in for ``aten.scaled_dot_product_attention`` in Inductor's patterns.

    That asks the device for its fused kernels, and without one finds none.
    """
    half = _is_half(query)
    target, arguments, keywords = _fused_attention(half, query, *args, **kwargs)
    return target(*arguments, **keywords)[0]


def _replace_cpu_attention(node: torch.fx.Node) -> None:
    # scaled_dot_product_attention picks its kernel by device while it is traced.
    # The CPU's gives the output and the log-sum-exp, as the GPU's first two results.
    if node.target is aten._scaled_dot_product_flash_attention_for_cpu.default:
        query, key, value, *rest = node.args
        named = dict(zip(("dropout_p", "is_causal"), rest, strict=False)) | dict(node.kwargs)
        half = _is_half(query.meta["val"])
        replacement = _fused_attention(half, query, key, value, **named)
        node.target, node.args, node.kwargs = replacement


def _copy_constants(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """Copy constant tensors to the GPU, as ``torch.tensor(..., device=)`` does.

    Tracing on the CPU has dropped that copy; numbers need none. Returns the
    nodes that stay on the CPU.
    """
    lift = aten.lift_fresh_copy.default
    device_put = torch.ops.prims.device_put.default
    lifted = graph.find_nodes(op="call_function", target=lift)
    for node in lifted:
        if node.meta["val"].dim() == 0:
            continue
        with graph.inserting_after(node):
            copy = graph.call_function(device_put)
        node.replace_all_uses_with(copy)
        copy.args = (node, GPU)
        copy.meta["val"] = node.meta["val"]
    return {*lifted, *graph.find_nodes(op="get_attr")}


def _to_gpu(value: object) -> object:
    """Return a tensor or device of the CPU as one of the absent GPU; anything else as it is."""
    if isinstance(value, torch.device):
        return GPU if value.type == "cpu" else value
    if not isinstance(value, fake_tensor.FakeTensor) or value.device.type != "cpu":
        return value
    with value.fake_mode, torch.no_grad():
        return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=GPU)


def _relocate_graph(gm: torch.fx.GraphModule, move: Callable[[object], object]) -> None:
    """Move every device and every fake tensor recorded in a graph."""
    on_cpu = _copy_constants(gm.graph)
    for node in gm.graph.nodes:
        if node in on_cpu:
            continue
        _replace_cpu_attention(node)
        node.args = pytree.tree_map(move, node.args)
        node.kwargs = pytree.tree_map(move, node.kwargs)
        for key in ("val", "example_value"):
            if key in node.meta:
                node.meta[key] = pytree.tree_map(move, node.meta[key])
    for child in gm.children():
        if isinstance(child, torch.fx.GraphModule):
            _relocate_graph(child, move)
    gm.recompile()


def relocate(gm: torch.fx.GraphModule, example_inputs: list[object]) -> tuple[torch.fx.GraphModule, list[object]]:
    """Move a graph traced on the CPU, and its inputs, to the absent GPU."""
    memo: dict[int, tuple[object, object]] = {}

    def move(value: object) -> object:
        # One new tensor per old one, so that aliasing by identity survives; the
        # old one is kept in the memo so that its id is not reused.
        if id(value) not in memo:
            memo[id(value)] = (value, _to_gpu(value))
        return memo[id(value)][1]

    _relocate_graph(gm, move)
    return gm, [move(value) for value in example_inputs]
