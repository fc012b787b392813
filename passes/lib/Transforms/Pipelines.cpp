//===- Pipelines.cpp - Bridge's named pipelines ---------------------------===//

#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

static void addCleanUp(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void bridge::buildFusePipeline(OpPassManager &pm,
                               const FusePipelineOptions &options) {
  OpPassManager &functions = pm.nest<func::FuncOp>();
  addCleanUp(functions);
  functions.addPass(createInterchangeLoops());
  ReindexBandsOptions reindex;
  reindex.divisions = options.laneGuards;
  reindex.guards = options.laneGuards;
  functions.addPass(createReindexBands(reindex));
  functions.addPass(createSplitIndexSets());
  AlignExtentsOptions align;
  align.shiftedOnly = options.laneGuards;
  functions.addPass(createAlignExtents(align));
  addCleanUp(functions);
  functions.addPass(createSimplifyGuards());
  if (options.laneGuards)
    functions.addPass(createPadExtents());
  addCleanUp(functions);
  // Its proofs are about the subscripts: short ones, and few different ones.
  functions.addPass(createSimplifySubscripts());
  FuseBandsOptions fuse;
  fuse.segments = options.laneGuards;
  fuse.recomputeMath = options.laneGuards || options.recomputeMath;
  fuse.maxDependenceChecks = options.maxDependenceChecks;
  functions.addPass(createFuseBands(fuse));
  ForwardStoresOptions forward;
  forward.excessPrecision = options.excessPrecision;
  functions.addPass(createForwardStores(forward));
  // Row values leave the inner loops only now: before, they would keep nests
  // from being perfect.
  functions.addPass(affine::createAffineLoopInvariantCodeMotionPass());
  addCleanUp(functions);
  if (options.shareRowValues) {
    functions.addPass(createShareRowValues());
    addCleanUp(functions);
  }
  functions.addPass(createSimplifySubscripts());
  functions.addPass(createProveParallel());
}

void bridge::registerBridgePipelines() {
  PassPipelineRegistration<FusePipelineOptions>(
      "bridge-fuse", "Make extents agree, merge bands, prove them parallel",
      buildFusePipeline);
}
