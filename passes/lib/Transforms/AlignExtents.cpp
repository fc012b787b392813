//===- AlignExtents.cpp - one inner extent for all nests of a band --------===//

#include "Bridge/Analysis/CommonTile.h"
#include "Bridge/Analysis/Components.h"
#include "Bridge/Analysis/Legality.h"
#include "Bridge/Support/Reasons.h"
#include "Bridge/Transforms/IndexSetSplit.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {
#define GEN_PASS_DEF_ALIGNEXTENTS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

namespace {

struct AlignExtents : bridge::impl::AlignExtentsBase<AlignExtents> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    SmallVector<AffineForOp> roots = getRoots(getOperation().getBody().front());
    for (Component &component : getComponents(roots))
      align(component);
  }

private:
  void align(Component &component) {
    SmallVector<SmallVector<AffineForOp>> chains;
    for (Nest &nest : component.nests)
      llvm::append_range(chains, getInnerChains(nest, component.depth));
    SmallVector<InnerDomain> domains;
    for (ArrayRef<AffineForOp> chain : chains) {
      auto extents = getConstantExtents(chain);
      if (!extents)
        return alignSymbolic(chains);
      if (extents->empty())
        return;
      domains.push_back(InnerDomain{{}, chain, *extents});
    }
    if (shiftedOnly && llvm::none_of(domains, hasShifts))
      return;
    TileLimits limits{maxPieces, minTile};
    std::optional<int64_t> tile;
    if (!domains.empty())
      tile = getCommonTile(domains, limits);
    if (tile && needsSplit(domains, *tile) && maySplit(chains))
      split(domains, *tile);
  }

  /// Splits chains with one symbolic loop each, all of the same domain: that
  /// domain is the tile, and each iteration of the constant loops is a piece.
  void alignSymbolic(ArrayRef<SmallVector<AffineForOp>> chains) {
    SmallVector<unsigned> positions;
    for (ArrayRef<AffineForOp> chain : chains) {
      auto position = getSymbolicLoop(chain);
      if (!position ||
          !haveSameDomain(
              chain[*position],
              chains
                  .front()[positions.empty() ? *position : positions.front()]))
        return;
      positions.push_back(*position);
    }
    if (llvm::all_of(chains, [](auto &chain) { return chain.size() == 1; }) ||
        !maySplit(chains))
      return;
    for (auto [chain, position] : llvm::zip_equal(chains, positions)) {
      if (chain.size() == 1)
        continue;
      splitIndexSet(chain, chain[position], getPieces(chain, position));
      ++numAligned;
    }
  }

  /// Returns the position of the only loop of a chain without a constant
  /// extent, if the other loops have few iterations and its bounds are 0 and
  /// values defined outside the chain.
  std::optional<unsigned> getSymbolicLoop(ArrayRef<AffineForOp> chain) {
    SmallVector<AffineForOp> constant, symbolic;
    for (AffineForOp loop : chain)
      (loop.hasConstantUpperBound() ? constant : symbolic).push_back(loop);
    auto pieces = getVolume(constant);
    if (symbolic.size() != 1 || !getConstantExtents(constant) || !pieces ||
        *pieces > maxPieces)
      return std::nullopt;
    AffineForOp outermost = chain.front(), tile = symbolic.front();
    bool isKnown = llvm::all_of(tile.getUpperBoundOperands(), [&](Value bound) {
      return outermost.isDefinedOutsideOfLoop(bound);
    });
    if (!countsFromZero(tile) || !isKnown)
      return std::nullopt;
    return llvm::find(chain, tile) - chain.begin();
  }

  /// Returns a piece for each iteration of the constant loops; the loop at
  /// `position` has the tile's iteration.
  SmallVector<AffineMap> getPieces(ArrayRef<AffineForOp> chain,
                                   unsigned position) {
    SmallVector<SmallVector<AffineExpr>> pieces(1);
    for (auto [n, loop] : llvm::enumerate(chain)) {
      SmallVector<SmallVector<AffineExpr>> longer;
      AffineForOp own = loop;
      int64_t count = n == position ? 1 : own.getConstantUpperBound();
      for (const auto &piece : pieces)
        for (int64_t value = 0; value < count; ++value) {
          longer.push_back(piece);
          longer.back().push_back(
              n == position ? getAffineDimExpr(0, &getContext())
                            : getAffineConstantExpr(value, &getContext()));
        }
      pieces = std::move(longer);
    }
    return llvm::map_to_vector(pieces, [&](ArrayRef<AffineExpr> piece) {
      return AffineMap::get(1, 0, piece, &getContext());
    });
  }

  static bool needsSplit(ArrayRef<InnerDomain> domains, int64_t tile) {
    return llvm::any_of(domains, [&](const InnerDomain &domain) {
      return ArrayRef(domain.extents) != ArrayRef(tile);
    });
  }

  bool maySplit(ArrayRef<SmallVector<AffineForOp>> chains) {
    return llvm::all_of(chains, [&](ArrayRef<AffineForOp> chain) {
      AffineForOp outermost = chain.front();
      if (FusionResult result = checkAnalysable(outermost); failed(result)) {
        const Refusal &refusal = result.getRefusal();
        emitRefusal(outermost, refusal.reason) << refusal.text;
        return false;
      }
      if (isReorderable(chain))
        return true;
      emitRefusal(outermost, Reason::reduction_not_splittable)
          << "its iterations cannot be reordered";
      return false;
    });
  }

  void split(ArrayRef<InnerDomain> domains, int64_t tile) {
    for (const InnerDomain &domain : domains) {
      auto pieces = getContiguousPieces(domain.extents, tile, &getContext());
      splitIndexSet(domain.chain, {tile}, pieces);
      ++numAligned;
    }
  }

  InFlightDiagnostic emitRefusal(AffineForOp loop, Reason reason) {
    ++numRefused;
    return refuse(loop, reason);
  }
};

} // namespace
