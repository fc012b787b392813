"""Test rows and columns in one kernel, which leaves partial sums of columns: kernels, numbers, and what stays apart."""

from __future__ import annotations

import functools

import pytest
import torch
from column_tests import decisions
from functions import norm
from torch._inductor.utils import run_and_get_code
from training import PATTERNS, adaln_residual, adaln_residual_images, count, graphs

import bridge
from bridge import offline
from bridge.backend import bridge as backend
from bridge.offline.interpret import interpreter
from bridge.reasons import Reason


def compiled_for(**options):
    return functools.partial(backend, options={"strict": True, **options})


@pytest.mark.parametrize(
    "name", ["a, b = rms(x).chunk(2); silu(a) * b", "AdaLN, h = x + gate * y", "ln(x + dropout(y))"]
)
def test_a_backward_is_a_kernel_of_rows_and_one_that_adds_up(name):
    """Check that a backward is a kernel of rows, with what Inductor's mix-order kernel leaves, and one that adds up."""
    function, make = PATTERNS[name]
    forward, backward = graphs(function, make(), compiled_for(training=True))
    assert (count(forward), count(backward)) == ("1", "2"), bridge.report()
    assert len(decisions()) == 1
    assert "by PyTorch saved" in str(bridge.report())


def test_a_sum_beside_a_result_that_overwrites_what_was_saved_needs_no_room():
    """Check that a sum needs no memory beside GELU's gradient, which overwrites what the forward saved."""
    function, make = PATTERNS["gelu(x @ w + b)"]
    _, backward = graphs(function, make(), compiled_for(training=True))
    assert count(backward) == "2", bridge.report()
    assert "(in_out_ptr0" in backward


@pytest.mark.parametrize("name", ["layer norm, 2048 rows", "LayerScale"])
def test_partial_sums_need_room_in_memory(name):
    """Check that partial sums are refused at the graph's peak of memory, where Inductor adds up without a workspace."""
    function, make = PATTERNS[name]
    _, backward = graphs(function, make(), compiled_for(training=True))
    assert count(backward) in ("3", "4")
    assert any(reason is Reason.not_profitable and "bytes of memory more" in why for reason, why in apart())
    _, backward = graphs(function, make(), compiled_for(training=True, force_fusion=True))
    assert count(backward) == "2", bridge.report()


def apart():
    return [pair for group in bridge.report().groups for pair in group.apart]


def tanh_backward(x, g):
    """Compute a gradient whose arithmetic takes longer than its memory accesses, and its sums of columns."""
    t = (0.8 * (x + 0.04 * x * x * x)).tanh()
    h = g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (0.8 + 0.1 * x * x))
    return h, h.sum(0)


def tanh_backward_scaled(x, g):
    """Compute tanh's gradient with a factor from a reduced row, so that a program holds the whole row."""
    h = tanh_backward(x, g * x.float().abs().mean(-1, keepdim=True).to(x.dtype))[0]
    return h, h.sum(0)


@pytest.mark.parametrize("columns", [4096, 4608])
def test_lanes_beyond_a_row_compute_too(columns):
    """Check that the cost counts lanes beyond a row's end (4608 has 8192): a feed-forward took longer fused."""
    torch._dynamo.reset()
    inputs = [torch.empty(16384, columns, dtype=torch.bfloat16) for _ in range(2)]
    offline.compile_for_gpu(tanh_backward_scaled, inputs, compile_fx=compiled_for())
    (why,) = [why for _, why in apart() if "more" in why or "launches become" in why]
    assert ("launches become 2, which lose the time of " in why) == (columns == 4608)


def of_result(x, g, w):
    """Add up the columns of a product with what the kernel of rows writes."""
    h = norm(x, w)
    return h, (h * g).sum(0)


def of_row_before(x, g, w):
    h = norm(x, w)
    return h, (torch.roll(h, 1, 0) * g).sum(0)


def of_column_before(x, g, w):
    h = norm(x, w)
    return h, (torch.roll(h, 1, 1) * g).sum(0)


@pytest.mark.parametrize(("function", "fused"), [(of_result, True), (of_row_before, False), (of_column_before, False)])
@pytest.mark.parametrize("rows", [2048, 1024])
def test_only_what_its_own_row_and_column_wrote_is_added_up(function, fused, rows):
    """Check that rows of a square tile are not taken for its columns: a sum is fused if it reads its own ones."""
    inputs = torch.randn(rows, 2048), torch.randn(rows, 2048), torch.randn(2048)
    torch._dynamo.reset()
    found = offline.compile_for_gpu(function, inputs, compile_fx=compiled_for(force_fusion=True))
    assert (found.n_kernels, len(decisions())) == ((2, 1) if fused else (3, 0)), bridge.report()


def sums(x, g, w):
    return norm(x, w), (x * g).sum(0), x.sum(0)


def test_symbolic_columns_are_as_inductor_has_them():
    inputs = torch.randn(16384, 512), torch.randn(16384, 512), torch.randn(512)
    found = []
    for compile_fx in (None, compiled_for()):
        torch._dynamo.reset()
        found.append(offline.compile_for_gpu(sums, inputs, compile_fx=compile_fx, dynamic=True).n_kernels)
    assert found[1] <= found[0]
    refused = [*apart(), *((refusal.reason, refusal.detail) for refusal in bridge.report().refusals)]
    assert any(reason is Reason.dynamic_extent and "adds up" in detail for reason, detail in refused)


def gradients(function, inputs):
    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_() for tensor in inputs]
        outputs = function(*leaves)
        generator = torch.Generator().manual_seed(1)
        weights = [torch.randn(output.shape, generator=generator, dtype=torch.float64) for output in outputs]
        found = torch.autograd.grad(outputs, leaves, [w.to(o.dtype) for w, o in zip(weights, outputs, strict=True)])
    return [*outputs, *found]


@pytest.mark.parametrize(("rows", "columns"), [(75, 24), (96, 32)])
def test_numbers_of_blocks_that_the_rows_do_not_fill(few_processors, rows, columns):
    """Check float32 results of x + gate * y, with three sums of columns, for rows that do not fill the last block."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(rows, columns)] * 2 + [(columns,)] * 3
    inputs = [torch.randn(shape, generator=generator) for shape in shapes]
    exact = gradients(adaln_residual, [tensor.double() for tensor in inputs])
    torch._dynamo.reset()
    with interpreter():
        options = {"training": True, "strict": True, "force_fusion": True}
        found = gradients(torch.compile(adaln_residual, backend="bridge", dynamic=False, options=options), inputs)
    assert len(decisions()) == 1
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


def standardised(x, centre, spread, *others):
    """Store a row, with four parameters of each element, beside a sum of its columns, with three."""
    slope, shift, weight, bias, share = others
    h = (x - centre) / (spread * spread + 1).sqrt()
    return torch.softmax(h * slope + shift, -1) * weight + bias, (h * share).sum(0)


@pytest.mark.parametrize(("rows", "columns"), [(75, 24), (96, 32)])
def test_parameters_that_are_loaded_once_are_the_same_for_all_rows(few_processors, rows, columns):
    """Check that parameters are loaded once for all rows, also where blocks are not full and lanes have no column."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator) for shape in [(rows, columns), *[(columns,)] * 7]]
    torch._dynamo.reset()
    options = {"strict": True, "force_fusion": True}
    compiled = torch.compile(standardised, backend="bridge", dynamic=False, options=options)
    with interpreter(), torch.no_grad():
        found, (code,) = run_and_get_code(compiled, *inputs)
    assert len(decisions()) == 1, bridge.report()
    once, _, with_rows = code.partition("for _ in tl.range(")
    assert (once.count("tl.load("), with_rows.partition("tl.store(ws_ptr")[0].count("tl.load(")) == (7, 1)
    for one, other in zip(found, standardised(*(tensor.double() for tensor in inputs)), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


def all_the_same_in_a_row(x, s):
    """Add up columns of a value that is the same in a whole row, where lanes beyond it would add exp(0), not 0."""
    y = torch.softmax(x, -1)
    return y, (torch.exp(s).expand_as(x) + 0 * x).sum(0), (y + 1).sum(0)


def test_a_sum_of_broadcast_rows_ends_with_the_last(few_processors):
    x, s = torch.randn(75, 24), torch.randn(75, 1)
    torch._dynamo.reset()
    with interpreter(), torch.no_grad():
        options = {"strict": True, "force_fusion": True}
        found = torch.compile(all_the_same_in_a_row, backend="bridge", dynamic=False, options=options)(x, s)
    assert len(decisions()) == 1, bridge.report()
    for one, other in zip(found, all_the_same_in_a_row(x.double(), s.double()), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


def with_scales(x):
    """Return copies in float8 with a scale for each row and for each column; the second one is transposed in memory."""
    wide = x.float()
    rows = wide.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
    columns = wide.abs().amax(0, keepdim=True).clamp(min=1e-12) / 448
    rounded = (wide / rows).to(torch.float8_e4m3fn), (wide / columns).to(torch.float8_e4m3fn)
    return rounded[0], rows, rounded[1].t().contiguous(), columns


def with_scales_after_gate(a, b):
    return with_scales(torch.nn.functional.silu(a) * b)


@pytest.mark.parametrize(("function", "inputs"), [(with_scales, 1), (with_scales_after_gate, 2)])
def test_scales_of_rows_and_of_columns_are_found_in_one_kernel(function, inputs):
    """Check that the columns' scales and their copy stay in tiles of two dimensions, apart from the rows' kernel."""
    torch._dynamo.reset()
    given = [torch.empty(8192, 4096, dtype=torch.bfloat16) for _ in range(inputs)]
    found = offline.compile_for_gpu(function, given, compile_fx=compiled_for(), dynamic=False)
    rows, scales, copy = (kernel.source for kernel in found.kernels)
    assert "RSPLIT_SIZE" in rows and "max2" in rows and "*fp8e4nv" in rows
    assert "max2" in scales and "*fp8e4nv" not in scales
    assert "triton_heuristics.pointwise" in copy and "'y'" in copy
    (group,) = bridge.report().groups
    assert (group.kernels_before, group.kernels_after) == (3, 3) and "1 kernel divided in two" in str(group.done)


def scale_of_columns(x):
    """Return the first copy and both scales: without the second copy, only the columns' scales are left."""
    return with_scales(x)[0], with_scales(x)[1], with_scales(x)[3]


def scale_of_columns_beside(x, y):
    return *scale_of_columns(x), (y @ y) @ y


def test_scales_of_columns_are_one_kernel_more():
    """Check that a kernel is divided only where two products need more memory than the parts of the columns' scales."""
    torch._dynamo.reset()
    given = [torch.empty(8192, columns, dtype=torch.bfloat16) for columns in (4096, 8192)]
    theirs = offline.compile_for_gpu(scale_of_columns_beside, given, dynamic=False).n_kernels
    torch._dynamo.reset()
    compile_fx = compiled_for()
    ours = offline.compile_for_gpu(scale_of_columns_beside, given, compile_fx=compile_fx, dynamic=False).n_kernels
    assert (theirs, ours) == (3, 2), bridge.report()
    torch._dynamo.reset()
    offline.compile_for_gpu(scale_of_columns, given[:1], compile_fx=compile_fx, dynamic=False)
    assert any("bytes of memory more" in why for _, why in apart()) and not decisions()


def test_a_kernel_with_many_rows_in_a_block_stays_whole():
    """Check that a kernel with many rows in a block is not divided: it stores whole sectors of the transposed copy."""
    torch._dynamo.reset()
    given = [torch.empty(65536, 256, dtype=torch.bfloat16)]
    offline.compile_for_gpu(with_scales, given, compile_fx=compiled_for(), dynamic=False)
    assert not decisions()
    assert any(reason is Reason.not_profitable and "3 launches become 3" in why for reason, why in apart())


def same(one, other):
    """Return True if all bits are equal, except those of NaN."""
    number = ~other.float().isnan()
    bits = [tensor.view(torch.uint8 if tensor.itemsize == 1 else torch.int32)[number] for tensor in (one, other)]
    return one.shape == other.shape and torch.equal(one.float().isnan(), ~number) and torch.equal(*bits)


def kept(x, y):
    found = norm(x)
    return found, torch.where(found == y, found, 0).float().sum(0)


def test_columns_of_elements_that_equal_others_are_those_of_memory(few_processors):
    """Check that elements are compared as rounded in memory, not as a kernel of rows and columns has them."""
    x = torch.randn(96, 64, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    torch._dynamo.reset()
    with interpreter(), torch.no_grad():
        y = torch.compile(norm, backend="inductor", dynamic=False)(x)
        torch._dynamo.reset()
        found, total = torch.compile(kept, backend="bridge", dynamic=False, options={"force_fusion": True})(x, y)
    assert torch.equal(found, y)
    torch.testing.assert_close(total, y.float().sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("rows", "columns"), [(75, 120), (96, 64)])
@pytest.mark.parametrize("special", [None, float("nan"), float("-inf")])
def test_copies_in_float8_are_those_of_eager(few_processors, as_if_large, rows, columns, special):
    """Check that copies in float8 equal eager's bit for bit, with rows and lanes beyond the end, NaN or -inf."""
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(0))
    x[:, 3] = -x[:, 3].abs()  # the largest is none of the elements, but of their absolute values
    if special is not None:
        x[rows - 1, 7] = x[2, columns - 1] = special
    torch._dynamo.reset()
    with interpreter(), torch.no_grad():
        options = {"strict": True, "max_nodes": 1}  # no groups: few rows share a kernel with what they wait for
        found = torch.compile(with_scales, backend="bridge", dynamic=False, options=options)(x)
    assert len(decisions()) == 1, bridge.report()
    for one, other in zip(found, with_scales(x), strict=True):
        assert same(one, other)


def extremes(x):
    y = torch.softmax(x, -1)
    return y, x.amax(0), (x * y).amin(0), x.sum(0)


@pytest.mark.parametrize("special", [None, float("nan")])
def test_rows_that_are_not_there_are_no_extremes(few_processors, special):
    """Check that absent rows add nothing to maxima below 0 or minima above it, and that NaN is its column's extreme."""
    x = torch.randn(75, 24, generator=torch.Generator().manual_seed(0)) - 100
    if special is not None:
        x[70, 5] = special
    torch._dynamo.reset()
    with interpreter(), torch.no_grad():
        options = {"strict": True, "force_fusion": True}
        found = torch.compile(extremes, backend="bridge", dynamic=False, options=options)(x)
    assert len(decisions()) == 1, bridge.report()
    for one, other in zip(found, extremes(x), strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)
    assert special is None or found[1][5].isnan()


def modulated_inputs(sequences, tokens, width, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    shapes = [(sequences, tokens, width)] * 2 + [(sequences, width)] * 3
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def beside_product(*inputs):
    """Compute AdaLN of images beside products, where the peak of memory is."""
    *others, a, b = inputs
    return *adaln_residual_images(*others), (a @ b) @ b


def test_sums_over_tokens_are_in_the_kernel_of_the_tokens():
    """Check that the gradients of each sequence's gate, scale and shift are sums in the kernel of the norm's tokens."""
    inputs = [tensor.requires_grad_() for tensor in modulated_inputs(64, 256, 1152, torch.bfloat16)]
    inputs += [torch.empty(8192, 8192, dtype=torch.bfloat16, requires_grad=True) for _ in range(2)]
    theirs = graphs(beside_product, inputs, torch._inductor.compile_fx.compile_fx)
    forward, backward = graphs(beside_product, inputs, compiled_for(training=True))
    assert [count(code) for code in (theirs[1], forward, backward)] == ["3", "1", "2"], bridge.report()
    assert len(decisions()) == 1
    (group,) = (group for group in bridge.report().groups if group.done.divided)
    assert (group.kernels_before, group.kernels_after) == (3, 2) and group.done.divided == 2


def scaled_branch_norm(x, branch, scale, weight, bias):
    """Compute LayerScale and the norm of the next block."""
    h = x + branch * scale
    return h, torch.nn.functional.layer_norm(h, h.shape[-1:], weight, bias)


def test_the_report_has_the_partial_sums_of_kernels_that_are_gone_in_its_peak():
    """Check that the reported peak has the partial sums of replaced kernels of Inductor.

    The report said `peak memory 100.0 MB -> 102.0 MB`, as no estimate had them.
    """
    shapes = [(4, 2048, 2048)] * 2 + [(2048,)] * 3
    inputs = [torch.empty(shape, dtype=torch.bfloat16, requires_grad=True) for shape in shapes]
    graphs(scaled_branch_norm, inputs, compiled_for(training=True))
    report = bridge.report()
    assert 0 < report.peak_after <= report.peak_before, report
    assert all(group.bytes_after > group.bytes_before / 2 for group in report.groups if group.done.sums), report


def forced_gradients(inputs):
    """Return results and gradients of AdaLN of images, with Bridge in the interpreter."""
    torch._dynamo.reset()
    options = {"training": True, "strict": True, "force_fusion": True}
    with interpreter():
        compiled = torch.compile(adaln_residual_images, backend="bridge", dynamic=False, options=options)
        return gradients(compiled, inputs)


def assert_gradients_of_images(found, inputs):
    exact = gradients(adaln_residual_images, [tensor.double() for tensor in inputs])
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("sequences", "tokens", "width", "block"), [(3, 32, 24, 16), (3, 40, 640, 8), (3, 60, 36, 20), (5, 60, 36, 60)]
)
def test_numbers_of_sums_inside_sequences(few_processors_one_stage, as_if_large, sequences, tokens, width, block):
    """Check sums inside sequences of any length: blocks of rows end with each sequence or hold whole sequences."""
    inputs = modulated_inputs(sequences, tokens, width)
    found = forced_gradients(inputs)
    (decision,) = decisions()
    assert f"blocks of {block} rows" in decision
    assert_gradients_of_images(found, inputs)


@pytest.mark.parametrize(("sequences", "tokens", "width", "block"), [(3, 32, 24, 16), (5, 60, 36, 60)])
def test_numbers_of_sums_inside_sequences_that_inductor_has_split(
    few_processors, as_if_large, sequences, tokens, width, block
):
    """Check sums inside sequences that Inductor adds up in two stages, as they are few; the parts are in both."""
    inputs = modulated_inputs(sequences, tokens, width)
    found = forced_gradients(inputs)
    (decision,) = decisions()
    assert f"blocks of {block} rows" in decision
    assert_gradients_of_images(found, inputs)


def test_few_sequences_are_in_the_kernel_of_the_tokens():
    """Check that a sum over the tokens of two sequences, in two stages of Inductor, is in the kernel of the tokens."""
    x, y = (torch.empty(2, 8192, 3072, dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
    inputs = [x, y, torch.empty(2, 3072, dtype=torch.bfloat16, requires_grad=True)]
    inputs += [torch.empty(16384, 16384, dtype=torch.bfloat16, requires_grad=True)]

    def gated(x, y, gate, wide):
        return x + gate[:, None] * y, wide @ wide @ wide

    theirs = graphs(gated, inputs, torch._inductor.compile_fx.compile_fx)
    _, backward = graphs(gated, inputs, compiled_for(training=True))
    assert int(count(backward)) == int(count(theirs[1])) - 1, bridge.report().details()
    assert len(decisions()) == 1


def test_the_last_block_of_a_sequence_has_fewer_rows(few_processors_one_stage):
    """Check that the last block of a sequence may be shorter (37 is prime), and that no block adds up two sequences."""
    inputs = modulated_inputs(4, 37, 24)
    found = forced_gradients(inputs)
    (decision,) = decisions()
    assert "blocks of 8 rows" in decision
    assert_gradients_of_images(found, inputs)


def scaled(o):
    return o * torch.rsqrt(o.pow(2).mean(-1, keepdim=True) + 1e-5)


def weight_of_heads(o, w, g):
    """Compute the output of gated linear attention: a norm of each head with a weight of its own, and a gate."""
    return ((scaled(o.float()) * w * torch.nn.functional.silu(g.float())).to(o.dtype),)


def weight_of_channels(o, w, g):
    """Normalise gated heads with a weight that has no dimension of heads (Mamba 2)."""
    y = scaled((o * torch.nn.functional.silu(g)).float().unflatten(-1, (3, -1))).flatten(-2)
    return ((y * w).to(o.dtype),)


def two_weights_of_heads(o, w, g):
    """Normalise and weigh heads, and add up what the norm's kernel computes."""
    y = scaled(o) * w
    return y * torch.tanh(g), y.sum((0, 1))


@pytest.mark.parametrize(
    ("function", "shape", "weight"),
    [
        (weight_of_heads, (2, 40, 3, 24), (3, 24)),
        (weight_of_heads, (3, 32, 2, 40), (2, 40)),
        (weight_of_channels, (2, 40, 72), (72,)),
        (two_weights_of_heads, (2, 40, 3, 24), (3, 24)),
    ],
)
def test_numbers_of_weights_of_segments(few_processors, as_if_large, function, shape, weight):
    """Check results where rows are segments of those whose columns are added up: each segment has its own sums."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator) for shape in (shape, weight, shape)]
    exact = gradients(function, [tensor.double() for tensor in inputs])
    torch._dynamo.reset()
    options = {"training": True, "strict": True, "force_fusion": True}
    with interpreter():
        found = gradients(torch.compile(function, backend="bridge", dynamic=False, options=options), inputs)
    assert decisions(), bridge.report().details()
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "shape", "weight"),
    [
        (weight_of_heads, (4, 2048, 32, 128), (32, 128)),
        (weight_of_channels, (4096, 3072), (3072,)),
    ],
)
def test_weights_of_segments_are_in_the_kernel_of_the_segments(function, shape, weight):
    """Check that the gradient of segments' weights, in two stages of Inductor, joins the kernel of the segments."""
    inputs = [torch.empty(size, dtype=torch.bfloat16, requires_grad=True) for size in (shape, weight, shape)]
    inputs += [torch.empty(16384, 16384, dtype=torch.bfloat16, requires_grad=True)]

    def beside(o, w, g, wide):
        return *function(o, w, g), wide @ wide @ wide

    theirs = graphs(beside, inputs, torch._inductor.compile_fx.compile_fx)
    _, backward = graphs(beside, inputs, compiled_for(training=True))
    assert int(count(backward)) == int(count(theirs[1])) - 1, bridge.report().details()
    assert len(decisions()) == 1


def test_weights_of_segments_leave_no_more_than_there_is_room_for():
    """Check that partial sums of segments fit into the room: blocks of 128 rows need 1 MB, Inductor's stage 0.5 MB."""
    sizes = (4, 2048, 32, 128), (32, 128), (4, 2048, 32, 128)
    inputs = [torch.empty(size, dtype=torch.bfloat16, requires_grad=True) for size in sizes]
    _, backward = graphs(weight_of_heads, inputs, compiled_for(training=True))
    assert count(backward) == "2", bridge.report().details()
    (decision,) = decisions()
    assert "blocks of 256 rows" in decision
