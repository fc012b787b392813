//===- Forwarding.cpp - values between the lanes of a band ----------------===//

#include "Bridge/Analysis/Forwarding.h"

#include "Bridge/Analysis/Nest.h"
#include "Bridge/Analysis/Subscripts.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Affine/Analysis/LoopAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::affine;
using namespace mlir::presburger;
using namespace bridge;

/// The loops around `op` inside `band`, outermost first.
static SmallVector<AffineForOp> getLoopsAround(Operation *op,
                                               AffineForOp band) {
  SmallVector<AffineForOp> loops;
  for (Operation *parent = op->getParentOp(); parent != band;
       parent = parent->getParentOp())
    if (auto loop = dyn_cast<AffineForOp>(parent))
      loops.push_back(loop);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

//===----------------------------------------------------------------------===//
// Solving store(j') == load(j) for j'
//===----------------------------------------------------------------------===//

namespace {

/// One subscript of the equation: `rest` is the load's minus what the store's
/// has of the band; `unknowns` are the store's inner variables in it, with
/// their coefficients.
struct Equation {
  AffineExpr rest;
  SmallVector<std::pair<unsigned, int64_t>> unknowns;
};

/// The operands that the solution is expressed in, and the expressions found.
struct Solver {
  SmallVector<AffineForOp> loops;
  SmallVector<Value> operands;
  SmallVector<AffineExpr> found;

  std::optional<unsigned> getUnknown(Value value) {
    for (auto [i, loop] : llvm::enumerate(loops))
      if (loop.getInductionVar() == value)
        return i;
    return std::nullopt;
  }

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

/// Whether a subscript depends on an operand of its map. Upstream's
/// `AffineValueMap::isFunctionOf` looks for dimensions only, not for symbols.
static bool dependsOn(AffineValueMap &map, unsigned result, unsigned operand) {
  AffineExpr expr = map.getResult(result);
  return operand < map.getNumDims()
             ? expr.isFunctionOfDim(operand)
             : expr.isFunctionOfSymbol(operand - map.getNumDims());
}

/// The result of a map as an expression over the solver's operands.
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

/// Whether a subscript of a store has one of the unknowns.
static bool hasUnknown(AffineValueMap &stored, unsigned result,
                       Solver &solver) {
  for (auto [i, operand] : llvm::enumerate(stored.getOperands()))
    if (solver.getUnknown(operand) && dependsOn(stored, result, i))
      return true;
  return false;
}

static std::optional<Equation> getEquation(AffineExpr loaded,
                                           AffineValueMap &stored,
                                           unsigned result, Solver &solver) {
  if (!hasUnknown(stored, result, solver)) // It may have divisions.
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
    if (auto unknown = solver.getUnknown(value))
      equation.unknowns.push_back({*unknown, coefficient});
    else
      equation.rest = equation.rest - solver.getDim(value) * coefficient;
  }
  equation.rest = solver.simplify(equation.rest);
  return equation;
}

static bool assign(Solver &solver, unsigned unknown, AffineExpr expr) {
  expr = solver.simplify(expr);
  if (solver.found[unknown])
    return solver.found[unknown] == expr;
  solver.found[unknown] = expr;
  return true;
}

/// Several unknowns in one subscript are digits of a mixed radix if each
/// coefficient is the product of the next one and that digit's extent.
static bool assignDigits(Equation &equation, Solver &solver) {
  llvm::sort(equation.unknowns,
             [](auto &a, auto &b) { return a.second > b.second; });
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
// Whether the solution is an iteration
//===----------------------------------------------------------------------===//

/// Whether the solution for one loop is an iteration of it wherever the load
/// executes: from constant bounds, or since the load's loop has the same.
static bool isIteration(AffineForOp loop, AffineExpr expr,
                        ArrayRef<Value> operands, AffineLoadOp load) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    if (auto own = getForInductionVarOwner(operands[dim.getPosition()]))
      if (haveSameDomain(own, loop))
        return true;
  return loop.hasConstantBounds() && loop.getStepAsInt() == 1 &&
         isWithin(expr, operands, loop.getConstantLowerBound(),
                  loop.getConstantUpperBound(), load);
}

std::optional<Source> bridge::solveStore(AffineStoreOp store,
                                         ArrayRef<AffineForOp> loops,
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
  return Source{store, solver.loops, map, solver.operands};
}

//===----------------------------------------------------------------------===//
// Flows
//===----------------------------------------------------------------------===//

/// The operation of `band`'s body that holds `op`.
static Operation *getStatement(Operation *op, AffineForOp band) {
  return band.getBody()->findAncestorOpInBlock(*op);
}

static SmallVector<AffineStoreOp> getStores(Value memref, AffineForOp band) {
  SmallVector<AffineStoreOp> stores;
  band.walk([&](AffineStoreOp store) {
    if (store.getMemRef() == memref)
      stores.push_back(store);
  });
  return stores;
}

/// Whether a lane has stored by the time it loads: by the order in the
/// innermost block that holds both.
static bool precedes(AffineStoreOp store, AffineLoadOp load, AffineForOp band) {
  for (Operation *op = store; op != band; op = op->getParentOp())
    if (Operation *beside = op->getBlock()->findAncestorOpInBlock(*load))
      return op != beside && op->isBeforeInBlock(beside);
  return false;
}

/// Whether a guard of the store holds for its iteration that the source names.
static bool holds(AffineIfOp guard, const Source &source, AffineLoadOp load) {
  SmallVector<Value> operands(source.operands);
  SmallVector<AffineExpr> values;
  for (Value operand : guard.getOperands()) {
    auto it = llvm::find_if(source.loops, [&](AffineForOp loop) {
      return loop.getInductionVar() == operand;
    });
    if (it != source.loops.end()) {
      values.push_back(source.map.getResult(it - source.loops.begin()));
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
    int64_t high = isEquality ? 1 : std::numeric_limits<int64_t>::max();
    if (!isWithin(expr, operands, 0, high, load))
      return false;
  }
  return true;
}

/// Whether the guards around the store let its iteration pass, wherever the
/// load executes.
static bool isExecuted(const Source &source, AffineLoadOp load,
                       AffineForOp band) {
  AffineStoreOp store = source.store;
  for (Operation *op = store; op->getParentOp() != band;
       op = op->getParentOp()) {
    auto guard = dyn_cast<AffineIfOp>(op->getParentOp());
    if (!guard)
      continue;
    if (!guard.getThenRegion().isAncestor(op->getParentRegion()) ||
        !holds(guard, source, load))
      return false;
  }
  return true;
}

/// Whether one band iteration may read by the load what it writes by the store,
/// whichever comes first.
static bool mayMeet(AffineStoreOp store, AffineLoadOp load, AffineForOp band) {
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

/// Whether the loops that are around both have the same iteration for both: in
/// one of another lane's, the store may be yet to come.
static bool sharesIterations(const Source &source, AffineLoadOp load) {
  for (auto [loop, expr] : llvm::zip(source.loops, source.map.getResults())) {
    AffineForOp own = loop;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (own->isAncestor(load) &&
        (!dim || source.operands[dim.getPosition()] != own.getInductionVar()))
      return false;
  }
  return true;
}

std::optional<Source> bridge::getSource(AffineLoadOp load, AffineForOp band) {
  std::optional<Source> found;
  for (AffineStoreOp store : getStores(load.getMemRef(), band)) {
    if (!precedes(store, load, band))
      return std::nullopt;
    auto source = solveStore(store, getLoopsAround(store, band), load);
    if (source && isExecuted(*source, load, band) &&
        sharesIterations(*source, load) && !found)
      found = source;
    else if (mayMeet(store, load, band))
      return std::nullopt;
  }
  return found;
}

/// The number of a lane in the order of the loops: their variables, given as
/// expressions, as digits of a mixed radix.
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

/// The innermost loop of the band that the source is below.
static AffineForOp getBand(const Source &source) {
  AffineStoreOp store = source.store;
  Operation *statement = source.loops.empty()
                             ? store.getOperation()
                             : AffineForOp(source.loops.front()).getOperation();
  return statement->getParentOfType<AffineForOp>(); // Past guards.
}

/// Whether the store's loops are the outer ones of the load's, each iteration
/// of which reads what the same one stored.
static bool isPrefix(const Source &source, ArrayRef<AffineForOp> loops,
                     ArrayRef<AffineExpr> variables) {
  if (source.loops.size() > loops.size())
    return false;
  for (auto [i, loop] : llvm::enumerate(source.loops))
    if (source.map.getResult(i) != variables[i] ||
        !haveSameDomain(loop, loops[i]))
      return false;
  return true;
}

/// Whether each iteration of the store's loops is a segment of as many lanes,
/// and every lane reads what its own segment stored.
static bool isSegment(const Source &source, ArrayRef<AffineForOp> loops,
                      ArrayRef<AffineExpr> variables) {
  auto segments = getVolume(source.loops), lanes = getVolume(loops);
  if (!segments || !lanes || *segments == 0 || *lanes % *segments != 0)
    return false;
  AffineExpr segment = getLane(source.loops, source.map.getResults());
  AffineExpr lane = getLane(loops, variables);
  unsigned operands = source.operands.size() + loops.size();
  lane = simplifyAffineExpr(lane.floorDiv(*lanes / *segments), operands, 0);
  return simplifyAffineExpr(segment - lane, operands, 0) == 0;
}

bool bridge::isSameLane(const Source &source, AffineLoadOp load) {
  if (source.loops.empty())
    return true; // A value of the whole band iteration.
  SmallVector<AffineForOp> loops = getLoopsAround(load, getBand(source));
  SmallVector<Value> operands(source.operands);
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
  return isPrefix(source, loops, variables) ||
         isSegment(source, loops, variables);
}

static bool isTranscendental(Operation *op) {
  return isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp,
             math::Log2Op, math::Log10Op, math::Log1pOp, math::TanhOp,
             math::ErfOp, math::ErfcOp, math::SinOp, math::CosOp, math::TanOp,
             math::PowFOp>(op);
}

/// Whether `op` of a stored value's computation may be done again: it reads no
/// memory that the band writes later, and reduces nothing.
static bool isCheap(Operation *op, Operation *statement, AffineForOp band,
                    bool math) {
  if (!math && isTranscendental(op))
    return false;
  auto load = dyn_cast<AffineLoadOp>(op);
  if (!load)
    return isa<AffineIfOp>(op) ||
           (!isa<AffineForOp>(op) && isMemoryEffectFree(op));
  return llvm::all_of(getStores(load.getMemRef(), band), [&](AffineStoreOp s) {
    return getStatement(s, band)->isBeforeInBlock(statement);
  });
}

bool bridge::isRecomputable(const Source &source, bool math) {
  AffineForOp band = getBand(source);
  AffineStoreOp store = source.store;
  Operation *statement = getStatement(store, band);
  if (llvm::any_of(source.loops, [](AffineForOp loop) {
        return loop.getNumIterOperands() != 0;
      }))
    return false;
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false;
  options.inclusive = true;
  // What is computed once a band iteration is at hand, unless nothing else is.
  Operation *scope = source.loops.empty() ? band.getOperation() : statement;
  options.filter = [&](Operation *op) { return scope->isProperAncestor(op); };
  if (failed(getBackwardSlice(store.getValueToStore(), &slice, options)))
    return false;
  return llvm::all_of(
      slice, [&](Operation *op) { return isCheap(op, statement, band, math); });
}

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

bool bridge::staysInLane(AffineLoadOp load, AffineForOp band) {
  if (getStores(load.getMemRef(), band).size() != 1)
    return false;
  auto source = getSource(load, band);
  return source && isSameLane(*source, load);
}

std::optional<Objection> bridge::getLaneObjection(AffineForOp band, bool math) {
  for (AffineLoadOp load : getInnerFlows(band)) {
    if (staysInLane(load, band))
      continue;
    auto source = getSource(load, band);
    if (!source)
      return Objection{Reason::cross_lane_dependence,
                       "a load needs an element that its band iteration "
                       "writes, and which store does is not proven",
                       describe(findLaneCollision(load, band))};
    if (!isRecomputable(*source))
      return Objection{Reason::cross_lane_dependence,
                       "a load needs what another lane reduces",
                       describe(findLaneCollision(load, band))};
    if (!isRecomputable(*source, math))
      return Objection{Reason::not_profitable,
                       "a transcendental function would be computed again"};
  }
  return std::nullopt;
}
