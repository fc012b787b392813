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
  Option<bool> unrollAndJam{
      *this, "unroll-and-jam",
      llvm::cl::desc("Unroll and jam inner loops that use a value of the "
                     "whole row, for code generators that compute it in every "
                     "inner iteration"),
      llvm::cl::init(false)};
  Option<bool> simtTarget{
      *this, "simt-target",
      llvm::cl::desc("The target executes lanes side by side (Triton): allow "
                     "reductions over segments of a row, statements that only "
                     "some lanes execute, divisions in subscripts, and the "
                     "recomputation of transcendental functions"),
      llvm::cl::init(true)};
  Option<bool> excessPrecision{
      *this, "excess-precision",
      llvm::cl::desc("Do not round a recomputed value where the store would "
                     "round it and the load extend it again"),
      llvm::cl::init(true)};
  Option<int64_t> maxDependenceChecks{
      *this, "max-dependence-checks",
      llvm::cl::desc("The most pairs of accesses that the proofs of a "
                     "function's bands may check"),
      llvm::cl::init(100000)};
  Option<bool> recomputeMath{
      *this, "recompute-math",
      llvm::cl::desc("Without a SIMT target, too, recompute transcendental "
                     "functions where a fusion needs it"),
      llvm::cl::init(false)};
  Option<bool> recomputeDraws{
      *this, "recompute-draws",
      llvm::cl::desc("Draw random numbers again where a fusion needs it"),
      llvm::cl::init(false)};
  Option<bool> rowsOfSegments{
      *this, "rows-of-segments",
      llvm::cl::desc("With a SIMT target, reduce over a row, or broadcast in "
                     "it, what its segments or its lanes have reduced"),
      llvm::cl::init(true)};
};

/// Adds the passes of `bridge-fuse` to `pm`, which runs on a module.
void buildFusePipeline(mlir::OpPassManager &pm,
                       const FusePipelineOptions &options);

/// Registers the named pipelines.
void registerBridgePipelines();

} // namespace bridge

#endif // BRIDGE_TRANSFORMS_PASSES_H
