//===- Combiners.h - the operations that add to a loop's state --*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_COMBINERS_H
#define BRIDGE_ANALYSIS_COMBINERS_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "llvm/ADT/MapVector.h"

namespace bridge {

/// The combiners of a loop, with the operands that each adds to its state.
using Combiners =
    llvm::MapVector<mlir::Operation *, llvm::SmallVector<mlir::OpOperand *>>;

/// Returns the neutral element of each operand that a combiner adds to its
/// state. Empty if it is not known.
llvm::SmallVector<mlir::TypedAttr> getNeutral(mlir::Operation *combiner);

/// Returns the combiners of the states that `loop` carries, with the operands
/// that each adds; nothing if one has no known neutral element.
std::optional<Combiners> getCombiners(mlir::affine::AffineForOp loop);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_COMBINERS_H
