//===- BridgeOps.cpp - operations of the bridge dialect -------------------===//

#include "Bridge/IR/BridgeOps.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace bridge;

#include "Bridge/IR/BridgeEnums.cpp.inc"

#define GET_OP_CLASSES
#include "Bridge/IR/BridgeOps.cpp.inc"

//===----------------------------------------------------------------------===//
// SpecialOp
//===----------------------------------------------------------------------===//

LogicalResult SpecialOp::verify() {
  if (getInputs().empty())
    return emitOpError("needs an operand");
  return success();
}

//===----------------------------------------------------------------------===//
// ConvertOp
//===----------------------------------------------------------------------===//

/// Returns the width in bits of the torch integer dtype `dtype`, 0 if it is
/// none.
static unsigned integerWidth(StringRef dtype) {
  return llvm::StringSwitch<unsigned>(dtype)
      .Cases({"int8", "uint8"}, 8)
      .Cases({"int16", "uint16"}, 16)
      .Cases({"int32", "uint32"}, 32)
      .Cases({"int64", "uint64"}, 64)
      .Default(0);
}

/// True if a value of the torch floating-point dtype `dtype` has type `type`.
static bool isFloatOf(StringRef dtype, Type type) {
  return llvm::StringSwitch<bool>(dtype)
      .Case("float16", type.isF16())
      .Case("bfloat16", type.isBF16())
      .Case("float32", type.isF32())
      .Case("float64", type.isF64())
      .Case("float8_e4m3fn", isa<Float8E4M3FNType>(type))
      .Case("float8_e5m2", isa<Float8E5M2Type>(type))
      .Case("float8_e4m3fnuz", isa<Float8E4M3FNUZType>(type))
      .Case("float8_e5m2fnuz", isa<Float8E5M2FNUZType>(type))
      .Default(false);
}

/// True if `type` can hold a value of the torch dtype `dtype`. A bool may be in
/// its register form (i1) or as memory holds it (i8); int64 may be an index.
static bool holds(Type type, StringRef dtype) {
  if (dtype == "bool")
    return type.isInteger(1) || type.isInteger(8);
  if (unsigned width = integerWidth(dtype))
    return type.isInteger(width) || (width == 64 && type.isIndex());
  return isFloatOf(dtype, type);
}

LogicalResult ConvertOp::verify() {
  if (!holds(getOperand().getType(), getFrom()))
    return emitOpError() << "operand of type " << getOperand().getType()
                         << " cannot hold dtype \"" << getFrom() << '"';
  if (!holds(getType(), getTo()))
    return emitOpError() << "result of type " << getType()
                         << " cannot hold dtype \"" << getTo() << '"';
  return success();
}

//===----------------------------------------------------------------------===//
// GatherOp
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::verify() {
  size_t count = getValues().size();
  if (count == 0)
    return emitOpError("needs a value");
  if (getChecks().size() != count || getWraps().size() != count)
    return emitOpError() << "needs a flag of each kind for each of " << count
                         << " values";
  return success();
}

//===----------------------------------------------------------------------===//
// CombineOp
//===----------------------------------------------------------------------===//

/// Returns how many values the state of a reduction of this kind has.
static unsigned stateSize(CombineKind kind) {
  switch (kind) {
  case CombineKind::welford:
    return 3;
  case CombineKind::argmax:
  case CombineKind::argmin:
  case CombineKind::online_softmax:
    return 2;
  case CombineKind::any:
  case CombineKind::xor_sum:
  case CombineKind::prod:
    return 1;
  }
  llvm_unreachable("unknown CombineKind");
}

/// Returns what the types of a state must be, if `types` are not that; else an
/// empty string.
static StringRef wrongTypes(CombineKind kind, TypeRange types) {
  switch (kind) {
  case CombineKind::welford:
  case CombineKind::online_softmax:
    if (!isa<FloatType>(types[0]) || !llvm::all_equal(types))
      return "one floating-point type";
    return "";
  case CombineKind::argmax:
  case CombineKind::argmin:
    return types[1].isIntOrIndex() ? "" : "an integer or index second type";
  case CombineKind::any:
    return types[0].isInteger(1) ? "" : "i1";
  case CombineKind::xor_sum:
    return isa<IntegerType>(types[0]) ? "" : "an integer type";
  case CombineKind::prod:
    return "";
  }
  llvm_unreachable("unknown CombineKind");
}

LogicalResult CombineOp::verify() {
  StringRef kind = stringifyCombineKind(getKind());
  unsigned size = stateSize(getKind());
  if (getAcc().size() != size)
    return emitOpError() << "of kind " << kind << " has " << size
                         << " accumulators, got " << getAcc().size();
  StringRef expected = wrongTypes(getKind(), getAcc().getTypes());
  if (!expected.empty())
    return emitOpError() << "of kind " << kind << " expects " << expected;
  return success();
}
