//===- Legality.cpp - what the dependence analysis may be asked -----------===//

#include "Bridge/Analysis/Legality.h"

#include "Bridge/Analysis/Nest.h"
#include "Bridge/IR/BridgeOps.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

void bridge::refuse(Operation *op, const Objection &objection) {
  InFlightDiagnostic remark = refuse(op, objection.reason) << objection.text;
  for (const Note &note : objection.notes)
    remark.attachNote(note.location) << note.text;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Whether no other memref shares this one's elements, and each subscript list
/// is an element of its own.
static bool isPlainMemref(Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type || !type.getLayout().isIdentity())
    return false;
  if (auto argument = dyn_cast<BlockArgument>(memref))
    return isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return hasSingleEffect<MemoryEffects::Allocate>(memref.getDefiningOp());
}

static std::optional<Objection> getAccessObjection(Operation *op,
                                                   Value memref) {
  if (!isa<AffineLoadOp, AffineStoreOp>(op))
    return Objection{Reason::unsupported_op,
                     "an access of several elements at once"};
  if (!isPlainMemref(memref))
    return Objection{Reason::aliasing,
                     "an accessed memref is a view or has a layout of its own"};
  return std::nullopt;
}

static std::optional<Objection> getOwnObjection(Operation *op) {
  if (auto read = dyn_cast<AffineReadOpInterface>(op))
    return getAccessObjection(op, read.getMemRef());
  if (auto write = dyn_cast<AffineWriteOpInterface>(op))
    return getAccessObjection(op, write.getMemRef());
  if (isa<AffineForOp, AffineIfOp, AffineYieldOp>(op) || isMemoryEffectFree(op))
    return std::nullopt;
  return Objection{Reason::side_effect,
                   "an operation of the nest has effects that are no affine "
                   "access"};
}

std::optional<Objection> bridge::getObjection(Operation *root) {
  std::optional<Objection> found;
  root->walk([&](Operation *op) {
    found = getOwnObjection(op);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
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

/// The one operation that uses `states`, each just once and as consecutive
/// operands; the number of the first of them goes to `first`.
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

/// Whether `states`, the carried values from `position` on, go through steps of
/// one combiner to the same positions of the yield.
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
    // What upstream's operations combine commutes; ours has sides.
    if (isa<CombineOp>(user) && first != 0)
      return false;
    combiner = user;
    states = user->getResults();
  }
}

/// How many of the carried values belong to the reduction that `state` is of.
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

/// Whether `outer` does no more with what it carries than pass it to `inner`
/// and yield inner's results.
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

/// Whether a dependence between the two accesses is carried by the loop at
/// `depth`. Upstream asks the rational relaxation of the relation, which a
/// subscript with `mod` satisfies where no integers do.
static bool mayDepend(Operation *source, Operation *target, unsigned depth) {
  FlatAffineValueConstraints relation;
  DependenceResult result = checkMemrefAccessDependence(
      MemRefAccess(source), MemRefAccess(target), depth, &relation);
  return result.value != DependenceResult::NoDependence &&
         (result.value == DependenceResult::Failure ||
          !relation.isIntegerEmpty());
}

bool bridge::isParallel(AffineForOp loop) {
  if (isLoopParallel(loop))
    return true;
  if (loop.getNumIterOperands() != 0)
    return false;
  SmallVector<Operation *> accesses = getAccesses(loop);
  unsigned depth = getNestingDepth(loop) + 1;
  for (Operation *source : accesses)
    for (Operation *target : accesses)
      if (mayDepend(source, target, depth))
        return false;
  return true;
}
