//===- Collision.cpp - examples of dependences ----------------------------===//

#include "Bridge/Analysis/Collision.h"

#include "Bridge/Analysis/Nest.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

namespace {

/// A dependence relation: its dimensions are the variables of the loops around
/// the source, then those of the loops around the target.
struct Dependence {
  Operation *source, *target;
  FlatAffineValueConstraints relation;
  SmallVector<AffineForOp> sourceLoops, targetLoops;
};

} // namespace

static SmallVector<AffineForOp> getLoops(Operation *op) {
  SmallVector<AffineForOp> loops;
  getAffineForIVs(*op, &loops);
  return loops;
}

static std::optional<Dependence>
getDependence(Operation *source, Operation *target, unsigned depth) {
  Dependence found{source, target, {}, getLoops(source), getLoops(target)};
  auto result = checkMemrefAccessDependence(
      MemRefAccess(source), MemRefAccess(target), depth, &found.relation);
  if (result.value != DependenceResult::HasDependence ||
      found.relation.getNumDimVars() <
          found.sourceLoops.size() + found.targetLoops.size())
    return std::nullopt;
  return found;
}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

static std::optional<SmallVector<int64_t>>
samplePoint(const FlatAffineValueConstraints &relation) {
  auto sample = relation.findIntegerSample();
  if (!sample)
    return std::nullopt;
  return llvm::map_to_vector(
      *sample, [](const llvm::DynamicAPInt &value) { return int64_t(value); });
}

/// Adds `variable b - variable a >= 1`.
static void addLater(FlatAffineValueConstraints &relation, unsigned a,
                     unsigned b) {
  SmallVector<int64_t> row(relation.getNumCols(), 0);
  row[a] = -1;
  row[b] = 1;
  row.back() = -1;
  relation.addInequality(row);
}

/// A point whose iterations differ at the loop below `shared` common ones, if
/// both have such a loop and there is such a point; else any.
static std::optional<SmallVector<int64_t>> sampleApart(Dependence &dependence,
                                                       unsigned shared) {
  unsigned other = dependence.sourceLoops.size() + shared;
  bool bothHaveLanes = shared < dependence.sourceLoops.size() &&
                       shared < dependence.targetLoops.size();
  for (auto [a, b] : {std::pair(shared, other), std::pair(other, shared)}) {
    if (!bothHaveLanes)
      break;
    FlatAffineValueConstraints apart = dependence.relation;
    addLater(apart, a, b);
    if (auto point = samplePoint(apart))
      return point;
  }
  return samplePoint(dependence.relation);
}

/// The subscripts of the source's access at a point; empty if an operand of
/// theirs is no variable of the relation.
static SmallVector<int64_t> getElement(Dependence &dependence,
                                       ArrayRef<int64_t> point) {
  AffineValueMap map;
  MemRefAccess(dependence.source).getAccessMap(&map);
  SmallVector<Attribute> operands, results;
  Builder builder(dependence.source->getContext());
  for (Value operand : map.getOperands()) {
    auto loop = llvm::find_if(dependence.sourceLoops, [&](AffineForOp own) {
      return own.getInductionVar() == operand;
    });
    unsigned position = loop - dependence.sourceLoops.begin();
    if (loop == dependence.sourceLoops.end() &&
        !dependence.relation.findVar(operand, &position))
      return {};
    operands.push_back(builder.getIndexAttr(point[position]));
  }
  if (failed(map.getAffineMap().constantFold(operands, results)))
    return {};
  return llvm::map_to_vector(results, [](Attribute attribute) {
    return cast<IntegerAttr>(attribute).getInt();
  });
}

static Collision makeCollision(Dependence &dependence,
                               ArrayRef<int64_t> point) {
  size_t first = dependence.sourceLoops.size();
  size_t second = dependence.targetLoops.size();
  Collision collision{dependence.source,
                      dependence.target,
                      llvm::to_vector(point.take_front(first)),
                      llvm::to_vector(point.slice(first, second)),
                      getElement(dependence, point),
                      {}};
  FlatAffineValueConstraints &relation = dependence.relation;
  unsigned end = relation.getNumDimAndSymbolVars();
  for (unsigned i = relation.getNumDimVars(); i < end; ++i)
    if (relation.hasValue(i))
      collision.sizes.push_back({relation.getValue(i), point[i]});
  return collision;
}

//===----------------------------------------------------------------------===//
// Where they are looked for
//===----------------------------------------------------------------------===//

std::optional<Collision> bridge::findCollision(AffineForOp loop) {
  SmallVector<Operation *> accesses = getAccesses(loop);
  unsigned depth = getNestingDepth(loop) + 1;
  for (Operation *source : accesses)
    for (Operation *target : accesses) {
      auto dependence = getDependence(source, target, depth);
      if (!dependence)
        continue;
      if (auto point = samplePoint(dependence->relation))
        return makeCollision(*dependence, *point);
    }
  return std::nullopt;
}

static std::optional<Collision>
findLaneCollision(AffineStoreOp store, AffineLoadOp load, AffineForOp band) {
  unsigned shared = getNestingDepth(band) + 1;
  unsigned most = getNumCommonSurroundingLoops(*store, *load) + 1;
  for (unsigned depth = shared + 1; depth <= std::max(shared + 1, most);
       ++depth)
    for (auto [from, to] : {std::pair<Operation *, Operation *>(store, load),
                            std::pair<Operation *, Operation *>(load, store)}) {
      auto dependence = getDependence(from, to, depth);
      if (!dependence)
        continue;
      if (auto point = sampleApart(*dependence, shared))
        return makeCollision(*dependence, *point);
    }
  return std::nullopt;
}

std::optional<Collision> bridge::findLaneCollision(AffineLoadOp load,
                                                   AffineForOp band) {
  std::optional<Collision> found;
  band.walk([&](AffineStoreOp store) {
    if (store.getMemRef() == load.getMemRef())
      found = ::findLaneCollision(store, load, band);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// The name that an argument was given, else its number.
static std::string getName(Value value, StringRef attribute) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return "a memref";
  std::string number = "argument " + std::to_string(argument.getArgNumber());
  auto function =
      dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (!function)
    return number;
  auto name =
      function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), attribute);
  return name ? name.getValue().str() : number;
}

static std::string getPoint(ArrayRef<int64_t> numbers) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(numbers, stream);
  return text;
}

static std::string getSizes(const Collision &collision) {
  std::string text;
  for (auto [value, size] : collision.sizes)
    text += (text.empty() ? ", where " : " and ") +
            getName(value, "bridge.size") + " = " + std::to_string(size);
  return text;
}

Notes bridge::describe(const std::optional<Collision> &collision) {
  if (!collision)
    return {};
  auto verb = [](Operation *op) {
    return isa<AffineWriteOpInterface>(op) ? " writes " : " reads ";
  };
  std::string name =
      getName(MemRefAccess(collision->source).memref, "bridge.buffer");
  std::string element =
      "element [" + getPoint(collision->element) + "] of " + name;
  return {{collision->source->getLoc(),
           "iteration (" + getPoint(collision->sourceIteration) + ")" +
               verb(collision->source) + element},
          {collision->target->getLoc(),
           "iteration (" + getPoint(collision->targetIteration) + ")" +
               verb(collision->target) + "it" + getSizes(*collision)}};
}
