//===- CommonTile.cpp - one inner extent for several nests ----------------===//

#include "Bridge/Analysis/CommonTile.h"

#include "Bridge/Analysis/Bijection.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"

#include <numeric>

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

//===----------------------------------------------------------------------===//
// Offsets of accesses, and points at which guards change
//===----------------------------------------------------------------------===//

/// Returns the coefficient of `variable` and the constant of a linear
/// expression.
static std::optional<std::pair<int64_t, int64_t>>
getLinearPart(AffineExpr expr, unsigned numDims, unsigned numSymbols,
              ValueRange operands, Value variable) {
  SmallVector<int64_t> flat;
  if (failed(getFlattenedAffineExpr(expr, numDims, numSymbols, &flat)) ||
      flat.size() != operands.size() + 1)
    return std::nullopt;
  int64_t coefficient = 0;
  for (auto [operand, factor] : llvm::zip(operands, flat))
    if (operand == variable)
      coefficient += factor;
  return std::pair{coefficient, flat.back()};
}

/// Returns the common divisor of an access's offsets along the innermost loop.
static int64_t getOffset(Operation *access, Value variable) {
  AffineValueMap map;
  MemRefAccess(access).getAccessMap(&map);
  int64_t divisor = 0;
  for (AffineExpr subscript : map.getAffineMap().getResults()) {
    auto part = getLinearPart(subscript, map.getNumDims(), map.getNumSymbols(),
                              map.getOperands(), variable);
    if (part && part->first == 1)
      divisor = std::gcd(divisor, part->second);
  }
  return divisor;
}

/// Returns the common divisor of the points at which a guard's constraints
/// change.
static int64_t getSwitch(AffineIfOp guard, Value variable) {
  IntegerSet set = guard.getIntegerSet();
  int64_t divisor = 0;
  for (AffineExpr constraint : set.getConstraints()) {
    auto part = getLinearPart(constraint, set.getNumDims(), set.getNumSymbols(),
                              guard.getOperands(), variable);
    if (part && part->first == 1)
      divisor = std::gcd(divisor, part->second);
    if (part && part->first == -1)
      divisor = std::gcd(divisor, part->second + 1);
  }
  return divisor;
}

/// Returns the point at which a comparison of the variable with a constant
/// changes; 0 for other comparisons.
static int64_t getSwitch(arith::CmpIOp compare, Value variable) {
  auto cast = compare.getLhs().getDefiningOp<arith::IndexCastOp>();
  APInt constant;
  if (!cast || !cast.getType().isInteger(64) || cast.getIn() != variable ||
      !matchPattern(compare.getRhs(), m_ConstantInt(&constant)))
    return 0;
  bool after = compare.getPredicate() == arith::CmpIPredicate::sgt ||
               compare.getPredicate() == arith::CmpIPredicate::sle;
  return constant.getSExtValue() + after;
}

/// Returns the common divisor of all offsets and changing points of a nest.
static int64_t getChanges(const InnerDomain &domain) {
  AffineForOp innermost = domain.chain.back();
  Value variable = innermost.getInductionVar();
  int64_t divisor = 0;
  innermost.walk([&](Operation *op) {
    if (isa<AffineReadOpInterface, AffineWriteOpInterface>(op))
      divisor = std::gcd(divisor, getOffset(op, variable));
    if (auto guard = dyn_cast<AffineIfOp>(op))
      divisor = std::gcd(divisor, getSwitch(guard, variable));
    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      divisor = std::gcd(divisor, getSwitch(compare, variable));
  });
  return divisor;
}

bool bridge::hasShifts(const InnerDomain &domain) {
  AffineForOp innermost = domain.chain.back();
  Value variable = innermost.getInductionVar();
  llvm::SmallDenseMap<Value, int64_t> offsets;
  bool shifted = false;
  innermost.walk([&](Operation *op) {
    if (auto guard = dyn_cast<AffineIfOp>(op))
      shifted |= getSwitch(guard, variable) != 0;
    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      shifted |= getSwitch(compare, variable) != 0;
    auto load = dyn_cast<AffineLoadOp>(op);
    if (!load)
      return;
    int64_t offset = getOffset(op, variable);
    auto [known, isFirst] = offsets.insert({load.getMemRef(), offset});
    shifted |= !isFirst && known->second != offset;
  });
  return shifted;
}

//===----------------------------------------------------------------------===//
// The tile
//===----------------------------------------------------------------------===//

static bool fitsLimits(ArrayRef<InnerDomain> domains, int64_t tile,
                       const TileLimits &limits) {
  return tile >= limits.minTile &&
         llvm::all_of(domains, [&](const InnerDomain &domain) {
           return getBoxVolume(domain.extents) / tile <= limits.maxPieces;
         });
}

std::optional<int64_t> bridge::getCommonTile(ArrayRef<InnerDomain> domains,
                                             const TileLimits &limits) {
  int64_t tile = 0, fine = 0;
  for (const InnerDomain &domain : domains) {
    tile = std::gcd(tile, domain.extents.back());
    fine = std::gcd(fine, getChanges(domain));
  }
  fine = std::gcd(tile, fine);
  if (fitsLimits(domains, fine, limits))
    return fine;
  if (fitsLimits(domains, tile, limits))
    return tile;
  return std::nullopt;
}

SmallVector<AffineMap> bridge::getContiguousPieces(ArrayRef<int64_t> extents,
                                                   int64_t tile,
                                                   MLIRContext *ctx) {
  SmallVector<AffineMap> pieces;
  int64_t perRow = extents.back() / tile, count = perRow;
  for (int64_t extent : extents.drop_back())
    count *= extent;
  for (int64_t piece = 0; piece < count; ++piece) {
    SmallVector<AffineExpr> results{getAffineDimExpr(0, ctx) +
                                    piece % perRow * tile};
    int64_t rest = piece / perRow;
    for (int64_t extent : llvm::reverse(extents.drop_back())) {
      results.push_back(getAffineConstantExpr(rest % extent, ctx));
      rest /= extent;
    }
    std::reverse(results.begin(), results.end());
    pieces.push_back(AffineMap::get(1, 0, results, ctx));
  }
  return pieces;
}
