"""Test pieces of a concatenation that are reduced one with another: the values, and what is in memory."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted
from torch.fx import Graph
from torch.fx.node import map_arg

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.bench.corpus import numerics
from bridge.diagnostics.recording import recorded
from bridge.graph_passes.reduce_pieces import reduce_pieces
from bridge.inductor.graphs import aten

N, V = 6, 16


def inputs(count=2, dtype=torch.float32, shape=(N, V)):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) for _ in range(count)]


def changed():
    return bridge.report().counters.get("reduce_pieces", 0)


def mixture(*logits):
    """Compute the middle of a Jensen-Shannon divergence."""
    pieces = [F.log_softmax(piece.float(), -1) - math.log(len(logits)) for piece in logits]
    return torch.logsumexp(torch.stack(pieces), 0)


def ensemble(*logits):
    return torch.stack([torch.softmax(piece.float(), -1) for piece in logits], 1).mean(1).to(logits[0].dtype)


def weighted_layers(weights, *layers):
    stacked = torch.stack(layers).view(len(layers), -1)
    return (torch.softmax(weights[:, 0], -1)[:, None] * stacked).sum(0).view(layers[0].shape)


def extremes(a, b):
    rows = torch.cat([a.mean(1, keepdim=True), (a * b).mean(1, keepdim=True), b[:, :2]], 1)
    return rows.amax(1), rows.amin(1, keepdim=True)


def norms_in_the_last_dimension(*tensors):
    return (torch.stack([F.layer_norm(piece, piece.shape[-1:]) for piece in tensors], -1) * 2).sum(-1)


CASES = [
    (mixture, inputs(2, torch.bfloat16)),
    (ensemble, inputs(3, torch.float16)),
    (weighted_layers, [inputs(shape=(13, V))[0], *inputs(13)]),
    (extremes, inputs()),
    (norms_in_the_last_dimension, inputs(3, torch.bfloat16)),
]


def case(function, dynamic=False):
    """Return a parameter: a function, its inputs, and whether their sizes are symbols."""
    given = next(given for one, given in CASES if one is function)
    return pytest.param(function, given, dynamic, id=f"{function.__name__}{'_dynamic' * dynamic}")


@pytest.mark.parametrize("function, given, dynamic", [*(case(one) for one, _ in CASES), case(mixture, dynamic=True)])
def test_values(function, given, dynamic):
    ours, _ = run_emitted(function, given, bridge_backend, dynamic=dynamic)
    assert changed() == 1
    ours = list(ours) if isinstance(ours, (list, tuple)) else [ours]
    expected = numerics.in_double(function, given)
    rounded = {torch.float16: 1e-3, torch.bfloat16: 8e-3}
    for one, other in zip(ours, expected, strict=True):
        tolerance = rounded.get(one.dtype, 2e-6)
        torch.testing.assert_close(one.double(), other.double(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("function, given, _", [case(mixture), case(weighted_layers)])
def test_no_concatenation_in_memory(function, given, _):
    """Check that no concatenation is in memory; Inductor stores one of reductions, or of more than eight pieces."""
    large = [torch.empty(tensor.shape[0] * (1 if tensor.shape[0] > N else 500), 2048) for tensor in given]
    with recorded() as record:
        offline.compile_for_gpu(function, large, compile_fx=bridge_backend)
    (report,) = record.reports
    assert report.counters["reduce_pieces"] == 1
    assert report.peak_after <= function(*large).nbytes + 2**16


def test_nan_is_the_largest_and_the_smallest():
    a, b = inputs()
    a[1, 3] = math.nan
    ours, _ = run_emitted(extremes, [a, b], bridge_backend)
    assert changed() == 1
    torch.testing.assert_close(ours, extremes(a, b), equal_nan=True)


def test_numbers_of_16_bits_are_rounded_once():
    """Check that bfloat16 pieces are rounded once: 256 and 1 are 256, so adding one by one would stay 256."""
    pieces = [torch.full((N, V), 256.0, dtype=torch.bfloat16), *[torch.ones(N, V, dtype=torch.bfloat16)] * 12]
    ours, _ = run_emitted(lambda *given: torch.stack(given).sum(0), pieces, bridge_backend)
    assert changed() == 1 and torch.equal(ours, torch.full((N, V), 268.0, dtype=torch.bfloat16))


def test_what_others_read_is_not_rounded_for_a_piece_of_several_elements():
    """Check that a value that others read is not rounded for a piece of several elements.

    One lane would load all numbers of a row, and so would the sum that is in its kernel then.
    """

    def function(x, weight):
        groups = x.unflatten(-1, (2, -1))
        normed = (groups * torch.rsqrt(groups.pow(2).mean(-1, keepdim=True) + 1e-3)).flatten(-2)
        return torch.cat([normed, F.layer_norm(normed, normed.shape[-1:])], -1).amax(-1), normed + weight

    (given,) = inputs(1, torch.float16, (4, 8))
    ours, _ = run_emitted(function, [given, given[0]], bridge_backend)
    _, exact = function(given.double(), given[0].double())
    assert changed() == 0 and torch.equal(ours[1], exact.half())


def test_pieces_of_16_bits_that_nothing_else_reads():
    def function(a, b):
        return torch.cat([a.exp(), b.sin()], -1).amax(-1)

    given = inputs(2, torch.float16, (N, 4))
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 1 and torch.equal(ours, function(*(tensor.float() for tensor in given)).half())


def returned(a, b):
    stacked = torch.stack([a.exp(), b.exp()])
    return stacked, stacked.sum(0)


def over_others_too(a, b):
    return torch.stack([a.exp(), b.exp()]).sum((0, 2))


def of_whole_numbers(a, b):
    return torch.stack([a.int(), b.int()]).sum(0)


def many(a, b):
    return torch.stack([a + number for number in range(40)]).sum(0) + b


def a_slice_beside(a, b):
    stacked = torch.stack([a.softmax(-1), b.softmax(-1)], 1)
    return stacked.sum(1) + stacked[:, 0]


def places(a, b):
    return torch.stack([a.exp(), b.exp()]).max(0)


def squeezed_where_it_is_no_one(a, b):
    return (torch.stack([a.softmax(-1), b]).squeeze(0).transpose(0, 1) * 2).sum(1)


STAYING = [returned, over_others_too, of_whole_numbers, many, a_slice_beside, places, squeezed_where_it_is_no_one]


@pytest.mark.parametrize("function", STAYING)
def test_what_else_is_read_stays(function):
    given = inputs()
    ours, _ = run_emitted(function, given, bridge_backend)
    assert changed() == 0
    torch.testing.assert_close(tuple(ours) if isinstance(ours, list) else ours, function(*given))


@torch.library.custom_op("bridge_reduce_pieces::fill", mutates_args=("x",))
def fill(x: torch.Tensor) -> None:
    x.fill_(7.0)


def test_a_piece_that_is_changed_before_it_is_reduced():
    """Check a piece that is changed before the stack is reduced: the stack has the old value."""

    def function(a, b):
        stacked = torch.stack([a, b])
        fill(a)
        return stacked.sum(0), a + 1

    given = inputs()
    ours, _ = run_emitted(function, [tensor.clone() for tensor in given], bridge_backend)
    torch.testing.assert_close(tuple(ours), function(*[tensor.clone() for tensor in given]))


def test_a_piece_that_is_changed_before_the_view_of_its_stack():
    graph = Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    a.meta["val"], b.meta["val"] = torch.empty(N, V, device="meta"), torch.empty(N, V, device="meta")

    def call(target, *args):
        node = graph.call_function(target, args)
        node.meta["val"] = target(*map_arg(args, lambda source: source.meta["val"]))
        return node

    stacked = call(aten.cat.default, [a, b])
    call(aten.fill_.Scalar, a, 7.0)
    graph.output(call(aten.sum.dim_IntList, call(aten.view.default, stacked, [2, N, V]), [0]))
    assert not list(reduce_pieces(graph))
