//===- GuardedClone.h - clone a body under a guard --------------*- C++ -*-===//

#ifndef BRIDGE_TRANSFORMS_GUARDEDCLONE_H
#define BRIDGE_TRANSFORMS_GUARDEDCLONE_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/IntegerSet.h"

namespace bridge {

/// Clones a loop body into loops over a larger domain, in which only the
/// iterations in `guard` execute it. Loops and pure operations run in all
/// iterations. Stores stand in an `affine.if`, and so do loads that would leave
/// their memref or read an element that may not be written yet; elsewhere their
/// value is zero.
class GuardedCloner {
public:
  /// `operands` are those of `guard`: induction variables of loops around
  /// `builder`. `mapping` maps values of the body to those to use instead.
  GuardedCloner(mlir::OpBuilder &builder, mlir::IRMapping &mapping,
                mlir::IntegerSet guard, mlir::ValueRange operands)
      : builder(builder), mapping(mapping), guard(guard), operands(operands) {}

  void clone(mlir::Operation *op);

  /// Clones the operations of a loop's body except its terminator.
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
