//===- ReindexBands.cpp - producers take their consumer's outer loops -----===//

#include "Bridge/Analysis/Bijection.h"
#include "Bridge/Analysis/Iteration.h"
#include "Bridge/Analysis/KernelNests.h"
#include "Bridge/Analysis/Subscripts.h"
#include "Bridge/Transforms/GuardedClone.h"
#include "Bridge/Transforms/Passes.h"

#include "Bridge/IR/BridgeDialect.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "llvm/ADT/DenseSet.h"

namespace bridge {
#define GEN_PASS_DEF_REINDEXBANDS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// True if a result of the map has a `floordiv`, `ceildiv` or `mod`.
static bool hasDivisions(AffineMap map) {
  bool found = false;
  map.walkExprs([&](AffineExpr expr) { found |= isDivision(expr); });
  return found;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

/// A bijection from the consumer's outer loops `from`, restricted to the
/// iterations for which the expressions in `domain` are at least zero, to the
/// producer's outer loops `to`.
struct Reindexing {
  SmallVector<AffineForOp> from, to;
  AffineMap map;
  SmallVector<AffineExpr> domain;
};

/// A nest of a kernel. If it has other loops than the producer, `first` gives
/// it the producer's.
struct Member {
  AffineForOp root;
  std::optional<Reindexing> first;
};

struct ReindexBands : bridge::impl::ReindexBandsBase<ReindexBands> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    moved.clear();
    Block &body = getOperation().getBody().front();
    if (divisions)
      changePairs(body, [&](AffineForOp producer, AffineForOp consumer,
                            ArrayRef<AffineForOp> roots) {
        return tryFollow(producer, consumer, roots);
      });
    while (reindexAny(body)) {
    }
  }

private:
  /// The reindexed nests. Each is reindexed once: two readers may need it in
  /// two different orders.
  llvm::SmallDenseSet<Operation *> moved;

  /// Gives the consumer the producer's loops, if it has an iteration for each
  /// of a reduction's, in another order. Other consumers may have the order
  /// that the producer has.
  bool tryFollow(AffineForOp producer, AffineForOp consumer,
                 ArrayRef<AffineForOp> roots) {
    Nest to = getNest(producer), from = getNest(consumer);
    if (areInOneKernel(to, from) || from.imperfectlyNested ||
        !isBesideReduction(to, roots) ||
        hasOtherFusionCandidate(consumer, producer, roots))
      return false;
    auto inverse = getInverse(to, from);
    if (!inverse || inverse->isIdentity())
      return false;
    SmallVector<AffineForOp> nests = getKernelNests(from, roots);
    if (llvm::any_of(nests,
                     [&](AffineForOp root) { return moved.contains(root); }))
      return false;
    Reindexing reindexing{to.loops, from.loops, *inverse, {}};
    for (AffineForOp root : nests)
      moved.insert(reindex(root, reindexing));
    numFollowing += nests.size();
    return !nests.empty();
  }

  /// True if the nest, or another of its kernel with the same loops, reduces
  /// below them.
  static bool isBesideReduction(Nest &nest, ArrayRef<AffineForOp> roots) {
    return llvm::any_of(roots, [&](AffineForOp root) {
      Nest other = getNest(root);
      return (root == nest.root() || areInOneKernel(nest, other)) &&
             other.imperfectlyNested &&
             other.loops.size() == nest.loops.size() &&
             getSharedDepth(nest, other) == nest.loops.size();
    });
  }

  /// Returns the iteration of `from` that reads what an iteration of `to`
  /// computes, if there is exactly one.
  static std::optional<AffineMap> getInverse(Nest &to, Nest &from) {
    auto reaching = solveFirstLoad(to, from);
    if (!reaching)
      return std::nullopt;
    MLIRContext *context = reaching->map.getContext();
    SmallVector<AffineExpr> dims;
    for (Value operand : reaching->operands) {
      auto position = getPosition(from.loops, operand);
      if (!position)
        return std::nullopt;
      dims.push_back(getAffineDimExpr(*position, context));
    }
    AffineMap map =
        reaching->map.replaceDimsAndSymbols(dims, {}, from.loops.size(), 0);
    return getInverseOfDigits(map, from.loops, to.loops);
  }

  /// Producers are taken from the last to the first: a consumer is reindexed
  /// for its own consumers before its producers take its loops.
  bool reindexAny(Block &body) {
    SmallVector<AffineForOp> roots = getRoots(body);
    for (unsigned i = roots.size(); i-- > 0;)
      for (AffineForOp consumer : ArrayRef(roots).drop_front(i + 1))
        if (tryReindex(roots[i], consumer, roots))
          return true;
    return false;
  }

  bool tryReindex(AffineForOp producer, AffineForOp consumer,
                  ArrayRef<AffineForOp> roots) {
    Nest to = getNest(producer), from = getNest(consumer);
    bool shared = getSharedDepth(to, from) == to.loops.size();
    if (areInOneKernel(to, from) || (shared && !to.imperfectlyNested))
      return false;
    auto reindexing = getReindexing(to, from, to.loops, guards);
    if (!reindexing || (shared && reindexing->map.isIdentity()))
      return false;
    bool leaves = shared || !reindexing->domain.empty();
    SmallVector<Member> members = getMembers(to, *reindexing, roots);
    if (llvm::any_of(members, [&](Member &member) {
          return moved.contains(member.root) ||
                 (leaves &&
                  hasOtherFusionCandidate(member.root, consumer, roots));
        }))
      return false;
    // First, while the producer's loops still exist: these are copied from
    // them.
    for (Member &member : members)
      if (member.first)
        member.root = reindex(member.root, *member.first);
    for (Member &member : members)
      moved.insert(reindex(member.root, *reindexing));
    numReindexed += members.size();
    return !members.empty();
  }

  /// True if a producer, as it is, can be fused with another nest than the
  /// consumer: with more rows or in another order it could not. Nests that the
  /// producer reads from do not count, as they are reindexed after it.
  static bool hasOtherFusionCandidate(AffineForOp producer,
                                      AffineForOp consumer,
                                      ArrayRef<AffineForOp> roots) {
    Nest own = getNest(producer);
    return llvm::any_of(roots, [&](AffineForOp root) {
      Nest other = getNest(root);
      return root != consumer && !areInOneKernel(own, other) &&
             root != producer && getCommonBandDepth(own, other) > 0 &&
             shareElements(own, other) && !solveFirstLoad(other, own);
    });
  }

  /// Returns the nests of the producer's kernel, without those that have the
  /// consumer's loops already; empty if one of them cannot get the producer's.
  SmallVector<Member> getMembers(Nest &producer, const Reindexing &reindexing,
                                 ArrayRef<AffineForOp> roots) {
    SmallVector<AffineForOp> others;
    SmallVector<Member> members;
    for (AffineForOp root : getKernelNests(producer, roots, &others))
      members.push_back({root, std::nullopt});
    if (members.empty())
      return {};
    takeReindexed(others, members, reindexing);
    for (AffineForOp root : others) {
      Nest other = getNest(root);
      // Its innermost loop is over what the producer reduces.
      auto first =
          getReindexing(other, producer, ArrayRef(other.loops).drop_back(),
                        /*mayGuard=*/false);
      if (!first || first->from.size() != producer.loops.size())
        return {};
      members.push_back({root, first});
    }
    return members;
  }

  /// Removes the nests that have the consumer's loops from `others`.
  void takeReindexed(SmallVector<AffineForOp> &others, ArrayRef<Member> members,
                     const Reindexing &reindexing) {
    if (!reindexing.domain.empty())
      return;
    SmallVector<AffineForOp> over{reindexing.from.front()};
    auto isOver = [&](AffineForOp root) {
      bool found = isReindexed(root, members, over, reindexing);
      if (found)
        over.push_back(root);
      return found;
    };
    for (size_t before = others.size() + 1; others.size() < before;) {
      before = others.size();
      llvm::erase_if(others, isOver);
    }
  }

  /// True if the nest reads what one of the members computes in the iteration
  /// in which it would with the consumer's loops, or what one of the nests
  /// `over` these computes in its own iteration, or if one of them reads that.
  bool isReindexed(AffineForOp root, ArrayRef<Member> members,
                   ArrayRef<AffineForOp> over, const Reindexing &reindexing) {
    AffineMap same = AffineMap::getMultiDimIdentityMap(reindexing.from.size(),
                                                       &getContext());
    return llvm::any_of(members,
                        [&](const Member &member) {
                          return isRead(member.root, root, reindexing.map,
                                        reindexing.from);
                        }) ||
           llvm::any_of(over, [&](AffineForOp other) {
             return isRead(other, root, same, reindexing.from) ||
                    isRead(root, other, same, reindexing.from);
           });
  }

  /// True if `reader` has the loops `from` outermost, and reads what the
  /// iteration of the writer's loops that the map gives computes.
  bool isRead(AffineForOp writer, AffineForOp reader, AffineMap map,
              ArrayRef<AffineForOp> from) {
    Nest to = getNest(writer), own = getNest(reader);
    if (to.loops.size() < map.getNumResults())
      return false;
    auto loops = ArrayRef(to.loops).take_front(map.getNumResults());
    auto found = getReindexing(to, own, loops, /*mayGuard=*/false);
    return found && found->map == map &&
           llvm::equal(found->from, from, [](AffineForOp a, AffineForOp b) {
             return haveSameDomain(a, b);
           });
  }

  /// Returns the map from the outermost loops of `from` to the iteration of
  /// `loops`, the outer ones of `to`, that computes what `from` reads. Nothing
  /// if it is no bijection, or if the inner loops of the two differ. With
  /// `mayGuard`, some iterations of `from` may have no image.
  std::optional<Reindexing> getReindexing(Nest &to, Nest &from,
                                          ArrayRef<AffineForOp> loops,
                                          bool mayGuard) {
    auto reaching = solveFirstLoad(to, from);
    if (!reaching || loops.empty())
      return std::nullopt;
    unsigned inner = to.loops.size() - loops.size();
    SmallVector<AffineForOp> outer;
    SmallVector<AffineExpr> dims(reaching->operands.size());
    for (AffineForOp loop : from.loops) {
      auto it = llvm::find(reaching->operands, loop.getInductionVar());
      if (it == reaching->operands.end() ||
          outer.size() + inner == reaching->operands.size())
        break;
      dims[it - reaching->operands.begin()] =
          getAffineDimExpr(outer.size(), &getContext());
      outer.push_back(loop);
    }
    if (outer.size() + inner != reaching->operands.size() ||
        !areInnerLoops(*reaching, dims, ArrayRef(to.loops).take_back(inner)))
      return std::nullopt;
    AffineMap map =
        AffineMap::get(reaching->operands.size(), 0,
                       reaching->map.getResults().take_front(loops.size()),
                       &getContext())
            .replaceDimsAndSymbols(dims, {}, outer.size(), 0);
    if (!divisions && hasDivisions(map))
      return std::nullopt;
    auto domain = getBijectionDomain(map, outer, loops, maxPoints, mayGuard);
    if (!domain)
      return std::nullopt;
    return Reindexing{outer, llvm::to_vector(loops), map, *domain};
  }

  /// True if the solutions of the last loops, `loops`, are variables of the
  /// reader's inner loops with the same domains, and the solutions of the other
  /// loops depend on outer loops only. `dims` are null at inner loops.
  static bool areInnerLoops(const ReachingStore &reaching,
                            ArrayRef<AffineExpr> dims,
                            ArrayRef<AffineForOp> loops) {
    auto results = reaching.map.getResults();
    unsigned outer = results.size() - loops.size();
    for (auto [loop, expr] : llvm::zip(loops, results.drop_front(outer))) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      AffineForOp own =
          dim ? getForInductionVarOwner(reaching.operands[dim.getPosition()])
              : AffineForOp();
      AffineForOp same = loop;
      if (!own || dims[dim.getPosition()] || !haveSameDomain(own, same))
        return false;
    }
    for (auto [position, dim] : llvm::enumerate(dims))
      for (AffineExpr expr : results.take_front(outer))
        if (!dim && expr.isFunctionOfDim(position))
          return false;
    return true;
  }

  static IntegerSet getGuard(const Reindexing &reindexing) {
    unsigned dims = reindexing.from.size();
    auto constraints =
        llvm::map_to_vector(reindexing.domain, [&](AffineExpr constraint) {
          return simplifyAffineExpr(constraint, dims, 0);
        });
    return IntegerSet::get(dims, 0, constraints,
                           SmallVector<bool>(constraints.size(), false));
  }

  /// Replaces the loops `to` of the nest at `root` by the loops `from`; returns
  /// the new root.
  AffineForOp reindex(AffineForOp root, const Reindexing &reindexing) {
    OpBuilder builder(root);
    SmallVector<Value> ivs;
    AffineForOp outermost;
    for (AffineForOp loop : reindexing.from) {
      auto own = AffineForOp::create(
          builder, root.getLoc(), loop.getLowerBoundOperands(),
          loop.getLowerBoundMap(), loop.getUpperBoundOperands(),
          loop.getUpperBoundMap(), loop.getStepAsInt());
      ivs.push_back(own.getInductionVar());
      builder.setInsertionPointToStart(own.getBody());
      if (!outermost)
        outermost = own;
    }
    IRMapping mapping;
    Nest nest = getNest(root);
    ArrayRef<AffineForOp> band =
        ArrayRef(nest.loops).take_front(reindexing.to.size());
    for (auto [i, loop] : llvm::enumerate(band)) {
      AffineForOp own = loop;
      mapping.map(own.getInductionVar(),
                  AffineApplyOp::create(builder, root.getLoc(),
                                        reindexing.map.getSubMap({unsigned(i)}),
                                        ivs)
                      .getResult());
    }
    for (AffineForOp loop : band.drop_back())
      for (Operation &op : loop.getBody()->without_terminator())
        if (!isa<AffineForOp>(op))
          builder.clone(op, mapping);
    AffineForOp innermost = band.back();
    if (reindexing.domain.empty()) {
      for (Operation &op : innermost.getBody()->without_terminator())
        builder.clone(op, mapping);
    } else {
      GuardedCloner(builder, mapping, getGuard(reindexing), ivs)
          .cloneBody(innermost);
    }
    // Folding makes the guards' operands induction variables, which the
    // analyses of iteration domains look for.
    outermost.walk([](AffineIfOp guarded) {
      SmallVector<OpFoldResult> none;
      (void)guarded->fold(none);
    });
    outermost->setDiscardableAttrs(root->getDiscardableAttrDictionary());
    recordIterations(outermost, reindexing.map);
    root.erase();
    return outermost;
  }
};

} // namespace
