//===- PieceMaps.h - index-set splitting from access relations --*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_PIECEMAPS_H
#define BRIDGE_ANALYSIS_PIECEMAPS_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// The inner iteration space of a nest below a band: the band's loops and the
/// inner chain, whose extents are constant.
struct InnerSpace {
  llvm::ArrayRef<mlir::affine::AffineForOp> band;
  llvm::ArrayRef<mlir::affine::AffineForOp> chain;
  llvm::SmallVector<int64_t> extents;
};

/// Affine maps from the tile's iterations to the whole's such that the images
/// of the tile partition the whole: the pieces of an index-set split.
///
/// They are read off the access relations: where both spaces access one memref
/// at `whole(r)` and `tile(j)`, the piece is the solution r = m(j) of
/// whole(r) == tile(j). A family that covers a part only is completed by
/// translates. Empty if no family partitions the whole. `tiles` are spaces of
/// equal extents, each of which may work on a part of the whole.
llvm::SmallVector<mlir::AffineMap>
getPieceMaps(const InnerSpace &whole, llvm::ArrayRef<InnerSpace> tiles);

/// Whether the images of the box `tile` under `maps` partition the box `whole`.
bool partitions(llvm::ArrayRef<mlir::AffineMap> maps,
                llvm::ArrayRef<int64_t> tile, llvm::ArrayRef<int64_t> whole);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_PIECEMAPS_H
