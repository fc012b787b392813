//===- Bounds.cpp - accesses inside of their memrefs ----------------------===//

#include "Bridge/Analysis/Bounds.h"

#include "Bridge/Analysis/ExampleText.h"
#include "Bridge/Analysis/Subscripts.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::affine;
using namespace mlir::presburger;
using namespace bridge;

using Domain = FlatAffineValueConstraints;

//===----------------------------------------------------------------------===//
// Iterations
//===----------------------------------------------------------------------===//

/// A set and the values that it is about.
namespace {
struct Condition {
  IntegerSet set;
  SmallVector<Value> operands;
};
} // namespace

/// Returns the condition of a guard on induction variables and symbols.
static Condition getCondition(AffineIfOp guard) {
  IntegerSet set = guard.getIntegerSet();
  AffineMap map = AffineMap::get(set.getNumDims(), set.getNumSymbols(),
                                 set.getConstraints(), guard.getContext());
  SmallVector<Value> operands(guard.getOperands());
  fullyComposeAffineMapAndOperands(&map, &operands);
  canonicalizeMapAndOperands(&map, &operands);
  return {IntegerSet::get(map.getNumDims(), map.getNumSymbols(),
                          map.getResults(), set.getEqFlags()),
          operands};
}

/// Returns conditions of which at least one holds where `condition` does not.
static SmallVector<Condition> negate(const Condition &condition) {
  SmallVector<Condition> negated;
  IntegerSet set = condition.set;
  auto add = [&](AffineExpr constraint) {
    negated.push_back({IntegerSet::get(set.getNumDims(), set.getNumSymbols(),
                                       constraint, /*eqFlags=*/false),
                       condition.operands});
  };
  for (unsigned i = 0; i < set.getNumConstraints(); ++i) {
    add(-set.getConstraint(i) - 1);
    if (set.isEq(i))
      add(set.getConstraint(i) - 1);
  }
  return negated;
}

/// Adds a condition to `domain`. A condition that is not affine is left out:
/// the domain is a superset then.
static void add(const Condition &condition, Domain &domain) {
  if (llvm::any_of(condition.set.getConstraints(),
                   [](AffineExpr expr) { return !expr.isPureAffine(); }))
    return;
  for (Value operand : condition.operands)
    if (failed(domain.addInductionVarOrTerminalSymbol(operand)))
      return;
  Domain own(condition.set, condition.operands);
  domain.mergeAndAlignVarsWithOther(0, &own);
  domain.append(own);
}

/// The most domains that the `else` regions around an access make of one.
static constexpr unsigned kMaxDomains = 64;

/// Restricts `domains` to where one of `alternatives` holds, if that does not
/// make too many of them.
static void restrict(std::vector<Domain> &domains,
                     ArrayRef<Condition> alternatives) {
  if (domains.size() * alternatives.size() > kMaxDomains)
    return;
  std::vector<Domain> restricted;
  for (const Domain &domain : domains)
    for (const Condition &condition : alternatives) {
      restricted.push_back(domain);
      add(condition, restricted.back());
      if (restricted.back().isEmpty())
        restricted.pop_back();
    }
  domains = std::move(restricted);
}

/// Returns sets whose union has the iterations that execute `op`; nothing if
/// the loops around it have bounds that are not modelled.
static std::optional<std::vector<Domain>> getDomains(Operation *op) {
  SmallVector<Operation *> loops;
  SmallVector<std::pair<AffineIfOp, bool>> guards;
  for (Operation *inner = op, *outer = op->getParentOp();
       outer && !outer->hasTrait<OpTrait::AffineScope>();
       inner = outer, outer = outer->getParentOp()) {
    if (isa<AffineForOp, AffineParallelOp>(outer))
      loops.push_back(outer);
    else if (auto guard = dyn_cast<AffineIfOp>(outer))
      guards.push_back(
          {guard, inner->getParentRegion() == &guard.getThenRegion()});
  }
  std::reverse(loops.begin(), loops.end());
  std::vector<Domain> domains(1);
  if (failed(getIndexSet(loops, &domains.front())))
    return std::nullopt;
  for (auto [guard, holds] : guards) {
    Condition condition = getCondition(guard);
    restrict(domains,
             holds ? SmallVector<Condition>{condition} : negate(condition));
  }
  return domains;
}

//===----------------------------------------------------------------------===//
// Subscripts
//===----------------------------------------------------------------------===//

namespace {

/// An iteration in which a subscript leaves its memref.
struct Example {
  SmallVector<int64_t> iteration, element;
  unsigned dimension;
  int64_t extent;
  Sizes sizes;
};

/// An access: its subscripts, and the number of elements of each dimension that
/// it accesses from there on.
struct Access {
  Operation *op;
  Value memref;
  AffineValueMap map;
  SmallVector<int64_t> widths;

  explicit Access(Operation *op) : op(op) {
    MemRefAccess access(op);
    memref = access.memref;
    access.getAccessMap(&map);
    widths.assign(map.getNumResults(), 1);
    VectorType vector;
    if (auto load = dyn_cast<AffineVectorLoadOp>(op))
      vector = load.getVectorType();
    else if (auto store = dyn_cast<AffineVectorStoreOp>(op))
      vector = store.getVectorType();
    if (vector)
      llvm::copy(vector.getShape(), widths.end() - vector.getRank());
  }
};

} // namespace

/// Returns the values that are the extent of a dynamic dimension.
static SmallVector<Value> getExtents(Value memref, unsigned dimension) {
  SmallVector<Value> extents;
  for (Operation *user : memref.getUsers())
    if (auto extent = dyn_cast<memref::DimOp>(user);
        extent && extent.getConstantIndex() == int64_t(dimension) &&
        isValidSymbol(extent))
      extents.push_back(extent);
  auto allocated = [&](auto allocation) {
    unsigned position =
        cast<MemRefType>(memref.getType()).getDynamicDimIndex(dimension);
    Value size = allocation.getDynamicSizes()[position];
    if (isValidSymbol(size))
      extents.push_back(size);
  };
  if (auto allocation = memref.getDefiningOp<memref::AllocOp>())
    allocated(allocation);
  else if (auto allocation = memref.getDefiningOp<memref::AllocaOp>())
    allocated(allocation);
  return extents;
}

/// Adds a variable that is the extent of a dimension, and returns its position.
static unsigned addExtent(Value memref, unsigned dimension, Domain &domain) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dimension)) {
    unsigned extent = domain.appendDimVar();
    domain.addBound(BoundType::EQ, extent, type.getDimSize(dimension));
    return extent;
  }
  SmallVector<Value> known = getExtents(memref, dimension);
  llvm::erase_if(known, [&](Value value) {
    return failed(domain.addInductionVarOrTerminalSymbol(value));
  });
  unsigned extent = domain.appendDimVar();
  domain.addBound(BoundType::LB, extent, 0);
  for (Value value : known) {
    SmallVector<int64_t> row(domain.getNumCols(), 0);
    unsigned position = 0;
    (void)domain.findVar(value, &position);
    row[extent] = 1;
    row[position] = -1;
    domain.addEquality(row);
  }
  return extent;
}

/// Results of `memref.dim` are not negative.
static void addSizes(Domain &domain) {
  unsigned end = domain.getNumDimAndSymbolVars();
  for (unsigned i = domain.getNumDimVars(); i < end; ++i)
    if (domain.hasValue(i) && domain.getValue(i).getDefiningOp<memref::DimOp>())
      domain.addBound(BoundType::LB, i, 0);
}

static Example makeExample(const Access &access, const Domain &domain,
                           unsigned dimension, unsigned extent,
                           ArrayRef<int64_t> point) {
  Example example{{},
                  llvm::to_vector(point.take_front(access.widths.size())),
                  dimension,
                  point[extent],
                  {}};
  SmallVector<AffineForOp> loops;
  getAffineForIVs(*access.op, &loops);
  for (AffineForOp loop : loops) {
    unsigned position = 0;
    bool isKnown = domain.findVar(loop.getInductionVar(), &position);
    example.iteration.push_back(isKnown ? point[position] : 0);
  }
  unsigned end = domain.getNumDimAndSymbolVars();
  for (unsigned i = domain.getNumDimVars(); i < end; ++i)
    if (domain.hasValue(i) &&
        !getConstantIntValue(OpFoldResult(domain.getValue(i))))
      example.sizes.push_back({domain.getValue(i), point[i]});
  return example;
}

/// Returns an iteration of `domain`, whose first variables are the subscripts,
/// in which the one of `dimension` is below zero or not below the extent.
static std::optional<Example> findOutside(const Access &access, Domain domain,
                                          unsigned dimension) {
  unsigned extent = addExtent(access.memref, dimension, domain);
  addSizes(domain);
  Domain below(domain), above(domain);
  below.addBound(BoundType::UB, dimension, -1);
  SmallVector<int64_t> row(domain.getNumCols(), 0);
  row[dimension] = 1;
  row[extent] = -1;
  row.back() = access.widths[dimension] - 1;
  above.addInequality(row);
  for (const Domain &outside : {above, below})
    if (auto sample = outside.findIntegerSample())
      return makeExample(
          access, outside, dimension, extent,
          llvm::map_to_vector(*sample, [](const llvm::DynamicAPInt &value) {
            return int64_t(value);
          }));
  return std::nullopt;
}

/// True if a dividend may not fit in 64 bits: its value is another number then,
/// while the proof is about numbers of any size. Sums and products of 64 bits
/// need no check, as a subscript inside of its memref is exact again.
static bool mayOverflow(AffineMap map) {
  constexpr int64_t kLargest = int64_t(1) << 31;
  bool divides = false, isLarge = false;
  map.walkExprs([&](AffineExpr expr) {
    divides |= isDivision(expr);
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    isLarge |= constant && (constant.getValue() > kLargest ||
                            constant.getValue() < -kLargest);
  });
  return divides && isLarge;
}

static Note describe(const Access &access, const Example &example) {
  StringRef verb = isa<AffineWriteOpInterface>(access.op) ? "writes" : "reads";
  std::string text =
      llvm::formatv("iteration ({0}) {1} element [{2}] of {3}, whose dimension "
                    "{4} has {5} element{6}{7}",
                    getPoint(example.iteration), verb,
                    getPoint(example.element),
                    getName(access.memref, "bridge.buffer"), example.dimension,
                    example.extent, example.extent == 1 ? "" : "s",
                    getSizes(example.sizes))
          .str();
  return {access.op->getLoc(), text};
}

FusionResult bridge::checkSubscripts(Operation *op) {
  Access access(op);
  Refusal unknown{Reason::non_affine_index,
                  "its subscripts or iterations are not affine"};
  auto domains = getDomains(op);
  if (!domains)
    return unknown;
  access.map.composeSimplifyAndCanonicalize();
  if (mayOverflow(access.map.getAffineMap()))
    return Refusal{Reason::non_affine_index,
                   "a dividend in its subscripts may not fit in 64 bits"};
  for (Domain &domain : *domains) {
    for (Value operand : access.map.getOperands())
      if (failed(domain.addInductionVarOrTerminalSymbol(operand)))
        return unknown;
    if (failed(domain.composeMap(&access.map)))
      return unknown;
    for (unsigned dimension = 0; dimension < access.widths.size(); ++dimension)
      if (auto example = findOutside(access, domain, dimension))
        return Refusal{Reason::subscript_out_of_bounds,
                       "an access is not proven inside of its memref",
                       {describe(access, *example)}};
  }
  return FusionResult::success();
}
