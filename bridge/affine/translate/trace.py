"""Runs one LoopBody through an ops handler and keeps what it did: the loop IR as a list of steps.

Inductor's own protocol (`OpsHandler`) is the only thing used here.  A step names its operation, its
operands (earlier steps, constants, sympy index expressions) and, for `masked`, the steps of its region.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sympy
import torch

from ... import inductor
from ...reasons import Reason, Unsupported
from .access import LinearAccess, Ranges, bounds, divide_constraint, expand
from .divisions import drop_divisions, solve_remainder
from .gather import Gather, Position, depends_on_data, make_gather, position_symbol
from .loops import Factors, Sizes
from .multiples import Multiples
from .piecewise import compute_piecewise, is_piecewise, without_decided
from .real_sizes import compute_real, is_real

#: A conjunction of affine constraints, each `expr >= 0`.
Condition: TypeAlias = tuple[sympy.Expr, ...]

#: Operations that Bridge leaves alone, and the reason it gives for each.
REFUSED_OPS: dict[str, Reason] = {
    "rand_eager": Reason.random,
    "randn_eager": Reason.random,
    "device_assert_async": Reason.side_effect,
    "partial_accumulate": Reason.side_effect,
    "inline_asm_elementwise": Reason.side_effect,
    "scan": Reason.unsupported_op,
    "sort": Reason.unsupported_op,
    "bucketize": Reason.unsupported_op,
    "frexp": Reason.unsupported_op,
    "dot": Reason.unsupported_op,
    "halide_clamp": Reason.unsupported_op,
    "output": Reason.unsupported_op,
    "placeholder": Reason.unsupported_op,
}


#: The value of `max` or `min` along a dimension, and both results: from torch 2.15 on Inductor finds it by its index.
EXTREMES = {"argmax_value": "max", "argmin_value": "min"}
EXTREMES_AND_INDICES = {"argmax_with_value": ("max", "argmax"), "argmin_with_value": ("min", "argmin")}


@dataclass(eq=False)
class Step:
    """Hold one operation of a loop body; `index` and `condition` are set where they are known symbolically.

    access: of a load or a store; region: the steps of a masked block; gather: of a load whose place depends on data.
    """

    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    index: sympy.Expr | None = None
    condition: Condition | None = None
    access: LinearAccess | None = None
    region: list[Step] | None = None
    gather: Gather | None = None


@dataclass(eq=False)
class Component:
    """Name one of the values of a step that returns several (welford, online softmax)."""

    step: Step
    position: int


@dataclass
class NestTrace:
    """Hold the loop IR of one scheduler node.

    name: the scheduler node; buffer: the buffer it defines.
    iter_vars / reduce_vars: iteration variables with their extents, outermost first.
    overwrites: the buffers that it stores into and does not make, by the name that Inductor has for the new contents.
    seeds: the buffers that it loads seeds of random numbers from; unrolled: the variable whose values one iteration
    has one after the other, and their number.
    """

    name: str
    iter_vars: list[tuple[sympy.Symbol, sympy.Expr]]
    reduce_vars: list[tuple[sympy.Symbol, sympy.Expr]]
    overwrites: Mapping[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    accesses: list[LinearAccess] = field(default_factory=list)
    gathers: list[Gather] = field(default_factory=list)
    seeds: set[str] = field(default_factory=set)
    unrolled: tuple[sympy.Symbol, sympy.Expr] | None = None


def trace_node(
    name: str,
    body: Any,
    sizes: Sizes,
    factors: Factors | None = None,
    multiples: Multiples | None = None,
    overwrites: Mapping[str, str] | None = None,
) -> NestTrace:
    """Trace a LoopBody over fresh iteration variables; raises Unsupported for what Bridge refuses.

    factors: the loops that replace each loop (`loops.shared_loops`), default the node's own;
    multiples: variables of the sizes, in which `factors` are, too; overwrites: see NestTrace, default none.
    """
    names = itertools.count()
    factors = factors or _single([*sizes[0], *sizes[1]])
    loops = [[(iteration_variable(next(names)), sympy.sympify(e)) for e in part] for part in factors]
    iteration, reduction = loops[: len(sizes[0])], loops[len(sizes[0]) :]
    trace = NestTrace(name, list(itertools.chain(*iteration)), list(itertools.chain(*reduction)), overwrites or {})
    indices = [[_number(part) for part in parts] for parts in (iteration, reduction)]
    inductor.run_loop_body(body, indices, _tracer_class()(trace, multiples or Multiples()))
    used = {id(operand) for step in trace.steps for operand in _operands(step)}
    trace.steps = [step for step in trace.steps if step.op != "reduction" or id(step) in used]
    return trace


def _operands(step: Step) -> Iterator[object]:
    """Give the steps that a step and its region use."""
    for arg in step.args:
        for operand in arg if isinstance(arg, tuple) else (arg,):
            yield operand.step if isinstance(operand, Component) else operand
    for inner in step.region or ():
        yield from _operands(inner)


def _without_index(value: Any) -> Any:
    """Return a value alone, where it brings its index."""
    return value[0] if isinstance(value, tuple) else value


def _single(extents: list[sympy.Expr]) -> Factors:
    """Replace each loop by itself."""
    return [[extent] for extent in extents]


def _number(loops: list[tuple[sympy.Symbol, sympy.Expr]]) -> sympy.Expr:
    """Return the number of an iteration of nested loops, in order."""
    number = sympy.Integer(0)
    for variable, extent in loops:
        number = number * extent + variable
    return sympy.expand(number)


def iteration_variable(position: int) -> sympy.Symbol:
    """Return the variable of the loop at a position."""
    return sympy.Symbol(f"bridge_iv{position}", integer=True, nonnegative=True)


class _Tracing:
    """Trace Inductor's ops as a handler of them; its base comes with `_tracer_class`."""

    def __init__(self, trace: NestTrace, multiples: Multiples):
        """Start outside of guards."""
        self.trace = trace
        self.multiples = multiples
        self.region = trace.steps
        self.guards: Condition = ()
        self.ranges = guarded_ranges(trace, ())
        self.positions: dict[sympy.Symbol, Position] = {}

    def _default(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Step:
        """Keep an op that has no method of its own here."""
        if name in REFUSED_OPS:
            raise Unsupported(REFUSED_OPS[name], f"{self.trace.name}: ops.{name}")
        condition = _condition(name, args)
        if condition is not None:
            condition = tuple(divide_constraint(c, self.ranges, self._known) for c in condition)
        return self._append(Step(name, args, kwargs, condition=condition))

    def _append(self, step: Step) -> Step:
        """Add a step to the region."""
        self.region.append(step)
        return step

    def index_expr(self, expr: sympy.Expr, dtype: torch.dtype) -> Step:
        """Keep an index as a number."""
        self._check_known(expr)
        if is_real(expr):
            return self._real(expr, dtype)
        expr = self._index(expr)
        if is_piecewise(expr):
            return self._computed(expr, dtype)
        exact = dtype in (torch.int32, torch.int64)  # a narrower one may wrap around or round
        return self._append(Step("index_expr", (expr, dtype), {}, index=expr if exact else None))

    def _computed(self, expr: sympy.Expr, dtype: torch.dtype) -> Step:
        """Keep an index that no map has as steps over integers."""

        def operation(name: str, operands: Sequence[Step]) -> Step:
            """Keep an operation on integers."""
            return self._append(Step(name, tuple(operands), {}))

        value = compute_piecewise(expr, lambda part: self.index_expr(part, torch.int64), operation)
        return self._append(Step("to_dtype", (value, dtype), {"src_dtype": torch.int64}))

    def _real(self, expr: sympy.Expr, dtype: torch.dtype) -> Step:
        """Keep a number that is computed of sizes as steps over floats."""

        def integer(part: sympy.Expr) -> Step:
            """Keep an integer as a float."""
            value = self.index_expr(part, torch.int64)
            return self._append(Step("to_dtype", (value, torch.float64), {"src_dtype": torch.int64}))

        def operation(name: str, operands: Sequence[Step]) -> Step:
            """Keep an operation on floats."""
            return self._append(Step(name, tuple(operands), {}))

        value = compute_real(expr, integer, lambda number: self.constant(number, torch.float64), operation)
        return self._append(Step("to_dtype", (value, dtype), {"src_dtype": torch.float64}))

    def value_expr(self, expr: sympy.Expr, dtype: torch.dtype) -> Step:
        """Keep an index as a number: Inductor calls so, from torch 2.13 on, one that is computed with."""
        return self.index_expr(expr, dtype)

    def constant(self, value: bool | float, dtype: torch.dtype) -> Step:
        """Keep a constant."""
        index = sympy.Integer(value) if isinstance(value, int) and not isinstance(value, bool) else None
        return self._append(Step("constant", (value, dtype), {}, index=index))

    def load(self, name: str, index: sympy.Expr) -> Step:
        """Keep a load; a gather if its index depends on data."""
        if depends_on_data(index):
            gather = make_gather(name, self.multiples.rewrite(index), self.positions)
            self.trace.gathers.append(gather)
            return self._append(Step("gather", (), {}, gather=gather))
        access = self._access(name, index, is_write=False)
        return self._append(Step("load", (), {}, access=access))

    def indirect_indexing(self, value: Step, size: sympy.Expr, check: bool = True, wrap_neg: bool = True) -> sympy.Expr:
        """Return the symbol that stands for a position which a tensor holds."""
        symbol = position_symbol(len(self.positions))
        self.positions[symbol] = Position(value, self.multiples.rewrite(sympy.sympify(size)), check, wrap_neg)
        return symbol

    def _check_known(self, *expressions: object) -> None:
        """Raise Unsupported(indirect_index) if one depends on data."""
        if depends_on_data(*expressions):
            raise Unsupported(
                Reason.indirect_index, f"{self.trace.name}: more than a load depends on a position that a tensor holds"
            )

    def load_seed(self, name: str, index: int) -> Step:
        """Keep the load of a seed of random numbers."""
        self.trace.seeds.add(name)
        return self.load(name, sympy.Integer(index))

    def store(self, name: str, index: sympy.Expr, value: object, mode: str | None = None) -> None:
        """Keep a store; Unsupported(atomics) for one that adds to memory."""
        if mode is not None:
            raise Unsupported(Reason.atomics, f"{self.trace.name}: store with mode {mode}")
        self._check_known(index)
        access = self._access(self.trace.overwrites.get(name, name), index, is_write=True)
        self._append(Step("store", (value,), {}, access=access))

    def store_reduction(self, name: str, index: sympy.Expr, value: object) -> None:
        """Keep the store of a reduction's result."""
        self.store(name, index, value)

    def reduction(self, dtype: torch.dtype, src_dtype: torch.dtype, reduction_type: str, value: object) -> Any:
        """Keep a reduction, and return its results; one that finds two is two."""
        if reduction_type in EXTREMES_AND_INDICES:
            extreme, index = EXTREMES_AND_INDICES[reduction_type]
            found = self.reduction(src_dtype, src_dtype, extreme, _without_index(value))
            return found, self.reduction(torch.int64, src_dtype, index, value)
        if reduction_type in EXTREMES:
            reduction_type, value = EXTREMES[reduction_type], _without_index(value)
        step = self._append(Step("reduction", (dtype, src_dtype, reduction_type, value), {}))
        count = inductor.reduction_outputs(reduction_type)
        return step if count == 1 else tuple(Component(step, i) for i in range(count))

    def masked(self, mask: object, body: Callable[[], object], other: object) -> Step:
        """Keep a masked block; Unsupported(non_affine_mask) if the mask depends on data."""
        condition = getattr(mask, "condition", None)
        if condition is None:
            raise Unsupported(Reason.non_affine_mask, f"{self.trace.name}: the mask depends on data")
        outer = self.region, self.guards, self.ranges
        self.region, self.guards = [], self.guards + condition
        self.ranges = guarded_ranges(self.trace, self.guards)
        result, inner = body(), self.region
        self.region, self.guards, self.ranges = outer
        return self._append(Step("masked", (mask, result, other), {}, region=inner))

    def check_bounds(self, expr: sympy.Expr, size: sympy.Expr, lower: bool, upper: bool) -> None:
        """Drop a check that holds for every iteration; Unsupported(side_effect) for any other."""
        self._check_known(expr, size)
        span = bounds(expand(self.multiples.rewrite(expr)), self.ranges)
        holds = span is not None and (
            (not lower or self._known(sympy.Ge(span[0], 0)))
            and (not upper or self._known(sympy.Lt(span[1], self.multiples.rewrite(size))))
        )
        if not holds:
            raise Unsupported(Reason.side_effect, f"{self.trace.name}: a check that {expr} < {size}")

    def _index(self, expr: sympy.Expr) -> sympy.Expr:
        """Return an index in the new variables of the sizes."""
        rewritten = without_decided(expand(self.multiples.rewrite(expr)), self.ranges, self._known)
        return drop_divisions(rewritten, self.ranges, self._known, self.guards)

    def _given(self) -> dict[sympy.Symbol, sympy.Expr]:
        """Return the numbers of the variables that guards leave one value, as each of two equal parts of a `cat` has.

        With `i = 0` the index `n*i + n*j` is that of row `j`, and not of row `i + j`.
        """
        loops = (self.trace.iter_vars + self.trace.reduce_vars) if self.guards else []
        spans = {variable: self.ranges[variable] for variable, extent in loops if extent != 1}
        return {variable: low for variable, (low, high) in spans.items() if low == high and low.is_Integer}

    def _known(self, condition: sympy.Basic) -> bool:
        """Return True if a condition in the new variables of the sizes holds for every size."""
        return inductor.statically_known(self.multiples.restore(condition))

    def _access(self, name: str, index: sympy.Expr, is_write: bool) -> LinearAccess:
        """Add an access of the nest."""
        own, given = self._index(index), self._given()
        own = expand(own.xreplace(given)) if given else own
        access = LinearAccess(name, own, self.ranges, is_write, self.guards)
        self.trace.accesses.append(access)
        return access


@functools.cache
def _tracer_class() -> type:
    """Return the class of the handler, made late: its base is Inductor's, which is not imported with this package."""
    return type("Tracer", (_Tracing, inductor.ops_handler_base()), {})


def _condition(op: str, args: tuple[Any, ...]) -> Condition | None:
    """Return the symbolic meaning of a comparison of index expressions, or of a conjunction of two such."""
    if op in ("and_", "logical_and", "bitwise_and"):
        left, right = (getattr(a, "condition", None) for a in args)
        return None if left is None or right is None else left + right
    if op not in ("lt", "le", "gt", "ge", "eq"):
        return None
    left, right = (getattr(a, "index", None) for a in args)
    if left is None or right is None:
        return None
    difference = sympy.expand(right - left)
    return {
        "lt": (difference - 1,),
        "le": (difference,),
        "gt": (-difference - 1,),
        "ge": (-difference,),
        "eq": (difference, -difference),
    }[op]


def guarded_ranges(trace: NestTrace, guards: Condition) -> Ranges:
    """Return the ranges of the iteration variables, narrowed by guards of them, or of a remainder of one."""
    ranges = {v: (sympy.Integer(0), size - 1) for v, size in trace.iter_vars + trace.reduce_vars}
    equations = [constraint for constraint in guards if -constraint in guards]
    # A remainder narrows numbers, and what is narrowed by a symbolic extent may be none.
    for equation in equations:
        _narrow_by_remainder(ranges, equation)
    for constraint in guards:
        _narrow(ranges, constraint)
    for equation in equations:
        _narrow_by_remainder(ranges, equation)
    return ranges


def _narrow(ranges: Ranges, constraint: sympy.Expr) -> None:
    """Narrow ranges by a constraint that is at least zero.

    `2*i + j - 2 >= 0` with `j < 2` says that `i` is 1 at least.
    """
    for variable in constraint.free_symbols & set(ranges):
        factor = constraint.coeff(variable)
        rest = sympy.expand(constraint - factor * variable)
        span = bounds(rest, ranges) if variable not in rest.free_symbols else None
        limit = None if span is None else _quotient_below(span[1], factor)
        if limit is None:
            continue
        low, high = ranges[variable]
        ranges[variable] = (sympy.Max(low, -limit), high) if factor > 0 else (low, sympy.Min(high, limit))


def _quotient_below(most: sympy.Expr, factor: sympy.Expr) -> sympy.Expr | None:
    """Return the integer at or below `most` by the size of a factor; None where that is no affine expression."""
    if abs(factor) == 1:
        return most
    return most // abs(factor) if factor.is_Integer and factor != 0 and most.is_Integer else None


def _narrow_by_remainder(ranges: Ranges, equation: sympy.Expr) -> None:
    """Narrow ranges to the first and the last value at which a remainder has the value that an equation gives it.

    `(2*i + j - 1) mod 2 = 0` with `0 <= j < 2` says that `j` is 1.
    """
    found = solve_remainder(equation)
    if found is None:
        return
    variable, value, divisor = found
    if variable not in ranges:
        return
    low, high = ranges[variable]
    if low.is_Integer:
        low += (value - low) % divisor
    if high.is_Integer:
        high -= (high - value) % divisor
    ranges[variable] = (low, high)
