//===- ReachingStore.h - the store that a load reads from -------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_REACHINGSTORE_H
#define BRIDGE_ANALYSIS_REACHINGSTORE_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// The store whose value a load of the same band iteration reads, and the
/// iteration of the store that writes it: each induction variable of `loops`,
/// the store's loops below the band, is a result of `map` applied to
/// `operands`, which dominate the load.
struct ReachingStore {
  mlir::affine::AffineStoreOp store;
  llvm::SmallVector<mlir::affine::AffineForOp> loops;
  mlir::AffineMap map;
  llvm::SmallVector<mlir::Value> operands;
};

/// Solves the access relations for the iteration of `loops`, which are around
/// `store`, that writes what `load` reads. All other variables are the same for
/// both. Nothing if the solution is not proven to be an iteration of `loops`.
std::optional<ReachingStore>
solveReachingStore(mlir::affine::AffineStoreOp store,
                   llvm::ArrayRef<mlir::affine::AffineForOp> loops,
                   mlir::affine::AffineLoadOp load);

/// Returns the store below `band` (the innermost loop of a band) that `load`
/// reads from. Nothing if it is not proven that exactly one store reaches it.
std::optional<ReachingStore> getReachingStore(mlir::affine::AffineLoadOp load,
                                              mlir::affine::AffineForOp band);

/// True if `first` comes before `second` in the innermost block that holds
/// both; they are below `band`.
bool precedes(mlir::Operation *first, mlir::Operation *second,
              mlir::affine::AffineForOp band);

/// True if the store and the load may access one element in the same band
/// iteration, whichever comes first.
bool mayMeetInBand(mlir::affine::AffineStoreOp store,
                   mlir::affine::AffineLoadOp load,
                   mlir::affine::AffineForOp band);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_REACHINGSTORE_H
