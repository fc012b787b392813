//===- ShareRowValues.cpp - several elements for one row value ------------===//

#include "Bridge/Analysis/Legality.h"
#include "Bridge/Analysis/Nest.h"
#include "Bridge/Transforms/IndexSetSplit.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace bridge {
#define GEN_PASS_DEF_SHAREROWVALUES
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// Whether `value` is the result of arithmetic on a band iteration: computing
/// it costs more than loading it.
static bool isRowValue(Value value, Block *band) {
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == band && isMemoryEffectFree(op) &&
         !isa<AffineForOp, AffineApplyOp, arith::ConstantOp>(op);
}

static bool usesRowValue(AffineForOp loop, Block *band) {
  return loop
      ->walk([&](Operation *op) {
        bool uses = llvm::any_of(op->getOperands(), [&](Value operand) {
          return isRowValue(operand, band);
        });
        return uses ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether `loop` is the innermost loop of a fused band.
static bool isInnermostOfBand(AffineForOp loop) {
  auto isBand = [](Operation &op) {
    return isa<AffineForOp>(op) && op.hasAttr(kBandAttr);
  };
  return isBand(*loop) && llvm::none_of(*loop.getBody(), isBand);
}

namespace {

struct ShareRowValues : bridge::impl::ShareRowValuesBase<ShareRowValues> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<AffineForOp> bands;
    getOperation()->walk([&](AffineForOp loop) {
      if (isInnermostOfBand(loop))
        bands.push_back(loop);
    });
    for (AffineForOp loop : bands)
      shareIn(loop.getBody());
  }

private:
  void shareIn(Block *band) {
    for (auto loop : llvm::make_early_inc_range(band->getOps<AffineForOp>()))
      if (loop.getNumIterOperands() == 0 && usesRowValue(loop, band))
        share(loop);
  }

  /// Splits the innermost loop into contiguous pieces, so that each stays an
  /// access with the stride that it had.
  void share(AffineForOp loop) {
    SmallVector<AffineForOp> chain = getChain(loop);
    AffineForOp innermost = chain.back();
    auto extents = getConstantExtents(ArrayRef(innermost));
    if (!extents || pieces < 2 || (*extents)[0] % pieces != 0 ||
        (*extents)[0] / pieces < minExtent)
      return;
    if (getObjection(innermost) || !isReorderable(ArrayRef(innermost)))
      return;
    int64_t tile = (*extents)[0] / pieces;
    AffineExpr j = getAffineDimExpr(0, &getContext());
    SmallVector<AffineMap> maps;
    for (int64_t piece = 0; piece < pieces; ++piece)
      maps.push_back(AffineMap::get(1, 0, j + piece * tile));
    splitIndexSet(ArrayRef(innermost), {tile}, maps);
    ++numSplit;
  }
};

} // namespace
