//===- Iteration.cpp - the iterations before the passes -------------------===//

#include "Bridge/Analysis/Iteration.h"

#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"

using namespace mlir;
using namespace mlir::affine;

static constexpr llvm::StringLiteral kIteration = "bridge.iteration";

/// Returns the recorded map; null if there is none.
static AffineMap getRecord(Operation *op) {
  auto fused = dyn_cast<FusedLoc>(op->getLoc());
  auto metadata = fused
                      ? dyn_cast_if_present<DictionaryAttr>(fused.getMetadata())
                      : DictionaryAttr();
  auto map =
      metadata ? metadata.getAs<AffineMapAttr>(kIteration) : AffineMapAttr();
  return map ? map.getValue() : AffineMap();
}

Location bridge::getPlainLocation(Operation *op) {
  return getRecord(op) ? cast<FusedLoc>(op->getLoc()).getLocations().front()
                       : op->getLoc();
}

/// Returns a map that gives the variables of all loops around an access at
/// `depth`, where `map` gives those from position `first` on.
static AffineMap extend(AffineMap map, unsigned first, unsigned depth) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> variables;
  for (unsigned i = 0; i < first; ++i)
    variables.push_back(getAffineDimExpr(i, context));
  for (AffineExpr expr : map.getResults())
    variables.push_back(expr.shiftDims(map.getNumDims(), first));
  for (unsigned i = first + map.getNumDims(); i < depth; ++i)
    variables.push_back(getAffineDimExpr(i, context));
  return AffineMap::get(depth, 0, variables, context);
}

/// Returns `outer` of the results of `inner`. An access that has left its
/// innermost loops is in their iteration 0.
static AffineMap compose(AffineMap outer, AffineMap inner) {
  SmallVector<AffineExpr> dims(inner.getResults());
  dims.resize(outer.getNumDims(), getAffineConstantExpr(0, outer.getContext()));
  return outer.replaceDimsAndSymbols(dims, {}, inner.getNumDims(), 0);
}

void bridge::recordIterations(Operation *root, AffineMap map, unsigned first) {
  root->walk([&](Operation *op) {
    if (!isa<AffineReadOpInterface, AffineWriteOpInterface>(op))
      return;
    unsigned depth = getNestingDepth(op);
    AffineMap all = extend(map, first, depth), record = getRecord(op);
    if (record)
      all = compose(record, all);
    MLIRContext *context = op->getContext();
    NamedAttribute entry(StringAttr::get(context, kIteration),
                         AffineMapAttr::get(simplifyAffineMap(all)));
    op->setLoc(FusedLoc::get({getPlainLocation(op)},
                             DictionaryAttr::get(context, entry), context));
  });
}

SmallVector<int64_t> bridge::getFirstIteration(Operation *access,
                                               ArrayRef<int64_t> iteration) {
  AffineMap record = getRecord(access);
  // Other passes than Bridge's may have added loops.
  if (!record || record.getNumDims() < iteration.size())
    return llvm::to_vector(iteration);
  SmallVector<Attribute> operands, results;
  Builder builder(access->getContext());
  for (int64_t variable : iteration)
    operands.push_back(builder.getIndexAttr(variable));
  operands.resize(record.getNumDims(), builder.getIndexAttr(0));
  if (failed(record.constantFold(operands, results)))
    return llvm::to_vector(iteration);
  return llvm::map_to_vector(results, [](Attribute attribute) {
    return cast<IntegerAttr>(attribute).getInt();
  });
}
