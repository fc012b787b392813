"""Test that no decision of Bridge, over the graph or over its loops, needs more memory than Inductor's code does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from allocated import allocated
from patterns import TESTED
from torch._inductor import memory
from torch._inductor.virtualized import V

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.bench import cases, zoo
from bridge.horizontal.peak_memory import Room
from bridge.inductor.compiling import torch_release
from bridge.inductor.memory import estimated_peak, peak_bytes
from bridge.inductor.trial import running
from bridge.offline.capture import compiling_for_gpu
from bridge.scheduling import fuse
from bridge.support.fresh_code import fresh_entry


@dataclass(frozen=True)
class Peaks:
    """Hold the bytes of the graph that needs the most: Inductor's estimate, and what the emitted code allocates."""

    estimated: int
    allocated: int


@contextlib.contextmanager
def _watched(schedules: dict[Any, int]) -> Iterator[None]:
    """Record the peak of each graph's last order, which is the one that is run."""
    reorder = memory.reorder_for_peak_memory

    def reordered(nodes: list[Any], *args: Any, **kwargs: Any) -> list[Any]:
        order = reorder(nodes, *args, **kwargs)
        if not running.get():
            schedules[V.graph] = peak_bytes(order)
        return order

    with mock.patch.object(memory, "reorder_for_peak_memory", reordered):
        yield


def peaks_of(function, inputs, backend=bridge_backend, **options) -> Peaks:
    schedules: dict[Any, int] = {}
    torch._dynamo.reset()
    with _watched(schedules), bridge.config.patch(options), torch.no_grad():
        result = offline.compile_for_gpu(function, inputs, compile_fx=backend)
    made = zip(result.graphs, schedules, strict=True)
    return Peaks(max(schedules.values()), max(allocated(emitted.code, graph.get_dtype) for emitted, graph in made))


def assert_not_above_inductors(function, inputs, keeps_more=False):
    """Check that Bridge's peaks, estimated and allocated, are not above Inductor's.

    keeps_more: freed buffers are kept for later up to Inductor's estimate, more of them than Inductor keeps.
    """
    theirs, ours = peaks_of(function, inputs, None), peaks_of(function, inputs)
    assert ours.estimated <= theirs.estimated
    assert ours.allocated <= (theirs.estimated if keeps_more else theirs.allocated)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("pattern", TESTED, ids=lambda pattern: pattern.name)
def test_patterns(pattern):
    assert_not_above_inductors(pattern.function, pattern.make(None, torch.bfloat16, "cpu"))


def training_peaks_of(function, inputs, backend) -> list[Peaks]:
    """Return the peaks of the forward graph and of the backward graph."""
    schedules: dict[Any, int] = {}
    torch._dynamo.reset()
    with _watched(schedules), bridge.config.patch({"training": True}), compiling_for_gpu() as codes:
        torch.compile(fresh_entry(function), backend=backend, dynamic=False)(*inputs)
    made = zip(codes, schedules.items(), strict=True)
    return [Peaks(peak, allocated(code, graph.get_dtype)) for code, (graph, peak) in made]


def both_ways(a, b):
    """Compute InfoNCE: each gradient of a row of unit length overwrites the product that it is made of."""
    logits, labels = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T / 0.07, torch.arange(a.shape[0], device=a.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def decorrelated(a, b):
    """Compute the loss of Barlow Twins."""
    a, b = ((t - t.mean(0)) / (t.std(0) + 1e-5) for t in (a, b))
    products = a.T @ b / a.shape[0]
    return (products.diagonal() - 1).square().sum() + products.square().sum()


def centred_targets(a, b):
    """Compute the loss of DINO, with one set of prototypes."""
    targets = ((a.detach() - a.detach().mean(0)) / 0.04).softmax(-1)
    return -(targets * F.log_softmax(F.normalize(b @ a.T @ a, dim=-1) / 0.1, -1)).sum(-1).mean()


def by_pairs(a, b):
    """Compute the loss of SigLIP."""
    logits = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T * 10 - 10
    return -F.logsigmoid((2 * torch.eye(a.shape[0], device=a.device) - 1) * logits).sum()


def branches(a, b):
    return sum(F.layer_norm(a @ (b.T @ b + n), a.shape[-1:]).tanh().square().mean() for n in range(3))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("shape", [(16, 64), (17, 33)])
@pytest.mark.parametrize("loss", [both_ways, decorrelated, centred_targets, by_pairs, branches])
def test_gradients_that_overwrite_products_share_a_launch_without_more_memory(loss, shape):
    inputs = [torch.zeros(shape, requires_grad=True) for _ in range(2)]
    theirs, ours = (training_peaks_of(loss, inputs, backend) for backend in ("inductor", bridge_backend))
    assert len(ours) == len(theirs) == 2
    for our, their in zip(ours, theirs, strict=True):
        assert our.estimated <= their.estimated
        # What the forward saved is freed in between, and below the estimate there is room to keep what is freed. For
        # `decorrelated`, Inductor alone allocates four bytes more than it estimates.
        assert our.allocated <= max(their.estimated, their.allocated)


def gates_of_products(x, ascend, descend):
    """Compute all products first, and then gate each of them; Inductor puts each gate beside its product."""
    products = [(x + n) @ ascend for n in range(3)]
    halves = [F.layer_norm(product, product.shape[-1:]).chunk(2, -1) for product in products]
    return [(a * b) @ descend for a, b in halves]


def test_decisions_are_taken_in_the_order_that_the_kernels_will_have(monkeypatch):
    """Check that decisions are taken in the order that the kernels will have.

    In the order of before, t5gemma2 needed 3% more: against a peak that is too high, no change looks worse.
    """
    seen = []

    def of(schedule):
        seen.append((peak_bytes(schedule), estimated_peak(schedule)))
        return room_of(schedule)

    room_of = Room.of
    monkeypatch.setattr(Room, "of", of)
    inputs = [torch.zeros(256, 64), torch.zeros(64, 1024), torch.zeros(512, 64)]
    assert_not_above_inductors(gates_of_products, inputs)
    (peaks,) = seen
    assert peaks == (min(peaks), min(peaks))
    monkeypatch.setattr(fuse, "in_order_of_least_peak", lambda schedule: schedule)
    peaks_of(gates_of_products, inputs)
    assert seen[1][0] > seen[1][1] == peaks[1], "the order of before is no worse: choose another function"


def blocks(x, ascend, descend):
    """Compute two layers without gates: their wide values overwrite their inputs."""
    for _ in range(2):
        x = x + F.linear(F.layer_norm(x, x.shape[-1:]), ascend[:256])
        x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, x.shape[-1:]), ascend)), descend)
    return F.layer_norm(x, x.shape[-1:])


def wide(dtype):
    return [torch.zeros(shape, dtype=dtype) for shape in ((2, 256, 256), (1024, 256), (256, 1024))]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_spared_is_not_kept_for_later(dtype):
    """Check that memory below Inductor's estimated peak is not used to keep freed buffers for later.

    StarCoder2 had 116 MB allocated instead of 80.
    """
    assert_not_above_inductors(blocks, wide(dtype))


def own_masks(x, project, ascend, descend):
    """Compute two layers whose attention is the peak: the wide values beside it overwrite their inputs."""
    for _ in range(2):
        n = torch.arange(x.shape[1], device=x.device)
        mask = (n[:, None] >= n).expand(x.shape[0], 1, -1, -1)
        normed = F.layer_norm(x, x.shape[-1:])
        q, k, v = (part.unflatten(-1, (4, 64)).transpose(1, 2) for part in (normed @ project).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q * 2, k.tanh(), v.sin(), attn_mask=mask)
        x = x + attended.transpose(1, 2).flatten(-2) + F.gelu(F.layer_norm(x, x.shape[-1:]) @ ascend) @ descend
    return x


def test_a_launch_is_not_shared_below_a_peak_that_is_not_there():
    """Check that a launch is not shared because of a peak that is overestimated.

    GPT-NeoX had 152 MB and not 144: the second layer's mask was made with the first's, as Inductor's estimate counted
    the wide values twice and so left room for it.
    """
    shapes = (1, 256, 256), (256, 768), (256, 1024), (1024, 256)
    assert_not_above_inductors(own_masks, [torch.zeros(shape, dtype=torch.bfloat16) for shape in shapes])


def test_sums_in_memory_spare_some():
    theirs, ours = peaks_of(blocks, wide(torch.float32), None), peaks_of(blocks, wide(torch.float32))
    assert bridge.report().counters["store_reread"] > 0
    assert ours.allocated < theirs.allocated


def sum_of_inputs(x, a, b, w):
    """Add up inputs that stay in memory: storing their sum takes one tensor more."""
    s = x + a + b
    return torch.relu(s + F.layer_norm(s, s.shape[-1:]) @ w @ w)


@pytest.mark.skipif(torch_release() >= (2, 15), reason="there Inductor stores the sum itself")
def test_a_store_that_raises_the_peak_is_taken_back():
    inputs = [torch.zeros(256, 256) for _ in range(4)]
    assert_not_above_inductors(sum_of_inputs, inputs)
    assert "store_reread" not in bridge.report().counters
    assert [r.reason for r in bridge.report().refusals if "store_reread" in r.detail] == [bridge.Reason.not_profitable]


def most_of_all_but_a_token(x, token, registers, weight, w):
    """Normalise all tokens, and then use all but one: a norm of all overwrites its input, and one of fewer cannot."""
    tokens = torch.cat([*(t.expand(x.shape[0], -1, -1) for t in (token, registers)), x * 2], 1)
    return F.gelu(F.layer_norm(tokens @ w + tokens, x.shape[-1:], weight, weight))[:, 1:].amax(1) @ w


def test_a_smaller_domain_that_cannot_overwrite_its_input_is_taken_back():
    inputs = [torch.zeros(s) for s in ((2, 16, 96), (1, 1, 96), (1, 4, 96), (96,), (96, 96))]
    assert_not_above_inductors(most_of_all_but_a_token, inputs)
    (refusal,) = [refusal for refusal in bridge.report().refusals if "shrink_domains" in refusal.detail]
    assert "bytes of memory more" in refusal.detail


def test_a_trial_leaves_no_trace():
    """Check that a trial changes none of Inductor's counts, and that the passes of its hooks are not called for it."""
    from torch._inductor import config, metrics

    schedules: list[Any] = []

    def seen(nodes: Any) -> Any:
        schedules.append(nodes)
        return nodes

    counts = []
    for store in (False, True):
        metrics.reset()
        with config.patch(_post_fusion_custom_pass=seen):
            peaks_of(blocks, wide(torch.float32), store_reread=store)
        counts.append(metrics.num_comprehensive_padding)
    assert counts[0] == counts[1]
    assert len(schedules) == 2


#: Open: less is live than without Bridge, and so there is more room below the estimate to keep what is freed.
KEEPS_MORE = {"llama3-8b", "olmo2-7b", "Starcoder2ForCausalLM", "NemotronForCausalLM"}

SWIN = pytest.param("swin-tiny", marks=pytest.mark.slow)  # 73 s on two cores
MODELS = ["llama3-8b", "gpt-neox-7b", "olmo2-7b", "bert-large", "vit-base", SWIN]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    """Check peaks for small models of the zoo."""
    (architecture,) = zoo.selected([name])
    if not architecture.available:
        pytest.skip(f"{architecture.library} is not installed")
    module = architecture.build(torch.bfloat16, "cpu", small=True)
    case = cases.make_case(architecture, module, architecture.modes[0], sizes=cases.SMALL)
    assert_not_above_inductors(case.call, case.inputs, name in KEEPS_MORE)


#: Outside of the zoo; a layer norm, a sum after it, and no gate in the wide part, or packed sequences.
OTHERS = {
    "Starcoder2ForCausalLM": {"intermediate_size": 1024},
    "NemotronForCausalLM": {"intermediate_size": 1024},
    "ModernBertModel": {"intermediate_size": 384, "cls_token_id": 1, "sep_token_id": 2},
}
SMALL = {
    "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", OTHERS)
def test_models_with_wide_values_in_place(name):
    transformers = pytest.importorskip("transformers")
    stem = name.removesuffix("ForCausalLM").removesuffix("Model")
    torch.manual_seed(0)
    module = getattr(transformers, name)(getattr(transformers, f"{stem}Config")(**SMALL, **OTHERS[name]))
    module = module.bfloat16().eval().requires_grad_(False)
    ids = torch.randint(3, 64, (1, 256))
    assert_not_above_inductors(lambda ids: module(input_ids=ids)[0], [ids], name in KEEPS_MORE)
