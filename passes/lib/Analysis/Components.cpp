//===- Components.cpp - nests that may share a band -----------------------===//

#include "Bridge/Analysis/Components.h"

#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace mlir::affine;
using namespace bridge;

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

/// Returns for each pair of nests the depth of the band that they would share;
/// zero for pairs that share no element.
static SmallVector<SmallVector<unsigned>>
getDepths(MutableArrayRef<Nest> nests) {
  SmallVector<SmallVector<unsigned>> depths(
      nests.size(), SmallVector<unsigned>(nests.size(), 0));
  for (unsigned j = 0; j < nests.size(); ++j)
    for (unsigned i = 0; i < j; ++i) {
      unsigned depth = getCommonBandDepth(nests[i], nests[j]);
      if (depth > 0 && shareElements(nests[i], nests[j]))
        depths[i][j] = depths[j][i] = depth;
    }
  return depths;
}

/// Returns the sets of nests that pairs with a depth above zero connect. A pair
/// counts unless both of its nests have deeper ones.
static SmallVector<Component> connect(ArrayRef<Nest> nests,
                                      ArrayRef<SmallVector<unsigned>> depths) {
  llvm::EquivalenceClasses<unsigned> classes;
  for (unsigned j = 0; j < nests.size(); ++j) {
    classes.insert(j);
    for (unsigned i = 0; i < j; ++i) {
      unsigned best = std::min(*llvm::max_element(depths[i]),
                               *llvm::max_element(depths[j]));
      if (depths[i][j] > 0 && depths[i][j] >= best)
        classes.unionSets(i, j);
    }
  }
  SmallVector<Component> components;
  for (auto *leader : classes)
    if (leader->isLeader())
      components.push_back(getComponent(classes.members(*leader), nests));
  llvm::erase_if(components, [](const Component &component) {
    return component.nests.size() < 2;
  });
  return components;
}

SmallVector<Component> bridge::getComponents(ArrayRef<AffineForOp> roots) {
  SmallVector<Nest> nests;
  for (AffineForOp root : roots)
    nests.push_back(getNest(root));
  return connect(nests, getDepths(nests));
}

SmallVector<Component> bridge::getDeeperComponents(Component &component) {
  auto depths = getDepths(component.nests);
  for (SmallVector<unsigned> &row : depths)
    for (unsigned &depth : row)
      if (depth <= component.depth)
        depth = 0;
  SmallVector<Component> deeper = connect(component.nests, depths);
  llvm::erase_if(deeper, [&](const Component &part) {
    return part.depth <= component.depth;
  });
  return deeper;
}
