//===- Legality.cpp - what dependence analysis proves ---------------------===//

#include "Bridge/Analysis/Legality.h"

#include "Bridge/Analysis/Nest.h"
#include "Bridge/IR/BridgeOps.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// True if no other memref has elements of this one, and different subscripts
/// are different elements.
static bool isPlainMemref(Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type || !type.getLayout().isIdentity())
    return false;
  if (auto argument = dyn_cast<BlockArgument>(memref))
    return isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return hasSingleEffect<MemoryEffects::Allocate>(memref.getDefiningOp());
}

static FusionResult checkAccess(Operation *op, Value memref) {
  if (!isa<AffineLoadOp, AffineStoreOp>(op))
    return Refusal{Reason::unsupported_op,
                   "an access of several elements at once"};
  if (!isPlainMemref(memref))
    return Refusal{Reason::aliasing,
                   "an accessed memref is a view or has a layout of its own"};
  return FusionResult::success();
}

/// A gather may read any element, whatever the iteration.
static FusionResult checkGathered(Value memref) {
  if (!isPlainMemref(memref))
    return Refusal{Reason::aliasing,
                   "an accessed memref is a view or has a layout of its own"};
  if (llvm::any_of(memref.getUsers(), [](Operation *user) {
        return !isa<AffineReadOpInterface, GatherOp>(user);
      }))
    return Refusal{Reason::indirect_index,
                   "an element whose place depends on data is read from a "
                   "memref that is not only read"};
  return FusionResult::success();
}

static FusionResult checkOperation(Operation *op) {
  if (auto gather = dyn_cast<GatherOp>(op))
    return checkGathered(gather.getMemref());
  if (auto read = dyn_cast<AffineReadOpInterface>(op))
    return checkAccess(op, read.getMemRef());
  if (auto write = dyn_cast<AffineWriteOpInterface>(op))
    return checkAccess(op, write.getMemRef());
  if (isa<AffineForOp, AffineIfOp, AffineYieldOp>(op) || isMemoryEffectFree(op))
    return FusionResult::success();
  return Refusal{Reason::side_effect,
                 "an operation of the nest has effects that are no affine "
                 "access"};
}

FusionResult bridge::checkAnalysable(Operation *root) {
  FusionResult result = FusionResult::success();
  root->walk([&](Operation *op) {
    result = checkOperation(op);
    return failed(result) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static bool isAssociative(Operation *op) {
  return isa<CombineOp, arith::AddFOp, arith::AddIOp, arith::MulFOp,
             arith::MulIOp, arith::MaximumFOp, arith::MinimumFOp,
             arith::MaxNumFOp, arith::MinNumFOp, arith::MaxSIOp, arith::MinSIOp,
             arith::MaxUIOp, arith::MinUIOp, arith::AndIOp, arith::OrIOp,
             arith::XOrIOp>(op);
}

/// Returns the only operation that uses `states`, each once and as consecutive
/// operands; `first` gets the number of the first of these operands.
static Operation *getOnlyUser(ValueRange states, unsigned &first) {
  Operation *user = nullptr;
  for (auto [i, state] : llvm::enumerate(states)) {
    if (!state.hasOneUse())
      return nullptr;
    OpOperand &use = *state.use_begin();
    if (i == 0) {
      user = use.getOwner();
      first = use.getOperandNumber();
    }
    if (use.getOwner() != user || use.getOperandNumber() != first + i)
      return nullptr;
  }
  return user;
}

static bool isSameCombiner(Operation *a, Operation *b) {
  auto x = dyn_cast<CombineOp>(a), y = dyn_cast<CombineOp>(b);
  return a->getName() == b->getName() && (!x || x.getKind() == y.getKind());
}

/// True if `states`, the carried values from `position` on, pass through one or
/// more steps of one combiner to the same positions of the yield.
static bool isReduction(ValueRange states, unsigned position) {
  Operation *combiner = nullptr;
  while (true) {
    unsigned first = 0;
    Operation *user = getOnlyUser(states, first);
    if (isa_and_nonnull<AffineYieldOp>(user))
      return first == position;
    if (!user || !isAssociative(user) ||
        user->getNumResults() != states.size() ||
        (combiner && !isSameCombiner(combiner, user)))
      return false;
    // Upstream's combiners commute. Ours takes the state as its first operands.
    if (isa<CombineOp>(user) && first != 0)
      return false;
    combiner = user;
    states = user->getResults();
  }
}

/// Returns how many carried values are the state of the reduction that `state`
/// belongs to.
static unsigned getStateCount(Value state) {
  if (state.use_empty())
    return 1;
  auto combine = dyn_cast<CombineOp>(*state.user_begin());
  return combine ? combine.getAcc().size() : 1;
}

static bool carriesReductions(AffineForOp innermost) {
  ValueRange states = innermost.getRegionIterArgs();
  for (unsigned position = 0; position < states.size();) {
    unsigned count = getStateCount(states[position]);
    if (position + count > states.size() ||
        !isReduction(states.slice(position, count), position))
      return false;
    position += count;
  }
  return true;
}

/// True if `outer` only passes its carried values to `inner` and yields the
/// results of that.
static bool passesThrough(AffineForOp outer, AffineForOp inner) {
  ValueRange states = outer.getRegionIterArgs();
  if (inner.getInits() != states)
    return false;
  if (states.empty())
    return inner.getNumResults() == 0;
  unsigned init = 0, yielded = 0;
  return getOnlyUser(states, init) == inner &&
         getOnlyUser(inner.getResults(), yielded) ==
             outer.getBody()->getTerminator() &&
         yielded == 0;
}

bool bridge::isReorderable(ArrayRef<AffineForOp> chain) {
  for (auto [outer, inner] : llvm::zip(chain, chain.drop_front()))
    if (!passesThrough(outer, inner))
      return false;
  return llvm::all_of(chain,
                      [](AffineForOp l) { return isLoopMemoryParallel(l); }) &&
         carriesReductions(chain.back());
}

//===----------------------------------------------------------------------===//
// Parallel loops
//===----------------------------------------------------------------------===//

/// True if the loop at `depth` may carry a dependence between the two accesses.
/// Upstream checks the rational relaxation of the relation; with `mod` in a
/// subscript it often has points although the relation has no integer point.
static bool mayDepend(Operation *source, Operation *target, unsigned depth) {
  FlatAffineValueConstraints relation;
  DependenceResult result = checkMemrefAccessDependence(
      MemRefAccess(source), MemRefAccess(target), depth, &relation);
  return result.value != DependenceResult::NoDependence &&
         (result.value == DependenceResult::Failure ||
          !relation.isIntegerEmpty());
}

static bool isGuarded(Operation *op) {
  return op->getParentOfType<AffineIfOp>() != nullptr;
}

static bool isFunctionArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument &&
         isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

/// Appends the iterations of `loop` to a query: depth, step and bounds. Returns
/// false if the bounds depend on other values than the function's arguments.
static bool describeLoop(AffineForOp loop, DependenceQuery &query) {
  query.push_back(getNestingDepth(loop));
  query.push_back(loop.getStepAsInt());
  for (AffineMap bound : {loop.getLowerBoundMap(), loop.getUpperBoundMap()})
    query.push_back(reinterpret_cast<int64_t>(bound.getAsOpaquePointer()));
  for (Value operand : loop.getControlOperands()) {
    if (!isFunctionArgument(operand))
      return false;
    query.push_back(reinterpret_cast<int64_t>(operand.getAsOpaquePointer()));
  }
  return true;
}

/// Appends the subscripts of an access to a query, with the iterations that
/// they are over. Returns false if that is not possible.
static bool describeAccess(Operation *op, DependenceQuery &query) {
  AffineValueMap map;
  MemRefAccess(op).getAccessMap(&map);
  query.push_back(
      reinterpret_cast<int64_t>(map.getAffineMap().getAsOpaquePointer()));
  for (Value operand : map.getOperands()) {
    if (AffineForOp loop = getForInductionVarOwner(operand)) {
      if (!describeLoop(loop, query))
        return false;
      continue;
    }
    if (!isFunctionArgument(operand))
      return false;
    query.push_back(reinterpret_cast<int64_t>(operand.getAsOpaquePointer()));
  }
  return true;
}

/// Returns the query whether a loop at `depth` carries a dependence between two
/// accesses to one memref. The memref is no part of it. Neither are guards,
/// which only remove dependences.
static std::optional<DependenceQuery>
getQuery(Operation *source, Operation *target, unsigned depth) {
  DependenceQuery query{depth};
  if (!describeAccess(source, query) || !describeAccess(target, query))
    return std::nullopt;
  return query;
}

static bool isIndependent(Operation *source, Operation *target, unsigned depth,
                          DependenceQueryCache &cache) {
  auto query = getQuery(source, target, depth);
  if (query && cache.count(*query))
    return true;
  if (mayDepend(source, target, depth))
    return false;
  if (query && !isGuarded(source) && !isGuarded(target))
    cache.insert(*query);
  return true;
}

bool bridge::isParallel(AffineForOp loop, DependenceQueryCache &cache) {
  if (loop.getNumIterOperands() != 0)
    return false;
  llvm::MapVector<Value, SmallVector<Operation *>> accesses;
  for (Operation *op : getAccesses(loop))
    accesses[MemRefAccess(op).memref].push_back(op);
  unsigned depth = getNestingDepth(loop) + 1;
  for (ArrayRef<Operation *> ofOne : llvm::make_second_range(accesses))
    for (Operation *source : ofOne)
      for (Operation *target : ofOne)
        if ((isa<AffineWriteOpInterface>(source) ||
             isa<AffineWriteOpInterface>(target)) &&
            !isIndependent(source, target, depth, cache))
          return false;
  return true;
}

bool bridge::isParallel(AffineForOp loop) {
  DependenceQueryCache cache;
  return isParallel(loop, cache);
}
