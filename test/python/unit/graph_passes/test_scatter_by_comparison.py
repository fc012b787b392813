"""Test that a scatter of few elements into each row of a constant is comparisons, and has no kernel of its own."""

from __future__ import annotations

import pytest
import torch
from emitted import emitted_for, run_emitted
from programs import wide
from training import graphs as both_graphs

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.offline.wrapper import parse_wrapper
from bridge.support.fresh_code import fresh_entry

ROWS, COLUMNS = 6, 40


def changed():
    return bridge.report().counters.get("scatter_by_comparison", 0)


def inputs(index=(ROWS, 1), source=(ROWS, 1), result=(ROWS, COLUMNS), dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, min(result), index, generator=generator)
    return [
        torch.randn(result, generator=generator).to(dtype),
        ids,
        torch.randn(source, generator=generator).to(dtype),
    ]


def added(x, ids, values):
    return torch.zeros_like(x).scatter_add(1, ids, values) + 2 * x


def added_from_the_end(x, ids, values):
    return torch.zeros_like(x).scatter_add(-1, ids, values) + 2 * x


def added_down(x, ids, values):
    return torch.zeros_like(x).scatter_add(0, ids, values) + 2 * x


def added_in_the_middle(x, ids, values):
    return torch.zeros_like(x).scatter_add(1, ids, values) * 2 + x


def placed_in_ones(x, ids, values):
    return torch.ones_like(x).scatter(1, ids, values) + 2 * x


def to_one_element(x, ids, values):
    return torch.zeros(COLUMNS, dtype=x.dtype, device=x.device).scatter_add(0, ids, values) + x[0]


def marked(x, ids, values):
    return torch.zeros_like(x).scatter(1, ids, 2.5) * x + values


#: Functions with the shapes of index, source and result.
REPLACED = [
    (added, (ROWS, 1), (ROWS, 1), (ROWS, COLUMNS)),
    (added_from_the_end, (ROWS, 1), (ROWS, 1), (ROWS, COLUMNS)),
    (added_down, (1, COLUMNS), (1, COLUMNS), (ROWS, COLUMNS)),
    (added_in_the_middle, (ROWS, 1, 8), (ROWS, 1, 8), (ROWS, 5, 8)),
    (placed_in_ones, (ROWS, 1), (ROWS, 1), (ROWS, COLUMNS)),
    (to_one_element, (1,), (1,), (ROWS, COLUMNS)),
    (added, (ROWS, 3), (ROWS, 3), (ROWS, COLUMNS)),
    (added_down, (2, COLUMNS), (2, COLUMNS), (ROWS, COLUMNS)),
    (added_in_the_middle, (ROWS, 4, 8), (ROWS, 4, 8), (ROWS, 5, 8)),
    (placed_in_ones, (ROWS, 8), (ROWS, 8), (ROWS, COLUMNS)),
    (marked, (ROWS, 4), (1, 1), (ROWS, COLUMNS)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function, index, source, result", REPLACED, ids=[f"{f.__name__}{i}" for f, i, *_ in REPLACED])
def test_one_kernel_with_the_same_values(function, index, source, result, dtype):
    given = inputs(index, source, result, dtype)
    ours, codes = run_emitted(function, given, bridge_backend)
    assert changed() == 1
    assert len(parse_wrapper(codes[0]).launches) == 1
    torch.testing.assert_close(ours, function(*given))


@pytest.mark.parametrize("function", [added, placed_in_ones])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_the_sign_of_a_zero_that_is_added(function, zero):
    """Check the sign of zeros: a sum of 0.0 and -0.0 is 0.0 (it was -0.0), and a placed zero keeps its sign."""
    x, ids, values = inputs()
    given = [torch.full_like(x, -0.0), ids, torch.full_like(values, zero)]
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 1
    assert torch.equal(ours.signbit(), function(*given).signbit())


def added_to_ones(x, ids, values):
    return torch.ones_like(x).scatter_add(1, ids, values) + 2 * x


def added_to_a_tensor(x, ids, values):
    return x.scatter_add(1, ids, values) * 2


#: What is too many elements, or no element, or not all of a dimension, or not into zeros.
LEFT = [
    (added, (ROWS, 9), (ROWS, 9)),
    (added, (ROWS, 0), (ROWS, 0)),
    (added, (ROWS - 1, 1), (ROWS, 1)),
    (added, (ROWS, 1), (ROWS, 3)),
    (added_to_ones, (ROWS, 1), (ROWS, 1)),
    (added_to_a_tensor, (ROWS, 1), (ROWS, 1)),
]


@pytest.mark.parametrize("function, index, source", LEFT)
def test_other_scatters_stay(function, index, source):
    given = inputs(index, source)
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 0
    torch.testing.assert_close(ours, function(*given))


@pytest.mark.parametrize("function", [added, placed_in_ones, marked])
def test_elements_of_one_place(function):
    """Check that elements of one place are added up, or that the last one stays, as in eager mode on a CPU."""
    x, _, _ = inputs()
    ids = torch.tensor([3, 7, 3, 3]).expand(ROWS, 4).contiguous()
    values = torch.arange(4 * ROWS, dtype=torch.float32).reshape(ROWS, 4)
    given = [x, ids, values[:, :1] if function is marked else values]
    ours, codes = run_emitted(function, given, bridge_backend)
    assert (changed(), len(parse_wrapper(codes[0]).launches)) == (1, 1)
    torch.testing.assert_close(ours, function(*given))


@pytest.mark.parametrize("dtype, columns, replaced", [
    (torch.float32, 64, True), (torch.bfloat16, 64, True), (torch.float32, 4096, True), (torch.bfloat16, 4096, False),
])  # fmt: skip
def test_more_comparisons_than_memory_has_time_for_are_left(dtype, columns, replaced):
    """Check that more comparisons than memory has time for are left: eight for each of two bytes of a large result."""

    def placed(ids, values):
        return torch.zeros(4096, columns, dtype=dtype).scatter(1, ids, values) * 2

    ids = torch.arange(8).expand(4096, 8).contiguous()
    offline.compile_for_gpu(placed, [ids, torch.ones(4096, 8, dtype=dtype)], compile_fx=bridge_backend)
    assert changed() == replaced


@pytest.mark.parametrize("length, replaced", [(1, 1), (2, 0)])
def test_a_cpu_scatters_several_elements(length, replaced):
    """Check that code for a CPU compares with one element a row alone: it would take longer with several."""
    given = inputs((ROWS, length), (ROWS, length))
    offline.compile_for_gpu(added, given, compile_fx=bridge_backend)
    assert changed() == 1
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(added, backend="bridge")(*given), added(*given))
    assert changed() == replaced


def routed(scores):
    """Return weights of the experts that are chosen for each token, in the places of all."""
    values, indices = wide(scores).softmax(-1).topk(2, -1)
    weights = (values / values.sum(-1, keepdim=True)).to(scores.dtype)
    return torch.zeros_like(scores).scatter(1, indices, weights)


def test_weights_of_chosen_experts_have_no_kernel_of_zeros():
    """Check weights of chosen experts: zeros were filled in a kernel, and a second one scattered, in both graphs."""
    scores = torch.randn(512, 64, dtype=torch.bfloat16).requires_grad_()
    counts = [len(parse_wrapper(code).launches) for code in both_graphs(routed, (scores,), bridge_backend)]
    plain = both_graphs(routed, (scores,), torch._inductor.compile_fx.compile_fx)
    assert (counts, [len(parse_wrapper(code).launches) for code in plain]) == ([2, 1], [3, 3])


def test_gradients_of_weights_of_chosen_experts():
    """Check values: an index that was loaded for its comparison is loaded again under a mask, and was a float there."""
    scores = torch.randn(12, 8, generator=torch.Generator().manual_seed(0)).bfloat16()
    given = torch.randn(12, 8, generator=torch.Generator().manual_seed(1)).bfloat16()
    torch._dynamo.reset()
    codes: list[str] = []
    gradients: list[torch.Tensor] = []
    with emitted_for("sm_90", codes), torch.enable_grad():
        compiled = torch.compile(fresh_entry(routed), backend=bridge_backend, dynamic=False)
        for function, leaf in ((compiled, scores.clone()), (routed, scores.double())):
            result = function(leaf.requires_grad_())
            gradients += torch.autograd.grad(result, leaf, given.to(result.dtype))
    assert len(codes) == 2
    torch.testing.assert_close(gradients[0].double(), gradients[1].double(), rtol=3e-2, atol=3e-3)


@pytest.mark.parametrize("function", [added, placed_in_ones])
def test_complex_numbers_stay_in_library_calls(function):
    """Check that complex numbers stay in a library call, as a comparison was a kernel beside a call."""
    given = inputs(dtype=torch.complex64)
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 0
    torch.testing.assert_close(ours, function(*given))


def test_a_row_of_unknown_length():
    """Check a row of symbolic length: the number of columns is an input of the comparison."""
    given = inputs()
    torch._dynamo.mark_dynamic(given[0], 1)
    ours, codes = run_emitted(added, given, bridge_backend, dynamic=None)
    assert (changed(), len(parse_wrapper(codes[0]).launches)) == (1, 1)
    torch.testing.assert_close(ours, added(*given))


@pytest.mark.parametrize("function, dimension", [(added, 0), (added_down, 1), (placed_in_ones, 0)])
@pytest.mark.parametrize("length", [1, 3])
def test_rows_without_an_index(function, dimension, length):
    """Check that the last rows, or columns, that have no index keep the constant."""
    index = (ROWS - 2, length) if dimension == 0 else (length, COLUMNS - 3)
    given = inputs(index, index)
    ours, codes = run_emitted(function, given, bridge_backend)
    assert (changed(), len(parse_wrapper(codes[0]).launches)) == (1, 1)
    torch.testing.assert_close(ours, function(*given))


def added_to_chosen(x, ids, values):
    torch._check(ids.shape[0] == values.shape[0])
    torch._check(ids.shape[0] <= x.shape[0])  # as `gather` does, whose gradient this is
    return added(x, ids, values)


@pytest.mark.parametrize("rows, chosen", [(6, 5), (7, 7)])
def test_rows_of_one_symbol_chosen_by_another(rows, chosen):
    """Check rows of one symbol that are chosen by another.

    No guard says that there are as many labels as logits: a gather needs no more, and its gradient scattered.
    """
    given = inputs((chosen, 1), (chosen, 1), (rows, COLUMNS))
    for tensor in given:
        torch._dynamo.mark_dynamic(tensor, 0)
    ours, codes = run_emitted(added_to_chosen, given, bridge_backend, dynamic=None)
    assert (changed(), len(parse_wrapper(codes[0]).launches)) == (1, 1)
    torch.testing.assert_close(ours, added(*given))


def test_fewer_chosen_rows_add_no_guard():
    """Check that fewer chosen rows add no guard: the code for fewer works for as many as there are."""
    torch._dynamo.reset()
    compilations = []

    def counting(module, example):
        compilations.append(module)
        return bridge_backend(module, example)

    compiled = torch.compile(added_to_chosen, backend=counting, dynamic=None)
    for rows, chosen in [(9, 7), (7, 7), (8, 3), (20, 13)]:
        given = inputs((chosen, 1), (chosen, 1), (rows, COLUMNS))
        if not compilations:
            for tensor in given:
                torch._dynamo.mark_dynamic(tensor, 0)
        torch.testing.assert_close(compiled(*given), added(*given))
    assert (len(compilations), changed()) == (1, 1)


def marked_columns(x, mask):
    columns = mask.nonzero()[:, 0]
    return torch.zeros_like(x).scatter(1, columns[None].expand(x.shape[0], -1), 1.0) + x


def test_as_many_elements_as_data_say_are_scattered():
    """Check an index whose length nobody knows before the program runs: asking whether it is 1 is an error."""
    torch._dynamo.reset()
    x, mask = torch.randn(ROWS, COLUMNS), torch.arange(COLUMNS) % 3 == 0
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True), bridge.config.patch(strict=True):
        compiled = torch.compile(marked_columns, backend="bridge", fullgraph=True)
        torch.testing.assert_close(compiled(x, mask), marked_columns(x, mask))
    assert changed() == 0


def test_other_strides_of_the_result_stay():
    """Check that a result with other strides is not changed: with a transposed index, the comparison would be, too."""

    def returned(ids, values):
        zeros = torch.zeros(ROWS, 5, 8, device=values.device)
        return zeros.scatter_add(1, ids.transpose(0, 2), values.transpose(0, 2))

    _, ids, values = inputs((8, 1, ROWS), (8, 1, ROWS), (8, 5, ROWS))
    ids = ids % 5
    ours, _ = run_emitted(returned, [ids, values], bridge_backend)
    expected = returned(ids, values)
    assert changed() == 0
    assert ours.stride() == expected.stride()
    torch.testing.assert_close(ours, expected)


def chosen_loss(x, ids):
    """Compute a loss of the chosen logits, whose gradient is a scatter."""
    wide = x.float()
    return (wide.logsumexp(-1) - wide.gather(1, ids[:, None])[:, 0]).mean()


def chosen_log_probability(x, ids):
    """Compute a loss of chosen logits; where both lengths are symbols, no more rows are chosen than there are."""
    return x.float().log_softmax(-1).gather(1, ids[:, None]).mean()


def losses(compile_fx, rows=256, columns=32000, function=chosen_loss, symbols=False):
    x = torch.empty(rows, columns, dtype=torch.bfloat16).requires_grad_()
    ids = torch.zeros(rows, dtype=torch.int64)
    for tensor in (x, ids) if symbols else ():
        torch._dynamo.mark_dynamic(tensor, 0)
    return [len(parse_wrapper(code).launches) for code in both_graphs(function, (x, ids), compile_fx)]


def test_the_gradient_of_chosen_logits_is_one_kernel():
    assert losses(torch._inductor.compile_fx.compile_fx)[1] == 3
    assert losses(bridge_backend)[1] == 1


def test_the_gradient_of_logits_that_a_symbol_chooses_is_one_kernel():
    """Check that the gradient of chosen logits is one kernel, also where inputs and labels are separate symbols."""
    ours = [losses(bridge_backend, function=chosen_log_probability, symbols=symbols)[1] for symbols in (False, True)]
    assert ours == [1, 1]
    assert changed() == 1


def test_its_values(compiler):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, COLUMNS, (ROWS,), generator=generator)
    x = torch.randn(ROWS, COLUMNS, generator=generator)
    found = []
    for function, value in ((compiler(chosen_loss, backend="bridge"), x), (chosen_loss, x.double())):
        leaf = value.clone().requires_grad_()
        with torch.enable_grad():
            function(leaf, ids).backward()
        found.append(leaf.grad.double())
    assert changed() == 1
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


def test_the_option():
    torch._dynamo.reset()
    with bridge.config.patch(scatter_by_comparison=False):
        result = offline.compile_for_gpu(added, inputs(), compile_fx=bridge_backend)
    assert (result.n_kernels, changed()) == (3, 0)
