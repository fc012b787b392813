//===- SplitIndexSets.cpp - make inner extents agree ----------------------===//

#include "Bridge/Analysis/Nest.h"
#include "Bridge/Analysis/PieceMaps.h"
#include "Bridge/Support/Reasons.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/IR/IRMapping.h"

namespace bridge {
#define GEN_PASS_DEF_SPLITINDEXSETS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// The inner space of a nest below a band of `depth` loops, if it is one chain
/// of constant loops.
static std::optional<InnerSpace> getInnerSpace(Nest &nest, unsigned depth,
                                               SmallVector<AffineForOp> &chain) {
  auto chains = getInnerChains(nest, depth);
  if (chains.size() != 1)
    return std::nullopt;
  chain = chains.front();
  auto extents = getConstantExtents(chain);
  if (!extents)
    return std::nullopt;
  return InnerSpace{ArrayRef(nest.loops).take_front(depth), chain, *extents};
}

/// Opens the loops of the tile at `builder`, outermost first; all carry `inits`.
static SmallVector<AffineForOp> openTile(OpBuilder &builder, Location loc,
                                         ArrayRef<int64_t> extents,
                                         ValueRange inits) {
  SmallVector<AffineForOp> loops;
  SmallVector<Value> carried(inits);
  for (int64_t extent : extents) {
    auto loop = AffineForOp::create(builder, loc, 0, extent, 1, carried);
    carried.assign(loop.getRegionIterArgs().begin(),
                   loop.getRegionIterArgs().end());
    loops.push_back(loop);
    builder.setInsertionPointToStart(loop.getBody());
  }
  return loops;
}

/// Clones the innermost body of `chain` for one piece; `carried` goes in as the
/// values that the loops carry and comes out as what the piece yields.
static void clonePiece(OpBuilder &builder, ArrayRef<AffineForOp> chain,
                       AffineMap piece, ValueRange tileIvs,
                       SmallVectorImpl<Value> &carried) {
  IRMapping mapping;
  AffineForOp innermost = chain.back();
  for (auto [position, loop] : llvm::enumerate(chain)) {
    AffineForOp own = loop;
    Value iv = AffineApplyOp::create(builder, own.getLoc(),
                                     piece.getSubMap({unsigned(position)}),
                                     tileIvs);
    mapping.map(own.getInductionVar(), iv);
  }
  mapping.map(innermost.getRegionIterArgs(), carried);
  for (AffineForOp loop : chain.drop_back())
    for (Operation &op : loop.getBody()->without_terminator())
      if (!isa<AffineForOp>(op))
        builder.clone(op, mapping);
  for (Operation &op : innermost.getBody()->without_terminator())
    builder.clone(op, mapping);
  for (auto [value, yielded] : llvm::zip(
           carried, innermost.getBody()->getTerminator()->getOperands()))
    value = mapping.lookupOrDefault(yielded);
}

/// Replaces the loops of `chain` by loops over the tile, the body once a piece.
static void split(ArrayRef<AffineForOp> chain, ArrayRef<int64_t> tile,
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

namespace {

struct SplitIndexSets : bridge::impl::SplitIndexSetsBase<SplitIndexSets> {
  using Base::Base;

  void runOnOperation() override {
    Block &body = getOperation().getBody().front();
    for (auto root : llvm::make_early_inc_range(body.getOps<AffineForOp>()))
      splitNest(root, body);
  }

private:
  /// Splits the nest by the tile of another that works on parts of its rows.
  void splitNest(AffineForOp root, Block &body) {
    SmallVector<int64_t> volumes;
    for (auto other : body.getOps<AffineForOp>())
      if (auto volume = getTileVolume(root, other))
        volumes.push_back(*volume);
    if (volumes.empty())
      return;
    if (!llvm::all_equal(volumes)) {
      refuse(root, Reason::extents_do_not_agree)
          << "its consumers have different inner extents";
      return;
    }
    for (auto other : body.getOps<AffineForOp>())
      if (getTileVolume(root, other) && splitBy(root, other))
        return;
    ++numRefused;
    refuse(root, Reason::reduction_not_splittable)
        << "no family of affine pieces read off the accesses partitions it";
  }

  /// The inner volume of `other`, if that is a proper part of root's.
  std::optional<int64_t> getTileVolume(AffineForOp root, AffineForOp other) {
    Nest whole = getNest(root), tile = getNest(other);
    unsigned depth = root == other ? 0 : getCommonBandDepth(whole, tile);
    if (depth == 0 || tile.pinned || !shareMemref(whole, tile))
      return std::nullopt;
    SmallVector<AffineForOp> wholeChain, tileChain;
    auto wholeSpace = getInnerSpace(whole, depth, wholeChain);
    auto tileSpace = getInnerSpace(tile, depth, tileChain);
    if (!wholeSpace || !tileSpace)
      return std::nullopt;
    int64_t wholeVolume = *getVolume(wholeChain);
    int64_t tileVolume = *getVolume(tileChain);
    if (tileVolume >= wholeVolume || wholeVolume % tileVolume != 0 ||
        wholeVolume / tileVolume > maxPieces)
      return std::nullopt;
    return tileVolume;
  }

  bool splitBy(AffineForOp root, AffineForOp other) {
    Nest whole = getNest(root), tile = getNest(other);
    unsigned depth = getCommonBandDepth(whole, tile);
    SmallVector<AffineForOp> wholeChain, tileChain;
    auto wholeSpace = getInnerSpace(whole, depth, wholeChain);
    auto tileSpace = getInnerSpace(tile, depth, tileChain);
    auto pieces = getPieceMaps(*wholeSpace, *tileSpace);
    if (pieces.empty())
      return false;
    split(wholeChain, tileSpace->extents, pieces);
    ++numSplit;
    return true;
  }
};

} // namespace
