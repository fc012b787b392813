//===- ProveParallel.cpp - prove bands parallel ---------------------------===//

#include "Bridge/Analysis/Legality.h"
#include "Bridge/Support/Reasons.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {
#define GEN_PASS_DEF_PROVEPARALLEL
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;

namespace {

struct ProveParallel : bridge::impl::ProveParallelBase<ProveParallel> {
  using Base::Base;

  void runOnOperation() override {
    bool allProven = true;
    independent.clear();
    getOperation().walk([&](affine::AffineForOp loop) {
      if (loop->hasAttr(bridge::kBandAttr))
        allProven &= prove(loop);
    });
    if (strict && !allProven)
      signalPassFailure();
  }

private:
  bridge::Independent independent;

  /// Marks `loop` if it is parallel, else says why not.
  bool prove(affine::AffineForOp loop) {
    auto objection = bridge::getObjection(loop);
    if (!objection && bridge::isParallel(loop, independent)) {
      loop->setAttr(bridge::kParallelAttr, UnitAttr::get(&getContext()));
      ++numParallel;
      return true;
    }
    ++numSerial;
    loop->removeAttr(bridge::kParallelAttr); // Somebody else's claim.
    if (!objection)
      objection = {bridge::Reason::loop_carried_dependence,
                   "an iteration needs another's result",
                   bridge::describe(bridge::findCollision(loop))};
    bridge::refuse(loop, *objection);
    return false;
  }
};

} // namespace
