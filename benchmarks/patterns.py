"""The functions that the benchmarks measure and test/python/end_to_end/test_patterns.py checks.

Each is a `Pattern`: a function, the shapes that it is run on (full size for a GPU, small for an interpreter), and
how many kernels Inductor and Bridge make of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

#: Stands for the number of rows in a shape.
ROWS = -1


@dataclass(frozen=True)
class Sizes:
    """Shapes of a function's inputs, `ROWS` for as many rows as wanted, `rows` of them unless told."""

    rows: int
    shapes: tuple[tuple[int, ...], ...]

    def make(self, rows: int | None, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
        """Return normally distributed inputs; drawn in float32, so that a seed gives the same draw for every dtype."""
        rows = self.rows if rows is None else rows
        shapes = [[rows if size == ROWS else size for size in shape] for shape in self.shapes]
        return [torch.randn(shape, device=device, dtype=torch.float32).to(dtype) for shape in shapes]


@dataclass(frozen=True)
class Pattern:
    """A function and what is expected of it.

    inductor: kernels of Inductor in torch 2.11 (newer ones may fuse more by themselves); bridge: kernels that Bridge
    is to make of it; reached: those that it makes at present; dynamic: whether rows may be symbolic; loads_once:
    whether no program of the fused kernel loads an element of an input twice.
    """

    name: str
    function: Callable
    full: Sizes
    small: Sizes
    inductor: int
    bridge: int
    reached: int
    dynamic: bool = True
    loads_once: bool = False

    def make(self, rows: int | None, dtype: torch.dtype, device: str, small: bool = False) -> list[torch.Tensor]:
        """Return inputs at the full or the small size; rows: None for the default."""
        return (self.small if small else self.full).make(rows, dtype, device)

    def mark_dynamic_rows(self, inputs: list[torch.Tensor]) -> None:
        """Has Dynamo make the rows of such inputs symbolic."""
        for tensor, shape in zip(inputs, self.full.shapes, strict=True):
            if shape[0] == ROWS:
                torch._dynamo.mark_dynamic(tensor, 0)

    def traffic(self, inputs: list[torch.Tensor]) -> int:
        """Return the fewest bytes moved: every element of inputs and outputs once."""
        outputs = self.function(*[t.to("meta") for t in inputs])
        outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
        return sum(t.numel() * t.element_size() for t in [*inputs, *outputs])


def sizes(rows: int, *shapes: tuple[int, ...]) -> Sizes:
    return Sizes(rows, shapes)


def _wide(x: Tensor) -> Tensor:
    """For the arithmetic: float32 at least, and float64 where a reference is computed."""
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
    """As `padded_softmax`, and then columns are padded, which Inductor makes a buffer of two parts of."""
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
    """One fp8 scale for each square block; x: block rows, rows of a block, columns."""
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


def _swiglu_sizes(rows: int, width: int) -> Sizes:
    return sizes(rows, (ROWS, width), (ROWS, width), (width,))


def _swiglu(width: int, suffix: str, rows: int = 4096) -> Pattern:
    name = f"rmsnorm_residual_chunk_swiglu{suffix}"
    full, small = _swiglu_sizes(rows, width), _swiglu_sizes(7, width // 32)
    return Pattern(name, swiglu_norm, full, small, inductor=2, bridge=1, reached=1, loads_once=True)


def _indexer_sizes(rows: int, width: int, rotated: int) -> Sizes:
    return sizes(rows, (ROWS, width), (width,), (width,), (ROWS, rotated), (ROWS, rotated))


def _indexer(width: int) -> Pattern:
    full, small = _indexer_sizes(4096, width, 64), _indexer_sizes(7, width // 4, 16)
    name = f"mla_indexer_{width}"
    return Pattern(name, mla_indexer, full, small, inductor=2, bridge=1, reached=1, loads_once=True)


def _head_shapes(q: int, k: int, size: int) -> tuple[tuple[int, ...], ...]:
    return (ROWS, q, size), (ROWS, k, size), (ROWS, 1, size), (ROWS, 1, size)


def _norm_heads_sizes(rows: int, q: int, k: int, size: int) -> Sizes:
    q_shape, k_shape, *rotation = _head_shapes(q, k, size)
    return sizes(rows, q_shape, k_shape, (size,), (size,), *rotation)


def _qkv_sizes(rows: int, heads: int, size: int) -> Sizes:
    return sizes(rows, (ROWS, heads * size), (size,), (size,), (ROWS, 1, size), (ROWS, 1, size))


def _row_sizes(rows: int, width: int, *widths: int) -> Sizes:
    """Rows, and vectors beside them."""
    return sizes(rows, (ROWS, width), *[(w,) for w in widths])


def _residual_sizes(rows: int, width: int) -> Sizes:
    row = (ROWS, width)
    return sizes(rows, row, row, (width,), row, row)


def _interleaved_sizes(rows: int, heads: int, size: int) -> Sizes:
    return sizes(rows, (ROWS, heads, size), (size,), (ROWS, 1, size // 2), (ROWS, 1, size // 2))


def _image_sizes(batch: int, side: int, channels: int) -> Sizes:
    return sizes(batch, (ROWS, side, side, channels), (channels,), (channels,))


def _token_sizes(batch: int, tokens: int, channels: int) -> Sizes:
    return sizes(batch, (ROWS, tokens, channels), (channels,), (channels,))


def _channel_sizes(batch: int, channels: int, side: int) -> Sizes:
    return sizes(batch, (ROWS, channels, side, side), (channels,), (channels,))


PATTERNS = [
    _swiglu(4096, "_4096"),
    _swiglu(5120, "_5120"),
    _swiglu(8192, ""),
    Pattern(
        "layernorm_chunk_geglu", geglu_norm, _row_sizes(4096, 8192, 8192, 8192), _row_sizes(7, 192, 192, 192),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    _indexer(192),
    _indexer(256),
    _indexer(384),
    Pattern(
        "q_norm_rope_k_norm_rope", q_and_k_norm_rope,
        _norm_heads_sizes(4096, 32, 8, 128), _norm_heads_sizes(3, 8, 2, 32),
        inductor=2, bridge=1, reached=1,
    ),
    Pattern(
        "qkv_split_norm_rope", fused_qkv, _qkv_sizes(4096, 48, 128), _qkv_sizes(3, 6, 32),
        inductor=3, bridge=1, reached=1,
    ),
    Pattern(
        "q_rope_k_rope", q_and_k_rope,
        sizes(4096, *_head_shapes(32, 8, 128)), sizes(3, *_head_shapes(8, 2, 32)),
        inductor=2, bridge=1, reached=1,
    ),
    Pattern(
        "residual_rmsnorm_rope", residual_norm_rope, _residual_sizes(4096, 4096), _residual_sizes(7, 96),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "rmsnorm_interleaved_rope", norm_interleaved_rope,
        _interleaved_sizes(4096, 32, 128), _interleaved_sizes(3, 4, 32),
        inductor=2, bridge=1, reached=1,
    ),
    Pattern(
        "rmsnorm_fp8_blocks", norm_fp8_blocks, _row_sizes(4096, 4096, 4096), _row_sizes(5, 256, 256),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "rmsnorm_swiglu_int8", swiglu_norm_int8, _swiglu_sizes(4096, 8192), _swiglu_sizes(7, 192),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "softmax_chunk_product", softmax_halves, _row_sizes(4096, 8192), _row_sizes(7, 192),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "rmsnorm_head_tail", norm_head_tail, _row_sizes(4096, 4096, 4096), _row_sizes(7, 192, 192),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "mla_split_two_rmsnorms", mla_norms, _row_sizes(4096, 2112, 1536, 512), _row_sizes(7, 132, 96, 32),
        inductor=3, bridge=1, reached=1,
    ),
    Pattern(
        "layernorm_roll_windows", norm_windows, _image_sizes(64, 56, 96), _image_sizes(1, 14, 24),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "softmax_padded_rows", padded_softmax, sizes(12288, (ROWS, 49, 49)), sizes(2, (ROWS, 13, 13)),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "rmsnorm_heads_transposed", partial(norm_heads_transposed, size=128),
        sizes(4, (ROWS, 1024, 4096), (4096,)), sizes(2, (ROWS, 5, 256), (256,)),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "rmsnorm_repeated_heads", partial(norm_repeated_heads, copies=4),
        sizes(4, (ROWS, 8, 2048, 128), (128,)), sizes(2, (ROWS, 3, 5, 32), (32,)),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "layernorm_channels_first", norm_channels_first, _channel_sizes(32, 128, 28), _channel_sizes(2, 24, 5),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "silu_fp8_square_blocks", silu_fp8_square_blocks,
        sizes(32, (ROWS, 128, 4096)), sizes(3, (ROWS, 8, 32)),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    # The mean over tokens is another loop over all of the rows: to be refused is right too.
    Pattern(
        "layernorm_token_mean", norm_token_mean, _token_sizes(64, 196, 768), _token_sizes(3, 14, 48),
        inductor=2, bridge=2, reached=2,
    ),
    Pattern(
        "groupnorm_silu", partial(group_norm_silu, groups=32), _channel_sizes(8, 320, 64), _channel_sizes(2, 64, 8),
        inductor=4, bridge=4, reached=4,
    ),
]  # fmt: skip

#: A producer's rows in the places where its reader has them, some of which are no row's.
ORDERS = [
    # With torch 2.11 two kernels of Inductor's, and one.
    Pattern(
        "softmax_padded_squares", padded_squares, sizes(12288, (ROWS, 49, 49)), sizes(2, (ROWS, 13, 13)),
        inductor=3, bridge=1, reached=2,
    ),
    Pattern(
        "softmax_padded_tiles", padded_tiles, sizes(12288, (ROWS, 49, 49)), sizes(2, (ROWS, 13, 13)),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "layernorm_padded_windows", norm_padded_windows, _image_sizes(64, 53, 96), _image_sizes(1, 10, 24),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "layernorm_rolled", norm_rolled, _image_sizes(64, 28, 384), _image_sizes(2, 5, 24),
        inductor=2, bridge=1, reached=1, loads_once=True,
    ),
]  # fmt: skip

#: Reductions over a row of what its segments have reduced.
SEGMENTS = [
    Pattern(
        "scales_of_scales", scales_of_scales, _row_sizes(4096, 4096), _row_sizes(5, 256),
        inductor=3, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "rmsnorm_heads_rmsnorm", norm_heads_and_row, _row_sizes(4096, 4096, 128, 4096), _row_sizes(5, 256, 16, 256),
        inductor=3, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "gate_blocks", gate_blocks, _row_sizes(4096, 4096), _row_sizes(5, 256),
        inductor=3, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "gate_fields", gate_fields, sizes(16384, (ROWS, 39, 16)), sizes(5, (ROWS, 9, 4)),
        inductor=3, bridge=1, reached=1,
    ),
]  # fmt: skip

#: Those that the tests run.
TESTED = [*PATTERNS, *ORDERS, *SEGMENTS]


def _single(name: str, function: Callable, full: Sizes, small: Sizes) -> Pattern:
    return Pattern(name, function, full, small, inductor=1, bridge=1, reached=1)


#: What Inductor makes one kernel of already.
ONE_KERNEL = [
    _single("rmsnorm", rms_norm, _row_sizes(4096, 8192, 8192), _row_sizes(3, 96, 96)),
    _single("layernorm", layer_norm, _row_sizes(4096, 5120, 5120, 5120), _row_sizes(3, 96, 96, 96)),
    _single("two_rmsnorms", two_norms, _row_sizes(4096, 4096, 4096, 4096), _row_sizes(3, 96, 96, 96)),
    _single("gated_rmsnorm", gated_norm, sizes(4096, (ROWS, 4096), (ROWS, 4096), (4096,)),
            sizes(3, (ROWS, 96), (ROWS, 96), (96,))),
    _single("residual_rmsnorm", residual_norm, _swiglu_sizes(4096, 4096), _swiglu_sizes(3, 96)),
    _single("softmax", row_softmax, _row_sizes(4096, 16384), _row_sizes(3, 96)),
    _single("cross_entropy", cross_entropy, _row_sizes(4096, 8192), _row_sizes(3, 96)),
    _single("rmsnorm_128", rms_norm, _row_sizes(65536, 128, 128), _row_sizes(3, 32, 32)),
    _single("layernorm_768", layer_norm, _row_sizes(16384, 768, 768, 768), _row_sizes(3, 96, 96, 96)),
]  # fmt: skip

#: The function of the project's RFC over rows of other widths.
WIDTHS = [_swiglu(width, f"_{width}") for width in (7168, 14336, 28672)]
LONG_ROWS = [_swiglu(width, f"_{width}", rows=1024) for width in (16384, 32768, 65536, 131072)]

LISTS = {
    "engine": PATTERNS, "orders": ORDERS, "segments": SEGMENTS, "one_kernel": ONE_KERNEL, "widths": WIDTHS,
    "long_rows": LONG_ROWS,
}  # fmt: skip


def selected(parts: list[str], patterns: list[Pattern] = PATTERNS) -> list[Pattern]:
    """List the patterns in whose name one of the parts occurs; the empty part is in all."""
    return [pattern for pattern in patterns if any(part in pattern.name for part in parts)]
