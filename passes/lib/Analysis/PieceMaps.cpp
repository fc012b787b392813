//===- PieceMaps.cpp - index-set splitting from access relations ----------===//

#include "Bridge/Analysis/PieceMaps.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
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

static std::optional<LinearSubscript> linearise(AffineExpr expr,
                                                const AffineValueMap &map,
                                                const InnerSpace &space,
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

/// Gives variables of the whole that no subscript names each of their values:
/// what is read is used once for each.
static SmallVector<AffineMap> enumerateFree(const Rows &rows,
                                            ArrayRef<int64_t> extents,
                                            unsigned numDims,
                                            MLIRContext *ctx) {
  SmallVector<SmallVector<SmallVector<int64_t>>> families(1);
  for (auto [row, extent] : llvm::zip_equal(rows, extents)) {
    SmallVector<SmallVector<SmallVector<int64_t>>> longer;
    for (const auto &known : families)
      for (int64_t value = 0; value < (row ? 1 : extent); ++value) {
        SmallVector<int64_t> constant(numDims + 1, 0);
        constant.back() = value;
        longer.push_back(known);
        longer.back().push_back(row ? *row : constant);
      }
    families = std::move(longer);
  }
  SmallVector<AffineMap> maps;
  for (const auto &known : families)
    maps.push_back(toMap(known, ctx));
  return maps;
}

/// The iterations of the whole that access what `tile` does, as functions of
/// the tile's; at most `limit` of them.
static SmallVector<AffineMap> solve(const LinearAccess &whole,
                                    const LinearAccess &tile,
                                    ArrayRef<int64_t> extents, unsigned numDims,
                                    int64_t limit, MLIRContext *ctx) {
  Rows rows(extents.size());
  for (auto [w, t] : llvm::zip_equal(whole, tile))
    if (!solveSubscript(w, t, rows))
      return {};
  int64_t count = 1;
  for (auto [row, extent] : llvm::zip_equal(rows, extents))
    if (!row && (count *= extent) > limit)
      return {};
  return enumerateFree(rows, extents, numDims, ctx);
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

static int64_t product(ArrayRef<int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

/// The coefficients of one result of a piece map, the constant last.
static SmallVector<int64_t> flatten(AffineMap map, unsigned result) {
  SmallVector<int64_t> flat;
  LogicalResult linear = getFlattenedAffineExpr(
      map.getResult(result), map.getNumDims(), map.getNumSymbols(), &flat);
  assert(succeeded(linear) && flat.size() == map.getNumDims() + 1 &&
         "piece maps are linear");
  (void)linear;
  return flat;
}

/// The pairs (j, j') of iterations of the tile with a(j) == b(j').
static IntegerPolyhedron getCollisions(AffineMap a, AffineMap b,
                                       ArrayRef<int64_t> tile) {
  unsigned dims = tile.size();
  IntegerPolyhedron pairs(PresburgerSpace::getSetSpace(2 * dims));
  for (unsigned position = 0; position < 2 * dims; ++position) {
    pairs.addBound(BoundType::LB, position, 0);
    pairs.addBound(BoundType::UB, position, tile[position % dims] - 1);
  }
  for (unsigned result = 0; result < a.getNumResults(); ++result) {
    SmallVector<int64_t> ofA = flatten(a, result), ofB = flatten(b, result);
    SmallVector<int64_t> row(ofA.begin(), ofA.end() - 1);
    for (unsigned position = 0; position < dims; ++position)
      row.push_back(-ofB[position]);
    row.push_back(ofA.back() - ofB.back());
    pairs.addEquality(row);
  }
  return pairs;
}

static bool isInjective(AffineMap map, ArrayRef<int64_t> tile) {
  for (unsigned position = 0; position < tile.size(); ++position) {
    IntegerPolyhedron pairs = getCollisions(map, map, tile);
    // j - j' >= 1 here; the other way around is the same pair.
    SmallVector<int64_t> row(2 * tile.size() + 1, 0);
    row[position] = 1;
    row[tile.size() + position] = -1;
    row.back() = -1;
    pairs.addInequality(row);
    if (!pairs.isIntegerEmpty())
      return false;
  }
  return true;
}

static bool staysInside(AffineMap map, ArrayRef<int64_t> tile,
                        ArrayRef<int64_t> whole) {
  for (auto [result, extent] : llvm::enumerate(whole)) {
    SmallVector<int64_t> flat = flatten(map, result);
    int64_t low = flat.back(), high = flat.back();
    for (auto [coefficient, size] : llvm::zip(flat, tile))
      (coefficient < 0 ? low : high) += coefficient * (size - 1);
    if (low < 0 || high >= extent)
      return false;
  }
  return true;
}

/// As many iterations as the whole has, all of them the whole's, and none hit
/// twice: then every one is hit. (Asking whether the whole is a subset of the
/// images instead takes time exponential in the number of interleaved pieces.)
bool bridge::partitions(ArrayRef<AffineMap> maps, ArrayRef<int64_t> tile,
                        ArrayRef<int64_t> whole) {
  if (product(whole) % product(tile) != 0 ||
      product(whole) / product(tile) != int64_t(maps.size()))
    return false;
  for (AffineMap map : maps)
    if (!staysInside(map, tile, whole) || !isInjective(map, tile))
      return false;
  for (auto [i, a] : llvm::enumerate(maps))
    for (AffineMap b : maps.drop_front(i + 1))
      if (!getCollisions(a, b, tile).isIntegerEmpty())
        return false;
  return true;
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
    family.push_back(
        AffineMap::get(map.getNumDims(), 0,
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

/// The pieces that `access` of the whole and those of the tiles to the same
/// memref have in common.
static SmallVector<AffineMap> solveAll(const LinearAccess &access,
                                       ArrayRef<LinearAccess> ofTiles,
                                       const InnerSpace &whole,
                                       const InnerSpace &tile) {
  AffineForOp outermost = whole.chain.front();
  int64_t count = product(whole.extents) / product(tile.extents);
  llvm::SetVector<AffineMap> found;
  for (const LinearAccess &other : ofTiles)
    found.insert_range(solve(access, other, whole.extents, tile.extents.size(),
                             count, outermost.getContext()));
  return complete(found.getArrayRef(), whole, tile);
}

SmallVector<AffineMap> bridge::getPieceMaps(const InnerSpace &whole,
                                            ArrayRef<InnerSpace> tiles) {
  llvm::DenseMap<Value, SmallVector<LinearAccess>> ofTiles;
  for (const InnerSpace &tile : tiles)
    for (auto &[memref, accesses] : getLinearAccesses(tile, whole.band))
      llvm::append_range(ofTiles[memref], accesses);
  for (auto &[memref, accesses] : getLinearAccesses(whole, whole.band))
    for (const LinearAccess &access : accesses) {
      auto family =
          solveAll(access, ofTiles.lookup(memref), whole, tiles.front());
      if (!family.empty())
        return family;
    }
  return {};
}
