"""Evaluates SSA values of the fused affine IR through Inductor's `ops`, on demand from a store.

Whatever the passes hoisted, merged or split is followed through the IR itself: a value is its defining
operation applied to its operands' values.

What is under a guard all lanes of a GPU compute: only loads that would be outside of their buffer are masked, and what
the guard is for is chosen in the end.  So guards share what they have in common.  C++ skips what is under a guard:
there it is a masked block of Inductor's, which cannot see the values of the block around it, and everything in it is
evaluated afresh.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import NamedTuple

import sympy
import torch

from bridge import inductor
from bridge.affine import dtypes, ops_table
from bridge.affine.equalities import stores_where_read
from bridge.affine.mlir_runtime import defining_operation, ir
from bridge.affine.translate.cyclic_shifts import linear_offset
from bridge.reasons import Reason, Unsupported

from .environment import Environment, OpsValue
from .guards import computes_anywhere, is_always_inside, is_narrow, is_under
from .index import apply_map, constraints
from .reduction_loops import value_before_rounding
from .reductions import lift_reduction
from .signs import unsigned_beside
from .states import lift_combination

#: Types of quotients that are narrower than 32 bits, by operation and type in MLIR.
_QUOTIENTS = {
    ("arith.floordivsi", "i8"): torch.int8,
    ("arith.floordivsi", "i16"): torch.int16,
    ("arith.divui", "i8"): torch.uint8,
}


class _Guard(NamedTuple):
    """Hold an `affine.if`, its mask together with those of the guards around it, and the evaluator of what is around.

    Only loads are masked: all lanes compute what is made of them.
    """

    operation: ir.Operation
    mask: OpsValue
    around: Evaluator


class Evaluator:
    """Evaluate SSA values in one scope: a loop body, a masked block in it, or what is under a guard."""

    def __init__(self, environment: Environment, guard: _Guard | None = None):
        """Start without values."""
        self.env = environment
        self.guard = guard
        self.memo: dict[Hashable, OpsValue] = {}

    def value(self, value: ir.Value) -> OpsValue:
        """Return the `ops` value of an SSA value; Unsupported(not_liftable) for an operation that `ops` lacks."""
        if self.guard is not None and not is_under(value, self.guard.operation):
            return self.guard.around.value(value)
        if value not in self.memo:
            self.memo[value] = self._evaluate(value)
        return self.memo[value]

    def stored(self, store: ir.Operation) -> OpsValue:
        """Return what a store is given: its own rounding to 16 bits is left to it, as Inductor's bodies do.

        A rounding that is meant is done before, and the value extended again: what else reads the buffer in the same
        Triton kernel gets what the store was given.
        """
        given = value_before_rounding(store)
        if given != store.operands[0]:
            return self.value(given)
        rounded = dtypes.signed_dtype(str(given.type))
        if self.env.simt_target and rounded in dtypes.LOW_PRECISION and _owner(given).name in _FROM_INTEGERS:
            return self._stored_integer(given, rounded)
        value = self.value(given)
        is_meant = ops_table.ROUNDING_MODE in _owner(given).attributes
        if not is_meant or rounded not in dtypes.LOW_PRECISION:
            return value
        return self.env.ops.to_dtype(value, torch.float32, src_dtype=rounded) if self.env.simt_target else value

    def _stored_integer(self, given: ir.Value, rounded: torch.dtype) -> OpsValue:
        """Return an integer as the float32 that the store of a 16-bit float is given, where its rounding is not meant.

        The passes make one conversion of the one to float32 and the store's own.
        """
        if inductor.emulates_eager_rounding():
            return self.env.ops.to_dtype(self.value(given), torch.float32, src_dtype=rounded)
        (integer,) = _owner(given).operands
        return self.env.ops.to_dtype(self.value(integer), rounded, src_dtype=dtypes.signed_dtype(str(integer.type)))

    def index(self, value: ir.Value) -> sympy.Expr:
        """Return the sympy value of an `index`-typed SSA value."""
        if value in self.env.indices:
            return self.env.indices[value]
        operation = _owner(value)
        if operation.name == "affine.apply":
            return apply_map(operation.attributes["map"].value, [self.index(o) for o in operation.operands])[0]
        if operation.name == "arith.constant":
            return sympy.Integer(ir.IntegerAttr(operation.attributes["value"]).value)
        if operation.name in _INDEX_ARITHMETIC:
            return sympy.expand(_INDEX_ARITHMETIC[operation.name](*map(self.index, operation.operands)))
        raise Unsupported(Reason.not_liftable, f"index value of {operation.name}")

    def location(self, operation: ir.Operation, first_operand: int) -> tuple[str, sympy.Expr]:
        """Return (buffer, linear element offset) of an affine load or store; memref at `first_operand`."""
        name, strides = self.env.buffers[operation.operands[first_operand]]
        operands = [self.index(o) for o in list(operation.operands)[first_operand + 1 :]]
        subscripts = apply_map(operation.attributes["map"].value, operands)
        return name, linear_offset(subscripts, strides, self.env.shifts.get(name, ()))

    def _evaluate(self, value: ir.Value) -> OpsValue:
        """Apply the defining operation of a value."""
        operation = _owner(value)
        handler = _HANDLERS.get(operation.name)
        if handler is not None:
            return handler(self, operation, value)
        if operation.name in ops_table.LIFTED_OPS:
            return self._narrowed(self._call(ops_table.LIFTED_OPS[operation.name], operation), operation, value)
        raise Unsupported(Reason.not_liftable, operation.name)

    def _narrowed(self, result: OpsValue, operation: ir.Operation, value: ir.Value) -> OpsValue:
        """Return a quotient with the bits of its type: Triton has 32, as zero is beside it, in all that follows, too.

        A buffer would have cut them off.
        """
        narrow = _QUOTIENTS.get((operation.name, str(value.type))) if self.env.simt_target else None
        return result if narrow is None else self.env.ops.to_dtype(result, narrow)

    def _call(self, name: str, operation: ir.Operation) -> OpsValue:
        """Call one of `ops` on the operands of an operation."""
        return getattr(self.env.ops, name)(*[self._operand(o, operation) for o in operation.operands])

    def _operand(self, value: ir.Value, operation: ir.Operation) -> OpsValue:
        """Return the value of an operand; a constant beside unsigned integers is one of them."""
        unsigned = unsigned_beside(value, operation, self._element_dtype)
        if unsigned is None:
            return self.value(value)
        return self.env.ops.constant(int(number(_owner(value))) % (1 << 8 * unsigned.itemsize), unsigned)

    def _element_dtype(self, memref: ir.Value) -> torch.dtype:
        """Return the dtype of the elements of a buffer."""
        return inductor.buffer_dtype(self.env.buffers[memref][0])

    def _load(self, operation: ir.Operation, value: ir.Value) -> OpsValue:
        """Load an element; Unsupported(not_liftable) for one of a buffer that an earlier node has overwritten.

        Inductor gives every load of it the value that was stored last, whichever element that is.
        """
        name, index = self.location(operation, 0)
        if name in self.env.overwritten:
            raise Unsupported(Reason.not_liftable, f"{name} is read after it was overwritten")
        if name in self.env.seeds and index.is_Integer:
            return self.env.ops.load_seed(name, int(index))  # its place is an argument, so that kernels are alike
        loaded = self._loaded(operation, name, index)
        return self._broadcast(loaded, value, index) if value in self.env.broadcasts else loaded

    def _loaded(self, operation: ir.Operation, name: str, index: sympy.Expr) -> OpsValue:
        """Load an element, under the mask of a guard if it may be outside of its buffer elsewhere."""
        if self.guard is None or is_always_inside(operation):
            return self.env.ops.load(name, index)
        zero = False if str(operation.results[0].type) == "i1" else 0
        return self.env.ops.masked(self.guard.mask, lambda: self.env.ops.load(name, index), zero)

    def _broadcast(self, loaded: OpsValue, value: ir.Value, index: sympy.Expr) -> OpsValue:
        """Return what the lanes have that store at `index`; `loaded` is in each lane what the lane stores."""
        if self.env.row is None:
            raise Unsupported(Reason.not_liftable, "what another lane has is read under a guard")
        broadcast = self.env.broadcasts[value]

        def distance(iteration: Mapping[ir.Value, sympy.Expr]) -> sympy.Expr:
            """Return how far an iteration of the store's loops stores behind `index`."""
            indices = {**self.env.indices, **iteration}
            return Evaluator(replace(self.env, indices=indices)).location(broadcast.store, 1)[1] - index

        segment, lanes = broadcast.segment(distance, self.env.row)
        dtype = dtypes.compute_dtype(self._element_dtype(broadcast.store.operands[1]))
        dtypes.least(dtype)  # which the kernel needs
        return self.env.ops.reduction(dtype, dtype, f"{ops_table.BROADCAST}:{segment}:{lanes}", loaded)

    def _gather(self, operation: ir.Operation, _: ir.Value) -> OpsValue:
        """Load an element at a place that depends on data."""
        buffer, _ = self.env.buffers[operation.operands[0]]
        checks, wraps = (list(ir.DenseBoolArrayAttr(operation.attributes[key])) for key in ("checks", "wraps"))
        base, *rest = list(operation.operands)[1:]
        values, sizes, strides = (rest[n * len(checks) : (n + 1) * len(checks)] for n in range(3))
        place = self.index(base)
        for value, size, stride, check, wraps_around in zip(values, sizes, strides, checks, wraps, strict=True):
            position = self.env.ops.indirect_indexing(self.value(value), self.index(size), check, wraps_around)
            place += self.index(stride) * position
        return self.env.ops.load(buffer, sympy.expand(place))

    def _constant(self, operation: ir.Operation, value: ir.Value) -> OpsValue:
        """Return a constant."""
        dtype = dtypes.signed_dtype(str(value.type))
        return self.env.ops.constant(number(operation), dtype)

    def _index_cast(self, operation: ir.Operation, value: ir.Value) -> OpsValue:
        """Return an index as a number."""
        dtype = dtypes.signed_dtype(str(value.type))
        return self.env.ops.index_expr(self.index(operation.operands[0]), dtype)

    def _cast(self, operation: ir.Operation, value: ir.Value) -> OpsValue:
        """Convert between floats, signed integers and (as a source) bool."""
        source = dtypes.signed_dtype(str(operation.operands[0].type))
        target = dtypes.signed_dtype(str(value.type))
        if self.env.simt_target and _extends_load(operation, source, target):
            return self._extended(operation.operands[0], source)
        zero_extends = operation.name in ("arith.uitofp", "arith.extui")
        if zero_extends != (source == torch.bool) or target == torch.bool:
            raise Unsupported(Reason.not_liftable, f"{operation.name} from {source} to {target}")
        # A rounding to 16 bits that is in the IR is meant; only the store's own is left to the store.
        rounding = {"use_compute_types": False} if target in dtypes.LOW_PRECISION else {}
        return self.env.ops.to_dtype(self.value(operation.operands[0]), target, src_dtype=source, **rounding)

    def _extended(self, loaded: ir.Value, source: torch.dtype) -> OpsValue:
        """Return 16 bits that were loaded as float32: Triton's loads extend by themselves.

        What the kernel itself has stored, Inductor gives as it was before; what is compared is rounded.
        """
        value = self.value(loaded)
        if loaded not in self.env.compared:
            return value
        rounded = self.env.ops.to_dtype(value, source, use_compute_types=False)
        return self.env.ops.to_dtype(rounded, torch.float32, src_dtype=source)

    def _bitcast(self, operation: ir.Operation, value: ir.Value) -> OpsValue:
        """Reinterpret the bits of a value."""
        source = dtypes.signed_dtype(str(operation.operands[0].type))
        target = dtypes.signed_dtype(str(value.type))
        return self.env.ops.to_dtype_bitcast(self.value(operation.operands[0]), target, source)

    def _convert(self, operation: ir.Operation, _: ir.Value) -> OpsValue:
        """Convert as `bridge.convert` says."""
        source = _named_dtype(operation, "from")
        target = _named_dtype(operation, "to")
        return self.env.ops.to_dtype(self.value(operation.operands[0]), target, src_dtype=source)

    def _special(self, operation: ir.Operation, _: ir.Value) -> OpsValue:
        """Call the function that `bridge.special` names."""
        from bridge._native._bridge_enum_gen import SpecialFn  # loads MLIR

        name = SpecialFn(ir.IntegerAttr(operation.attributes["fn"]).value).name
        return self._draw(name, operation) if name in ops_table.DRAWS else self._call(name, operation)

    def _draw(self, name: str, operation: ir.Operation) -> OpsValue:
        """Draw a random number: of a seed, and of indices, which are none of C++'s vectors where they are constants."""
        seed, *indices = operation.operands
        return getattr(self.env.ops, name)(self.value(seed), *map(self._index_number, indices))

    def _index_number(self, value: ir.Value) -> OpsValue:
        """Return an index as a number, also one that the passes made a constant of."""
        operation = _owner(value)
        if operation.name != "arith.constant":
            return self.value(value)
        return self.env.ops.index_expr(sympy.Integer(number(operation)), dtypes.signed_dtype(str(value.type)))

    def _float_compare(self, operation: ir.Operation, _: ir.Value) -> OpsValue:
        """Compare floats."""
        return self._compare(operation, ops_table.LIFTED_FLOAT_PREDICATES)

    def _int_compare(self, operation: ir.Operation, _: ir.Value) -> OpsValue:
        """Compare integers."""
        return self._compare(operation, ops_table.LIFTED_INT_PREDICATES)

    def _compare(self, operation: ir.Operation, predicates: dict[int, str]) -> OpsValue:
        """Compare by a table of predicates."""
        predicate = ir.IntegerAttr(operation.attributes["predicate"]).value
        if predicate not in predicates:
            raise Unsupported(Reason.not_liftable, f"{operation.name} predicate {predicate}")
        return self._call(predicates[predicate], operation)

    def _loop(self, operation: ir.Operation, value: ir.Value) -> OpsValue:
        """Return the result of a reduction."""
        return lift_reduction(self, operation, value)

    def _combine(self, operation: ir.Operation, value: ir.Value) -> OpsValue:
        """Return a value of the state that a lane combines by itself."""
        return lift_combination(self, operation, value)

    def _guard(self, operation: ir.Operation, value: ir.Value) -> OpsValue:
        """Evaluate the first region of an `affine.if` under a mask; elsewhere the result is a constant.

        Within a block under the same mask, no lane is elsewhere.
        """
        position = list(operation.results).index(value)
        inside, outside = (list(region.blocks[0].operations)[-1].operands[position] for region in operation.regions)
        known = operation.attributes["condition"], *operation.operands
        if known in self.env.within:
            return self.value(inside)
        condition = self.condition(operation)
        mask = condition if self.guard is None else self.env.ops.and_(self.guard.mask, condition)
        if not self.env.simt_target or _is_loaded(inside) or not computes_anywhere(operation):
            return self.env.ops.masked(mask, self._fresh(inside, known), _other(outside))
        guarded = Evaluator(replace(self.env, row=None), _Guard(operation, mask, self))
        other = self.env.ops.constant(_other(outside), _dtype_of_other(outside))
        return self.env.ops.where(condition, guarded.value(inside), other)

    def _fresh(self, value: ir.Value, condition: Hashable) -> Callable[[], OpsValue]:
        """Return a function that evaluates a value anew, for a block that is masked by a condition.

        Inductor leaves the mask to a block's load.  But a load of what the kernel has stored is none: it is the stored
        value, and needs the mask like any other.
        """
        masked = replace(self.env, row=None, within=self.env.within | {condition})
        if _loads_stored(value):
            return lambda: self.env.ops.identity(Evaluator(masked).value(value))
        if not self.env.simt_target and str(value.type) == "i1":
            return lambda: self._float_mask(Evaluator(masked).value(value))
        return lambda: Evaluator(masked).value(value)

    def _float_mask(self, flag: OpsValue) -> OpsValue:
        """Return a flag as C++ has it beside a constant under a mask: a vector of the floats' size, not of integers."""
        return self.env.ops.ne(flag, self.env.ops.constant(False, torch.bool))

    def condition(self, operation: ir.Operation) -> OpsValue:
        """Return the mask of an `affine.if`: the conjunction of its constraints on index expressions.

        Inductor narrows the integers of some masks, by what else they are for. Those that are the same are to be alike:
        a load under both is one then.
        """
        dtype = torch.int32 if self.env.simt_target and is_narrow(operation) else torch.int64
        masks = [self._constraint(*found, dtype) for found in self.constraints(operation)]
        return functools.reduce(self.env.ops.and_, masks)

    def constraints(self, operation: ir.Operation) -> list[tuple[sympy.Expr, bool]]:
        """Return the constraints of an `affine.if`: (expression, True for `== 0` / False for `>= 0`)."""
        return constraints(operation.attributes["condition"], [self.index(o) for o in operation.operands])

    def is_zero(self, expr: sympy.Expr) -> OpsValue:
        """Return the mask of the lanes in which an index is zero."""
        return self._constraint(expr, True, torch.int64)

    def guarded(self, store: ir.Operation, value: object, masks: list[OpsValue], lanes: str = "") -> OpsValue:
        """Return the value for a store that only the lanes under all masks execute; lanes: see ops_table.GUARDED."""
        dtype = dtypes.signed_dtype(str(store.operands[0].type))
        compute = dtypes.compute_dtype(dtype)
        mask = functools.reduce(self.env.ops.and_, masks)
        kind = f"{ops_table.GUARDED}:{lanes}" if lanes else ops_table.GUARDED
        return self.env.ops.reduction(compute, compute, kind, (value, mask))

    def reduce(self, dtype: torch.dtype, kind: str, value: object) -> OpsValue:
        """Reduce by `ops.reduction` over the row, or over each lane's segment of it: every element once."""
        segment = self.env.segment
        if self.env.once is not None and kind not in ops_table.IDEMPOTENT_KINDS:
            value = self._once(dtype, kind, value)
        if segment is None:
            return self.env.ops.reduction(dtype, dtype, kind, value)
        if kind not in ops_table.SEGMENTED_KINDS or segment & (segment - 1):
            raise Unsupported(Reason.not_liftable, f"{kind} over segments of {segment} lanes")
        return self.env.ops.reduction(dtype, dtype, f"{ops_table.SEGMENTED}:{kind}:{segment}", value)

    def _once(self, dtype: torch.dtype, kind: str, value: object) -> OpsValue:
        """Return a value in one of the lanes that have it, and what adds nothing in the others."""
        if kind not in ops_table.NEUTRAL_ELEMENTS:
            raise Unsupported(Reason.not_liftable, f"{kind} over lanes that have the same elements")
        neutral = self.env.ops.constant(ops_table.NEUTRAL_ELEMENTS[kind], dtype)
        return self.env.ops.where(self.is_zero(self.env.once), value, neutral)

    def _constraint(self, expr: sympy.Expr, is_equality: bool, dtype: torch.dtype) -> OpsValue:
        """Return the mask of `expr == 0`, or of `expr >= 0` as `variables >= bound` or `variables < bound`.

        Of a bound that a power of two divides Triton sees that neighbouring lanes agree, and keeps vector accesses.
        """
        ops = self.env.ops
        constant, variables = sympy.expand(expr).as_coeff_Add()
        if is_equality or not constant.is_Integer:
            return (ops.eq if is_equality else ops.ge)(ops.index_expr(expr, dtype), ops.constant(0, dtype))
        if variables.could_extract_minus_sign():
            return ops.lt(ops.index_expr(-variables, dtype), ops.constant(int(constant) + 1, dtype))
        return ops.ge(ops.index_expr(variables, dtype), ops.constant(-int(constant), dtype))


#: Conversions of integers to floats.
_FROM_INTEGERS = ("arith.sitofp", "arith.uitofp")

#: What an index may be computed by besides maps: a product of a size and a variable is no affine expression.
_INDEX_ARITHMETIC = {"arith.addi": operator.add, "arith.muli": operator.mul}

_HANDLERS = {
    "affine.load": Evaluator._load,
    "bridge.gather": Evaluator._gather,
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
    "bridge.combine": Evaluator._combine,
    "bridge.special": Evaluator._special,
    "bridge.convert": Evaluator._convert,
}


def number(constant: ir.Operation) -> bool | int | float:
    """Return the value of an `arith.constant`; a float32 in its shortest spelling, as Inductor was given it."""
    attribute, name = constant.attributes["value"], str(constant.results[0].type)
    if name == "i1":
        return bool(ir.IntegerAttr(attribute).value)
    if not dtypes.signed_dtype(name).is_floating_point:
        return ir.IntegerAttr(attribute).value
    exact = ir.FloatAttr(attribute).value
    shortest = float(f"{exact:.7g}")
    return shortest if name == "f32" and _to_float32(shortest) == exact else exact


def _extends_load(operation: ir.Operation, source: torch.dtype, target: torch.dtype) -> bool:
    """Return True if a conversion extends 16 bits that have just been loaded."""
    return _is_load(operation.operands[0]) and source in dtypes.LOW_PRECISION and target == torch.float32


def _to_float32(value: float) -> float:
    """Round to float32."""
    return ctypes.c_float(value).value


def _other(value: ir.Value) -> bool | int | float:
    """Return what stands for a masked block where the mask is off: a constant, converted if it is unsigned."""
    operation = _owner(value)
    if operation.name == "arith.constant":
        return number(operation)
    source = _owner(operation.operands[0]) if operation.name == "bridge.convert" else operation
    target = _named_dtype(operation, "to") if source != operation else None
    if source.name != "arith.constant" or target is None or target not in dtypes.UNSIGNED:
        raise Unsupported(Reason.not_liftable, "a guard whose other value is no constant")
    return number(source) % (1 << 8 * target.itemsize)


def _named_dtype(operation: ir.Operation, attribute: str) -> torch.dtype:
    """Return the dtype that an attribute names."""
    return dtypes.dtype_from_name(ir.StringAttr(operation.attributes[attribute]).value)


def _dtype_of_other(value: ir.Value) -> torch.dtype:
    """Return the dtype that Triton has what stands for a guarded value in."""
    operation = _owner(value)
    if operation.name == "bridge.convert":
        return _named_dtype(operation, "to")
    return dtypes.compute_dtype(dtypes.signed_dtype(str(value.type)))


def _is_loaded(value: ir.Value) -> bool:
    """Return True if a value is loaded, and at most extended: a mask gives it another value by itself."""
    return _is_load(_unextended(value))


def _is_load(value: ir.Value) -> bool:
    """Return True if a value is the result of a load."""
    return not isinstance(value.owner, ir.Block) and value.owner.name in ("affine.load", "bridge.gather")


def _unextended(value: ir.Value) -> ir.Value:
    """Return what a value was before it was extended."""
    while not isinstance(value.owner, ir.Block) and value.owner.name == "arith.extf":
        value = _owner(value).operands[0]
    return value


def _owner(value: ir.Value) -> ir.Operation:
    """Return the defining operation of a value; Unsupported(not_liftable) for an argument of a block."""
    operation = defining_operation(value)
    if operation is None:
        raise Unsupported(Reason.not_liftable, "a value carried by a loop is used outside its combiner")
    return operation


def _loads_stored(value: ir.Value) -> bool:
    """Return True if a value is loaded from a memref that the function also stores to, as it is or extended."""
    return bool(stores_where_read(_unextended(value)))
