//===- KernelNests.cpp - the nests of one kernel of Inductor's ------------===//

#include "Bridge/Analysis/KernelNests.h"

#include "Bridge/Analysis/Legality.h"
#include "Bridge/IR/BridgeDialect.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

/// Returns the first store to `memref` that `writer` executes once a band
/// iteration.
static AffineStoreOp getBandStore(Value memref, Nest &writer) {
  Block *band = writer.loops.back().getBody();
  for (auto store : band->getOps<AffineStoreOp>())
    if (store.getMemRef() == memref)
      return store;
  return {};
}

std::optional<ReachingStore> bridge::solveFirstLoad(Nest &writer,
                                                    Nest &reader) {
  std::optional<ReachingStore> reaching;
  reader.root()->walk([&](AffineLoadOp load) {
    AffineStoreOp store = getBandStore(load.getMemRef(), writer);
    if (!store)
      return WalkResult::advance();
    reaching = solveReachingStore(store, writer.loops, load);
    return WalkResult::interrupt();
  });
  return reaching;
}

static Attribute getKernels(Operation *root) {
  return root->getAttr(kKernelsAttr);
}

bool bridge::areInOneKernel(Nest &a, Nest &b) {
  Attribute kernels = getKernels(a.root());
  return kernels && kernels == getKernels(b.root());
}

/// True if all loops of the nest are parallel.
static bool mayReorder(Nest &nest) {
  return succeeded(checkAnalysable(nest.root())) &&
         llvm::all_of(nest.loops,
                      [](AffineForOp loop) { return isParallel(loop); });
}

SmallVector<AffineForOp>
bridge::getKernelNests(Nest &nest, ArrayRef<AffineForOp> roots,
                       SmallVectorImpl<AffineForOp> *others) {
  SmallVector<AffineForOp> nests;
  for (AffineForOp root : roots) {
    Nest other = getNest(root);
    if (root != nest.root() && !areInOneKernel(nest, other))
      continue;
    bool same = getSharedDepth(nest, other) == nest.loops.size();
    if ((!same && !others) || !mayReorder(other))
      return {};
    (same ? nests : *others).push_back(root);
  }
  return nests;
}

using ChangePair =
    llvm::function_ref<bool(AffineForOp, AffineForOp, ArrayRef<AffineForOp>)>;

/// Changes the first pair that `change` can change.
static bool changeAny(Block &body, ChangePair change) {
  SmallVector<AffineForOp> roots = getRoots(body);
  for (auto [j, reader] : llvm::enumerate(roots))
    for (AffineForOp writer : ArrayRef(roots).take_front(j))
      if (change(writer, reader, roots))
        return true;
  return false;
}

void bridge::changePairs(Block &body, ChangePair change) {
  while (changeAny(body, change)) {
  }
}
