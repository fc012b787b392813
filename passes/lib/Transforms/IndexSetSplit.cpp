//===- IndexSetSplit.cpp - rewrite a chain as pieces of a tile ------------===//

#include "Bridge/Transforms/IndexSetSplit.h"

#include "Bridge/Analysis/Iteration.h"

#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/LoopUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::affine;

namespace {
/// The upper bound of a loop from 0 with step 1.
struct Extent {
  AffineMap map;
  SmallVector<Value> operands;
};
} // namespace

/// Creates the loops of the tile, outermost first, and moves `builder` into the
/// innermost; all carry `inits`.
static SmallVector<AffineForOp> openTile(OpBuilder &builder, Location loc,
                                         ArrayRef<Extent> extents,
                                         ValueRange inits) {
  SmallVector<AffineForOp> loops;
  SmallVector<Value> carried(inits);
  auto zero = builder.getConstantAffineMap(0);
  for (const Extent &extent : extents) {
    auto loop = AffineForOp::create(builder, loc, {}, zero, extent.operands,
                                    extent.map, 1, carried);
    carried.assign(loop.getRegionIterArgs().begin(),
                   loop.getRegionIterArgs().end());
    loops.push_back(loop);
    builder.setInsertionPointToStart(loop.getBody());
  }
  return loops;
}

/// Clones the innermost body of `chain` for one piece. `carried` has the
/// carried values before the piece, and gets those that the piece yields.
static void clonePiece(OpBuilder &builder, ArrayRef<AffineForOp> chain,
                       AffineMap piece, ValueRange tileIvs,
                       SmallVectorImpl<Value> &carried) {
  IRMapping mapping;
  AffineForOp innermost = chain.back();
  for (auto [position, loop] : llvm::enumerate(chain)) {
    AffineForOp own = loop;
    Value iv = AffineApplyOp::create(
        builder, own.getLoc(), piece.getSubMap({unsigned(position)}), tileIvs);
    mapping.map(own.getInductionVar(), iv);
  }
  mapping.map(innermost.getRegionIterArgs(), carried);
  unsigned first = getNestingDepth(chain.front());
  auto clone = [&](Operation &op, AffineMap own) {
    bridge::recordIterations(builder.clone(op, mapping), own, first);
  };
  for (auto [position, loop] : llvm::enumerate(chain.drop_back())) {
    AffineForOp outer = loop;
    AffineMap own =
        piece.getMajorSubMap(position + 1); // Of the loops around it.
    for (Operation &op : outer.getBody()->without_terminator())
      if (!isa<AffineForOp>(op))
        clone(op, own);
  }
  for (Operation &op : innermost.getBody()->without_terminator())
    clone(op, piece);
  for (auto [value, yielded] :
       llvm::zip(carried, innermost.getBody()->getTerminator()->getOperands()))
    value = mapping.lookupOrDefault(yielded);
}

/// Replaces `chain` by loops over `tile`, with its body once for each piece.
static void split(ArrayRef<AffineForOp> chain, ArrayRef<Extent> tile,
                  ArrayRef<AffineMap> pieces) {
  AffineForOp outermost = chain.front();
  OpBuilder builder(outermost);
  Location loc = outermost.getLoc();
  auto loops = openTile(builder, loc, tile, outermost.getInits());
  SmallVector<Value> ivs, carried(loops.back().getRegionIterArgs());
  for (AffineForOp loop : loops)
    ivs.push_back(loop.getInductionVar());
  for (AffineMap piece : pieces)
    clonePiece(builder, chain, piece, ivs, carried);
  for (AffineForOp loop : llvm::reverse(loops)) {
    if (loop.getNumIterOperands() != 0) {
      builder.setInsertionPointToEnd(loop.getBody());
      AffineYieldOp::create(builder, loc, carried);
    }
    carried.assign(loop.getResults().begin(), loop.getResults().end());
  }
  outermost.replaceAllUsesWith(loops.front().getResults());
  outermost.erase();
}

void bridge::splitIndexSet(ArrayRef<AffineForOp> chain, ArrayRef<int64_t> tile,
                           ArrayRef<AffineMap> pieces) {
  if (pieces.empty()) // A loop that never runs stays as it is.
    return;
  Builder builder(pieces.front().getContext());
  SmallVector<Extent> extents;
  for (int64_t extent : tile)
    extents.push_back({builder.getConstantAffineMap(extent), {}});
  split(chain, extents, pieces);
}

void bridge::splitIndexSet(ArrayRef<AffineForOp> chain, AffineForOp tile,
                           ArrayRef<AffineMap> pieces) {
  if (pieces.empty())
    return;
  Extent extent{tile.getUpperBoundMap(),
                llvm::to_vector(tile.getUpperBoundOperands())};
  split(chain, extent, pieces);
}

LogicalResult bridge::unrollToEnd(AffineForOp loop, int64_t extent) {
  SmallVector<std::pair<unsigned, Operation *>> copies;
  auto keep = [&](unsigned iteration, Operation *op, OpBuilder) {
    copies.push_back({iteration, op});
  };
  unsigned depth = getNestingDepth(loop);
  MLIRContext *context = loop.getContext();
  if (extent == 1)
    for (Operation &op : loop.getBody()->without_terminator())
      copies.push_back({0, &op});
  if (failed(extent < 2 ? loopUnrollFull(loop)
                        : loopUnrollByFactor(loop, extent, keep)))
    return failure();
  for (auto [iteration, op] : copies)
    recordIterations(op, AffineMap::getConstantMap(iteration, context), depth);
  return success();
}
