//===- IndexSetSplit.h - one loop nest body a piece -------------*- C++ -*-===//

#ifndef BRIDGE_TRANSFORMS_INDEXSETSPLIT_H
#define BRIDGE_TRANSFORMS_INDEXSETSPLIT_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// Replaces the loops of `chain` by loops over the box `tile`, with the body
/// once for each of `pieces` (maps from the tile's iterations to the chain's).
/// Values that the loops carry go from piece to piece.
void splitIndexSet(llvm::ArrayRef<mlir::affine::AffineForOp> chain,
                   llvm::ArrayRef<int64_t> tile,
                   llvm::ArrayRef<mlir::AffineMap> pieces);

/// As above, for the tile of one loop over the domain of `tile`: from 0 with
/// step 1, to a bound that is known around the chain.
void splitIndexSet(llvm::ArrayRef<mlir::affine::AffineForOp> chain,
                   mlir::affine::AffineForOp tile,
                   llvm::ArrayRef<mlir::AffineMap> pieces);

} // namespace bridge

#endif // BRIDGE_TRANSFORMS_INDEXSETSPLIT_H
