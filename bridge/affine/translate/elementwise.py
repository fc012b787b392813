"""Elementwise `ops.*` as arith, math and bridge operations, with Inductor's conversions and roundings."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from ...reasons import Reason, Unsupported
from .. import dtypes
from .. import ops_table as table
from ..mlir_runtime import ir, meant_rounding


@dataclass(frozen=True)
class Typed:
    """Hold an SSA value and the torch dtype that Inductor computes it in."""

    value: ir.Value
    dtype: torch.dtype


#: A number of Python's (bool, int or float), as Inductor's ops take it in the place of a value.
Number: TypeAlias = float


class Elementwise:
    """Emit elementwise operations at `ip`.

    rounds: conversions to float16 / bfloat16 round (C++ codegen); else they only do so at a store (Triton).
    emulates: what a store rounds is read rounded everywhere, as in eager.
    casts: (operation, from, to, whether meant) of those emitted; a second extension of a value is not noted.
    """

    def __init__(self, rounds: bool, emulates: bool = False):
        """Start without an insertion point."""
        self.rounds = rounds
        self.emulates = emulates
        self.casts: set[tuple[str, torch.dtype, torch.dtype, bool]] = set()
        self.ip: ir.InsertionPoint | None = None
        self.types: dict[torch.dtype, ir.Type] = {}

    @property
    def keeps_roundings(self) -> bool:
        """Return True if a rounding that could be undone later is more than how a 16-bit buffer keeps a value."""
        widened = {source for operation, source, _, _ in self.casts if operation == "arith.extf"}
        narrowed = {target for operation, _, target, _ in self.casts if operation == "arith.truncf"}
        meant = any(is_meant for *_, is_meant in self.casts)
        return meant or bool((narrowed & widened) - dtypes.LOW_PRECISION)

    def create(
        self,
        name: str,
        operands: Sequence[ir.Value],
        results: Sequence[ir.Type],
        attributes: dict[str, ir.Attribute] | None = None,
        regions: int = 0,
    ) -> ir.Operation:
        """Create an operation of that name at the insertion point."""
        return ir.Operation.create(
            name, results=results, operands=operands, attributes=attributes or {}, regions=regions, ip=self.ip
        )

    def type(self, dtype: torch.dtype) -> ir.Type:
        """Return the MLIR type of a dtype."""
        if dtype not in self.types:
            self.types[dtype] = ir.Type.parse(dtypes.type_name(dtype))
        return self.types[dtype]

    def emit(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Typed:
        """Emit one of Inductor's ops; Unsupported(unsupported_op) for one that MLIR does not have."""
        handler = getattr(self, f"_op_{name}", None)
        if handler is not None:
            return handler(*args, **kwargs)
        if name in table.FLOAT_PREDICATES:
            return self._compare(name, *args)
        if name in table.ROUND_TO_INT:
            return self._round_to_int(name, *args, **kwargs)
        if name in table.LOGICAL_OPS:
            return self._logical(name, *args)
        return self._arithmetic(name, list(args))

    @staticmethod
    def compute_dtype(dtype: torch.dtype) -> torch.dtype:
        """Return the dtype to compute in: float32 for 16-bit floats, as in both of Inductor's code generators."""
        return torch.float32 if dtype in dtypes.LOW_PRECISION else dtype

    def to_compute(self, typed: Typed) -> Typed:
        """Convert a value to the dtype that it is computed in."""
        return self._cast(typed, self.compute_dtype(typed.dtype))

    def to_storage(self, typed: Typed, dtype: torch.dtype) -> ir.Value:
        """Return the value as a buffer of `dtype` keeps it; a rounding that has just been done is not done again."""
        stored = self._before_extension(typed, dtype)
        return self._cast(stored, dtype, meant=self.emulates).value

    def _before_extension(self, typed: Typed, dtype: torch.dtype) -> Typed:
        """Return the value of the 16-bit `dtype` that was extended to `typed`, or `typed` where there was none."""
        owner = typed.value.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.extf":
            return typed
        source = owner.operands[0]
        return Typed(source, dtype) if source.type == self.type(dtype) else typed

    def constant(self, value: Number, dtype: torch.dtype) -> Typed:
        """Emit a constant in the dtype that `dtype` is computed in."""
        return self._op_constant(value, dtype)

    def convert(self, typed: Typed, dtype: torch.dtype) -> Typed:
        """Convert a value to the dtype that `dtype` is computed in."""
        return self._cast(typed, self.compute_dtype(dtype))

    def _op_constant(self, value: Number, dtype: torch.dtype) -> Typed:
        """Emit a constant; an unsigned one as a signed one with the same bits, converted."""
        _check_converted(dtype)
        compute = self.compute_dtype(dtype)
        if compute in dtypes.UNSIGNED:
            signed = dtypes.signed_dtype(dtypes.type_name(compute))
            bits = torch.iinfo(compute).bits
            wrapped = int(value) - (1 << bits) if int(value) >= 1 << (bits - 1) else int(value)
            return self._bridge_convert(self._op_constant(wrapped, signed), compute)
        element = self.type(compute)
        if compute.is_floating_point:
            attribute = ir.FloatAttr.get(element, float(value))
        else:
            attribute = ir.IntegerAttr.get(element, int(value))
        return Typed(self.create("arith.constant", [], [element], {"value": attribute}).result, compute)

    def _op_to_dtype(
        self, x: Typed, dtype: torch.dtype, src_dtype: torch.dtype | None = None, use_compute_types: bool = True
    ) -> Typed:
        """Convert; on Triton, to a 16-bit float only where `use_compute_types` is off.

        C++ rounds there, but takes the value from before the rounding where it is converted back: such a
        conversion is `bridge.convert`, which stays the one `ops.to_dtype` that this follows from.
        """
        if self.rounds and src_dtype in dtypes.LOW_PRECISION:
            x = self._before_extension(x, src_dtype)
        if dtype not in dtypes.LOW_PRECISION:
            return self._cast(x, dtype)
        if use_compute_types:
            return self.to_compute(self._bridge_convert(x, dtype)) if self.rounds else self._cast(x, torch.float32)
        if dtypes.kind(x.dtype) == "unsigned" or x.dtype in dtypes.LOW_PRECISION:
            x = self._cast(x, torch.float32)  # `bridge.convert` to 16 bits would say that compute types are used
        rounded = self._cast(x, dtype, meant=True)
        return self.to_compute(rounded) if self.rounds else rounded

    def _op_to_dtype_bitcast(self, x: Typed, dtype: torch.dtype, src_dtype: torch.dtype) -> Typed:
        """Reinterpret the bits of the value as it is stored; bool is one bit here and eight in memory."""
        if dtype.itemsize != src_dtype.itemsize or torch.bool in (dtype, src_dtype):
            raise Unsupported(Reason.unsupported_op, f"bit cast {src_dtype} -> {dtype}")
        bits = Typed(self.to_storage(x, src_dtype), src_dtype)
        source, target = (dtypes.signed_dtype(dtypes.type_name(d)) for d in (src_dtype, dtype))
        bits = self._cast(bits, source)
        if source != target:
            bits = Typed(self.create("arith.bitcast", [bits.value], [self.type(target)]).result, target)
        return self.to_compute(self._cast(bits, dtype))

    def _op_identity(self, x: Typed) -> Typed:
        """Return the value."""
        return x

    def _op_where(self, condition: Typed, a: Typed | Number, b: Typed | Number) -> Typed:
        """Select one of two values."""
        a, b = self._promote([a, b])
        mask = self._cast(condition, torch.bool)
        return Typed(self.create("arith.select", [mask.value, a.value, b.value], [a.value.type]).result, a.dtype)

    def _op_square(self, x: Typed) -> Typed:
        """Multiply a value by itself."""
        return self._arithmetic("mul", [x, x])

    def _op_reciprocal(self, x: Typed) -> Typed:
        """Divide one by a value."""
        return self._arithmetic("truediv", [self._op_constant(1, x.dtype), x])

    def _op_neg(self, x: Typed) -> Typed:
        """Negate a value; an integer is subtracted from zero."""
        if dtypes.kind(x.dtype) == "float":
            return self._arithmetic("neg", [x])
        return self._arithmetic("sub", [self._op_constant(0, x.dtype), x])

    def _op_logical_not(self, x: Typed) -> Typed:
        """Negate a truth value."""
        return self._arithmetic("bitwise_xor", [self._cast(x, torch.bool), self._op_constant(True, torch.bool)])

    def _op_bitwise_not(self, x: Typed) -> Typed:
        """Complement the bits of a value."""
        return self._arithmetic("bitwise_xor", [x, self._op_constant(1 if x.dtype == torch.bool else -1, x.dtype)])

    def _op_abs(self, x: Typed) -> Typed:
        """Return the magnitude of a value."""
        return x if dtypes.kind(x.dtype) == "unsigned" else self._arithmetic("abs", [x])

    def _op_isnan(self, x: Typed) -> Typed:
        """Test for NaN."""
        return self._predicate("math.isnan", x)

    def _op_isinf(self, x: Typed) -> Typed:
        """Test for infinities."""
        return self._predicate("math.isinf", x)

    def _predicate(self, operation: str, x: Typed) -> Typed:
        """Test a float; the test is false for other kinds of numbers."""
        if dtypes.kind(x.dtype) != "float":
            return self._op_constant(False, torch.bool)
        return Typed(self.create(operation, [x.value], [ir.IntegerType.get_signless(1)]).result, torch.bool)

    def _op_signbit(self, x: Typed) -> Typed:
        """Return the sign bit of a value."""
        return self._special("signbit", [x], torch.bool)

    def _op_int_truediv(self, x: Typed, y: Typed) -> Typed:
        """Divide integers to a float."""
        return self._special("int_truediv", self._promote([x, y]), torch.get_default_dtype())

    def _op_ldexp(self, x: Typed, n: Typed) -> Typed:
        """Multiply by a power of two."""
        return self._special("ldexp", [x, n], x.dtype)

    def _op_rand(self, seed: Typed, offset: Typed) -> Typed:
        """Draw a number between 0 and 1."""
        return self._named("rand", [seed, offset], torch.float32)

    def _op_randn(self, seed: Typed, offset: Typed) -> Typed:
        """Draw a number of the normal distribution."""
        return self._named("randn", [seed, offset], torch.float32)

    def _op_randint64(self, seed: Typed, offset: Typed, low: Typed, high: Typed) -> Typed:
        """Draw an integer that is at least `low` and less than `high`."""
        return self._named("randint64", [seed, offset, low, high], torch.int64)

    def _logical(self, name: str, *args: Typed) -> Typed:
        """Combine truth values."""
        flags = [self._cast(a, torch.bool) for a in args]
        result = self.create(table.LOGICAL_OPS[name], [f.value for f in flags], [flags[0].value.type]).result
        return Typed(result, torch.bool)

    def _compare(self, name: str, a: Typed | Number, b: Typed | Number) -> Typed:
        """Compare two values in one dtype."""
        a, b = self._promote([a, b])
        operation, predicates = {
            "float": ("arith.cmpf", table.FLOAT_PREDICATES),
            "unsigned": ("arith.cmpi", table.UNSIGNED_PREDICATES),
            "bool": ("arith.cmpi", table.UNSIGNED_PREDICATES),
            "signed": ("arith.cmpi", table.SIGNED_PREDICATES),
        }[dtypes.kind(a.dtype)]
        i64 = ir.IntegerType.get_signless(64)
        attributes = {"predicate": ir.IntegerAttr.get(i64, predicates[name])}
        flag = ir.IntegerType.get_signless(1)
        return Typed(self.create(operation, [a.value, b.value], [flag], attributes).result, torch.bool)

    def _round_to_int(self, name: str, x: Typed, dtype: torch.dtype) -> Typed:
        """Round a float to an integer."""
        if dtypes.kind(x.dtype) != "float":
            return self._cast(x, dtype)
        rounded = self.create(table.ROUND_TO_INT[name], [x.value], [x.value.type]).result
        return self._cast(Typed(rounded, x.dtype), dtype)

    def _arithmetic(self, name: str, args: Sequence[Typed | Number]) -> Typed:
        """Emit upstream's operation for the operands' kind, else `bridge.special`."""
        operands = self._promote(args)
        dtype = operands[0].dtype
        tables = {
            "float": table.FLOAT_OPS,
            "signed": table.SIGNED_OPS,
            "unsigned": table.UNSIGNED_OPS,
            "bool": table.BOOL_OPS,
        }
        operation = tables[dtypes.kind(dtype)].get(name)
        if operation is None:
            return self._special(name, operands, dtype)
        return Typed(self.create(operation, [x.value for x in operands], [operands[0].value.type]).result, dtype)

    def _special(self, name: str, args: Sequence[Typed], dtype: torch.dtype) -> Typed:
        """Emit `bridge.special`: for floats whatever the dialect knows, for other kinds only what is exact there."""
        from ..._native._bridge_enum_gen import SpecialFn  # loads MLIR

        integers_allowed = ("relu", "sign", "remainder", "int_truediv", "floordiv", "truncdiv", "signbit")
        if name not in SpecialFn.__members__ or (
            dtypes.kind(args[0].dtype) != "float" and name not in integers_allowed
        ):
            raise Unsupported(Reason.unsupported_op, f"ops.{name} on {args[0].dtype}")
        return self._named(name, args, dtype)

    def _named(self, name: str, args: Sequence[Typed], dtype: torch.dtype) -> Typed:
        """Emit `bridge.special` of a name that the dialect knows."""
        from ..._native._bridge_enum_gen import SpecialFn  # loads MLIR

        i32 = ir.IntegerType.get_signless(32)
        attributes = {"fn": ir.IntegerAttr.get(i32, SpecialFn[name].value)}
        result = self.type(dtype)
        return Typed(self.create("bridge.special", [a.value for a in args], [result], attributes).result, dtype)

    def _promote(self, args: Sequence[Typed | Number]) -> list[Typed]:
        """Return the operands in one dtype; Inductor has promoted nearly all of them in its lowering already."""
        dtype = _common_dtype(args)
        return [self._cast(a, dtype) if isinstance(a, Typed) else self._op_constant(a, dtype) for a in args]

    def _cast(self, x: Typed, dtype: torch.dtype, meant: bool = False) -> Typed:
        """Convert a value.

        meant: a rounding to 16 bits is not just how a buffer keeps the value; no pass may leave it out.
        """
        if x.dtype == dtype:
            return x
        _check_converted(x.dtype, dtype)
        kinds = dtypes.kind(x.dtype), dtypes.kind(dtype)
        same_width = kinds == ("float", "float") and x.dtype.itemsize == dtype.itemsize
        if "unsigned" in kinds or kinds == ("float", "bool") or same_width:
            return self._bridge_convert(x, dtype)
        if kinds[1] == "bool":
            return self._compare("ne", x, self._op_constant(0, x.dtype))
        operation = _signed_cast(kinds, x.dtype, dtype)
        attributes = meant_rounding() if meant and operation == "arith.truncf" else None
        if operation != "arith.extf" or not _was_extended(x):
            self.casts.add((operation, x.dtype, dtype, attributes is not None))
        return Typed(self.create(operation, [x.value], [self.type(dtype)], attributes).result, dtype)

    def _bridge_convert(self, x: Typed, dtype: torch.dtype) -> Typed:
        """Emit `bridge.convert`, which names both dtypes."""
        if x.dtype == dtype:
            return x
        attributes = {
            "from": ir.StringAttr.get(dtypes.dtype_name(x.dtype)),
            "to": ir.StringAttr.get(dtypes.dtype_name(dtype)),
        }
        element = self.type(dtype)
        return Typed(self.create("bridge.convert", [x.value], [element], attributes).result, dtype)


def _check_converted(*converted: torch.dtype) -> None:
    """Raise Unsupported(unsupported_dtype) for numbers whose bits alone are known."""
    for dtype in dtypes.ONLY_BITS.intersection(converted):
        raise Unsupported(Reason.unsupported_dtype, f"{dtype} as a number")


def _was_extended(x: Typed) -> bool:
    """Return True for a value that a narrower one was extended to: it is not what a buffer of this width keeps."""
    owner = x.value.owner
    return not isinstance(owner, ir.Block) and owner.name == "arith.extf"


def _common_dtype(args: Sequence[Typed | Number]) -> torch.dtype:
    """Promote dtypes as torch does: a Python number decides nothing but whether the result is a float."""
    known = [a.dtype for a in args if isinstance(a, Typed)]
    numbers = [torch.tensor(a).dtype for a in args if not isinstance(a, Typed)]
    found = known + [n for n in numbers if n.is_floating_point or not known]
    if any(d in dtypes.UNSIGNED and d.itemsize > 1 and set(found) != {d} for d in found):
        raise Unsupported(Reason.unsupported_dtype, f"promotion of {' and '.join(map(str, found))}")
    if not any(d.is_floating_point for d in known):
        return functools.reduce(torch.promote_types, found)
    return functools.reduce(torch.promote_types, known)


def _signed_cast(kinds: tuple[str, str], source: torch.dtype, target: torch.dtype) -> str:
    """Return the arith conversion between floats, signed integers and (as a source) bool."""
    if kinds == ("float", "float"):
        return "arith.extf" if source.itemsize < target.itemsize else "arith.truncf"
    if kinds[0] == "float":
        return "arith.fptosi"
    if kinds[0] == "bool":
        return "arith.uitofp" if kinds[1] == "float" else "arith.extui"
    if kinds[1] == "float":
        return "arith.sitofp"
    return "arith.extsi" if source.itemsize < target.itemsize else "arith.trunci"
