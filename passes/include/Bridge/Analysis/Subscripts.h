//===- Subscripts.h - simplification of subscripts --------------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_SUBSCRIPTS_H
#define BRIDGE_ANALYSIS_SUBSCRIPTS_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// True for a `floordiv`, `ceildiv` or `mod`.
bool isDivision(mlir::AffineExpr expr);

/// Returns an expression that equals `expr` wherever the operands that are
/// induction variables are within their bounds. `operands` are the dimensions
/// of both. Divisions of sums are split by digits of a mixed radix, and
/// `x - d * (x floordiv d)` becomes `x mod d`. Upstream's simplification does
/// not know the bounds and makes no `mod`.
mlir::AffineExpr simplifyInBounds(mlir::AffineExpr expr,
                                  llvm::ArrayRef<mlir::Value> operands);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_SUBSCRIPTS_H
