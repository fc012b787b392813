"""Test LoopBody -> affine -> LoopBody of Inductor's own nodes: the same accesses, ranges and numbers.

Each graph is compiled for the CPU twice, plainly and with the body of every loop node replaced by the one
that comes back from its translation, after no pass or after canonicalize and CSE.
"""

import contextlib
import dataclasses
import functools

import pytest
import torch
import torch.nn.functional as F
from torch._inductor import config as inductor_config
from torch._inductor.dependencies import extract_read_writes

from bridge import inductor
from bridge.affine.pipeline import run_pipeline
from bridge.affine.translate.group import GroupTarget, NodeSource, make_prover, trace_group, translate_group
from bridge.diagnostics.dump import Dump
from bridge.inductor.compiling import torch_release
from bridge.lowering.lift.band import FunctionTables, lift_band
from bridge.reasons import Unsupported

CANONICAL = "builtin.module(func.func(canonicalize,cse))"


@dataclasses.dataclass
class RoundTrip:
    """Replace bodies in the hook, and collect what differs and what is refused, by node."""

    pipeline: str | None
    replaced: int = 0
    refused: list = dataclasses.field(default_factory=list)
    different: list = dataclasses.field(default_factory=list)
    undo: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)

    def __call__(self, schedule):
        for kernel in schedule:
            if inductor.is_loop_kernel(kernel):
                for node in inductor.loop_nodes(kernel):
                    self._node(node)
        return schedule

    def _node(self, node):
        try:
            body = round_trip(node, self.pipeline)
        except Unsupported as refusal:
            self.refused.append(refusal)
            return
        before, after = accesses(inductor.node_body(node)), accesses(body)
        if before != after:
            self.different.append((node.get_name(), before, after))
        inductor.set_loop_body(node, body, self.undo)
        self.replaced += 1


def round_trip(node, pipeline):
    """Return the body of one scheduler node, translated and lifted back."""
    source = NodeSource(node.get_name(), inductor.node_body(node), inductor.node_sizes(node), 0)
    rounds = inductor.rounds_at_conversion(inductor.device_of(node))
    target = GroupTarget(inductor.buffer_dtype, inductor.buffer_numel, make_prover(), rounds)
    translation = translate_group("group", [source], trace_group([source]), target)
    if pipeline is not None:
        run_pipeline(translation.module, pipeline, Dump(None, "group"))
    stores = {t.name: {a.buffer for a in t.accesses if a.is_write} for t in translation.traces}
    buffers = [(name, m.view.strides) for name, m in translation.memrefs.items()]
    with translation.module.context:
        entry = translation.module.body.operations[0].regions[0].blocks[0]
        (nest,) = (op.operation for op in entry.operations if op.operation.name == "affine.for")
        shifts = {name: m.shifted for name, m in translation.memrefs.items()}
        tables = FunctionTables(buffers, translation.symbols, seeds=translation.seeds, shifts=shifts)
        (lifted,) = lift_band(nest, entry, tables, stores).nodes
        return inductor.make_loop_body(lifted.body, lifted.iter_sizes, lifted.reduce_sizes)


def accesses(body):
    """Return (reads, writes, ranges) of a body as Inductor's own dependency analysis sees them."""
    found = extract_read_writes(body, *body.sizes)
    return found.reads, found.writes, tuple(map(tuple, body.sizes))


def compile_and_run(fn, inputs, hook, dynamic, scalar=False):
    """Compile without a cache of graphs, and run; C++ that is the same in two compilations is compiled once."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    patches = {inductor.HOOK: hook, "fx_graph_cache": False, "aot_inductor.debug_compile": True}
    if scalar:
        patches["cpp.simdlen"] = 1
    with inductor_config.patch(patches), torch.no_grad():
        return torch.compile(fn, dynamic=dynamic, fullgraph=True)(*inputs)


def tensors(value):
    return [value] if isinstance(value, torch.Tensor) else [t for item in value for t in tensors(item)]


def same_bits(a, b):
    """Return True if every bit is equal, but for NaNs' payloads."""
    a, b = (t.detach().contiguous() for t in (a, b))
    if a.dtype.is_floating_point:
        a, b = a.double(), b.double()
        return torch.equal(a.nan_to_num(12345.0), b.nan_to_num(12345.0)) and torch.equal(
            a.signbit() & ~a.isnan(), b.signbit() & ~b.isnan()
        )
    return torch.equal(a, b)


def check(fn, inputs, *, pipelines=(CANONICAL,), dynamic=False, refusals=(), scalar=False):
    """Check that all nodes come back unchanged, but for refusals: reasons by name, one a node."""
    plain = tensors(compile_and_run(fn, inputs, None, dynamic, scalar))
    for pipeline in pipelines:
        hook = RoundTrip(pipeline)
        actual = tensors(compile_and_run(fn, inputs, hook, dynamic, scalar))
        assert sorted(r.reason.name for r in hook.refused) == sorted(refusals), hook.refused
        assert hook.different == []
        assert hook.replaced > 0
        compare(actual, plain)


def compare(actual, expected):
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)
    wrong = [i for i, (a, b) in enumerate(zip(actual, expected, strict=True)) if not same_bits(a, b)]
    assert wrong == []


def values(dtype, *shape, seed=0):
    """Return numbers of both signs with zeros; for floats NaN, infinities and a denormal as well."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator, dtype=dtype)
    if not dtype.is_floating_point:
        low = 0 if dtype == torch.uint8 else -100
        return torch.randint(low, 120, shape, generator=generator, dtype=dtype)
    x = (torch.randn(shape, generator=generator) * 3).to(dtype)
    flat = x.view(-1)
    special = torch.tensor([0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e-40])
    flat[: min(len(flat), 8)] = special[: len(flat)].to(dtype)
    return x


FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]


#: Functions of torch, and of torch.nn.functional, with one output each.
UNARY = (  # noqa: SIM905 - as a list it would be a line each
    "sigmoid tanh erf exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan atan asin acos sinh "
    "cosh asinh acosh atanh erfc reciprocal abs neg sign floor ceil trunc round frac relu square "
    "isnan isinf isfinite signbit logical_not lgamma nan_to_num deg2rad sgn"
).split()
UNARY_OF_F = ["silu", "gelu", "softplus", "mish", "elu", "hardswish", "leaky_relu", "logsigmoid"]
BINARY = (  # noqa: SIM905
    "add sub mul div minimum maximum fmin fmax remainder fmod pow atan2 hypot copysign nextafter eq "
    "ne lt le gt ge logical_and logical_or logical_xor floor_divide xlogy"
).split()


def float_functions(x, y):
    """Compute elementwise functions of every kind, one output each."""
    unary = [getattr(torch, name) for name in UNARY] + [getattr(F, name) for name in UNARY_OF_F]
    unary += [
        functools.partial(F.gelu, approximate="tanh"),
        functools.partial(torch.pow, exponent=3),
        functools.partial(torch.clamp, min=-1, max=1),
    ]
    binary = [getattr(torch, name) for name in BINARY]
    binary += [
        functools.partial(torch.div, rounding_mode="trunc"),
        functools.partial(torch.div, rounding_mode="floor"),
        lambda a, b: torch.where(a > b, a, b * 2),
        lambda a, b: torch.lerp(a, b, 0.3),
        lambda a, b: torch.addcmul(a, a, b),
        lambda a, b: torch.addcdiv(a, a, b),
        lambda a, b: a * 0.1 + b,
    ]
    if x.dtype in (torch.bfloat16, torch.float16):
        binary.remove(torch.nextafter)
    return [f(x) for f in unary] + [f(x, y) for f in binary]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_float_functions(dtype):
    check(float_functions, [values(dtype, 5, 41), values(dtype, 5, 41, seed=1).flip(1)])


def integer_functions(x, y):
    divisor = torch.where(y == 0, 1, y).to(y.dtype)
    shift = y.abs() % 7
    unary = [
        torch.abs,
        torch.neg,
        torch.sign,
        torch.square,
        torch.bitwise_not,
        torch.logical_not,
        torch.relu,
        torch.signbit,
    ]
    unary += [torch.sqrt, torch.sigmoid, torch.isnan, torch.reciprocal, functools.partial(torch.clamp, min=3, max=90)]
    unary += [functools.partial(torch.pow, exponent=2), torch.floor]
    binary = [torch.add, torch.sub, torch.mul, torch.minimum, torch.maximum, torch.bitwise_and, torch.bitwise_or]
    binary += [torch.bitwise_xor, torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge]
    binary += [torch.logical_and, torch.logical_or, torch.logical_xor]
    binary += [lambda a, b: torch.where(a > b, a, b * 2), lambda a, b: a * 3 + b, lambda a, b: (a > 5) & (b < 9)]
    divisions = [torch.div, torch.floor_divide, torch.remainder, torch.fmod]
    divisions += [functools.partial(torch.div, rounding_mode=mode) for mode in ("trunc", "floor")]
    shifts = [torch.bitwise_left_shift, torch.bitwise_right_shift]
    if x.dtype == torch.uint8:
        unary.remove(torch.neg)
    results = [f(x) for f in unary] + [f(x, y) for f in binary]
    return results + [f(x, divisor) for f in divisions] + [f(x, shift) for f in shifts]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [torch.int16, torch.int64, torch.uint8])
def test_integer_functions(dtype):
    check(integer_functions, [values(dtype, 5, 41), values(dtype, 5, 41, seed=1)])


def test_mixed_promotion():
    def fn(f, h, i, u, b):
        return (
            f + i,
            h * u,
            i - b,
            u + i,
            b * u,
            b + f,
            f > i,
            u < i,
            b == u,
            torch.where(b, i, f),
            i / u.add(1),
            b | (u > 3),
        )

    dtypes = [torch.float32, torch.bfloat16, torch.int32, torch.uint8, torch.bool]
    check(fn, [values(dtype, 7, 33) for dtype in dtypes])


def test_bool_functions():
    def fn(a, b):
        binary = [torch.logical_and, torch.logical_xor, torch.bitwise_or, torch.eq, torch.ne, torch.maximum, torch.mul]
        return [f(a, b) for f in [*binary, torch.add, torch.minimum, torch.lt, torch.ge]] + [
            ~a,
            a.logical_not(),
            a.float(),
        ]

    check(fn, [values(torch.bool, 5, 41), values(torch.bool, 5, 41, seed=1)])


FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]


CASTS = {
    "16 bits": [torch.bfloat16, torch.float16],
    "integers": INTEGERS,
    "others": [torch.float32, torch.float64, torch.bool],
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("sources", [*CASTS.values(), FLOAT8], ids=[*CASTS, "8 bits"])
def test_casts(sources):
    """Check casts of every dtype to every dtype, alone and between operations, where C++ may leave a rounding out."""
    targets = [*FLOATS, *INTEGERS, torch.bool, *FLOAT8]

    def fn(*inputs):
        plain = [x.to(t) for x in inputs for t in targets if x.dtype != t]
        between = [(x.to(torch.float32) * 0.37).to(t).to(torch.float32) + 1 for x in inputs for t in targets]
        return plain + between

    inputs = [torch.randn(3, 35, generator=torch.Generator().manual_seed(0)).mul(3).abs().to(s) for s in sources]
    check(fn, inputs, scalar=sources is FLOAT8)


def test_bit_casts():
    def fn(f, h, i, s):
        f, h, i, s = f + 1, h * 2, i + 1, s - 1
        views = [
            f.view(torch.int32),
            h.view(torch.int16),
            i.view(torch.float32),
            s.view(torch.bfloat16),
            s.view(torch.float16),
        ]
        return [v + 1 for v in views]

    check(fn, [values(d, 4, 32) for d in (torch.float32, torch.bfloat16, torch.int32, torch.int16)])


def test_indices_and_scalars():
    def fn(x, scalar):
        i = torch.arange(37, dtype=torch.int64)
        half = torch.arange(0, 37, dtype=torch.bfloat16)
        return (
            x + i,
            i * 2 + 3,
            x * half,
            torch.arange(5, 100, 3),
            torch.full((3, 4), 0.1),
            scalar * 2 + 1,
            torch.tril(x),
            torch.ones(3, 3).triu(1),
            torch.linspace(0, 1, 17),
            torch.eye(5),
            x[3:4, 5:6] * 2,
        )

    check(fn, [values(torch.float32, 6, 37), torch.tensor(2.5)])


def views(x, y):
    """Return values of index expressions of every form that views make."""
    rows, n = x.shape
    return (
        # masked loads
        F.pad(x, (2, 3, 1, 0), value=1.5),
        F.pad(x, (-1, 2)),
        torch.cat([x, y * 2], 0),
        torch.cat([x, y, x + 1], 1),
        torch.stack([x, y], -1),
        torch.tril(x) + 1,
        torch.where(torch.arange(n) < 5, x, y),
        # negative and interleaved strides, offsets, overlap
        x.flip(0) + y,
        x.flip(-1) + y,
        x.flip(0, 1) * 2,
        x[:, 1::2] + y[:, ::2],
        x[::3] * 2,
        x.reshape(-1)[5:] + 1,
        torch.add(*x.chunk(2, 1)),
        x.unfold(1, 6, 3) * 2,
        x.unfold(1, 4, 2).flip(1) + 1,
        x.diagonal() * 2,
        # permutations and stride 0
        x.t() + 1,
        x.t().contiguous() * y.t(),
        x[:1].expand_as(y) + y,
        x[:, :1] * y,
        x.unsqueeze(1) * y.unsqueeze(0),
        # floordiv and mod
        x.view(rows // 2, 2, -1).transpose(0, 1).reshape(rows, -1) + y,
        x.view(-1, n // 4, 4).permute(1, 2, 0).reshape(-1) + 1,
        x.roll(3, 1) + 1,
        x.roll((1, 5), (0, 1)),
        x.repeat(2, 3) + 1,
        x.repeat_interleave(2, dim=1) * 3,
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("dtype", "pipelines"),
    [(torch.bfloat16, (None, CANONICAL)), (torch.uint8, (None,))],
    ids=["bfloat16", "uint8"],
)
def test_views(dtype, pipelines):
    check(views, [values(dtype, 6, 40), values(dtype, 6, 40, seed=1)], pipelines=pipelines)


def test_views_of_fixed_sizes():
    def fn(x):
        strided = x.reshape(-1).as_strided((4, 8), (7, 2), 3)
        return strided + 1, F.pixel_shuffle(x[:4].view(1, 4, 10, 4), 2) + 1, x[3:4, 5:6] * 2, x[2, 3] + 1

    check(fn, [values(torch.float32, 6, 40)])


def test_views_that_are_not_affine():
    def fn(x):
        return F.pad(x, (2, 3), mode="reflect"), F.pad(x, (1, 1), mode="replicate"), x + 1

    check(fn, [values(torch.float32, 6, 40)], refusals=["non_affine_index"] * 2)


@pytest.mark.in_turn(2)
def test_views_of_dynamic_sizes():
    """Check that views that divide by a symbolic size, or depend on its rounding, are refused; others come back."""
    refusals = ["subscript_out_of_bounds"] + ["non_affine_index"] * 3
    x, y = values(torch.float32, 6, 40), values(torch.float32, 6, 40, seed=1)
    check(views, [x, y], dynamic=True, refusals=refusals)


def reductions(x):
    y = x * 2 + 1
    results = [f(y, dim) for f in (torch.sum, torch.amax, torch.amin, torch.argmax, torch.argmin) for dim in (0, 1)]
    results += [f(y) for f in (torch.sum, torch.amax, torch.argmin)]
    results += [torch.any(x > 1, 1), torch.all(x > -9, 0), torch.prod(x[:, :5], 1), torch.any(x)]
    if x.dtype.is_floating_point:
        results += [torch.mean(y, 1), torch.mean(y), *torch.var_mean(y, 1), torch.std(y), y.softmax(1), y.logsumexp(0)]
        results += [torch.norm(x, dim=1), F.layer_norm(y, y.shape[1:]), y.sum((0, 1)) + y]
    else:
        results += [torch.sum(x, 1, dtype=torch.int32)]
    return results


#: From torch 2.15 on, values of which an extremum is sought over a whole tensor bring their indices.
INDICES = ("unsupported_op",) if torch_release() >= (2, 15) else ()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype, dynamic", [(torch.float32, True), (torch.bfloat16, False), (torch.int32, False)])
def test_reductions(dtype, dynamic):
    x = torch.randn(9, 37, generator=torch.Generator().manual_seed(0)).mul(5).to(dtype)
    check(reductions, [x], dynamic=dynamic, refusals=INDICES)


@pytest.mark.in_turn(2)
def test_small_reductions():
    """Check reductions over one element, of bools, of NaN, over outer and inner dimensions at once, and of views."""

    def fn(x, b):
        scalar = x[0, 0, 0]
        over_nan = torch.where(x > 1, float("nan"), x)
        return (
            x[:, :1].sum(1),
            scalar.sum(),
            x[:1, :1, :1].var(correction=0),
            b.sum(-1),
            b.any(),
            b.amax(1),
            b.amin(0),
            over_nan.amax(1),
            over_nan.argmin(2),
            over_nan.sum(0),
            x.sum((0, 2)),
            x.amax((0, 1)),
            x.argmax(),
            x.flip(1).argmax(1),
            x.transpose(0, 2).sum(1),
            x[:, ::2].mean((1, 2)),
            F.pad(x, (1, 1)).amax(2),
        )

    inputs = [torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0)), values(torch.bool, 4, 6)]
    check(fn, inputs, refusals=INDICES)


def test_unsigned_reductions_are_refused():
    def fn(x):
        return x.amax(1), x.argmax(0), x.sum()

    check(fn, [values(torch.uint8, 5, 40)], refusals=["unsupported_dtype"])


@pytest.mark.parametrize("dynamic", [False, True])
def test_gathers(dynamic):
    def fn(x, i, j):
        return x[i], x[:, j].sum(1), x[i, j[:6]], x.gather(1, j[:6, None].abs().expand(6, 3))

    rows, columns = torch.tensor([3, -1, 0, 5, 2, 2]), torch.tensor([7, 0, -39, 39, 1, 2, 8])
    check(fn, [values(torch.float32, 6, 40), rows, columns], dynamic=dynamic)


def test_stores_at_places_that_depend_on_data_are_refused():
    def fn(x, i):
        return torch.zeros_like(x).index_copy(0, i, x), x + 1

    hook = RoundTrip(None)
    compile_and_run(fn, [values(torch.float32, 6, 40), torch.tensor([3, 1, 0, 5, 2, 4])], hook, False)
    assert {r.reason.name for r in hook.refused} == {"indirect_index"}
    assert hook.different == [] and hook.replaced > 0


def test_random_numbers():
    """Check that random numbers are the same, of the same places of the same seeds."""

    def fn(x):
        dropped = F.dropout(x, 0.3, training=True).t() + torch.randn_like(x).t()
        return dropped, torch.rand(1), torch.randint(-3, 1 << 40, (x.shape[1], 2)), torch.rand_like(x[1:, ::2]).sum(0)

    check(fn, [values(torch.float32, 6, 40)], pipelines=(None, CANONICAL))
