//===- SplitIndexSets.cpp - make inner extents agree ----------------------===//

#include "Bridge/Analysis/Legality.h"
#include "Bridge/Analysis/Nest.h"
#include "Bridge/Analysis/SplitMaps.h"
#include "Bridge/Support/Reasons.h"
#include "Bridge/Transforms/IndexSetSplit.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {
#define GEN_PASS_DEF_SPLITINDEXSETS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// Returns the inner iteration domain of a nest below a band of `depth` loops,
/// if it is one chain of constant loops.
static std::optional<InnerDomain>
getInnerDomain(Nest &nest, unsigned depth, SmallVector<AffineForOp> &chain) {
  auto chains = getInnerChains(nest, depth);
  if (chains.size() != 1)
    return std::nullopt;
  chain = chains.front();
  auto extents = getConstantExtents(chain);
  if (!extents)
    return std::nullopt;
  return InnerDomain{ArrayRef(nest.loops).take_front(depth), chain, *extents};
}

/// True if `loop` has a guard that depends on its induction variable only.
static bool hasOwnGuard(AffineForOp loop) {
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
      unrollInterleaved(roots);
    SmallVector<AffineForOp> whole;
    for (AffineForOp root : roots)
      if (splitNest(root, roots) == Split::NoTile)
        whole.push_back(root);
    // A nest that was split may be the tile of another.
    while (splitAny(whole, roots)) {
    }
  }

private:
  /// Says what became of a nest. Of those that stay whole, one may have no tile
  /// yet.
  enum class Split { Done, NoTile, Never };

  /// Splits one of the nests `whole` that had no tile, and takes it out;
  /// returns true if there was one.
  bool splitAny(SmallVectorImpl<AffineForOp> &whole,
                ArrayRef<AffineForOp> roots) {
    auto *split = llvm::find_if(whole, [&](AffineForOp root) {
      return hasTile(root, roots) && succeeded(checkAnalysable(root)) &&
             splitByTiles(root, roots);
    });
    if (split == whole.end())
      return false;
    whole.erase(split);
    return true;
  }

  /// Unrolls short innermost loops with guards on their variable: their
  /// iterations compute different things and become pieces. Then those of nests
  /// that access the same elements in the same loops, such as a transposed
  /// copy: they are left with more loops than the first otherwise.
  void unrollInterleaved(ArrayRef<AffineForOp> roots) {
    SmallVector<AffineForOp> whole(roots);
    SmallVector<std::pair<AffineForOp, int64_t>> unrolled;
    auto unroll = [&](AffineForOp root) {
      Nest nest = getNest(root);
      auto lanes = getLanes(nest);
      if (!lanes || !isInterleaved(nest, *lanes, unrolled) ||
          failed(unrollToEnd(nest.loops.back(), *lanes)))
        return false;
      unrolled.push_back({root, *lanes});
      ++numUnrolled;
      return true;
    };
    for (size_t before = whole.size() + 1; whole.size() < before;) {
      before = whole.size();
      llvm::erase_if(whole, unroll);
    }
  }

  /// Returns the extent of the innermost loop, if it is short and has others
  /// around it.
  std::optional<int64_t> getLanes(Nest &nest) {
    auto extent = getConstantExtents(ArrayRef(nest.loops.back()));
    if (nest.imperfectlyNested || nest.loops.size() < 2 || !extent ||
        extent->front() > maxInterleaved)
      return std::nullopt;
    return extent->front();
  }

  /// True if the iterations of the innermost loop differ, or are those of a
  /// nest in the same loops that was `unrolled`.
  static bool
  isInterleaved(Nest &nest, int64_t lanes,
                ArrayRef<std::pair<AffineForOp, int64_t>> unrolled) {
    return hasOwnGuard(nest.loops.back()) ||
           llvm::any_of(unrolled, [&](auto &entry) {
             Nest other = getNest(entry.first);
             size_t around = nest.loops.size() - 1;
             return entry.second == lanes && other.loops.size() == around &&
                    getSharedDepth(nest, other) == around &&
                    shareElements(nest, other);
           });
  }

  /// Returns for each nest that has a tile for this one into how many pieces it
  /// would be split.
  SmallVector<int64_t> getPieceCounts(AffineForOp root,
                                      ArrayRef<AffineForOp> roots) {
    SmallVector<int64_t> counts;
    for (AffineForOp other : roots)
      if (auto count = getPieceCount(root, other))
        counts.push_back(*count);
    return counts;
  }

  /// True if the nest may be split by the tile of another that works on parts
  /// of its rows. Tiles of several extents are left to bridge-align-extents.
  bool hasTile(AffineForOp root, ArrayRef<AffineForOp> roots) {
    SmallVector<int64_t> counts = getPieceCounts(root, roots);
    return !counts.empty() && llvm::all_equal(counts);
  }

  /// Splits the nest by the tile of another that works on parts of its rows.
  Split splitNest(AffineForOp root, ArrayRef<AffineForOp> roots) {
    SmallVector<int64_t> counts = getPieceCounts(root, roots);
    bool byTile = !counts.empty() && llvm::all_equal(counts);
    Split otherwise = counts.empty() ? Split::NoTile : Split::Never;
    if (!byTile && !parts)
      return otherwise;
    if (FusionResult result = checkAnalysable(root); failed(result)) {
      const Refusal &refusal = result.getRefusal();
      if (byTile)
        emitRefusal(root, refusal.reason) << refusal.text;
      return Split::Never;
    }
    if ((byTile && splitByTiles(root, roots)) ||
        (parts && splitByPart(root, roots)))
      return Split::Done;
    if (byTile)
      emitRefusal(root, Reason::reduction_not_splittable)
          << "no family of affine pieces read off the accesses partitions it, "
             "or its iterations cannot be reordered";
    return otherwise;
  }

  /// Splits by one tile that accesses all parts, or several that access one
  /// each.
  bool splitByTiles(AffineForOp root, ArrayRef<AffineForOp> roots) {
    SmallVector<AffineForOp> tiles =
        llvm::filter_to_vector(roots, [&](AffineForOp other) {
          return getPieceCount(root, other).has_value();
        });
    for (AffineForOp tile : tiles)
      if (splitBy(root, tile))
        return true;
    for (unsigned i = 0; i + 1 < tiles.size(); ++i)
      if (splitBy(root, ArrayRef(tiles).drop_front(i)))
        return true;
    return false;
  }

  /// Splits the nest by the pieces of one that works on a part of its rows.
  bool splitByPart(AffineForOp root, ArrayRef<AffineForOp> roots) {
    return llvm::any_of(roots, [&](AffineForOp other) {
      Nest full = getNest(root), part = getNest(other);
      unsigned depth = root == other ? 0 : getCommonBandDepth(full, part);
      SmallVector<AffineForOp> fullChain, partChain;
      if (depth == 0 || !shareElements(full, part))
        return false;
      auto fullDomain = getInnerDomain(full, depth, fullChain);
      auto partDomain = getInnerDomain(part, depth, partChain);
      if (!fullDomain || !partDomain || !isReorderable(fullChain))
        return false;
      auto pieces = getExtendedSplitMaps(*fullDomain, *partDomain, maxPieces);
      if (pieces.empty())
        return false;
      int64_t count = pieces.size();
      splitIndexSet(fullChain, fullDomain->extents.front() / count, pieces);
      ++numSplit;
      return true;
    });
  }

  InFlightDiagnostic emitRefusal(AffineForOp root, Reason reason) {
    ++numRefused;
    return refuse(root, reason);
  }

  /// Returns how many times the inner volume of `other` is in that of `root`,
  /// if it is a proper divisor and the two share elements below a common band.
  std::optional<int64_t> getPieceCount(AffineForOp root, AffineForOp other) {
    Nest full = getNest(root), tile = getNest(other);
    unsigned depth = root == other ? 0 : getCommonBandDepth(full, tile);
    if (depth == 0 || !shareElements(full, tile))
      return std::nullopt;
    SmallVector<AffineForOp> fullChain, tileChain;
    auto fullDomain = getInnerDomain(full, depth, fullChain);
    auto tileDomain = getInnerDomain(tile, depth, tileChain);
    if (!fullDomain || !tileDomain)
      return std::nullopt;
    auto fullVolume = getVolume(fullChain), tileVolume = getVolume(tileChain);
    if (!fullVolume || !tileVolume || *tileVolume == 0)
      return std::nullopt;
    if (*tileVolume >= *fullVolume || *fullVolume % *tileVolume != 0 ||
        *fullVolume / *tileVolume > maxPieces)
      return std::nullopt;
    return *fullVolume / *tileVolume;
  }

  /// Splits the nest by pieces that are solved from the accesses of `tiles`.
  bool splitBy(AffineForOp root, ArrayRef<AffineForOp> tiles) {
    Nest full = getNest(root), first = getNest(tiles.front());
    unsigned depth = getCommonBandDepth(full, first);
    SmallVector<AffineForOp> fullChain;
    auto fullDomain = getInnerDomain(full, depth, fullChain);
    if (!isReorderable(fullChain))
      return false;
    SmallVector<SmallVector<AffineForOp>> chains(tiles.size());
    SmallVector<InnerDomain> domains;
    SmallVector<Nest> nests = llvm::map_to_vector(tiles, getNest);
    for (auto [nest, chain] : llvm::zip_equal(nests, chains)) {
      if (getCommonBandDepth(full, nest) != depth)
        continue;
      auto domain = getInnerDomain(nest, depth, chain);
      if (domain && (domains.empty() || domain->extents == domains[0].extents))
        domains.push_back(*domain);
    }
    auto pieces = getSplitMaps(*fullDomain, domains, parts);
    if (pieces.empty())
      return false;
    splitIndexSet(fullChain, domains.front().extents, pieces);
    ++numSplit;
    return true;
  }
};

} // namespace
