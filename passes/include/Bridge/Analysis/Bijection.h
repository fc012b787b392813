//===- Bijection.h - whether affine maps are bijections ---------*- C++ -*-===//
//
// The one place that decides it. Two methods are needed: a linear map is
// checked by integer sets, however large its domain is; a map with `floordiv`
// or `mod` is evaluated at each point of a small domain.
//
//===----------------------------------------------------------------------===//

#ifndef BRIDGE_ANALYSIS_BIJECTION_H
#define BRIDGE_ANALYSIS_BIJECTION_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"

#include <optional>

namespace bridge {

/// Returns the number of points of a box.
int64_t getBoxVolume(llvm::ArrayRef<int64_t> extents);

/// True if the images of the box `tile` under linear `maps` partition the box
/// `range`: together, the maps are a bijection from copies of the tile.
bool isPartition(llvm::ArrayRef<mlir::AffineMap> maps,
                 llvm::ArrayRef<int64_t> tile, llvm::ArrayRef<int64_t> range);

/// Returns the part of the domain of `from` on which `map` is a bijection to
/// the iterations of `to`, as affine expressions that are at least zero there;
/// empty if that is all of the domain. Nothing if `map` is no such bijection.
///
/// Results that share no variable are checked independently. Loops with more
/// than `maxPoints` iterations in such a group are not checked: nothing. The
/// domain may be larger than the range, by less than a factor of two for each
/// group, only if `mayBePartial` is set.
std::optional<llvm::SmallVector<mlir::AffineExpr>>
getBijectionDomain(mlir::AffineMap map,
                   llvm::ArrayRef<mlir::affine::AffineForOp> from,
                   llvm::ArrayRef<mlir::affine::AffineForOp> to,
                   int64_t maxPoints, bool mayBePartial);

/// Returns the inverse of a linear map without symbols, from the iterations of
/// `from` to those of `to`, where its results are numbers in a mixed radix that
/// have the variables of `from` as digits; the highest digit may have a
/// symbolic number of values. Nothing if a variable is the digit of no number,
/// or of two, or if digits are missing.
std::optional<mlir::AffineMap>
getInverseOfDigits(mlir::AffineMap map,
                   llvm::ArrayRef<mlir::affine::AffineForOp> from,
                   llvm::ArrayRef<mlir::affine::AffineForOp> to);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_BIJECTION_H
