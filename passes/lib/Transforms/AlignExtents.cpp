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
    SmallVector<InnerSpace> spaces;
    for (ArrayRef<AffineForOp> chain : chains) {
      auto extents = getConstantExtents(chain);
      if (!extents)
        return alignSymbolic(chains);
      if (extents->empty())
        return;
      spaces.push_back(InnerSpace{{}, chain, *extents});
    }
    if (shiftedOnly && llvm::none_of(spaces, hasShifts))
      return;
    TileLimits limits{maxPieces, minTile};
    std::optional<int64_t> tile;
    if (!spaces.empty())
      tile = getCommonTile(spaces, limits);
    if (tile && needsSplit(spaces, *tile) && maySplit(chains))
      split(spaces, *tile);
  }

  /// Where every chain has one symbolic loop, and all of these one domain, that
  /// is the tile; an iteration of the constant loops around and in it is a
  /// piece.
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
      splitIndexSet(chain, chain[position], getPiecesOf(chain, position));
      ++numAligned;
    }
  }

  /// The position of the loop of a chain that is the only one without a
  /// constant extent, if the others have few iterations and it counts from 0 by
  /// a bound that is known around the chain.
  std::optional<unsigned> getSymbolicLoop(ArrayRef<AffineForOp> chain) {
    SmallVector<AffineForOp> constant, symbolic;
    for (AffineForOp loop : chain)
      (loop.hasConstantUpperBound() ? constant : symbolic).push_back(loop);
    auto pieces = getVolume(constant);
    if (symbolic.size() != 1 || !getConstantExtents(constant) || !pieces ||
        *pieces > maxPieces)
      return std::nullopt;
    AffineForOp outermost = chain.front(), tile = symbolic.front();
    bool isTile = tile.hasConstantLowerBound() &&
                  tile.getConstantLowerBound() == 0 && tile.getStepAsInt() == 1;
    bool isKnown = llvm::all_of(tile.getUpperBoundOperands(), [&](Value bound) {
      return outermost.isDefinedOutsideOfLoop(bound);
    });
    if (!isTile || !isKnown)
      return std::nullopt;
    return llvm::find(chain, tile) - chain.begin();
  }

  /// The tile's iteration as that of the loop at `position`, and each iteration
  /// of the other loops.
  SmallVector<AffineMap> getPiecesOf(ArrayRef<AffineForOp> chain,
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

  static bool needsSplit(ArrayRef<InnerSpace> spaces, int64_t tile) {
    return llvm::any_of(spaces, [&](const InnerSpace &space) {
      return ArrayRef(space.extents) != ArrayRef(tile);
    });
  }

  bool maySplit(ArrayRef<SmallVector<AffineForOp>> chains) {
    return llvm::all_of(chains, [&](ArrayRef<AffineForOp> chain) {
      AffineForOp outermost = chain.front();
      if (auto objection = getObjection(outermost)) {
        no(outermost, objection->reason) << objection->text;
        return false;
      }
      if (isReorderable(chain))
        return true;
      no(outermost, Reason::reduction_not_splittable)
          << "its iterations cannot be reordered";
      return false;
    });
  }

  void split(ArrayRef<InnerSpace> spaces, int64_t tile) {
    for (const InnerSpace &space : spaces) {
      auto pieces = getContiguousPieces(space.extents, tile, &getContext());
      splitIndexSet(space.chain, {tile}, pieces);
      ++numAligned;
    }
  }

  InFlightDiagnostic no(AffineForOp loop, Reason reason) {
    ++numRefused;
    return refuse(loop, reason);
  }
};

} // namespace
