//===- Subscripts.cpp - subscripts in a short form ------------------------===//

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

/// What is added up: variables, quotients and remainders (the atoms), each with
/// a coefficient that is not zero, and a constant.
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

  bool isOne(AffineExpr &atom) const {
    if (terms.size() != 1 || constant != 0 || terms.front().second != 1)
      return false;
    atom = terms.front().first;
    return true;
  }
};

/// A quotient, rounded down, and what is left of the dividend.
struct Division {
  Sum quotient, remainder;
};

/// Inclusive bounds.
struct Range {
  int64_t low, high;
};

} // namespace

/// An order of expressions that does not depend on where they are in memory.
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

/// The sum as an expression, its largest coefficients first.
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

  /// Whether nobody can tell that all that a remainder is taken of is at least
  /// zero.
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

  /// Writes `a * x - a * d * (x floordiv d)` as `a * (x mod d)` wherever the
  /// sum has fewer terms then.
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

  /// The quotient is a term of the sum.
  bool foldQuotient(Sum &sum, AffineBinaryOpExpr quotient,
                    int64_t coefficient) {
    int64_t divisor = cast<AffineConstantExpr>(quotient.getRHS()).getValue();
    return coefficient % divisor == 0 && fold(sum, simplify(quotient.getLHS()),
                                              -coefficient / divisor, divisor);
  }

  /// The dividend is `x mod d` itself: its quotient has become another `mod`.
  bool foldModulus(Sum &sum, AffineExpr dividend, int64_t factor) {
    for (int64_t other : llvm::make_second_range(llvm::to_vector(sum.terms)))
      if (other % factor == 0 && -other / factor > 1 &&
          fold(sum, toAtom(dividend), factor, -other / factor))
        return true;
    return false;
  }

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

  /// Whether a sum's terms do not say that it is at least zero; those that are
  /// added may be as large as they like.
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

  /// The one number that a sum gives divided by `divisor`.
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

  /// What is a multiple of the divisor leaves the dividend.
  Division divide(const Sum &dividend, int64_t divisor) {
    Division whole;
    for (auto [atom, coefficient] : dividend.terms) {
      if (int64_t times = coefficient / divisor)
        whole.quotient.add(atom, times);
      if (int64_t rest = coefficient % divisor)
        whole.remainder.add(atom, rest);
    }
    whole.quotient.constant =
        llvm::divideFloorSigned(dividend.constant, divisor);
    whole.remainder.constant =
        dividend.constant - whole.quotient.constant * divisor;
    Division rest = divideRest(whole.remainder, divisor);
    rest.quotient.add(whole.quotient);
    foldRemainders(rest.quotient);
    return rest;
  }

  Division divideRest(const Sum &rest, int64_t divisor) {
    if (auto quotient = getQuotient(rest, divisor)) {
      Sum remainder = rest;
      remainder.constant -= *quotient * divisor;
      return {toConstant(*quotient), remainder};
    }
    if (auto parts = divideRemainder(rest, divisor))
      return *parts;
    if (auto digits = divideDigits(rest, divisor))
      return *digits;
    AffineExpr expr = toExpr(rest, ctx);
    return {toAtom(expr.floorDiv(divisor)), toAtom(expr % divisor)};
  }

  /// `x mod d` by what divides d.
  std::optional<Division> divideRemainder(const Sum &rest, int64_t divisor) {
    AffineExpr atom;
    auto binary = rest.isOne(atom) ? dyn_cast<AffineBinaryOpExpr>(atom)
                                   : AffineBinaryOpExpr(nullptr);
    if (!binary || binary.getKind() != AffineExprKind::Mod)
      return std::nullopt;
    auto modulus = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (!modulus || modulus.getValue() % divisor != 0)
      return std::nullopt;
    Division inner = divide(simplify(binary.getLHS()), divisor);
    int64_t digits = modulus.getValue() / divisor;
    return Division{divide(inner.quotient, digits).remainder, inner.remainder};
  }

  /// A divisor of `divisor` by which some terms can be divided, where the
  /// others are less than it: these are no part of the quotient.
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

AffineExpr bridge::simplifyInBounds(AffineExpr expr, ArrayRef<Value> operands) {
  MLIRContext *ctx = expr.getContext();
  Simplifier simplifier(operands, ctx);
  AffineExpr simple = toExpr(simplifier.simplify(expr), ctx);
  // The code that is generated in the end takes a remainder with the sign of
  // what is divided.
  return simplifier.hasSignedRemainder(simple) ? expr : simple;
}
