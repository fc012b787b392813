//===- LaneRule.cpp - no lane sees what another one stores ----------------===//

#include "Bridge/Analysis/LaneRule.h"

#include "Bridge/Analysis/DependenceExample.h"
#include "Bridge/Analysis/Nest.h"
#include "Bridge/Analysis/Subscripts.h"
#include "Bridge/IR/BridgeOps.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/LoopAnalysis.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

/// Returns the number of a lane: the loops' variables, given as expressions,
/// are its digits in a mixed radix. Null if an extent is not constant.
static AffineExpr getLane(ArrayRef<AffineForOp> loops,
                          ArrayRef<AffineExpr> variables) {
  AffineExpr lane = variables.front();
  for (auto [loop, variable] :
       llvm::drop_begin(llvm::zip_equal(loops, variables))) {
    auto extent = getConstantTripCount(loop);
    if (!extent)
      return {};
    lane = lane * int64_t(*extent) + variable;
  }
  return lane;
}

/// Returns the innermost loop of the band that the store is below.
static AffineForOp getBand(const ReachingStore &reaching) {
  AffineStoreOp store = reaching.store;
  Operation *statement =
      reaching.loops.empty()
          ? store.getOperation()
          : AffineForOp(reaching.loops.front()).getOperation();
  return statement->getParentOfType<AffineForOp>(); // Past guards.
}

/// True if the store's loops are the outer ones of the load's, and the same
/// iteration of them stores and reads.
static bool isPrefix(const ReachingStore &reaching, ArrayRef<AffineForOp> loops,
                     ArrayRef<AffineExpr> variables) {
  if (reaching.loops.size() > loops.size())
    return false;
  for (auto [i, loop] : llvm::enumerate(reaching.loops))
    if (reaching.map.getResult(i) != variables[i] ||
        !haveSameDomain(loop, loops[i]))
      return false;
  return true;
}

/// True if each iteration of the store's loops is a segment of equally many
/// lanes, and every lane reads what its own segment stored. `operands` are what
/// the dimensions of all expressions stand for.
static bool isSegment(const ReachingStore &reaching,
                      ArrayRef<AffineForOp> loops,
                      ArrayRef<AffineExpr> variables,
                      ArrayRef<Value> operands) {
  auto segments = getVolume(reaching.loops), lanes = getVolume(loops);
  if (!segments || !lanes || *segments == 0 || *lanes % *segments != 0)
    return false;
  AffineExpr segment = getLane(reaching.loops, reaching.map.getResults());
  AffineExpr lane = getLane(loops, variables);
  AffineExpr own = lane.floorDiv(*lanes / *segments);
  return simplifyInBounds(segment - own, operands) == 0;
}

bool bridge::isSameLane(const ReachingStore &reaching, AffineLoadOp load) {
  if (reaching.loops.empty())
    return true; // All lanes have the value of the band iteration.
  SmallVector<AffineForOp> loops = getLoopsInBand(load, getBand(reaching));
  SmallVector<Value> operands(reaching.operands);
  SmallVector<AffineExpr> variables;
  for (AffineForOp loop : loops) {
    auto it = llvm::find(operands, loop.getInductionVar());
    unsigned position = it - operands.begin();
    if (it == operands.end())
      operands.push_back(loop.getInductionVar());
    variables.push_back(getAffineDimExpr(position, load.getContext()));
  }
  if (loops.empty())
    return false;
  return isPrefix(reaching, loops, variables) ||
         isSegment(reaching, loops, variables, operands);
}

//===----------------------------------------------------------------------===//
// Recomputation
//===----------------------------------------------------------------------===//

/// Returns the operation of `band`'s body that contains `op`.
static Operation *getStatement(Operation *op, AffineForOp band) {
  return band.getBody()->findAncestorOpInBlock(*op);
}

/// True if a function draws a random number.
static bool isDraw(SpecialFn fn) {
  return fn == SpecialFn::rand || fn == SpecialFn::randn ||
         fn == SpecialFn::randint64;
}

/// True if `op` draws a random number.
static bool isDraw(Operation *op) {
  auto special = dyn_cast<SpecialOp>(op);
  return special && isDraw(special.getFn());
}

/// True if a function that arith and math lack takes about as long as a load.
static bool isCheap(SpecialFn fn) {
  switch (fn) {
  case SpecialFn::relu:
  case SpecialFn::sign:
  case SpecialFn::signbit:
  case SpecialFn::libdevice_abs:
  case SpecialFn::libdevice_sqrt:
  case SpecialFn::libdevice_rsqrt:
  case SpecialFn::floordiv:
  case SpecialFn::truncdiv:
  case SpecialFn::int_truediv:
  case SpecialFn::truediv:
  case SpecialFn::div_rn:
  case SpecialFn::mul_rn:
  case SpecialFn::trunc_to_int:
  case SpecialFn::floor_to_int:
  case SpecialFn::ceil_to_int:
  case SpecialFn::round_to_int:
  case SpecialFn::identity:
    return true;
  default:
    return isDraw(fn);
  }
}

static bool isTranscendental(Operation *op) {
  if (auto special = dyn_cast<SpecialOp>(op))
    return !isCheap(special.getFn());
  return isa<math::MathDialect>(op->getDialect()) &&
         !isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::FloorOp,
              math::RoundOp, math::RoundEvenOp, math::TruncOp, math::IsNaNOp,
              math::IsInfOp, math::CopySignOp, math::FmaOp, math::SqrtOp,
              math::RsqrtOp>(op);
}

/// True if a lane that reads again, at `place`, what `load` reads in it gets
/// the same value: the lane's own only store of it is before both.
static bool isStillThere(const ReachingStore &own, AffineLoadOp load,
                         AffineLoadOp place, AffineForOp band) {
  return getStores(load.getMemRef(), band).size() == 1 &&
         precedes(own.store, load, band) && precedes(own.store, place, band) &&
         isSameLane(own, load);
}

namespace {

/// Asks whether a value may be recomputed in one place. What several values are
/// computed from is asked once: in a chain whose steps each read the two before
/// them, the ways that lead to the first step double with each second one.
class Recomputability {
public:
  /// `sameLane`: the lane at `place` has computed the value, be it to compute
  /// what it reads there.
  Recomputability(AffineLoadOp place, AffineForOp band, Recomputation allowed,
                  bool sameLane)
      : place(place), band(band), allowed(allowed), sameLane(sameLane) {}

  /// True if the stored value may be recomputed at the place.
  bool holds(const ReachingStore &reaching);

private:
  bool isAllowed(Operation *op, Operation *statement);
  bool isComputedFromAllowed(const ReachingStore &reaching);

  AffineLoadOp place;
  AffineForOp band;
  Recomputation allowed;
  bool sameLane;
  llvm::SmallDenseMap<Operation *, bool> known;
};

} // namespace

bool Recomputability::holds(const ReachingStore &reaching) {
  AffineStoreOp store = reaching.store;
  if (auto it = known.find(store); it != known.end())
    return it->second;
  bool result = isComputedFromAllowed(reaching);
  known[store] = result;
  return result;
}

/// True if `op`, a part of the computation of a value that `statement` stores,
/// may be recomputed: it is no loop, and it reads no memory that the band
/// writes between the two.
bool Recomputability::isAllowed(Operation *op, Operation *statement) {
  if ((!allowed.math && isTranscendental(op)) || (!allowed.draws && isDraw(op)))
    return false;
  auto load = dyn_cast<AffineLoadOp>(op);
  if (!load)
    return isa<AffineIfOp>(op) ||
           (!isa<AffineForOp>(op) && isMemoryEffectFree(op));
  // What the lane has stored just before is computed again with the rest.
  auto own = getReachingStore(load, band);
  if (own && getStatement(own->store, band) == statement &&
      precedes(own->store, load, band) && isSameLane(*own, load))
    return holds(*own) || (sameLane && isStillThere(*own, load, place, band));
  return llvm::all_of(getStores(load.getMemRef(), band), [&](AffineStoreOp s) {
    return getStatement(s, band)->isBeforeInBlock(statement) ||
           precedes(place, s, band) || !mayMeetInBand(s, load, band);
  });
}

bool Recomputability::isComputedFromAllowed(const ReachingStore &reaching) {
  AffineStoreOp store = reaching.store;
  Operation *statement = getStatement(store, band);
  if (llvm::any_of(reaching.loops, [](AffineForOp loop) {
        return loop.getNumIterOperands() != 0;
      }))
    return false;
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false;
  options.inclusive = true;
  // Values of the band's body need no recomputation, unless the store itself is
  // in that body.
  Operation *scope = reaching.loops.empty() ? band.getOperation() : statement;
  options.filter = [&](Operation *op) { return scope->isProperAncestor(op); };
  if (failed(getBackwardSlice(store.getValueToStore(), &slice, options)))
    return false;
  return llvm::all_of(slice,
                      [&](Operation *op) { return isAllowed(op, statement); });
}

bool bridge::isRecomputable(const ReachingStore &reaching, AffineLoadOp load,
                            Recomputation allowed) {
  Recomputability question(load, getBand(reaching), allowed,
                           isSameLane(reaching, load));
  return question.holds(reaching);
}

//===----------------------------------------------------------------------===//
// The rule
//===----------------------------------------------------------------------===//

SmallVector<AffineLoadOp> bridge::getInnerFlows(AffineForOp band) {
  llvm::SmallDenseSet<Value> once, flowing;
  band.walk([&](AffineStoreOp store) {
    bool isFirst = once.insert(store.getMemRef()).second;
    if (!isFirst || store->getBlock() != band.getBody())
      flowing.insert(store.getMemRef());
  });
  SmallVector<AffineLoadOp> loads;
  band.walk([&](AffineLoadOp load) {
    if (flowing.contains(load.getMemRef()))
      loads.push_back(load);
  });
  return loads;
}

/// True if no lane writes what the load reads before the load, and no other
/// lane after it.
static bool isOverwrittenInLane(AffineLoadOp load, AffineForOp band) {
  auto stores = getStores(load.getMemRef(), band);
  return llvm::all_of(stores, [&](AffineStoreOp store) {
    auto overwrite =
        solveReachingStore(store, getLoopsInBand(store, band), load);
    if (overwrite && precedes(load, store, band))
      return isSameLane(*overwrite, load);
    return !mayMeetInBand(store, load, band);
  });
}

bool bridge::staysInLane(AffineLoadOp load, AffineForOp band) {
  if (isOverwrittenInLane(load, band))
    return true;
  // Inductor hands on what a kernel has stored by buffer, not by element: of
  // two stores to a buffer, a load would get the value of the last one.
  if (getStores(load.getMemRef(), band).size() != 1)
    return false;
  auto reaching = getReachingStore(load, band);
  return reaching && isSameLane(*reaching, load);
}

bool bridge::isBroadcast(const ReachingStore &reaching, AffineLoadOp load) {
  AffineForOp band = getBand(reaching);
  if (reaching.loops.empty() || getStores(load.getMemRef(), band).size() != 1)
    return false;
  for (auto [position, operand] : llvm::enumerate(reaching.operands)) {
    AffineForOp loop = getForInductionVarOwner(operand);
    if (!loop || !band->isProperAncestor(loop))
      continue;
    for (AffineExpr iteration : reaching.map.getResults())
      if (iteration.isFunctionOfDim(position))
        return false;
  }
  return true;
}

bool bridge::isAtHand(const ReachingStore &reaching, AffineLoadOp load) {
  AffineForOp band = getBand(reaching);
  return reaching.loops.empty() &&
         reaching.store->getBlock() == band.getBody() &&
         precedes(reaching.store, load, band);
}

/// Checks one load of `checkLaneRule`.
static FusionResult checkLoad(AffineLoadOp load, AffineForOp band,
                              Recomputation allowed, bool broadcasts) {
  if (staysInLane(load, band))
    return FusionResult::success();
  auto reaching = getReachingStore(load, band);
  if (!reaching)
    return Refusal{Reason::cross_lane_dependence,
                   "a load needs an element that its band iteration "
                   "writes, and which store does is not proven",
                   describe(findLaneDependenceExample(load, band))};
  if (!isRecomputable(*reaching, load) && broadcasts &&
      (isBroadcast(*reaching, load) || isAtHand(*reaching, load)))
    return FusionResult::success();
  if (!isRecomputable(*reaching, load))
    return Refusal{Reason::cross_lane_dependence,
                   "a load needs what another lane reduces",
                   describe(findLaneDependenceExample(load, band))};
  // Where mathematics may be computed again a row is in registers, and what the
  // lane itself has drawn is there: equal expressions become one.
  if (allowed.math && isSameLane(*reaching, load))
    allowed.draws = true;
  if (!isRecomputable(*reaching, load, allowed))
    return Refusal{Reason::not_profitable,
                   "a transcendental function or a random number would be "
                   "computed again"};
  return FusionResult::success();
}

FusionResult bridge::checkLaneRule(AffineForOp band, Recomputation allowed,
                                   bool broadcasts) {
  for (AffineLoadOp load : getInnerFlows(band))
    if (FusionResult result = checkLoad(load, band, allowed, broadcasts);
        failed(result))
      return result;
  return FusionResult::success();
}
