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
  reindex.divisions = options.simtTarget;
  reindex.guards = options.simtTarget;
  functions.addPass(createReindexBands(reindex));
  if (options.simtTarget && options.rowsOfSegments)
    functions.addPass(createUnrollReductions());
  SplitIndexSetsOptions split;
  split.parts = options.simtTarget;
  functions.addPass(createSplitIndexSets(split));
  AlignExtentsOptions align;
  align.shiftedOnly = options.simtTarget;
  functions.addPass(createAlignExtents(align));
  addCleanUp(functions);
  functions.addPass(createSimplifyGuards());
  if (options.simtTarget)
    functions.addPass(createPadExtents());
  addCleanUp(functions);
  // Short subscripts, and few different ones, make the proofs of
  // bridge-fuse-bands cheaper.
  functions.addPass(createSimplifySubscripts());
  FuseBandsOptions fuse;
  fuse.segments = options.simtTarget;
  fuse.rowsOfSegments = options.rowsOfSegments;
  fuse.recomputeMath = options.simtTarget || options.recomputeMath;
  fuse.recomputeDraws = options.recomputeDraws;
  fuse.maxDependenceChecks = options.maxDependenceChecks;
  functions.addPass(createFuseBands(fuse));
  ForwardStoresOptions forward;
  forward.excessPrecision = options.excessPrecision;
  functions.addPass(createForwardStores(forward));
  // Invariant code leaves the inner loops only after fusion: before it, the
  // nests would become imperfectly nested.
  functions.addPass(affine::createAffineLoopInvariantCodeMotionPass());
  addCleanUp(functions);
  if (options.unrollAndJam) {
    functions.addPass(createUnrollAndJam());
    addCleanUp(functions);
  }
  functions.addPass(createSimplifySubscripts());
  functions.addPass(createProveParallel());
}

void bridge::registerBridgePipelines() {
  PassPipelineRegistration<FusePipelineOptions>(
      "bridge-fuse", "Makes extents agree, fuses bands, proves them parallel",
      buildFusePipeline);
}
