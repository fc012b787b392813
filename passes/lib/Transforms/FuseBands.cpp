//===- FuseBands.cpp - fuse nests under one copy of their band ------------===//

#include "Bridge/Analysis/Combiners.h"
#include "Bridge/Analysis/LaneRule.h"
#include "Bridge/Analysis/Legality.h"
#include "Bridge/Analysis/Nest.h"
#include "Bridge/Support/Reasons.h"
#include "Bridge/Transforms/Forward.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace bridge {
#define GEN_PASS_DEF_FUSEBANDS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// Two nests in program order and the band that they would share.
namespace {
struct Candidate {
  Nest first, second;
  unsigned depth = 0;
};
} // namespace

/// True if the effects of every operation between the two are known. Upstream's
/// dependence graph omits operations with unknown effects, such as calls.
static bool knowsEffectsBetween(Operation *first, Operation *second) {
  for (Operation *op = first->getNextNode(); op != second;
       op = op->getNextNode())
    if (!getEffectsRecursively(op))
      return false;
  return true;
}

/// Appends what `nest` executes below its band to the innermost loop of `band`.
static void appendBody(ArrayRef<AffineForOp> band, Nest &nest) {
  IRMapping mapping;
  for (auto [to, from] : llvm::zip(band, nest.loops)) {
    AffineForOp target = to, original = from;
    mapping.map(original.getInductionVar(), target.getInductionVar());
  }
  AffineForOp innermost = band.back();
  OpBuilder builder(innermost.getBody()->getTerminator());
  for (AffineForOp loop : ArrayRef(nest.loops).take_front(band.size() - 1))
    for (Operation &op : loop.getBody()->without_terminator())
      if (!isa<AffineForOp>(op))
        builder.clone(op, mapping);
  Block *body = nest.loops[band.size() - 1].getBody();
  for (Operation &op : body->without_terminator())
    builder.clone(op, mapping);
}

/// Returns the entries of both roots' array attribute `name`.
static ArrayAttr concatenate(Operation *first, Operation *second,
                             StringRef name) {
  SmallVector<Attribute> entries;
  for (Operation *op : {first, second})
    if (auto attr = op->getAttrOfType<ArrayAttr>(name))
      llvm::append_range(entries, attr);
  return ArrayAttr::get(first->getContext(), entries);
}

/// Returns the kernels of a nest's nodes, each once.
static llvm::SmallSetVector<Attribute, 4> getKernels(AffineForOp root) {
  llvm::SmallSetVector<Attribute, 4> kernels;
  if (auto attr = root->getAttrOfType<ArrayAttr>(kKernelsAttr))
    kernels.insert_range(attr);
  return kernels;
}

/// Creates the merged nest at `before` and returns its band; keeps both
/// originals.
static SmallVector<AffineForOp> merge(Candidate &candidate, Operation *before) {
  OpBuilder builder(before);
  auto root =
      cast<AffineForOp>(builder.clone(*candidate.first.root().getOperation()));
  SmallVector<AffineForOp> band;
  for (AffineForOp loop = root; band.size() < candidate.depth;
       loop = *loop.getBody()->getOps<AffineForOp>().begin()) {
    band.push_back(loop);
    loop->setAttr(kBandAttr, builder.getUnitAttr());
    if (band.size() == candidate.depth)
      break;
  }
  appendBody(band, candidate.second);
  // Loops of a deeper band are lanes now.
  for (Operation &op : *band.back().getBody())
    op.walk([](AffineForOp loop) { loop->removeAttr(kBandAttr); });
  for (StringRef name : {kNodesAttr, kKernelsAttr})
    root->setAttr(name, concatenate(candidate.first.root(),
                                    candidate.second.root(), name));
  return band;
}

/// True if two chains have the same number of iterations: by constant trip
/// counts, or because their loops have the same symbolic domains.
static bool haveSameExtent(ArrayRef<AffineForOp> a, ArrayRef<AffineForOp> b) {
  auto volumeOfA = getVolume(a), volumeOfB = getVolume(b);
  if (volumeOfA && volumeOfB)
    return *volumeOfA == *volumeOfB;
  return a.size() == b.size() && llvm::all_of(llvm::zip(a, b), [](auto loops) {
           return haveSameDomain(std::get<0>(loops), std::get<1>(loops));
         });
}

/// True if the longest row of lanes below the band is along memory.
static bool isRowAlongMemory(AffineForOp band) {
  SmallVector<AffineForOp> longest;
  for (auto loop : band.getBody()->getOps<AffineForOp>()) {
    SmallVector<AffineForOp> chain = getLaneChain(loop);
    if (getVolume(chain).value_or(0) > getVolume(longest).value_or(0))
      longest = chain;
  }
  return !longest.empty() && isAlongMemory(longest.back());
}

/// True if what `chain` reduces can be reduced over the lanes of `row`, of
/// which all but one of each segment add nothing: the loops that carry values
/// may run in any order, and their combiners have neutral elements. Segments
/// are a power of two, as what is reduced inside of them has to be.
static bool mayReduceInRow(ArrayRef<AffineForOp> chain,
                           ArrayRef<AffineForOp> row) {
  auto carrying = chain.drop_while(
      [](AffineForOp loop) { return loop.getNumIterOperands() == 0; });
  if (carrying.empty())
    return true;
  auto segments = getVolume(chain), lanes = getVolume(row);
  AffineForOp innermost = carrying.back();
  return isAlongMemory(row.back()) && segments && lanes && *segments != 0 &&
         *lanes % *segments == 0 && llvm::isPowerOf2_64(*lanes / *segments) &&
         isReorderable(carrying) && getCombiners(innermost);
}

/// True if each iteration of `chain` is a segment of the lanes of `row`: its
/// loops are the outer ones of that, and something is stored once in each of
/// their iterations there.
static bool isOfSegments(ArrayRef<AffineForOp> chain,
                         ArrayRef<AffineForOp> row) {
  if (chain.empty() || chain.size() >= row.size())
    return false;
  AffineForOp innermost = row[chain.size() - 1];
  return llvm::all_of(llvm::zip(chain, row),
                      [](auto loops) {
                        return haveSameDomain(std::get<0>(loops),
                                              std::get<1>(loops));
                      }) &&
         !innermost.getBody()->getOps<AffineStoreOp>().empty() &&
         mayReduceInRow(chain, row);
}

/// True if one of the loops carries values.
static bool reduces(ArrayRef<AffineForOp> chain) {
  return llvm::any_of(
      chain, [](AffineForOp loop) { return loop.getNumIterOperands() != 0; });
}

/// True if all loops below the band have the same number of lanes, or, where
/// lanes may be `segments`, one for each segment of them; those that reduce
/// have it with `rowsOfSegments` only.
static bool innerExtentsAgree(Candidate &candidate, bool segments,
                              bool rowsOfSegments) {
  SmallVector<SmallVector<AffineForOp>> chains;
  for (Nest *nest : {&candidate.first, &candidate.second}) {
    AffineForOp innermost = nest->loops[candidate.depth - 1];
    for (auto loop : innermost.getBody()->getOps<AffineForOp>())
      chains.push_back(getLaneChain(loop));
  }
  auto rows = llvm::make_filter_range(chains, [&](ArrayRef<AffineForOp> chain) {
    if (!segments || (!rowsOfSegments && reduces(chain)))
      return true;
    return llvm::none_of(chains, [&](ArrayRef<AffineForOp> row) {
      return isOfSegments(chain, row);
    });
  });
  return llvm::all_of(rows, [&](ArrayRef<AffineForOp> chain) {
    return !chain.empty() && haveSameExtent(*rows.begin(), chain);
  });
}

/// Returns the number of dependence checks that the proof of a band takes: one
/// for each loop and each pair of a store and an access to the same memref.
static int64_t countDependenceChecks(ArrayRef<AffineForOp> band) {
  llvm::SmallDenseMap<Value, std::pair<int64_t, int64_t>> counts;
  AffineForOp root = band.front();
  root.walk([&](Operation *op) {
    if (auto read = dyn_cast<AffineReadOpInterface>(op))
      ++counts[read.getMemRef()].first;
    else if (auto write = dyn_cast<AffineWriteOpInterface>(op))
      ++counts[write.getMemRef()].second;
  });
  int64_t pairs = 0;
  for (auto [reads, writes] : llvm::make_second_range(counts))
    pairs += writes * (reads + writes);
  return pairs * static_cast<int64_t>(band.size());
}

namespace {

struct FuseBands : bridge::impl::FuseBandsBase<FuseBands> {
  using Base::Base;

  void runOnOperation() override {
    refused.clear();
    queries.clear();
    graph.reset();
    dependenceChecks = 0;
    if (getOperation().isExternal())
      return;
    Block &body = getOperation().getBody().front();
    for (auto loop : body.getOps<AffineForOp>())
      if (loop.getNumIterOperands() != 0)
        emitRefusal(loop, Reason::no_common_band)
            << "a loop that carries values is no band";
    // Nests of one kernel of Inductor's are fused first, so that a band gets
    // all of a kernel or nothing of it.
    while (fuseAny(body, /*sameKernel=*/true)) {
    }
    while (fuseAny(body, /*sameKernel=*/false)) {
    }
  }

private:
  int64_t dependenceChecks = 0;
  llvm::SmallDenseSet<std::pair<Operation *, Operation *>> refused;
  std::shared_ptr<MemRefDependenceGraph> graph; // Shared: passes are copied.
  DependenceQueryCache queries;

  /// Removes an erased nest from the pairs: a later one may get its address.
  void forget(Operation *root) {
    for (auto pair : llvm::make_early_inc_range(refused))
      if (pair.first == root || pair.second == root)
        refused.erase(pair);
  }

  bool fuseAny(Block &body, bool sameKernel) {
    SmallVector<AffineForOp> roots = getRoots(body);
    for (unsigned i = 0; i < roots.size(); ++i)
      for (unsigned j = i + 1; j < roots.size(); ++j) {
        if (sameKernel && getKernels(roots[i]) != getKernels(roots[j]))
          continue;
        if (tryFuse(body, roots[i], roots[j]))
          return true;
      }
    return false;
  }

  InFlightDiagnostic emitRefusal(AffineForOp loop, Reason reason) {
    ++numRefused;
    return refuse(loop, reason);
  }

  void emitRefusal(AffineForOp loop, const Refusal &refusal) {
    ++numRefused;
    refuse(loop, refusal);
  }

  bool tryFuse(Block &body, AffineForOp first, AffineForOp second) {
    if (!refused.insert({first, second}).second)
      return false;
    ++numTried;
    Candidate candidate{getNest(first), getNest(second)};
    if (!isFusionCandidate(candidate))
      return false;
    Operation *before = getInsertionPoint(body, candidate);
    if (!before)
      return false;
    return fuseAtAnyDepth(candidate, before);
  }

  /// Refuses pairs that cannot be fused at any depth or share no element; else
  /// sets the greatest depth of the band.
  bool isFusionCandidate(Candidate &candidate) {
    AffineForOp second = candidate.second.root();
    for (Nest *nest : {&candidate.first, &candidate.second})
      if (FusionResult result = checkAnalysable(nest->root()); failed(result)) {
        emitRefusal(second, result.getRefusal());
        return false;
      }
    if (!shareElements(candidate.first, candidate.second)) {
      emitRefusal(second, Reason::not_profitable)
          << "the nests share no element";
      return false;
    }
    candidate.depth =
        segments ? getSharedDepth(candidate.first, candidate.second)
                 : getCommonBandDepth(candidate.first, candidate.second);
    if (candidate.depth == 0) {
      emitRefusal(second, Reason::no_common_band)
          << "the nests' outer loops have different domains";
      return false;
    }
    return true;
  }

  /// Fuses the nests in the deepest band that is legal: an inner loop that
  /// carries a dependence between them becomes lanes of a shallower band.
  bool fuseAtAnyDepth(Candidate &candidate, Operation *before) {
    std::optional<Refusal> first;
    unsigned least =
        segments ? 1 : getLeastBandDepth(candidate.first, candidate.second);
    for (; candidate.depth >= least; --candidate.depth) {
      FusionResult result = mergeIfLegal(candidate, before);
      if (succeeded(result))
        return true;
      if (!first)
        first = result.getRefusal();
    }
    emitRefusal(candidate.second.root(), *first);
    return false;
  }

  /// Returns the block's dependence graph, which is valid until nests are
  /// merged; null if it cannot be made.
  MemRefDependenceGraph *getGraph(Block &body) {
    if (graph)
      return graph.get();
    graph = std::make_shared<MemRefDependenceGraph>(body);
    if (!graph->init(/*fullAffineDependences=*/false))
      graph.reset();
    return graph.get();
  }

  /// Returns the operation before which the merged nest reverses no dependence
  /// through another operation of the block; null, with a remark, if there is
  /// none.
  Operation *getInsertionPoint(Block &body, Candidate &candidate) {
    AffineForOp first = candidate.first.root();
    AffineForOp second = candidate.second.root();
    if (!knowsEffectsBetween(first, second) || !getGraph(body)) {
      emitRefusal(second, Reason::side_effect)
          << "an operation of the block has unknown effects";
      return nullptr;
    }
    Operation *before = graph->getFusedLoopNestInsertionPoint(
        graph->getForOpNode(first)->id, graph->getForOpNode(second)->id);
    if (!before)
      emitRefusal(second, Reason::cycle_through_other_node)
          << "another nest depends on the one and feeds the other";
    return before;
  }

  /// Merges the nests at the candidate's depth if that is legal.
  FusionResult mergeIfLegal(Candidate &candidate, Operation *before) {
    bool agree = innerExtentsAgree(candidate, segments, false);
    if (requireEqualExtents && !agree &&
        !(rowsOfSegments && innerExtentsAgree(candidate, segments, true)))
      return Refusal{Reason::extents_do_not_agree,
                     "the inner loops of the band have different extents"};
    SmallVector<AffineForOp> band = merge(candidate, before);
    bool broadcast = false;
    if (FusionResult result = checkMerged(band, broadcast); failed(result)) {
      band.front().erase();
      return result;
    }
    for (AffineForOp root : {candidate.first.root(), candidate.second.root()}) {
      forget(root);
      root.erase();
    }
    if (broadcast || (requireEqualExtents && !agree))
      getOperation()->setAttr(kRowsOfSegmentsAttr,
                              UnitAttr::get(&getContext()));
    graph.reset();
    ++numFused;
    return FusionResult::success();
  }

  /// Counts the dependence checks of `band`'s proof. Returns false, and counts
  /// nothing, if the function's budget has fewer left.
  bool isWithinBudget(ArrayRef<AffineForOp> band) {
    int64_t checks = countDependenceChecks(band);
    if (checks > maxDependenceChecks - dependenceChecks)
      return false;
    dependenceChecks += checks;
    numDependenceChecks += checks;
    return true;
  }

  /// Proves a merged band parallel, and checks the lane rule; sets `broadcast`
  /// if all lanes need what a segment of them reduces.
  FusionResult checkMerged(ArrayRef<AffineForOp> band, bool &broadcast) {
    if (!isWithinBudget(band))
      return Refusal{Reason::budget_exceeded,
                     "merged, the proof would take more dependence checks "
                     "than are left"};
    numProofs += band.size();
    auto serial = llvm::find_if_not(
        band, [&](AffineForOp loop) { return isParallel(loop, queries); });
    if (serial != band.end())
      return Refusal{Reason::loop_carried_dependence,
                     "merged, one band iteration would need another's "
                     "result",
                     describe(findDependenceExample(*serial))};
    bool mayBroadcast =
        segments && rowsOfSegments && isRowAlongMemory(band.back());
    FusionResult result = checkLaneRule(
        band.back(), {recomputeMath, recomputeDraws}, mayBroadcast);
    return failed(result)
               ? result
               : tryForwarding(band, mayBroadcast ? &broadcast : nullptr);
  }

  /// Forwards the stores of a copy of the band: the lane rule holds for each
  /// load by itself, but what is recomputed for one may need forwarding again.
  static FusionResult tryForwarding(ArrayRef<AffineForOp> band,
                                    bool *broadcast) {
    AffineForOp root = band.front();
    OpBuilder builder(root);
    auto copy = cast<AffineForOp>(builder.clone(*root.getOperation()));
    AffineForOp innermost = copy;
    for (unsigned depth = 1; depth < band.size(); ++depth)
      innermost = *innermost.getBody()->getOps<AffineForOp>().begin();
    int64_t forwarded = 0;
    auto failure = forwardStores(innermost, true, forwarded, broadcast);
    copy.erase();
    return failure ? FusionResult(failure->refusal) : FusionResult::success();
  }
};

} // namespace
