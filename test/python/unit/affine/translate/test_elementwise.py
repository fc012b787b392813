"""Test that every operation of Inductor's OpsHandler has a translation that lifts back, or a named refusal."""

import inspect
from types import SimpleNamespace

import pytest
import sympy
import torch
from torch._inductor.dtype_propagation import DtypePropagationOpsHandler
from torch._inductor.ops_handler import OpsHandler
from torch._inductor.virtualized import V
from torch.utils._sympy.functions import FloorDiv, ModularIndexing
from translated import COLUMNS, DTYPES, FLOATS, INTEGERS, ROWS, buffers_of, check, lift, pointwise, reason_of, translate

from bridge.reasons import Reason

pytestmark = pytest.mark.usefixtures("graph")


def call(name, *arguments, **keywords):
    """Return a body that applies one operation to in0."""
    return pointwise(lambda ops, values, _: getattr(ops, name)(values[0], *arguments, **keywords), 1)


def index_value(index, dtype):
    """Return a body that stores an expression of the iteration variables."""
    return pointwise(lambda ops, _, indices: ops.index_expr(index(*indices), dtype))


# ---------------------------------------------------------------------------------------------------------
# Elementwise operations
# ---------------------------------------------------------------------------------------------------------

#: Operations that are not functions of values alone, each with a test below.
STRUCTURAL = {
    "constant", "masked", "index_expr", "to_dtype", "to_dtype_bitcast", "trunc_to_int", "ceil_to_int", "floor_to_int",
    "round_to_int", "load", "store", "reduction", "store_reduction", "check_bounds", "where", "ldexp",
    "value_expr", "load_seed", "rand", "randn", "randint64", "indirect_indexing",
}  # fmt: skip

REFUSED = {
    "rand_eager": Reason.random,
    "randn_eager": Reason.random,
    "device_assert_async": Reason.side_effect,
    "partial_accumulate": Reason.side_effect,
    "inline_asm_elementwise": Reason.side_effect,
    "scan": Reason.unsupported_op,
    "sort": Reason.unsupported_op,
    "bucketize": Reason.unsupported_op,
    "fmaximum": Reason.unsupported_op,  # of torch 2.15: no loops have it, Inductor's code for a softmax does
    "frexp": Reason.unsupported_op,
    "dot": Reason.unsupported_op,
    "halide_clamp": Reason.unsupported_op,
    "output": Reason.unsupported_op,
    "placeholder": Reason.unsupported_op,
}

#: What has a meaning for numbers of every kind, for all but bool, and for integers and bool.
EVERY_KIND = (
    "add mul minimum maximum eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan isinf identity"
)
NUMBERS = "sub neg abs sign remainder fmod mod relu square signbit floordiv truncdiv int_truediv"
BITS = "bitwise_and bitwise_or bitwise_xor bitwise_not and_ or_ xor"
SHIFTS = "bitwise_left_shift bitwise_right_shift lshift rshift"


def public_operations():
    return [name for name, value in vars(OpsHandler).items() if inspect.isfunction(value) and not name.startswith("_")]


def arity(name):
    return len(inspect.signature(getattr(OpsHandler, name)).parameters) - 1


ELEMENTWISE = sorted(set(public_operations()) - STRUCTURAL - set(REFUSED))


def has_meaning(name, dtype):
    """Return True if Inductor's lowerings call an operation on values of a dtype."""
    if name in EVERY_KIND.split():
        return True
    if name in NUMBERS.split():
        return dtype != torch.bool
    if name in BITS.split():
        return not dtype.is_floating_point
    if name in SHIFTS.split():
        return not dtype.is_floating_point and dtype != torch.bool
    return dtype.is_floating_point


def result_dtype(name, dtype):
    """Return the dtype that Inductor's own propagation gives the result."""

    return getattr(DtypePropagationOpsHandler(), name)(*[SimpleNamespace(dtype=dtype) for _ in range(arity(name))])


def test_every_operation_is_known():
    """Check that each operation of Inductor has a translation or a refusal, also new ones."""
    structural = STRUCTURAL & set(public_operations())
    assert set(public_operations()) == set(ELEMENTWISE) | structural | (set(REFUSED) & set(public_operations()))
    assert len(ELEMENTWISE) > 100


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name):
    count = arity(name)
    body = pointwise(lambda ops, values, _: getattr(ops, name)(*values), count)
    for dtype in DTYPES:
        meaningful = has_meaning(name, dtype)
        result = result_dtype(name, dtype) if meaningful else dtype
        reason = reason_of(body, buffers_of(dtype, result, count))
        assert reason is None if meaningful else reason in (None, Reason.unsupported_op), dtype


@pytest.mark.parametrize("name", sorted(set(REFUSED) & set(public_operations())))
def test_refused(name):
    arguments = [1.0 if name == "fmaximum" else None] * arity(name)  # of numbers its result has a dtype
    body = pointwise(lambda ops, _, __: getattr(ops, name)(*arguments))
    assert reason_of(body, buffers_of(torch.float32, torch.float32)) == REFUSED[name]


@pytest.mark.parametrize("dtype", FLOATS)
def test_ldexp(dtype):
    buffers = {"in0": dtype, "in1": torch.int32, "out": dtype}
    check(pointwise(lambda ops, values, _: ops.ldexp(*values), 2), buffers)


@pytest.mark.parametrize("dtype", DTYPES)
def test_where(dtype):
    buffers = {"in0": torch.bool, "in1": dtype, "in2": dtype, "out": dtype}
    check(pointwise(lambda ops, values, _: ops.where(*values), 3), buffers)
    check(pointwise(lambda ops, values, _: ops.where(values[0], values[1], 1), 2), buffers)


def test_promotion():
    """Check the promotion of mixed operands and Python numbers; the wide unsigned dtypes have no promotion."""
    add = pointwise(lambda ops, values, _: ops.add(*values), 2)
    for pair in ([torch.int8, torch.float32], [torch.uint8, torch.int8], [torch.bool, torch.int64]):
        check(add, {"in0": pair[0], "in1": pair[1], "out": torch.promote_types(*pair)})
    half = call("mul", 0.5)
    check(half, buffers_of(torch.int32, torch.float32))
    module = translate(half, buffers_of(torch.int32, torch.float32), ((ROWS, COLUMNS), ()), True).module
    assert "arith.sitofp" in str(module) and "5.000000e-01" in str(module)
    mixed = {"in0": torch.uint32, "in1": torch.int32, "out": torch.int64}
    assert reason_of(add, mixed) == Reason.unsupported_dtype


def test_complex_numbers_are_refused():
    buffers = buffers_of(torch.complex64, torch.complex64)
    assert reason_of(pointwise(lambda ops, values, _: values[0], 1), buffers) == Reason.unsupported_dtype


# ---------------------------------------------------------------------------------------------------------
# Constants, conversions, indices
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*DTYPES, torch.uint16, torch.uint32, torch.uint64])
def test_constant(dtype):
    numbers: list[float] = [0, 1, True] if dtype == torch.bool else [0, 1, 100]
    if dtype.is_floating_point:
        numbers += [0.1, -0.0, float("inf"), -float("inf"), 1e30, 1e-40]
    if not dtype.is_floating_point and dtype != torch.bool:
        numbers += [torch.iinfo(dtype).max, torch.iinfo(dtype).min]
    for number in numbers:
        check(pointwise(lambda ops, _, __, n=number: ops.constant(n, dtype)), buffers_of(dtype, dtype))


@pytest.mark.parametrize("number", [0.1, 1e-5, 1 / 3, 16777217.0, 3.4e38, 0.7978845608028654])
def test_constants_keep_their_spelling(number):
    """Check that a lifted float32 constant is the shortest decimal, and the same float32."""
    body = pointwise(lambda ops, _, __: ops.constant(number, torch.float32))
    text = lift(translate(body, buffers_of(torch.float32, torch.float32), ((ROWS, COLUMNS), ()), False)).debug_str()
    (found,) = (line for line in text.splitlines() if "ops.constant" in line)
    lifted = float(found.split("(")[1].split(",")[0])
    assert torch.tensor(lifted, dtype=torch.float32) == torch.tensor(number, dtype=torch.float32)
    assert len(repr(lifted)) <= len(repr(number))


FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]
WIDE_UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("source", [*DTYPES, *FLOAT8, *WIDE_UNSIGNED], ids=str)
def test_to_dtype(source):
    for target in [*DTYPES, *FLOAT8, *WIDE_UNSIGNED]:
        for compute in (True, False):
            body = call("to_dtype", target, source, use_compute_types=compute)
            # For Triton the lift gives a store of integers float32: no module with roundings is the same then.
            check(body, buffers_of(source, target), triton=compute or source.is_floating_point)


def test_rounding_to_16_bits():
    """Check roundings between two operations: C++ has the conversions, Triton only with compute types off."""

    def module(rounds, compute):
        def chain(ops, values, _):
            rounded = ops.to_dtype(ops.exp(values[0]), torch.bfloat16, use_compute_types=compute)
            return ops.add(rounded, values[0])

        buffers = buffers_of(torch.float32, torch.float32)
        return str(translate(pointwise(chain, 1), buffers, ((ROWS, COLUMNS), ()), rounds).module)

    assert "bf16" not in module(rounds=False, compute=True)
    assert "arith.truncf" in module(rounds=False, compute=False)
    assert "bridge.convert" in module(rounds=True, compute=True)
    assert "arith.truncf" in module(rounds=True, compute=False)


@pytest.mark.parametrize("name", ["trunc_to_int", "ceil_to_int", "floor_to_int", "round_to_int"])
def test_rounding_to_integers(name):
    for source in [*FLOATS, torch.int32]:
        for target in (torch.int8, torch.int32, torch.int64, torch.uint8):
            body = call(name, target)
            check(body, buffers_of(source, target))


BITS_OF = {
    1: [torch.int8, torch.uint8, torch.float8_e8m0fnu, *FLOAT8],
    2: [torch.int16, torch.uint16, torch.bfloat16, torch.float16],
    4: [torch.int32, torch.uint32, torch.float32],
    8: [torch.int64, torch.uint64, torch.float64],
}


@pytest.mark.parametrize("width", BITS_OF)
def test_to_dtype_bitcast(width):
    for source in BITS_OF[width]:
        for target in BITS_OF[width]:
            body = call("to_dtype_bitcast", target, source)
            check(body, buffers_of(source, target))


def test_to_dtype_bitcast_between_widths_is_refused():
    for source, target in ((torch.int32, torch.int16), (torch.uint8, torch.bool), (torch.bool, torch.int8)):
        body = call("to_dtype_bitcast", target, source)
        assert reason_of(body, buffers_of(source, target)) == Reason.unsupported_op


def test_powers_of_two_are_bits_and_no_numbers():
    """Check that float8_e8m0fnu is refused: kernels have it as bytes, which a conversion would take for integers."""
    scales = torch.float8_e8m0fnu
    for source, target in ((torch.float32, scales), (scales, torch.float32)):
        assert reason_of(call("to_dtype", target, source), buffers_of(source, target)) == Reason.unsupported_dtype
    constant = pointwise(lambda ops, values, _: ops.constant(1.0, scales))
    assert reason_of(constant, buffers_of(scales, scales)) == Reason.unsupported_dtype


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_index_expr(dtype):
    affine = [lambda i, j: j, lambda i, j: 3 * i - j + 7]
    affine += [lambda i, j: FloorDiv(i + 2 * j, 5), lambda i, j: ModularIndexing(j + 1, 2, 4)]
    for index in affine:
        body = index_value(index, dtype)
        check(body, buffers_of(dtype, dtype))


def draw(name, *bounds):
    """Return a body that stores random numbers of the second seed."""

    def number(ops, _, indices):
        offset = ops.index_expr(indices[0] * COLUMNS + indices[1], torch.int32)
        limits = [ops.index_expr(sympy.Integer(bound), torch.int64) for bound in bounds]
        return getattr(ops, name)(ops.load_seed("seeds", 1), offset, *limits)

    return pointwise(number)


@pytest.mark.parametrize(
    ("name", "bounds", "dtype"),
    [("rand", (), torch.float32), ("randn", (), torch.float32), ("randint64", (-3, 1 << 40), torch.int64)],
)
def test_random_numbers(name, bounds, dtype):
    """Check that lifted code draws with the same seed and offset; the seed's place is an argument."""
    buffers = {"out": dtype, "seeds": torch.int64}
    check(draw(name, *bounds), buffers)
    lifted = lift(translate(draw(name, *bounds), buffers, ((ROWS, COLUMNS), ()), True)).debug_str()
    assert "ops.load_seed('seeds', 1)" in lifted
    assert f"ops.{name}(" in lifted


@pytest.mark.skipif(not hasattr(OpsHandler, "value_expr"), reason="from torch 2.13 on")
def test_value_expr():
    """Check an index that is computed with; Inductor finds out again which indices those are."""
    check(
        pointwise(lambda ops, _, indices: ops.value_expr(indices[1], torch.int64)), buffers_of(torch.int64, torch.int64)
    )


def test_index_expr_that_is_not_affine():
    for index in (lambda i, j: i * j, lambda i, j: i**2, lambda i, j: sympy.Max(i * j, 1)):
        body = index_value(index, torch.int64)
        assert reason_of(body, buffers_of(torch.int64, torch.int64)) == Reason.non_affine_index


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32])
def test_index_expr_that_is_the_larger_of_two(dtype):
    check(index_value(lambda i, j: sympy.Max(i - j, 1), dtype), buffers_of(dtype, dtype))


@pytest.mark.parametrize("again, keeps", [(False, False), (True, True)])
def test_a_value_that_is_extended_twice_has_no_rounding(again, keeps):
    """Check that a value extended twice has no rounding, beside a number that is rounded to float32.

    An extended product in float32 may be that number again; then its rounding is kept.
    """
    buffers = {"in0": torch.bfloat16, "in1": torch.float64, "out": torch.float64}

    def compute(ops, values, _):
        number = ops.to_dtype(values[1], torch.float32)
        row = ops.to_dtype(values[0], torch.float32)
        return ops.to_dtype(ops.mul(row, number) if again else row, torch.float64)

    def body(indices, _):
        ops = V.get_ops_handler()
        at = indices[0] * COLUMNS + indices[1]
        values = [ops.load("in0", at), ops.load("in1", at)]
        number = ops.to_dtype(ops.to_dtype(values[1], torch.float32), torch.int32)
        ops.store("out", at, ops.add(compute(ops, values, indices), ops.to_dtype(number, torch.float64)))

    assert translate(body, buffers, ((ROWS, COLUMNS), ()), rounds=False).keeps_roundings is keeps
