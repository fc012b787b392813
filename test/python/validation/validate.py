"""Translation validation: the affine IR of a group is executed as translated and as transformed, and compared.

`recorded()` collects the groups of the compilations within.  A group's buffers are filled with random numbers, those
that it writes too, so that an element which only one of the two writes shows.  What no reassociated reduction has gone
into has to be equal bit for bit.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import sympy
import torch
from emitted import _Interpreted
from executed import execute

import bridge
from bridge import inductor, offline
from bridge._native._bridge_enum_gen import CombineKind
from bridge.affine import pipeline
from bridge.affine.dtypes import LOW_PRECISION
from bridge.affine.mlir_runtime import context, ir
from bridge.backend import bridge as bridge_backend
from bridge.offline import capture
from bridge.scheduling import fuse

#: Both code generators' pipelines, with every rounding to 16 bits left in.
EXACT = [
    "builtin.module(bridge-fuse{excess-precision=false})",
    "builtin.module(bridge-fuse{excess-precision=false unroll-and-jam=true simt-target=false})",
]


@dataclass
class Buffer:
    """Hold a memref argument: its name, and how it lies in its storage, in elements."""

    name: str
    shape: list[int]
    strides: list[int]
    dtype: torch.dtype


@dataclass
class Group:
    """Hold a group's IR before and after the passes, with the sizes that its symbols have in the example.

    doubled: the same with twice the symbols, where the group has symbols and the guards admit that.
    """

    name: str
    before: str
    buffers: list[Buffer]
    sizes: list[int]
    after: str = ""
    doubled: Group | None = None

    def transform_to(self, after: str) -> None:
        self.after = after
        if self.doubled:
            self.doubled.after = after

    @functools.cached_property
    def expected(self) -> list[torch.Tensor]:
        """Return the buffers after a run on `random_buffers`, as translated."""
        buffers = random_buffers(self)
        execute(self.before, buffers, self.sizes)
        return buffers


@dataclass
class Recorded:
    """Hold groups in the order of compilation, and of the last graph its inputs, outputs and arguments.

    inputs: names; outputs: (buffer, shape, strides, offset); arguments: of its call, compiled offline or interpreted.
    """

    groups: list[Group] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[tuple] = field(default_factory=list)
    arguments: list[torch.Tensor] = field(default_factory=list)


@contextlib.contextmanager
def recorded() -> Iterator[Recorded]:
    found, translate, run = Recorded(), fuse.translate, pipeline.run_pipeline
    translated = None
    shape_only, call = capture._shape_only, _Interpreted.call

    def recording_call(gm):
        run_fake = shape_only(gm)

        def run(*arguments):
            found.arguments = _tensors(arguments)
            return run_fake(*arguments)

        return run

    def recording_interpreted(module, arguments):
        found.arguments = _tensors(arguments)
        return call(module, arguments)

    def recording_translate(group, schedule, options, dump, name):
        nonlocal translated
        nodes, translation = translate(group, schedule, options, dump, name)
        translated = translation.module
        found.groups.append(_recorded_group(name, translation))
        found.inputs, found.outputs = _interface()
        return nodes, translation

    def recording_run(module, *rest):
        remarks = run(module, *rest)
        if module is translated:  # no search for a missing guard
            found.groups[-1].transform_to(str(module))
        return remarks

    with (
        mock.patch.object(fuse, "translate", recording_translate),
        mock.patch.object(pipeline, "run_pipeline", recording_run),
        mock.patch.object(capture, "_shape_only", recording_call),
        mock.patch.object(_Interpreted, "call", recording_interpreted),
    ):
        yield found


def record(function: Callable, inputs: list[torch.Tensor], dynamic: bool) -> Recorded:
    """Return the groups of a function that is compiled for a GPU."""
    with recorded() as found:
        offline.compile_for_gpu(function, inputs, compile_fx=bridge_backend, dynamic=None if dynamic else False)
    assert not bridge.report().fused or found.groups
    return found


def _tensors(arguments: Iterable[Any]) -> list[torch.Tensor]:
    return [a for a in arguments if isinstance(a, torch.Tensor)]


def _recorded_group(name: str, translation: Any) -> Group:
    symbols = {s: inductor.size_hint(s) for e in _size_expressions(translation) for s in e.free_symbols}
    group, doubled = _group(name, translation, symbols), {s: 2 * hint for s, hint in symbols.items()}
    if symbols and _admitted(doubled):
        group.doubled = _group(f"{name}, doubled", translation, doubled)
    return group


def _group(name: str, translation: Any, sizes: dict[sympy.Symbol, int]) -> Group:
    def values(expressions: list) -> list[int]:
        return [int(translation.multiples.restore(sympy.sympify(e)).xreplace(sizes)) for e in expressions]

    memrefs = translation.memrefs.values()
    buffers = [Buffer(m.view.buffer, values(m.view.sizes), values(m.view.strides), m.dtype) for m in memrefs]
    return Group(name, str(translation.module), buffers, values(translation.symbols))


def _size_expressions(translation: Any) -> list[sympy.Expr]:
    views = [memref.view for memref in translation.memrefs.values()]
    expressions = [*translation.symbols, *(e for view in views for e in (*view.sizes, *view.strides))]
    return [translation.multiples.restore(sympy.sympify(e)) for e in expressions]


def _admitted(sizes: dict[sympy.Symbol, int]) -> bool:
    """Return True if the graph's guards are known to hold for these sizes."""
    from torch._inductor.virtualized import V

    shape_env = V.graph.sizevars.shape_env
    guards = [shape_env.replace(guard.expr) for guard in shape_env.guards]
    return all(guard.xreplace(sizes) == sympy.true for guard in guards if guard.free_symbols & sizes.keys())


def _hints(expressions: list) -> list[int]:
    return [int(inductor.size_hint(sympy.sympify(e))) for e in expressions]


def _interface() -> tuple[list[str], list[tuple]]:
    from torch._inductor.virtualized import V

    outputs = []
    for output in V.graph.graph_outputs:
        layout = output.get_layout()
        outputs.append((output.get_name(), _hints(layout.size), _hints(layout.stride), *_hints([layout.offset])))
    # Sizes are inputs too.
    inputs = [name for name in V.graph.graph_input_names if hasattr(V.graph.graph_inputs[name], "get_layout")]
    return inputs, outputs


def transformed(group: Group, passes: str) -> str:
    """Return what another pipeline makes of a group."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(group.before)
        pipeline.transform(module, passes)
        return str(module)


# ---------------------------------------------------------------------------------------------------------
# Execution
# ---------------------------------------------------------------------------------------------------------


def random_buffers(group: Group) -> list[torch.Tensor]:
    """Return one contiguous tensor a memref; always the same."""
    torch.manual_seed(0)
    return [random_tensor(buffer.shape, buffer.dtype) for buffer in group.buffers]


def random_tensor(shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor in the middle of a storage with room on both sides: what is executed may be wrong."""
    count = math.prod(shape)
    room = count + _ROOM
    if dtype == torch.bool:
        values = torch.randint(0, 2, [count + 2 * room]).bool()
    elif not dtype.is_floating_point:
        values = torch.randint(0, 100, [count + 2 * room]).to(dtype)
    else:
        values = torch.randn(count + 2 * room).to(dtype)
    return values[room : room + count].view(shape)


#: Elements before and after a buffer, beside as many as it has.
_ROOM = 256


def _around(tensor: torch.Tensor) -> torch.Tensor:
    """Return the storage around a random tensor, without the tensor itself."""
    room = tensor.numel() + _ROOM
    whole = torch.as_strided(tensor, [tensor.numel() + 2 * room], [1], 0)
    return torch.cat([whole[:room], whole[-room:]])


def differences(group: Group, after: str | None = None, excess_precision: bool = True) -> list[str]:
    """Return what is not as it has to be in `after` (default: what the passes made), a line each.

    excess_precision: whether the passes may have left out roundings to 16 bits, which is what they do by default.
    """
    after = group.after if after is None else after
    results = random_buffers(group)
    execute(after, results, group.sizes)
    coarse = any(buffer.dtype in LOW_PRECISION for buffer in group.buffers)
    rounded = written_by(after) if coarse and excess_precision else reassociated(group.before, after)
    found = []
    for position, (buffer, one, other) in enumerate(zip(group.buffers, group.expected, results, strict=True)):
        if _unequal(_around(one), _around(other)):
            found.append(f"{group.name} {buffer.name}: written outside of it")
        problem = far(one, other, coarse) if position in rounded else _unequal(one, other)
        if problem:
            found.append(f"{group.name} {buffer.name}: {problem}")
    return found


def problems(recorded: Recorded, passes: list[str] = EXACT) -> list[str]:
    """Return differences of what a compilation used, and of other pipelines that leave in all roundings."""
    lines = []
    for group in recorded.groups:
        lines += differences(group)
        lines += differences(group.doubled) if group.doubled else []
        for text in passes:
            other = transformed(group, text)
            lines += [f"{text}: {line}" for line in differences(group, other, excess_precision=False)]
    return lines


def outputs_of(recorded: Recorded, stage: str = "after") -> list[torch.Tensor] | None:
    """Return what the graph gives for its arguments, by the IR "before" the passes or "after" them.

    None if its groups are not all of its kernels.
    """
    if not recorded.groups:
        return None
    inputs = dict(zip(recorded.inputs, recorded.arguments, strict=True))
    storages: dict[str, Any] = {}
    for group in recorded.groups:
        if not _run_on(group, getattr(group, stage), inputs, storages):
            return None
    if any(name not in storages for name, *_ in recorded.outputs):
        return None
    return [torch.as_strided(storages[name], *layout) for name, *layout in recorded.outputs]


def _run_on(group: Group, text: str, inputs: dict[str, torch.Tensor], storages: dict[str, torch.Tensor]) -> bool:
    """Run a group's IR on what there is, and add what it writes; return False if it reads something else."""
    written, buffers = written_by(text), random_buffers(group)
    for position, buffer in enumerate(group.buffers):
        if position in written:
            continue
        source = inputs.get(buffer.name, storages.get(buffer.name))
        if source is None:
            return False
        viewed = torch.as_strided(source, buffer.shape, buffer.strides, source.storage_offset())
        buffers[position] = viewed.clone(memory_format=torch.contiguous_format)
    execute(text, buffers, group.sizes)
    for position in written:
        buffer, values = group.buffers[position], buffers[position]
        extent = 1 + sum((size - 1) * stride for size, stride in zip(buffer.shape, buffer.strides, strict=True))
        storages[buffer.name] = torch.empty(extent, dtype=buffer.dtype)
        torch.as_strided(storages[buffer.name], buffer.shape, buffer.strides).copy_(values)
    return True


def written_by(text: str) -> set[int]:
    """Return positions of the memrefs that a module stores to."""
    with context(), ir.Location.unknown():
        return set(_Orders(ir.Module.parse(text)).stores)


def _unequal(one: torch.Tensor, other: torch.Tensor) -> str | None:
    bits = [t.view(_BITS[t.itemsize]) if t.is_floating_point() else t for t in (one, other)]
    count = int((bits[0] != bits[1]).sum())
    nans = int((one.isnan() & other.isnan() & (bits[0] != bits[1])).sum()) if one.is_floating_point() else 0
    return f"{count - nans} of {one.numel()} elements differ" if count > nans else None


_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

#: Of the largest element, for what a reassociated reduction has gone into, with and without roundings to 16 bits.
_COARSE, _FINE = 2e-2, 1e-5


def far(one: torch.Tensor, other: torch.Tensor, coarse: bool = False) -> str | None:
    """Return how two tensors differ that should have the same numbers, computed in two ways; None if they agree.

    Quantised values may differ by a step where rounding was a tie; floats by their bound.
    """
    if one.itemsize == 1 or not one.is_floating_point():
        steps = (_levels(one) - _levels(other)).abs()
        wrong = steps.max() > 1 or (steps != 0).double().mean() > 0.01
        return f"{int((steps > 0).sum())} of {one.numel()} integers differ" if wrong else None
    if not torch.equal(one.isfinite(), other.isfinite()):
        return "one is finite where the other is not"
    finite = [torch.nan_to_num(t.double(), 0.0, 0.0, 0.0) for t in (one, other)]
    distance = ((finite[0] - finite[1]).abs().max() / finite[0].abs().max().clamp_min(1e-30)).item()
    return f"off by {distance:.1e} of the largest" if distance > (_COARSE if coarse else _FINE) else None


def _levels(tensor: torch.Tensor) -> torch.Tensor:
    """Return quantised values as integers whose difference counts steps."""
    if not tensor.is_floating_point():
        return tensor.long()
    bits = tensor.view(torch.int8).long()
    return torch.where(bits < 0, -(bits & 127), bits)


# ---------------------------------------------------------------------------------------------------------
# Reassociated reductions
# ---------------------------------------------------------------------------------------------------------

#: Combiners of floats whose order is seen in the last bits.
_ROUNDING = {"arith.addf", "arith.mulf", "welford", "online_softmax", "prod"}


def reassociated(before: str, after: str) -> set[int]:
    """Return positions of the memrefs with a reduction that combines in another order after the passes."""
    with context(), ir.Location.unknown():
        orders = [_Orders(ir.Module.parse(text)) for text in (before, after)]
        count = len(orders[0].entry.arguments)
        return {i for i in range(count) if orders[0].of_buffer(i) != orders[1].of_buffer(i)}


class _Orders:
    """Collect, for each buffer, the reductions in it: (trip counts, steps of rounding combiners)."""

    def __init__(self, module: Any):
        self.module = module  # What is read off it does not keep it.
        self.entry = module.body.operations[0].operation.regions[0].blocks[0]
        self.arguments = list(self.entry.arguments)
        self.stores: dict[int, list[Any]] = {}
        self.known: dict[int, frozenset] = {}
        module.operation.walk(self._visit)

    def _visit(self, operation: Any) -> Any:
        operation = operation.operation
        if operation.name == "affine.store":
            self.stores.setdefault(self.arguments.index(operation.operands[1]), []).append(operation)
        return ir.WalkResult.ADVANCE

    def of_buffer(self, position: int) -> frozenset:
        if position not in self.known:
            self.known[position] = frozenset()  # an update reads what it writes
            found: set = set()
            for store in self.stores.get(position, ()):
                self._follow(store.operands[0], found, set())
            self.known[position] = frozenset(found)
        return self.known[position]

    def _follow(self, value: Any, found: set, seen: set) -> None:
        """Add the reductions that a value comes from, through memory too."""
        if isinstance(value.owner, ir.Block) or value in seen:
            return
        seen.add(value)
        operation = value.owner.operation if hasattr(value.owner, "operation") else value.owner
        if operation.name == "affine.load":
            found |= self.of_buffer(self.arguments.index(operation.operands[0]))
            return
        inside = [inner for region in operation.regions for block in region.blocks for inner in block.operations]
        if operation.name == "affine.for":
            found |= _order(operation)
        for operand in [*operation.operands, *(o for inner in inside for o in inner.operation.operands)]:
            self._follow(operand, found, seen)


def _order(loop: Any) -> set[tuple]:
    extents, steps = [], []

    def visit(operation):
        operation = operation.operation
        if operation.name == "affine.for":
            extents.append(str(operation.attributes["upperBoundMap"]))
        if operation.name == "bridge.combine":
            steps.append(CombineKind(ir.IntegerAttr(operation.attributes["kind"]).value).name)
        elif operation.name in _ROUNDING and _combines(operation):
            steps.append(operation.name)
        return ir.WalkResult.ADVANCE

    loop.walk(visit, ir.WalkOrder.PRE_ORDER)
    return {(tuple(extents), tuple(steps))} if _ROUNDING & set(steps) else set()


def _combines(operation: Any) -> bool:
    """Return True if one operand is a loop's state or another combination of the same."""
    return any(_is_state(value, operation.name) for value in operation.operands)


def _is_state(value: Any, combiner: str) -> bool:
    if isinstance(value.owner, ir.Block):
        return value.owner.owner.operation.name == "affine.for" and value.arg_number > 0
    operation = value.owner.operation if hasattr(value.owner, "operation") else value.owner
    return operation.name == combiner and _combines(operation)
