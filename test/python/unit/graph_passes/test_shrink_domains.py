"""Test slices that move above the operations whose result they take a part of.

The graph, its values, and its kernels.
"""

from __future__ import annotations

from random import Random

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted
from functions import norm as rms
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.graph_passes.shrink_domains import shrink_domains
from bridge.inductor import graphs
from bridge.offline import parse_wrapper


def fake_mode(graph) -> FakeTensorMode:
    return next(value.fake_mode for node in graph.nodes if (value := graphs.tensor(node)) is not None)


def traced(function, inputs, dynamic=False):
    """Return the graph after decompositions and the pass, the lines that the pass reported, and the elements before."""
    mode = "symbolic" if dynamic else "fake"
    module = make_fx(function, decomposition_table=select_decomp_table(), tracing_mode=mode)(*inputs)
    module.graph.eliminate_dead_code()
    before = computed(module.graph)
    with V.set_fake_mode(fake_mode(module.graph)):
        lines = list(shrink_domains(module.graph))
    module.graph.lint()
    module.recompile()
    return module, lines, before


def computed(graph) -> int:
    """Count the elements of results that have to be computed."""
    kinds = (graphs.is_pointwise, graphs.is_reduction, graphs.is_scan)
    work = [node for node in graph.nodes if any(kind(node) for kind in kinds)]
    return sum(value.numel() for node in work if (value := graphs.tensor(node)) is not None)


def drawn(*shapes):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


B, S, D, N = 2, 6, 8, 4


def last_token(x, residual, weight, w):
    return rms(x + residual, weight)[:, -1:, :] @ w


def class_token(x, residual, weight, w):
    return F.layer_norm(x + residual, (D,), weight)[:, 0] @ w


def some_tokens(x, residual, weight, w):
    return rms(x + residual, weight)[:, 1:5:2] @ w


def second_to_last(x, residual, weight, w):
    return rms(x + residual, weight)[:, -2] @ w


def heads_reshaped(x, residual, weight, w):
    heads = (x + residual).reshape(B, S, 2, D // 2)
    return rms(heads, weight[: D // 2]).reshape(B, S, D)[:, -1] @ w


def transposed(x, residual, weight, w):
    return rms(x + residual, weight).transpose(0, 1)[-1] @ w


def probabilities(x, residual, weight, w):
    return (x + residual * weight).softmax(-1)[:, :2] @ w


def without_keepdim(x, residual, weight, w):
    return ((x * residual).amax(-1) * 2)[:, :3] @ x[0, :3]


def broadcast(x, residual, weight, w):
    """Compute with an input whose middle dimension has one element, and one that lacks that dimension."""
    return (x * residual.mean(1, keepdim=True) * weight).sigmoid()[:, 2:4] @ w


def two_parts(x, residual, weight, w):
    """Take a part of a part."""
    return rms(x + residual, weight)[:1][:, -1] @ w


def expanded(x, residual, weight, w):
    return (residual[:, :1].exp().expand(B, S, D) * x.sum(-1, keepdim=True))[:, 3:] @ w


def of_a_shared_sum(x, residual, weight, w):
    """Compute a part of a norm of a sum that another norm, before a library call, reads as well."""
    x = x + rms(x + residual, weight) @ w @ w.T
    return rms(x, weight)[:, -1] @ w


def transmittance(x, residual, weight, w):
    """Compute NeRF's light that reaches each sample of a ray: the scan has one element that no sample needs."""
    opaque = (x + residual).sigmoid()
    light = torch.cat([torch.ones_like(opaque[..., :1]), 1 - opaque], -1).cumprod(-1)[..., :-1]
    return (opaque * light) @ w


def gradients_of_shifted_rows(x, residual, weight, w):
    """Compute a convolution's gradient by shifts: rows are scattered into zeros, and the padding is cut off."""
    zeros = x.new_zeros(B, S + 3, D)
    shifted = [zeros.slice_scatter(x * weight * n, 1, n, S + n) for n in range(4)]
    return F.pad(sum(shifted[1:], shifted[0]), (0, 0, -3, 0)) + residual


def gradients_of_symbolic_rows(x, residual, weight, w):
    """Compute gradients of shifted rows of symbolic sizes, where the rows behind a shift are no number.

    Two or more rows are assumed.
    """
    zeros, rows = x.new_zeros(x.shape[0], x.shape[1] + 2, D), x.shape[1]
    shifted = [zeros.slice_scatter(x * weight * n, 1, n, rows + n) for n in range(3)]
    return F.pad(sum(shifted[1:], shifted[0]), (0, 0, -2, 0)) + residual


def windows_of_padded_rows(x, residual, weight, w):
    """Compute the last rows of a sum of two paddings, of which one has a constant there."""
    both = F.pad(x, (0, 0, 2, 1), value=3.0) + F.pad(residual, (0, 0, 3, 0))
    return both[:, 4:].exp() @ w


SHRUNK = [
    last_token, class_token, some_tokens, second_to_last, heads_reshaped, transposed, probabilities, without_keepdim,
    broadcast, two_parts, expanded, of_a_shared_sum, transmittance, gradients_of_shifted_rows, windows_of_padded_rows,
]  # fmt: skip
every_shrunk = pytest.mark.parametrize("function", SHRUNK, ids=lambda f: f.__name__)


def inputs():
    return drawn((B, S, D), (B, S, D), (D,), (D, N))


@every_shrunk
def test_is_shrunk_with_the_same_values(function):
    module, lines, before = traced(function, inputs())
    assert lines
    assert computed(module.graph) < before
    torch.testing.assert_close(module(*inputs()), function(*inputs()))


@pytest.mark.parametrize(
    "function", [second_to_last, class_token, transposed, gradients_of_symbolic_rows], ids=lambda f: f.__name__
)
def test_symbolic_sizes(function):
    module, lines, _ = traced(function, inputs(), dynamic=True)
    assert len(lines) == 1
    for sizes in ((3, 9), (5, 2), (2, 64)):
        other = drawn((*sizes, D), (*sizes, D), (D,), (D, N))
        torch.testing.assert_close(module(*other), function(*other))


def test_the_gradients_of_shifted_rows_are_one_kernel():
    """Check that the gradients of shifted rows are one kernel.

    A sum of them was stored in rows as long as all shifts need, and then a part of it was added to the last.
    """

    def gradient(x, weight):
        zeros = x.new_zeros(4, 1027, 512)
        shifted = [zeros.slice_scatter(x * weight[n], 1, n, 1024 + n) for n in range(4)]
        return F.pad(sum(shifted[1:], shifted[0]), (0, 0, -3, 0))

    given = [torch.empty(4, 1024, 512), torch.empty(4, 512)]
    kernels = [offline.compile_for_gpu(gradient, given, compile_fx=fx).n_kernels for fx in (None, bridge_backend)]
    assert kernels == [2, 1]


def test_every_operation_of_a_norm_works_on_one_row():
    module, _, before = traced(last_token, inputs())
    assert before == S * computed(module.graph)


@pytest.mark.parametrize("repeat", [lambda t: t, lambda t: t.expand(1, D)], ids=["pointwise", "expand"])
def test_an_empty_part_of_a_dimension_of_one_is_empty_above(repeat):
    """Check that an empty part of a dimension of one is empty above.

    An input with one element there is not repeated where the result has one, too; another may be empty.
    """

    def nothing(x, residual, weight, w):
        row = (repeat(x[0, :1].exp()) * residual[0, :1]).softmax(-1)
        return torch.cat([row[:0].neg(), torch.zeros(0, D, dtype=row.dtype)], 1) @ torch.cat([w, w])

    module, lines, _ = traced(nothing, inputs())
    assert lines
    torch.testing.assert_close(module(*inputs()), nothing(*inputs()))


def other_user(x, residual, weight, w):
    y = rms(x + residual, weight)
    return y[:, -1] @ w, y @ w


def two_slices(x, residual, weight, w):
    gate, up = rms(x + residual, weight).chunk(2, 1)
    return gate @ w, up @ w


def reduced_over_the_slice(x, residual, weight, w):
    return (x + residual).softmax(1)[:, -1] @ w


def scanned(x, residual, weight, w):
    return (x + residual).cumsum(1)[:, -1] @ w


def random(x, residual, weight, w):
    return torch.rand_like(x)[:, -1] @ w


def of_the_reduced_dimension(x, residual, weight, w):
    """Take a part of the reduced dimension: the statistic needs the whole row, and would be a kernel of its own."""
    return rms(x + residual, weight)[..., :4] @ w[:4]


def both_halves(x, residual, weight, w):
    """Compute two norms that share one kernel; shrunk, they would be two."""
    return rms(x, weight)[:, -1] @ w, rms(x, residual[0, 0]) @ w


def inlined(x, residual, weight, w):
    """Take a part of a pointwise value, which Inductor computes by itself."""
    return (x + residual)[:, -1].exp() * weight


def at_a_place_unknown(x, residual, weight, w):
    index = torch.zeros((), dtype=torch.int64)
    return rms(x + residual, weight).index_select(1, index.reshape(1)) @ w


def result(x, residual, weight, w):
    """Return a part of a result, whose strides, those of the whole, the caller sees."""
    return rms(x + residual, weight)[:, -1]


def strides_are_seen(x, residual, weight, w):
    return torch.as_strided(rms(x + residual, weight)[1], (D,), (1,), S * D) @ w


@torch.library.custom_op("bridge_test::flat", mutates_args=())
def flat(x: torch.Tensor) -> torch.Tensor:
    """Copy in an operator of the user, which may look at strides."""
    return x.clone()


@flat.register_fake
def _(x):
    return x.clone()


def users_operator(x, residual, weight, w):
    return flat(rms(x + residual, weight)[:, -1]) @ w


def flattened(x, residual, weight, w):
    """Take a row of a flat value, which is no index of any dimension above."""
    return rms(x + residual, weight).reshape(B * S, D)[-1:] @ w


UNTOUCHED = [
    other_user, two_slices, reduced_over_the_slice, scanned, of_the_reduced_dimension, both_halves, inlined,
    at_a_place_unknown, random, result, strides_are_seen, users_operator,
]  # fmt: skip


@pytest.mark.parametrize("function", UNTOUCHED, ids=lambda f: f.__name__)
def test_stays_as_it_is(function):
    module, lines, before = traced(function, inputs())
    assert lines == []
    assert computed(module.graph) == before


def test_moves_as_far_as_it_can():
    """Check that a slice moves as far as it can: here only above the reshape, and sums are computed where needed."""
    module, lines, before = traced(flattened, inputs())
    torch.testing.assert_close(module(*inputs()), flattened(*inputs()))
    assert (computed(module.graph) < before) == bool(lines)


def drawn_program(seed):
    """Return a program of operations of all kinds above slices, the same at every call."""
    steps = {
        "pointwise": lambda x, draw: torch.sigmoid(x),
        "broadcast": lambda x, draw: x - x.mean(draw.randrange(x.dim()), keepdim=True),
        "reduction": lambda x, draw: x.sum(draw.randrange(x.dim())) if x.dim() > 2 else x,
        "transpose": lambda x, draw: x.transpose(0, -1),
        "unsqueeze": lambda x, draw: x.unsqueeze(draw.randrange(x.dim() + 1)) if x.dim() < 4 else x,
        "norm": lambda x, draw: F.layer_norm(x, x.shape[-1:]),
        "softmax": lambda x, draw: x.softmax(draw.randrange(x.dim())),
        "reshape": lambda x, draw: x.flatten(dim := draw.randrange(x.dim() - 1), dim + 1) if x.dim() > 2 else x,
    }

    def program(x, residual, weight, w):
        draw = Random(seed)
        values = [x, residual, x * weight + residual]
        for name in draw.choices(sorted(steps), k=draw.randint(3, 8)):
            values.append(steps[name](draw.choice(values[-2:]), draw))
        y = values[-1]
        for _ in range(draw.randint(1, 2)):
            dim = draw.randrange(y.dim())
            start = draw.randrange(y.shape[dim])
            y = y.narrow(dim, start, draw.randint(1, y.shape[dim] - start))
        y = y.select(0, -1) if y.dim() > 2 else y
        return y.flatten(0, -2) @ y.new_ones(y.shape[-1], 3)

    return program


def test_drawn_programs_keep_their_values():
    shrunk = 0
    for seed in range(60):
        module, lines, before = traced(drawn_program(seed), inputs())
        torch.testing.assert_close(module(*inputs()), drawn_program(seed)(*inputs()), msg=f"seed {seed}")
        assert computed(module.graph) < before if lines else computed(module.graph) == before
        shrunk += bool(lines)
    assert shrunk > 10


def test_a_tensor_that_is_changed_later_is_read_before():
    def changed(x, residual, weight, w):
        y = rms(x + residual, weight)
        residual.mul_(0)
        return y[:, -1] @ w

    module, lines, _ = traced(changed, inputs())
    assert len(lines) == 1
    given = inputs()
    torch.testing.assert_close(module(*given), changed(*inputs()))
    assert not given[1].any()


def test_an_error_leaves_the_graph(monkeypatch):
    """Check that an error leaves the graph as it was, though half of it was changed."""
    calls = []

    def broken(node):
        calls.append(node)
        if len(calls) == 4:
            raise RuntimeError("broken")
        return retrace(node)

    retrace = graphs.retrace
    module = make_fx(last_token, decomposition_table=select_decomp_table(), tracing_mode="fake")(*inputs())
    before = module.graph.python_code("self").src
    monkeypatch.setattr(graphs, "retrace", broken)
    with V.set_fake_mode(fake_mode(module.graph)), pytest.raises(RuntimeError, match="broken"):
        list(shrink_domains(module.graph))
    assert module.graph.python_code("self").src == before


class TestCompiled:
    """Test the pass as a user compiles it."""

    def test_the_kernel_stores_one_row(self):
        given = [t.bfloat16() for t in drawn((2048, 512), (2048, 512), (512,), (512, 64))]

        def function(x, residual, weight, w):
            return rms(x + residual, weight)[-1:] @ w

        sizes = []
        for backend in (None, bridge_backend):
            code = offline.compile_for_gpu(function, given, compile_fx=backend).code
            sizes.append("empty_strided_cuda((2048, 512)" in code)
        assert sizes == [True, False]

    @pytest.mark.parametrize("dynamic", [False, True])
    @pytest.mark.parametrize("norm", [rms, lambda x, weight: F.layer_norm(x, (40,), weight)], ids=["rms", "layer_norm"])
    def test_rows_of_concatenated_tokens_take_no_kernel_more(self, norm, dynamic):
        """Check that a part of concatenated tokens takes no kernel more.

        The kernel that concatenates normalises all of them; a part would be in another.
        """

        def patches(x, token, registers, weight, w):
            extra = [t.expand(x.shape[0], -1, -1) for t in (token, registers)]
            return norm(torch.cat([*extra, norm(x, weight)], 1), weight)[:, :-4].mean(1) @ w

        given = [t.bfloat16() for t in drawn((3, 17, 40), (1, 1, 40), (1, 4, 40), (40,), (40, N))]
        if dynamic:
            torch._dynamo.mark_dynamic(given[0], 0)
        launches = [
            len(parse_wrapper(offline.compile_for_gpu(patches, given, compile_fx=backend).code).launches)
            for backend in (None, bridge_backend)
        ]
        assert launches[1] <= launches[0]

    @pytest.mark.parametrize("dynamic", [False, True])
    def test_numerics(self, dynamic, compiler, counters):
        given = [t.float() for t in drawn((3, 5, 32), (3, 5, 32), (32,), (32, 8))]
        if dynamic:
            torch._dynamo.mark_dynamic(given[0], 1)
            torch._dynamo.mark_dynamic(given[1], 1)
        result, _ = run_emitted(last_token, given, bridge_backend, dynamic=None if dynamic else False)
        torch.testing.assert_close(result.double(), last_token(*[t.double() for t in given]), rtol=1e-5, atol=1e-5)
        assert counters()["shrink_domains"] == 1

    def test_an_output_has_the_strides_of_eager_mode(self, compiler):
        given = [t.float() for t in inputs()]
        token = compiler(result, backend="bridge")(*given)
        torch.testing.assert_close(token, result(*given))
        assert token.stride() == result(*given).stride()

    def test_can_be_turned_off(self, compiler, counters):
        given = [t.float() for t in inputs()]
        compiler(last_token, backend="bridge", options={"shrink_domains": False})(*given)
        assert "shrink_domains" not in counters()

    def test_training_graphs_stay(self, compiler, counters):
        given = [t.float().requires_grad_() for t in inputs()]
        with torch.enable_grad():
            compiler(last_token, backend="bridge", options={"training": False})(*given).sum().backward()
        assert "shrink_domains" not in counters()
