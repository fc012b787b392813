"""Count or time training patterns, forward and backward, with Inductor and with Bridge.

python benchmarks/training.py [part of a name ...] [--reasons]    # kernels, for a GPU that need not be there
python benchmarks/training.py [part of a name ...] --dynamic      # the same for any sizes but those of parameters
python benchmarks/training.py [part of a name ...] --time         # times and errors, on a GPU
"""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from group_reasons import reasons
from torch import Tensor

import bridge as package
from bridge.backend import bridge
from bridge.bench.cases import Case
from bridge.bench.command import progress
from bridge.bench.measure import Plan, measure, warm_up
from bridge.bench.training import Compiler
from bridge.diagnostics.recording import recorded
from bridge.offline import _stubs
from bridge.offline.arch import resolve_arch
from bridge.offline.wrapper import parse_wrapper
from bridge.support.gradients import WithBackward

ROWS, COLUMNS, HEAD = 8192, 4096, 128


def tensor(*size: int) -> Tensor:
    """Return a leaf that wants a gradient."""
    return torch.ones(size, dtype=torch.bfloat16).requires_grad_()


def several(*sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(tensor(*size) for size in sizes)


def rms(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def qkv(x: Tensor, q_weight: Tensor, k_weight: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Split into 32 heads of q, 8 of k and 8 of v; norm and RoPE on the heads of q and k."""
    q, k, v = x.view(x.shape[0], -1, HEAD).split((32, 8, 8), dim=1)
    return rotate(rms(q, q_weight), cos, sin), rotate(rms(k, k_weight), cos, sin), v


def mla_kv(x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Split 512 + 64, norm of the first part, RoPE of the second, cat."""
    latent, rope = x.split((512, 64), -1)
    return torch.cat((rms(latent, weight), rotate(rope, cos, sin)), -1)


def cross_entropy(x: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(x, target)


def cross_entropy_rows(x: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(x, target, reduction="none")


def cross_entropy_float(x: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(x.float(), target)


def kl(a: Tensor, b: Tensor) -> Tensor:
    return F.kl_div(torch.log_softmax(a, -1), torch.softmax(b, -1), reduction="batchmean")


def kl_rows(a: Tensor, b: Tensor) -> Tensor:
    return F.kl_div(torch.log_softmax(a, -1), torch.softmax(b, -1), reduction="none").sum(-1)


def kl_elements(a: Tensor, b: Tensor) -> Tensor:
    return F.kl_div(torch.log_softmax(a, -1), torch.softmax(b, -1), reduction="none")


def norm_swiglu(x: Tensor, weight: Tensor) -> Tensor:
    a, b = rms(x, weight).chunk(2, -1)
    return F.silu(a) * b


def gated_norm(x: Tensor, gate: Tensor, weight: Tensor) -> Tensor:
    return rms(x, weight) * F.silu(gate)


def adaln(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift


def adaln_residual(x: Tensor, y: Tensor, gate: Tensor, scale: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    h = x + gate * y
    return h, F.layer_norm(h, h.shape[-1:]) * (1 + scale) + shift


def adaln_images(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Have a scale and a shift for each image."""
    return F.layer_norm(x, x.shape[-1:]) * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


def adaln_residual_images(x: Tensor, y: Tensor, gate: Tensor, scale: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    h = x + gate.unsqueeze(1) * y
    return h, adaln_images(h, scale, shift)


def gated_heads(x: Tensor, gate: Tensor, weight: Tensor) -> Tensor:
    """Norm each head, with a weight of its own, and gate the row; x: (..., heads, size); weight: (heads, size)."""
    return (rms(x.float(), weight.float()).flatten(-2) * F.silu(gate.float())).to(x.dtype)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def gelu_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(x @ weight + bias)


def layer_norm_dropout(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return layer_norm(x + F.dropout(y, 0.1), weight, bias)


def layer_scale(x: Tensor, f: Tensor, gamma: Tensor) -> Tensor:
    return x + gamma * f


def tempered(scores: Tensor, temperature: Tensor) -> Tensor:
    """Have a temperature for each head; scores: (images, heads, queries, keys)."""
    return torch.softmax(scores.float() * temperature.float().exp()[:, None, None], -1).to(scores.dtype)


def scaled_heads(x: Tensor, scale: Tensor) -> Tensor:
    """Norm each token of each head, and scale the head; x: (images, heads, tokens, size)."""
    return (F.rms_norm(x.float(), x.shape[-1:]) * scale.float()[:, None, None]).to(x.dtype)


def batch_norm_gelu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(F.batch_norm(x, None, None, weight, bias, training=True))


def beside(function: Callable, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Have products beside a function, the last three inputs, whose memory is the graph's peak in both directions."""
    *own, first, second, third = inputs
    result = function(*own)
    return *(result if isinstance(result, tuple) else (result,)), first @ second @ third


@functools.cache
def angles(columns: int, heads: bool) -> tuple[Tensor, Tensor]:
    """Return cos and sin, which want no gradient."""
    size = (ROWS, 1, columns) if heads else (ROWS, columns)
    return torch.ones(size, dtype=torch.bfloat16), torch.ones(size, dtype=torch.bfloat16)


def logits() -> tuple[Tensor, Tensor]:
    """Return logits and the targets."""
    return tensor(2048, 32000), torch.zeros(2048, dtype=torch.int64)


X, W, H, HEADS = (ROWS, COLUMNS), (COLUMNS,), (HEAD,), (COLUMNS // HEAD, HEAD)

#: A diffusion transformer's: 64 images of 256 tokens; one vector for each.
TOKENS, PATCHES, IMAGES = (64, 256, 1152), (64, 197, 1152), (64, 1152)

#: Of what `beside` multiplies: the first product has 1 GiB.
PRODUCTS = (65536, 16), (16, 8192), (8192, 16)

#: Attention of vision transformers, and of 2048 tokens; maps of a convolution.
SCORES, LONG_SCORES, HEADS_OF_IMAGES, MAPS = (
    (32, 12, 512, 512),
    (2, 32, 2048, 2048),
    (32, 12, 512, 64),
    (32, 128, 56, 56),
)

#: name -> (function, makes the inputs).
PATTERNS: dict[str, tuple[Callable, Callable[[], tuple]]] = {
    "q, k, v: split, norms, RoPE": (
        qkv,
        lambda: (tensor(ROWS, 48 * HEAD), tensor(*H), tensor(*H), *angles(HEAD, True)),
    ),
    "MLA kv: split, norm, RoPE, cat": (mla_kv, lambda: (tensor(ROWS, 576), tensor(512), *angles(64, False))),
    "cross entropy": (cross_entropy, logits),
    "cross entropy, float": (cross_entropy_float, logits),
    "cross entropy, of each row": (cross_entropy_rows, logits),
    "KL of two softmaxes": (kl, lambda: (tensor(*X), tensor(*X))),
    "KL of two softmaxes, of each row": (kl_rows, lambda: (tensor(*X), tensor(*X))),
    "KL of two softmaxes, of each element": (kl_elements, lambda: (tensor(*X), tensor(*X))),
    "a, b = rms(x).chunk(2); silu(a) * b": (norm_swiglu, lambda: (tensor(*X), tensor(*W))),
    "w * rms(x) * silu(g)": (gated_norm, lambda: (tensor(*X), tensor(*X), tensor(*W))),
    "AdaLN": (adaln, lambda: (tensor(*X), tensor(*W), tensor(*W))),
    "AdaLN, h = x + gate * y": (adaln_residual, lambda: (tensor(*X), tensor(*X), tensor(*W), tensor(*W), tensor(*W))),
    "AdaLN of images": (adaln_images, lambda: (tensor(*TOKENS), tensor(*IMAGES), tensor(*IMAGES))),
    "AdaLN of images, h = x + gate * y": (
        adaln_residual_images,
        lambda: (tensor(*TOKENS), tensor(*TOKENS), tensor(*IMAGES), tensor(*IMAGES), tensor(*IMAGES)),
    ),
    "AdaLN of images of 197 tokens": (
        functools.partial(beside, adaln_residual_images),
        lambda: several(PATCHES, PATCHES, IMAGES, IMAGES, IMAGES, *PRODUCTS),
    ),
    "layer norm, 2048 rows": (layer_norm, lambda: (tensor(2048, COLUMNS), tensor(*W), tensor(*W))),
    "RMSNorm, 2048 rows": (rms, lambda: (tensor(2048, COLUMNS), tensor(*W))),
    "ln(x + dropout(y))": (layer_norm_dropout, lambda: (tensor(*X), tensor(*X), tensor(*W), tensor(*W))),
    "gelu(x @ w + b)": (gelu_linear, lambda: (tensor(*X), tensor(COLUMNS, COLUMNS), tensor(*W))),
    "norms of heads, gated": (
        gated_heads,
        lambda: (tensor(4, ROWS // 4, *HEADS), tensor(4, ROWS // 4, COLUMNS), tensor(*HEADS)),
    ),
    "softmax, temperatures of heads": (functools.partial(beside, tempered), lambda: several(SCORES, (12,), *PRODUCTS)),
    "softmax of 2048, temperatures of heads": (
        functools.partial(beside, tempered),
        lambda: several(LONG_SCORES, (32,), *PRODUCTS),
    ),
    "RMSNorm, scales of heads": (
        functools.partial(beside, scaled_heads),
        lambda: several(HEADS_OF_IMAGES, (12,), *PRODUCTS),
    ),
    "batch norm, GELU": (
        functools.partial(beside, batch_norm_gelu),
        lambda: several(MAPS, MAPS[1:2], MAPS[1:2], *PRODUCTS),
    ),
    "LayerScale": (layer_scale, lambda: (tensor(*X), tensor(*X), tensor(*W))),
}


def mark_sizes(inputs: tuple) -> None:
    """Have symbols say how many rows there are, or images and their positions: all sizes that no parameter has.

    Parameters have another first size than the first input. The last size, of columns, is a number but in maps.
    """
    rows = inputs[0].shape[0]
    known = {size for tensor in inputs if tensor.shape[0] != rows for size in tensor.shape}
    for tensor in (tensor for tensor in inputs if tensor.shape[0] == rows):
        *outer, last = tensor.shape
        for place, size in enumerate(tensor.shape if last in outer[2:] else outer):
            if size > 1 and (size not in known or place == 0):
                torch._dynamo.mark_dynamic(tensor, place)


def graphs(function: Callable, inputs: tuple, compile_fx: Callable, dynamic: bool = False) -> list[str]:
    """Return the generated code of the forward and of the backward; dynamic: of any sizes but those of parameters."""
    torch._dynamo.reset()
    if dynamic:
        mark_sizes(inputs)
    codes: list[str] = []
    with (
        _stubs.scratch_caches(),
        torch._inductor.config.patch(shape_padding=False),
        torch._functorch.config.patch(force_non_lazy_backward_lowering=True),
        _stubs.codegen_only(resolve_arch("sm_90"), codes),
        _ended_by_done(),
        torch.enable_grad(),
    ):
        marked = None if dynamic else False
        torch.compile(function, backend=_ending(compile_fx), dynamic=marked, fullgraph=True)(*inputs)
    return codes


@contextlib.contextmanager
def _ended_by_done() -> Iterator[None]:
    try:
        yield
    except torch._dynamo.exc.BackendCompilerFailed as error:
        if not isinstance(error.inner_exception, Done):
            raise


def _ending(compile_fx: Callable) -> Callable:
    """Return a backend that ends the compilation when the code is known."""

    def backend(gm: torch.fx.GraphModule, example_inputs: list[Tensor]) -> Callable:
        compile_fx(gm, example_inputs)
        raise Done

    return backend


class Done(Exception):
    """Ends a compilation whose code is known."""


def count(code: str) -> str:
    """Return the number of launches; after a plus those by which PyTorch adds up what the parts of a kernel left."""
    sums = code.count(".sum(dim=0)")
    return f"{len(parse_wrapper(code).launches)}{f' + {sums}' if sums else ''}"


def counts(function: Callable, inputs: tuple, compile_fx: Callable, dynamic: bool = False) -> str:
    """Return the numbers of launches, forward and backward, as cells of a table."""
    return " | ".join(map(count, graphs(function, inputs, compile_fx, dynamic)))


def training_case(name: str, function: Callable, inputs: tuple) -> Case:
    """Return a function with its backward, for the same random gradients in every call."""
    step = WithBackward()

    def assemble(compiler: Compiler) -> Callable[..., list[Tensor]]:
        return step(function, compiler(function))

    return Case(name, "training", 0, step(function, function), list(inputs), assemble=assemble)


def randomized(inputs: tuple) -> tuple:
    """Fill tensors of floating point with random numbers, and return all."""
    for tensor in inputs:
        if tensor.is_floating_point():
            tensor.data.normal_()
    return inputs


def print_times(chosen: dict[str, tuple[Callable, Callable[[], tuple]]], dynamic: bool) -> None:
    """Print a line for each pattern: launches, times of forward and backward together, and errors."""
    package.config.training = True
    plan = Plan(dynamic=None if dynamic else False)
    with torch.device("cuda"):
        warm_up()
        for number, (name, (function, make)) in enumerate(chosen.items()):
            inputs = randomized(make())
            if dynamic:
                mark_sizes(inputs)
            print(progress(measure(training_case(name, function, inputs), number, plan=plan)), flush=True)


def chosen(parts: list[str]) -> dict[str, tuple]:
    """Return the patterns in whose name one of the parts is; all of them without parts."""
    return {name: PATTERNS[name] for name in PATTERNS if not parts or any(part in name for part in parts)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--dynamic", action="store_true")
    arguments = parser.parse_args()
    if arguments.time:
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
        return print_times(chosen(arguments.names), arguments.dynamic)
    print(f"torch {torch.__version__}\n\n| pattern | Inductor: forward | backward | Bridge: forward | backward |")
    print("|---|---|---|---|---|", flush=True)
    for name, (function, make) in chosen(arguments.names).items():
        theirs = counts(function, make(), torch._inductor.compile_fx.compile_fx, arguments.dynamic)
        with recorded() as recording:
            ours = counts(function, make(), bridge, arguments.dynamic)
        print(f"| {name} | {theirs} | {ours} |", flush=True)
        if arguments.reasons:
            print(*(f"    {line}" for line in reasons(recording)), sep="\n", flush=True)


if __name__ == "__main__":
    main()
