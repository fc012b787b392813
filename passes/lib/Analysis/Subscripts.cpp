//===- Subscripts.cpp - simplification of subscripts ----------------------===//

#include "Bridge/Analysis/Subscripts.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

//===----------------------------------------------------------------------===//
// Sums of terms
//===----------------------------------------------------------------------===//

namespace {

/// A sum of atoms (variables, quotients and remainders), each with a
/// coefficient other than zero, and of a constant.
struct Sum {
  llvm::MapVector<AffineExpr, int64_t> terms;
  int64_t constant = 0;

  void add(AffineExpr atom, int64_t coefficient) {
    int64_t &own = terms[atom];
    own += coefficient;
    if (own == 0)
      terms.erase(atom);
  }

  void add(const Sum &other, int64_t factor = 1) {
    constant += other.constant * factor;
    for (auto [atom, coefficient] : other.terms)
      add(atom, coefficient * factor);
  }

  /// True if the sum is just one atom, which `atom` gets.
  bool isOne(AffineExpr &atom) const {
    if (terms.size() != 1 || constant != 0 || terms.front().second != 1)
      return false;
    atom = terms.front().first;
    return true;
  }
};

/// A quotient, rounded down, and the remainder.
struct Division {
  Sum quotient, remainder;
};

/// Inclusive bounds.
struct Range {
  int64_t low, high;
};

} // namespace

/// Compares expressions by their structure, not by their addresses: the order
/// is the same in every run.
static int compare(AffineExpr a, AffineExpr b) {
  if (a == b)
    return 0;
  if (a.getKind() != b.getKind())
    return a.getKind() < b.getKind() ? -1 : 1;
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(a)) {
    auto other = cast<AffineBinaryOpExpr>(b);
    int sides = compare(binary.getLHS(), other.getLHS());
    return sides ? sides : compare(binary.getRHS(), other.getRHS());
  }
  auto number = [](AffineExpr leaf) -> int64_t {
    if (auto constant = dyn_cast<AffineConstantExpr>(leaf))
      return constant.getValue();
    if (auto dim = dyn_cast<AffineDimExpr>(leaf))
      return dim.getPosition();
    return cast<AffineSymbolExpr>(leaf).getPosition();
  };
  return number(a) < number(b) ? -1 : 1;
}

/// Returns the sum as an expression, its largest coefficients first.
static AffineExpr toExpr(const Sum &sum, MLIRContext *ctx) {
  SmallVector<std::pair<AffineExpr, int64_t>> terms(sum.terms.begin(),
                                                    sum.terms.end());
  llvm::sort(terms, [](auto &a, auto &b) {
    if (std::abs(a.second) != std::abs(b.second))
      return std::abs(a.second) > std::abs(b.second);
    return compare(a.first, b.first) < 0;
  });
  AffineExpr expr = getAffineConstantExpr(0, ctx);
  for (auto [atom, coefficient] : terms)
    expr = expr + atom * coefficient;
  return expr + sum.constant;
}

//===----------------------------------------------------------------------===//
// Simplification
//===----------------------------------------------------------------------===//

namespace {

class Simplifier {
public:
  Simplifier(ArrayRef<Value> operands, MLIRContext *ctx)
      : operands(operands), ctx(ctx) {}

  Sum simplify(AffineExpr expr) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return toConstant(constant.getValue());
    if (!binary)
      return toAtom(expr);
    auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (expr.getKind() == AffineExprKind::Add)
      return simplifyAdd(binary);
    if (!factor ||
        (expr.getKind() != AffineExprKind::Mul && factor.getValue() <= 0))
      return toAtom(expr);
    return simplifyWith(binary, factor.getValue());
  }

  /// True if an operand of a `mod` may be negative.
  bool hasSignedRemainder(AffineExpr expr) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!binary)
      return false;
    if (expr.getKind() == AffineExprKind::Mod &&
        mayBeNegative(simplify(binary.getLHS())))
      return true;
    return hasSignedRemainder(binary.getLHS()) ||
           hasSignedRemainder(binary.getRHS());
  }

private:
  ArrayRef<Value> operands;
  MLIRContext *ctx;

  static Sum toConstant(int64_t value) {
    Sum sum;
    sum.constant = value;
    return sum;
  }

  static Sum toAtom(AffineExpr expr) {
    Sum sum;
    sum.add(expr, 1);
    return sum;
  }

  Sum simplifyAdd(AffineBinaryOpExpr expr) {
    Sum sum = simplify(expr.getLHS());
    sum.add(simplify(expr.getRHS()));
    foldRemainders(sum);
    return sum;
  }

  Sum simplifyWith(AffineBinaryOpExpr expr, int64_t constant) {
    Sum sum = simplify(expr.getLHS()), scaled;
    switch (expr.getKind()) {
    case AffineExprKind::Mul:
      scaled.add(sum, constant);
      return scaled;
    case AffineExprKind::Mod:
      return divide(sum, constant).remainder;
    case AffineExprKind::CeilDiv:
      sum.constant += constant - 1;
      return divide(sum, constant).quotient;
    default:
      return divide(sum, constant).quotient;
    }
  }

  /// Replaces `a * x - a * d * (x floordiv d)` by `a * (x mod d)` wherever that
  /// makes the sum shorter.
  void foldRemainders(Sum &sum) {
    for (auto [atom, coefficient] : llvm::to_vector(sum.terms)) {
      auto binary = dyn_cast<AffineBinaryOpExpr>(atom);
      if (!binary || !isa<AffineConstantExpr>(binary.getRHS()))
        continue;
      if (binary.getKind() == AffineExprKind::FloorDiv
              ? foldQuotient(sum, binary, coefficient)
              : foldModulus(sum, atom, coefficient))
        return foldRemainders(sum);
    }
  }

  /// Folds a `mod` whose quotient is a term of the sum. Returns true if the sum
  /// changed.
  bool foldQuotient(Sum &sum, AffineBinaryOpExpr quotient,
                    int64_t coefficient) {
    int64_t divisor = cast<AffineConstantExpr>(quotient.getRHS()).getValue();
    return coefficient % divisor == 0 && fold(sum, simplify(quotient.getLHS()),
                                              -coefficient / divisor, divisor);
  }

  /// Folds a `mod` whose dividend is `x mod d` itself: its quotient has become
  /// another `mod`. Returns true if the sum changed.
  bool foldModulus(Sum &sum, AffineExpr dividend, int64_t factor) {
    for (int64_t other : llvm::make_second_range(llvm::to_vector(sum.terms)))
      if (other % factor == 0 && -other / factor > 1 &&
          fold(sum, toAtom(dividend), factor, -other / factor))
        return true;
    return false;
  }

  /// Replaces `factor` times the dividend minus its quotient by the remainder,
  /// if that makes the sum shorter.
  bool fold(Sum &sum, const Sum &dividend, int64_t factor, int64_t divisor) {
    Division division = divide(dividend, divisor);
    Sum shorter = sum;
    shorter.add(dividend, -factor);
    shorter.add(division.quotient, factor * divisor);
    shorter.add(division.remainder, factor);
    if (shorter.terms.size() >= sum.terms.size())
      return false;
    sum = std::move(shorter);
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Bounds
  //===--------------------------------------------------------------------===//

  std::optional<Range> getRange(const Sum &sum) {
    Range range{sum.constant, sum.constant};
    for (auto [atom, coefficient] : sum.terms) {
      auto own = getRange(atom);
      if (!own)
        return std::nullopt;
      auto [low, high] = *own;
      if (coefficient < 0)
        std::swap(low, high);
      range.low += coefficient * low;
      range.high += coefficient * high;
    }
    return range;
  }

  std::optional<Range> getRange(AffineExpr atom) {
    if (auto dim = dyn_cast<AffineDimExpr>(atom))
      return getRange(operands[dim.getPosition()]);
    auto binary = dyn_cast<AffineBinaryOpExpr>(atom);
    auto constant =
        binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : nullptr;
    if (!constant || constant.getValue() <= 0)
      return std::nullopt;
    int64_t divisor = constant.getValue();
    if (binary.getKind() == AffineExprKind::Mod)
      return Range{0, divisor - 1};
    auto inner = getRange(simplify(binary.getLHS()));
    if (!inner || binary.getKind() != AffineExprKind::FloorDiv)
      return std::nullopt;
    return Range{llvm::divideFloorSigned(inner->low, divisor),
                 llvm::divideFloorSigned(inner->high, divisor)};
  }

  static std::optional<Range> getRange(Value variable) {
    AffineForOp loop = getForInductionVarOwner(variable);
    if (!loop || !loop.hasConstantBounds() || loop.getStepAsInt() != 1)
      return std::nullopt;
    return Range{loop.getConstantLowerBound(),
                 loop.getConstantUpperBound() - 1};
  }

  /// True if it is not proven that a sum is at least zero. Terms without an
  /// upper bound are allowed if they are not subtracted.
  bool mayBeNegative(const Sum &sum) {
    int64_t low = sum.constant;
    for (auto [atom, coefficient] : sum.terms) {
      auto range = getRange(atom);
      if (!range && (coefficient < 0 || mayBeNegative(atom)))
        return true;
      if (range)
        low += coefficient * (coefficient < 0 ? range->high : range->low);
    }
    return low < 0;
  }

  bool mayBeNegative(AffineExpr atom) {
    if (auto dim = dyn_cast<AffineDimExpr>(atom)) {
      AffineForOp loop = getForInductionVarOwner(operands[dim.getPosition()]);
      return !loop || !loop.hasConstantLowerBound() ||
             loop.getConstantLowerBound() < 0;
    }
    auto binary = dyn_cast<AffineBinaryOpExpr>(atom);
    auto constant =
        binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : nullptr;
    return !constant || constant.getValue() <= 0 ||
           mayBeNegative(simplify(binary.getLHS()));
  }

  /// Returns the quotient of a sum by `divisor`, if it is one constant.
  std::optional<int64_t> getQuotient(const Sum &sum, int64_t divisor) {
    auto range = getRange(sum);
    if (!range)
      return std::nullopt;
    int64_t low = llvm::divideFloorSigned(range->low, divisor);
    int64_t high = llvm::divideFloorSigned(range->high, divisor);
    return low == high ? std::optional(low) : std::nullopt;
  }

  //===--------------------------------------------------------------------===//
  // Divisions
  //===--------------------------------------------------------------------===//

  /// Divides a sum: first the terms that are multiples of the divisor, then the
  /// rest.
  Division divide(const Sum &dividend, int64_t divisor) {
    Division multiples;
    for (auto [atom, coefficient] : dividend.terms) {
      if (int64_t times = coefficient / divisor)
        multiples.quotient.add(atom, times);
      if (int64_t rest = coefficient % divisor)
        multiples.remainder.add(atom, rest);
    }
    multiples.quotient.constant =
        llvm::divideFloorSigned(dividend.constant, divisor);
    multiples.remainder.constant =
        dividend.constant - multiples.quotient.constant * divisor;
    Division rest = divideRest(multiples.remainder, divisor);
    rest.quotient.add(multiples.quotient);
    foldRemainders(rest.quotient);
    return rest;
  }

  /// Divides a sum whose coefficients are less than the divisor.
  Division divideRest(const Sum &rest, int64_t divisor) {
    if (auto quotient = getQuotient(rest, divisor)) {
      Sum remainder = rest;
      remainder.constant -= *quotient * divisor;
      return {toConstant(*quotient), remainder};
    }
    if (auto parts = divideRemainder(rest, divisor))
      return *parts;
    if (auto parts = divideQuotient(rest, divisor))
      return *parts;
    if (auto digits = divideDigits(rest, divisor))
      return *digits;
    AffineExpr expr = toExpr(rest, ctx);
    return {toAtom(expr.floorDiv(divisor)), toAtom(expr % divisor)};
  }

  /// Returns the one term of a sum and its divisor, if it is a division of
  /// `kind` by a constant; else null.
  static std::pair<AffineBinaryOpExpr, int64_t> getOnly(const Sum &rest,
                                                        AffineExprKind kind) {
    AffineExpr atom;
    auto binary = rest.isOne(atom) ? dyn_cast<AffineBinaryOpExpr>(atom)
                                   : AffineBinaryOpExpr(nullptr);
    if (!binary || binary.getKind() != kind)
      return {AffineBinaryOpExpr(nullptr), 0};
    auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (!divisor)
      return {AffineBinaryOpExpr(nullptr), 0};
    return {binary, divisor.getValue()};
  }

  /// Divides `x mod d` by a divisor of d.
  std::optional<Division> divideRemainder(const Sum &rest, int64_t divisor) {
    auto [binary, modulus] = getOnly(rest, AffineExprKind::Mod);
    if (!binary || modulus % divisor != 0)
      return std::nullopt;
    Division inner = divide(simplify(binary.getLHS()), divisor);
    int64_t digits = modulus / divisor;
    return Division{divide(inner.quotient, digits).remainder, inner.remainder};
  }

  /// Divides `x floordiv d`: x is divided once.
  std::optional<Division> divideQuotient(const Sum &rest, int64_t divisor) {
    auto [binary, own] = getOnly(rest, AffineExprKind::FloorDiv);
    if (!binary || own <= 0)
      return std::nullopt;
    Division whole = divide(simplify(binary.getLHS()), own * divisor);
    return Division{whole.quotient, toAtom(AffineExpr(binary) % divisor)};
  }

  /// Divides by digits: by a divisor of `divisor` that divides some terms and
  /// is larger than the sum of the others, which then do not change the
  /// quotient.
  std::optional<Division> divideDigits(const Sum &rest, int64_t divisor) {
    SmallVector<int64_t> strides;
    int64_t common = 0;
    for (int64_t coefficient : llvm::make_second_range(rest.terms)) {
      strides.push_back(std::abs(coefficient));
      common = std::gcd(common, coefficient);
    }
    strides.push_back(common);
    llvm::sort(strides, std::greater<>());
    for (int64_t stride : strides)
      if (stride > 1 && stride < divisor && divisor % stride == 0)
        if (auto division = divideAt(rest, stride, divisor))
          return division;
    return std::nullopt;
  }

  /// Divides the terms that are multiples of `stride`, if the others sum up to
  /// one known multiple of it and a remainder.
  std::optional<Division> divideAt(const Sum &rest, int64_t stride,
                                   int64_t divisor) {
    Sum high, low;
    low.constant = rest.constant;
    for (auto [atom, coefficient] : rest.terms)
      if (coefficient % stride == 0)
        high.add(atom, coefficient / stride);
      else
        low.add(atom, coefficient);
    auto carried = getQuotient(low, stride);
    if (!carried)
      return std::nullopt;
    high.constant += *carried;
    low.constant -= *carried * stride;
    Division division = divide(high, divisor / stride);
    low.add(division.remainder, stride);
    foldRemainders(low);
    return Division{division.quotient, low};
  }
};

} // namespace

bool bridge::isDivision(AffineExpr expr) {
  return expr.getKind() == AffineExprKind::Mod ||
         expr.getKind() == AffineExprKind::FloorDiv ||
         expr.getKind() == AffineExprKind::CeilDiv;
}

AffineExpr bridge::simplifyInBounds(AffineExpr expr, ArrayRef<Value> operands) {
  MLIRContext *ctx = expr.getContext();
  Simplifier simplifier(operands, ctx);
  AffineExpr simple = toExpr(simplifier.simplify(expr), ctx);
  // In the generated code, a remainder has the sign of the dividend; `mod` of
  // affine expressions is never negative.
  return simplifier.hasSignedRemainder(simple) ? expr : simple;
}
