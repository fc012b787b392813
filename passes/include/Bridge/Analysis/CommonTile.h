//===- CommonTile.h - one inner extent for several nests --------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_COMMONTILE_H
#define BRIDGE_ANALYSIS_COMMONTILE_H

#include "Bridge/Analysis/Nest.h"

namespace bridge {

/// What a common tile may cost.
struct TileLimits {
  /// The most pieces that one nest is split into.
  int64_t maxPieces;
  /// The fewest iterations of a tile.
  int64_t minTile;
};

/// Returns an extent that divides the innermost extents of all domains. If the
/// limits allow it, the extent also divides the offsets between accesses and
/// the points at which guards change: then pieces of different nests access the
/// same elements, and no guard is left. Nothing if only a tile beyond the
/// limits divides all extents.
std::optional<int64_t> getCommonTile(llvm::ArrayRef<InnerDomain> domains,
                                     const TileLimits &limits);

/// True if the lanes of a nest differ in what they do, or read elements of
/// other lanes: the nest has guards along the lanes, or reads a memref at
/// several offsets.
bool hasShifts(const InnerDomain &domain);

/// Returns the contiguous pieces of a box: the innermost loop in steps of
/// `tile`, the loops around it one iteration at a time.
llvm::SmallVector<mlir::AffineMap>
getContiguousPieces(llvm::ArrayRef<int64_t> extents, int64_t tile,
                    mlir::MLIRContext *ctx);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_COMMONTILE_H
