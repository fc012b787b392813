//===- SplitIndexSets.cpp - make inner extents agree ----------------------===//

#include "Bridge/Analysis/Legality.h"
#include "Bridge/Analysis/Nest.h"
#include "Bridge/Analysis/PieceMaps.h"
#include "Bridge/Support/Reasons.h"
#include "Bridge/Transforms/IndexSetSplit.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/LoopUtils.h"

namespace bridge {
#define GEN_PASS_DEF_SPLITINDEXSETS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// The inner space of a nest below a band of `depth` loops, if it is one chain
/// of constant loops.
static std::optional<InnerSpace>
getInnerSpace(Nest &nest, unsigned depth, SmallVector<AffineForOp> &chain) {
  auto chains = getInnerChains(nest, depth);
  if (chains.size() != 1)
    return std::nullopt;
  chain = chains.front();
  auto extents = getConstantExtents(chain);
  if (!extents)
    return std::nullopt;
  return InnerSpace{ArrayRef(nest.loops).take_front(depth), chain, *extents};
}

/// Whether guards decide what an iteration of `loop` does by its number alone.
static bool isToldApart(AffineForOp loop) {
  WalkResult result = loop.walk([&](AffineIfOp guard) {
    ValueRange operands = guard.getOperands();
    bool decides = !operands.empty() && llvm::all_of(operands, [&](Value v) {
      return v == loop.getInductionVar();
    });
    return decides ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

namespace {

struct SplitIndexSets : bridge::impl::SplitIndexSetsBase<SplitIndexSets> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    SmallVector<AffineForOp> roots = getRoots(getOperation().getBody().front());
    if (roots.size() > 1)
      for (AffineForOp root : roots)
        unrollInterleaved(root);
    for (AffineForOp root : roots)
      splitNest(root, roots);
  }

private:
  /// Makes pieces of the iterations of an innermost loop that guards tell
  /// apart: lanes that compute different things side by side.
  void unrollInterleaved(AffineForOp root) {
    Nest nest = getNest(root);
    AffineForOp innermost = nest.loops.back();
    auto extent = getConstantExtents(ArrayRef(innermost));
    if (nest.pinned || innermost == root || !extent ||
        extent->front() > maxInterleaved || !isToldApart(innermost))
      return;
    if (succeeded(loopUnrollFull(innermost)))
      ++numUnrolled;
  }

  /// Splits the nest by the tile of another that works on parts of its rows.
  void splitNest(AffineForOp root, ArrayRef<AffineForOp> roots) {
    SmallVector<int64_t> volumes;
    for (AffineForOp other : roots)
      if (auto volume = getTileVolume(root, other))
        volumes.push_back(*volume);
    // Tiles of several extents have no family: see bridge-align-extents.
    if (volumes.empty() || !llvm::all_equal(volumes))
      return;
    if (auto objection = getObjection(root)) {
      no(root, objection->reason) << objection->text;
      return;
    }
    SmallVector<AffineForOp> tiles =
        llvm::filter_to_vector(roots, [&](AffineForOp other) {
          return getTileVolume(root, other).has_value();
        });
    // By one that works on all parts, or by several that work on one each.
    for (AffineForOp tile : tiles)
      if (splitBy(root, tile))
        return;
    for (unsigned i = 0; i + 1 < tiles.size(); ++i)
      if (splitBy(root, ArrayRef(tiles).drop_front(i)))
        return;
    no(root, Reason::reduction_not_splittable)
        << "no family of affine pieces read off the accesses partitions it, or "
           "its iterations cannot be reordered";
  }

  InFlightDiagnostic no(AffineForOp root, Reason reason) {
    ++numRefused;
    return refuse(root, reason);
  }

  /// The inner volume of `other`, if that is a proper part of root's.
  std::optional<int64_t> getTileVolume(AffineForOp root, AffineForOp other) {
    Nest whole = getNest(root), tile = getNest(other);
    unsigned depth = root == other ? 0 : getCommonBandDepth(whole, tile);
    if (depth == 0 || !shareElements(whole, tile))
      return std::nullopt;
    SmallVector<AffineForOp> wholeChain, tileChain;
    auto wholeSpace = getInnerSpace(whole, depth, wholeChain);
    auto tileSpace = getInnerSpace(tile, depth, tileChain);
    if (!wholeSpace || !tileSpace)
      return std::nullopt;
    auto wholeVolume = getVolume(wholeChain), tileVolume = getVolume(tileChain);
    if (!wholeVolume || !tileVolume || *tileVolume == 0)
      return std::nullopt;
    if (*tileVolume >= *wholeVolume || *wholeVolume % *tileVolume != 0 ||
        *wholeVolume / *tileVolume > maxPieces)
      return std::nullopt;
    return tileVolume;
  }

  bool splitBy(AffineForOp root, ArrayRef<AffineForOp> tiles) {
    Nest whole = getNest(root), first = getNest(tiles.front());
    unsigned depth = getCommonBandDepth(whole, first);
    SmallVector<AffineForOp> wholeChain;
    auto wholeSpace = getInnerSpace(whole, depth, wholeChain);
    if (!isReorderable(wholeChain))
      return false;
    SmallVector<SmallVector<AffineForOp>> chains(tiles.size());
    SmallVector<InnerSpace> spaces;
    SmallVector<Nest> nests = llvm::map_to_vector(tiles, getNest);
    for (auto [nest, chain] : llvm::zip_equal(nests, chains)) {
      if (getCommonBandDepth(whole, nest) != depth)
        continue;
      auto space = getInnerSpace(nest, depth, chain);
      if (space && (spaces.empty() || space->extents == spaces[0].extents))
        spaces.push_back(*space);
    }
    auto pieces = getPieceMaps(*wholeSpace, spaces);
    if (pieces.empty())
      return false;
    splitIndexSet(wholeChain, spaces.front().extents, pieces);
    ++numSplit;
    return true;
  }
};

} // namespace
