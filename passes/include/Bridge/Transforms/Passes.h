//===- Passes.h - Bridge's passes -------------------------------*- C++ -*-===//

#ifndef BRIDGE_TRANSFORMS_PASSES_H
#define BRIDGE_TRANSFORMS_PASSES_H

#include "Bridge/IR/BridgeDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace bridge {

#define GEN_PASS_DECL
#include "Bridge/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Bridge/Transforms/Passes.h.inc"

/// The options of `bridge-fuse`.
struct FusePipelineOptions : mlir::PassPipelineOptions<FusePipelineOptions> {
  Option<bool> shareRowValues{
      *this, "share-row-values",
      llvm::cl::desc("Let a row value serve several elements, for code "
                     "generators that compute it in every inner iteration"),
      llvm::cl::init(false)};
  Option<bool> laneGuards{
      *this, "lane-guards",
      llvm::cl::desc("The code generator knows lanes: allow reductions over "
                     "segments of a row, statements that only some lanes "
                     "execute, divisions in subscripts, and to compute again "
                     "what costs nothing in registers"),
      llvm::cl::init(true)};
  Option<bool> excessPrecision{
      *this, "excess-precision",
      llvm::cl::desc("What is computed again is not rounded where a store "
                     "would have rounded it and a load extended it again"),
      llvm::cl::init(true)};
  Option<int64_t> maxDependenceChecks{
      *this, "max-dependence-checks",
      llvm::cl::desc("Pairs of accesses that the proofs of a function's bands "
                     "may be about"),
      llvm::cl::init(100000)};
  Option<bool> recomputeMath{
      *this, "recompute-math",
      llvm::cl::desc("Without lane guards, too, compute transcendental "
                     "functions again where a fusion needs it"),
      llvm::cl::init(false)};
};

/// Adds the passes of `bridge-fuse` to `pm`, which runs on a module.
void buildFusePipeline(mlir::OpPassManager &pm,
                       const FusePipelineOptions &options);

/// Registers the named pipelines.
void registerBridgePipelines();

} // namespace bridge

#endif // BRIDGE_TRANSFORMS_PASSES_H
