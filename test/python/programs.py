"""Random programs over rows, for fuzz.py: reductions and arithmetic, then parts of rows, rearranged and combined.

A program is source text, so that a failure is a reproducer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F

POINTWISE = (
    "torch.sigmoid({a})",
    "torch.tanh({a})",
    "F.silu({a})",
    "F.gelu({a})",
    "{a} * 0.5 + 1",
    "{a}.abs()",
    "torch.cos({a})",
    "torch.clamp({a}, min=-0.5)",
    "torch.minimum({a}, 0.1 * {a})",
    "{a} * torch.rsqrt({a} * {a} + 1)",
)

#: Row reductions with what they are for; each keeps the shape.
ROW = (
    "{a} * torch.rsqrt({a}.pow(2).mean(-1, keepdim=True) + 1e-5)",
    "(wide({a}) * torch.rsqrt(wide({a}).pow(2).mean(-1, keepdim=True) + 1e-5)).to({a}.dtype)",
    "F.layer_norm({a}, ({n},))",
    "torch.softmax({a}, -1)",
    "torch.log_softmax({a}, -1)",
    "{a} / (1 + {a}.abs().amax(-1, keepdim=True))",
    "{a} - {a}.amin(-1, keepdim=True)",
    "{a} + 0.1 * {a}.sum(-1, keepdim=True)",
    "{a} - {a}.mean(-1, keepdim=True)",
    "{a} / (1 + {a}.var(-1, keepdim=True))",
    "{a} / (1 + torch.linalg.vector_norm({a}, dim=-1, keepdim=True))",
    "{a} - torch.logsumexp({a}, -1, keepdim=True)",
    "{a} * (1 + 0.01 * {a}).prod(-1, keepdim=True)",
    "{a} - 0.5 * {a}.mean(-2, keepdim=True)",
)

#: Discontinuous in what they compare, which is therefore an input as it was given: of {a}'s shape.
ROW_OF_INPUT = (
    "{a} + 0.01 * {x}.argmax(-1, keepdim=True)",
    "{a} - 0.01 * {x}.argmin(-1, keepdim=True)",
    "torch.where(({x} > 1.5).any(-1, keepdim=True), {a}, 2 * {a})",
    "torch.where(({x} > -2).all(-1, keepdim=True), {a}, -{a})",
    "torch.where({x} > 0, {a}, 0.25 * {a})",
)

#: What a row becomes, as one value; {k} is a cut inside the row, {h} its half.
REARRANGE = (
    "{a}.flip(-1)",
    "{a}.roll({k}, -1)",
    "{a}.roll((-1, {k}), (-2, -1))",
    "torch.cat([-{a}[..., {h}:], {a}[..., :{h}]], -1)",
    "torch.cat([{a}[..., {k}:], {a}[..., :{k}] * 2], -1)",
    "torch.stack([-{a}[..., 1::2], {a}[..., ::2]], -1).flatten(-2)",
    "torch.stack([{a}, 0.5 * {a}], -1).flatten(-2)",
    "{a}.transpose(-1, -2).contiguous()",
    "{a}.transpose(0, 1).contiguous()",
    "F.pad({a}, ({p}, {q}))",
    "F.pad({a}, (0, {q}), value=1.0)",
    "{a}[..., {k}:]",
    "{a}[..., :{k}]",
    "{a}[..., ::2]",
    "{a}[..., 1::2]",
    "{a}.unflatten(-1, (-1, 2)).sum(-1)",
    "{a}.unflatten(-1, (2, -1)).transpose(-1, -2).contiguous()",
    "{a}.unflatten(-1, (-1, 4))",
    "{a}.flatten(-2)",
    "{a}.unsqueeze(-2).expand(*{a}.shape[:-1], 2, {n}) * 1.5",
)

#: What a row becomes, as several values.
PARTS = (
    "{a}.chunk(2, -1)",
    "{a}.chunk(3, -1)",
    "{a}.chunk(4, -1)",
    "{a}.split([{k}, {n} - {k}], -1)",
    "{a}.split([{k}, {l} - {k}, {n} - {l}], -1)",
    "({a}[..., ::2], {a}[..., 1::2])",
    "{a}.unflatten(-1, (-1, 2)).unbind(-1)",
    "({a}[..., :{h}], {a}[..., :{h}])",
)

COMBINE = ("{a} * {b}", "F.silu({a}) * {b}", "{a} - 0.5 * {b}", "torch.sigmoid({a}) + {b}")

#: Reductions that drop the row, for an output of its own.
REDUCE = ("{a}.sum(-1)", "{a}.amax(-1)", "{a}.mean(-1, keepdim=True)", "{a}.var(-1)", "torch.logsumexp({a}, -1)")

QUANTISE = "torch.round({a} * (127 / (1e-3 + {a}.abs().amax(-1, keepdim=True)))).to(torch.int8)"


def wide(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype == torch.float64 else x.float()


@dataclass(frozen=True)
class Program:
    """Lines of a function's body as (names, expression), shapes of its inputs, names of its outputs."""

    seed: int
    shapes: dict[str, tuple[int, ...]]
    lines: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]
    dtype: torch.dtype
    dynamic: bool = False
    persistent: bool = True

    @property
    def source(self) -> str:
        body = [f"    {names} = {expression}" for names, expression in self.lines]
        returned = ", ".join(self.outputs) + ","
        return "\n".join([f"def f({', '.join(self.shapes)}):", *body, f"    return {returned}", ""])

    @property
    def function(self) -> Callable:
        scope = {"torch": torch, "F": F, "wide": wide}
        exec(compile(self.source, f"<seed {self.seed}>", "exec"), scope)  # noqa: S102 - the text is ours
        return scope["f"]

    def inputs(self) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(self.seed)
        tensors = [torch.randn(shape, generator=generator).to(self.dtype) for shape in self.shapes.values()]
        if self.dynamic:
            mark_rows(tensors, self.shapes["x"][0])
        return tensors

    def reference(self) -> tuple[torch.Tensor, ...]:
        return self.function(*[t.double() for t in self.inputs()])

    def __str__(self) -> str:
        tags = f"{self.dtype}{', dynamic rows' * self.dynamic}{', looped' * (not self.persistent)}"
        return f"# seed {self.seed}: {self.shapes}, {tags}\n{self.source}"


def mark_rows(tensors: list[torch.Tensor], rows: int) -> None:
    """Makes the rows symbolic, in every input that has them."""
    for tensor in tensors:
        if tensor.dim() > 1 and tensor.shape[0] == rows:
            torch._dynamo.mark_dynamic(tensor, 0)


@dataclass
class Writer:
    """Writes a program line by line; every line is evaluated at once, which gives the shapes."""

    rng: random.Random
    values: dict[str, torch.Tensor] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    lines: list[tuple[str, str]] = field(default_factory=list)

    def input(self, name: str, shape: tuple[int, ...]) -> str:
        self.shapes[name] = shape
        self.values[name] = torch.randn(shape, dtype=torch.float64)
        return name

    def line(self, template: str, **names: str) -> list[str]:
        """The names of what the template's expression gives; none if it does not apply to these shapes."""
        expression = template.format(**names, **self._numbers(names["a"]))
        try:
            result = eval(expression, {"torch": torch, "F": F, "wide": wide}, self.values)
        except (RuntimeError, IndexError, ValueError):
            return []
        results = result if isinstance(result, (tuple, list)) else [result]
        if not all(_usable(t) for t in results):
            return []
        new = [f"v{len(self.values) + i}" for i in range(len(results))]
        self.values.update(zip(new, results, strict=True))
        self.lines.append((", ".join(new), expression))
        return new

    def one(self, templates: tuple[str, ...], a: str, **names: str) -> str:
        """One of the templates applied to `a`; `a` itself where it does not apply."""
        return (self.line(self.rng.choice(templates), a=a, **names) or [a])[0]

    def _numbers(self, a: str) -> dict[str, int]:
        n = self.values[a].shape[-1]
        k, last = sorted(self.rng.sample(range(1, max(n, 4)), 2))
        if self.rng.random() < 0.5:
            k, last = max(8, k // 8 * 8), max(16, last // 8 * 8)
        return {"n": n, "h": n // 2, "k": k, "l": last, "p": self.rng.choice((0, 3)), "q": self.rng.choice((4, 7))}


def _usable(tensor: torch.Tensor) -> bool:
    if not 0 < tensor.dim() <= 5:
        return False
    return not tensor.is_floating_point() or 2 <= tensor.shape[-1] <= 400


def _input_shape(rng: random.Random) -> tuple[int, ...]:
    width = rng.choice((32, 36, 40, 48, 49, 60, 64, 64, 72, 96, 100, 128, 144, 192))
    rows = rng.choice((3, 5, 7, 8))
    leading = rng.choice(((rows,), (rows,), (2, rows), (2, 3, 2)))
    return *leading, width


def _begin(w: Writer) -> tuple[str, list[str]]:
    """(the row to go on with, outputs so far): an input, maybe a residual, maybe returned."""
    shape = _input_shape(w.rng)
    row, kept = w.input("x", shape), []
    if w.rng.random() < 0.4:
        row = w.one(("{a} + {r}",), row, r=w.input("r", shape))
        if w.rng.random() < 0.4:
            kept.append(row)
    return row, kept


def _work(w: Writer, row: str, steps: int) -> str:
    """Reductions and arithmetic that keep the shape."""
    for _ in range(steps):
        kind = w.rng.random()
        if kind < 0.45:
            row = w.one(ROW, row)
        elif kind < 0.55 and w.values[row].shape == w.values["x"].shape:
            row = w.one(ROW_OF_INPUT, row, x="x")
        elif kind < 0.7:
            row = _with_input(w, row)
        else:
            row = w.one(POINTWISE, row)
    return row


def _with_input(w: Writer, row: str) -> str:
    """A weight, a bias, or a rotation's table."""
    shape, name = tuple(w.values[row].shape), f"w{len(w.shapes)}"
    choices = [shape[-1:], shape, (*shape[:-1], 1)]
    if len(shape) > 2:
        choices.append((*shape[:-2], 1, shape[-1]))
    w.input(name, w.rng.choice(choices))
    return w.one(("{a} * {b}", "{a} + {b}"), row, b=name)


def _rotate(w: Writer, row: str) -> str:
    """row * cos + rotated(row) * sin"""
    shape = tuple(w.values[row].shape)
    cos, sin = (w.input(f"w{len(w.shapes)}", shape) for _ in range(2))
    turned = w.one(REARRANGE[:7], row)
    if w.values[turned].shape != w.values[row].shape:
        return row
    return w.one(("{a} * {c} + {t} * {s}",), row, t=turned, c=cos, s=sin)


def _parts(w: Writer, row: str) -> list[str]:
    """What the row falls into, combined or not."""
    kind = w.rng.random()
    if kind < 0.25:
        return [w.one(REARRANGE, row)]
    if kind < 0.4:
        return [_rotate(w, row)]
    parts = w.line(w.rng.choice(PARTS), a=row) or [row]
    if len(parts) > 1 and w.rng.random() < 0.6:
        return _combined(w, parts)
    return parts


def _combined(w: Writer, parts: list[str]) -> list[str]:
    first, second, *rest = w.rng.sample(parts, len(parts))
    if w.values[first].shape != w.values[second].shape:
        return parts
    return [w.one(COMBINE, first, b=second), *rest]


def _finish(w: Writer, parts: list[str]) -> list[str]:
    """Every part goes its own way."""
    done = []
    for part in parts:
        kind = w.rng.random()
        if kind < 0.25:
            part = _work(w, part, 1)
        elif kind < 0.4:
            part = w.one(REARRANGE, part)
        elif kind < 0.5:
            done.append(w.one((*REDUCE, QUANTISE), part))
        elif kind < 0.6:
            part = _rotate(w, part)
        done.append(part)
    return done


def generate(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    w = Writer(rng)
    row, outputs = _begin(w)
    row = _work(w, w.one(ROW, row) if rng.random() < 0.7 else row, rng.randint(0, 2))
    if rng.random() < 0.15:
        outputs.append(row)
    parts = _parts(w, row)
    if rng.random() < 0.3:
        parts = [p for part in parts for p in _parts(w, part)]
    outputs += _finish(w, parts)
    # An input, or a view of one, is nothing to compute.
    outputs = [name if _computed(w, name) else w.one(("{a} * 1.25",), name) for name in dict.fromkeys(outputs)]
    dtype = rng.choice((torch.float32, torch.float32, torch.bfloat16))
    program = Program(seed, w.shapes, tuple(w.lines), tuple(dict.fromkeys(outputs)), dtype)
    return pruned(replace(program, dynamic=rng.random() < 0.2, persistent=rng.random() < 0.7))


def _computed(w: Writer, name: str) -> bool:
    return name not in w.shapes


def pruned(program: Program) -> Program:
    """Without the lines and inputs that no output needs."""
    needed, lines = set(program.outputs), []
    for names, expression in reversed(program.lines):
        if needed & set(names.split(", ")):
            lines.append((names, expression))
            needed |= set(_names_in(expression))
    shapes = {name: shape for name, shape in program.shapes.items() if name in needed or name == "x"}
    return replace(program, lines=tuple(reversed(lines)), shapes=shapes)


def _names_in(expression: str) -> tuple[str, ...]:
    return compile(expression, "<line>", "eval").co_names


def runs(program: Program) -> bool:
    try:
        return bool(program.reference())
    except Exception:  # noqa: BLE001 - a shrunk program may be nonsense
        return False


def smaller_programs(program: Program) -> Iterator[Program]:
    """With one output less, or one line replaced by something that it uses."""
    if program.dynamic:
        yield replace(program, dynamic=False)
    if not program.persistent:
        yield replace(program, persistent=True)
    for name in program.outputs if len(program.outputs) > 1 else ():
        yield pruned(replace(program, outputs=tuple(n for n in program.outputs if n != name)))
    for i, (names, expression) in enumerate(program.lines):
        known = {n for line in program.lines[:i] for n in line[0].split(", ")} | set(program.shapes)
        for source in [n for n in _names_in(expression) if n in known and "," not in names]:
            yield pruned(_without(program, i, source))


def _without(program: Program, number: int, source: str) -> Program:
    """Without a line, whose value `source` takes the place of."""
    name = program.lines[number][0]

    def renamed(text: str) -> str:
        return re.sub(rf"\b{name}\b", source, text)

    rest = tuple((names, renamed(expression)) for names, expression in program.lines[number + 1 :])
    outputs = tuple(dict.fromkeys(renamed(output) for output in program.outputs))
    return replace(program, lines=(*program.lines[:number], *rest), outputs=outputs)
