//===- SimplifySubscripts.cpp - one short form of subscripts --------------===//

#include "Bridge/Analysis/Subscripts.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {
#define GEN_PASS_DEF_SIMPLIFYSUBSCRIPTS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// Orders the map's dimensions by the loops that they are variables of, from
/// the outermost inward, each once: then equal subscripts are equal maps.
static void sortDims(AffineMap &map, SmallVectorImpl<Value> &operands) {
  canonicalizeMapAndOperands(&map, &operands);
  auto getDepth = [](Value value) -> unsigned {
    AffineForOp loop = getForInductionVarOwner(value);
    return loop ? getNestingDepth(loop) : ~0u;
  };
  auto sorted =
      llvm::to_vector(ArrayRef<Value>(operands).take_front(map.getNumDims()));
  llvm::stable_sort(
      sorted, [&](Value a, Value b) { return getDepth(a) < getDepth(b); });
  SmallVector<AffineExpr> dims;
  for (Value value : ArrayRef(operands).take_front(map.getNumDims()))
    dims.push_back(getAffineDimExpr(llvm::find(sorted, value) - sorted.begin(),
                                    map.getContext()));
  map = map.replaceDimsAndSymbols(dims, {}, map.getNumDims(),
                                  map.getNumSymbols());
  llvm::copy(sorted, operands.begin());
}

static AffineMap simplify(AffineMap map, ArrayRef<Value> operands) {
  SmallVector<AffineExpr> results;
  for (AffineExpr result : map.getResults())
    results.push_back(
        simplifyInBounds(result, operands.take_front(map.getNumDims())));
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), results,
                        map.getContext());
}

namespace {

struct SimplifySubscripts
    : bridge::impl::SimplifySubscriptsBase<SimplifySubscripts> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (auto load = dyn_cast<AffineLoadOp>(op))
        change(op, load.getAffineMap(), load.getMapOperands());
      else if (auto store = dyn_cast<AffineStoreOp>(op))
        change(op, store.getAffineMap(), store.getMapOperands());
      else if (auto apply = dyn_cast<AffineApplyOp>(op))
        change(op, apply.getAffineMap(), apply.getMapOperands());
    });
  }

private:
  /// Simplifies the map of `op`, whose operands are the last ones of `op`.
  void change(Operation *op, AffineMap map, ValueRange mapOperands) {
    SmallVector<Value> operands(mapOperands), own(op->getOperands());
    AffineMap shorter = map;
    sortDims(shorter, operands);
    shorter = simplify(shorter, operands);
    if (shorter == map)
      return;
    own.truncate(own.size() - mapOperands.size());
    own.append(operands);
    op->setOperands(own);
    op->setAttr("map", AffineMapAttr::get(shorter));
    ++numSimplified;
  }
};

} // namespace
