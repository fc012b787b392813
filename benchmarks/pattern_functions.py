"""Hold functions of models, as they write them: what the patterns of `patterns.py` are."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def _wide(x: Tensor) -> Tensor:
    """Widen for the arithmetic: float32 at least, and float64 where a reference is computed."""
    return x if x.dtype == torch.float64 else x.float()


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    wide = _wide(x)
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of the two halves of a row."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def swiglu_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """RMSNorm + residual + chunk + SwiGLU: the function of the project's RFC."""
    x = x + residual
    variance = x.pow(2).mean(-1, keepdim=True)
    x_normed = x * torch.rsqrt(variance + eps) * weight
    gate, up = x_normed.chunk(2, dim=-1)
    return F.silu(gate) * up


def geglu_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    gate, up = layer_norm(x, weight, bias).chunk(2, dim=-1)
    return F.gelu(gate) * up


def mla_indexer(k: Tensor, weight: Tensor, bias: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    """LayerNorm, and RoPE on as much of the row as cos is wide; both parts are returned."""
    rotated = cos.shape[-1]
    position, rest = layer_norm(k, weight, bias).split([rotated, k.shape[-1] - rotated], dim=-1)
    return rope(position, cos, sin), rest


def q_and_k_norm_rope(
    q: Tensor, k: Tensor, q_weight: Tensor, k_weight: Tensor, cos: Tensor, sin: Tensor
) -> tuple[Tensor, ...]:
    return rope(rms_norm(q, q_weight), cos, sin), rope(rms_norm(k, k_weight), cos, sin)


def fused_qkv(qkv: Tensor, q_weight: Tensor, k_weight: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    """Repeat key and value heads for four query heads each, after one projection."""
    size = q_weight.shape[0]
    q, k, v = qkv.view(qkv.shape[0], -1, size).split(_heads(qkv.shape[-1] // size), dim=1)
    return *q_and_k_norm_rope(q, k, q_weight, k_weight, cos, sin), v.contiguous()


def _heads(total: int) -> list[int]:
    return [total * 4 // 6, total // 6, total // 6]


def q_and_k_rope(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    return rope(q, cos, sin), rope(k, cos, sin)


def residual_norm_rope(x: Tensor, residual: Tensor, weight: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    x = x + residual
    return x, rope(rms_norm(x, weight), cos, sin)


def norm_interleaved_rope(x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE on neighbours, stacked back to neighbours."""
    normed = rms_norm(x, weight)
    even, odd = normed[..., 0::2], normed[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def norm_fp8_blocks(x: Tensor, weight: Tensor, block: int = 128) -> tuple[Tensor, ...]:
    """RMSNorm, then fp8 with a scale for each block of a row."""
    blocks = _wide(rms_norm(x, weight)).view(*x.shape[:-1], -1, block)
    scale = blocks.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448.0
    return (blocks / scale).to(torch.float8_e4m3fn).view(x.shape), scale.squeeze(-1)


def swiglu_norm_int8(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    """Compute the RFC's function, then int8 with a scale for each row."""
    y = _wide(swiglu_norm(x, residual, weight))
    scale = y.abs().amax(-1, keepdim=True) / 127.0
    return (y / scale).round().to(torch.int8), scale


def softmax_halves(x: Tensor) -> Tensor:
    first, second = torch.softmax(x, -1).chunk(2, dim=-1)
    return first * second


def norm_head_tail(x: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    """Return an eighth of the row as it is, the rest scaled."""
    normed, head = rms_norm(x, weight), x.shape[-1] // 8
    return normed[:, :head], normed[:, head:] * 2


def mla_norms(x: Tensor, q_weight: Tensor, kv_weight: Tensor) -> tuple[Tensor, ...]:
    """Split a row of DeepSeek's down projection: two norms, and a copy of the rest."""
    q, kv, position = x.split(_mla_parts(x, q_weight, kv_weight), dim=-1)
    return rms_norm(q, q_weight), rms_norm(kv, kv_weight), position.contiguous()


def _mla_parts(x: Tensor, q_weight: Tensor, kv_weight: Tensor) -> list[int]:
    q, kv = q_weight.shape[0], kv_weight.shape[0]
    return [q, kv, x.shape[-1] - q - kv]


def norm_windows(x: Tensor, weight: Tensor, bias: Tensor, window: int = 7, shift: int = 3) -> Tensor:
    """Swin: LayerNorm, cyclic shift, partition into windows."""
    return _windows(layer_norm(x, weight, bias).roll((-shift, -shift), (1, 2)), window)


def _windows(x: Tensor, window: int) -> Tensor:
    """Images cut into windows, row after row of them."""
    batch, height, width, channels = x.shape
    tiles = x.view(batch, height // window, window, width // window, window, channels)
    return tiles.transpose(2, 3).contiguous()


def padded_softmax(scores: Tensor) -> Tensor:
    """Rows are padded to a multiple of eight."""
    return F.pad(_attention_weights(scores), (0, -scores.shape[-1] % 8))


def _attention_weights(scores: Tensor) -> Tensor:
    return torch.softmax(_wide(scores), -1).to(scores.dtype)


def padded_squares(scores: Tensor) -> Tensor:
    """Return `padded_softmax` with its columns padded, too, which Inductor makes a buffer of two parts of."""
    return F.pad(padded_softmax(scores), (0, 0, 0, -scores.shape[-1] % 8))


def padded_tiles(scores: Tensor) -> Tensor:
    """Attention weights of a window, rows and columns padded to a multiple of eight for a product."""
    padding = -scores.shape[-1] % 8
    return F.pad(_attention_weights(scores), (0, padding, 0, padding))


def norm_padded_windows(x: Tensor, weight: Tensor, bias: Tensor, window: int = 7) -> Tensor:
    """LayerNorm, and windows of an image whose side the windows' does not divide: the last are filled up with zeros."""
    padding = -x.shape[1] % window
    return _windows(F.pad(layer_norm(x, weight, bias), (0, 0, 0, padding, 0, padding)), window)


def norm_rolled(x: Tensor, weight: Tensor, bias: Tensor, shift: int = 3) -> Tensor:
    """LayerNorm and cyclic shift: rows in another order over loops of the same extents."""
    return layer_norm(x, weight, bias).roll((shift, shift), (1, 2))


def norm_heads_transposed(x: Tensor, weight: Tensor, size: int) -> Tensor:
    """RMSNorm over all heads at once; the output has heads before positions."""
    return rms_norm(x, weight).unflatten(-1, (-1, size)).transpose(1, 2).contiguous()


def norm_repeated_heads(x: Tensor, weight: Tensor, copies: int) -> Tensor:
    """RMSNorm of key heads, each repeated for several query heads."""
    batch, heads, positions, size = x.shape
    expanded = rms_norm(x, weight)[:, :, None].expand(batch, heads, copies, positions, size)
    return expanded.reshape(batch, heads * copies, positions, size)


def norm_channels_first(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """ConvNeXt: LayerNorm over the channels of a contiguous image."""
    return layer_norm(x.permute(0, 2, 3, 1), weight, bias).permute(0, 3, 1, 2).contiguous()


def silu_fp8_square_blocks(x: Tensor) -> tuple[Tensor, ...]:
    """Have one fp8 scale for each square block; x: block rows, rows of a block, columns."""
    blocks = F.silu(_wide(x)).unflatten(-1, (-1, x.shape[1]))
    scale = (blocks.abs().amax((1, 3), keepdim=True) / 448).clamp(min=1e-12)
    return (blocks / scale).to(torch.float8_e4m3fn).flatten(-2), scale.squeeze((1, 3))


def two_norms(x: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, ...]:
    return rms_norm(x, first), rms_norm(x, second)


def gated_norm(x: Tensor, gate: Tensor, weight: Tensor) -> Tensor:
    return rms_norm(x, weight) * F.silu(gate)


def residual_norm(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    hidden = x + residual
    return hidden, rms_norm(hidden, weight)


def row_softmax(x: Tensor) -> Tensor:
    return torch.softmax(_wide(x), -1).to(x.dtype)


def cross_entropy(logits: Tensor) -> Tensor:
    targets = torch.arange(logits.shape[0], device=logits.device) % logits.shape[1]
    return F.cross_entropy(_wide(logits), targets, reduction="none")


def norm_token_mean(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return layer_norm(x, weight, bias).mean(1)


def group_norm_silu(x: Tensor, weight: Tensor, bias: Tensor, groups: int) -> Tensor:
    return F.silu(F.group_norm(x, groups, weight, bias))


def scales_of_scales(x: Tensor, block: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    """Return 4-bit numbers with an fp8 scale for each block of a row, whose scale is one of the row."""
    blocks = _wide(x).unflatten(-1, (-1, block))
    largest = blocks.abs().amax(-1, keepdim=True)
    row = largest.amax(1, keepdim=True).clamp(min=1e-6)
    scale = (largest / row * 448).to(torch.float8_e4m3fn)
    share = (scale.to(row.dtype) * row / (448 * 6)).clamp(min=1e-9)
    return (blocks / share).round().clamp(-6, 6).to(torch.int8).flatten(1), scale.squeeze(-1), row.squeeze(1)


def norm_heads_and_row(x: Tensor, head_weight: Tensor, weight: Tensor) -> Tensor:
    """RMSNorm of each head of a row, and then of the row."""
    return rms_norm(rms_norm(x.unflatten(-1, (-1, head_weight.shape[0])), head_weight).flatten(1), weight)


def gate_blocks(x: Tensor, block: int = 64) -> Tensor:
    """Scale the blocks of a row with the softmax of their squares."""
    blocks = _wide(x).unflatten(-1, (-1, block))
    return (blocks * blocks.pow(2).mean(-1).softmax(-1)[..., None]).flatten(1).to(x.dtype)


def gate_fields(x: Tensor) -> Tensor:
    """Scale the embedding of each field with the softmax of their means."""
    return x * _wide(x).mean(-1).softmax(-1).to(x.dtype)[..., None]


def group_norm_int8(x: Tensor, weight: Tensor, groups: int = 4) -> tuple[Tensor, ...]:
    """Norm each of a few groups of a row, and quantise the whole row by its largest element."""
    parts = _wide(x).unflatten(-1, (groups, -1))
    normed = (parts * torch.rsqrt(parts.pow(2).mean(-1, keepdim=True) + 1e-6)).flatten(1) * weight
    scale = normed.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 127
    return (normed / scale).round().to(torch.int8), scale


def mix_heads(x: Tensor) -> tuple[Tensor, ...]:
    """Scale a few heads with the softmax of their squares, which is returned, too."""
    share = _wide(x).pow(2).mean(-1).softmax(-1)
    return (_wide(x) * share[..., None]).to(x.dtype), share


def combine_experts(outputs: Tensor, weights: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    """Add up the weighted outputs of a token's experts, and norm the residual stream that they join."""
    hidden = (_wide(residual) + (_wide(outputs) * _wide(weights)[..., None]).sum(1)).to(residual.dtype)
    return hidden, rms_norm(hidden, weight)


def gate_by_tables(rows: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """Gate x with the norm of the mean of what several tables have."""
    return x * torch.sigmoid(rms_norm(_wide(rows).mean(1), weight)).to(x.dtype)


def interactions(fields: Tensor) -> Tensor:
    """Compute the pairwise term of a factorisation machine."""
    wide = _wide(fields)
    return 0.5 * (wide.sum(1).pow(2) - wide.pow(2).sum(1)).sum(-1)


def merging_metric(keys: Tensor) -> Tensor:
    """Return unit vectors of the mean over heads: batch, heads, tokens, size."""
    return F.normalize(_wide(keys).mean(1), dim=-1).to(keys.dtype)


def pool_by_scores(history: Tensor, scores: Tensor) -> Tensor:
    """Return unit vectors of a history weighted with the softmax of its scores."""
    pooled = (_wide(history) * _wide(scores).softmax(-1)[..., None]).sum(1)
    return F.normalize(pooled, dim=-1).to(history.dtype)


def mixture_likelihood(x: Tensor, means: Tensor, scales: Tensor, logits: Tensor) -> Tensor:
    """Return the log-likelihood of rows, each element of which is a mixture of a few Gaussians."""
    logs = F.log_softmax(_wide(logits), 1) - 0.5 * ((_wide(x)[:, None] - means) * torch.exp(-_wide(scales))).pow(2)
    return torch.logsumexp(logs - scales, 1).sum(-1)


def mixture_mean(target: Tensor, values: Tensor, logits: Tensor) -> Tensor:
    """Return the squared distance of rows to a mean that the softmax of logits weighs."""
    return ((_wide(logits).softmax(1) * values).sum(1) - target).pow(2).sum(-1)


def choice_entropy(logits: Tensor) -> Tensor:
    """Return the mean entropy over a row of choices among a few."""
    logs = F.log_softmax(_wide(logits), 1)
    return -(logs.exp() * logs).sum(1).mean(-1)


def votes_for(scores: Tensor, choice: int = 2) -> Tensor:
    """Count the elements of a row for which one of a few has the highest score."""
    return (scores.argmax(1) == choice).sum(-1)


def pooled_statistics(frames: Tensor) -> Tensor:
    """Norm the means over a few frames in units of their deviations."""
    wide = _wide(frames)
    pooled = wide.mean(1) * torch.rsqrt(wide.var(1, unbiased=False) + 1e-5)
    return F.layer_norm(pooled, pooled.shape[-1:]).to(frames.dtype)


def weighted_layers(weights: Tensor, *layers: Tensor) -> Tensor:
    """Return the sum of a speech model's layers, weighted with a softmax."""
    stacked = torch.stack(layers).flatten(1)
    return (weights.softmax(-1)[:, None] * stacked).sum(0).view_as(layers[0])


def mean_of_softmaxes(first: Tensor, second: Tensor, third: Tensor) -> Tensor:
    """Return the logarithm of the mean probability that three models give."""
    return torch.stack([_wide(logits).softmax(-1) for logits in (first, second, third)]).mean(0).log()


def jensen_shannon(student: Tensor, teacher: Tensor) -> Tensor:
    """Return the divergence of two distributions from their mixture, as distillation has it (GKD)."""
    logs = [F.log_softmax(_wide(logits), -1) for logits in (student, teacher)]
    mixture = torch.logsumexp(torch.stack(logs), 0) - math.log(2)
    return 0.5 * sum(F.kl_div(mixture, one, log_target=True, reduction="sum") for one in logs)


def repeated_queries(x: Tensor, size: int = 128) -> Tensor:
    """Return unit vectors of heads, each twice and before the tokens, as a gated delta rule has its queries."""
    heads = _wide(x.unflatten(-1, (-1, min(size, x.shape[-1] // 4))))
    unit = (heads * torch.rsqrt(heads.pow(2).sum(-1, keepdim=True) + 1e-6)).to(x.dtype)
    return _wide(unit.repeat_interleave(2, 2).transpose(1, 2))


def norm_copied_heads(x: Tensor, weight: Tensor) -> Tensor:
    """Return normed heads, all of them twice, one after the other."""
    return rms_norm(x.unflatten(-1, (-1, weight.shape[0])), weight).repeat(1, 1, 2, 1)
