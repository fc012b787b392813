//===- ReindexBands.cpp - rows in the order of who reads them -------------===//

#include "Bridge/Analysis/Kin.h"
#include "Bridge/Transforms/GuardedClone.h"
#include "Bridge/Transforms/Passes.h"

#include "Bridge/IR/BridgeDialect.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
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

/// Affine expressions that are at or above zero.
using Constraints = SmallVector<AffineExpr>;

/// What a map takes the points of loops to: how many inside of a target, and
/// the least and the greatest of each coordinate, zero included.
struct Images {
  int64_t inside = 0;
  SmallVector<int64_t> lowest, highest;
};

/// `loops`, at `positions` of the map, have constant extents. Nothing if two
/// points have one image inside of `target`, or a point has one outside and
/// `mayLeave` is not set.
static std::optional<Images> getImages(AffineMap map,
                                       ArrayRef<unsigned> positions,
                                       ArrayRef<AffineForOp> loops,
                                       ArrayRef<int64_t> target,
                                       bool mayLeave) {
  SmallVector<int64_t> extents = *getConstantExtents(loops);
  SmallVector<int64_t> point(map.getNumDims(), 0), zeros(target.size(), 0);
  Images images{0, zeros, zeros};
  std::set<SmallVector<int64_t, 4>> seen;
  for (int64_t i = 0, end = *getVolume(loops); i < end; ++i) {
    int64_t rest = i;
    for (auto [position, extent] : llvm::zip(positions, extents)) {
      point[position] = rest % extent;
      rest /= extent;
    }
    auto image = map.compose(point);
    for (auto [k, value] : llvm::enumerate(image)) {
      images.lowest[k] = std::min(images.lowest[k], value);
      images.highest[k] = std::max(images.highest[k], value);
    }
    bool inside = isInside(image, target);
    if (inside ? !seen.insert(image).second : !mayLeave)
      return std::nullopt;
  }
  images.inside = seen.size();
  return images;
}

/// Results of a map, and the loops that they vary with, by position.
struct Part {
  SmallVector<unsigned> dims, results;
};

/// The results of `map` in parts that share no variable.
static SmallVector<Part> getParts(AffineMap map) {
  unsigned dims = map.getNumDims(), results = map.getNumResults();
  llvm::IntEqClasses classes(dims + results);
  for (unsigned result = 0; result < results; ++result)
    for (unsigned dim = 0; dim < dims; ++dim)
      if (map.getResult(result).isFunctionOfDim(dim))
        classes.join(dim, dims + result);
  classes.compress();
  SmallVector<Part> parts(classes.getNumClasses());
  for (unsigned i = 0; i < dims + results; ++i)
    (i < dims ? parts[classes[i]].dims : parts[classes[i]].results)
        .push_back(i < dims ? i : i - dims);
  return parts;
}

static SmallVector<AffineForOp> select(ArrayRef<AffineForOp> loops,
                                       ArrayRef<unsigned> positions) {
  return llvm::map_to_vector(
      positions, [&](unsigned position) { return loops[position]; });
}

/// Whether `map` takes the points of the loops of a part one to one to those of
/// its results. With `domain`, not quite half of the points may go elsewhere:
/// it gets what holds for all others, and for none of these.
static bool isOneToOne(AffineMap map, const Part &part,
                       ArrayRef<AffineForOp> from, ArrayRef<AffineForOp> to,
                       int64_t maxPoints, Constraints *domain) {
  if (part.dims.empty() || part.results.empty())
    return false;
  AffineMap own = map.getSubMap(part.results);
  if (part.dims.size() == 1 && part.results.size() == 1 &&
      isa<AffineDimExpr>(own.getResult(0)) &&
      haveSameDomain(from[part.dims[0]], to[part.results[0]]))
    return true;
  SmallVector<AffineForOp> source = select(from, part.dims),
                           target = select(to, part.results);
  auto all = getVolume(source), wanted = getVolume(target);
  auto box = getConstantExtents(target);
  if (!getConstantExtents(source) || !box || !all || !wanted ||
      *all > maxPoints || (domain ? *all >= 2 * *wanted : *all != *wanted))
    return false;
  auto images = getImages(own, part.dims, source, *box, domain != nullptr);
  if (!images || images->inside != *wanted)
    return false;
  for (auto [k, extent] : llvm::enumerate(*box)) {
    if (images->lowest[k] < 0)
      domain->push_back(own.getResult(k));
    if (images->highest[k] >= extent)
      domain->push_back(extent - 1 - own.getResult(k));
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

/// A producer's outer loops as functions of its consumer's: of those of its
/// iterations for which the `domain` holds.
struct Reindexing {
  SmallVector<AffineForOp> from, to;
  AffineMap map;
  Constraints domain;
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
    bool shared = getSharedDepth(to, from) == to.loops.size();
    if (areInOneKernel(to, from) || (shared && !to.pinned))
      return false;
    auto reindexing = getReindexing(to, from, to.loops, guards);
    if (!reindexing || (shared && reindexing->map.isIdentity()))
      return false;
    bool leaves = shared || !reindexing->domain.empty();
    SmallVector<Member> members = getMembers(to, roots);
    if (llvm::any_of(members, [&](Member &member) {
          return moved.contains(member.root) ||
                 (leaves && hasCompany(member.root, consumer, roots));
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

  /// Whether a producer meets another nest than the consumer as it is, which
  /// it would not with more rows, or in another order. What feeds it follows
  /// it.
  static bool hasCompany(AffineForOp producer, AffineForOp consumer,
                         ArrayRef<AffineForOp> roots) {
    Nest own = getNest(producer);
    return llvm::any_of(roots, [&](AffineForOp root) {
      Nest other = getNest(root);
      return root != consumer && !areInOneKernel(own, other) &&
             root != producer && getCommonBandDepth(own, other) > 0 &&
             shareElements(own, other) && !solveFirstLoad(other, own);
    });
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
          getReindexing(other, producer, ArrayRef(other.loops).drop_back(),
                        /*mayGuard=*/false);
      if (!first || first->from.size() != producer.loops.size())
        return {};
      members.push_back({root, first});
    }
    return members;
  }

  /// The iteration of `loops`, the outer ones of `to`, that computes what an
  /// iteration of `from` reads, as a map from the outermost loops of `from`, if
  /// it is one and one to one. Where there are inner loops, they are the same.
  /// mayGuard: `from` may have iterations to which none of `loops` belongs.
  std::optional<Reindexing> getReindexing(Nest &to, Nest &from,
                                          ArrayRef<AffineForOp> loops,
                                          bool mayGuard) {
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
    if (!divisions && hasDivisions(map))
      return std::nullopt;
    Constraints domain;
    for (const Part &part : getParts(map))
      if (!isOneToOne(map, part, outer, loops, maxPoints,
                      mayGuard ? &domain : nullptr))
        return std::nullopt;
    return Reindexing{outer, llvm::to_vector(loops), map, domain};
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

  static IntegerSet getGuard(const Reindexing &reindexing) {
    unsigned dims = reindexing.from.size();
    auto constraints =
        llvm::map_to_vector(reindexing.domain, [&](AffineExpr constraint) {
          return simplifyAffineExpr(constraint, dims, 0);
        });
    return IntegerSet::get(dims, 0, constraints,
                           SmallVector<bool>(constraints.size(), false));
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
    if (reindexing.domain.empty()) {
      for (Operation &op : innermost.getBody()->without_terminator())
        builder.clone(op, mapping);
    } else {
      GuardedCloner(builder, mapping, getGuard(reindexing), ivs)
          .cloneBody(innermost);
    }
    // What a guard says of the iterations is looked up by loops' variables.
    outermost.walk([](AffineIfOp guarded) {
      SmallVector<OpFoldResult> none;
      (void)guarded->fold(none);
    });
    outermost->setDiscardableAttrs(root->getDiscardableAttrDictionary());
    root.erase();
    return outermost;
  }
};

} // namespace
