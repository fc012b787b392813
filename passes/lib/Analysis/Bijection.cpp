//===- Bijection.cpp - whether affine maps are bijections -----------------===//

#include "Bridge/Analysis/Bijection.h"

#include "Bridge/Analysis/Nest.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "llvm/ADT/IntEqClasses.h"

#include <numeric>
#include <set>

using namespace mlir;
using namespace mlir::affine;
using namespace mlir::presburger;
using namespace bridge;

//===----------------------------------------------------------------------===//
// Linear maps: by integer sets
//===----------------------------------------------------------------------===//

int64_t bridge::getBoxVolume(ArrayRef<int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

/// Returns the coefficients of one result of a linear map, the constant last.
static SmallVector<int64_t> flatten(AffineMap map, unsigned result) {
  SmallVector<int64_t> flat;
  LogicalResult linear = getFlattenedAffineExpr(
      map.getResult(result), map.getNumDims(), map.getNumSymbols(), &flat);
  assert(succeeded(linear) && flat.size() == map.getNumDims() + 1 &&
         "maps of a partition are linear");
  (void)linear;
  return flat;
}

/// Returns the pairs (j, j') of points of the tile with a(j) == b(j').
static IntegerPolyhedron getEqualImages(AffineMap a, AffineMap b,
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
    IntegerPolyhedron pairs = getEqualImages(map, map, tile);
    // j - j' >= 1 here; j' - j >= 1 would find the same pairs.
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
                        ArrayRef<int64_t> range) {
  for (auto [result, extent] : llvm::enumerate(range)) {
    SmallVector<int64_t> flat = flatten(map, result);
    int64_t low = flat.back(), high = flat.back();
    for (auto [coefficient, size] : llvm::zip(flat, tile))
      (coefficient < 0 ? low : high) += coefficient * (size - 1);
    if (low < 0 || high >= extent)
      return false;
  }
  return true;
}

/// The images have as many points as the range, are inside of it, and no point
/// is in two of them: then they cover the range. (To ask whether the range is a
/// subset of the images takes time exponential in the number of interleaved
/// maps.)
bool bridge::isPartition(ArrayRef<AffineMap> maps, ArrayRef<int64_t> tile,
                         ArrayRef<int64_t> range) {
  if (getBoxVolume(range) % getBoxVolume(tile) != 0 ||
      getBoxVolume(range) / getBoxVolume(tile) != int64_t(maps.size()))
    return false;
  for (AffineMap map : maps)
    if (!staysInside(map, tile, range) || !isInjective(map, tile))
      return false;
  for (auto [i, a] : llvm::enumerate(maps))
    for (AffineMap b : maps.drop_front(i + 1))
      if (!getEqualImages(a, b, tile).isIntegerEmpty())
        return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Maps with floordiv or mod: point by point
//===----------------------------------------------------------------------===//

namespace {

/// Affine expressions that are at least zero.
using Constraints = SmallVector<AffineExpr>;

/// The image of a map: the number of its points inside the range, and the least
/// and the greatest of each coordinate of all its points and of zero.
struct Image {
  int64_t inside = 0;
  SmallVector<int64_t> lowest, highest;
};

/// Results of a map, and the loops that they vary with, by position.
struct Part {
  SmallVector<unsigned> dims, results;
};

} // namespace

static bool isInside(ArrayRef<int64_t> point, ArrayRef<int64_t> extents) {
  return llvm::all_of(llvm::zip(point, extents), [](auto pair) {
    auto [value, extent] = pair;
    return value >= 0 && value < extent;
  });
}

/// Returns the image of `loops`, which are at `positions` of the map and have
/// constant extents. Nothing if two points have the same image inside `range`,
/// or if one has its image outside and `mayLeave` is not set.
static std::optional<Image> getImage(AffineMap map,
                                     ArrayRef<unsigned> positions,
                                     ArrayRef<AffineForOp> loops,
                                     ArrayRef<int64_t> range, bool mayLeave) {
  SmallVector<int64_t> extents = *getConstantExtents(loops);
  SmallVector<int64_t> point(map.getNumDims(), 0), zeros(range.size(), 0);
  Image image{0, zeros, zeros};
  std::set<SmallVector<int64_t, 4>> seen;
  for (int64_t i = 0, end = *getVolume(loops); i < end; ++i) {
    int64_t rest = i;
    for (auto [position, extent] : llvm::zip(positions, extents)) {
      point[position] = rest % extent;
      rest /= extent;
    }
    auto target = map.compose(point);
    for (auto [k, value] : llvm::enumerate(target)) {
      image.lowest[k] = std::min(image.lowest[k], value);
      image.highest[k] = std::max(image.highest[k], value);
    }
    bool inside = isInside(target, range);
    if (inside ? !seen.insert(target).second : !mayLeave)
      return std::nullopt;
  }
  image.inside = seen.size();
  return image;
}

/// Returns the results of `map` in parts that share no variable.
static SmallVector<Part> getParts(AffineMap map) {
  unsigned dims = map.getNumDims(), results = map.getNumResults();
  llvm::IntEqClasses classes(dims + results);
  for (unsigned result = 0; result < results; ++result)
    for (unsigned dim = 0; dim < dims; ++dim)
      if (map.getResult(result).isFunctionOfDim(dim))
        classes.join(dim, dims + result);
  classes.compress();
  SmallVector<Part> parts(classes.getNumClasses());
  for (unsigned i = 0; i < dims + results; ++i)
    (i < dims ? parts[classes[i]].dims : parts[classes[i]].results)
        .push_back(i < dims ? i : i - dims);
  return parts;
}

static SmallVector<AffineForOp> select(ArrayRef<AffineForOp> loops,
                                       ArrayRef<unsigned> positions) {
  return llvm::map_to_vector(
      positions, [&](unsigned position) { return loops[position]; });
}

/// True if the one result of a part is a variable over the domain of its loop.
static bool isIdentity(AffineMap own, const Part &part,
                       ArrayRef<AffineForOp> from, ArrayRef<AffineForOp> to) {
  return part.dims.size() == 1 && part.results.size() == 1 &&
         isa<AffineDimExpr>(own.getResult(0)) &&
         haveSameDomain(from[part.dims[0]], to[part.results[0]]);
}

/// Returns the constraints of one part, as `getBijectionDomain` does.
static std::optional<Constraints>
getPartDomain(AffineMap map, const Part &part, ArrayRef<AffineForOp> from,
              ArrayRef<AffineForOp> to, int64_t maxPoints, bool mayBePartial) {
  if (part.dims.empty() || part.results.empty())
    return std::nullopt;
  AffineMap own = map.getSubMap(part.results);
  if (isIdentity(own, part, from, to))
    return Constraints();
  SmallVector<AffineForOp> source = select(from, part.dims),
                           target = select(to, part.results);
  auto points = getVolume(source), wanted = getVolume(target);
  auto range = getConstantExtents(target);
  if (!getConstantExtents(source) || !range || !points || !wanted ||
      *points > maxPoints ||
      (mayBePartial ? *points >= 2 * *wanted : *points != *wanted))
    return std::nullopt;
  auto image = getImage(own, part.dims, source, *range, mayBePartial);
  if (!image || image->inside != *wanted)
    return std::nullopt;
  Constraints domain;
  for (auto [k, extent] : llvm::enumerate(*range)) {
    if (image->lowest[k] < 0)
      domain.push_back(own.getResult(k));
    if (image->highest[k] >= extent)
      domain.push_back(extent - 1 - own.getResult(k));
  }
  return domain;
}

std::optional<SmallVector<AffineExpr>>
bridge::getBijectionDomain(AffineMap map, ArrayRef<AffineForOp> from,
                           ArrayRef<AffineForOp> to, int64_t maxPoints,
                           bool mayBePartial) {
  Constraints domain;
  for (const Part &part : getParts(map)) {
    auto own = getPartDomain(map, part, from, to, maxPoints, mayBePartial);
    if (!own)
      return std::nullopt;
    llvm::append_range(domain, *own);
  }
  return domain;
}

//===----------------------------------------------------------------------===//
// Digits of numbers
//===----------------------------------------------------------------------===//

namespace {
/// The variable at `position`, which has `extent` values, counts `weight` each.
/// A symbolic number of values is no extent.
struct Digit {
  int64_t weight;
  std::optional<int64_t> extent;
  unsigned position;
};
} // namespace

static std::optional<int64_t> getConstantExtent(AffineForOp loop) {
  auto extents = getConstantExtents(loop);
  return extents ? std::optional(extents->front()) : std::nullopt;
}

/// True if `whole` has `times` as many iterations as `part`, whatever the sizes
/// are.
static bool hasMultiple(AffineForOp whole, int64_t times, AffineForOp part) {
  AffineMap all = whole.getUpperBoundMap(), one = part.getUpperBoundMap();
  if (!countsFromZero(whole) || !countsFromZero(part) ||
      whole.getUpperBoundOperands() != part.getUpperBoundOperands() ||
      all.getNumResults() != 1 || one.getNumResults() != 1 ||
      all.getNumDims() != one.getNumDims())
    return false;
  return simplifyAffineExpr(all.getResult(0) - one.getResult(0) * times,
                            all.getNumDims(), all.getNumSymbols()) == 0;
}

/// Returns the digits of a result, the lowest first; nothing if they are not
/// those of the numbers below the extent of `to`. The highest may have a
/// symbolic number of values.
static std::optional<SmallVector<Digit>>
getDigits(AffineExpr result, ArrayRef<AffineForOp> from, AffineForOp to) {
  SmallVector<int64_t> flat;
  if (failed(getFlattenedAffineExpr(result, from.size(), 0, &flat)) ||
      flat.size() != from.size() + 1 || flat.back() != 0)
    return std::nullopt;
  SmallVector<Digit> digits;
  for (auto [position, loop] : llvm::enumerate(from))
    if (int64_t weight = flat[position])
      digits.push_back({weight, getConstantExtent(loop), unsigned(position)});
  auto order = [](const Digit &digit) {
    return std::pair(digit.weight, digit.extent.value_or(INT64_MAX));
  };
  llvm::sort(digits, [&](const Digit &a, const Digit &b) {
    return order(a) < order(b);
  });
  int64_t next = 1;
  for (const Digit &digit : digits) {
    if (digit.weight != next)
      return std::nullopt;
    if (!digit.extent)
      return &digit == &digits.back() &&
                     hasMultiple(to, next, from[digit.position])
                 ? std::optional(digits)
                 : std::nullopt;
    next *= *digit.extent;
  }
  return getConstantExtent(to) == next ? std::optional(digits) : std::nullopt;
}

std::optional<AffineMap> bridge::getInverseOfDigits(AffineMap map,
                                                    ArrayRef<AffineForOp> from,
                                                    ArrayRef<AffineForOp> to) {
  if (map.getNumSymbols() != 0)
    return std::nullopt;
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> inverse(from.size());
  for (auto [result, loop] : llvm::enumerate(to)) {
    auto digits = getDigits(map.getResult(result), from, loop);
    if (!digits)
      return std::nullopt;
    AffineExpr number = getAffineDimExpr(result, context);
    for (const Digit &digit : *digits) {
      if (inverse[digit.position])
        return std::nullopt;
      AffineExpr value = number.floorDiv(digit.weight);
      bool highest = !digit.extent ||
                     getConstantExtent(loop) == digit.weight * *digit.extent;
      inverse[digit.position] = highest ? value : value % *digit.extent;
    }
  }
  if (llvm::is_contained(inverse, AffineExpr()))
    return std::nullopt;
  return AffineMap::get(to.size(), 0, inverse, context);
}
