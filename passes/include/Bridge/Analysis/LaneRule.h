//===- LaneRule.h - no lane sees what another one stores --------*- C++ -*-===//
//
// The iterations of the loops below a band are lanes: the code generator runs
// them side by side, and no lane sees the memory that another one writes. A
// load is legal if its value comes from its own lane or can be recomputed, and
// if no other lane overwrites it. What a segment of lanes has reduced may be
// broadcast to all of them.
//
//===----------------------------------------------------------------------===//

#ifndef BRIDGE_ANALYSIS_LANERULE_H
#define BRIDGE_ANALYSIS_LANERULE_H

#include "Bridge/Analysis/FusionResult.h"
#include "Bridge/Analysis/ReachingStore.h"

namespace bridge {

/// True if the stored value reaches `load` in the lane that computed it: an
/// iteration of the store's loops is one lane of the load's loops, or a segment
/// of equally many consecutive lanes.
bool isSameLane(const ReachingStore &reaching, mlir::affine::AffineLoadOp load);

/// What may be computed again, of all that takes longer than a load:
/// transcendental functions, and random numbers.
struct Recomputation {
  bool math = true;
  bool draws = true;
};

/// True if the stored value can be recomputed in the place of `load`: its
/// computation reads nothing that the band writes between the two and contains
/// no loop and nothing that is not `allowed`, and none of the store's own loops
/// carries a reduction.
bool isRecomputable(const ReachingStore &reaching,
                    mlir::affine::AffineLoadOp load,
                    Recomputation allowed = {});

/// Returns the loads below `band` of memrefs that are written in an inner loop
/// or region of the band, or by several of its stores.
llvm::SmallVector<mlir::affine::AffineLoadOp>
getInnerFlows(mlir::affine::AffineForOp band);

/// True if one store writes the memref of `load`, in the lane of the load, or
/// if no lane writes what it reads before it, and no other lane after it: the
/// load needs no forwarding.
bool staysInLane(mlir::affine::AffineLoadOp load,
                 mlir::affine::AffineForOp band);

/// True if `load` reads in all lanes what one lane, or the lanes of one
/// segment, have reduced: the code generator can broadcast that.
bool isBroadcast(const ReachingStore &reaching,
                 mlir::affine::AffineLoadOp load);

/// True if the band iteration itself, and none of its lanes, stores before
/// `load` what that reads: all lanes have the value.
bool isAtHand(const ReachingStore &reaching, mlir::affine::AffineLoadOp load);

/// Refuses a band that has a load whose value is neither of its own lane nor
/// recomputable by what is `allowed`, nor, with `broadcasts`, one lane's for
/// all of them.
FusionResult checkLaneRule(mlir::affine::AffineForOp band,
                           Recomputation allowed = {}, bool broadcasts = false);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_LANERULE_H
