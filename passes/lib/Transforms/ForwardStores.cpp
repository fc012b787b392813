//===- ForwardStores.cpp - recompute what other lanes store ---------------===//

#include "Bridge/Analysis/DependenceExample.h"
#include "Bridge/Analysis/Iteration.h"
#include "Bridge/Analysis/LaneRule.h"
#include "Bridge/Analysis/ReachingStore.h"
#include "Bridge/Support/Reasons.h"
#include "Bridge/Transforms/Forward.h"
#include "Bridge/Transforms/Passes.h"

#include "Bridge/IR/BridgeOps.h"

#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace bridge {
#define GEN_PASS_DEF_FORWARDSTORES
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// Returns the variables of the loops around the store as a map of those around
/// the load; null if they also depend on other values.
static AffineMap getStoreIteration(const ReachingStore &reaching,
                                   AffineLoadOp load) {
  SmallVector<AffineForOp> loops;
  getAffineForIVs(*load, &loops);
  MLIRContext *context = load.getContext();
  SmallVector<AffineExpr> dims, variables;
  for (Value operand : reaching.operands) {
    auto loop = llvm::find(loops, getForInductionVarOwner(operand));
    if (loop == loops.end())
      return {};
    dims.push_back(getAffineDimExpr(loop - loops.begin(), context));
  }
  AffineStoreOp store = reaching.store;
  unsigned shared = getNestingDepth(store) - reaching.loops.size();
  for (unsigned i = 0; i < shared; ++i)
    variables.push_back(getAffineDimExpr(i, context));
  for (AffineExpr variable : reaching.map.getResults())
    variables.push_back(variable.replaceDims(dims));
  return AffineMap::get(loops.size(), 0, variables, context);
}

/// Clones the operations inside `outermost` that `value` is computed by.
/// `iteration` has the variables of the loops around them.
static Value recompute(Value value, AffineForOp outermost, AffineMap iteration,
                       OpBuilder &builder, IRMapping &mapping) {
  Operation *op = value.getDefiningOp();
  if (!op || !outermost->isProperAncestor(op))
    return mapping.lookupOrDefault(value);
  if (mapping.contains(value))
    return mapping.lookup(value);
  SetVector<Value> needed(op->getOperands().begin(), op->getOperands().end());
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentBlock()->getParentOp()))
        needed.insert(operand);
  });
  for (Value operand : needed)
    recompute(operand, outermost, iteration, builder, mapping);
  Operation *copy = builder.clone(*op, mapping);
  if (iteration)
    recordIterations(copy, iteration.getMajorSubMap(getNestingDepth(op)));
  return mapping.lookup(value);
}

/// Returns the stored value as it was before it was rounded for the store, if
/// `user` extends the loaded value to the type that it had then.
static Value beforeRounding(Value stored, Operation *user) {
  auto rounding = stored.getDefiningOp<arith::TruncFOp>();
  auto extension = dyn_cast<arith::ExtFOp>(user);
  if (!rounding || !extension ||
      rounding.getIn().getType() != extension.getType())
    return {};
  return rounding.getIn();
}

/// Replaces a load by a value.
static void replace(AffineLoadOp load, Value value, bool excessPrecision) {
  for (Operation *user : llvm::make_early_inc_range(load->getUsers()))
    if (Value exact = excessPrecision ? beforeRounding(value, user) : Value()) {
      user->replaceAllUsesWith(ValueRange{exact});
      user->erase();
    }
  load.replaceAllUsesWith(value);
  load.erase();
}

/// Replaces a load by a copy of the stored value's computation.
static void forward(const ReachingStore &reaching, AffineLoadOp load,
                    bool excessPrecision) {
  OpBuilder builder(load);
  IRMapping mapping;
  for (auto [i, loop] : llvm::enumerate(reaching.loops)) {
    AffineForOp own = loop;
    Value iv = AffineApplyOp::create(builder, load.getLoc(),
                                     reaching.map.getSubMap({unsigned(i)}),
                                     reaching.operands);
    mapping.map(own.getInductionVar(), iv);
  }
  AffineStoreOp store = reaching.store;
  Value value = store.getValueToStore();
  if (!reaching.loops.empty())
    value = recompute(value, reaching.loops.front(),
                      getStoreIteration(reaching, load), builder, mapping);
  replace(load, value, excessPrecision);
}

static int64_t countOperations(AffineForOp band) {
  int64_t count = 0;
  band.walk([&](Operation *) { ++count; });
  return count;
}

/// Limits how often copies are merged: all loads are proven again after that.
static constexpr int kMostMerges = 2;

/// Computes once what several copies compute: a lane that reads two values of
/// another statement often needs the same values for both.
static void mergeCopies(AffineForOp band) {
  MLIRContext *context = band.getContext();
  RewritePatternSet patterns(context);
  AffineApplyOp::getCanonicalizationPatterns(patterns, context);
  AffineLoadOp::getCanonicalizationPatterns(patterns, context);
  SmallVector<Operation *> subscripted;
  band.walk([&](Operation *op) {
    if (isa<AffineApplyOp, AffineLoadOp>(op))
      subscripted.push_back(op);
  });
  // Equal subscripts look equal only once they are composed.
  (void)applyOpPatternsGreedily(subscripted, std::move(patterns));
  IRRewriter rewriter(context);
  DominanceInfo dominance(band->getParentOp());
  eliminateCommonSubExpressions(rewriter, dominance, band);
}

/// Loads are replaced in program order, so that the copies need no forwarding
/// themselves. The number of operations is limited: in a chain of statements
/// that read two lanes each, the copies double with each statement, unless they
/// are copies of the same.
std::optional<ForwardFailure> bridge::forwardStores(AffineForOp band,
                                                    bool excessPrecision,
                                                    int64_t &forwarded,
                                                    bool *broadcast) {
  int64_t limit = 4 * countOperations(band) + 256;
  int mergesLeft = kMostMerges;
  llvm::SmallDenseSet<Operation *> proven;
  while (true) {
    bool isFull = countOperations(band) > limit;
    if (isFull && mergesLeft-- > 0) {
      mergeCopies(band);
      proven.clear();
      isFull = countOperations(band) > limit;
    }
    auto flows = getInnerFlows(band);
    auto next = llvm::find_if(flows, [&](AffineLoadOp load) {
      if (!proven.contains(load) && !staysInLane(load, band))
        return true;
      proven.insert(load);
      return false;
    });
    if (next == flows.end())
      return std::nullopt;
    auto reaching = getReachingStore(*next, band);
    bool recomputable = reaching && isRecomputable(*reaching, *next);
    if (broadcast && reaching && !recomputable &&
        isBroadcast(*reaching, *next)) {
      *broadcast = true;
      proven.insert(*next);
      continue;
    }
    bool atHand = broadcast && reaching && isAtHand(*reaching, *next);
    if (atHand && !recomputable)
      *broadcast = true;
    if (!recomputable && !atHand)
      return ForwardFailure{*next,
                            {Reason::cross_lane_dependence,
                             "a load needs another lane's value",
                             describe(findLaneDependenceExample(*next, band))}};
    if (isFull)
      return ForwardFailure{
          *next, {Reason::budget_exceeded, "too much would be computed again"}};
    forward(*reaching, *next, excessPrecision);
    ++forwarded;
  }
}

namespace {

struct ForwardStores : bridge::impl::ForwardStoresBase<ForwardStores> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<AffineForOp> bands;
    getOperation()->walk([&](AffineForOp loop) {
      auto isBand = [](Operation &op) { return op.hasAttr(kBandAttr); };
      if (loop->hasAttr(kBandAttr) && llvm::none_of(*loop.getBody(), isBand))
        bands.push_back(loop);
    });
    for (AffineForOp band : bands)
      runOnBand(band);
  }

private:
  /// Forwards the stores of a copy, which takes the band's place if that works:
  /// half of it done, a value could be computed from what is overwritten.
  void runOnBand(AffineForOp band) {
    if (llvm::all_of(getInnerFlows(band), [&](AffineLoadOp load) {
          return staysInLane(load, band);
        }))
      return;
    OpBuilder builder(band);
    auto copy = cast<AffineForOp>(builder.clone(*band.getOperation()));
    int64_t forwarded = 0;
    bool broadcast = false;
    bool mayBroadcast = getOperation()->hasAttr(kRowsOfSegmentsAttr);
    if (auto failure = forwardStores(copy, excessPrecision, forwarded,
                                     mayBroadcast ? &broadcast : nullptr)) {
      giveUp(band, *failure);
      copy.erase();
      return;
    }
    band->replaceAllUsesWith(copy);
    band.erase();
    numForwarded += forwarded;
  }

  /// Emits the reason and removes the band's attribute: its lanes cannot run
  /// side by side.
  static void giveUp(AffineForOp band, ForwardFailure failure) {
    refuse(failure.load, failure.refusal);
    Operation *loop = band;
    for (; loop && loop->hasAttr(kBandAttr); loop = loop->getParentOp())
      loop->removeAttr(kBandAttr);
  }
};

} // namespace
