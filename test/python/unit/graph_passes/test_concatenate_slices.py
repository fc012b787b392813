"""Test slices that are written one after the other and fill a tensor: the graph, its values, and its kernels."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from emitted import run_emitted
from functions import norm as rms
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.virtualized import V
from torch.fx.experimental.proxy_tensor import make_fx

from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.graph_passes.concatenate_slices import concatenate_slices
from bridge.inductor import graphs
from bridge.offline import parse_wrapper

aten = torch.ops.aten
B, H, S, D = 2, 3, 5, 16


def inputs(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    shapes = (B, H, S, D), (S, D // 2), (S, D // 2)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def traced(function, dynamic=False):
    """Return the graph, changed by the pass after functionalization, and the lines that the pass reported."""
    functional = torch.func.functionalize(function)
    mode = "symbolic" if dynamic else "fake"
    module = make_fx(functional, decomposition_table=select_decomp_table(), tracing_mode=mode)(*inputs())
    module.graph.eliminate_dead_code()
    fake = next(value.fake_mode for node in module.graph.nodes if (value := graphs.tensor(node)) is not None)
    with V.set_fake_mode(fake):
        lines = list(concatenate_slices(module.graph))
    module.graph.lint()
    module.recompile()
    return module, lines


def targets(module):
    return {node.target for node in module.graph.nodes}


def halves(x, cos, sin):
    a, b = x.chunk(2, -1)
    out = torch.empty_like(x)
    out[..., : D // 2] = a * cos - b * sin
    out[..., D // 2 :] = b * cos + a * sin
    return out


def last_half_first(x, cos, sin):
    out = torch.empty_like(x)
    out[..., -(D // 2) :] = x[..., : D // 2] * cos
    out[..., : D // 2] = x[..., D // 2 :] * sin
    return out


def three_slices(x, cos, sin):
    """Fill three slices of a tensor of zeros; the last one is copied unchanged."""
    out = torch.zeros_like(x)
    out[..., :4] = x[..., 4:8] * cos[:, :4]
    out[..., 4:8] = x[..., :4] * sin[:, :4]
    out[..., 8:] = x[..., 8:]
    return out


def over_a_copy(x, cos, sin):
    """Overwrite all of a copy."""
    out = x.clone()
    out[:, :1] = x[:, :1] + 1
    out[:, 1:] = x[:, 1:] * 2
    return out


def another_type(x, cos, sin):
    out = torch.empty(x.shape, dtype=torch.bfloat16)
    out[:, :, :2] = x[:, :, 3:] * 3
    out[:, :, 2:] = x[:, :, :3]
    return out


def pieces_of_other_types(x, cos, sin):
    """Scatter slices of other types: slice_scatter converts them, and the concatenation was float32, or bfloat16."""
    out = torch.zeros(x.shape, dtype=torch.int32)
    out = torch.slice_scatter(out, x[..., 8:] * 100, -1, 0, 8)
    return torch.slice_scatter(out, x[..., :8].to(torch.bfloat16) * 100, -1, 8, 16)


def pieces_of_one_other_type(x, cos, sin):
    out = torch.slice_scatter(torch.zeros_like(x), (x[..., 8:] * cos).to(torch.bfloat16), -1, 0, 8)
    return torch.slice_scatter(out, (x[..., :8] * sin).to(torch.bfloat16), -1, 8, 16)


FILLED = [
    *(halves, last_half_first, three_slices, over_a_copy, another_type),
    *(pieces_of_other_types, pieces_of_one_other_type),
]
every_filled = pytest.mark.parametrize("function", FILLED, ids=lambda f: f.__name__)


@every_filled
@pytest.mark.parametrize("dynamic", [False, True])
def test_slices_that_fill_a_tensor_are_pieces(function, dynamic):
    module, lines = traced(function, dynamic)
    if dynamic and function in (another_type, over_a_copy, pieces_of_other_types):
        assert lines == [], "whether the two are all of a dynamic size is not known"
    else:
        assert len(lines) == 1
        assert targets(module).isdisjoint({aten.slice_scatter.default, aten.copy.default})
    result, eager = module(*inputs()), function(*inputs())
    assert result.dtype == eager.dtype and torch.equal(result, eager)


def a_gap(x, cos, sin):
    out = torch.zeros_like(x)
    out[..., :4] = x[..., 4:8]
    out[..., 5:] = x[..., 5:] * 2
    return out


def an_overlap(x, cos, sin):
    out = torch.zeros_like(x)
    out[..., :9] = x[..., :9] + 1
    out[..., 8:] = x[..., 8:] * 2
    return out


def read_in_between(x, cos, sin):
    out = torch.zeros_like(x)
    out[..., :8] = x[..., :8] * 2
    out[..., 8:] = out[..., 1:9] + 1
    return out


def two_dimensions(x, cos, sin):
    out = torch.zeros_like(x)
    out[..., :8] = x[..., :8] * 2
    out[:, 1:] = x[:, 1:]
    return out


def interleaved(x, cos, sin):
    """Store even and odd elements, which Inductor has in one kernel by itself."""
    out = torch.empty_like(x)
    out[..., ::2] = x[..., 1::2] * cos
    out[..., 1::2] = x[..., ::2] * sin
    return out


def made_by_a_library(x, cos, sin):
    """Store two products, whose memory is free as soon as each is copied."""
    out = torch.empty_like(x)
    out[:, :1] = x[:, :1] @ x.new_ones(D, D)
    out[:, 1:] = x[:, 1:] @ x.new_ones(D, D)
    return out


def other_strides(x, cos, sin):
    out = torch.empty_like(x.transpose(1, 2).contiguous().transpose(1, 2))
    out[..., :8] = x[..., 8:] * 2
    out[..., 8:] = x[..., :8] * 2
    return out


UNTOUCHED = [
    a_gap, an_overlap, read_in_between, two_dimensions, interleaved, made_by_a_library, other_strides
]  # fmt: skip


@pytest.mark.parametrize("function", UNTOUCHED, ids=lambda f: f.__name__)
def test_stays_as_it_is(function):
    module, lines = traced(function)
    assert lines == []
    if function is not interleaved:
        assert aten.slice_scatter.default in targets(module)
    torch.testing.assert_close(module(*inputs()), function(*inputs()))


def test_a_piece_that_is_changed_before_the_last_slice_is_written_is_read_before():
    graph = torch.fx.Graph()
    base, x = graph.placeholder("base"), graph.placeholder("x")
    first = graph.call_function(aten.slice_scatter.default, (base, x, 0, 0, 4))
    graph.call_function(aten.mul_.Tensor, (x, 2))
    graph.output(graph.call_function(aten.slice_scatter.default, (first, x, 0, 4, 8)))
    with torch._subclasses.fake_tensor.FakeTensorMode() as mode:
        for node, length in ((base, 8), (x, 4)):
            node.meta["val"] = torch.empty(length)
    with V.set_fake_mode(mode):
        for node in graph.nodes:
            if node.op == "call_function":
                graphs.retrace(node)
        assert list(concatenate_slices(graph)) == []


def test_an_error_leaves_the_graph(monkeypatch):
    def broken(node):
        raise RuntimeError("broken")

    module, _ = traced(interleaved)
    monkeypatch.setattr(graphs, "retrace", broken)
    with pytest.raises(RuntimeError, match="broken"):
        traced(halves)
    module.graph.lint()


class TestCompiled:
    """Test the pass as a user compiles it."""

    @pytest.mark.parametrize("dynamic", [False, True])
    @pytest.mark.parametrize("function", [halves, three_slices], ids=lambda f: f.__name__)
    def test_norm_and_rotation_are_one_kernel(self, function, dynamic, counters):
        def normed(x, cos, sin, weight):
            return function(rms(x, weight), cos, sin)

        given = [*inputs(torch.bfloat16), torch.ones(D, dtype=torch.bfloat16)]
        if dynamic:
            torch._dynamo.mark_dynamic(given[0], 0)
        code = offline.compile_for_gpu(normed, given, compile_fx=bridge_backend).code
        assert len(parse_wrapper(code).launches) == 1
        assert "concatenate_slices" in counters()

    @every_filled
    def test_numerics_of_cpp(self, function, compiler):
        """Check that C++ stores the same bits as without the pass, which is undone if C++ would have more kernels."""
        options = [{"concatenate_slices": on} for on in (False, True)]
        results = [compiler(function, backend="bridge", options=chosen)(*inputs()) for chosen in options]
        assert torch.equal(*results)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_numerics_of_triton(self, dtype):
        """Check that Triton stores the same bits as without the pass."""
        without = partial(bridge_backend, options={"concatenate_slices": False})
        results = [run_emitted(halves, inputs(dtype), backend)[0] for backend in (bridge_backend, without)]
        assert torch.equal(*results)
