//===- Reasons.h - why Bridge refuses ---------------------------*- C++ -*-===//

#ifndef BRIDGE_SUPPORT_REASONS_H
#define BRIDGE_SUPPORT_REASONS_H

#include "mlir/IR/Diagnostics.h"

#include <optional>

#include "Bridge/Support/Reasons.h.inc"

namespace mlir {
class Operation;
} // namespace mlir

namespace bridge {

/// Emits a remark at `op` whose text starts with `[reason] `; the caller adds
/// the rest. Python's diagnostic handler reads the reason back from the text.
mlir::InFlightDiagnostic refuse(mlir::Operation *op, Reason reason);

} // namespace bridge

#endif // BRIDGE_SUPPORT_REASONS_H
