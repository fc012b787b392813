//===- PadExtents.cpp - guarded lanes for loops of different extents ------===//

#include "Bridge/Analysis/Combiners.h"
#include "Bridge/Analysis/Components.h"
#include "Bridge/Analysis/Iteration.h"
#include "Bridge/Analysis/Legality.h"
#include "Bridge/Support/Reasons.h"
#include "Bridge/Transforms/GuardedClone.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

namespace bridge {
#define GEN_PASS_DEF_PADEXTENTS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

//===----------------------------------------------------------------------===//
// Padding one loop
//===----------------------------------------------------------------------===//

namespace {

/// Rewrites a loop over the domain [0, extent). Only the lanes from `offset`
/// on, as many as the loop has iterations, execute its body.
class Padder {
public:
  Padder(AffineForOp loop, int64_t extent, int64_t offset)
      : loop(loop), builder(loop) {
    length = loop.getConstantUpperBound();
    padded = AffineForOp::create(builder, loop.getLoc(), 0, extent, 1,
                                 loop.getInits());
    builder.setInsertionPointToStart(padded.getBody());
    Value lane = padded.getInductionVar();
    AffineExpr d = builder.getAffineDimExpr(0);
    Value own = AffineApplyOp::create(builder, loop.getLoc(),
                                      AffineMap::get(1, 0, d - offset), lane);
    mapping.map(loop.getInductionVar(), own);
    mapping.map(loop.getRegionIterArgs(), padded.getRegionIterArgs());
    SmallVector<AffineExpr> bounds;
    if (offset + length != extent)
      bounds.push_back(-d + (offset + length - 1));
    if (offset != 0)
      bounds.push_back(d - offset);
    guard =
        IntegerSet::get(1, 0, bounds, SmallVector<bool>(bounds.size(), false));
    low = offset;
  }

  void run() {
    auto combiners = getCombiners(loop);
    GuardedCloner cloner(builder, mapping, guard, padded.getInductionVar());
    for (Operation &op : loop.getBody()->without_terminator()) {
      auto combiner = combiners->find(&op);
      if (combiner == combiners->end())
        cloner.clone(&op);
      else
        cloneMasked(&op, combiner->second);
    }
    finish();
  }

private:
  AffineForOp loop, padded;
  OpBuilder builder;
  IRMapping mapping;
  IntegerSet guard;
  Value condition;
  int64_t length, low;

  /// Clones a combiner; in the other lanes its operands are neutral elements.
  void cloneMasked(Operation *op, ArrayRef<OpOperand *> operands) {
    Location loc = op->getLoc();
    IRMapping inner(mapping);
    for (auto [operand, neutral] : llvm::zip(operands, getNeutral(op))) {
      Value none = arith::ConstantOp::create(builder, loc, neutral);
      Value own = mapping.lookupOrDefault(operand->get());
      inner.map(operand->get(), arith::SelectOp::create(
                                    builder, loc, getCondition(loc), own, none)
                                    .getResult());
    }
    mapping.map(op->getResults(), builder.clone(*op, inner)->getResults());
  }

  /// Returns the guard as a value.
  Value getCondition(Location loc) {
    if (condition)
      return condition;
    Value lane = arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                            padded.getInductionVar());
    auto compare = [&](arith::CmpIPredicate predicate, int64_t bound) {
      Value limit = arith::ConstantIntOp::create(builder, loc, bound, 64);
      return arith::CmpIOp::create(builder, loc, predicate, lane, limit)
          .getResult();
    };
    condition = compare(arith::CmpIPredicate::slt, low + length);
    if (low != 0)
      condition = arith::AndIOp::create(
          builder, loc, condition, compare(arith::CmpIPredicate::sge, low));
    return condition;
  }

  void finish() {
    if (loop.getNumIterOperands() != 0) {
      SmallVector<Value> yielded;
      for (Value value : loop.getBody()->getTerminator()->getOperands())
        yielded.push_back(mapping.lookupOrDefault(value));
      AffineYieldOp::create(builder, loop.getLoc(), yielded);
    }
    AffineExpr own = builder.getAffineDimExpr(0) - low;
    recordIterations(padded, AffineMap::get(1, 0, own),
                     getNestingDepth(padded));
    loop.replaceAllUsesWith(padded.getResults());
    loop.erase();
  }
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct PadExtents : bridge::impl::PadExtentsBase<PadExtents> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    SmallVector<AffineForOp> roots = getRoots(getOperation().getBody().front());
    for (Component &component : getComponents(roots))
      pad(component);
  }

private:
  void pad(Component &component) {
    SmallVector<AffineForOp> lanes;
    for (Nest &nest : component.nests)
      for (ArrayRef<AffineForOp> chain :
           getInnerChains(nest, component.depth)) {
        if (chain.size() != 1 || !getConstantExtents(chain))
          return padDeeper(component);
        lanes.push_back(chain.front());
      }
    int64_t widest = 0;
    for (AffineForOp loop : lanes)
      widest = std::max<int64_t>(widest, loop.getConstantUpperBound());
    llvm::erase_if(lanes, [&](AffineForOp loop) {
      return loop.getConstantUpperBound() == widest;
    });
    if (!llvm::all_of(lanes, [&](AffineForOp loop) { return mayPad(loop); }))
      return;
    for (AffineForOp loop : lanes) {
      Padder(loop, widest, getOffset(loop, widest)).run();
      ++numPadded;
    }
  }

  /// Pads the nests that have more outer loops in common than all of them: the
  /// others stay apart.
  void padDeeper(Component &component) {
    for (Component &deeper : getDeeperComponents(component))
      pad(deeper);
  }

  bool mayPad(AffineForOp loop) {
    if (FusionResult result = checkAnalysable(loop); failed(result)) {
      const Refusal &refusal = result.getRefusal();
      emitRefusal(loop, refusal.reason) << refusal.text;
      return false;
    }
    if (isReorderable(ArrayRef(loop)) && getCombiners(loop))
      return true;
    emitRefusal(loop, Reason::reduction_not_splittable)
        << "its iterations cannot be reordered, or no lane can be left out";
    return false;
  }

  /// Returns the lane for the loop's first iteration. If the loop reads a row
  /// from an offset on, it is that offset: then the lane is the one that other
  /// nests access the same element in.
  static int64_t getOffset(AffineForOp loop, int64_t widest) {
    int64_t offset = 0, room = widest - loop.getConstantUpperBound();
    loop.walk([&](AffineLoadOp load) {
      AffineValueMap map;
      MemRefAccess(load).getAccessMap(&map);
      for (AffineExpr subscript : map.getAffineMap().getResults())
        if (auto found = getShift(subscript, map, loop.getInductionVar());
            found && *found > 0 && *found <= room) {
          offset = *found;
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return offset;
  }

  /// Returns c floordiv a for a subscript `a * variable + c`: in that lane a
  /// row of interleaved pieces has the element.
  static std::optional<int64_t> getShift(AffineExpr subscript,
                                         AffineValueMap &map, Value variable) {
    SmallVector<int64_t> flat;
    if (failed(getFlattenedAffineExpr(subscript, map.getNumDims(),
                                      map.getNumSymbols(), &flat)) ||
        flat.size() != map.getNumOperands() + 1)
      return std::nullopt;
    int64_t step = 0;
    for (auto [operand, factor] : llvm::zip(map.getOperands(), flat)) {
      if (operand != variable && factor != 0)
        return std::nullopt;
      if (operand == variable)
        step = factor;
    }
    return step > 0 ? std::optional(llvm::divideFloorSigned(flat.back(), step))
                    : std::nullopt;
  }

  InFlightDiagnostic emitRefusal(AffineForOp loop, Reason reason) {
    ++numRefused;
    return refuse(loop, reason);
  }
};

} // namespace
