//===- Nest.cpp - a top-level loop nest and its parts ---------------------===//

#include "Bridge/Analysis/Nest.h"

#include "Bridge/IR/BridgeDialect.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/LoopAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// Returns the only loop in the body of `loop`; null if the body has another
/// loop or memory accesses beside it. Pure operations are allowed: they belong
/// to the loop's bounds or to its body.
static AffineForOp getOnlyLoop(AffineForOp loop) {
  AffineForOp only;
  for (Operation &op : loop.getBody()->without_terminator()) {
    auto inner = dyn_cast<AffineForOp>(op);
    if (!inner && isMemoryEffectFree(&op))
      continue;
    if (!inner || only)
      return {};
    only = inner;
  }
  return only;
}

Nest bridge::getNest(AffineForOp root) {
  Nest nest;
  AffineForOp loop = root;
  while (loop && loop.getNumIterOperands() == 0) {
    nest.loops.push_back(loop);
    loop = getOnlyLoop(loop);
  }
  auto inner = nest.loops.back().getBody()->getOps<AffineForOp>();
  nest.imperfectlyNested = !inner.empty();
  return nest;
}

SmallVector<AffineForOp> bridge::getRoots(Block &body) {
  SmallVector<AffineForOp> roots;
  for (auto loop : body.getOps<AffineForOp>())
    if (loop.getNumIterOperands() == 0)
      roots.push_back(loop);
  return roots;
}

bool bridge::haveSameDomain(AffineForOp a, AffineForOp b) {
  return a.getStepAsInt() == b.getStepAsInt() &&
         a.getLowerBoundMap() == b.getLowerBoundMap() &&
         a.getUpperBoundMap() == b.getUpperBoundMap() &&
         a.getLowerBoundOperands() == b.getLowerBoundOperands() &&
         a.getUpperBoundOperands() == b.getUpperBoundOperands();
}

bool bridge::countsFromZero(AffineForOp loop) {
  return loop.hasConstantLowerBound() && loop.getConstantLowerBound() == 0 &&
         loop.getStepAsInt() == 1;
}

unsigned bridge::getCommonBandDepth(Nest &a, Nest &b) {
  unsigned depth = getSharedDepth(a, b);
  for (Nest *nest : {&a, &b})
    if (nest->imperfectlyNested && nest->loops.size() > depth)
      return 0;
  for (Nest *nest : {&a, &b})
    if (nest->imperfectlyNested)
      depth = std::min<unsigned>(depth, nest->loops.size());
  return depth;
}

unsigned bridge::getSharedDepth(Nest &a, Nest &b) {
  unsigned depth = 0;
  for (auto [x, y] : llvm::zip(a.loops, b.loops)) {
    if (!haveSameDomain(x, y))
      break;
    ++depth;
  }
  return depth;
}

unsigned bridge::getLeastBandDepth(Nest &a, Nest &b) {
  unsigned least = 1;
  for (Nest *nest : {&a, &b})
    if (nest->imperfectlyNested)
      least = nest->loops.size();
  return least;
}

SmallVector<Operation *> bridge::getAccesses(AffineForOp loop) {
  SmallVector<Operation *> accesses;
  loop.walk([&](Operation *op) {
    if (isa<AffineReadOpInterface, AffineWriteOpInterface>(op))
      accesses.push_back(op);
  });
  return accesses;
}

SmallVector<AffineForOp> bridge::getChain(AffineForOp outermost) {
  SmallVector<AffineForOp> chain;
  AffineForOp loop = outermost;
  while (loop) {
    chain.push_back(loop);
    loop = getOnlyLoop(loop);
  }
  return chain;
}

SmallVector<AffineForOp> bridge::getLaneChain(AffineForOp outermost) {
  SmallVector<AffineForOp> chain;
  AffineForOp loop = outermost;
  while (loop) {
    chain.push_back(loop);
    auto inner = llvm::to_vector(loop.getBody()->getOps<AffineForOp>());
    if (inner.empty())
      return chain;
    loop = inner.front();
    for (AffineForOp other : inner)
      if (!haveSameDomain(loop, other))
        return {};
  }
  return chain;
}

SmallVector<SmallVector<AffineForOp>> bridge::getInnerChains(Nest &nest,
                                                             unsigned depth) {
  SmallVector<SmallVector<AffineForOp>> chains;
  Block *body = nest.loops[depth - 1].getBody();
  for (auto loop : body->getOps<AffineForOp>())
    chains.push_back(getChain(loop));
  return chains;
}

std::optional<SmallVector<int64_t>>
bridge::getConstantExtents(ArrayRef<AffineForOp> chain) {
  SmallVector<int64_t> extents;
  for (AffineForOp loop : chain) {
    if (!countsFromZero(loop) || !loop.hasConstantUpperBound())
      return std::nullopt;
    extents.push_back(loop.getConstantUpperBound());
  }
  return extents;
}

std::optional<int64_t> bridge::getVolume(ArrayRef<AffineForOp> chain) {
  int64_t volume = 1;
  for (AffineForOp loop : chain) {
    std::optional<uint64_t> count = getConstantTripCount(loop);
    if (!count || llvm::MulOverflow(volume, int64_t(*count), volume))
      return std::nullopt;
  }
  return volume;
}

SmallVector<AffineStoreOp> bridge::getStores(Value memref, AffineForOp loop) {
  SmallVector<AffineStoreOp> stores;
  loop.walk([&](AffineStoreOp store) {
    if (store.getMemRef() == memref)
      stores.push_back(store);
  });
  return stores;
}

std::optional<unsigned> bridge::getPosition(ArrayRef<AffineForOp> loops,
                                            Value iv) {
  const auto *found = llvm::find_if(
      loops, [&](AffineForOp loop) { return loop.getInductionVar() == iv; });
  if (found == loops.end())
    return std::nullopt;
  return found - loops.begin();
}

bool bridge::loadsAny(AffineForOp loop,
                      const llvm::SmallDenseSet<Value> &memrefs) {
  return loop
      .walk([&](AffineLoadOp load) {
        return memrefs.contains(load.getMemRef()) ? WalkResult::interrupt()
                                                  : WalkResult::advance();
      })
      .wasInterrupted();
}

void bridge::addStored(AffineForOp loop, llvm::SmallDenseSet<Value> &memrefs) {
  loop.walk([&](AffineStoreOp store) { memrefs.insert(store.getMemRef()); });
}

SmallVector<AffineForOp> bridge::getLoopsInBand(Operation *op,
                                                AffineForOp band) {
  SmallVector<AffineForOp> loops;
  for (Operation *parent = op->getParentOp(); parent != band;
       parent = parent->getParentOp())
    if (auto loop = dyn_cast<AffineForOp>(parent))
      loops.push_back(loop);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

using Accesses = llvm::MapVector<Value, SmallVector<Operation *>>;

static Accesses collectAccesses(Nest &nest) {
  Accesses accesses;
  nest.root()->walk([&](Operation *op) {
    if (auto read = dyn_cast<AffineReadOpInterface>(op))
      accesses[read.getMemRef()].push_back(op);
    if (auto write = dyn_cast<AffineWriteOpInterface>(op))
      accesses[write.getMemRef()].push_back(op);
  });
  return accesses;
}

/// True if one of the accesses to one memref is a store, or if one of `a` and
/// one of `b` may read the same element.
static bool mayMeet(ArrayRef<Operation *> a, ArrayRef<Operation *> b) {
  auto writes = [](Operation *op) { return isa<AffineWriteOpInterface>(op); };
  if (llvm::any_of(a, writes) || llvm::any_of(b, writes))
    return true;
  for (Operation *one : a)
    for (Operation *other : b)
      if (checkMemrefAccessDependence(MemRefAccess(one), MemRefAccess(other),
                                      /*loopDepth=*/1, nullptr, nullptr,
                                      /*allowRAR=*/true)
              .value != DependenceResult::NoDependence)
        return true;
  return false;
}

/// Returns the name of the buffer that a memref is a part of; null if the
/// memref is the whole buffer.
static StringAttr getStorage(Value memref) {
  auto argument = dyn_cast<BlockArgument>(memref);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : func::FuncOp();
  if (!function)
    return {};
  return function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                               kStorageAttr);
}

bool bridge::shareElements(Nest &a, Nest &b) {
  Accesses ofA = collectAccesses(a), ofB = collectAccesses(b);
  llvm::SmallDenseSet<Attribute> storages;
  for (auto &[memref, ops] : ofA)
    if (StringAttr storage = getStorage(memref))
      storages.insert(storage);
  return llvm::any_of(ofB, [&](auto &entry) {
    auto &[memref, ops] = entry;
    auto it = ofA.find(memref);
    return (it != ofA.end() && mayMeet(it->second, ops)) ||
           storages.contains(getStorage(memref));
  });
}

/// True if the subscript of a load that varies fastest in memory depends on the
/// loop's variable.
static bool variesAlongMemory(AffineLoadOp load, AffineForOp loop) {
  AffineValueMap map;
  MemRefAccess(load).getAccessMap(&map);
  auto subscripts = map.getAffineMap().getResults();
  auto fastest = llvm::find_if(llvm::reverse(subscripts), [](AffineExpr expr) {
    return !isa<AffineConstantExpr>(expr);
  });
  auto variable = llvm::find(map.getOperands(), loop.getInductionVar());
  unsigned position = variable - map.getOperands().begin();
  return fastest != subscripts.rend() && variable != map.getOperands().end() &&
         fastest->isFunctionOfDim(position);
}

bool bridge::isAlongMemory(AffineForOp loop) {
  return !loop.walk([&](AffineLoadOp load) {
                bool apart = llvm::is_contained(load.getMapOperands(),
                                                loop.getInductionVar()) &&
                             !variesAlongMemory(load, loop);
                return apart ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

LogicalResult bridge::getIterationDomain(Operation *op,
                                         FlatAffineValueConstraints &domain) {
  SmallVector<Operation *> around;
  for (Operation *parent = op->getParentOp();
       isa<AffineForOp, AffineIfOp>(parent); parent = parent->getParentOp()) {
    auto guard = dyn_cast<AffineIfOp>(parent);
    if (!guard || guard.getThenRegion().isAncestor(op->getParentRegion()))
      around.push_back(parent);
  }
  std::reverse(around.begin(), around.end());
  return getIndexSet(around, &domain);
}

LogicalResult bridge::addExpression(AffineMap map, ValueRange operands,
                                    FlatAffineValueConstraints &domain) {
  AffineValueMap value(map, operands);
  value.composeSimplifyAndCanonicalize();
  for (Value operand : value.getOperands())
    if (failed(domain.addInductionVarOrTerminalSymbol(operand)))
      return failure();
  return domain.composeMap(&value);
}

/// Makes `expr` the first variable of the domain of `op`.
static LogicalResult getDomainOf(AffineExpr expr, ValueRange operands,
                                 Operation *op,
                                 FlatAffineValueConstraints &domain) {
  if (failed(getIterationDomain(op, domain)))
    return failure();
  return addExpression(AffineMap::get(operands.size(), 0, expr), operands,
                       domain);
}

bool bridge::isAtLeast(AffineExpr expr, ValueRange operands, int64_t low,
                       Operation *op) {
  FlatAffineValueConstraints below;
  if (failed(getDomainOf(expr, operands, op, below)))
    return false;
  below.addBound(presburger::BoundType::UB, 0, low - 1);
  return below.isEmpty();
}

bool bridge::isWithin(AffineExpr expr, ValueRange operands, int64_t low,
                      int64_t high, Operation *op) {
  FlatAffineValueConstraints below;
  if (failed(getDomainOf(expr, operands, op, below)))
    return false;
  FlatAffineValueConstraints above(below);
  below.addBound(presburger::BoundType::UB, 0, low - 1);
  above.addBound(presburger::BoundType::LB, 0, high);
  return below.isEmpty() && above.isEmpty();
}
