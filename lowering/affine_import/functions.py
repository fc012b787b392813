"""Affine functions in a graph of Inductor's: an operator, its lowering, and the loops put in after scheduling.

Each nest of a function becomes a buffer for each memref that it defines, with a placeholder for its loops: what it
reads, and how much it writes.  When Inductor has scheduled these (and fused none), every one gets its own loops, and
the nodes of a nest become one kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import sympy
import torch

from ... import inductor
from ...reasons import InvariantError, Unsupported
from ...support.recorder import recorder
from ..lift.commit import rewrite
from ..triton import codegen
from ..triton.profitability import fits_in_registers
from .standalone import AffineFunction, Argument

if TYPE_CHECKING:
    from torch._inductor.ir import TensorBox

    from ...inductor.hooks import InstalledPass
    from ...inductor.protocols import Kernel, LoopNode, Schedule
    from ..lift.band import LiftedBand, LiftedNode

#: A function in the graph that is compiled, the buffers of its arguments, and the device.
Pending: TypeAlias = tuple[AffineFunction, list[str], torch.device]

#: Functions by their key, which is an argument of the operator. They live as long as the process: compiled code does.
_functions: dict[str, AffineFunction] = {}

#: Inductor must leave the placeholders apart, and its cache does not know the functions.
PATCHES = {"max_fusion_size": 1, "fx_graph_cache": False}


def register(function: AffineFunction) -> str:
    """Make a function known to the operator and return its key."""
    _operator()
    _functions[function.key] = function
    return function.key


@functools.cache
def _operator() -> Callable[..., Any]:
    """Define `torch.ops.bridge.affine`: contiguous tensors for a function's inputs, in order; gives its outputs."""

    @torch.library.custom_op("bridge::affine", mutates_args=())
    def affine(inputs: list[torch.Tensor], key: str) -> list[torch.Tensor]:
        """Fail: the operator has no eager kernel."""
        raise NotImplementedError("bridge::affine runs compiled only")

    @affine.register_fake
    def shapes(inputs: list[torch.Tensor], key: str) -> list[torch.Tensor]:
        """Return outputs without data."""
        function = _functions[key]
        device = inputs[0].device if inputs else torch.device("cpu")
        outputs = [function.arguments[i] for i in function.outputs]
        return [torch.empty(output.shape, dtype=output.dtype, device=device) for output in outputs]

    from torch._inductor.lowering import register_lowering  # heavy

    register_lowering(torch.ops.bridge.affine.default, type_promotion_kind=None)(_lower)
    return affine


def _lower(inputs: list[TensorBox], key: str) -> list[TensorBox]:
    """Return buffers with placeholders for the function's loops."""
    from torch._inductor import ir  # heavy
    from torch._inductor.virtualized import V  # heavy

    function = _functions[key]
    boxes = dict(zip(function.inputs, map(ir.ExternKernel.require_contiguous, inputs), strict=True))
    for box in boxes.values():
        box.realize()
    device = inputs[0].get_device() if inputs else torch.device("cpu")
    # Lifted under the names of the arguments, for what the nodes reduce alone.
    names = [argument.name for argument in function.arguments]
    nodes = {node.name: node for band in _lift(function, names, device) for node in band.nodes}
    for stores, loads in zip(function.nests, function.reads, strict=True):
        for i in stores:
            reads = [boxes[k].get_name() for k in loads if k in boxes]
            boxes[i] = _placeholder(function.arguments[i], reads, nodes[function.arguments[i].name], device)
    pending = V.graph.__dict__.setdefault("bridge_affine", [])
    pending.append((function, [boxes[i].get_name() for i in range(len(names))], device))
    return [boxes[i] for i in function.outputs]


def _lift(function: AffineFunction, names: list[str], device: torch.device) -> list[LiftedBand]:
    """Lift the nests of a function for a device."""
    return function.lift(names, inductor.generates_triton(device), fits_in_registers)


def _placeholder(argument: Argument, reads: list[str], node: LiftedNode, device: torch.device) -> TensorBox:
    """Return a buffer whose loops read the first element of each of `reads`, and reduce if the node's own do."""
    from torch._inductor import ir  # heavy
    from torch._inductor.virtualized import V, ops  # heavy

    def inner(index: object, reduction_index: object = None) -> Any:
        """Add up one element of each buffer that is read."""
        value = ops.constant(0, argument.dtype)
        for name in reads:
            value = ops.add(value, ops.to_dtype(ops.load(name, sympy.Integer(0)), argument.dtype))
        return value

    shape = [sympy.Integer(size) for size in argument.shape]
    common = {"device": device, "dtype": argument.dtype, "inner_fn": inner, "ranges": shape}
    if node.reduce_sizes:
        hint = ir.ReductionHint.DEFAULT
        reduced = {"reduction_ranges": [sympy.Integer(2)], "reduction_type": "any", "src_dtype": argument.dtype}
        data = ir.Reduction(**common, **reduced, reduction_hint=hint)
    else:
        data = ir.Pointwise(**common)
    layout = ir.FixedLayout(device, argument.dtype, shape, ir.FlexibleLayout.contiguous_strides(shape))
    buffer = ir.ComputedBuffer(name=None, layout=layout, data=data)
    buffer.name = V.graph.register_buffer(buffer)
    V.graph.register_operation(buffer)
    return ir.TensorBox(ir.StorageBox(buffer))


# ---------------------------------------------------------------------------------------------------------
# After scheduling
# ---------------------------------------------------------------------------------------------------------


class _Fill:
    """Give the placeholders of the graph that is compiled their loops, as a scheduler pass."""

    def active(self) -> bool:
        """Return True if the graph has placeholders."""
        return bool(_pending())

    def key(self) -> None:
        """Return None: a graph with placeholders is not cached."""
        return

    def __call__(self, schedule: Schedule) -> Schedule:
        """Return the schedule with the functions' loops."""
        for function, names, device in _pending():
            schedule = _fill(schedule, function, names, device)
        return schedule


def _pending() -> list[Pending]:
    """Return the functions in the graph that is compiled."""
    from torch._inductor.virtualized import V  # heavy

    return getattr(V.graph, "bridge_affine", [])


def _fill(schedule: Schedule, function: AffineFunction, names: list[str], device: torch.device) -> Schedule:
    """Return the schedule with the loops of one function in the place of its placeholders."""
    position_of = {
        buffer: position for position, kernel in enumerate(schedule) for buffer in inductor.buffers_made(kernel)
    }
    buffer_of = dict(zip((argument.name for argument in function.arguments), names, strict=True))
    fused: dict[int, Kernel] = {}
    removed: set[int] = set()
    for band in _lift(function, names, device):
        positions = [position_of[buffer_of[node.name]] for node in band.nodes]
        nodes = {node.name: _single(schedule[p]) for node, p in zip(band.nodes, positions, strict=True)}
        with function.module.context:  # for MLIR to parse the sets of guards
            kernel, _, _ = rewrite(_renamed(band, nodes), {node.get_name(): node for node in nodes.values()}, [])
        fused[min(positions)] = kernel
        removed.update(positions)
    changed = codegen.replace_kernels(schedule[0].scheduler, schedule, fused, removed)
    recorder().watch(changed)
    return changed


def _renamed(band: LiftedBand, nodes: dict[str, LoopNode]) -> LiftedBand:
    """Return the band with the names of the scheduler's nodes."""
    return replace(band, nodes=[replace(node, name=nodes[node.name].get_name()) for node in band.nodes])


def _single(kernel: Kernel) -> LoopNode:
    """Return the one loop node of a kernel; InvariantError if Inductor fused it."""
    nodes = inductor.loop_nodes(kernel)
    if len(nodes) != 1:
        raise InvariantError(f"Inductor fused {kernel.get_name()}, a placeholder")
    return nodes[0]


@functools.cache
def _hook() -> InstalledPass:
    """Return the scheduler pass, always the same."""
    return inductor.scheduler_pass(_Fill())


@contextmanager
def raising_refusals() -> Iterator[None]:
    """Raise a refusal that Inductor has wrapped as it was."""
    from torch._inductor.exc import InductorError  # heavy

    try:
        yield
    except InductorError as error:
        refusal = _refusal(error.inner_exception)
        if refusal is not None:
            raise refusal from None
        raise


def _refusal(error: BaseException | None) -> Unsupported | None:
    """Return the refusal that an error is, or that it was made of: a lowering's error keeps it as its context only."""
    while error is not None and not isinstance(error, Unsupported):
        error = error.__context__
    return error


@contextmanager
def filled() -> Iterator[None]:
    """Let compilations inside the block know the operator's loops."""
    with inductor.hooked(_hook()):
        yield
