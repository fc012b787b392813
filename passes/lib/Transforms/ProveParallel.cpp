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
    queries.clear();
    getOperation().walk([&](affine::AffineForOp loop) {
      if (loop->hasAttr(bridge::kBandAttr))
        allProven &= prove(loop);
    });
    if (strict && !allProven)
      signalPassFailure();
  }

private:
  bridge::DependenceQueryCache queries;

  /// Marks `loop` if it is parallel, else emits a remark with the reason.
  bool prove(affine::AffineForOp loop) {
    bridge::FusionResult result = bridge::checkAnalysable(loop);
    if (succeeded(result) && bridge::isParallel(loop, queries)) {
      loop->setAttr(bridge::kParallelAttr, UnitAttr::get(&getContext()));
      ++numParallel;
      return true;
    }
    ++numSerial;
    loop->removeAttr(bridge::kParallelAttr); // The input may have it.
    if (succeeded(result))
      result = bridge::Refusal{
          bridge::Reason::loop_carried_dependence,
          "an iteration needs another's result",
          bridge::describe(bridge::findDependenceExample(loop))};
    bridge::refuse(loop, result.getRefusal());
    return false;
  }
};

} // namespace
