//===- InterchangeLoops.cpp - the loops that two nests share come first ---===//

#include "Bridge/Analysis/Kin.h"
#include "Bridge/Transforms/Passes.h"

#include "Bridge/IR/BridgeDialect.h"

#include "mlir/Dialect/Affine/LoopUtils.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace bridge {
#define GEN_PASS_DEF_INTERCHANGELOOPS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

using Positions = llvm::SmallSetVector<unsigned, 4>;

/// A nest whose first `band` loops are what it can share.
namespace {
struct Partner {
  Nest nest;
  unsigned band = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Which loops come first
//===----------------------------------------------------------------------===//

static std::optional<unsigned> getPosition(Nest &nest, Value iv) {
  for (auto [i, loop] : llvm::enumerate(nest.loops)) {
    AffineForOp own = loop;
    if (own.getInductionVar() == iv)
      return i;
  }
  return std::nullopt;
}

/// The operands that `result` of the source's map is a function of.
static SmallVector<Value> getOperands(const Source &source, unsigned result) {
  AffineExpr expr = source.map.getResult(result);
  SmallVector<Value> operands;
  for (unsigned dim = 0; dim < source.map.getNumDims(); ++dim)
    if (expr.isFunctionOfDim(dim) && isAffineInductionVar(source.operands[dim]))
      operands.push_back(source.operands[dim]);
  return operands;
}

/// The reader's loops that determine the writer's band iteration, in the order
/// of the writer's loops. Empty if all do: then the writer can follow.
static Positions getRowsOfReader(const Source &source, const Partner &writer,
                                 Nest &reader) {
  Positions rows;
  for (unsigned i = 0; i < writer.band; ++i)
    for (Value operand : getOperands(source, i))
      if (auto position = getPosition(reader, operand))
        rows.insert(*position);
  return rows.size() < reader.loops.size() ? rows : Positions();
}

/// The writer's loops that the reader's band determines, in the band's order.
/// Empty if that is all of them.
static Positions getRowsOfWriter(const Source &source, Partner &reader) {
  SmallVector<std::pair<unsigned, unsigned>> rows;
  for (unsigned i = 0; i < source.map.getNumResults(); ++i) {
    SmallVector<unsigned> positions;
    SmallVector<Value> operands = getOperands(source, i);
    for (Value operand : operands)
      if (auto position = getPosition(reader.nest, operand);
          position && *position < reader.band)
        positions.push_back(*position);
    if (!operands.empty() && positions.size() == operands.size())
      rows.push_back({*llvm::min_element(positions), i});
  }
  Positions order;
  if (rows.size() == source.map.getNumResults())
    return order;
  llvm::sort(rows);
  for (auto [position, loop] : rows)
    order.insert(loop);
  return order;
}

/// Whether the positions are the first ones, in order.
static bool areFirst(const Positions &positions) {
  return llvm::all_of(llvm::enumerate(positions), [](auto entry) {
    return entry.index() == entry.value();
  });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Moves the loops at `rows` outwards, in this order.
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
  /// Each nest moves once: two others may want it in two orders.
  llvm::SmallDenseSet<Operation *> moved;

  bool moveOneOf(AffineForOp first, AffineForOp second,
                 ArrayRef<AffineForOp> roots) {
    Nest writer = getNest(first), reader = getNest(second);
    if (areInOneKernel(writer, reader))
      return false;
    auto source = solveFirstLoad(writer, reader);
    if (!source)
      return false;
    Partner from{writer, getBandDepth(writer, roots)};
    Partner to{reader, getBandDepth(reader, roots)};
    return move(reader, getRowsOfReader(*source, from, reader), roots) ||
           move(writer, getRowsOfWriter(*source, to), roots);
  }

  /// How many loops a nest can share: a pinned nest of its kernel may share no
  /// more.
  static unsigned getBandDepth(Nest &nest, ArrayRef<AffineForOp> roots) {
    unsigned depth = nest.loops.size();
    for (AffineForOp root : roots) {
      Nest kin = getNest(root);
      if (kin.pinned && areInOneKernel(nest, kin))
        depth = std::min<unsigned>(depth, kin.loops.size());
    }
    return depth;
  }

  bool move(Nest &nest, const Positions &rows, ArrayRef<AffineForOp> roots) {
    if (areFirst(rows) || hasPartner(nest, roots))
      return false;
    SmallVector<AffineForOp> kin = getKin(nest, roots);
    if (llvm::any_of(kin, [&](AffineForOp root) {
          Nest other = getNest(root);
          return moved.contains(root) || !isPerfectlyNested(other.loops);
        }))
      return false;
    for (AffineForOp root : kin)
      moved.insert(interchange(root, rows));
    numInterchanged += kin.size();
    return !kin.empty();
  }

  /// Whether another nest, whose band cannot change, has the same outer loops
  /// already and gives elements to this one or takes them from it.
  static bool hasPartner(Nest &nest, ArrayRef<AffineForOp> roots) {
    return llvm::any_of(roots, [&](AffineForOp root) {
      Nest other = getNest(root);
      return root != nest.root() && other.pinned &&
             !areInOneKernel(nest, other) &&
             getSharedDepth(nest, other) == other.loops.size() &&
             (solveFirstLoad(other, nest) || solveFirstLoad(nest, other));
    });
  }
};

} // namespace
