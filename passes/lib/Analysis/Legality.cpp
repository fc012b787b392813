//===- Legality.cpp - what the dependence analysis may be asked -----------===//

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

static bool isGuarded(Operation *op) {
  return op->getParentOfType<AffineIfOp>() != nullptr;
}

static bool isFunctionArgument(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument &&
         isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

/// Appends what the iterations of `loop` are to a question; false if that is
/// not known by its bounds alone, or by those and arguments of the function.
static bool describeLoop(AffineForOp loop, Question &question) {
  question.push_back(getNestingDepth(loop));
  question.push_back(loop.getStepAsInt());
  for (AffineMap bound : {loop.getLowerBoundMap(), loop.getUpperBoundMap()})
    question.push_back(reinterpret_cast<int64_t>(bound.getAsOpaquePointer()));
  for (Value operand : loop.getControlOperands()) {
    if (!isFunctionArgument(operand))
      return false;
    question.push_back(reinterpret_cast<int64_t>(operand.getAsOpaquePointer()));
  }
  return true;
}

/// Appends the subscripts of an access, and over which iterations they are.
static bool describeAccess(Operation *op, Question &question) {
  AffineValueMap map;
  MemRefAccess(op).getAccessMap(&map);
  question.push_back(
      reinterpret_cast<int64_t>(map.getAffineMap().getAsOpaquePointer()));
  for (Value operand : map.getOperands()) {
    if (AffineForOp loop = getForInductionVarOwner(operand)) {
      if (!describeLoop(loop, question))
        return false;
      continue;
    }
    if (!isFunctionArgument(operand))
      return false;
    question.push_back(reinterpret_cast<int64_t>(operand.getAsOpaquePointer()));
  }
  return true;
}

/// The question whether a loop at `depth` carries a dependence between two
/// accesses to one memref. Which memref it is does not matter, and guards only
/// leave iterations out.
static std::optional<Question> getQuestion(Operation *source, Operation *target,
                                           unsigned depth) {
  Question question{depth};
  if (!describeAccess(source, question) || !describeAccess(target, question))
    return std::nullopt;
  return question;
}

static bool isIndependent(Operation *source, Operation *target, unsigned depth,
                          Independent &known) {
  auto question = getQuestion(source, target, depth);
  if (question && known.count(*question))
    return true;
  if (mayDepend(source, target, depth))
    return false;
  if (question && !isGuarded(source) && !isGuarded(target))
    known.insert(*question);
  return true;
}

bool bridge::isParallel(AffineForOp loop, Independent &known) {
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
            !isIndependent(source, target, depth, known))
          return false;
  return true;
}

bool bridge::isParallel(AffineForOp loop) {
  Independent known;
  return isParallel(loop, known);
}
