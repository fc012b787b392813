//===- SplitMaps.cpp - index-set splits from access relations -------------===//

#include "Bridge/Analysis/SplitMaps.h"

#include "Bridge/Analysis/Bijection.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineValueMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

namespace {

/// A linear subscript: the coefficients of the inner induction variables, those
/// of the band's variables and of symbols, and the constant.
struct LinearSubscript {
  SmallVector<int64_t> inner;
  llvm::SmallMapVector<Value, int64_t, 4> outer;
  int64_t constant = 0;
};

using LinearAccess = SmallVector<LinearSubscript>;

/// A solution under construction: for each induction variable of the domain,
/// the coefficients of the tile's variables and a constant at the end.
using Rows = SmallVector<std::optional<SmallVector<int64_t>>>;

} // namespace

//===----------------------------------------------------------------------===//
// Access relations as linear subscripts
//===----------------------------------------------------------------------===//

/// Returns the variable of the loop in `names` that has the depth of the band
/// loop whose variable `value` is: after fusion, the two are one variable.
static Value canonicalOuter(Value value, const InnerDomain &domain,
                            ArrayRef<AffineForOp> names) {
  for (auto [loop, name] : llvm::zip(domain.band, names)) {
    AffineForOp own = loop, common = name;
    if (own.getInductionVar() == value)
      return common.getInductionVar();
  }
  return value;
}

static std::optional<LinearSubscript> linearise(AffineExpr expr,
                                                const AffineValueMap &map,
                                                const InnerDomain &domain,
                                                ArrayRef<AffineForOp> names) {
  SmallVector<int64_t> flat;
  unsigned inputs = map.getNumOperands();
  if (failed(getFlattenedAffineExpr(expr, map.getNumDims(), map.getNumSymbols(),
                                    &flat)) ||
      flat.size() != inputs + 1)
    return std::nullopt; // A floordiv or mod is no linear subscript.
  LinearSubscript result;
  result.inner.assign(domain.chain.size(), 0);
  result.constant = flat.back();
  for (unsigned i = 0; i < inputs; ++i) {
    if (auto position = getPosition(domain.chain, map.getOperand(i)))
      result.inner[*position] += flat[i];
    else if (flat[i] != 0)
      result.outer[canonicalOuter(map.getOperand(i), domain, names)] += flat[i];
  }
  return result;
}

/// Returns the linear accesses of a domain to each memref.
static llvm::MapVector<Value, SmallVector<LinearAccess>>
getLinearAccesses(const InnerDomain &domain, ArrayRef<AffineForOp> names) {
  llvm::MapVector<Value, SmallVector<LinearAccess>> accesses;
  AffineForOp outermost = domain.chain.front();
  outermost->walk([&](Operation *op) {
    if (!isa<AffineReadOpInterface, AffineWriteOpInterface>(op))
      return;
    MemRefAccess access(op);
    AffineValueMap map;
    access.getAccessMap(&map);
    LinearAccess linear;
    for (unsigned i = 0, e = map.getNumResults(); i < e; ++i)
      if (auto subscript = linearise(map.getResult(i), map, domain, names))
        linear.push_back(*subscript);
    if (linear.size() == map.getNumResults())
      accesses[access.memref].push_back(linear);
  });
  return accesses;
}

//===----------------------------------------------------------------------===//
// Solving domain(r) == tile(j)
//===----------------------------------------------------------------------===//

/// Solves one equation of subscripts for the inner variable of the domain in
/// it. Returns false if it has no solution, or more than one such variable.
static bool solveSubscript(const LinearSubscript &domain,
                           const LinearSubscript &tile, Rows &rows) {
  auto isSet = [](int64_t coefficient) { return coefficient != 0; };
  for (auto &[value, coefficient] : domain.outer)
    if (tile.outer.lookup(value) != coefficient)
      return false;
  if (tile.outer.size() != domain.outer.size())
    return false;
  auto unknowns = llvm::count_if(domain.inner, isSet);
  if (unknowns == 0)
    return llvm::none_of(tile.inner, isSet) && domain.constant == tile.constant;
  if (unknowns > 1)
    return false;
  unsigned position = llvm::find_if(domain.inner, isSet) - domain.inner.begin();
  SmallVector<int64_t> row(tile.inner.begin(), tile.inner.end());
  row.push_back(tile.constant - domain.constant);
  for (int64_t &coefficient : row) {
    if (coefficient % domain.inner[position] != 0)
      return false;
    coefficient /= domain.inner[position];
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

/// Returns a map for each combination of values of the free variables, those of
/// the domain that are in no subscript.
static SmallVector<AffineMap> enumerateFree(const Rows &rows,
                                            ArrayRef<int64_t> extents,
                                            unsigned numDims,
                                            MLIRContext *ctx) {
  SmallVector<SmallVector<SmallVector<int64_t>>> combinations(1);
  for (auto [row, extent] : llvm::zip_equal(rows, extents)) {
    SmallVector<SmallVector<SmallVector<int64_t>>> longer;
    for (const auto &known : combinations)
      for (int64_t value = 0; value < (row ? 1 : extent); ++value) {
        SmallVector<int64_t> constant(numDims + 1, 0);
        constant.back() = value;
        longer.push_back(known);
        longer.back().push_back(row ? *row : constant);
      }
    combinations = std::move(longer);
  }
  SmallVector<AffineMap> maps;
  for (const auto &known : combinations)
    maps.push_back(toMap(known, ctx));
  return maps;
}

/// The most neighbours in memory that one lane has where an access does not
/// tell them apart: each of the lane's accesses has all of their sectors in it
/// again.
static constexpr int64_t kMostNeighbours = 4;

/// Returns the iterations of the domain that access what `tile` does, as maps
/// from the tile's iterations. Empty if there are more than `limit`, or a lane
/// would have many neighbours: they are a segment of a row, whose scale the
/// tile makes.
static SmallVector<AffineMap> solve(const LinearAccess &domain,
                                    const LinearAccess &tile,
                                    ArrayRef<int64_t> extents, unsigned numDims,
                                    int64_t limit, MLIRContext *ctx) {
  Rows rows(extents.size());
  for (auto [w, t] : llvm::zip_equal(domain, tile))
    if (!solveSubscript(w, t, rows))
      return {};
  if (rows.size() > 1 && !rows.back() && extents.back() > kMostNeighbours)
    return {};
  int64_t count = 1;
  for (auto [row, extent] : llvm::zip_equal(rows, extents))
    if (!row && (count *= extent) > limit)
      return {};
  return enumerateFree(rows, extents, numDims, ctx);
}

//===----------------------------------------------------------------------===//
// Sets of pieces
//===----------------------------------------------------------------------===//

/// Returns the constant of each result of a map.
static SmallVector<int64_t> getStarts(AffineMap map) {
  SmallVector<AffineExpr> zeros(map.getNumDims(),
                                getAffineConstantExpr(0, map.getContext()));
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr result) {
    AffineExpr start = simplifyAffineExpr(result.replaceDims(zeros), 0, 0);
    return cast<AffineConstantExpr>(start).getValue();
  });
}

/// Returns a map with `offsets` added to its results.
static AffineMap shift(AffineMap map, ArrayRef<int64_t> offsets) {
  unsigned dims = map.getNumDims();
  SmallVector<AffineExpr> results;
  for (auto [result, offset] : llvm::zip_equal(map.getResults(), offsets))
    results.push_back(simplifyAffineExpr(result + offset, dims, 0));
  return AffineMap::get(dims, 0, results, map.getContext());
}

/// Returns `times` translated copies of maps, `step` apart along dimension
/// `axis` of the domain. The first begin at the domain's first iteration.
static SmallVector<AffineMap> translate(ArrayRef<AffineMap> maps, int64_t times,
                                        int64_t step, unsigned axis) {
  SmallVector<int64_t> offsets = getStarts(maps.front());
  for (AffineMap map : maps)
    for (auto [least, start] : llvm::zip_equal(offsets, getStarts(map)))
      least = std::min(least, start);
  for (int64_t &offset : offsets)
    offset = -offset;
  SmallVector<AffineMap> pieces;
  for (int64_t p = 0; p < times; ++p, offsets[axis] += step)
    for (AffineMap map : maps)
      pieces.push_back(shift(map, offsets));
  return pieces;
}

/// Returns the steps at which copies of `count` tiles may be: 1 for interleaved
/// ones, their volume for contiguous ones, and what lies between where each row
/// of the tiles is followed by the same row of the others.
static SmallVector<int64_t> getSteps(const InnerDomain &tile, int64_t count) {
  SmallVector<int64_t> steps = {1};
  int64_t volume = count;
  for (int64_t extent : llvm::reverse(tile.extents))
    steps.push_back(volume *= extent);
  return SmallVector<int64_t>(llvm::reverse(steps));
}

/// Returns translated copies of maps that partition the domain, if there are.
static SmallVector<AffineMap> completeBy(ArrayRef<AffineMap> maps,
                                         const InnerDomain &domain,
                                         const InnerDomain &tile) {
  int64_t count = maps.size();
  int64_t pieces = getBoxVolume(domain.extents) / getBoxVolume(tile.extents);
  if (pieces % count != 0)
    return {};
  for (unsigned axis = 0, e = domain.extents.size(); axis < e; ++axis)
    for (int64_t step : getSteps(tile, count)) {
      auto copies = translate(maps, pieces / count, step, axis);
      if (isPartition(copies, tile.extents, domain.extents))
        return copies;
    }
  return {};
}

/// Returns `found` if it partitions the domain, or else translated copies that
/// do: of one of its maps, or of all `together`.
static SmallVector<AffineMap> complete(ArrayRef<AffineMap> found,
                                       const InnerDomain &domain,
                                       const InnerDomain &tile, bool together) {
  if (isPartition(found, tile.extents, domain.extents))
    return SmallVector<AffineMap>(found);
  for (const AffineMap &map : found)
    if (auto pieces = completeBy(map, domain, tile); !pieces.empty())
      return pieces;
  return together && found.size() > 1 ? completeBy(found, domain, tile)
                                      : SmallVector<AffineMap>();
}

/// Returns the pieces that follow from `access` of the domain and the tiles'
/// accesses to the same memref.
static SmallVector<AffineMap> solveAll(const LinearAccess &access,
                                       ArrayRef<LinearAccess> ofTiles,
                                       const InnerDomain &domain,
                                       const InnerDomain &tile, bool together) {
  AffineForOp outermost = domain.chain.front();
  int64_t count = getBoxVolume(domain.extents) / getBoxVolume(tile.extents);
  llvm::SetVector<AffineMap> found;
  for (const LinearAccess &other : ofTiles)
    found.insert_range(solve(access, other, domain.extents, tile.extents.size(),
                             count, outermost.getContext()));
  return complete(found.getArrayRef(), domain, tile, together);
}

SmallVector<AffineMap> bridge::getSplitMaps(const InnerDomain &domain,
                                            ArrayRef<InnerDomain> tiles,
                                            bool together) {
  llvm::DenseMap<Value, SmallVector<LinearAccess>> ofTiles;
  for (const InnerDomain &tile : tiles)
    for (auto &[memref, accesses] : getLinearAccesses(tile, domain.band))
      llvm::append_range(ofTiles[memref], accesses);
  for (auto &[memref, accesses] : getLinearAccesses(domain, domain.band))
    for (const LinearAccess &access : accesses) {
      auto pieces = solveAll(access, ofTiles.lookup(memref), domain,
                             tiles.front(), together);
      if (!pieces.empty())
        return pieces;
    }
  return {};
}

/// Returns maps of equal positive steps with the first of their starts inside
/// of one step: the iterations before that of the tile are added.
static SmallVector<AffineMap> startAtZero(ArrayRef<AffineMap> maps) {
  MLIRContext *ctx = maps.front().getContext();
  AffineExpr dim = getAffineDimExpr(0, ctx);
  SmallVector<int64_t> starts, steps;
  for (AffineMap map : maps) {
    SmallVector<int64_t> flat;
    if (failed(getFlattenedAffineExpr(map.getResult(0), 1, 0, &flat)) ||
        flat.size() != 2)
      return {};
    steps.push_back(flat.front());
    starts.push_back(flat.back());
  }
  int64_t step = steps.front();
  if (!llvm::all_equal(steps) || step <= 0)
    return {};
  int64_t before = *llvm::min_element(starts) / step * step;
  return llvm::map_to_vector(starts, [&](int64_t start) {
    return AffineMap::get(1, 0, dim * step + (start - before));
  });
}

SmallVector<AffineMap> bridge::getExtendedSplitMaps(const InnerDomain &domain,
                                                    const InnerDomain &tile,
                                                    int64_t maxPieces) {
  if (domain.extents.size() != 1 || tile.extents.size() != 1)
    return {};
  AffineForOp outermost = domain.chain.front();
  int64_t volume = domain.extents.front();
  auto ofTile = getLinearAccesses(tile, domain.band);
  for (auto &[memref, accesses] : getLinearAccesses(domain, domain.band))
    for (const LinearAccess &access : accesses) {
      llvm::SetVector<AffineMap> found;
      for (const LinearAccess &other : ofTile.lookup(memref))
        found.insert_range(solve(access, other, domain.extents, 1, maxPieces,
                                 outermost.getContext()));
      int64_t count = found.size();
      if (count < 2 || count > maxPieces || volume % count != 0)
        continue;
      auto pieces = startAtZero(found.getArrayRef());
      if (!pieces.empty() &&
          isPartition(pieces, volume / count, domain.extents))
        return pieces;
    }
  return {};
}
