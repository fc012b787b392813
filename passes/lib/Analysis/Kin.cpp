//===- Kin.cpp - nests that change their loops together -------------------===//

#include "Bridge/Analysis/Kin.h"

#include "Bridge/IR/BridgeDialect.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

static AffineStoreOp getStoreOf(Value memref, Nest &writer) {
  Block *row = writer.loops.back().getBody();
  for (auto store : row->getOps<AffineStoreOp>())
    if (store.getMemRef() == memref)
      return store;
  return {};
}

std::optional<Source> bridge::solveFirstLoad(Nest &writer, Nest &reader) {
  std::optional<Source> source;
  reader.root()->walk([&](AffineLoadOp load) {
    AffineStoreOp store = getStoreOf(load.getMemRef(), writer);
    if (!store)
      return WalkResult::advance();
    source = solveStore(store, writer.loops, load);
    return WalkResult::interrupt();
  });
  return source;
}

static Attribute getKernels(Operation *root) {
  return root->getAttr(kKernelsAttr);
}

bool bridge::areInOneKernel(Nest &a, Nest &b) {
  Attribute kernels = getKernels(a.root());
  return kernels && kernels == getKernels(b.root());
}

static bool mayReorder(Nest &nest) {
  return !getObjection(nest.root()) &&
         llvm::all_of(nest.loops,
                      [](AffineForOp loop) { return isParallel(loop); });
}

SmallVector<AffineForOp> bridge::getKin(Nest &nest, ArrayRef<AffineForOp> roots,
                                        SmallVectorImpl<AffineForOp> *others) {
  SmallVector<AffineForOp> kin;
  for (AffineForOp root : roots) {
    Nest other = getNest(root);
    if (root != nest.root() && !areInOneKernel(nest, other))
      continue;
    bool same = getSharedDepth(nest, other) == nest.loops.size();
    if ((!same && !others) || !mayReorder(other))
      return {};
    (same ? kin : *others).push_back(root);
  }
  return kin;
}

using ChangePair =
    llvm::function_ref<bool(AffineForOp, AffineForOp, ArrayRef<AffineForOp>)>;

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
