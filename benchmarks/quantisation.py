"""Measure quantisation as GEMMs want it, with Inductor and with Bridge.

python benchmarks/quantisation.py [part of a name ...] [--reasons] [--dynamic]    # kernels, without a GPU
python benchmarks/quantisation.py [part of a name ...] --time                     # times and errors, on a GPU

The functions are written in PyTorch as libraries for inference write them, some in several ways.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from group_reasons import reasons
from torch import Tensor
from torch._inductor.compile_fx import compile_fx as inductor

from bridge import offline
from bridge.backend import bridge
from bridge.bench.cases import Case
from bridge.bench.command import progress
from bridge.bench.exact import tensors_of
from bridge.bench.measure import measure, warm_up
from bridge.diagnostics.recording import recorded

ROWS, COLUMNS = 8192, 4096
E4M3, E8M0 = torch.float8_e4m3fn, torch.float8_e8m0fnu
E4M3_MAX, E2M1_MAX = 448.0, 6.0

#: The middles between the numbers that four bits of a float have (0, 0.5, 1, 1.5, 2, 3, 4, 6): it rounds to even there.
E2M1_MIDDLES = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)


def rms(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def gated(a: Tensor, b: Tensor) -> Tensor:
    return F.silu(a) * b


# --- scales ----------------------------------------------------------------------------------------------------------


def shared_exponent(amax: Tensor, largest_exponent: int = 8) -> Tensor:
    """Return the exponent of a block, biased as e8m0 has it: that of the largest number, less the format's largest."""
    exponent = ((amax.float().view(torch.int32) >> 23) & 0xFF) - largest_exponent
    return exponent.clamp(0, 254).to(torch.uint8)


def power_of_two(exponent: Tensor) -> Tensor:
    """Return the float32 with such a biased exponent."""
    return (exponent.to(torch.int32) << 23).view(torch.float32).clamp(min=2.0**-126)


def blocks_e8m0(x: Tensor, size: int = 32, dtype: torch.dtype = E4M3) -> tuple[Tensor, Tensor]:
    """MXFP8 along the last dimension: (elements, e8m0 scales)."""
    blocks = x.float().unflatten(-1, (-1, size))
    limits = torch.finfo(dtype)
    exponent = shared_exponent(blocks.abs().amax(-1), 8 if dtype is E4M3 else 15)
    elements = (blocks / power_of_two(exponent).unsqueeze(-1)).clamp(limits.min, limits.max).to(dtype)
    return elements.flatten(-2), exponent.view(E8M0)


def blocks_e8m0_by_log(x: Tensor, size: int = 32) -> tuple[Tensor, Tensor]:
    """Do the same with scales rounded up, by a logarithm, and cast."""
    blocks = x.float().unflatten(-1, (-1, size))
    scale = torch.exp2(torch.ceil(torch.log2(blocks.abs().amax(-1).clamp(min=1e-10) / E4M3_MAX)))
    elements = (blocks / scale.unsqueeze(-1)).clamp(-E4M3_MAX, E4M3_MAX).to(E4M3)
    return elements.flatten(-2), scale.to(E8M0)


def blocks_float(x: Tensor, size: int = 128, dtype: torch.dtype = E4M3) -> tuple[Tensor, Tensor]:
    """Blocks with float32 scales."""
    blocks = x.float().unflatten(-1, (-1, size))
    limit = torch.finfo(dtype).max
    scale = blocks.abs().amax(-1, keepdim=True).clamp(min=1e-10) / limit
    return (blocks / scale).clamp(-limit, limit).to(dtype).flatten(-2), scale.squeeze(-1)


# --- four bits -------------------------------------------------------------------------------------------------------


def e2m1_by_compares(x: Tensor) -> Tensor:
    """Return the code of each number in the four low bits of a byte: one more for each middle that is passed."""
    size = x.abs()
    code = sum((size > m if i % 2 == 0 else size >= m).to(torch.uint8) for i, m in enumerate(E2M1_MIDDLES))
    return code | (torch.signbit(x).to(torch.uint8) << 3)


def e2m1_by_where(x: Tensor) -> Tensor:
    """Do the same; each range of numbers has its own line."""
    size = x.abs()
    code = torch.zeros_like(size, dtype=torch.uint8)
    for i, m in enumerate(E2M1_MIDDLES):
        code = torch.where(size > m if i % 2 == 0 else size >= m, torch.full_like(code, i + 1), code)
    return torch.where(x < 0, code + 8, code)


def e2m1_by_bits(x: Tensor) -> Tensor:
    """Do the same by the bits of a float32: round its mantissa to one bit; below one, by an addition."""
    bits = x.view(torch.int32)
    sign = (bits >> 28) & 8
    size = bits & 0x7FFFFFFF
    small = (x.abs() + 2.0**22).view(torch.int32) - 0x4A800000
    even = (size >> 22) & 1
    large = ((size + 0x1FFFFF + even) >> 22) - (126 << 1)
    code = torch.where(x.abs() < 1.0, small, large)
    return (code | sign).to(torch.uint8)


def e2m1_by_search(x: Tensor) -> Tensor:
    """Do the same by a search in the middles; ties are rounded down."""
    middles = torch.tensor(E2M1_MIDDLES, device=x.device)
    return torch.bucketize(x.abs(), middles).to(torch.uint8) | (torch.signbit(x).to(torch.uint8) << 3)


def packed_by_steps(code: Tensor) -> Tensor:
    """Two codes a byte, the first in the low bits."""
    return code[..., ::2] | code[..., 1::2] << 4


def packed_flat(code: Tensor) -> Tensor:
    """Pack a flat view."""
    flat = code.contiguous().view(-1)
    return (flat[::2] | flat[1::2] << 4).view(*code.shape[:-1], -1)


def packed_by_pairs(code: Tensor) -> Tensor:
    """Pack a view of pairs."""
    pairs = code.unflatten(-1, (-1, 2))
    return pairs[..., 0] | (pairs[..., 1] << 4)


def packed_by_sum(code: Tensor) -> Tensor:
    """Pack by a sum of each pair."""
    shifts = torch.tensor([1, 16], dtype=torch.int32, device=code.device)
    return (code.unflatten(-1, (-1, 2)).int() * shifts).sum(-1).to(torch.uint8)


# --- layouts of scales -----------------------------------------------------------------------------------------------


def _padded(scales: Tensor) -> Tensor:
    rows, columns = scales.shape
    below, beside = -rows % 128, -columns % 4
    if not below and not beside:
        return scales
    return F.pad(scales.view(torch.uint8), (0, beside, 0, below)).view(scales.dtype)


def swizzled(scales: Tensor) -> Tensor:
    """Tiles of 128 x 4 scales, each as 32 x 4 x 4 in memory."""
    tiles = _padded(scales)
    rows, columns = tiles.shape
    tiles = tiles.view(rows // 128, 128, columns // 4, 4).permute(0, 2, 1, 3)
    return tiles.reshape(-1, 4, 32, 4).transpose(1, 2).reshape(-1, 32, 16).flatten()


def swizzled_at_once(scales: Tensor) -> Tensor:
    """Make the same tiles by one permutation."""
    tiles = _padded(scales)
    rows, columns = tiles.shape
    tiles = tiles.reshape(rows // 128, 4, 32, columns // 4, 4).permute(0, 3, 2, 1, 4)
    return tiles.contiguous().view(rows, columns)


# --- the functions ---------------------------------------------------------------------------------------------------


def nvfp4(
    x: Tensor,
    whole: Tensor | None = None,
    *,
    size: int = 16,
    encode: Callable = e2m1_by_compares,
    pack: Callable = packed_by_steps,
    layout: Callable = swizzled,
) -> tuple[Tensor, Tensor]:
    """NVFP4: (packed elements, e4m3 scales of blocks); whole: the scale of the tensor."""
    blocks = x.float().unflatten(-1, (-1, size))
    scale = blocks.abs().amax(-1) / E2M1_MAX
    if whole is not None:
        scale = scale / whole
    rounded = scale.clamp(torch.finfo(E4M3).tiny, E4M3_MAX).to(E4M3)
    wide = rounded.float() if whole is None else rounded.float() * whole
    elements = (blocks / wide.unsqueeze(-1)).clamp(-E2M1_MAX, E2M1_MAX).flatten(-2)
    return pack(encode(elements)), layout(rounded)


def silu_mxfp8(a: Tensor, b: Tensor, quantise: Callable = blocks_e8m0) -> tuple[Tensor, ...]:
    """Quantise along rows and along columns, the second transposed in memory."""
    h = gated(a, b)
    return *quantise(h), *quantise(h.t().contiguous())


def silu_mxfp8_in_place(a: Tensor, b: Tensor, size: int = 32) -> tuple[Tensor, ...]:
    """Do the same; elements quantised along columns stay where they are."""
    h = gated(a, b)
    elements, scales = blocks_e8m0(h.t())
    return *blocks_e8m0(h), elements.t(), scales.t()


def silu_mxfp8_swizzled(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Along rows; scales in tiles."""
    elements, scales = blocks_e8m0(gated(a, b))
    return elements, swizzled(scales)


def norm_fp8_blocks(x: Tensor, weight: Tensor, quantise: Callable = blocks_float) -> tuple[Tensor, ...]:
    """Scales column-major: a transposed view of contiguous memory."""
    elements, scales = quantise(rms(x, weight))
    return elements, scales.t().contiguous().t()


def norm_fp8_blocks_buffer(x: Tensor, weight: Tensor, out: Tensor) -> tuple[Tensor, ...]:
    """Do the same into memory that the caller has: groups before rows."""
    elements, scales = blocks_float(rms(x, weight))
    out.copy_(scales.t())
    return elements, out


def both_fp8(x: Tensor) -> tuple[Tensor, ...]:
    """Have one scale a row, and one a column; both copies."""
    wide = x.float()
    rows = wide.abs().amax(-1, keepdim=True).clamp(min=1e-12) / E4M3_MAX
    columns = wide.abs().amax(0, keepdim=True).clamp(min=1e-12) / E4M3_MAX
    return (wide / rows).to(E4M3), rows, (wide / columns).to(E4M3).t().contiguous(), columns


def silu_nvfp4(a: Tensor, b: Tensor, **ways: Any) -> tuple[Tensor, ...]:
    return nvfp4(gated(a, b), **ways)


def silu_nvfp4_whole(a: Tensor, b: Tensor, whole: Tensor) -> tuple[Tensor, ...]:
    """With a scale for the whole tensor, which is known beforehand."""
    return nvfp4(gated(a, b), whole)


def norm_nvfp4(x: Tensor, residual: Tensor, weight: Tensor, **ways: Any) -> tuple[Tensor, ...]:
    h = x + residual
    return *nvfp4(rms(h, weight), **ways), h


def norm_nvfp4_in_place(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    residual.add_(x)
    return nvfp4(rms(residual, weight))


def norm_int8(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    """Have one scale a token; the residual is overwritten."""
    residual.add_(x)
    h = rms(residual, weight).float()
    scale = h.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
    return (h / scale).round().clamp(-128, 127).to(torch.int8), scale


def norm_int8_asymmetric(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    """With a zero point."""
    residual.add_(x)
    h = rms(residual, weight).float()
    low, high = h.amin(-1, keepdim=True), h.amax(-1, keepdim=True)
    scale = (high - low).clamp(min=1e-5) / 255
    zero = (-128 - low / scale).round()
    return ((h / scale).round() + zero).clamp(-128, 127).to(torch.int8), scale, zero.to(torch.int32)


def norm_int4(x: Tensor, weight: Tensor, size: int = 64, pack: Callable = packed_by_steps) -> tuple[Tensor, ...]:
    """Four-bit integers without a sign, two a byte."""
    blocks = rms(x, weight).float().unflatten(-1, (-1, size))
    low, high = blocks.amin(-1, keepdim=True), blocks.amax(-1, keepdim=True)
    scale = (high - low).clamp(min=1e-5) / 15
    code = ((blocks - low) / scale).round().clamp(0, 15).to(torch.uint8).flatten(-2)
    return pack(code), scale.squeeze(-1), low.squeeze(-1)


HEADS, KV_HEADS, HEAD, PAGE = 24, 4, 128, 16


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.float().chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(x.dtype)


def heads_of(qkv: Tensor, weights: tuple[Tensor, Tensor], table: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
    """Return q, k, v: q and k with norm and RoPE."""
    cos, sin = table[positions].unsqueeze(1).chunk(2, -1)
    q, k, v = qkv.unflatten(-1, (-1, HEAD)).split((HEADS, KV_HEADS, KV_HEADS), 1)
    return rotated(rms(q, weights[0]), cos, sin), rotated(rms(k, weights[1]), cos, sin), v


def to_cache(  # noqa: PLR0913 - what a layer of attention has
    qkv: Tensor, q: Tensor, k: Tensor, table: Tensor, positions: Tensor, keys: Tensor, values: Tensor, slots: Tensor
) -> Tensor:
    """Keys and values of each token go to its slot of the cache's pages."""
    query, key, value = heads_of(qkv, (q, k), table, positions)
    keys.view(-1, KV_HEADS, HEAD).index_put_((slots,), key)
    values.view(-1, KV_HEADS, HEAD).index_put_((slots,), value)
    return query


def to_pages(  # noqa: PLR0913 - what a layer of attention has
    qkv: Tensor, q: Tensor, k: Tensor, table: Tensor, positions: Tensor, keys: Tensor, values: Tensor, slots: Tensor
) -> Tensor:
    """Do the same by page and place in it."""
    query, key, value = heads_of(qkv, (q, k), table, positions)
    keys[slots // PAGE, slots % PAGE] = key
    values[slots // PAGE, slots % PAGE] = value
    return query


def mla(x: Tensor, q_weight: Tensor, kv_weight: Tensor, table: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
    """Two norms of slices of one projection, RoPE of the third, and the cat of latent and rotated part."""
    q, kv, rope = x.split((1536, 512, 64), -1)
    cos, sin = table[positions].chunk(2, -1)
    return rms(q, q_weight), torch.cat((rms(kv, kv_weight), rotated(rope, cos, sin)), -1)


def tensor(*size: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """Return random numbers; integers: places, each at most once."""
    if dtype.is_floating_point:
        return torch.randn(size, generator=torch.Generator().manual_seed(sum(size))).to(dtype)
    return torch.arange(size[0], dtype=dtype).flip(0)


def _pair(rows: int) -> tuple:
    return tensor(rows, COLUMNS), tensor(rows, COLUMNS).flip(0)


def _row(rows: int) -> tuple:
    return tensor(rows, COLUMNS), tensor(COLUMNS)


def _residual(rows: int) -> tuple:
    return *_pair(rows), tensor(COLUMNS)


def _cached(rows: int) -> tuple:
    pages = -(-rows // PAGE) + 1
    caches = tensor(pages, PAGE, KV_HEADS, HEAD), tensor(pages, PAGE, KV_HEADS, HEAD)
    places = tensor(rows, dtype=torch.int64)
    table = tensor(rows, HEAD, dtype=torch.float32)
    return tensor(rows, (HEADS + 2 * KV_HEADS) * HEAD), tensor(HEAD), tensor(HEAD), table, places, *caches, places


def _with(function: Callable, **ways: Callable) -> Callable:
    """Fix the ways of a function."""

    def fixed(*inputs: Tensor) -> tuple[Tensor, ...]:
        return function(*inputs, **ways)

    return fixed


#: name -> (function, makes the inputs of so many rows).
PATTERNS: dict[str, tuple[Callable, Callable[[int], tuple]]] = {
    "silu(a) * b, MXFP8, rows and columns": (silu_mxfp8, _pair),
    "silu(a) * b, MXFP8, rows and columns, not transposed": (silu_mxfp8_in_place, _pair),
    "silu(a) * b, MXFP8, rows and columns, scales by log2": (_with(silu_mxfp8, quantise=blocks_e8m0_by_log), _pair),
    "silu(a) * b, MXFP8, rows, scales swizzled": (silu_mxfp8_swizzled, _pair),
    "RMSNorm, fp8 blocks, scales column-major": (norm_fp8_blocks, _row),
    "RMSNorm, fp8 blocks, scales into a buffer": (
        norm_fp8_blocks_buffer,
        lambda rows: (*_row(rows), tensor(COLUMNS // 128, rows, dtype=torch.float32)),
    ),
    "fp8, a scale a row and a column": (both_fp8, lambda rows: (tensor(rows, COLUMNS),)),
    "silu(a) * b, NVFP4": (silu_nvfp4, _pair),
    "silu(a) * b, NVFP4, scale of the tensor": (
        silu_nvfp4_whole,
        lambda rows: (*_pair(rows), torch.tensor(0.01)),
    ),
    "silu(a) * b, NVFP4, where": (_with(silu_nvfp4, encode=e2m1_by_where), _pair),
    "silu(a) * b, NVFP4, bits": (_with(silu_nvfp4, encode=e2m1_by_bits, pack=packed_flat), _pair),
    "silu(a) * b, NVFP4, pairs": (_with(silu_nvfp4, pack=packed_by_pairs, layout=swizzled_at_once), _pair),
    "silu(a) * b, NVFP4, sums of pairs": (_with(silu_nvfp4, pack=packed_by_sum), _pair),
    "silu(a) * b, NVFP4, search": (_with(silu_nvfp4, encode=e2m1_by_search), _pair),
    "residual, RMSNorm, NVFP4": (norm_nvfp4, _residual),
    "residual, RMSNorm, NVFP4, flat": (_with(norm_nvfp4, encode=e2m1_by_bits, pack=packed_flat), _residual),
    "residual, RMSNorm, NVFP4, pairs": (
        _with(norm_nvfp4, encode=e2m1_by_where, pack=packed_by_pairs, layout=swizzled_at_once),
        _residual,
    ),
    "residual in place, RMSNorm, NVFP4": (norm_nvfp4_in_place, _residual),
    "residual in place, RMSNorm, int8": (norm_int8, _residual),
    "residual in place, RMSNorm, int8, zero point": (norm_int8_asymmetric, _residual),
    "RMSNorm, int4 in blocks": (norm_int4, _row),
    "q and k norm, RoPE, k and v into a paged cache": (to_cache, _cached),
    "q and k norm, RoPE, k and v into pages": (to_pages, _cached),
    "MLA: two norms, RoPE, cat": (
        mla,
        lambda rows: (
            tensor(rows, 2112), tensor(1536), tensor(512),
            tensor(rows, 64, dtype=torch.float32), tensor(rows, dtype=torch.int64),
        ),
    ),
}  # fmt: skip


def count(function: Callable, inputs: tuple, compile_fx: Callable, dynamic: bool = False) -> int:
    """Return the number of launches of the function."""
    torch._dynamo.reset()
    if dynamic:
        mark_rows(inputs)
    return offline.compile_for_gpu(
        function, list(inputs), arch="sm_90", compile_fx=compile_fx, dynamic=None if dynamic else False
    ).n_kernels


def mark_rows(inputs: tuple) -> None:
    """Have Dynamo make the rows symbolic."""
    rows = inputs[0].shape[0]
    for one in inputs:
        for dim in range(one.dim()):
            if one.shape[dim] == rows:
                torch._dynamo.mark_dynamic(one, dim)


def case(name: str, function: Callable, inputs: list[Tensor]) -> Case:
    """Return a function whose inputs are as they were before each call: some are overwritten."""
    before = [one.clone() for one in inputs]

    def rewind() -> None:
        for one, kept in zip(inputs, before, strict=True):
            one.copy_(kept)

    return Case(name, "quantisation", 0, function, inputs, rewind=rewind, tensors=tensors_of)


def print_times(names: list[str], rows: int) -> None:
    """Print a line for each function: launches, times and errors."""
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {rows} rows", flush=True)
    warm_up()
    with torch.no_grad(), torch.device("cuda"):
        for number, name in enumerate(names):
            function, make = PATTERNS[name]
            with torch.device("cpu"):
                inputs = [one.cuda() for one in make(rows)]
            print(progress(measure(case(name, function, inputs), number)), flush=True)


def print_kernels(names: list[str], rows: int, dynamic: bool, with_reasons: bool) -> None:
    """Print a table of launches."""
    print(f"torch {torch.__version__}, {rows} rows{', symbolic' * dynamic}\n")
    print("| pattern | Inductor | Bridge |\n|---|---|---|", flush=True)
    for name in names:
        function, make = PATTERNS[name]
        inputs = make(rows)
        theirs = count(function, inputs, inductor, dynamic)
        with recorded() as recording:
            ours = count(function, inputs, bridge, dynamic)
        print(f"| {name} | {theirs} | {ours} |", flush=True)
        if with_reasons:
            print(*(f"    {line}" for line in reasons(recording)), sep="\n", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--dynamic", action="store_true", help="make the number of rows symbolic")
    parser.add_argument("--time", action="store_true")
    arguments = parser.parse_args()
    names = [name for name in PATTERNS if not arguments.names or any(part in name for part in arguments.names)]
    if arguments.time:
        print_times(names, arguments.rows)
    else:
        print_kernels(names, arguments.rows, arguments.dynamic, arguments.reasons)


if __name__ == "__main__":
    main()
