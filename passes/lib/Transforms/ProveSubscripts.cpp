//===- ProveSubscripts.cpp - prove accesses inside of their memrefs -------===//

#include "Bridge/Analysis/Bounds.h"
#include "Bridge/IR/BridgeOps.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {
#define GEN_PASS_DEF_PROVESUBSCRIPTS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;

namespace {

struct ProveSubscripts : bridge::impl::ProveSubscriptsBase<ProveSubscripts> {
  using Base::Base;

  void runOnOperation() override {
    bool allProven = true;
    getOperation().walk([&](Operation *op) {
      if (isa<AffineReadOpInterface, AffineWriteOpInterface>(op))
        allProven &= prove(op);
      if (isa<bridge::GatherOp>(op))
        allProven &= refuse(op, {bridge::Reason::indirect_index,
                                 "the place of the element depends on data"});
    });
    if (strict && !allProven)
      signalPassFailure();
  }

private:
  /// Returns false, with a remark, for an access that is not proven inside.
  bool prove(Operation *access) {
    bridge::FusionResult result = bridge::checkSubscripts(access);
    if (succeeded(result)) {
      ++numInside;
      return true;
    }
    return refuse(access, result.getRefusal());
  }

  bool refuse(Operation *access, const bridge::Refusal &refusal) {
    ++numNotProven;
    bridge::refuse(access, refusal);
    return false;
  }
};

} // namespace
