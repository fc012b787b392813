"""Map Inductor's `ops.*` to MLIR operations, for both directions.

Keys are names of `torch._inductor.ops_handler.OpsHandler`; values are MLIR operation names.  What upstream
lacks stands in `bridge.special` under the very same name, so that the lift needs no second table.
"""

from __future__ import annotations

#: The attribute of an `arith.truncf` whose rounding is meant; a store's own has none.
ROUNDING_MODE = "roundingmode"

#: Marks a function with a band that reduces over a row, or broadcasts in it, what segments of the row have reduced.
ROWS_OF_SEGMENTS = "bridge.rows_of_segments"

#: Marks a function with reductions that were unrolled for a row that reduces their results.
UNROLLED_REDUCTIONS = "bridge.unrolled_reductions"

FLOAT_OPS: dict[str, str] = {
    "add": "arith.addf",
    "sub": "arith.subf",
    "mul": "arith.mulf",
    "truediv": "arith.divf",
    "neg": "arith.negf",
    "minimum": "arith.minimumf",
    "maximum": "arith.maximumf",
    "fmod": "arith.remf",
    "mod": "arith.remf",
    "abs": "math.absf",
    "exp": "math.exp",
    "exp2": "math.exp2",
    "expm1": "math.expm1",
    "log": "math.log",
    "log2": "math.log2",
    "log10": "math.log10",
    "log1p": "math.log1p",
    "sqrt": "math.sqrt",
    "rsqrt": "math.rsqrt",
    "sin": "math.sin",
    "cos": "math.cos",
    "tan": "math.tan",
    "asin": "math.asin",
    "acos": "math.acos",
    "atan": "math.atan",
    "atan2": "math.atan2",
    "sinh": "math.sinh",
    "cosh": "math.cosh",
    "tanh": "math.tanh",
    "asinh": "math.asinh",
    "acosh": "math.acosh",
    "atanh": "math.atanh",
    "erf": "math.erf",
    "erfc": "math.erfc",
    "copysign": "math.copysign",
    "pow": "math.powf",
    "fma": "math.fma",
    "floor": "math.floor",
    "ceil": "math.ceil",
    "trunc": "math.trunc",
    "round": "math.roundeven",
}

SIGNED_OPS: dict[str, str] = {
    "add": "arith.addi",
    "sub": "arith.subi",
    "mul": "arith.muli",
    "minimum": "arith.minsi",
    "maximum": "arith.maxsi",
    "truncdiv": "arith.divsi",
    "floordiv": "arith.floordivsi",
    "mod": "arith.remsi",
    "fmod": "arith.remsi",
    "abs": "math.absi",
    "bitwise_and": "arith.andi",
    "bitwise_or": "arith.ori",
    "bitwise_xor": "arith.xori",
    "and_": "arith.andi",
    "or_": "arith.ori",
    "xor": "arith.xori",
    "bitwise_left_shift": "arith.shli",
    "bitwise_right_shift": "arith.shrsi",
    "lshift": "arith.shli",
    "rshift": "arith.shrsi",
}

UNSIGNED_OPS: dict[str, str] = {
    **{k: v for k, v in SIGNED_OPS.items() if k not in ("abs", "floordiv")},
    "minimum": "arith.minui",
    "maximum": "arith.maxui",
    "truncdiv": "arith.divui",
    "floordiv": "arith.divui",
    "mod": "arith.remui",
    "fmod": "arith.remui",
    "bitwise_right_shift": "arith.shrui",
    "rshift": "arith.shrui",
}

BOOL_OPS: dict[str, str] = {
    "and_": "arith.andi",
    "or_": "arith.ori",
    "xor": "arith.xori",
    "bitwise_and": "arith.andi",
    "bitwise_or": "arith.ori",
    "bitwise_xor": "arith.xori",
    "minimum": "arith.andi",
    "maximum": "arith.ori",
    "mul": "arith.andi",
    "add": "arith.ori",
}

LOGICAL_OPS: dict[str, str] = {
    "logical_and": "arith.andi",
    "logical_or": "arith.ori",
    "logical_xor": "arith.xori",
}

#: Comparison predicates as MLIR numbers them: ordered floats (`ne` is unordered: NaN != NaN), signed, unsigned.
FLOAT_PREDICATES = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}
SIGNED_PREDICATES = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
UNSIGNED_PREDICATES = {"eq": 0, "ne": 1, "lt": 6, "le": 7, "gt": 8, "ge": 9}

#: The canonicaliser may make predicates that no op translates to; what they mean in `ops.*`.
LIFTED_FLOAT_PREDICATES = {v: k for k, v in FLOAT_PREDICATES.items()}
LIFTED_INT_PREDICATES = {v: k for table in (SIGNED_PREDICATES, UNSIGNED_PREDICATES) for k, v in table.items()}

#: Conversions that round toward integers: the float step that comes before arith.fptosi.
ROUND_TO_INT = {
    "trunc_to_int": "math.trunc",
    "ceil_to_int": "math.ceil",
    "floor_to_int": "math.floor",
    "round_to_int": "math.roundeven",
}

#: Reductions whose state is one value, and the arith operation that combines it, by kind of number.
FLOAT_COMBINERS = {
    "sum": "arith.addf",
    "prod": "arith.mulf",
    "max": "arith.maximumf",
    "min": "arith.minimumf",
}
SIGNED_COMBINERS = {
    "sum": "arith.addi",
    "prod": "arith.muli",
    "max": "arith.maxsi",
    "min": "arith.minsi",
    "xor_sum": "arith.xori",
}
BOOL_COMBINERS = {"any": "arith.ori", "max": "arith.ori", "min": "arith.andi", "xor_sum": "arith.xori"}


def _inverse(*tables: dict[str, str]) -> dict[str, str]:
    """Return MLIR operation -> name; of several names the first: `bitwise_and` and `and_` are one operation."""
    inverse: dict[str, str] = {}
    for table in tables:
        for name, operation in table.items():
            inverse.setdefault(operation, name)
    return inverse


LIFTED_OPS = _inverse(
    FLOAT_OPS, SIGNED_OPS, UNSIGNED_OPS, {"where": "arith.select", "isnan": "math.isnan", "isinf": "math.isinf"}
)
LIFTED_COMBINERS = _inverse(FLOAT_COMBINERS, SIGNED_COMBINERS)
LIFTED_BOOL_COMBINERS = _inverse(BOOL_COMBINERS)

#: Random numbers: functions of a seed, of an offset and, for integers, of bounds.
DRAWS = ("rand", "randn", "randint64")

#: Reduction types of Bridge's own, which `lowering/triton/kernels.py` generates: `ops.reduction` with (value, mask) is
#: the value for a store that the lanes under the mask execute, `"{GUARDED}:{first}:{lanes}"` where those are the first
#: of so many; `"{SEGMENTED}:{kind}:{lanes}"` gives every lane the reduction of its own segment;
#: `"{BROADCAST}:{segment}:{lanes}"` gives all lanes the value of the segment of that number.
GUARDED = "bridge_guarded"
SEGMENTED = "bridge_segmented"
BROADCAST = "bridge_broadcast"
LANE_KINDS = GUARDED, SEGMENTED, BROADCAST
SEGMENTED_KINDS = ("sum", "prod", "max", "min")

#: Reduction types by what an element that several lanes have needs: nothing, as adding it again changes nothing, or
#: that all but one of them add this instead.
IDEMPOTENT_KINDS = ("max", "min", "any")
NEUTRAL_ELEMENTS = {"sum": 0, "prod": 1, "xor_sum": 0}
