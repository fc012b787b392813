"""Reads, checks and lifts affine functions that no scheduler made, nest by nest.

A function's arguments are memrefs of tensors and nothing else.  What it stores to it defines: an argument that is read
before that, and one that two nests store to, is refused.  So is an access that may leave its memref.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import sympy
import torch

from bridge.affine import dtypes
from bridge.affine.mlir_runtime import context, ir
from bridge.affine.pass_manager import Remark
from bridge.affine.pipeline import run_pipeline
from bridge.reasons import Reason, Unsupported
from bridge.support.recorder import NO_STAGES

from ..lift.band import FunctionTables, LiftedBand
from ..lift.functions import lift_function

#: What the lift expects of every loop: it starts at 0 and goes in steps of 1.
NORMALISE = "func.func(affine-loop-normalize,canonicalize,cse)"

#: Generated code checks no subscript, and runs the iterations of a band in any order.
_PROVE = "builtin.module(func.func(bridge-prove-subscripts,bridge-prove-parallel))"

#: Folds constants and leaves the loops as they are.
_CANONICALISE = "builtin.module(func.func(canonicalize))"


@dataclass(frozen=True)
class Argument:
    """Describe a memref: its name, shape and dtype, whether the function defines it, and whether the caller gets it."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    defined: bool
    returned: bool


@dataclass
class AffineFunction:
    """Hold a function of a module, with its bands proven parallel.

    nests: for each loop nest in order the numbers of the arguments that it stores to; reads: likewise that it loads.
    """

    module: ir.Module
    operation: ir.Operation
    arguments: list[Argument]
    nests: list[list[int]] = field(default_factory=list)
    reads: list[list[int]] = field(default_factory=list)

    @property
    def inputs(self) -> list[int]:
        """Return the numbers of the arguments that the caller gives."""
        return [i for i, argument in enumerate(self.arguments) if not argument.defined]

    @property
    def outputs(self) -> list[int]:
        """Return the numbers of the arguments that the caller gets."""
        return [i for i, argument in enumerate(self.arguments) if argument.returned]

    @property
    def key(self) -> str:
        """Return the hash of the module."""
        return hashlib.sha256(str(self.module).encode()).hexdigest()

    def lift(self, names: list[str], simt_target: bool, keeps_row: Callable[[int | None], bool]) -> list[LiftedBand]:
        """Lift one band for each nest, whose nodes are named by the buffer that each defines.

        names: the buffer of each argument; the rest as in `FunctionTables`.
        """
        buffers = [(name, _strides(argument.shape)) for name, argument in zip(names, self.arguments, strict=True)]
        tables = FunctionTables(buffers, [], simt_target, keeps_row)
        labels = {self.arguments[i].name: {names[i]} for i, _ in enumerate(names)}
        with self.module.context:
            return lift_function(self.operation, tables, labels)


def read_function(
    text: str, name: str | None = None, pipeline: str | None = None, outputs: list[str] | None = None
) -> AffineFunction:
    """Parse a module and prepare one of its functions.

    name: which, None for the only one; pipeline: passes to run first, on a module that has only that function;
    outputs: names of the arguments to return, default those labelled `bridge.output`, or else all that are defined.

    ValueError for text that MLIR does not take; Unsupported for a function that cannot be lifted.
    """
    with context(), ir.Location.unknown():
        module = _only(_parse(text), name)
        given = _prove_given(module)
        for passes in (pipeline, f"builtin.module({NORMALISE})"):
            if passes is not None:
                run_pipeline(module, passes, NO_STAGES)
        operation = module.body.operations[0].operation
        function = AffineFunction(module, operation, _arguments(operation, outputs))
        _describe_nests(function)
        refused = run_pipeline(module, _PROVE, NO_STAGES)
        _raise_first(_as_given(refused, given))
    return function


def _prove_given(module: ir.Module) -> list[Remark]:
    """Return what the proofs refuse in a module before any pass has run on it."""
    copy = ir.Module.create()
    copy.body.append(module.body.operations[0].operation.clone())
    run_pipeline(copy, _CANONICALISE, NO_STAGES)
    for root in copy.body.operations[0].operation.regions[0].blocks[0].operations:
        if root.operation.name == "affine.for":
            _mark_band(root.operation)
    return run_pipeline(copy, _PROVE, NO_STAGES)


def _as_given(refused: list[Remark], given: list[Remark]) -> list[Remark]:
    """Return the refusals of the module as it was given, whose iterations its author knows, or else of what is made.

    An access that leaves its memref is refused although the passes may have removed it.  What else is refused there
    only, they may have mended.
    """
    reasons = {remark.reason for remark in refused} | {Reason.subscript_out_of_bounds.name}
    return [remark for remark in given if remark.reason in reasons] or refused


def _parse(text: str) -> ir.Module:
    """Parse a module; ValueError for text that MLIR does not take."""
    try:
        return ir.Module.parse(text)
    except ir.MLIRError as error:
        raise ValueError(f"MLIR does not take the module: {error}") from error


def _only(module: ir.Module, name: str | None) -> ir.Module:
    """Return a module with one function of another."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    functions = [function for function in functions if len(function.regions[0].blocks)]  # others are declarations
    names = [ir.StringAttr(f.attributes["sym_name"]).value for f in functions]
    if name is None and len(names) != 1:
        listed = f"several functions, name one: {', '.join(names)}" if names else "no function"
        raise ValueError(f"the module has {listed}")
    if name is not None and name not in names:
        raise ValueError(f"the module has no function {name!r}, but {', '.join(names)}")
    chosen = functions[0 if name is None else names.index(name)]
    single = ir.Module.create()
    single.body.append(chosen.clone())
    return single


def _arguments(function: ir.Operation, outputs: list[str] | None) -> list[Argument]:
    """Describe the arguments; ValueError for outputs that the function does not define."""
    block = function.regions[0].blocks[0]
    labels = _labels(function, len(block.arguments))
    stored = {store.operands[1] for store in _operations(function, "affine.store")}
    names = [_text(own, "bridge.buffer", f"arg{i}") for i, own in enumerate(labels)]
    for unknown in set(outputs or ()) - set(names):
        raise ValueError(f"the function has no argument {unknown!r}, but {', '.join(names)}")
    marked = [i for i, own in enumerate(labels) if "bridge.output" in own]
    arguments = []
    for i, (argument, name) in enumerate(zip(block.arguments, names, strict=True)):
        returned = name in outputs if outputs is not None else i in marked if marked else argument in stored
        if returned and argument not in stored:
            raise ValueError(f"the function does not store to {name!r}, which is to be returned")
        shape, dtype = _memref(argument, name, labels[i])
        arguments.append(Argument(name, shape, dtype, argument in stored, returned))
    return arguments


def _labels(function: ir.Operation, count: int) -> list[Mapping[str, ir.Attribute]]:
    """Return the attributes of each argument."""
    if "arg_attrs" not in function.attributes:
        return [{}] * count
    return [ir.DictAttr(labels) for labels in ir.ArrayAttr(function.attributes["arg_attrs"])]


def _text(labels: Mapping[str, ir.Attribute], key: str, otherwise: str) -> str:
    """Return a string attribute."""
    return ir.StringAttr(labels[key]).value if key in labels else otherwise


def _memref(argument: ir.Value, name: str, labels: Mapping[str, ir.Attribute]) -> tuple[tuple[int, ...], torch.dtype]:
    """Return (shape, dtype); `bridge.dtype` tells unsigned integers from signed ones, as MLIR's types do not."""
    if not isinstance(argument.type, ir.MemRefType):
        raise Unsupported(Reason.dynamic_extent, f"argument {name} is {argument.type}: sizes have to be constants")
    kind = ir.MemRefType(argument.type)
    if any(size < 0 for size in kind.shape):
        raise Unsupported(Reason.dynamic_extent, f"argument {name} is {kind}: sizes have to be constants")
    spelled = _text(labels, "bridge.dtype", "")
    dtype = dtypes.dtype_from_name(spelled) if spelled else dtypes.signed_dtype(str(kind.element_type))
    return tuple(kind.shape), dtype


def _operations(root: ir.Operation, name: str) -> list[ir.Operation]:
    """Return the operations of that name inside another, in order."""
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        """Keep an operation of that name."""
        if operation.name == name:
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _describe_nests(function: AffineFunction) -> None:
    """Name the nodes of every nest, one for each memref that it stores to, and mark its band."""
    block = function.operation.regions[0].blocks[0]
    numbers = {argument: i for i, argument in enumerate(block.arguments)}
    defined: set[int] = set(function.inputs)
    for root in [op.operation for op in block.operations]:
        if root.name != "affine.for":
            _check_free(root)
            continue
        stores = _numbers(_operations(root, "affine.store"), 1, numbers)
        loads = _numbers(_operations(root, "affine.load"), 0, numbers)
        _check_flow(function, set(stores), set(loads), defined)
        defined |= set(stores)
        _label(root, [function.arguments[i].name for i in stores], len(function.nests))
        function.nests.append(stores)
        function.reads.append(loads)


def _check_free(operation: ir.Operation) -> None:
    """Raise Unsupported for what is no computation from constants, outside of the nests."""
    if operation.regions or operation.name.startswith(("affine.load", "affine.store", "memref.")):
        raise Unsupported(Reason.unsupported_op, f"{operation.name} outside of the loop nests")


def _numbers(accesses: list[ir.Operation], operand: int, numbers: dict[ir.Value, int]) -> list[int]:
    """Return the arguments that accesses go to, each once, in order."""
    for access in accesses:
        if access.operands[operand] not in numbers:
            raise Unsupported(Reason.aliasing, f"{access.name} of a memref that is no argument")
    return list(dict.fromkeys(numbers[access.operands[operand]] for access in accesses))


def _check_flow(function: AffineFunction, stores: set[int], loads: set[int], defined: set[int]) -> None:
    """Raise Unsupported(mutation) for an argument that is stored to twice, or read before it is defined."""
    for i in stores & defined:
        raise Unsupported(Reason.mutation, f"argument {function.arguments[i].name} is stored to by two nests")
    for i in loads - stores - defined:
        raise Unsupported(Reason.mutation, f"argument {function.arguments[i].name} is read before it is defined")


def _label(root: ir.Operation, nodes: list[str], number: int) -> None:
    """Give a nest the attributes of a band: its nodes, its kernel, its loops."""
    root.attributes["bridge.nodes"] = ir.ArrayAttr.get([ir.StringAttr.get(node) for node in nodes])
    i64 = ir.IntegerType.get_signless(64)
    root.attributes["bridge.kernels"] = ir.ArrayAttr.get([ir.IntegerAttr.get(i64, number)])
    _mark_band(root)


def _mark_band(root: ir.Operation) -> None:
    """Mark the loops of a nest whose iterations are a kernel's grid, where no pass has done so."""
    if "bridge.band" in root.attributes:
        return
    for loop in _perfect_chain(root):
        loop.attributes["bridge.band"] = ir.UnitAttr.get()


def _perfect_chain(root: ir.Operation) -> list[ir.Operation]:
    """Return the outer loops that carry no value and hold nothing but the next one."""
    chain = [root]
    while True:
        body = [op.operation for op in chain[-1].regions[0].blocks[0].operations]
        if len(body) != 2 or body[0].name != "affine.for" or len(body[0].results):
            return chain
        chain.append(body[0])


def _raise_first(remarks: list[Remark]) -> None:
    """Raise Unsupported for the first remark."""
    for remark in remarks:
        example = "".join(f"; {text}" for text, _ in remark.notes)
        raise Unsupported(Reason[remark.reason], f"{remark.text}{example} at {remark.location}")


def _strides(shape: tuple[int, ...]) -> list[sympy.Expr]:
    """Return the strides of contiguous memory."""
    strides = [sympy.Integer(1)]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return strides[: len(shape)]
