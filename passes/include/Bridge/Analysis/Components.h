//===- Components.h - nests that may share a band ---------------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_COMPONENTS_H
#define BRIDGE_ANALYSIS_COMPONENTS_H

#include "Bridge/Analysis/Nest.h"

namespace bridge {

/// A connected component of the graph whose nodes are nests and whose edges are
/// pairs that share elements. `depth` is that of the band that all pairs have
/// in common. A pair is no edge if both nests share a deeper band with other
/// nests. A nest without an edge is no component.
struct Component {
  llvm::SmallVector<Nest> nests;
  unsigned depth = ~0u;
};

/// Returns the components of the nests with these roots.
llvm::SmallVector<Component>
getComponents(llvm::ArrayRef<mlir::affine::AffineForOp> roots);

/// Returns the components of a component's nests by the pairs that share a
/// deeper band than all of them do.
llvm::SmallVector<Component> getDeeperComponents(Component &component);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_COMPONENTS_H
