//===- SimplifyGuards.cpp - guards that hold always or never --------------===//

#include "Bridge/Analysis/Nest.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/Analysis/AffineAnalysis.h"
#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/Matchers.h"

namespace bridge {
#define GEN_PASS_DEF_SIMPLIFYGUARDS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace mlir::presburger;
using namespace bridge;

/// Returns true if `expr >= 0` (or `expr == 0`) in every iteration that
/// executes `op`, false if in none, and nothing otherwise.
static std::optional<bool> decide(AffineExpr expr, bool isEquality,
                                  unsigned numDims, ValueRange operands,
                                  Operation *op) {
  FlatAffineValueConstraints domain;
  auto map = AffineMap::get(numDims, operands.size() - numDims, expr);
  if (failed(getIterationDomain(op, domain)) ||
      failed(addExpression(map, operands, domain)))
    return std::nullopt;
  auto isNever = [&](BoundType type, int64_t bound) {
    FlatAffineValueConstraints restricted(domain);
    restricted.addBound(type, 0, bound);
    return restricted.isEmpty();
  };
  if (isNever(isEquality ? BoundType::EQ : BoundType::LB, 0))
    return false;
  bool neverBelow = isNever(BoundType::UB, -1);
  bool neverAbove = !isEquality || isNever(BoundType::LB, 1);
  return neverBelow && neverAbove ? std::optional(true) : std::nullopt;
}

static std::optional<bool> decide(AffineIfOp guard) {
  IntegerSet set = guard.getIntegerSet();
  bool all = true;
  for (auto [expr, isEquality] :
       llvm::zip(set.getConstraints(), set.getEqFlags())) {
    auto holds =
        decide(expr, isEquality, set.getNumDims(), guard.getOperands(), guard);
    if (holds == false)
      return false;
    all &= holds.has_value();
  }
  return all ? std::optional(true) : std::nullopt;
}

/// Replaces the guard by the operations of the region that always runs.
static void inlineRegion(AffineIfOp guard, bool holds) {
  if (!holds && !guard.hasElse())
    return guard.erase();
  Block *block = holds ? guard.getThenBlock() : guard.getElseBlock();
  Operation *yield = block->getTerminator();
  SmallVector<Value> results(yield->getOperands());
  yield->erase();
  guard->getBlock()->getOperations().splice(guard->getIterator(),
                                            block->getOperations());
  guard.replaceAllUsesWith(results);
  guard.erase();
}

//===----------------------------------------------------------------------===//
// Comparisons of subscripts with constants
//===----------------------------------------------------------------------===//

/// Returns the expression of the dimension `lhs` that is at least zero where a
/// signed inequality of `lhs` and `rhs` holds; null for other comparisons.
static AffineExpr getDifference(arith::CmpIPredicate predicate, int64_t rhs,
                                MLIRContext *ctx) {
  AffineExpr lhs = getAffineDimExpr(0, ctx);
  switch (predicate) {
  case arith::CmpIPredicate::sge:
    return lhs - rhs;
  case arith::CmpIPredicate::sgt:
    return lhs - rhs - 1;
  case arith::CmpIPredicate::sle:
    return -lhs + rhs;
  case arith::CmpIPredicate::slt:
    return -lhs + rhs - 1;
  default:
    return {};
  }
}

static std::optional<bool> decide(arith::CmpIOp compare) {
  auto cast = compare.getLhs().getDefiningOp<arith::IndexCastOp>();
  APInt constant;
  // The cast to a narrower integer may have wrapped around.
  if (!cast || !cast.getType().isInteger(64) ||
      !matchPattern(compare.getRhs(), m_ConstantInt(&constant)))
    return std::nullopt;
  AffineExpr expr = getDifference(
      compare.getPredicate(), constant.getSExtValue(), compare.getContext());
  if (!expr || !isValidDim(cast.getIn()))
    return std::nullopt;
  return decide(expr, /*isEquality=*/false, 1, cast.getIn(), compare);
}

namespace {

struct SimplifyGuards : bridge::impl::SimplifyGuardsBase<SimplifyGuards> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](AffineIfOp guard) {
      if (auto holds = decide(guard)) {
        inlineRegion(guard, *holds);
        ++numSimplified;
      }
    });
    getOperation()->walk([&](arith::CmpIOp compare) {
      if (auto holds = decide(compare)) {
        OpBuilder builder(compare);
        Value constant = arith::ConstantIntOp::create(builder, compare.getLoc(),
                                                      *holds, /*width=*/1);
        compare.replaceAllUsesWith(constant);
        compare.erase();
        ++numSimplified;
      }
    });
  }
};

} // namespace
