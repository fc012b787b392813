//===- Forwarding.h - values between the lanes of a band --------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_FORWARDING_H
#define BRIDGE_ANALYSIS_FORWARDING_H

#include "Bridge/Analysis/Legality.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// The iteration of a store that writes what a load of the same band iteration
/// reads: each induction variable of the store's loops below the band as a
/// result of `map`, applied to `operands`, which dominate the load.
struct Source {
  mlir::affine::AffineStoreOp store;
  llvm::SmallVector<mlir::affine::AffineForOp> loops;
  mlir::AffineMap map;
  llvm::SmallVector<mlir::Value> operands;
};

/// The iteration of `loops`, which are around `store`, that writes what `load`
/// reads: solved from the access relations and shown to be one. All other
/// variables are the same for both.
std::optional<Source>
solveStore(mlir::affine::AffineStoreOp store,
           llvm::ArrayRef<mlir::affine::AffineForOp> loops,
           mlir::affine::AffineLoadOp load);

/// The one store below `band` (the innermost loop of a band) whose element
/// `load` reads, if the access relations prove that there is just one: solved
/// for the store's iteration, which is shown to be one of its loops'.
std::optional<Source> getSource(mlir::affine::AffineLoadOp load,
                                mlir::affine::AffineForOp band);

/// Whether the value reaches the load in the lane that computed it: the loads'
/// and the store's inner loops have one iteration each for a lane, in order.
bool isSameLane(const Source &source, mlir::affine::AffineLoadOp load);

/// Whether the stored value can be computed again anywhere in the band
/// iteration: no reduction of the store's own loops is part of it. Without
/// `math`, no transcendental function either.
bool isRecomputable(const Source &source, bool math = true);

/// The loads below `band` of memrefs that an inner loop of the band writes, or
/// that several stores of it do.
llvm::SmallVector<mlir::affine::AffineLoadOp>
getInnerFlows(mlir::affine::AffineForOp band);

/// Lanes of one band iteration run side by side and see no memory that another
/// writes. Nothing if every value that a load needs is its own lane's or can be
/// computed again; transcendental functions only with `math`.
std::optional<Objection> getLaneObjection(mlir::affine::AffineForOp band,
                                          bool math = true);

/// Whether `load` may stay: its memref is written by one store, in its lane.
bool staysInLane(mlir::affine::AffineLoadOp load,
                 mlir::affine::AffineForOp band);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_FORWARDING_H
