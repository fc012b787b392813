"""Hold the functions that the benchmarks measure and test/python/end_to_end/test_patterns.py checks.

Each is a `Pattern`: a function, the shapes that it is run on (full size for a GPU, small for an interpreter), and
how many kernels Inductor and Bridge make of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from pattern_functions import (
    choice_entropy,
    combine_experts,
    cross_entropy,
    fused_qkv,
    gate_blocks,
    gate_by_tables,
    gate_fields,
    gated_norm,
    geglu_norm,
    group_norm_int8,
    group_norm_silu,
    interactions,
    jensen_shannon,
    layer_norm,
    mean_of_softmaxes,
    merging_metric,
    mix_heads,
    mixture_likelihood,
    mixture_mean,
    mla_indexer,
    mla_norms,
    norm_channels_first,
    norm_copied_heads,
    norm_fp8_blocks,
    norm_head_tail,
    norm_heads_and_row,
    norm_heads_transposed,
    norm_interleaved_rope,
    norm_padded_windows,
    norm_repeated_heads,
    norm_rolled,
    norm_token_mean,
    norm_windows,
    padded_softmax,
    padded_squares,
    padded_tiles,
    pool_by_scores,
    pooled_statistics,
    q_and_k_norm_rope,
    q_and_k_rope,
    repeated_queries,
    residual_norm,
    residual_norm_rope,
    rms_norm,
    row_softmax,
    scales_of_scales,
    silu_fp8_square_blocks,
    softmax_halves,
    swiglu_norm,
    swiglu_norm_int8,
    two_norms,
    votes_for,
    weighted_layers,
)

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
    """Hold a function and what is expected of it.

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
        made = next(one for one in (self.full, self.small) if len(one.shapes) == len(inputs))
        for tensor, shape in zip(inputs, made.shapes, strict=True):
            if shape[0] == ROWS:
                torch._dynamo.mark_dynamic(tensor, 0)

    def traffic(self, inputs: list[torch.Tensor]) -> int:
        """Return the fewest bytes moved: every element of inputs and outputs once."""
        outputs = self.function(*[t.to("meta") for t in inputs])
        outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
        return sum(t.numel() * t.element_size() for t in [*inputs, *outputs])


def sizes(rows: int, *shapes: tuple[int, ...]) -> Sizes:
    return Sizes(rows, shapes)


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
        inductor=4, bridge=3, reached=3,
    ),
]  # fmt: skip

#: A producer's rows in the places where its reader has them, some of which are no row's.
ORDERS = [
    # With torch 2.11 two kernels of Inductor's, and one.
    Pattern(
        "softmax_padded_squares", padded_squares, sizes(12288, (ROWS, 49, 49)), sizes(2, (ROWS, 13, 13)),
        inductor=3, bridge=1, reached=1,
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
        inductor=3, bridge=1, reached=1,  # the weight of a head at two forms of one index
    ),
    Pattern(
        "gate_blocks", gate_blocks, _row_sizes(4096, 4096), _row_sizes(5, 256),
        inductor=3, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "gate_fields", gate_fields, sizes(16384, (ROWS, 39, 16)), sizes(5, (ROWS, 9, 4)),
        inductor=3, bridge=1, reached=1,
    ),
    Pattern(
        "groupnorm_int8", group_norm_int8, _row_sizes(4096, 4096, 4096), _row_sizes(5, 256, 256),
        inductor=4, bridge=1, reached=1, loads_once=True,
    ),
    Pattern(
        "mix_heads", mix_heads, sizes(4096, (ROWS, 4, 1024)), sizes(5, (ROWS, 4, 32)),
        inductor=3, bridge=1, reached=1, loads_once=True,
    ),
]  # fmt: skip

#: Sums for each element of a row, whose loop is inside the row's lanes, then the row.
LANES = [
    Pattern(
        "combine_experts", combine_experts, sizes(8192, (ROWS, 8, 2048), (ROWS, 8), (ROWS, 2048), (2048,)),
        sizes(5, (ROWS, 4, 64), (ROWS, 4), (ROWS, 64), (64,)), inductor=2, bridge=1, reached=1,
    ),
    Pattern(
        "gate_by_tables", gate_by_tables, sizes(8192, (ROWS, 8, 512), (ROWS, 512), (512,)),
        sizes(5, (ROWS, 4, 32), (ROWS, 32), (32,)), inductor=2, bridge=1, reached=1,
    ),
    Pattern(
        "interactions", interactions, sizes(16384, (ROWS, 26, 64)), sizes(5, (ROWS, 6, 32)),
        inductor=2, bridge=1, reached=1,
    ),
    Pattern(
        "merging_metric", merging_metric, sizes(32, (ROWS, 16, 1024, 64)), sizes(2, (ROWS, 4, 5, 32)),
        inductor=2, bridge=1, reached=1,
    ),
    Pattern(
        "pool_by_scores", pool_by_scores, sizes(4096, (ROWS, 32, 128), (ROWS, 32)),
        sizes(5, (ROWS, 6, 32), (ROWS, 6)), inductor=3, bridge=1, reached=1,
    ),
]  # fmt: skip

#: The same of reductions to several values: softmax, variance, largest element.
STATES = [
    Pattern(
        "mixture_likelihood", mixture_likelihood, sizes(4096, (ROWS, 512), *[(ROWS, 8, 512)] * 3),
        sizes(5, (ROWS, 32), *[(ROWS, 4, 32)] * 3), inductor=3, bridge=1, reached=1,
    ),
    Pattern(
        "mixture_mean", mixture_mean, sizes(4096, (ROWS, 1024), *[(ROWS, 8, 1024)] * 2),
        sizes(5, (ROWS, 32), *[(ROWS, 4, 32)] * 2), inductor=2, bridge=1, reached=1,
    ),
    Pattern(
        "choice_entropy", choice_entropy, sizes(8192, (ROWS, 8, 1024)), sizes(5, (ROWS, 4, 32)),
        inductor=2, bridge=1, reached=1,
    ),
    Pattern(
        "votes_for", votes_for, sizes(8192, (ROWS, 8, 1024)), sizes(5, (ROWS, 4, 32)),
        inductor=2, bridge=1, reached=1,
    ),
    Pattern(
        "pooled_statistics", pooled_statistics, sizes(4096, (ROWS, 10, 1536)), sizes(5, (ROWS, 6, 32)),
        inductor=2, bridge=1, reached=1,
    ),
]  # fmt: skip

#: Concatenations that are reduced over their pieces, and rows that are repeated.
PIECES = [
    Pattern(
        "weighted_layers", weighted_layers, sizes(8192, (13,), *[(ROWS, 1024)] * 13), sizes(5, (3,), *[(ROWS, 32)] * 3),
        inductor=15, bridge=2, reached=2,  # 3 of numbers of rows; of symbols Inductor copies each piece by itself
    ),
    Pattern(
        "mean_of_softmaxes", mean_of_softmaxes, sizes(4096, *[(ROWS, 32000)] * 3), sizes(5, *[(ROWS, 96)] * 3),
        inductor=4, bridge=1, reached=1,
    ),
    Pattern(
        "jensen_shannon", jensen_shannon, sizes(4096, *[(ROWS, 32000)] * 2), sizes(5, *[(ROWS, 96)] * 2),
        inductor=5, bridge=2, reached=2,
    ),
    Pattern(
        "repeated_queries", repeated_queries, sizes(4, (ROWS, 2048, 2048)), sizes(2, (ROWS, 5, 64)),
        inductor=2, bridge=1, reached=1,
    ),
    Pattern(
        "norm_copied_heads", norm_copied_heads, sizes(4, (ROWS, 2048, 2048), (128,)), sizes(2, (ROWS, 5, 64), (16,)),
        inductor=2, bridge=1, reached=1,
    ),
]  # fmt: skip

#: Those that the tests run.
TESTED = [*PATTERNS, *ORDERS, *SEGMENTS, *LANES, *STATES, *PIECES]


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
    "engine": PATTERNS, "orders": ORDERS, "segments": SEGMENTS, "lanes": LANES, "states": STATES,
    "pieces": PIECES,
    "one_kernel": ONE_KERNEL, "widths": WIDTHS, "long_rows": LONG_ROWS,
}  # fmt: skip


def selected(parts: list[str], patterns: list[Pattern] = PATTERNS) -> list[Pattern]:
    """List the patterns in whose name one of the parts occurs; the empty part is in all."""
    return [pattern for pattern in patterns if any(part in pattern.name for part in parts)]
