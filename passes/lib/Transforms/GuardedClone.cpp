//===- GuardedClone.cpp - clone a body under a guard ----------------------===//

#include "Bridge/Transforms/GuardedClone.h"

#include "Bridge/Analysis/Nest.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

static bool isStoredTo(Value memref) {
  return llvm::any_of(memref.getUsers(), [&](Operation *user) {
    auto store = dyn_cast<AffineStoreOp>(user);
    return store && store.getMemRef() == memref;
  });
}

/// True if the subscripts of `access` that depend on one of `variables` stay
/// inside its memref.
static bool staysInside(AffineLoadOp access, ArrayRef<Value> variables) {
  AffineValueMap map;
  MemRefAccess(access).getAccessMap(&map);
  SmallVector<AffineExpr> symbols;
  for (unsigned i = 0; i < map.getNumSymbols(); ++i)
    symbols.push_back(
        getAffineDimExpr(map.getNumDims() + i, access.getContext()));
  MemRefType type = access.getMemRefType();
  for (unsigned k = 0; k < map.getNumResults(); ++k) {
    AffineExpr subscript = map.getResult(k);
    bool varies = llvm::any_of(variables, [&](Value variable) {
      unsigned dim =
          llvm::find(map.getOperands(), variable) - map.getOperands().begin();
      return dim < map.getNumDims() && subscript.isFunctionOfDim(dim);
    });
    if (varies && (type.isDynamicDim(k) ||
                   !isWithin(subscript.replaceSymbols(symbols),
                             map.getOperands(), 0, type.getDimSize(k), access)))
      return false;
  }
  return true;
}

/// Returns the only user of a load if it extends the loaded float. It is cloned
/// under the load's guard: store forwarding looks for it there, to forward the
/// value before rounding.
static Operation *getExtension(Operation *op) {
  if (!isa<AffineLoadOp>(op) || !op->hasOneUse())
    return nullptr;
  return dyn_cast<arith::ExtFOp>(*op->user_begin());
}

/// True if the `else` region of an `affine.if` is pure and yields zeros.
static bool doesNothingElsewhere(AffineIfOp guarded) {
  if (!guarded.hasElse())
    return true;
  Operation *yield = guarded.getElseBlock()->getTerminator();
  return llvm::all_of(*guarded.getElseBlock(),
                      [](Operation &op) { return isPure(&op); }) &&
         llvm::all_of(yield->getOperands(), [](Value value) {
           return matchPattern(value, m_Zero()) ||
                  matchPattern(value, m_PosZeroFloat());
         });
}

/// Unguarded loads are preferred: CSE can merge them with other nests' loads.
bool GuardedCloner::isSafe(AffineLoadOp load) {
  if (isStoredTo(load.getMemRef()))
    return false;
  IRMapping ofTrial(mapping);
  auto trial = cast<AffineLoadOp>(builder.clone(*load, ofTrial));
  bool inside = staysInside(trial, operands);
  trial->erase();
  return inside;
}

void GuardedCloner::clone(Operation *op) {
  if (op->getNumResults() == 1 && mapping.contains(op->getResult(0)))
    return;
  if (auto loop = dyn_cast<AffineForOp>(op))
    return cloneLoop(loop);
  if (auto guarded = dyn_cast<AffineIfOp>(op);
      guarded && doesNothingElsewhere(guarded))
    return cloneConjunction(guarded);
  if (auto load = dyn_cast<AffineLoadOp>(op); load && isSafe(load))
    return (void)builder.clone(*op, mapping);
  if (isPure(op) && op->getNumRegions() == 0)
    return (void)builder.clone(*op, mapping);
  cloneGuarded(op);
}

void GuardedCloner::cloneBody(AffineForOp loop) {
  for (Operation &op : loop.getBody()->without_terminator())
    clone(&op);
}

void GuardedCloner::cloneLoop(AffineForOp loop) {
  auto mapped = [&](ValueRange values) {
    return llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookupOrDefault(value); });
  };
  auto own = AffineForOp::create(
      builder, loop.getLoc(), mapped(loop.getLowerBoundOperands()),
      loop.getLowerBoundMap(), mapped(loop.getUpperBoundOperands()),
      loop.getUpperBoundMap(), loop.getStepAsInt(), mapped(loop.getInits()));
  own->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  mapping.map(loop.getInductionVar(), own.getInductionVar());
  mapping.map(loop.getRegionIterArgs(), own.getRegionIterArgs());
  mapping.map(loop.getResults(), own.getResults());
  OpBuilder::InsertionGuard restore(builder);
  builder.setInsertionPointToStart(own.getBody());
  cloneBody(loop);
  if (loop.getNumIterOperands() != 0)
    AffineYieldOp::create(
        builder, loop.getLoc(),
        mapped(loop.getBody()->getTerminator()->getOperands()));
}

/// Makes one guard of two nested ones: CSE can then merge it with an equal
/// guard of another nest.
void GuardedCloner::cloneConjunction(AffineIfOp op) {
  auto copy = cast<AffineIfOp>(builder.clone(*op, mapping));
  IntegerSet own = copy.getIntegerSet();
  unsigned dims = own.getNumDims();
  SmallVector<AffineExpr> constraints(own.getConstraints());
  SmallVector<bool> isEquality(own.getEqFlags());
  for (auto [expr, equal] :
       llvm::zip(guard.getConstraints(), guard.getEqFlags())) {
    constraints.push_back(expr.shiftDims(guard.getNumDims(), dims));
    isEquality.push_back(equal);
  }
  SmallVector<Value> all(copy.getOperands().take_front(dims));
  llvm::append_range(all, operands);
  llvm::append_range(all, copy.getOperands().drop_front(dims));
  auto both = IntegerSet::get(dims + guard.getNumDims(), own.getNumSymbols(),
                              constraints, isEquality);
  canonicalizeSetAndOperands(&both, &all);
  copy.setConditional(both, all);
}

void GuardedCloner::cloneGuarded(Operation *op) {
  Location loc = op->getLoc();
  Operation *extension = getExtension(op);
  Operation *last = extension ? extension : op;
  auto guarded =
      AffineIfOp::create(builder, loc, last->getResultTypes(), guard, operands,
                         /*withElseRegion=*/op->getNumResults() != 0);
  OpBuilder::InsertionGuard restore(builder);
  builder.setInsertionPointToStart(guarded.getThenBlock());
  IRMapping inner(mapping);
  Operation *copy = builder.clone(*op, inner);
  if (extension)
    copy = builder.clone(*extension, inner);
  if (last->getNumResults() == 0)
    return;
  AffineYieldOp::create(builder, loc, copy->getResults());
  builder.setInsertionPointToStart(guarded.getElseBlock());
  SmallVector<Value> zeros;
  for (Type type : last->getResultTypes())
    zeros.push_back(
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type)));
  AffineYieldOp::create(builder, loc, zeros);
  mapping.map(last->getResults(), guarded.getResults());
}
