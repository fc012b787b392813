//===- PieceMaps.cpp - index-set splitting from access relations ----------===//

#include "Bridge/Analysis/PieceMaps.h"

#include "mlir/Analysis/Presburger/PresburgerRelation.h"
#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace mlir::affine;
using namespace mlir::presburger;
using namespace bridge;

namespace {

/// One linear subscript: coefficients of the inner induction variables, and of
/// everything else (band variables by position, symbols by value, constant).
struct LinearSubscript {
  SmallVector<int64_t> inner;
  llvm::SmallMapVector<Value, int64_t, 4> outer;
  int64_t constant = 0;
};

using LinearAccess = SmallVector<LinearSubscript>;

/// A candidate under construction: the row of each induction variable of the
/// whole, as coefficients of the tile's variables and a constant at the end.
using Rows = SmallVector<std::optional<SmallVector<int64_t>>>;

} // namespace

//===----------------------------------------------------------------------===//
// Access relations as linear subscripts
//===----------------------------------------------------------------------===//

/// Band variables of different nests are the same variable once merged: both
/// are named by the loop of `names` at the same depth.
static Value canonicalOuter(Value value, const InnerSpace &space,
                            ArrayRef<AffineForOp> names) {
  for (auto [loop, name] : llvm::zip(space.band, names)) {
    AffineForOp own = loop, common = name;
    if (own.getInductionVar() == value)
      return common.getInductionVar();
  }
  return value;
}

static std::optional<unsigned> innerPosition(Value value,
                                             const InnerSpace &space) {
  for (auto [position, loop] : llvm::enumerate(space.chain)) {
    AffineForOp own = loop;
    if (own.getInductionVar() == value)
      return position;
  }
  return std::nullopt;
}

static std::optional<LinearSubscript>
linearise(AffineExpr expr, const AffineValueMap &map, const InnerSpace &space,
          ArrayRef<AffineForOp> names) {
  SmallVector<int64_t> flat;
  unsigned inputs = map.getNumOperands();
  if (failed(getFlattenedAffineExpr(expr, map.getNumDims(), map.getNumSymbols(),
                                    &flat)) ||
      flat.size() != inputs + 1)
    return std::nullopt; // A floordiv or mod is no linear subscript.
  LinearSubscript result;
  result.inner.assign(space.chain.size(), 0);
  result.constant = flat.back();
  for (unsigned i = 0; i < inputs; ++i) {
    if (auto position = innerPosition(map.getOperand(i), space))
      result.inner[*position] += flat[i];
    else if (flat[i] != 0)
      result.outer[canonicalOuter(map.getOperand(i), space, names)] += flat[i];
  }
  return result;
}

/// The linear accesses of a space to each memref.
static llvm::MapVector<Value, SmallVector<LinearAccess>>
getLinearAccesses(const InnerSpace &space, ArrayRef<AffineForOp> names) {
  llvm::MapVector<Value, SmallVector<LinearAccess>> accesses;
  AffineForOp outermost = space.chain.front();
  outermost->walk([&](Operation *op) {
    if (!isa<AffineReadOpInterface, AffineWriteOpInterface>(op))
      return;
    MemRefAccess access(op);
    AffineValueMap map;
    access.getAccessMap(&map);
    LinearAccess linear;
    for (unsigned i = 0, e = map.getNumResults(); i < e; ++i)
      if (auto subscript = linearise(map.getResult(i), map, space, names))
        linear.push_back(*subscript);
    if (linear.size() == map.getNumResults())
      accesses[access.memref].push_back(linear);
  });
  return accesses;
}

//===----------------------------------------------------------------------===//
// Solving whole(r) == tile(j)
//===----------------------------------------------------------------------===//

/// Solves one subscript for the one inner variable of the whole in it. Returns
/// false if the subscripts rule each other out or cannot be solved.
static bool solveSubscript(const LinearSubscript &whole,
                           const LinearSubscript &tile, Rows &rows) {
  auto isSet = [](int64_t coefficient) { return coefficient != 0; };
  for (auto &[value, coefficient] : whole.outer)
    if (tile.outer.lookup(value) != coefficient)
      return false;
  if (tile.outer.size() != whole.outer.size())
    return false;
  auto unknowns = llvm::count_if(whole.inner, isSet);
  if (unknowns == 0)
    return llvm::none_of(tile.inner, isSet) && whole.constant == tile.constant;
  if (unknowns > 1)
    return false;
  unsigned position = llvm::find_if(whole.inner, isSet) - whole.inner.begin();
  SmallVector<int64_t> row(tile.inner.begin(), tile.inner.end());
  row.push_back(tile.constant - whole.constant);
  for (int64_t &coefficient : row) {
    if (coefficient % whole.inner[position] != 0)
      return false;
    coefficient /= whole.inner[position];
  }
  if (rows[position] && *rows[position] != row)
    return false;
  rows[position] = row;
  return true;
}

static AffineMap toMap(ArrayRef<SmallVector<int64_t>> rows, MLIRContext *ctx) {
  SmallVector<AffineExpr> results;
  unsigned dims = rows.front().size() - 1;
  for (const SmallVector<int64_t> &row : rows) {
    AffineExpr expr = getAffineConstantExpr(row.back(), ctx);
    for (unsigned d = 0; d < dims; ++d)
      expr = expr + getAffineDimExpr(d, ctx) * row[d];
    results.push_back(expr);
  }
  return AffineMap::get(dims, 0, results, ctx);
}

static std::optional<AffineMap> solve(const LinearAccess &whole,
                                      const LinearAccess &tile,
                                      unsigned numUnknowns, MLIRContext *ctx) {
  Rows rows(numUnknowns);
  for (auto [w, t] : llvm::zip_equal(whole, tile))
    if (!solveSubscript(w, t, rows))
      return std::nullopt;
  SmallVector<SmallVector<int64_t>> known;
  for (auto &row : rows) {
    if (!row)
      return std::nullopt;
    known.push_back(*row);
  }
  return toMap(known, ctx);
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

static IntegerPolyhedron getBox(ArrayRef<int64_t> extents) {
  IntegerPolyhedron box(PresburgerSpace::getSetSpace(extents.size()));
  for (auto [position, extent] : llvm::enumerate(extents)) {
    box.addBound(BoundType::LB, position, 0);
    box.addBound(BoundType::UB, position, extent - 1);
  }
  return box;
}

static int64_t product(ArrayRef<int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

/// The iterations of the whole that `map` takes the box `tile` to: the tile's
/// variables are existentially quantified.
static IntegerPolyhedron getImage(AffineMap map, ArrayRef<int64_t> tile) {
  unsigned dims = map.getNumResults(), locals = tile.size();
  IntegerPolyhedron image(PresburgerSpace::getSetSpace(dims, 0, locals));
  for (auto [position, extent] : llvm::enumerate(tile)) {
    image.addBound(BoundType::LB, dims + position, 0);
    image.addBound(BoundType::UB, dims + position, extent - 1);
  }
  for (unsigned result = 0; result < dims; ++result) {
    SmallVector<int64_t> flat, row(dims + locals + 1, 0);
    LogicalResult linear =
        getFlattenedAffineExpr(map.getResult(result), locals, 0, &flat);
    assert(succeeded(linear) && flat.size() == locals + 1 &&
           "piece maps are linear");
    (void)linear;
    row[result] = -1;
    llvm::copy(flat, row.begin() + dims);
    image.addEquality(row);
  }
  return image;
}

/// As many iterations as the whole has, and every one of the whole's among
/// them: then none is hit twice.
bool bridge::partitions(ArrayRef<AffineMap> maps, ArrayRef<int64_t> tile,
                        ArrayRef<int64_t> whole) {
  if (product(tile) * int64_t(maps.size()) != product(whole))
    return false;
  PresburgerSet covered =
      PresburgerSet::getEmpty(PresburgerSpace::getSetSpace(whole.size()));
  for (AffineMap map : maps)
    covered.unionInPlace(PresburgerSet(
        PresburgerRelation(getImage(map, tile)).computeReprWithOnlyDivLocals()));
  return PresburgerSet(getBox(whole)).isSubsetOf(covered);
}

/// Completes a family of one map by translates `step` apart (one-dimensional
/// wholes only): `step` is the tile's volume for contiguous pieces, 1 for
/// interleaved ones.
static SmallVector<AffineMap> translates(AffineMap map, int64_t count,
                                         int64_t step) {
  SmallVector<AffineMap> family;
  SmallVector<int64_t> origin(map.getNumDims(), 0);
  MLIRContext *ctx = map.getContext();
  AffineExpr result = map.getResult(0);
  SmallVector<AffineExpr> zeros(map.getNumDims(),
                                getAffineConstantExpr(0, ctx));
  auto base = cast<AffineConstantExpr>(
      simplifyAffineExpr(result.replaceDims(zeros), 0, 0));
  for (int64_t p = 0; p < count; ++p)
    family.push_back(AffineMap::get(
        map.getNumDims(), 0,
        simplifyAffineExpr(result - base.getValue() + p * step,
                           map.getNumDims(), 0)));
  return family;
}

static SmallVector<AffineMap> complete(ArrayRef<AffineMap> found,
                                       const InnerSpace &whole,
                                       const InnerSpace &tile) {
  if (partitions(found, tile.extents, whole.extents))
    return SmallVector<AffineMap>(found);
  int64_t volume = product(tile.extents);
  int64_t count = product(whole.extents) / volume;
  if (whole.extents.size() != 1)
    return {};
  for (AffineMap map : found)
    for (int64_t step : {volume, int64_t(1)}) {
      SmallVector<AffineMap> family = translates(map, count, step);
      if (partitions(family, tile.extents, whole.extents))
        return family;
    }
  return {};
}

SmallVector<AffineMap> bridge::getPieceMaps(const InnerSpace &whole,
                                            const InnerSpace &tile) {
  auto ofWhole = getLinearAccesses(whole, whole.band);
  auto ofTile = getLinearAccesses(tile, whole.band);
  AffineForOp outermost = whole.chain.front();
  MLIRContext *ctx = outermost.getContext();
  for (auto &[memref, accesses] : ofWhole)
    for (const LinearAccess &access : accesses) {
      llvm::SetVector<AffineMap> found;
      for (const LinearAccess &other : ofTile.lookup(memref))
        if (auto map = solve(access, other, whole.chain.size(), ctx))
          found.insert(*map);
      SmallVector<AffineMap> family =
          complete(found.getArrayRef(), whole, tile);
      if (!family.empty())
        return family;
    }
  return {};
}
