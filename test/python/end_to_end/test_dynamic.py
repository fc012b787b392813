"""Test dynamic shapes: what fuses for one size fuses for all, with the guards and recompilations of Inductor's."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted
from functions import gate, norm

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.inductor.compiling import torch_release
from bridge.reasons import Reason
from bridge.scheduling import hook


def softmax_of_four(x):
    a, b, c, d = torch.softmax(x, -1).chunk(4, -1)
    return a * b + c * d


def thirds(x):
    a, b, c = norm(x).chunk(3, -1)
    return a * b + c


def residual(x):
    y = x + x.sin()
    first, second = norm(y).chunk(2, -1)
    return y, F.gelu(first) * second


def neighbours(x):
    y = norm(x)
    return y[..., ::2] * y[..., 1::2]


def neighbours_checked(x):
    torch._check(x.shape[-1] % 2 == 0)
    return neighbours(x)


def quantised(x):
    y = gate(x)
    scale = y.abs().amax(-1, keepdim=True) / 127
    return y / scale, scale


def heads(x):
    return gate(x.unflatten(-1, (2, -1)))


def halves_and_quarters(x):
    y = norm(x)
    a, b, c, d = y.chunk(4, -1)
    first, second = y.chunk(2, -1)
    return a * b + c * d, first * second


def half(x):
    return norm(x)[..., : x.shape[-1] // 2] * 2


def half_checked(x):
    torch._check(x.shape[-1] % 2 == 0)
    return half(x)


def half_of_heads(x):
    torch._check(x.shape[-1] % 4 == 0)
    return half(x.unflatten(-1, (4, -1)))


def rotated_checked(x):
    """Rotate the halves of a normed row, whose width is checked to be even: the other half is read under guards."""
    torch._check(x.shape[-1] % 2 == 0)
    y = norm(x)
    first, second = y.chunk(2, -1)
    turned = torch.cat([-second, first], -1)
    return first * 0.5, y * 0.5 + turned * 0.25


def heads_in_turn(x):
    """Normalise tokens stored head by head, then place two groups of three heads side by side."""
    tokens = x.shape[0]
    y = norm(x.permute(1, 2, 0, 3).reshape(6, tokens, 16))
    return y.reshape(2, 3 * tokens, 16).transpose(0, 1).reshape(-1, 32)


@dataclass(frozen=True)
class Case:
    """Hold a function with the sizes that it is compiled for and those that it is called with after that.

    dims: dynamic dimensions of the input; kernels: of Bridge's for a GPU, None where that depends on torch's release;
    on_cpu: whether C++ is tested, too.
    """

    function: Any
    dims: tuple[int, ...]
    sizes: tuple[tuple[int, ...], ...]
    kernels: int | None = 1
    on_cpu: bool = False

    def __str__(self) -> str:
        return f"{self.function.__name__}-{'x'.join(map(str, self.dims))}"

    def inputs(self) -> list[torch.Tensor]:
        first, *others = [torch.randn(size, generator=torch.Generator().manual_seed(0)) for size in self.sizes]
        for dim in self.dims:
            torch._dynamo.mark_dynamic(first, dim)
        return [first, *others]


WIDTHS = ((5, 96), (5, 48), (5, 312))
BATCHES = ((2, 5, 48), (3, 7, 24), (4, 2, 96))
CASES = [
    Case(gate, (0,), ((5, 96), (9, 96))),
    Case(gate, (0,), ((2, 5, 48), (3, 5, 48))),
    Case(gate, (1,), ((2, 5, 48), (2, 9, 48))),
    Case(gate, (0, 1), ((2, 5, 48), (4, 9, 48))),
    Case(gate, (1,), WIDTHS, on_cpu=True),
    Case(gate, (0, 1), ((5, 96), (3, 48), (7, 312))),
    Case(gate, (0, 1, 2), BATCHES, on_cpu=True),
    Case(softmax_of_four, (1,), WIDTHS),
    Case(thirds, (1,), WIDTHS, on_cpu=True),
    Case(residual, (0, 1), WIDTHS, on_cpu=True),
    Case(neighbours, (1,), WIDTHS),  # in C++ each of its loops stays by itself, and so it is refused there
    Case(neighbours_checked, (1,), WIDTHS),
    Case(quantised, (1,), WIDTHS),
    Case(heads, (1,), WIDTHS, on_cpu=True),
    Case(halves_and_quarters, (1,), WIDTHS),
    Case(half_checked, (1,), WIDTHS),
    Case(rotated_checked, (1,), WIDTHS, kernels=None),
    Case(heads_in_turn, (0,), ((5, 2, 3, 16), (9, 2, 3, 16))),
]


def close(actual, expected):
    """Compare with float64's result; reductions in another order change the last bits."""
    actual, expected = ((t,) if isinstance(t, torch.Tensor) else t for t in (actual, expected))
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


def launches(case, backend):
    """Return (kernels emitted for a GPU, result for the size that it was compiled for), run by Triton's interpreter."""
    result, (code,) = run_emitted(case.function, case.inputs()[:1], backend, dynamic=None)
    return code.count(".run("), result


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gpu_kernels(case):
    theirs, _ = launches(case, "inductor")
    ours, result = launches(case, bridge_backend)
    if case.function is rotated_checked and torch_release() < (2, 13):
        pytest.skip("this torch joins halves of symbolic width in a loop over all of the row")
    assert ours < theirs
    assert ours == case.kernels or case.kernels is None
    assert any(group.fused for group in bridge.report().groups), bridge.report()
    close(result, case.function(case.inputs()[0].double()))


def two_batches(x):
    torch._check(x.shape[-1] % 8 == 0)
    x = x - torch.logsumexp(x, -1, keepdim=True)
    first, second = (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)).chunk(2, -1)
    return F.silu(first - 0.5 * second)


def test_loops_that_inductor_could_not_split():
    """Check that loops are refused that Inductor's codegen cannot split.

    Of symbols it cannot prove that its merged loops over a half, `8 * (s // 2)`, are 8 rows of the kernel.
    """
    x = torch.randn(2, 8, 104, generator=torch.Generator().manual_seed(0))
    torch._dynamo.mark_dynamic(x, 2)
    result, _ = run_emitted(two_batches, [x], bridge_backend, dynamic=None)
    assert [group.reason for group in bridge.report().groups] == [Reason.not_liftable], bridge.report()
    close(result, two_batches(x.double()))


@pytest.fixture
def added_guards(monkeypatch):
    """Return a list to which each graph adds the guards on sizes that Bridge's pass has added."""
    from torch._inductor.virtualized import V

    added: list[Any] = []

    def fuse_and_record(*args):
        before = [str(guard.expr) for guard in V.graph.sizevars.shape_env.guards]
        schedule = fuse_schedule(*args)
        added.append([str(guard.expr) for guard in V.graph.sizevars.shape_env.guards[len(before) :]])
        return schedule

    fuse_schedule = hook.fuse_schedule
    monkeypatch.setattr(hook, "fuse_schedule", fuse_and_record)
    return added


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", [case for case in CASES if case.on_cpu], ids=str)
def test_cpu_one_graph_serves_all_sizes(case, compiler, added_guards):
    first, *others = case.inputs()
    compiled = compiler(case.function, backend="bridge")
    close(compiled(first), case.function(first.double()))
    assert bridge.report().fused, bridge.report()
    with torch._dynamo.config.patch(error_on_recompile=True):
        for x in others:
            close(compiled(x), case.function(x.double()))
    assert added_guards == [[]]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dim", [1, 2])
def test_automatic_dynamic_shapes(dim, compiler, added_guards):
    """Check that the first size is compiled for itself and the second for all sizes: nothing is compiled after that."""
    compiled = compiler(gate, backend="bridge")
    for extent in (4, 6, 8, 10):
        x = torch.randn([extent if n == dim else 12 for n in range(3)])
        close(compiled(x), gate(x.double()))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2
    assert torch._dynamo.utils.counters["bridge"]["groups_fused"] == 2
    assert added_guards == [[], []]


@pytest.mark.parametrize("function, condition", [(half, "% 2 == 0"), (half_of_heads, "% 8 == 0")])
def test_missing_guard_is_named(function, condition):
    """Check that the refusal names the missing condition on the row's length, and `torch._check`."""
    case = Case(function, (1,), WIDTHS)
    assert launches(case, bridge_backend)[0] == 2
    (group,) = bridge.report().groups
    assert group.reason is Reason.dynamic_extent and condition in group.detail
    assert "torch._check" in group.detail


def test_proven_again():
    """Check that isl, which shares no code with the passes, also proves fusions with rows of symbolic length."""
    pytest.importorskip("islpy")

    def backend(gm, inputs):
        return bridge_backend(gm, inputs, options={"recheck": True})

    for function in (gate, neighbours, heads):
        assert launches(Case(function, (0, 1), WIDTHS), backend)[0] == 1
        (group,) = bridge.report().groups
        assert group.fused and group.certificate


@pytest.mark.parametrize("said", [False, True])
def test_weight_of_half_a_row_kept_the_kernels_apart(said):
    """Check that a weight of half a row is fused with the row.

    Its length is a symbol of its own, which only a guard relates to the row's.
    """

    def weighted(x, w):
        torch._check(not said or x.shape[-1] % 2 == 0)
        first, second = norm(x).chunk(2, -1)
        return (torch.sigmoid(first) + second) * w

    x, w = torch.randn(5, 96), torch.randn(48)
    for tensor in (x, w):
        torch._dynamo.mark_dynamic(tensor, tensor.dim() - 1)
    result, (code,) = run_emitted(weighted, [x, w], bridge_backend, dynamic=None)
    assert code.count(".run(") == 1 and bridge.report().fused
    close(result, weighted(x.double(), w.double()))


def pixels(x):
    batch, height, width, channels = x.shape
    first, second = norm(x.reshape(batch, height * width, channels)).view(x.shape).chunk(2, -1)
    return (first * torch.sigmoid(second)).transpose(1, 2).contiguous()


@pytest.mark.parametrize("size", [(2, 5, 7, 16), (2, 6, 6, 16)], ids=["rectangle", "square"])
def test_tokens_of_an_image_were_other_rows_than_its_pixels(size):
    """Check that the tokens of an image and its pixels are the same rows.

    The norm goes over `height * width` tokens in one loop, and its reader goes over rows and columns.
    """
    x = torch.randn(size, generator=torch.Generator().manual_seed(0))
    with bridge.config.patch(strict=True):
        result, (code,) = run_emitted(pixels, [x], bridge_backend, dynamic=True)
    assert code.count(".run(") == 1 and bridge.report().fused, bridge.report()
    close(result, pixels(x.double()))


def tokens_of_planes(x, positions):
    tokens = (x + positions).flatten(2).transpose(1, 2)
    return norm(tokens), tokens


def windows(x, residual, weight, bias):
    y = x + residual
    batch, height, width, channels = y.shape
    cut = F.layer_norm(y, (channels,), weight, bias).view(batch, height // 7, 7, width // 7, 7, channels)
    return cut.permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, channels), y


def every_other_line(x):
    """Write the halves of each pixel to alternating lines, as in the gradient of merging an image's lines by two."""
    batch, height, width, channels = x.shape
    above, below = norm(x).chunk(2, -1)
    lines = x.new_zeros(batch, 2 * height, width, channels // 2)
    return lines.slice_scatter(above, 1, 0, None, 2) + lines.slice_scatter(below, 1, 1, None, 2)


@pytest.mark.parametrize(
    ("function", "shapes", "sides"),
    [
        (tokens_of_planes, [(2, 16, 5, 7), (1, 16, 5, 7)], (2, 3)),
        (windows, [(2, 14, 21, 16), (2, 14, 21, 16), (16,), (16,)], (1, 2)),
        (every_other_line, [(2, 5, 7, 16)], (1, 2)),
    ],
)
def test_images_of_symbolic_sides_kept_more_kernels_than_those_of_numbers(function, shapes, sides):
    """Check that images with symbolic sides need one kernel, as those with fixed sides do.

    The cases: planes in two loops beside tokens in one; windows whose guard is on a quotient; remainders by a part of a
    symbol.
    """
    inputs = [torch.randn(shape, generator=torch.Generator().manual_seed(0)) for shape in shapes]
    for x, side in itertools.product(inputs, sides):
        if x.dim() > 1:
            torch._dynamo.mark_dynamic(x, side)
    with bridge.config.patch(strict=True):
        result, (code,) = run_emitted(function, inputs, bridge_backend, dynamic=None)
    assert code.count(".run(") == 1 and bridge.report().fused, bridge.report()
    close(result, function(*[x.double() for x in inputs]))


def means_of_fields(t, x, mean, scale, others):
    weighted = (t[:, :3] * (x[:, :3] - mean)).sum(0)
    return t[:, :3].sum(0), F.pad(weighted * scale, (0, 2)) + F.pad(others, (3, 0))


def test_three_of_five_sums_were_stored_inside_the_loop_that_adds_them_up():
    """Check that sums which only three columns of five store under a guard are stored after the loop that adds them up.

    The row has a symbolic length, and may be read in a loop.
    """
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(size, generator=generator) for size in ((6, 9), (6, 9), 3, 3, 2)]
    with bridge.config.patch(strict=True):
        result, _ = run_emitted(means_of_fields, inputs, bridge_backend, dynamic=True)
    close(result, means_of_fields(*[x.double() for x in inputs]))


def turned(x, angles):
    first, second = x.chunk(2, -1)
    return x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()


def repeated_keys(q, k, weights, frequencies):
    """Compute the normed and turned queries and keys of tokens; keys are repeated for four heads of queries."""
    tokens, heads, width = k.shape
    angles = torch.arange(tokens, device=q.device)[:, None] * torch.cat([frequencies, frequencies])
    q, k = (turned(norm(x) * weight, angles[:, None]) for x, weight in ((q, weights[0]), (k, weights[1])))
    return q, k.transpose(0, 1)[:, None].expand(heads, 4, tokens, width).reshape(4 * heads, tokens, width)


@pytest.mark.parametrize("tokens", [37, 64])
def test_repeated_keys_kept_the_loops_of_queries_from_a_symbolic_number_of_tokens(tokens):
    """Check that queries keep loops over half rows, with a symbolic number of tokens, beside copies of the keys.

    Inductor puts the copies, which go head by head, into the kernel of the queries, which goes token by token.
    """
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(size, generator=generator) for size in ((tokens, 8, 128), (tokens, 2, 128), (2, 128), 64)]
    for x in inputs[:2]:
        torch._dynamo.mark_dynamic(x, 0)
    with bridge.config.patch(strict=True):
        result, (code,) = run_emitted(repeated_keys, inputs, bridge_backend, dynamic=None)
    expected = repeated_keys(*[x.double() for x in inputs])
    for own, right in zip(result, expected, strict=True):
        close(own, right)
    assert code.count("r0_numel = 64") == 2 and "r0_numel = 128" not in code, bridge.report()


def without_the_last(x):
    """Return the gated halves of the normed rows of all tokens but the last of each sequence."""
    gates, values = norm(x[:, :-1].reshape(-1, x.shape[-1])).chunk(2, -1)
    return F.silu(gates) * values


@pytest.mark.parametrize(("batches", "tokens"), [(3, 5), (4, 3)])
def test_tokens_but_the_last_of_a_symbolic_number_had_kernels_of_their_own(batches, tokens):
    """Check that a symbolic number of tokens without the last of each sequence needs one kernel.

    A row is token `i mod (s - 1)` of sequence `i floordiv (s - 1)`; the sign of `s*t - t` elements must be known.
    """
    x = torch.randn(batches, tokens, 64, generator=torch.Generator().manual_seed(0))
    for axis in (0, 1):
        torch._dynamo.mark_dynamic(x, axis)
    result, (code,) = run_emitted(without_the_last, [x], bridge_backend, dynamic=None)
    close(result, without_the_last(x.double()))
    assert code.count(".run(") == 1, bridge.report()


def overlap(x, y):
    """Return the mean of the Dice losses of planes, each of a number of elements for which Inductor splits sums."""
    x, y = x.sigmoid().flatten(1), y.flatten(1)
    return (1 - (2 * (x * y).sum(1) + 1) / (x.sum(1) + y.sum(1) + 1)).mean()


@pytest.mark.parametrize(("planes", "side"), [(6, 128), (41, 113)])
def test_parts_of_sums_of_a_symbolic_number_of_rows_had_kernels_of_their_own(planes, side):
    """Each lane adds up the parts of its row: the row of all lanes is in no registers, and has no segments."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.rand(planes, side, side, generator=generator) for _ in range(2)]
    for axis in range(3):
        torch._dynamo.mark_dynamic(inputs[0], axis)
        torch._dynamo.mark_dynamic(inputs[1], axis)
    result, (code,) = run_emitted(overlap, inputs, bridge_backend, dynamic=None)
    close(result, overlap(*(tensor.double() for tensor in inputs)))
    assert code.count(".run(") == 2, bridge.report()


def norm_of_blocks(x):
    """Return the norm of the channels of 2 x 2 pixels."""
    blocks = F.pixel_unshuffle(x, 2).permute(0, 2, 3, 1)
    return F.layer_norm(blocks, blocks.shape[-1:])


@pytest.mark.parametrize(("images", "side"), [(3, 6), (2, 10)])
def test_square_images_of_a_symbolic_size_had_kernels_of_their_own(images, side):
    """Lines and columns are one symbol: Inductor does not divide `(s // 2)**2` by `s // 2`."""
    x = torch.randn(images, 16, side, side, generator=torch.Generator().manual_seed(0))
    for axis in (0, 2, 3):
        torch._dynamo.mark_dynamic(x, axis)
    result, (code,) = run_emitted(norm_of_blocks, [x], bridge_backend, dynamic=None)
    close(result, norm_of_blocks(x.double()))
    assert code.count(".run(") == 1, bridge.report()


def test_merged_moments_had_no_vectors_in_cpp(compiler):
    """Check that C++ refuses the variance of a row of two parts, and that Triton fuses it.

    Inductor merges the parts by a reduction of moments, for which its C++ has no vectors.
    """

    def halves(x):
        first, second = (x / (1 + x.var(-1, keepdim=True))).chunk(2, -1)
        return F.silu(first) * second

    case = Case(halves, (1,), WIDTHS)
    (x, *_) = case.inputs()
    close(compiler(halves, backend="bridge")(x), halves(x.double()))
    (group,) = bridge.report().groups
    assert group.reason is Reason.not_liftable and "moments" in group.detail
    assert launches(case, bridge_backend)[0] == 1


def test_what_no_guard_would_help_is_not_blamed_on_guards():
    """Check that the refusal of a row that starts inside another one is not blamed on missing guards."""

    def shifted(x):
        y = norm(x)
        return y[..., 1 : x.shape[-1] // 2] * 2

    launches(Case(shifted, (1,), WIDTHS), bridge_backend)
    (group,) = bridge.report().groups
    assert not group.fused and group.reason is not Reason.dynamic_extent


def test_lengths_that_do_not_divide_are_compiled_anew(compiler):
    """Check that another length is compiled anew: Inductor's guard on equal halves holds for Bridge's kernel, too."""
    case = Case(gate, (1,), ((5, 96), (5, 50)))
    compiled = compiler(case.function, backend="bridge")
    for x in case.inputs():
        close(compiled(x), gate(x.double()))
    odd = torch.randn(5, 51)
    with pytest.raises(Exception, match="must match the size"):
        compiled(odd)
