//===- ReindexBands.cpp - rows in the order of who reads them -------------===//

#include "Bridge/Analysis/Kin.h"
#include "Bridge/Transforms/Passes.h"

#include "Bridge/IR/BridgeDialect.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/IntEqClasses.h"

#include <set>

namespace bridge {
#define GEN_PASS_DEF_REINDEXBANDS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

//===----------------------------------------------------------------------===//
// Bijections between bands
//===----------------------------------------------------------------------===//

static bool isInside(ArrayRef<int64_t> point, ArrayRef<int64_t> extents) {
  return llvm::all_of(llvm::zip(point, extents), [](auto pair) {
    auto [value, extent] = pair;
    return value >= 0 && value < extent;
  });
}

/// Whether `map` takes the points of the loops at `positions` to different
/// points, all of the box `target`.
static bool isInjectiveOn(AffineMap map, ArrayRef<unsigned> positions,
                          ArrayRef<AffineForOp> loops, ArrayRef<int64_t> target,
                          int64_t maxPoints) {
  SmallVector<int64_t> extents, point(map.getNumDims(), 0);
  int64_t volume = 1;
  for (unsigned position : positions) {
    AffineForOp loop = loops[position];
    auto extent = getConstantExtents(ArrayRef(loop));
    if (!extent || (volume *= extent->front()) > maxPoints)
      return false;
    extents.push_back(extent->front());
  }
  std::set<SmallVector<int64_t, 4>> images;
  for (int64_t i = 0; i < volume; ++i) {
    int64_t rest = i;
    for (auto [position, extent] : llvm::zip(positions, extents)) {
      point[position] = rest % extent;
      rest /= extent;
    }
    auto image = map.compose(point);
    if (!isInside(image, target) || !images.insert(image).second)
      return false;
  }
  return true;
}

/// Whether `map` takes the points of `from` one to one to those of `to`: part
/// by part, where a part is the results that share variables with each other.
static bool isBijection(AffineMap map, ArrayRef<AffineForOp> from,
                        ArrayRef<AffineForOp> to, int64_t maxPoints) {
  unsigned dims = from.size(), results = to.size();
  llvm::IntEqClasses parts(dims + results);
  for (unsigned result = 0; result < results; ++result)
    for (unsigned dim = 0; dim < dims; ++dim)
      if (map.getResult(result).isFunctionOfDim(dim))
        parts.join(dim, dims + result);
  parts.compress();
  for (unsigned part = 0; part < parts.getNumClasses(); ++part) {
    SmallVector<unsigned> ownDims, ownResults;
    for (unsigned i = 0; i < dims + results; ++i)
      if (parts[i] == part)
        (i < dims ? ownDims : ownResults).push_back(i < dims ? i : i - dims);
    if (ownDims.empty() || ownResults.empty())
      return false;
    AffineMap own = map.getSubMap(ownResults);
    auto dim = dyn_cast<AffineDimExpr>(own.getResult(0));
    if (ownDims.size() == 1 && ownResults.size() == 1 && dim &&
        haveSameDomain(from[ownDims[0]], to[ownResults[0]]))
      continue;
    SmallVector<AffineForOp> source, target;
    for (unsigned i : ownDims)
      source.push_back(from[i]);
    for (unsigned i : ownResults)
      target.push_back(to[i]);
    auto sources = getVolume(source), targets = getVolume(target);
    auto box = getConstantExtents(target);
    if (!box || !sources || sources != targets ||
        !isInjectiveOn(own, ownDims, from, *box, maxPoints))
      return false;
  }
  return true;
}

static bool hasDivisions(AffineMap map) {
  bool found = false;
  map.walkExprs([&](AffineExpr expr) {
    found |= expr.getKind() == AffineExprKind::Mod ||
             expr.getKind() == AffineExprKind::FloorDiv ||
             expr.getKind() == AffineExprKind::CeilDiv;
  });
  return found;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

/// A producer's outer loops as functions of its consumer's.
struct Reindexing {
  SmallVector<AffineForOp> from, to;
  AffineMap map;
};

/// A nest of a kernel, with what gives it the loops of the others if it has
/// loops of its own.
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
    while (reindexAny(body)) {
    }
  }

private:
  /// Each nest moves once: two readers may want it in two orders.
  llvm::SmallDenseSet<Operation *> moved;

  /// From the last producer to the first: a consumer has the order that its own
  /// consumers want by the time that a producer takes it over.
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
    if (areInOneKernel(to, from) || getSharedDepth(to, from) == to.loops.size())
      return false;
    auto reindexing = getReindexing(to, from, to.loops);
    if (!reindexing)
      return false;
    SmallVector<Member> members = getMembers(to, roots);
    if (llvm::any_of(members, [&](Member &member) {
          return moved.contains(member.root);
        }))
      return false;
    // All while the producer's loops, from which these are taken, are there.
    for (Member &member : members)
      if (member.first)
        member.root = reindex(member.root, *member.first);
    for (Member &member : members)
      moved.insert(reindex(member.root, *reindexing));
    numReindexed += members.size();
    return !members.empty();
  }

  /// The nests of the producer's kernel; empty if not all of them can have its
  /// loops.
  SmallVector<Member> getMembers(Nest &producer, ArrayRef<AffineForOp> roots) {
    SmallVector<AffineForOp> others;
    SmallVector<Member> members;
    for (AffineForOp root : getKin(producer, roots, &others))
      members.push_back({root, std::nullopt});
    if (members.empty())
      return {};
    for (AffineForOp root : others) {
      Nest other = getNest(root);
      // Its innermost loop is over what the producer reduces.
      auto first =
          getReindexing(other, producer, ArrayRef(other.loops).drop_back());
      if (!first || first->from.size() != producer.loops.size())
        return {};
      members.push_back({root, first});
    }
    return members;
  }

  /// The iteration of `loops`, the outer ones of `to`, that computes what an
  /// iteration of `from` reads, as a map from the outermost loops of `from`, if
  /// it is one and one to one. Where there are inner loops, they are the same.
  std::optional<Reindexing> getReindexing(Nest &to, Nest &from,
                                          ArrayRef<AffineForOp> loops) {
    auto source = solveFirstLoad(to, from);
    if (!source || loops.empty())
      return std::nullopt;
    SmallVector<AffineForOp> outer;
    SmallVector<AffineExpr> dims(source->operands.size());
    for (AffineForOp loop : from.loops) {
      auto it = llvm::find(source->operands, loop.getInductionVar());
      if (it == source->operands.end())
        break;
      dims[it - source->operands.begin()] =
          getAffineDimExpr(outer.size(), &getContext());
      outer.push_back(loop);
    }
    unsigned inner = to.loops.size() - loops.size();
    if (outer.size() + inner != source->operands.size() ||
        !areInnerLoops(*source, dims, ArrayRef(to.loops).take_back(inner)))
      return std::nullopt;
    AffineMap map =
        AffineMap::get(source->operands.size(), 0,
                       source->map.getResults().take_front(loops.size()),
                       &getContext())
            .replaceDimsAndSymbols(dims, {}, outer.size(), 0);
    if ((!divisions && hasDivisions(map)) ||
        !isBijection(map, outer, loops, maxPoints))
      return std::nullopt;
    return Reindexing{outer, llvm::to_vector(loops), map};
  }

  /// Whether the last loops of a solution are the reader's own that are no
  /// outer ones, which have a place in `dims`, and no other loop is a function
  /// of those.
  static bool areInnerLoops(const Source &source, ArrayRef<AffineExpr> dims,
                            ArrayRef<AffineForOp> loops) {
    auto results = source.map.getResults();
    unsigned outer = results.size() - loops.size();
    for (auto [loop, expr] : llvm::zip(loops, results.drop_front(outer))) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      AffineForOp own =
          dim ? getForInductionVarOwner(source.operands[dim.getPosition()])
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

  /// Puts the loops of the map's source around what `root` does in an iteration
  /// of the loops of its target; gives the new root.
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
    for (Operation &op : innermost.getBody()->without_terminator())
      builder.clone(op, mapping);
    outermost->setDiscardableAttrs(root->getDiscardableAttrDictionary());
    root.erase();
    return outermost;
  }
};

} // namespace
