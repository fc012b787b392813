"""Make random programs over rows, for fuzz.py: reductions and arithmetic, then parts of rows, rearranged and combined.

A program is source text, so that a failure is a reproducer. Where the width is symbolic, every line is true of two
widths: one that the program is compiled for, and another that it is called with after that.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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

#: What a row becomes, as one value; {n} is its width, {k} a cut inside it, {h} its half.
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

#: A table's element at a place that the data says, from the end or from the start.  Powers of two of a 16-bit number
#: are exact: the place is the same in every precision.
LOOK_UP = (
    "{a} + {t}[(x[..., 0].abs() * 64).long() % 16]",
    "{a} * {t}[(x[..., 0].abs() * 64).long() % 16 - 16]",
    "{a} + {t}[(x.abs() * 64).long() % 16, {n} - 1]",
)

#: What becomes of several rows, which are padded, or cut into windows the last of which is not full.
PAD_ROWS = (
    "F.pad({a}, (0, 0, {p}, {q}))",
    "F.pad({a}, (0, {q}, 0, {q}))",
    "F.pad({a}, (0, 0, 1, 1, 0, 1))",
    "F.pad({a}, (0, 0, 0, -{a}.shape[-2] % 4)).unflatten(-2, (-1, 4))",
    "F.pad({a}, (0, 0, 1, -({a}.shape[-2] + 1) % 4)).unflatten(-2, (-1, 4)).transpose(-2, -3).contiguous()",
    "F.pad({a}, (0, {q}, 0, -{a}.shape[-2] % 4)).unflatten(-2, (-1, 2)).transpose(-2, -3).contiguous()",
    "F.pad({a}.transpose(-1, -2), (0, {q})).contiguous()",
    "torch.cat([{a}, 0.5 * {a}[..., :2, :]], -2)",
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

#: Cuts of a row of symbolic width, a pair each: fractions of it, some of them rounded, and numbers.
CUTS = (
    ("{n} // 4", "{n} // 2"),
    ("{n} // 2", "{n} // 4 * 3"),
    ("{n} // 4", "{n} - {n} // 4"),
    ("{n} // 3", "{n} // 3 * 2"),
    ("({n} + 1) // 2", "{n} - 2"),
    ("{n} - 8", "{n} - 3"),
    ("8", "{n} // 2"),
    ("4", "16"),
)

QUANTISE = "torch.round({a} * (127 / (1e-3 + {a}.abs().amax(-1, keepdim=True)))).to(torch.int8)"


def wide(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype == torch.float64 else x.float()


@dataclass(frozen=True)
class Program:
    """Hold lines of a function's body as (names, expression), shapes of its inputs, names of its outputs.

    other_shapes: where the width is symbolic, shapes of the inputs of a second call; their ranks are the same.
    multiple: what the program says that the width of `x` is a multiple of; 1 if it says nothing.
    """

    seed: int
    shapes: dict[str, tuple[int, ...]]
    lines: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]
    dtype: torch.dtype
    dynamic: bool = False
    persistent: bool = True
    other_shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    multiple: int = 1

    @property
    def symbolic(self) -> bool:
        """Return True if any size is symbolic."""
        return self.dynamic or bool(self.other_shapes)

    @property
    def source(self) -> str:
        checked = [f"    torch._check(x.shape[-1] % {self.multiple} == 0)"] if self.multiple > 1 else []
        body = checked + [f"    {names} = {expression}" for names, expression in self.lines]
        returned = ", ".join(self.outputs) + ","
        return "\n".join([f"def f({', '.join(self.shapes)}):", *body, f"    return {returned}", ""])

    @property
    def function(self) -> Callable:
        scope = {"torch": torch, "F": F, "wide": wide}
        exec(compile(self.source, f"<seed {self.seed}>", "exec"), scope)  # noqa: S102 - the text is ours
        return scope["f"]

    def inputs(self) -> list[torch.Tensor]:
        tensors = self._random(self.shapes)
        if self.dynamic:
            mark_rows(tensors, self.shapes["x"][0])
        if self.other_shapes:
            mark_widths(tensors, list(self.other_shapes.values()))
        return tensors

    def calls(self) -> list[list[torch.Tensor]]:
        """Return the inputs of each call."""
        return [self.inputs(), *([self._random(self.other_shapes)] if self.other_shapes else [])]

    def results(self, function: Callable) -> tuple[torch.Tensor, ...]:
        """Return the results of all calls of a function that may stand for the program."""
        return tuple(result for inputs in self.calls() for result in function(*inputs))

    @property
    def result_names(self) -> list[str]:
        return [*self.outputs, *(f"{name} of other widths" for name in self.outputs if self.other_shapes)]

    def reference(self) -> tuple[torch.Tensor, ...]:
        return self.results(lambda *inputs: self.function(*[t.double() for t in inputs]))

    def _random(self, shapes: dict[str, tuple[int, ...]]) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(self.seed)
        return [torch.randn(shape, generator=generator).to(self.dtype) for shape in shapes.values()]

    def __str__(self) -> str:
        tags = f"{self.dtype}{', dynamic rows' * self.dynamic}{', looped' * (not self.persistent)}"
        tags += f", then {self.other_shapes}" * bool(self.other_shapes)
        return f"# seed {self.seed}: {self.shapes}, {tags}\n{self.source}"


def mark_rows(tensors: list[torch.Tensor], rows: int) -> None:
    """Mark the rows as symbolic in every input that has them."""
    for tensor in tensors:
        if tensor.dim() > 1 and tensor.shape[0] == rows:
            torch._dynamo.mark_dynamic(tensor, 0)


def mark_widths(tensors: list[torch.Tensor], others: list[tuple[int, ...]]) -> None:
    """Mark sizes that differ in other calls as symbolic.

    Some operations need a number, which is no fault: hence "maybe".
    """
    for tensor, other in zip(tensors, others, strict=True):
        for dim in range(tensor.dim()):
            if tensor.shape[dim] != other[dim]:
                torch._dynamo.maybe_mark_dynamic(tensor, dim)


@dataclass
class Writer:
    """Write a program line by line; every line is evaluated at once, which gives the shapes.

    worlds: the values by name, once for each width that the program is for.
    """

    rng: random.Random
    worlds: tuple[dict[str, torch.Tensor], ...] = field(default_factory=lambda: ({},))
    inputs: list[str] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)

    @property
    def values(self) -> dict[str, torch.Tensor]:
        return self.worlds[0]

    def shapes(self, name: str) -> list[tuple[int, ...]]:
        """Return the shapes of a value, one for each world."""
        return [tuple(world[name].shape) for world in self.worlds]

    def input(self, name: str, shapes: list[tuple[int, ...]]) -> str:
        self.inputs.append(name)
        for world, shape in zip(self.worlds, shapes, strict=True):
            world[name] = torch.randn(shape, dtype=torch.float64)
        return name

    def line(self, template: str, **names: str) -> list[str]:
        """Add a line and return the names of its results; none if the template does not apply to these shapes."""
        expression = template.format(**names, **self._numbers(names["a"]))
        results = [_evaluated(expression, world) for world in self.worlds]
        count = len(results[0])
        if any(len(found) != count for found in results):
            return []
        new = [f"v{len(self.values) + i}" for i in range(count)]
        for world, found in zip(self.worlds, results, strict=True):
            world.update(zip(new, found, strict=True))
        if new:
            self.lines.append((", ".join(new), expression))
        return new

    def one(self, templates: tuple[str, ...], a: str, **names: str) -> str:
        """Add one of the templates applied to `a` and return its name; `a` itself where it does not apply."""
        return (self.line(self.rng.choice(templates), a=a, **names) or [a])[0]

    def _numbers(self, a: str) -> dict[str, Any]:
        if len(self.worlds) > 1:
            return self._sizes(a)
        n = self.values[a].shape[-1]
        k, last = sorted(self.rng.sample(range(1, max(n, 4)), 2))
        if self.rng.random() < 0.5:
            k, last = max(8, k // 8 * 8), max(16, last // 8 * 8)
        return {"n": n, "h": n // 2, "k": k, "l": last, "p": self.rng.choice((0, 3)), "q": self.rng.choice((4, 7))}

    def _sizes(self, a: str) -> dict[str, Any]:
        """Return sizes of `a` and where to cut it, as expressions, which are the same for all worlds."""
        n = f"{a}.shape[-1]"
        cut, last = (f"({text.format(n=n)})" for text in self.rng.choice(CUTS))
        return {"n": n, "h": f"{n} // 2", "k": cut, "l": last, "p": self.rng.choice((0, 3)), "q": 4}


def _evaluated(expression: str, values: dict[str, torch.Tensor]) -> Sequence[torch.Tensor]:
    """Return the results of an expression; none if it does not apply."""
    try:
        result = eval(expression, {"torch": torch, "F": F, "wide": wide}, values)
    except (RuntimeError, IndexError, ValueError):
        return []
    results = result if isinstance(result, (tuple, list)) else [result]
    return results if all(_usable(t) for t in results) else []


def _usable(tensor: torch.Tensor) -> bool:
    if not 0 < tensor.dim() <= 5:
        return False
    return not tensor.is_floating_point() or 2 <= tensor.shape[-1] <= 400


def _input_shape(rng: random.Random) -> tuple[int, ...]:
    width = rng.choice((32, 36, 40, 48, 49, 60, 64, 64, 72, 96, 100, 128, 144, 192))
    rows = rng.choice((3, 5, 7, 8))
    leading = rng.choice(((rows,), (rows,), (2, rows), (2, 3, 2)))
    return *leading, width


def _symbolic_widths(rng: random.Random) -> tuple[int, int, int]:
    """Return (what the program says that the width is a multiple of, the width, another).

    A program that says nothing may need it all the same, or be called with an odd number.
    """
    said = rng.choice((1, 1, 2, 2, 4, 8, 16))
    factor = said if said > 1 else rng.choice((1, 4, 8))
    first, second = rng.sample(range(32 // factor, 1 + 192 // factor), 2)
    return said, first * factor, second * factor


def _begin(w: Writer, shapes: list[tuple[int, ...]]) -> tuple[str, list[str]]:
    """Return (the row to go on with, outputs so far): an input, maybe with a residual, maybe returned."""
    row, kept = w.input("x", shapes), []
    if w.rng.random() < 0.4:
        row = w.one(("{a} + {r}",), row, r=w.input("r", shapes))
        if w.rng.random() < 0.4:
            kept.append(row)
    return row, kept


def _work(w: Writer, row: str, steps: int) -> str:
    """Add reductions and arithmetic that keep the shape."""
    for _ in range(steps):
        kind = w.rng.random()
        if kind < 0.45:
            row = w.one(ROW, row)
        elif kind < 0.55 and w.shapes(row) == w.shapes("x"):
            row = w.one(ROW_OF_INPUT, row, x="x")
        elif kind < 0.7:
            row = _with_input(w, row)
        else:
            row = w.one(POINTWISE, row)
    return row


def _with_input(w: Writer, row: str) -> str:
    """Add a weight, a bias, or a table of a rotation."""
    choices = [_broadcastable(shape) for shape in w.shapes(row)]
    chosen, name = w.rng.choice(range(len(choices[0]))), f"w{len(w.inputs)}"
    w.input(name, [shapes[chosen] for shapes in choices])
    return w.one(("{a} * {b}", "{a} + {b}"), row, b=name)


def _broadcastable(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    shapes = [shape[-1:], shape, (*shape[:-1], 1)]
    return [*shapes, (*shape[:-2], 1, shape[-1])] if len(shape) > 2 else shapes


def _rotate(w: Writer, row: str) -> str:
    """Compute row * cos + rotated(row) * sin."""
    cos, sin = (w.input(f"w{len(w.inputs)}", w.shapes(row)) for _ in range(2))
    turned = w.one(REARRANGE[:7], row)
    if w.shapes(turned) != w.shapes(row):
        return row
    return w.one(("{a} * {c} + {t} * {s}",), row, t=turned, c=cos, s=sin)


def _parts(w: Writer, row: str) -> list[str]:
    """Divide the row into parts, combined or not."""
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
    if w.shapes(first) != w.shapes(second):
        return parts
    return [w.one(COMBINE, first, b=second), *rest]


def _finish(w: Writer, parts: list[str]) -> list[str]:
    """Continue each part in a way of its own, and return the outputs."""
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


def _look_up(w: Writer, name: str) -> str:
    """Combine a value with what a table has for each row or element, and with a reduction of both."""
    table = w.input(f"w{len(w.inputs)}", [(16, shape[-1]) for shape in w.shapes(name)])
    return w.one(("{a} + 0.5", "{a} * {a}.mean(-1, keepdim=True)"), w.one(LOOK_UP, name, t=table))


def generate(seed: int, symbolic_widths: bool = False, padded_rows: bool = False, lookups: bool = False) -> Program:
    """Return the program of a seed, and of the kind that is asked for."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    shape, multiple = _input_shape(rng), 1
    w, shapes = Writer(rng), [shape]
    if symbolic_widths:
        multiple, *widths = _symbolic_widths(rng)
        w, shapes = Writer(rng, ({}, {})), [(*shape[:-1], width) for width in widths]
    outputs = _write(w, shapes)
    if padded_rows:
        outputs = [w.one(PAD_ROWS, name) if rng.random() < 0.7 else name for name in outputs]
    if lookups:
        outputs = [_look_up(w, name) if rng.random() < 0.7 else name for name in outputs]
    dtype = rng.choice((torch.float32, torch.float32, torch.bfloat16))
    first, *other = [{name: tuple(world[name].shape) for name in w.inputs} for world in w.worlds]
    program = Program(seed, first, tuple(w.lines), tuple(dict.fromkeys(outputs)), dtype, multiple=multiple)
    program = replace(program, dynamic=rng.random() < 0.2, persistent=rng.random() < 0.7)
    return pruned(replace(program, other_shapes=other[0]) if other else program)


def _write(w: Writer, shapes: list[tuple[int, ...]]) -> list[str]:
    """Return the outputs of a program for an input of these shapes."""
    row, outputs = _begin(w, shapes)
    row = _work(w, w.one(ROW, row) if w.rng.random() < 0.7 else row, w.rng.randint(0, 2))
    if w.rng.random() < 0.15:
        outputs.append(row)
    parts = _parts(w, row)
    if w.rng.random() < 0.3:
        parts = [p for part in parts for p in _parts(w, part)]
    outputs += _finish(w, parts)
    # An input, or a view of one, is nothing to compute.
    return [name if _computed(w, name) else w.one(("{a} * 1.25",), name) for name in dict.fromkeys(outputs)]


def _computed(w: Writer, name: str) -> bool:
    return name not in w.inputs


def pruned(program: Program) -> Program:
    """Return a program without the lines and inputs that no output needs."""
    needed, lines = set(program.outputs), []
    for names, expression in reversed(program.lines):
        if needed & set(names.split(", ")):
            lines.append((names, expression))
            needed |= set(_names_in(expression))
    shapes, others = (
        {name: shape for name, shape in shapes.items() if name in needed or name == "x"}
        for shapes in (program.shapes, program.other_shapes)
    )
    return replace(program, lines=tuple(reversed(lines)), shapes=shapes, other_shapes=others)


def _names_in(expression: str) -> tuple[str, ...]:
    return compile(expression, "<line>", "eval").co_names


def runs(program: Program) -> bool:
    try:
        return bool(program.reference())
    except Exception:  # noqa: BLE001 - a shrunk program may be nonsense
        return False


def smaller_programs(program: Program) -> Iterator[Program]:
    """Yield programs with one output less, or with one line replaced by something that it uses."""
    if program.dynamic:
        yield replace(program, dynamic=False)
    if program.other_shapes:
        yield replace(program, other_shapes={}, multiple=1)
    if not program.persistent:
        yield replace(program, persistent=True)
    for name in program.outputs if len(program.outputs) > 1 else ():
        yield pruned(replace(program, outputs=tuple(n for n in program.outputs if n != name)))
    for i, (names, expression) in enumerate(program.lines):
        known = {n for line in program.lines[:i] for n in line[0].split(", ")} | set(program.shapes)
        for source in [n for n in _names_in(expression) if n in known and "," not in names]:
            yield pruned(_without(program, i, source))


def _without(program: Program, number: int, source: str) -> Program:
    """Return a program without a line, whose value is replaced by `source`."""
    name = program.lines[number][0]

    def renamed(text: str) -> str:
        return re.sub(rf"\b{name}\b", source, text)

    rest = tuple((names, renamed(expression)) for names, expression in program.lines[number + 1 :])
    outputs = tuple(dict.fromkeys(renamed(output) for output in program.outputs))
    return replace(program, lines=(*program.lines[:number], *rest), outputs=outputs)
