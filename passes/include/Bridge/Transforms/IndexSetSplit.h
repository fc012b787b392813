//===- IndexSetSplit.h - rewrite a chain as pieces of a tile ----*- C++ -*-===//

#ifndef BRIDGE_TRANSFORMS_INDEXSETSPLIT_H
#define BRIDGE_TRANSFORMS_INDEXSETSPLIT_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// Replaces the loops of `chain` by loops over the box `tile`, whose body has
/// the chain's body once for each of `pieces` (maps from the tile's iterations
/// to the chain's). Carried values pass from piece to piece.
void splitIndexSet(llvm::ArrayRef<mlir::affine::AffineForOp> chain,
                   llvm::ArrayRef<int64_t> tile,
                   llvm::ArrayRef<mlir::AffineMap> pieces);

/// As above, with a tile of one loop over the domain of `tile`: from 0 with
/// step 1, to a bound that is defined outside the chain.
void splitIndexSet(llvm::ArrayRef<mlir::affine::AffineForOp> chain,
                   mlir::affine::AffineForOp tile,
                   llvm::ArrayRef<mlir::AffineMap> pieces);

/// Unrolls a loop from 0 with step 1, of `extent` iterations, to the end.
llvm::LogicalResult unrollToEnd(mlir::affine::AffineForOp loop, int64_t extent);

} // namespace bridge

#endif // BRIDGE_TRANSFORMS_INDEXSETSPLIT_H
