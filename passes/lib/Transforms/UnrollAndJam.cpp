//===- UnrollAndJam.cpp - unroll and jam the inner loops of a band --------===//

#include "Bridge/Analysis/Legality.h"
#include "Bridge/Analysis/Nest.h"
#include "Bridge/Transforms/IndexSetSplit.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace bridge {
#define GEN_PASS_DEF_UNROLLANDJAM
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// True if `value` is computed once a band iteration, by an operation that
/// costs more than a load.
static bool isBandValue(Value value, Block *band) {
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == band && isMemoryEffectFree(op) &&
         !isa<AffineForOp, AffineApplyOp, arith::ConstantOp>(op);
}

/// True if an operation in `loop` uses a value of the band's body.
static bool usesBandValue(AffineForOp loop, Block *band) {
  return loop
      ->walk([&](Operation *op) {
        bool uses = llvm::any_of(op->getOperands(), [&](Value operand) {
          return isBandValue(operand, band);
        });
        return uses ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// True if another operation of the band writes what `loop` reads, or reads or
/// writes what it writes.
static bool exchangesElements(AffineForOp loop, Operation *band) {
  auto isExchanged = [&](Operation *op, Value memref) {
    bool writes = isa<AffineWriteOpInterface>(op);
    return llvm::any_of(memref.getUsers(), [&](Operation *user) {
      return band->isProperAncestor(user) && !loop->isProperAncestor(user) &&
             (writes || isa<AffineWriteOpInterface>(user));
    });
  };
  return loop
      ->walk([&](Operation *op) {
        bool exchanges = llvm::any_of(op->getOperands(), [&](Value operand) {
          return isa<MemRefType>(operand.getType()) && isExchanged(op, operand);
        });
        return exchanges ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// True if `loop` is the innermost loop of a fused band.
static bool isInnermostOfBand(AffineForOp loop) {
  auto isBand = [](Operation &op) {
    return isa<AffineForOp>(op) && op.hasAttr(kBandAttr);
  };
  return isBand(*loop) && llvm::none_of(*loop.getBody(), isBand);
}

namespace {

struct UnrollAndJam : bridge::impl::UnrollAndJamBase<UnrollAndJam> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<AffineForOp> bands;
    getOperation()->walk([&](AffineForOp loop) {
      if (isInnermostOfBand(loop))
        bands.push_back(loop);
    });
    for (AffineForOp loop : bands)
      runOnBand(loop.getBody());
  }

private:
  void runOnBand(Block *band) {
    for (auto loop : llvm::make_early_inc_range(band->getOps<AffineForOp>()))
      if (loop.getNumIterOperands() == 0 && usesBandValue(loop, band) &&
          !exchangesElements(loop, band->getParentOp()))
        unrollAndJam(loop);
  }

  /// Strip-mines the innermost loop into `unrollJamFactor` contiguous pieces,
  /// unrolls the loop over the pieces and jams the copies. Each access keeps
  /// its stride.
  void unrollAndJam(AffineForOp loop) {
    SmallVector<AffineForOp> chain = getChain(loop);
    AffineForOp innermost = chain.back();
    auto extents = getConstantExtents(ArrayRef(innermost));
    if (!extents || unrollJamFactor < 2 ||
        (*extents)[0] % unrollJamFactor != 0 ||
        (*extents)[0] / unrollJamFactor < minExtent)
      return;
    if (failed(checkAnalysable(innermost)) ||
        !isReorderable(ArrayRef(innermost)))
      return;
    int64_t tile = (*extents)[0] / unrollJamFactor;
    AffineExpr j = getAffineDimExpr(0, &getContext());
    SmallVector<AffineMap> maps;
    for (int64_t piece = 0; piece < unrollJamFactor; ++piece)
      maps.push_back(AffineMap::get(1, 0, j + piece * tile));
    splitIndexSet(ArrayRef(innermost), {tile}, maps);
    ++numUnrolled;
  }
};

} // namespace
