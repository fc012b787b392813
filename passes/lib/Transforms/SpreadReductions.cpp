//===- SpreadReductions.cpp - reduce what segments of a row reduced -------===//

#include "Bridge/Analysis/Combiners.h"
#include "Bridge/Analysis/Iteration.h"
#include "Bridge/Analysis/Legality.h"
#include "Bridge/Analysis/Nest.h"
#include "Bridge/IR/BridgeOps.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace bridge {
#define GEN_PASS_DEF_SPREADREDUCTIONS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// True if `loop` carries states, may be reordered, and each of its combiners
/// has a neutral element.
static bool isPlainReduction(AffineForOp loop) {
  return loop.getNumIterOperands() != 0 && getConstantExtents(loop) &&
         succeeded(checkAnalysable(loop)) && isReorderable(ArrayRef(loop)) &&
         getCombiners(loop);
}

/// True if `loop` reads a memref that the body of `segments` stores to.
static bool readsStored(AffineForOp loop, AffineForOp segments) {
  llvm::SmallPtrSet<Value, 4> stored;
  for (auto store : segments.getBody()->getOps<AffineStoreOp>())
    stored.insert(store.getMemRef());
  auto found = loop.getBody()->walk([&](AffineLoadOp load) {
    return stored.contains(load.getMemRef()) ? WalkResult::interrupt()
                                             : WalkResult::advance();
  });
  return found.wasInterrupted();
}

/// Returns how many lanes each segment has that `loop`, below the loops of
/// `reader`, reads the result of: `writer` has one loop more, of the domain of
/// `loop`, in each of whose iterations it reduces. Zero if it does not.
static int64_t getLanes(AffineForOp loop, Nest &reader, Nest &writer) {
  unsigned depth = reader.loops.size();
  if (writer.loops.size() != depth + 1 ||
      getSharedDepth(reader, writer) != depth)
    return 0;
  SmallVector<AffineForOp> row = getLaneChain(writer.loops.back());
  if (row.size() < 2 || row[0].getNumIterOperands() != 0 ||
      row[1].getNumIterOperands() == 0 || !haveSameDomain(loop, row[0]) ||
      !readsStored(loop, row[0]))
    return 0;
  return getVolume(ArrayRef(row).drop_front()).value_or(0);
}

/// Puts a loop over `lanes` lanes into a reduction, of which only the first
/// adds something.
static void spread(AffineForOp loop, int64_t lanes) {
  auto combiners = *getCombiners(loop);
  Location loc = loop.getLoc();
  Block *body = loop.getBody();
  auto yield = cast<AffineYieldOp>(body->getTerminator());
  OpBuilder builder(yield);
  auto inner =
      AffineForOp::create(builder, loc, 0, lanes, 1, loop.getRegionIterArgs());
  inner.getBody()->getOperations().splice(inner.getBody()->begin(),
                                          body->getOperations(), body->begin(),
                                          inner->getIterator());
  builder.setInsertionPointToEnd(inner.getBody());
  AffineYieldOp::create(builder, loc, yield.getOperands());
  yield->setOperands(inner.getResults());
  for (auto [outer, own] :
       llvm::zip(loop.getRegionIterArgs(), inner.getRegionIterArgs()))
    outer.replaceUsesWithIf(own, [&](OpOperand &use) {
      return use.getOwner() != inner.getOperation();
    });
  builder.setInsertionPointToStart(inner.getBody());
  Value lane = arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                          inner.getInductionVar());
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 64);
  Value first =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, lane, zero);
  for (auto &[combiner, added] : combiners) {
    builder.setInsertionPoint(combiner);
    selectOrNeutral(builder, combiner, added, first);
  }
  recordIterations(inner, AffineMap::get(1, 0, {}, builder.getContext()),
                   getNestingDepth(inner));
}

namespace {

struct SpreadReductions : bridge::impl::SpreadReductionsBase<SpreadReductions> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    SmallVector<AffineForOp> roots = getRoots(getOperation().getBody().front());
    for (AffineForOp root : roots)
      spreadAll(getNest(root), roots);
  }

private:
  void spreadAll(Nest reader, ArrayRef<AffineForOp> roots) {
    Block *body = reader.loops.back().getBody();
    for (auto loop : llvm::to_vector(body->getOps<AffineForOp>()))
      for (AffineForOp root : roots) {
        Nest writer = getNest(root);
        int64_t lanes = getLanes(loop, reader, writer);
        if (lanes == 0 || !isPlainReduction(loop))
          continue;
        spread(loop, lanes);
        ++numSpread;
        break;
      }
  }
};

} // namespace
