//===- Combiners.h - what a reduction adds to its state ---------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_COMBINERS_H
#define BRIDGE_ANALYSIS_COMBINERS_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "llvm/ADT/MapVector.h"

#include <optional>

namespace bridge {

/// The combiners of a loop, with the operands that each adds to its state.
using Combiners =
    llvm::MapVector<mlir::Operation *, llvm::SmallVector<mlir::OpOperand *>>;

/// Returns the combiners of the states that `loop` carries; nothing if one has
/// no known neutral element.
std::optional<Combiners> getCombiners(mlir::affine::AffineForOp loop);

/// Has a combiner add its neutral elements where `condition` does not hold.
/// `added`: its operands, or those of the combiner that it is a copy of.
void selectOrNeutral(mlir::OpBuilder &builder, mlir::Operation *combiner,
                     llvm::ArrayRef<mlir::OpOperand *> added,
                     mlir::Value condition);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_COMBINERS_H
