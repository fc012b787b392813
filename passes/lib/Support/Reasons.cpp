//===- Reasons.cpp - why Bridge refuses -----------------------------------===//

#include "Bridge/Support/Reasons.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

#include "Bridge/Support/Reasons.cpp.inc"

InFlightDiagnostic bridge::refuse(Operation *op, Reason reason) {
  return op->emitRemark() << '[' << stringifyReason(reason) << "] ";
}
