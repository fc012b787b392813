"""Evaluates SSA values of the fused affine IR through Inductor's `ops`, on demand from a store.

Whatever the passes hoisted, merged or split is followed through the IR itself: a value is its defining
operation applied to its operands' values.  Inside a guard everything is evaluated afresh, because a masked
block of Inductor's cannot see the values of the block around it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from bridge.affine import dtypes, ops_table
from bridge.affine.mlir_runtime import ir
from bridge.reasons import Reason, Unsupported

from .index import apply_map, constraints


@dataclass(frozen=True)
class Environment:
    """What IR values outside the loops mean.

    ops: Inductor's `ops` namespace; buffers: (name, strides in elements) of each memref argument;
    indices: sympy value of induction variables and size arguments; names of values are `ir.Value`s.
    knows_lanes: see `band.FunctionTables`; segment: lanes that one reduction is over, None for the whole row.
    in_registers: a reduction may use the result of another, since the row is read once;
    looped: a kernel may go over the row in a loop, in which the result of a reduction is not there yet.
    """

    ops: Any
    buffers: dict[Any, tuple[str, list[sympy.Expr]]]
    indices: dict[Any, sympy.Expr]
    knows_lanes: bool = True
    segment: int | None = None
    in_registers: bool = False
    looped: bool = False


class Evaluator:
    def __init__(self, environment: Environment):
        self.env = environment
        self.memo: dict[Any, Any] = {}

    def value(self, value) -> Any:
        """The `ops` value of an SSA value; Unsupported(not_liftable) for an operation without a meaning there."""
        if value not in self.memo:
            self.memo[value] = self._evaluate(value)
        return self.memo[value]

    def stored(self, store) -> Any:
        """What a store is given: its own rounding to 16 bits is left to it, as Inductor's bodies do.

        A rounding that is meant is done before, and the value extended again: what else reads the buffer in the same
        Triton kernel gets what the store was given.
        """
        operation = _owner(store.operands[0])
        rounded = dtypes.signed_dtype(str(store.operands[0].type))
        if operation.name != "arith.truncf" or rounded not in dtypes.LOW_PRECISION:
            return self.value(store.operands[0])
        if ops_table.ROUNDING_MODE not in operation.attributes:
            return self.value(operation.operands[0])
        value = self.value(store.operands[0])
        return self.env.ops.to_dtype(value, torch.float32, src_dtype=rounded) if self.env.knows_lanes else value

    def index(self, value) -> sympy.Expr:
        """The sympy value of an `index`-typed SSA value."""
        if value in self.env.indices:
            return self.env.indices[value]
        operation = _owner(value)
        if operation.name == "affine.apply":
            return apply_map(operation.attributes["map"].value, [self.index(o) for o in operation.operands])[0]
        if operation.name == "arith.constant":
            return sympy.Integer(ir.IntegerAttr(operation.attributes["value"]).value)
        raise Unsupported(Reason.not_liftable, f"index value of {operation.name}")

    def location(self, operation, first_operand: int) -> tuple[str, sympy.Expr]:
        """(buffer, linear element offset) of an affine load or store; memref at `first_operand`."""
        name, strides = self.env.buffers[operation.operands[first_operand]]
        operands = [self.index(o) for o in list(operation.operands)[first_operand + 1 :]]
        subscripts = apply_map(operation.attributes["map"].value, operands)
        return name, sympy.expand(sum((s * k for s, k in zip(subscripts, strides, strict=True)), sympy.Integer(0)))

    def _evaluate(self, value):
        operation = _owner(value)
        handler = _HANDLERS.get(operation.name)
        if handler is not None:
            return handler(self, operation, value)
        if operation.name in ops_table.LIFTED_OPS:
            return self._call(ops_table.LIFTED_OPS[operation.name], operation)
        raise Unsupported(Reason.not_liftable, operation.name)

    def _call(self, name: str, operation):
        return getattr(self.env.ops, name)(*[self.value(o) for o in operation.operands])

    def _load(self, operation, _):
        return self.env.ops.load(*self.location(operation, 0))

    def _constant(self, operation, value):
        dtype = dtypes.signed_dtype(str(value.type))
        return self.env.ops.constant(number(operation), dtype)

    def _index_cast(self, operation, value):
        dtype = dtypes.signed_dtype(str(value.type))
        return self.env.ops.index_expr(self.index(operation.operands[0]), dtype)

    def _cast(self, operation, value):
        """A conversion between floats, signed integers and (as a source) bool."""
        source = dtypes.signed_dtype(str(operation.operands[0].type))
        target = dtypes.signed_dtype(str(value.type))
        if self.env.knows_lanes and _extends_load(operation, source, target):
            return self.value(operation.operands[0])  # Triton's loads extend by themselves
        zero_extends = operation.name in ("arith.uitofp", "arith.extui")
        if zero_extends != (source == torch.bool) or target == torch.bool:
            raise Unsupported(Reason.not_liftable, f"{operation.name} from {source} to {target}")
        # A rounding to 16 bits that is in the IR is meant; only the store's own is left to the store.
        rounding = {"use_compute_types": False} if target in dtypes.LOW_PRECISION else {}
        return self.env.ops.to_dtype(self.value(operation.operands[0]), target, src_dtype=source, **rounding)

    def _bitcast(self, operation, value):
        source = dtypes.signed_dtype(str(operation.operands[0].type))
        target = dtypes.signed_dtype(str(value.type))
        return self.env.ops.to_dtype_bitcast(self.value(operation.operands[0]), target, source)

    def _convert(self, operation, _):
        source = dtypes.dtype_from_name(ir.StringAttr(operation.attributes["from"]).value)
        target = dtypes.dtype_from_name(ir.StringAttr(operation.attributes["to"]).value)
        return self.env.ops.to_dtype(self.value(operation.operands[0]), target, src_dtype=source)

    def _special(self, operation, _):
        from bridge._native._bridge_enum_gen import SpecialFn

        return self._call(SpecialFn(ir.IntegerAttr(operation.attributes["fn"]).value).name, operation)

    def _float_compare(self, operation, _):
        return self._compare(operation, ops_table.LIFTED_FLOAT_PREDICATES)

    def _int_compare(self, operation, _):
        return self._compare(operation, ops_table.LIFTED_INT_PREDICATES)

    def _compare(self, operation, predicates: dict[int, str]):
        predicate = ir.IntegerAttr(operation.attributes["predicate"]).value
        if predicate not in predicates:
            raise Unsupported(Reason.not_liftable, f"{operation.name} predicate {predicate}")
        return self._call(predicates[predicate], operation)

    def _loop(self, operation, value):
        from .reductions import lift_reduction

        return lift_reduction(self, operation, value)

    def _guard(self, operation, value):
        """`affine.if` with a result: the first region under a mask, a constant elsewhere."""
        position = list(operation.results).index(value)
        inside, outside = (list(region.blocks[0].operations)[-1].operands[position] for region in operation.regions)
        return self.env.ops.masked(self.condition(operation), self._fresh(inside), _other(outside))

    def _fresh(self, value) -> Callable[[], Any]:
        """What a masked block computes.

        Inductor leaves the mask to a block's load.  But a load of what the kernel has stored is none: it is the stored
        value, and needs the mask like any other.
        """
        if _loads_stored(value):
            return lambda: self.env.ops.identity(Evaluator(self.env).value(value))
        return lambda: Evaluator(self.env).value(value)

    def condition(self, operation):
        """The mask of an `affine.if`: the conjunction of its constraints on index expressions."""
        operands = [self.index(o) for o in operation.operands]
        flags = [self._constraint(*c) for c in constraints(operation.attributes["condition"], operands)]
        return functools.reduce(self.env.ops.and_, flags)

    def is_zero(self, expr: sympy.Expr):
        return self._constraint(expr, True)

    def guarded(self, store, value, masks: list):
        """The value as a store takes it that only the lanes under all masks execute."""
        dtype = dtypes.signed_dtype(str(store.operands[0].type))
        compute = torch.float32 if dtype in dtypes.LOW_PRECISION else dtype
        mask = functools.reduce(self.env.ops.and_, masks)
        return self.env.ops.reduction(compute, compute, ops_table.GUARDED, (value, mask))

    def reduce(self, dtype: torch.dtype, kind: str, value):
        """`ops.reduction` over the row, or over each lane's segment of it."""
        segment = self.env.segment
        if segment is None:
            return self.env.ops.reduction(dtype, dtype, kind, value)
        if kind not in ops_table.SEGMENTED_KINDS or segment & (segment - 1):
            raise Unsupported(Reason.not_liftable, f"{kind} over segments of {segment} lanes")
        return self.env.ops.reduction(dtype, dtype, f"{ops_table.SEGMENTED}:{kind}:{segment}", value)

    def _constraint(self, expr: sympy.Expr, is_equality: bool):
        """`expr == 0`, or `expr >= 0` as `variables >= bound` or `variables < bound`: Triton sees of those, for a
        bound that a power of two divides, that neighbouring lanes agree, and keeps its vector accesses."""
        ops = self.env.ops
        constant, variables = sympy.expand(expr).as_coeff_Add()
        if is_equality or not constant.is_Integer:
            return (ops.eq if is_equality else ops.ge)(self._integer(expr), ops.constant(0, torch.int64))
        if variables.could_extract_minus_sign():
            return ops.lt(self._integer(-variables), ops.constant(int(constant) + 1, torch.int64))
        return ops.ge(self._integer(variables), ops.constant(-int(constant), torch.int64))

    def _integer(self, expr: sympy.Expr):
        return self.env.ops.index_expr(expr, torch.int64)


_HANDLERS = {
    "affine.load": Evaluator._load,
    "affine.for": Evaluator._loop,
    "affine.if": Evaluator._guard,
    "arith.constant": Evaluator._constant,
    "arith.index_cast": Evaluator._index_cast,
    "arith.extf": Evaluator._cast,
    "arith.truncf": Evaluator._cast,
    "arith.bitcast": Evaluator._bitcast,
    "arith.sitofp": Evaluator._cast,
    "arith.uitofp": Evaluator._cast,
    "arith.fptosi": Evaluator._cast,
    "arith.extsi": Evaluator._cast,
    "arith.extui": Evaluator._cast,
    "arith.trunci": Evaluator._cast,
    "arith.cmpf": Evaluator._float_compare,
    "arith.cmpi": Evaluator._int_compare,
    "bridge.special": Evaluator._special,
    "bridge.convert": Evaluator._convert,
}


def number(constant) -> bool | int | float:
    """The value of an `arith.constant`; a float32 in its shortest spelling, as Inductor was given it."""
    attribute, name = constant.attributes["value"], str(constant.results[0].type)
    if name == "i1":
        return bool(ir.IntegerAttr(attribute).value)
    if not dtypes.signed_dtype(name).is_floating_point:
        return ir.IntegerAttr(attribute).value
    exact = ir.FloatAttr(attribute).value
    shortest = float(f"{exact:.7g}")
    return shortest if name == "f32" and _to_float32(shortest) == exact else exact


def _extends_load(operation, source: torch.dtype, target: torch.dtype) -> bool:
    owner = operation.operands[0].owner
    is_load = not isinstance(owner, ir.Block) and owner.name == "affine.load"
    return is_load and source in dtypes.LOW_PRECISION and target == torch.float32


def _to_float32(value: float) -> float:
    return ctypes.c_float(value).value


def _other(value) -> bool | int | float:
    """What stands for a masked block where the mask is off: a constant, converted if it is unsigned."""
    operation = _owner(value)
    if operation.name == "arith.constant":
        return number(operation)
    source = _owner(operation.operands[0]) if operation.name == "bridge.convert" else operation
    target = dtypes.dtype_from_name(ir.StringAttr(operation.attributes["to"]).value) if source != operation else None
    if source.name != "arith.constant" or target is None or target not in dtypes.UNSIGNED:
        raise Unsupported(Reason.not_liftable, "a guard whose other value is no constant")
    return number(source) % (1 << 8 * target.itemsize)


def _owner(value):
    owner = value.owner
    if isinstance(owner, ir.Block):
        raise Unsupported(Reason.not_liftable, "a value carried by a loop is used outside its combiner")
    return owner.operation if hasattr(owner, "operation") else owner


def _loads_stored(value) -> bool:
    """Whether a value is loaded from a memref that the function also stores to; a load of Inductor's extends it."""
    operation = _owner(value)
    while operation.name == "arith.extf":
        operation = _owner(operation.operands[0])
    if operation.name != "affine.load":
        return False
    return any(use.owner.operation.name == "affine.store" for use in operation.operands[0].uses)
