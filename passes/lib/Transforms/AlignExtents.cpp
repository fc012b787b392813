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

  /// Where every chain ends in a loop over one symbolic domain, that is the
  /// tile, and an iteration of the constant loops around it is a piece.
  void alignSymbolic(ArrayRef<SmallVector<AffineForOp>> chains) {
    AffineForOp tile = chains.front().back();
    SmallVector<SmallVector<int64_t>> around;
    for (ArrayRef<AffineForOp> chain : chains) {
      auto extents = getConstantExtents(chain.drop_back());
      auto pieces = getVolume(chain.drop_back());
      if (!extents || !pieces || *pieces > maxPieces ||
          !haveSameDomain(tile, chain.back()) || !isTile(chain))
        return;
      around.push_back(*extents);
    }
    if (llvm::all_of(around, [](auto &own) { return own.empty(); }) ||
        !maySplit(chains))
      return;
    for (auto [chain, extents] : llvm::zip_equal(chains, around)) {
      if (extents.empty())
        continue;
      extents.push_back(1);
      splitIndexSet(chain, chain.back(),
                    getContiguousPieces(extents, 1, &getContext()));
      ++numAligned;
    }
  }

  /// Whether the innermost loop counts from 0, by a bound known around the chain.
  static bool isTile(ArrayRef<AffineForOp> chain) {
    AffineForOp outermost = chain.front(), tile = chain.back();
    return tile.hasConstantLowerBound() && tile.getConstantLowerBound() == 0 &&
           tile.getStepAsInt() == 1 &&
           llvm::all_of(tile.getUpperBoundOperands(), [&](Value operand) {
             return outermost.isDefinedOutsideOfLoop(operand);
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
