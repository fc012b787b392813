//===- ReachingStore.cpp - the store that a load reads from ---------------===//

#include "Bridge/Analysis/ReachingStore.h"

#include "Bridge/Analysis/Nest.h"
#include "Bridge/Analysis/Subscripts.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Affine/Analysis/LoopAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "mlir/IR/IntegerSet.h"

using namespace mlir;
using namespace mlir::affine;
using namespace mlir::presburger;
using namespace bridge;

//===----------------------------------------------------------------------===//
// Solving store(j') == load(j) for j'
//===----------------------------------------------------------------------===//

namespace {

/// The equation of one subscript: the sum of `unknowns`, the variables of the
/// store's inner loops with their coefficients, is `rest`, the load's subscript
/// minus the other terms of the store's.
struct Equation {
  AffineExpr rest;
  SmallVector<std::pair<unsigned, int64_t>> unknowns;
};

/// The loops whose variables are unknown, the solution of each where it is
/// found, and the operands that are the dimensions of the solutions.
struct Solver {
  SmallVector<AffineForOp> loops;
  SmallVector<Value> operands;
  SmallVector<AffineExpr> found;

  AffineExpr getDim(Value value) {
    auto it = llvm::find(operands, value);
    unsigned position = it - operands.begin();
    if (it == operands.end())
      operands.push_back(value);
    return getAffineDimExpr(position, value.getContext());
  }

  AffineExpr simplify(AffineExpr expr) {
    return simplifyInBounds(expr, operands);
  }
};

} // namespace

/// True if a result of the map depends on an operand. Upstream's
/// `AffineValueMap::isFunctionOf` looks for dimensions only, not for symbols.
static bool dependsOn(AffineValueMap &map, unsigned result, unsigned operand) {
  AffineExpr expr = map.getResult(result);
  return operand < map.getNumDims()
             ? expr.isFunctionOfDim(operand)
             : expr.isFunctionOfSymbol(operand - map.getNumDims());
}

/// Returns a result of a map as an expression of the solver's operands.
static AffineExpr express(AffineValueMap &map, unsigned result,
                          Solver &solver) {
  SmallVector<AffineExpr> dims, symbols;
  for (auto [i, operand] : llvm::enumerate(map.getOperands()))
    (i < map.getNumDims() ? dims : symbols)
        .push_back(dependsOn(map, result, i)
                       ? solver.getDim(operand)
                       : getAffineConstantExpr(0, operand.getContext()));
  return map.getResult(result).replaceDimsAndSymbols(dims, symbols);
}

/// True if a subscript of a store depends on one of the unknowns.
static bool hasUnknown(AffineValueMap &stored, unsigned result,
                       Solver &solver) {
  for (auto [i, operand] : llvm::enumerate(stored.getOperands()))
    if (getPosition(solver.loops, operand) && dependsOn(stored, result, i))
      return true;
  return false;
}

static std::optional<Equation> getEquation(AffineExpr loaded,
                                           AffineValueMap &stored,
                                           unsigned result, Solver &solver) {
  if (!hasUnknown(stored, result, solver)) // It need not be linear.
    return Equation{solver.simplify(loaded - express(stored, result, solver)),
                    {}};
  SmallVector<int64_t> flat;
  if (failed(getFlattenedAffineExpr(stored.getResult(result),
                                    stored.getNumDims(), stored.getNumSymbols(),
                                    &flat)) ||
      flat.size() != stored.getNumOperands() + 1)
    return std::nullopt;
  Equation equation{loaded - flat.back(), {}};
  for (auto [value, coefficient] : llvm::zip(stored.getOperands(), flat)) {
    if (coefficient == 0)
      continue;
    if (auto unknown = getPosition(solver.loops, value))
      equation.unknowns.push_back({*unknown, coefficient});
    else
      equation.rest = equation.rest - solver.getDim(value) * coefficient;
  }
  equation.rest = solver.simplify(equation.rest);
  return equation;
}

/// Sets the solution of an unknown. Returns false if it has another one.
static bool assign(Solver &solver, unsigned unknown, AffineExpr expr) {
  expr = solver.simplify(expr);
  if (solver.found[unknown])
    return solver.found[unknown] == expr;
  solver.found[unknown] = expr;
  return true;
}

/// Divides an equation by its least coefficient, the distance of interleaved
/// elements; returns false if something in it is no multiple of that.
static bool divideByStep(Equation &equation, Solver &solver) {
  int64_t step = equation.unknowns.back().second;
  if (step <= 0 || !equation.rest.isMultipleOf(step))
    return false;
  equation.rest = solver.simplify(equation.rest.floorDiv(step));
  for (auto &[unknown, coefficient] : equation.unknowns) {
    if (coefficient % step != 0)
      return false;
    coefficient /= step;
  }
  return true;
}

/// Solves an equation of several unknowns that are the digits of a mixed radix:
/// each coefficient is the product of the next one and that unknown's extent.
static bool assignDigits(Equation &equation, Solver &solver) {
  llvm::sort(equation.unknowns,
             [](auto &a, auto &b) { return a.second > b.second; });
  if (!divideByStep(equation, solver))
    return false;
  AffineExpr rest = equation.rest;
  for (auto [i, unknown] : llvm::enumerate(equation.unknowns)) {
    if (i + 1 == equation.unknowns.size())
      return unknown.second == 1 && assign(solver, unknown.first, rest);
    auto [next, stride] = equation.unknowns[i + 1];
    auto extent = getConstantTripCount(solver.loops[next]);
    if (stride <= 0 || !extent || int64_t(*extent) * stride != unknown.second)
      return false;
    if (!assign(solver, unknown.first, rest.floorDiv(unknown.second)))
      return false;
    rest = rest % unknown.second;
  }
  return false;
}

static bool solve(Equation &equation, Solver &solver) {
  if (equation.unknowns.empty())
    return equation.rest ==
           getAffineConstantExpr(0, equation.rest.getContext());
  if (equation.unknowns.size() > 1)
    return assignDigits(equation, solver);
  auto [unknown, coefficient] = equation.unknowns.front();
  if (!equation.rest.isMultipleOf(std::abs(coefficient)))
    return false;
  AffineExpr quotient = equation.rest.floorDiv(std::abs(coefficient));
  return assign(solver, unknown, coefficient < 0 ? -quotient : quotient);
}

//===----------------------------------------------------------------------===//
// Is the solution an iteration?
//===----------------------------------------------------------------------===//

/// True if `expr` is below the upper bound of the loop, which may be symbolic,
/// wherever the load executes.
static bool isBelowEnd(AffineForOp loop, AffineExpr expr,
                       ArrayRef<Value> operands, AffineLoadOp load) {
  AffineMap bound = loop.getUpperBoundMap();
  if (bound.getNumResults() != 1)
    return false;
  SmallVector<Value> all(operands);
  SmallVector<AffineExpr> sizes;
  for (Value size : loop.getUpperBoundOperands()) {
    sizes.push_back(getAffineDimExpr(all.size(), load.getContext()));
    all.push_back(size);
  }
  ArrayRef<AffineExpr> dims = ArrayRef(sizes).take_front(bound.getNumDims());
  AffineExpr end = bound.getResult(0).replaceDimsAndSymbols(
      dims, ArrayRef(sizes).drop_front(dims.size()));
  return isAtLeast(end - expr, all, 1, load);
}

/// True if the solution for a loop is within its bounds wherever the load
/// executes.
static bool isIteration(AffineForOp loop, AffineExpr expr,
                        ArrayRef<Value> operands, AffineLoadOp load) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    if (auto own = getForInductionVarOwner(operands[dim.getPosition()]))
      if (haveSameDomain(own, loop))
        return true;
  if (!loop.hasConstantLowerBound() || loop.getStepAsInt() != 1)
    return false;
  int64_t low = loop.getConstantLowerBound();
  if (loop.hasConstantUpperBound())
    return isWithin(expr, operands, low, loop.getConstantUpperBound(), load);
  return isAtLeast(expr, operands, low, load) &&
         isBelowEnd(loop, expr, operands, load);
}

std::optional<ReachingStore>
bridge::solveReachingStore(AffineStoreOp store, ArrayRef<AffineForOp> loops,
                           AffineLoadOp load) {
  AffineValueMap stored, loaded;
  MemRefAccess(store).getAccessMap(&stored);
  MemRefAccess(load).getAccessMap(&loaded);
  Solver solver{SmallVector<AffineForOp>(loops),
                {},
                SmallVector<AffineExpr>(loops.size())};
  for (unsigned k = 0; k < stored.getNumResults(); ++k) {
    AffineExpr target = express(loaded, k, solver);
    auto equation = getEquation(target, stored, k, solver);
    if (!equation || !solve(*equation, solver))
      return std::nullopt;
  }
  for (auto [loop, expr] : llvm::zip(solver.loops, solver.found))
    if (!expr || !isIteration(loop, expr, solver.operands, load))
      return std::nullopt;
  auto map = AffineMap::get(solver.operands.size(), 0, solver.found,
                            load.getContext());
  return ReachingStore{store, solver.loops, map, solver.operands};
}

//===----------------------------------------------------------------------===//
// The one store that reaches a load
//===----------------------------------------------------------------------===//

bool bridge::precedes(Operation *first, Operation *second, AffineForOp band) {
  for (Operation *op = first; op != band; op = op->getParentOp())
    if (Operation *beside = op->getBlock()->findAncestorOpInBlock(*second))
      return op != beside && op->isBeforeInBlock(beside);
  return false;
}

/// True if a guard of the store holds in the iteration that reaches the load.
static bool holds(AffineIfOp guard, const ReachingStore &reaching,
                  AffineLoadOp load) {
  SmallVector<Value> operands(reaching.operands);
  SmallVector<AffineExpr> values;
  for (Value operand : guard.getOperands()) {
    if (auto position = getPosition(reaching.loops, operand)) {
      values.push_back(reaching.map.getResult(*position));
      continue;
    }
    values.push_back(getAffineDimExpr(operands.size(), load.getContext()));
    operands.push_back(operand);
  }
  IntegerSet set = guard.getIntegerSet();
  ArrayRef<AffineExpr> all(values);
  for (auto [constraint, isEquality] :
       llvm::zip(set.getConstraints(), set.getEqFlags())) {
    AffineExpr expr = constraint.replaceDimsAndSymbols(
        all.take_front(set.getNumDims()), all.drop_front(set.getNumDims()));
    if (isEquality ? !isWithin(expr, operands, 0, 1, load)
                   : !isAtLeast(expr, operands, 0, load))
      return false;
  }
  return true;
}

/// True if the store executes in the iteration that reaches the load: no guard
/// around it may fail there.
static bool isExecuted(const ReachingStore &reaching, AffineLoadOp load,
                       AffineForOp band) {
  AffineStoreOp store = reaching.store;
  for (Operation *op = store; op->getParentOp() != band;
       op = op->getParentOp()) {
    auto guard = dyn_cast<AffineIfOp>(op->getParentOp());
    if (!guard)
      continue;
    if (!guard.getThenRegion().isAncestor(op->getParentRegion()) ||
        !holds(guard, reaching, load))
      return false;
  }
  return true;
}

bool bridge::mayMeetInBand(AffineStoreOp store, AffineLoadOp load,
                           AffineForOp band) {
  unsigned least = getNestingDepth(band) + 2;
  unsigned most = getNumCommonSurroundingLoops(*store, *load) + 1;
  for (unsigned depth = least; depth <= std::max(least, most); ++depth)
    for (auto [from, to] : {std::pair<Operation *, Operation *>(store, load),
                            std::pair<Operation *, Operation *>(load, store)}) {
      FlatAffineValueConstraints relation;
      auto result = checkMemrefAccessDependence(
          MemRefAccess(from), MemRefAccess(to), depth, &relation);
      if (result.value == DependenceResult::Failure ||
          (result.value == DependenceResult::HasDependence &&
           !relation.isIntegerEmpty()))
        return true;
    }
  return false;
}

/// True if the loops around both have the same iteration for both. In another
/// iteration, which is another lane's, the store may execute after the load.
static bool sharesIterations(const ReachingStore &reaching, AffineLoadOp load) {
  for (auto [loop, expr] :
       llvm::zip(reaching.loops, reaching.map.getResults())) {
    AffineForOp own = loop;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (own->isAncestor(load) &&
        (!dim || reaching.operands[dim.getPosition()] != own.getInductionVar()))
      return false;
  }
  return true;
}

std::optional<ReachingStore> bridge::getReachingStore(AffineLoadOp load,
                                                      AffineForOp band) {
  std::optional<ReachingStore> found;
  for (AffineStoreOp store : getStores(load.getMemRef(), band)) {
    auto reaching =
        solveReachingStore(store, getLoopsInBand(store, band), load);
    if (reaching && precedes(store, load, band) &&
        isExecuted(*reaching, load, band) &&
        sharesIterations(*reaching, load) && !found)
      found = reaching;
    else if (mayMeetInBand(store, load, band))
      return std::nullopt;
  }
  return found;
}
