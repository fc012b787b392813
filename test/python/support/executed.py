"""Run affine IR of Bridge's on the CPU, through MLIR's ExecutionEngine.

Upstream's operations are lowered by upstream's passes.  Those of the dialect, and conversions that LLVM lacks, become
calls: of torch's function of the same name, or of a function in MLIR's text, after Inductor's own definitions.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable
from typing import Any

import torch

from bridge._native._bridge_enum_gen import CombineKind, SpecialFn
from bridge.affine import dtypes
from bridge.affine.mlir_runtime import context, ir, load_mlir, passmanager

_LOWERING = (
    "lower-affine",
    # A bf16 value that lives across blocks wants a function of the C library, which not every one has.
    "control-flow-sink",
    "convert-scf-to-cf",
    "arith-expand{include-bf16=true}",
    "convert-math-to-llvm",
    "convert-math-to-libm",
    "expand-strided-metadata",
    "convert-arith-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "reconcile-unrealized-casts",
)

#: One step of each reduction, as torch/_inductor/runtime/triton_helpers.py defines it; T is a type.
_COMBINERS = {
    "welford": """
func.func private @NAME(%ma: T, %qa: T, %wa: T, %mb: T, %qb: T, %wb: T) -> (T, T, T) {
  %zero = arith.constant 0.0 : T
  %delta = arith.subf %mb, %ma : T
  %w = arith.addf %wa, %wb : T
  %none = arith.cmpf oeq, %w, %zero : T
  %ratio = arith.divf %wb, %w : T
  %share = arith.select %none, %zero, %ratio : T
  %step = arith.mulf %delta, %share : T
  %m = arith.addf %ma, %step : T
  %q = arith.addf %qa, %qb : T
  %square = arith.mulf %delta, %delta : T
  %weighted = arith.mulf %square, %wa : T
  %between = arith.mulf %weighted, %share : T
  %sum = arith.addf %q, %between : T
  return %m, %sum, %w : T, T, T
}""",
    "online_softmax": """
func.func private @NAME(%ma: T, %sa: T, %mb: T, %sb: T) -> (T, T) {
  %m = arith.maximumf %ma, %mb : T
  %a = func.call @scale_NAME(%ma, %m, %sa) : (T, T, T) -> T
  %b = func.call @scale_NAME(%mb, %m, %sb) : (T, T, T) -> T
  %s = arith.addf %a, %b : T
  return %m, %s : T, T
}
func.func private @scale_NAME(%m: T, %max: T, %s: T) -> T {
  %zero = arith.constant 0.0 : T
  %difference = arith.subf %m, %max : T
  %same = arith.cmpf oeq, %m, %max : T
  %exponent = arith.select %same, %zero, %difference : T
  %factor = math.exp %exponent : T
  %scaled = arith.mulf %s, %factor : T
  return %scaled : T
}""",
    "any": "func.func private @NAME(%a: T, %b: T) -> T {\n  %c = arith.ori %a, %b : T\n  return %c : T\n}",
    "xor_sum": "func.func private @NAME(%a: T, %b: T) -> T {\n  %c = arith.xori %a, %b : T\n  return %c : T\n}",
    "prod": "func.func private @NAME(%a: T, %b: T) -> T {\n  %c = arith.mulf %a, %b : T\n  return %c : T\n}",
}

#: argmax and argmin: a NaN wins, of equal values the one with the smaller index.
_ARG_COMBINER = """
func.func private @NAME(%a: T, %i: I, %b: T, %j: I) -> (T, I) {
  %beats = CMP PREDICATE, %b, %a : T
  %equal = CMP EQUAL, %b, %a : T
  %a_nan = CMP UNEQUAL, %a, %a : T
  %b_nan = CMP UNEQUAL, %b, %b : T
  %both = arith.andi %a_nan, %b_nan : i1
  %tie = arith.ori %equal, %both : i1
  %true = arith.constant true
  %a_number = arith.xori %a_nan, %true : i1
  %new_nan = arith.andi %b_nan, %a_number : i1
  %b_number = arith.xori %b_nan, %true : i1
  %b_beats = arith.andi %beats, %b_number : i1
  %number_wins = arith.andi %b_beats, %a_number : i1
  %first = arith.cmpi slt, %j, %i : I
  %tie_wins = arith.andi %tie, %first : i1
  %wins = arith.ori %new_nan, %number_wins : i1
  %take = arith.ori %wins, %tie_wins : i1
  %value = arith.select %take, %b, %a : T
  %index = arith.select %take, %j, %i : I
  return %value, %index : T, I
}"""


def _drawn(draw: Callable[..., torch.Tensor], seed: torch.Tensor, offset: torch.Tensor, *bounds: Any) -> torch.Tensor:
    """Return a random number of a seed and an offset; any function will do that both compared sides use."""
    generator = torch.Generator().manual_seed((int(seed) << 32 ^ int(offset)) % (1 << 63))
    return draw(*map(int, bounds), (), generator=generator)


#: `bridge.special` under another name than torch has.
_TORCH_NAMES = {
    "truncdiv": functools.partial(torch.div, rounding_mode="trunc"),
    "floordiv": torch.floor_divide,
    "int_truediv": torch.true_divide,
    "truediv": torch.true_divide,
    "div_rn": torch.true_divide,
    "mul_rn": torch.mul,
    "identity": torch.clone,
    "rand": functools.partial(_drawn, torch.rand),
    "randn": functools.partial(_drawn, torch.randn),
    "randint64": functools.partial(_drawn, torch.randint),
}


def execute(text: str, buffers: list[torch.Tensor], sizes: list[int]) -> None:
    """Run the one function of a module: `buffers` are its memrefs, contiguous, and change in place.

    sizes: its arguments of type index, in order.
    """
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        calls = _Calls(module)
        (function,) = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
        function.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        name = ir.StringAttr(function.attributes["sym_name"]).value
        _store_flags_in_bytes(function)
        function.walk(calls.replace)
        for operation in calls.replaced:
            operation.erase()
        passmanager.PassManager.parse(f"builtin.module({','.join(_LOWERING)})").run(module.operation)
        # No optimization: it would move values across blocks again.
        engine = load_mlir("execution_engine").ExecutionEngine(module, opt_level=0)
        for symbol, callback in calls.callbacks.items():
            engine.raw_register_runtime(symbol, ctypes.cast(callback, ctypes.c_void_p))
        descriptors = [ctypes.pointer(ctypes.pointer(_descriptor(buffer))) for buffer in buffers]
        engine.invoke(name, *descriptors, *[ctypes.pointer(ctypes.c_int64(size)) for size in sizes])


def _descriptor(buffer: torch.Tensor) -> ctypes.Structure:
    """Return MLIR's strided memref descriptor of a contiguous tensor."""
    assert buffer.is_contiguous()
    rank = buffer.dim()
    fields = [("allocated", ctypes.c_int64), ("aligned", ctypes.c_int64), ("offset", ctypes.c_int64)]
    fields += [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)] if rank else []
    descriptor = type("Descriptor", (ctypes.Structure,), {"_fields_": fields})()
    descriptor.allocated = descriptor.aligned = buffer.data_ptr()
    if rank:
        descriptor.sizes[:], descriptor.strides[:] = buffer.shape, buffer.stride()
    return descriptor


def _store_flags_in_bytes(function: Any) -> None:
    """Turn buffers of i1 into buffers of i8, since LLVM stores no single bits."""
    block = function.regions[0].blocks[0]
    arguments = list(block.arguments)
    allocated = [op.results[0] for op in block.operations if op.operation.name == "memref.alloc"]
    for buffer in (*arguments, *allocated):
        _hold_bytes(buffer)
    types = [a.type for a in arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))


def _hold_bytes(buffer: Any) -> None:
    """Change the type of a memref of i1, and of the views of it."""
    flags = re.compile(r"([x<])i1\b")
    if not flags.search(str(buffer.type)):
        return
    buffer.set_type(ir.Type.parse(flags.sub(r"\1i8", str(buffer.type))))
    for use in list(buffer.uses):
        user = use.owner.operation
        if user.name in ("affine.load", "affine.store"):
            _access_byte(user)
            continue
        for view in user.results:
            _hold_bytes(view)


def _access_byte(access: Any) -> None:
    byte, flag = (ir.IntegerType.get_signless(width) for width in (8, 1))
    with ir.InsertionPoint(access):
        if access.name == "affine.store":
            access.operands[0] = _create("arith.extui", access.operands[0], byte)
            return
        operands, attributes = list(access.operands), {"map": access.attributes["map"]}
        loaded = ir.Operation.create("affine.load", results=[byte], operands=operands, attributes=attributes)
        access.result.replace_all_uses_with(_create("arith.trunci", loaded.result, flag))
    access.erase()


class _Calls:
    """Replace what upstream cannot lower by calls; values go to Python as double or int64."""

    def __init__(self, module: Any):
        self.module = module
        self.callbacks: dict[str, Any] = {}
        self.declared: set[str] = set()
        self.replaced: list[Any] = []

    def replace(self, operation: Any) -> Any:
        operation = operation.operation
        if operation.name == "bridge.combine":
            self._combine(operation)
        elif operation.name == "bridge.special":
            self._special(operation)
        elif operation.name == "bridge.gather":
            self._gather(operation)
        elif operation.name == "bridge.convert":
            names = [ir.StringAttr(operation.attributes[key]).value for key in ("from", "to")]
            self._convert(operation, *map(dtypes.dtype_from_name, names))
        elif operation.name in ("arith.extf", "arith.truncf") and "f8" in _types(operation):
            source, target = operation.operands[0], operation.result
            self._convert(operation, *(dtypes.signed_dtype(str(value.type)) for value in (source, target)))
        return ir.WalkResult.ADVANCE

    def _special(self, operation: Any) -> None:
        name = SpecialFn(ir.IntegerAttr(operation.attributes["fn"]).value).name
        operands = [dtypes.signed_dtype(str(value.type)) for value in operation.operands]
        result = dtypes.signed_dtype(str(operation.result.type))
        function = _TORCH_NAMES.get(name) or getattr(torch, name, None) or getattr(torch.special, name)

        def compute(*values: float) -> float:
            return _number(function(*map(_tensor, values, operands)).to(result))

        self._call_python(operation, f"special_{name}", compute, operands, result)

    def _gather(self, operation: Any) -> None:
        """Replace a gather by a load from the buffer as one dimension, a view that nothing else has of it."""
        memref, place, *rest = list(operation.operands)
        values, sizes, strides = (rest[n * len(rest) // 3 : (n + 1) * len(rest) // 3] for n in range(3))
        with ir.InsertionPoint(operation):
            for value, size, stride in zip(values, sizes, strides, strict=True):
                position = _inside(_create("arith.index_cast", value, ir.IndexType.get()), size)
                place = _index("arith.addi", place, _index("arith.muli", position, stride))
            loaded = ir.Operation.create(
                "memref.load", results=[operation.result.type], operands=[_flat(memref), place]
            )
        self._take_the_place(operation, [loaded.result])

    def _convert(self, operation: Any, source: torch.dtype, target: torch.dtype) -> None:
        def compute(value: float) -> float:
            return _number(_tensor(value, source).to(target))

        self._call_python(operation, "convert", compute, [source], target)

    def _call_python(self, operation: Any, name: str, compute: Callable, operands: list, result: torch.dtype) -> None:
        symbol = "_".join([name, *map(dtypes.dtype_name, [*operands, result])])
        wide = [_wide(dtype) for dtype in operands]
        if symbol not in self.declared:
            self.declared.add(symbol)
            kinds: list[Any] = [_CTYPES[text] for text in (_wide(result), *wide)]
            self.callbacks[symbol] = ctypes.CFUNCTYPE(*kinds)(functools.cache(compute))
            self._add(f"func.func private @{symbol}({', '.join(wide)}) -> {_wide(result)}")
        with ir.InsertionPoint(operation):
            values = [_widened(v, d) for v, d in zip(operation.operands, operands, strict=True)]
            called = _call(symbol, values, [ir.Type.parse(_wide(result))])
            narrow = _narrowed(called.results[0], result, operation.result.type)
        self._take_the_place(operation, [narrow])

    def _combine(self, operation: Any) -> None:
        kind = CombineKind(ir.IntegerAttr(operation.attributes["kind"]).value).name
        types = [str(value.type) for value in operation.results]
        symbol = "_".join(["combine", kind, *types])
        if symbol not in self.declared:
            self.declared.add(symbol)
            self._add(_combiner(kind, types).replace("NAME", symbol))
        with ir.InsertionPoint(operation):
            called = _call(symbol, list(operation.operands), [value.type for value in operation.results])
        self._take_the_place(operation, list(called.results))

    def _add(self, text: str) -> None:
        parsed = ir.Module.parse(text)
        for function in list(parsed.body.operations):
            function.operation.detach_from_parent()
            self.module.body.append(function)

    def _take_the_place(self, operation: Any, values: list[Any]) -> None:
        for old, new in zip(operation.results, values, strict=True):
            old.replace_all_uses_with(new)
        self.replaced.append(operation)


def _index(name: str, *operands: Any) -> Any:
    return ir.Operation.create(name, results=[ir.IndexType.get()], operands=operands).result


def _inside(position: Any, size: Any) -> Any:
    """Return a position inside of a size, counted from the end if negative; random buffers may hold any number."""
    remainder = _index("arith.remsi", position, size)
    return _index("arith.remsi", _index("arith.addi", remainder, size), size)


def _flat(memref: Any) -> Any:
    """Return a memref as one dimension, of as many elements as an index can count."""
    element = ir.MemRefType(memref.type).element_type
    extent = (1 << 62) - 1
    flat = ir.Type.parse(f"memref<{extent}x{element}, strided<[1]>>")
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get([0]),
        "static_sizes": ir.DenseI64ArrayAttr.get([extent]),
        "static_strides": ir.DenseI64ArrayAttr.get([1]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
    }
    return ir.Operation.create(
        "memref.reinterpret_cast", results=[flat], operands=[memref], attributes=attributes
    ).result


_CTYPES = {"f64": ctypes.c_double, "i64": ctypes.c_int64}


def _is_f8(dtype: torch.dtype) -> bool:
    return dtypes.kind(dtype) == "float" and dtype.itemsize == 1


def _wide(dtype: torch.dtype) -> str:
    """Return the type in which a value goes to Python: LLVM has no float of 8 bits, which go as integers."""
    return "f64" if dtypes.kind(dtype) == "float" and not _is_f8(dtype) else "i64"


def _tensor(value: float, dtype: torch.dtype) -> torch.Tensor:
    if _is_f8(dtype):
        return torch.tensor(value, dtype=torch.uint8).view(dtype)
    return torch.tensor(value, dtype=dtype)


def _number(tensor: torch.Tensor) -> float:
    return tensor.view(torch.uint8).item() if _is_f8(tensor.dtype) else tensor.item()


def _combiner(kind: str, types: list[str]) -> str:
    if kind not in ("argmax", "argmin"):
        return re.sub(r"\bT\b", types[0], _COMBINERS[kind])
    compare, greater, less, equal, unequal = _COMPARISONS[types[0].startswith("i")]
    text = _ARG_COMBINER.replace("PREDICATE", greater if kind == "argmax" else less)
    text = text.replace("CMP", compare).replace("UNEQUAL", unequal).replace("EQUAL", equal)
    return re.sub(r"\bI\b", types[1], re.sub(r"\bT\b", types[0], text))


#: By whether the values are integers: operation; greater, less, equal, unequal (to itself: not a number).
_COMPARISONS = {False: ("arith.cmpf", "ogt", "olt", "oeq", "une"), True: ("arith.cmpi", "sgt", "slt", "eq", "ne")}


def _types(operation: Any) -> str:
    return " ".join(str(value.type) for value in (*operation.operands, *operation.results))


def _call(symbol: str, operands: list[Any], results: list[Any]) -> Any:
    callee = {"callee": ir.FlatSymbolRefAttr.get(symbol)}
    return ir.Operation.create("func.call", results=results, operands=operands, attributes=callee)


def _create(name: str, value: Any, result: Any) -> Any:
    return value if value.type == result else ir.Operation.create(name, results=[result], operands=[value]).result


def _widened(value: Any, dtype: torch.dtype) -> Any:
    if _is_f8(dtype):
        bits = _create("arith.bitcast", value, ir.IntegerType.get_signless(8))
        return _create("arith.extui", bits, ir.IntegerType.get_signless(64))
    if dtypes.kind(dtype) != "float":
        extend = "arith.extsi" if dtypes.kind(dtype) == "signed" else "arith.extui"
        return _create(extend, value, ir.IntegerType.get_signless(64))
    if dtype.itemsize == 2:
        value = _create("arith.extf", value, ir.F32Type.get())
    return _create("arith.extf", value, ir.F64Type.get())


def _narrowed(value: Any, dtype: torch.dtype, result: Any) -> Any:
    if _is_f8(dtype):
        return _create("arith.bitcast", _create("arith.trunci", value, ir.IntegerType.get_signless(8)), result)
    if dtypes.kind(dtype) != "float":
        return _create("arith.trunci", value, result)
    if dtype.itemsize == 2:
        value = _create("arith.truncf", value, ir.F32Type.get())
    return _create("arith.truncf", value, result)
