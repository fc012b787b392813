//===- ExactReciprocals.cpp - a pass of a user's own ----------------------===//
//
// Divisions by a power of two become multiplications, which round the same.
// `mlirGetPassPluginInfo` is MLIR's own interface for plug-ins: mlir-opt's
// --load-pass-plugin takes such a library, too.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;

namespace {

struct ExactReciprocals
    : PassWrapper<ExactReciprocals, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExactReciprocals)

  StringRef getArgument() const override { return "exact-reciprocals"; }
  StringRef getDescription() const override {
    return "Multiply instead of dividing by a power of two";
  }

  void runOnOperation() override {
    getOperation().walk([](arith::DivFOp division) {
      APFloat divisor(0.0), reciprocal(0.0);
      if (!matchPattern(division.getRhs(), m_ConstantFloat(&divisor)))
        return;
      reciprocal = divisor;
      if (!divisor.getExactInverse(&reciprocal))
        return;
      OpBuilder builder(division);
      Location loc = division.getLoc();
      Type type = division.getType();
      Value factor = arith::ConstantOp::create(
          builder, loc, builder.getFloatAttr(type, reciprocal));
      Value product =
          arith::MulFOp::create(builder, loc, division.getLhs(), factor);
      division.replaceAllUsesWith(product);
      division.erase();
    });
  }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK
    __attribute__((visibility("default"))) PassPluginLibraryInfo
    mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "ExactReciprocals", "1",
          [] { PassRegistration<ExactReciprocals>(); }};
}
