//===- InterchangeLoops.cpp - shared loops of two nests go outermost ------===//

#include "Bridge/Analysis/Iteration.h"
#include "Bridge/Analysis/KernelNests.h"
#include "Bridge/Transforms/Passes.h"

#include "Bridge/IR/BridgeDialect.h"

#include "mlir/Dialect/Affine/LoopUtils.h"
#include "llvm/ADT/SetVector.h"

namespace bridge {
#define GEN_PASS_DEF_INTERCHANGELOOPS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

using Positions = llvm::SmallSetVector<unsigned, 4>;

/// A nest and the number of its outer loops that it can share.
namespace {
struct BandNest {
  Nest nest;
  unsigned band = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Which loops come first
//===----------------------------------------------------------------------===//

/// Returns the induction variables that a result of the map depends on.
static SmallVector<Value> getOperands(const ReachingStore &reaching,
                                      unsigned result) {
  AffineExpr expr = reaching.map.getResult(result);
  SmallVector<Value> operands;
  for (unsigned dim = 0; dim < reaching.map.getNumDims(); ++dim)
    if (expr.isFunctionOfDim(dim) &&
        isAffineInductionVar(reaching.operands[dim]))
      operands.push_back(reaching.operands[dim]);
  return operands;
}

/// Returns the reader's loops that determine the writer's band iteration, in
/// the order of the writer's loops. Empty if these are all loops of the reader:
/// then the writer can change its loops instead.
static Positions getRowsOfReader(const ReachingStore &reaching,
                                 const BandNest &writer, Nest &reader) {
  Positions rows;
  for (unsigned i = 0; i < writer.band; ++i)
    for (Value operand : getOperands(reaching, i))
      if (auto position = getPosition(reader.loops, operand))
        rows.insert(*position);
  return rows.size() < reader.loops.size() ? rows : Positions();
}

/// Returns the writer's loops that the reader's band determines, in the band's
/// order. Empty if these are all loops of the writer.
static Positions getRowsOfWriter(const ReachingStore &reaching,
                                 BandNest &reader) {
  SmallVector<std::pair<unsigned, unsigned>> rows;
  for (unsigned i = 0; i < reaching.map.getNumResults(); ++i) {
    SmallVector<unsigned> positions;
    SmallVector<Value> operands = getOperands(reaching, i);
    for (Value operand : operands)
      if (auto position = getPosition(reader.nest.loops, operand);
          position && *position < reader.band)
        positions.push_back(*position);
    if (!operands.empty() && positions.size() == operands.size())
      rows.push_back({*llvm::min_element(positions), i});
  }
  Positions order;
  if (rows.size() == reaching.map.getNumResults())
    return order;
  llvm::sort(rows);
  for (auto [position, loop] : rows)
    order.insert(loop);
  return order;
}

/// True if the store's first `depth` loops have the domains of the outermost
/// loops of `reader`, and the same iteration of them stores and reads.
static bool isSameIteration(const ReachingStore &reaching, Nest &writer,
                            Nest &reader, unsigned depth) {
  if (getSharedDepth(writer, reader) < depth)
    return false;
  for (unsigned i = 0; i < depth; ++i) {
    auto dim = dyn_cast<AffineDimExpr>(reaching.map.getResult(i));
    if (!dim ||
        getPosition(reader.loops, reaching.operands[dim.getPosition()]) != i)
      return false;
  }
  return true;
}

/// True if `band`, an imperfectly nested one of another kernel, has the outer
/// loops of `nest`, and one of the two reads what the other computes in the
/// same iteration of them. Equal domains alone may be equal by chance.
static bool isFusionCandidate(Nest &nest, Nest &band) {
  unsigned depth = band.loops.size();
  if (!band.imperfectlyNested || areInOneKernel(nest, band) ||
      getSharedDepth(nest, band) < depth)
    return false;
  if (auto reaching = solveFirstLoad(band, nest))
    return isSameIteration(*reaching, band, nest, depth);
  auto reaching = solveFirstLoad(nest, band);
  return reaching && isSameIteration(*reaching, nest, band, depth);
}

/// True if `later` needs what `earlier` computes, be it through other nests;
/// never if `earlier` is not before it.
static bool needs(AffineForOp later, AffineForOp earlier,
                  ArrayRef<AffineForOp> roots) {
  llvm::SmallDenseSet<Value> computed;
  for (AffineForOp root : roots) {
    bool reads = loadsAny(root, computed);
    if (root == later)
      return reads;
    if (reads || root == earlier)
      addStored(root, computed);
  }
  return false;
}

/// True if the positions are 0, 1, 2 and so on.
static bool areFirst(const Positions &positions) {
  return llvm::all_of(llvm::enumerate(positions), [](auto entry) {
    return entry.index() == entry.value();
  });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Moves the loops at `rows` outermost, in this order. Returns the new root.
static AffineForOp interchange(AffineForOp root, const Positions &rows) {
  Nest nest = getNest(root);
  SmallVector<unsigned> target(nest.loops.size());
  unsigned next = 0;
  for (unsigned row : rows)
    target[row] = next++;
  for (unsigned i = 0; i < target.size(); ++i)
    if (!rows.contains(i))
      target[i] = next++;
  DictionaryAttr attributes = root->getDiscardableAttrDictionary();
  root->setDiscardableAttrs(DictionaryAttr::get(root.getContext()));
  AffineForOp outermost = nest.loops[permuteLoops(nest.loops, target)];
  outermost->setDiscardableAttrs(attributes);
  recordIterations(outermost, AffineMap::getMultiDimMapWithTargets(
                                  target.size(), target, root.getContext()));
  return outermost;
}

namespace {

struct InterchangeLoops : bridge::impl::InterchangeLoopsBase<InterchangeLoops> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    moved.clear();
    changePairs(getOperation().getBody().front(),
                [&](AffineForOp writer, AffineForOp reader,
                    ArrayRef<AffineForOp> roots) {
                  return moveOneOf(writer, reader, roots);
                });
  }

private:
  /// The nests with changed loops, and how many were moved outermost. Each
  /// changes once: two others may need it in two different orders.
  llvm::SmallDenseMap<Operation *, unsigned> moved;

  /// Interchanges the loops of the reader, or else those of the writer.
  bool moveOneOf(AffineForOp first, AffineForOp second,
                 ArrayRef<AffineForOp> roots) {
    Nest writer = getNest(first), reader = getNest(second);
    if (areInOneKernel(writer, reader))
      return false;
    auto reaching = solveFirstLoad(writer, reader);
    if (!reaching)
      return false;
    BandNest from{writer, getBandDepth(writer, roots)};
    BandNest to{reader, getBandDepth(reader, roots)};
    return move(reader, getRowsOfReader(*reaching, from, reader), roots,
                first) ||
           move(writer, getRowsOfWriter(*reaching, to), roots, {});
  }

  /// Returns how many outer loops a nest can share: at most those that it was
  /// moved for, and the band depth of the imperfectly nested ones of its kernel
  /// and of those that it can be fused with as it is.
  unsigned getBandDepth(Nest &nest, ArrayRef<AffineForOp> roots) {
    unsigned depth = nest.loops.size();
    if (auto own = moved.find(nest.root()); own != moved.end())
      depth = std::min(depth, own->second);
    for (AffineForOp root : roots) {
      Nest other = getNest(root);
      if ((other.imperfectlyNested && areInOneKernel(nest, other)) ||
          (root != nest.root() && isFusionCandidate(nest, other)))
        depth = std::min<unsigned>(depth, other.loops.size());
    }
    return depth;
  }

  /// Moves the loops at `rows` outermost in all nests of the kernel, or in
  /// none. `writer` is what the nest is moved for, where it is the reader.
  bool move(Nest &nest, const Positions &rows, ArrayRef<AffineForOp> roots,
            AffineForOp writer) {
    if (areFirst(rows) || hasOtherFusionCandidate(nest, roots, writer))
      return false;
    SmallVector<AffineForOp> nests = getKernelNests(nest, roots);
    if (llvm::any_of(nests, [&](AffineForOp root) {
          Nest other = getNest(root);
          return moved.contains(root) || !isPerfectlyNested(other.loops);
        }))
      return false;
    for (AffineForOp root : nests)
      moved[interchange(root, rows)] = rows.size();
    numInterchanged += nests.size();
    return !nests.empty();
  }

  /// True if the nest can be fused with another as it is. One that `writer`
  /// needs, and cannot be fused with, is before `writer` in any case.
  static bool hasOtherFusionCandidate(Nest &nest, ArrayRef<AffineForOp> roots,
                                      AffineForOp writer) {
    return llvm::any_of(roots, [&](AffineForOp root) {
      Nest other = getNest(root);
      if (root == nest.root() || !isFusionCandidate(nest, other))
        return false;
      if (!writer || root == writer || !needs(writer, root, roots))
        return true;
      Nest between = getNest(writer);
      return areInOneKernel(between, other) ||
             isFusionCandidate(between, other);
    });
  }
};

} // namespace
