//===- DependenceExample.cpp - an integer point of a dependence -----------===//

#include "Bridge/Analysis/DependenceExample.h"

#include "Bridge/Analysis/ExampleText.h"
#include "Bridge/Analysis/Iteration.h"
#include "Bridge/Analysis/Nest.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Affine/Analysis/Utils.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

namespace {

/// A dependence relation. Its dimensions are the variables of the loops around
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

/// Returns a point whose two iterations differ in the loop below the `shared`
/// outer ones, if both accesses have such a loop and there is such a point;
/// else any point.
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

/// Returns the subscripts of the source's access at a point; empty if one of
/// their operands is no variable of the relation.
static SmallVector<int64_t> getElement(Dependence &dependence,
                                       ArrayRef<int64_t> point) {
  AffineValueMap map;
  MemRefAccess(dependence.source).getAccessMap(&map);
  SmallVector<Attribute> operands, results;
  Builder builder(dependence.source->getContext());
  for (Value operand : map.getOperands()) {
    auto loop = getPosition(dependence.sourceLoops, operand);
    unsigned position = loop.value_or(0);
    if (!loop && !dependence.relation.findVar(operand, &position))
      return {};
    operands.push_back(builder.getIndexAttr(point[position]));
  }
  if (failed(map.getAffineMap().constantFold(operands, results)))
    return {};
  return llvm::map_to_vector(results, [](Attribute attribute) {
    return cast<IntegerAttr>(attribute).getInt();
  });
}

static DependenceExample makeExample(Dependence &dependence,
                                     ArrayRef<int64_t> point) {
  size_t first = dependence.sourceLoops.size();
  size_t second = dependence.targetLoops.size();
  DependenceExample example{
      dependence.source,
      dependence.target,
      getFirstIteration(dependence.source, point.take_front(first)),
      getFirstIteration(dependence.target, point.slice(first, second)),
      getElement(dependence, point),
      {}};
  FlatAffineValueConstraints &relation = dependence.relation;
  unsigned end = relation.getNumDimAndSymbolVars();
  for (unsigned i = relation.getNumDimVars(); i < end; ++i)
    if (relation.hasValue(i))
      example.sizes.push_back({relation.getValue(i), point[i]});
  return example;
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

std::optional<DependenceExample>
bridge::findDependenceExample(AffineForOp loop) {
  SmallVector<Operation *> accesses = getAccesses(loop);
  unsigned depth = getNestingDepth(loop) + 1;
  for (Operation *source : accesses)
    for (Operation *target : accesses) {
      auto dependence = getDependence(source, target, depth);
      if (!dependence)
        continue;
      if (auto point = samplePoint(dependence->relation))
        return makeExample(*dependence, *point);
    }
  return std::nullopt;
}

static std::optional<DependenceExample>
findLaneDependenceExample(AffineStoreOp store, AffineLoadOp load,
                          AffineForOp band) {
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
        return makeExample(*dependence, *point);
    }
  return std::nullopt;
}

std::optional<DependenceExample>
bridge::findLaneDependenceExample(AffineLoadOp load, AffineForOp band) {
  std::optional<DependenceExample> found;
  band.walk([&](AffineStoreOp store) {
    if (store.getMemRef() == load.getMemRef())
      found = ::findLaneDependenceExample(store, load, band);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Notes bridge::describe(const std::optional<DependenceExample> &example) {
  if (!example)
    return {};
  auto verb = [](Operation *op) {
    return isa<AffineWriteOpInterface>(op) ? " writes " : " reads ";
  };
  std::string name =
      getName(MemRefAccess(example->source).memref, "bridge.buffer");
  std::string element =
      "element [" + getPoint(example->element) + "] of " + name;
  return {{getPlainLocation(example->source),
           "iteration (" + getPoint(example->sourceIteration) + ")" +
               verb(example->source) + element},
          {getPlainLocation(example->target),
           "iteration (" + getPoint(example->targetIteration) + ")" +
               verb(example->target) + "it" + getSizes(example->sizes)}};
}
