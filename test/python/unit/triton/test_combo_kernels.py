"""Test what decides on one launch for several kernels: tiles of two dimensions, persistence, blocks of their own."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
import sympy
import torch
from torch._inductor import config
from torch._inductor.runtime.hints import ReductionHint
from torch._inductor.virtualized import V

from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.lowering.triton.combo_kernels import (
    cannot_share_launch,
    has_third_dimension,
    is_persistent,
    is_short_inner_reduction,
    own_blocks,
    tiling_and_scores,
    with_inlined,
)


def features(length, hint=ReductionHint.INNER, reduction=True):
    return SimpleNamespace(
        reduction_numel=length,
        is_reduction=lambda: reduction,
        get_reduction_hint=lambda scores: hint,
        scheduler_nodes=lambda: [SimpleNamespace(get_name=lambda: "op1")],
    )


@pytest.mark.parametrize(
    ("kernel", "short"),
    [
        (features(sympy.Integer(1024)), True),
        (features(sympy.Integer(1025)), False),
        (features(sympy.Symbol("s0")), False),
        (features(64, hint=ReductionHint.OUTER), False),
        (features(sympy.Integer(1), reduction=False), False),
    ],
    ids=["short", "long", "symbolic", "outer", "pointwise"],
)
def test_short_inner_reductions(kernel, short):
    assert bool(is_short_inner_reduction(kernel, {})) is short


@pytest.mark.parametrize(("kept", "persistent"), [({"op1": None}, True), ({"op2": None}, False)])
def test_a_symbolic_row_is_persistent_only_where_bridge_keeps_it(kept, persistent):
    scheduling = SimpleNamespace(bridge_persistent_nodes=kept)
    assert is_persistent(scheduling, features(sympy.Symbol("s0")), None) is persistent


def test_persistence_is_asked_for_with_the_scores_where_they_decide():
    """Check that persistence is asked for with the scores, which may decide it alone from torch 2.14 on.

    They may make a reduction one over contiguous elements, which is persistent.
    """
    scheduling = SimpleNamespace(bridge_persistent_nodes={})
    kernel, scored = features(sympy.Integer(512), hint=ReductionHint.DEFAULT), {"x": 1, "r0_": 64}
    given = []
    kernel.with_tiling_scores = lambda scores: given.append(scores) or "with scores"
    choices = SimpleNamespace(should_use_persistent_reduction=lambda asked, cooperative: asked == "with scores")
    with V.set_choices_handler(choices):
        assert is_persistent(scheduling, kernel, scored)
    assert given == [scored]


@pytest.mark.parametrize(("own", "third"), [("zyx", True), ("yx", False), ("x", False)])
def test_a_third_dimension_is_lost_in_a_launch(own, third):
    """Check that a kernel's own tile is asked for as it is configured, and the one in a launch with two dimensions."""

    def found(*arguments):
        return dict.fromkeys(own[-(config.triton.max_tiles or 3) :], 8), None

    node = SimpleNamespace(get_name=lambda: "op1")
    kernel = SimpleNamespace(node_schedule=["n"], numel=8, reduction_numel=4, coalesce_analysis="c")
    kernel.scheduler_nodes = lambda: [node]
    asked = [SimpleNamespace(get_tiling_and_scores=found, bridge_persistent_nodes=kept) for kept in ({}, {"op1": None})]
    assert [has_third_dimension(one, kernel) for one in asked] == [third, False], "nor of rows that Bridge keeps"


@pytest.mark.parametrize(("allowed", "asked"), [(None, 2), (1, 1), (3, 2)])
def test_tiles_have_two_dimensions_at_most(allowed, asked):
    scheduling = SimpleNamespace(get_tiling_and_scores=lambda *arguments: (config.triton.max_tiles, arguments))
    kernel = SimpleNamespace(node_schedule=["n"], numel=8, reduction_numel=4, coalesce_analysis="c")
    with config.patch({"triton.max_tiles": allowed}):
        assert tiling_and_scores(scheduling, kernel) == (asked, (["n"], 8, 4, "c"))
        assert config.triton.max_tiles == allowed


def test_blocks_of_their_own_are_asked_for_one_way_only():
    with own_blocks() as arguments:
        configured = getattr(config, "combo_kernel_per_subkernel_blocks", False)
        assert arguments == ({} if configured else {"per_subkernel_blocks": True})
    assert not getattr(config, "combo_kernel_per_subkernel_blocks", False)


def test_another_code_generator_shares_no_launch():
    scheduler = SimpleNamespace(get_backend=lambda device: SimpleNamespace())
    said = cannot_share_launch(scheduler, torch.device("cpu"))
    assert said == "SimpleNamespace has no partition of program ids"


def test_a_body_that_few_parts_share_is_no_function():
    """Check that a body that few parts share is no function, as functions keep registers for their callers.

    So it was with EDM's losses.
    """
    function = "@triton.jit(noinline=True)\ndef Kernel.name_body_{0}(x):\n    pass\n"
    calls = [f"Kernel.name_body_{number}(a)" for number in (0, 1, 1, 2, 2, 2)]
    source = with_inlined("".join(map(function.format, range(3))) + "\n".join(calls))
    assert re.findall(r"jit(.*)\ndef \S+(\d)\(", source) == [("", "0"), ("", "1"), ("(noinline=True)", "2")]


def rotated(x, weight, cos, sin):
    """Normalise the heads of a projection, and rotate the halves of each."""
    y = x.float()
    y = (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * weight).to(x.dtype)
    first, second = y.chunk(2, -1)
    return y * cos + torch.cat((-second, first), -1) * sin


def rotated_both(q, k, weight, cos, sin):
    return rotated(q, weight, cos, sin), rotated(k, weight, cos, sin)


def blocks_and_warps(function, *heads, tokens=512, width=256, **patches):
    """Return what is tried for the one launch of a function of projections with so many heads."""
    shared = [torch.zeros(size, dtype=torch.bfloat16) for size in ((width,), (tokens, 1, width), (tokens, 1, width))]
    inputs = [*(torch.zeros(tokens, number, width, dtype=torch.bfloat16) for number in heads), *shared]
    torch._dynamo.reset()
    (kernel,) = offline.compile_for_gpu(function, inputs, compile_fx=bridge_backend, config_patches=patches).kernels
    alone = re.search(r"fixed_config\(\s*config=\{'XBLOCK': (\d+), 'num_warps': (\d+)", kernel.source)
    if alone:
        return [tuple(map(int, alone.groups()))]
    tried = re.search(r"configs=\[(.*?)\],\n", kernel.source)[1].split("triton_heuristics.Config")[1:]
    return [tuple(map(int, re.findall(r"(?:XBLOCK_\d': |num_warps=)(\d+)", one))) for one in tried]


def test_parts_of_a_launch_have_the_blocks_that_they_have_alone():
    """Check that parts of a launch have the blocks that they have alone.

    Gradients of q's and k's norms took 41 us in one launch and 30 apart: there it had blocks of Inductor's.
    """
    ((rows, warps),) = blocks_and_warps(rotated, 16)
    assert blocks_and_warps(rotated, 8) == [(rows, warps)]
    assert blocks_and_warps(rotated_both, 16, 8) == [(rows, rows, warps)]


def test_few_rows_in_a_launch_are_tried_in_blocks_of_inductors():
    """Check that few rows in a launch are also tried in Inductor's smaller blocks.

    A block of 8 rows has two programs for 16 heads of one token, where a GPU has 132 multiprocessors.
    """
    ((rows, _),) = blocks_and_warps(rotated, 16, tokens=1)
    assert min(q for q, *_ in blocks_and_warps(rotated_both, 16, 8, tokens=1)) < rows


def test_parts_of_a_launch_have_inductors_blocks_where_tuning_is_asked_for():
    tuned = blocks_and_warps(rotated_both, 16, 8, width=1024, max_autotune_pointwise=True)
    assert tuned != blocks_and_warps(rotated_both, 16, 8, width=1024)


def repeated(projected):
    """Repeat heads of keys and of values for the heads of queries, of each as often as there are fewer."""
    key, value = projected.split([8, 16], 1)
    return repeated_heads(key, 4), repeated_heads(value, 2)


def repeated_heads(x, times):
    batch, heads, tokens, width = x.shape
    return x[:, :, None].expand(batch, heads, times, tokens, width).reshape(batch, heads * times, tokens, width)


def unhinted_sizes(backend):
    """Return, for each kernel of `repeated` with symbolic tokens, how many of its sizes may be no multiples of 16."""
    projected = torch.zeros(2, 24, 96, 128, dtype=torch.bfloat16)
    torch._dynamo.reset()
    torch._dynamo.mark_dynamic(projected, 2)
    compiled = offline.compile_for_gpu(repeated, [projected], compile_fx=backend, dynamic=None)
    found = []
    for kernel in compiled.kernels:
        names = re.findall(r"'(\w+)': '", re.search(r"'signature': \{(.*?)\}", kernel.source)[1])
        hinted = {names[int(i)] for i in re.findall(r"\((\d+),\): \[\['tt.divisibility', 16\]\]", kernel.source)}
        found.append({name for name in names if name.startswith("ks")} - hinted)
    return [len(names) for names in found]


def test_symbolic_sizes_are_as_aligned_in_a_shared_launch_as_alone():
    """Check that symbolic sizes are as aligned in a shared launch as alone.

    Decoding of Llama 3 with symbolic sizes took 51 us for 8: elements were loaded one by one.
    """
    assert unhinted_sizes(None) == [1, 1]
    assert unhinted_sizes(bridge_backend) == [1]


def gated_two(x, y):
    """Gate halves of normalised rows of two tensors, and return what each row was multiplied by."""
    results = []
    for rows in (x, y):
        scale = torch.rsqrt(rows.pow(2).mean(-1, keepdim=True) + 1e-6)
        gate, up = (rows * scale).chunk(2, -1)
        results += [torch.sigmoid(gate) * up, scale.flatten()]
    return results


@pytest.mark.parametrize(("rows", "width"), [(6, 96), (2048, 2048)], ids=["inductors blocks", "blocks of Bridge's"])
def test_parts_of_a_launch_have_the_rows_that_their_tensor_descriptors_need(rows, width):
    """Check that parts of a launch have the rows that their tensor descriptors need.

    One row was stored by a descriptor of 4 bytes, and Triton refused the kernel: 16 are the least.
    """
    patches = {"triton.use_tensor_descriptor": True, "assume_aligned_inputs": True}
    inputs = [torch.zeros(rows, width), torch.zeros(rows, width)]
    torch._dynamo.reset()
    (kernel,) = offline.compile_for_gpu(gated_two, inputs, compile_fx=bridge_backend, config_patches=patches).kernels
    blocks = re.findall(r"'XBLOCK_\d': (\d+)", re.search(r"configs=\[(.*?)\],\n", kernel.source)[1])
    assert re.search(r"block_shape=\[XBLOCK(_0)?\]\)\.store\(", kernel.source) and len(blocks) >= 2
    assert min(map(int, blocks)) * 4 >= 16
