//===- SplitMaps.h - index-set splits from access relations -----*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_SPLITMAPS_H
#define BRIDGE_ANALYSIS_SPLITMAPS_H

#include "Bridge/Analysis/Nest.h"

namespace bridge {

/// Returns the pieces of an index-set split of `domain`: affine maps from the
/// iterations of a tile to those of the domain whose images partition it.
///
/// The maps are solved from the access relations. Where both domains access one
/// memref, at `domain(r)` and at `tile(j)`, a piece is the solution r = m(j) of
/// domain(r) == tile(j). If the solutions cover a part of the domain only,
/// translated copies of one are tried, and with `together` those of all. Empty
/// if no set of maps partitions the domain. `tiles` have equal extents; each
/// may access a part of the domain.
llvm::SmallVector<mlir::AffineMap>
getSplitMaps(const InnerDomain &domain, llvm::ArrayRef<InnerDomain> tiles,
             bool together);

/// Returns such pieces where `tile` accesses a part of the domain only: maps
/// from more iterations than the tile has, as many as partition the domain. A
/// rotation of neighbours in the first 64 of 256 elements, with 32 iterations,
/// gives two maps from 128. Both domains have one loop; empty if there are not
/// at least two maps, and at most `maxPieces`.
llvm::SmallVector<mlir::AffineMap>
getExtendedSplitMaps(const InnerDomain &domain, const InnerDomain &tile,
                     int64_t maxPieces);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_SPLITMAPS_H
