//===- Subscripts.h - subscripts in a short form ----------------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_SUBSCRIPTS_H
#define BRIDGE_ANALYSIS_SUBSCRIPTS_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// An expression of `operands`, as its dimensions, that is `expr` wherever
/// operands that are loops' variables are within their bounds: divisions of
/// sums are taken apart by digits, and `x - d * (x floordiv d)` is `x mod d`.
/// What upstream simplifies does not know the bounds, and has no `mod`.
mlir::AffineExpr simplifyInBounds(mlir::AffineExpr expr,
                                  llvm::ArrayRef<mlir::Value> operands);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_SUBSCRIPTS_H
