//===- Components.h - nests that may share a band ---------------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_COMPONENTS_H
#define BRIDGE_ANALYSIS_COMPONENTS_H

#include "Bridge/Analysis/Nest.h"

namespace bridge {

/// Nests that are connected by elements that they share, and the depth of the
/// band that all connected pairs have in common. A pair does not count if both
/// have other partners with which they share a deeper band. A nest that is
/// connected to none is no component.
struct Component {
  llvm::SmallVector<Nest> nests;
  unsigned depth = ~0u;
};

llvm::SmallVector<Component>
getComponents(llvm::ArrayRef<mlir::affine::AffineForOp> roots);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_COMPONENTS_H
