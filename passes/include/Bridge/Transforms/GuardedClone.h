//===- GuardedClone.h - a body in a part of a larger domain -----*- C++ -*-===//

#ifndef BRIDGE_TRANSFORMS_GUARDEDCLONE_H
#define BRIDGE_TRANSFORMS_GUARDEDCLONE_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/IntegerSet.h"

namespace bridge {

/// Clones what a loop body does into loops over a larger domain, of which only
/// the iterations in `guard` do it. Loops and pure operations run in all;
/// stores, and loads that would leave their memref or read what may not be
/// written yet, stand in an `affine.if`, a load's value being zero elsewhere.
class GuardedCloner {
public:
  /// operands: of `guard`, induction variables of loops around `builder`;
  /// `mapping` has the values of the body by those to use.
  GuardedCloner(mlir::OpBuilder &builder, mlir::IRMapping &mapping,
                mlir::IntegerSet guard, mlir::ValueRange operands)
      : builder(builder), mapping(mapping), guard(guard), operands(operands) {}

  void clone(mlir::Operation *op);

  /// Clones the operations of a loop's body but its terminator.
  void cloneBody(mlir::affine::AffineForOp loop);

private:
  mlir::OpBuilder &builder;
  mlir::IRMapping &mapping;
  mlir::IntegerSet guard;
  llvm::SmallVector<mlir::Value> operands;

  bool isSafe(mlir::affine::AffineLoadOp load);
  void cloneLoop(mlir::affine::AffineForOp loop);
  void cloneConjunction(mlir::affine::AffineIfOp op);
  void cloneGuarded(mlir::Operation *op);
};

} // namespace bridge

#endif // BRIDGE_TRANSFORMS_GUARDEDCLONE_H
