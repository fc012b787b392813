"""Test options of Inductor's that its Triton code depends on.

What Bridge emits under them compiles, and nothing fails.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
import sympy
import torch
import triton.language as tl
from emitted import NO_STAGES, run_emitted
from functions import gate, norm
from torch._dynamo.utils import counters
from torch._inductor import config

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.lowering.triton import codegen

#: Values that are not the default; names without a section are of `triton`.
TRITON_OPTIONS: list[dict[str, Any]] = [
    {"use_block_ptr": True},
    {"use_tensor_descriptor": True},
    {"use_block_ptr": True, "prefer_nd_tiling": True, "tile_reductions": True},
    {"prefer_nd_tiling": True, "tile_reductions": True, "max_tiles": 3},
    {"max_tiles": 1},
    {"multi_kernel": 1, "cooperative_reductions": True},
    {"multi_kernel": 3},
    {"force_cooperative_reductions": True},
    {"persistent_reductions": False},
    {"dense_indexing": True},
    {"enable_pdl": True},
    {"nested_reduction": True},
    {"mix_order_reduction": False, "skip_l1_cache": True, "divisible_by_16": False},
]
OPTIONS = [
    *({f"triton.{name}": value for name, value in options.items()} for options in TRITON_OPTIONS),
    {"assume_aligned_inputs": True, "triton.use_tensor_descriptor": True},
    {"triton.use_block_ptr": True, "max_autotune_pointwise": True},
    {"combo_kernels": True, "combo_kernels_autotune": 0, "combo_kernel_allow_mixed_sizes": 2},
    {"triton.use_block_ptr": True, "combo_kernels": True},
    {"coordinate_descent_tuning": True, "max_autotune_pointwise": True},
    {"debug_index_asserts": True, "nan_asserts": True, "inplace_buffers": False},
    {"emulate_precision_casts": True},
]


def normal(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def product(x, w):
    """Load pairs and store every other element; the elements between need a matrix product of the rest."""
    y = norm(x)
    return torch.stack([y[..., ::2] * y[..., 1::2], (y[..., 1::2] * 2) @ w], -1).flatten(-2)


def side_by_side(x, row):
    """Compute pairs of one row and segments of several: kernels that may share a launch."""
    y, parts = norm(row), norm(x).unflatten(-1, (-1, 16))
    scale = parts.abs().amax(-1, keepdim=True)
    turned = torch.stack([-y[..., 1::2], y[..., ::2]], -1).flatten(-2)
    return turned, (parts / scale).flatten(-2), scale.squeeze(-1)


PROGRAMS = {product: [normal(6, 64), normal(32, 32)], side_by_side: [normal(6, 128).bfloat16(), normal(1, 64)]}


def skip_unknown(options):
    if not options.keys() <= config._config.keys():
        pytest.skip("not an option of this torch")


def faults() -> dict[str, int]:
    """Return the counters that stand for bugs."""
    return {name: n for name, n in counters["bridge"].items() if n and re.search("internal_error|withdrawn", name)}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: ",".join(o))
def test_every_kernel_compiles(options, program):
    skip_unknown(options)
    counters.clear()
    patches = {"max_autotune_gemm": False, **options}
    result = offline.compile_for_gpu(program, PROGRAMS[program], compile_fx=bridge_backend, config_patches=patches)
    assert faults() == {} and bridge.report().fused, bridge.report()
    for kernel in result.kernels:
        assert offline.compile_kernel(kernel, config={}).cubin


@pytest.mark.parametrize(
    "option, made", [("use_block_ptr", "make_block_ptr"), ("use_tensor_descriptor", "make_tensor_descriptor")]
)
@pytest.mark.filterwarnings("ignore:.*no longer provides the block-pointer:FutureWarning")
def test_block_pointers_of_a_kernel_whose_blocks_are_fixed(option, made):
    """Check block pointers of a kernel whose blocks are fixed.

    Inductor asks for the block of a row, which a fixed configuration lacks where rows are kept whole.
    """
    counters.clear()
    x = normal(40, 256)
    options = {f"triton.{option}": True, "assume_aligned_inputs": True}
    results, (code,) = run_emitted(gate, [x], bridge_backend, **options)
    assert faults() == {} and "@triton_heuristics.fixed_config(" in code and code.count(".run(") == 1
    gone = made == "make_block_ptr" and not hasattr(tl, "advance")  # Triton 3.9 keeps the name, which only raises
    assert (f"tl.{made}(" in code) is not gone
    torch.testing.assert_close(results.double(), gate(x.double()), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not NO_STAGES, reason="torch 2.11 makes no stages")
def test_kernels_of_bridges_are_no_stages_of_inductors():
    """Check that Bridge's kernels are not fused in Inductor's stages, whose code knows nothing of Bridge's loops."""
    asked = []

    def can_fuse(one, other):
        asked.append(config.triton.nested_reduction)
        return True

    backend = SimpleNamespace(can_fuse_horizontal=can_fuse, can_fuse_vertical=can_fuse, fuse=lambda one, other: one)
    accesses = SimpleNamespace(reads=set(), writes=set())
    node = SimpleNamespace(
        scheduler=SimpleNamespace(get_backend=lambda device: backend),
        get_device=lambda: torch.device("cuda"),
        get_nodes=list,
        read_writes=accesses,
        group=(torch.device("cuda"), (sympy.Integer(8), sympy.Integer(1))),
    )
    with config.patch({"triton.nested_reduction": True}):
        assert codegen.fuse_nodes([node, node]) is node
    assert asked == [False]


class Node:
    """Stand for a scheduler node: what it reads and makes, and whether it reduces."""

    def __init__(self, made: str, *read: str, reduces: bool = False):
        self.made, self.reduces = made, reduces
        self.read_writes = SimpleNamespace(reads=[SimpleNamespace(name=name) for name in read])

    def get_buffer_names(self) -> list[str]:
        return [self.made]

    def is_reduction(self) -> bool:
        return self.reduces


def loops(name: str, elements: int, reduced: int = 1, after: tuple[str, ...] = (), overwrites: bool = False):
    """Return a stand-in for a node over so many elements, each of so many that it reduces, after others."""
    sizes = [sympy.Integer(elements)], [sympy.Integer(reduced)] if reduced > 1 else []
    output = SimpleNamespace(get_mutations=lambda: ["x"] if overwrites else [], get_aliases=list)
    return SimpleNamespace(
        _sizes=sizes, ancestors={*after}, get_operation_names=lambda: {name}, get_outputs=lambda: [output], name=name
    )


def test_values_of_rows_and_elements_of_rows_had_no_kernel_before_their_sum():
    """Check that a sum comes first, with what it needs, and all else as it was; none where memory is overwritten."""
    nodes = [loops("of_row", 8), loops("needed", 256), loops("apart", 256), loops("sum", 8, 32, ("needed",))]
    nodes.append(loops("out", 256, after=("sum", "of_row", "needed")))
    order = [node.name for node in codegen._reductions_first(nodes)]
    assert order == ["needed", "sum", "of_row", "apart", "out"]
    given = [*nodes, loops("state", 256, overwrites=True)]
    assert codegen._reductions_first(given) == given


class Mark:
    """Stand for the classes that end and begin a loop among the nodes of a kernel."""


@pytest.mark.parametrize(
    ("nodes", "stored"),
    [
        ([Node("row", "x"), Node("sum", "row", reduces=True), Mark, Mark, Node("out", "row", "sum")], {"row"}),
        ([Node("sum", "x", reduces=True), Mark, Node("mean", "sum"), Mark, Node("out", "x", "mean", "sum")], set()),
        ([Node("row", "x"), Node("out", "row"), Node("sum", "out", reduces=True)], set()),
    ],
    ids=["a row of an earlier pass", "what was computed between passes", "one pass"],
)
def test_a_loop_stores_what_a_later_pass_loads(only_tensors, nodes, stored):
    """Check that a loop stores what a later pass loads, and not what stays in registers between passes.

    A reduction's result, and what is made of it, stays there.
    """
    assert codegen._loaded_in_later_passes(SimpleNamespace(node_schedule=nodes)) == stored
