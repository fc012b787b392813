//===- AlignExtents.cpp - one inner extent for all nests of a band --------===//

#include "Bridge/Analysis/CommonTile.h"
#include "Bridge/Analysis/Legality.h"
#include "Bridge/Analysis/Nest.h"
#include "Bridge/Support/Reasons.h"
#include "Bridge/Transforms/IndexSetSplit.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace bridge {
#define GEN_PASS_DEF_ALIGNEXTENTS
#include "Bridge/Transforms/Passes.h.inc"
} // namespace bridge

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

namespace {

/// Nests over one band that share memrefs, and its depth.
struct Component {
  SmallVector<Nest> nests;
  unsigned depth = ~0u;
};

struct AlignExtents : bridge::impl::AlignExtentsBase<AlignExtents> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    SmallVector<AffineForOp> roots = getRoots(getOperation().getBody().front());
    for (Component &component : getComponents(roots))
      align(component);
  }

private:
  static SmallVector<Component> getComponents(ArrayRef<AffineForOp> roots) {
    SmallVector<Nest> nests;
    for (AffineForOp root : roots)
      nests.push_back(getNest(root));
    llvm::EquivalenceClasses<unsigned> classes;
    for (unsigned j = 0; j < nests.size(); ++j) {
      classes.insert(j);
      for (unsigned i = 0; i < j; ++i)
        if (getCommonBandDepth(nests[i], nests[j]) > 0 &&
            shareMemref(nests[i], nests[j]))
          classes.unionSets(i, j);
    }
    SmallVector<Component> components;
    for (auto *leader : classes)
      if (leader->isLeader())
        components.push_back(getComponent(classes.members(*leader), nests));
    return components;
  }

  template <typename Range>
  static Component getComponent(Range members, ArrayRef<Nest> nests) {
    Component component;
    for (unsigned member : members) {
      Nest nest = nests[member];
      for (Nest &other : component.nests)
        if (unsigned depth = getCommonBandDepth(nest, other))
          component.depth = std::min(component.depth, depth);
      component.nests.push_back(nest);
    }
    return component;
  }

  void align(Component &component) {
    if (component.nests.size() < 2)
      return;
    SmallVector<SmallVector<AffineForOp>> chains;
    for (Nest &nest : component.nests)
      llvm::append_range(chains, getInnerChains(nest, component.depth));
    SmallVector<InnerSpace> spaces;
    for (ArrayRef<AffineForOp> chain : chains) {
      auto extents = getConstantExtents(chain);
      if (!extents || extents->empty())
        return;
      spaces.push_back(InnerSpace{{}, chain, *extents});
    }
    TileLimits limits{maxPieces, minTile};
    std::optional<int64_t> tile;
    if (!spaces.empty())
      tile = getCommonTile(spaces, limits);
    if (tile && needsSplit(spaces, *tile) && maySplit(chains))
      split(spaces, *tile);
  }

  static bool needsSplit(ArrayRef<InnerSpace> spaces, int64_t tile) {
    return llvm::any_of(spaces, [&](const InnerSpace &space) {
      return ArrayRef(space.extents) != ArrayRef(tile);
    });
  }

  bool maySplit(ArrayRef<SmallVector<AffineForOp>> chains) {
    return llvm::all_of(chains, [&](ArrayRef<AffineForOp> chain) {
      AffineForOp outermost = chain.front();
      if (auto objection = getObjection(outermost)) {
        no(outermost, objection->reason) << objection->text;
        return false;
      }
      if (isReorderable(chain))
        return true;
      no(outermost, Reason::reduction_not_splittable)
          << "its iterations cannot be reordered";
      return false;
    });
  }

  void split(ArrayRef<InnerSpace> spaces, int64_t tile) {
    for (const InnerSpace &space : spaces) {
      auto pieces = getContiguousPieces(space.extents, tile, &getContext());
      splitIndexSet(space.chain, {tile}, pieces);
      ++numAligned;
    }
  }

  InFlightDiagnostic no(AffineForOp loop, Reason reason) {
    ++numRefused;
    return refuse(loop, reason);
  }
};

} // namespace
