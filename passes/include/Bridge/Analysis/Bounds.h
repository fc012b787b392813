//===- Bounds.h - accesses inside of their memrefs --------------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_BOUNDS_H
#define BRIDGE_ANALYSIS_BOUNDS_H

#include "Bridge/Analysis/FusionResult.h"

namespace bridge {

/// Proves that every subscript of `access`, an affine load or store of one
/// element or of a vector, is inside of its dimension: in each iteration of the
/// loops and guards around it, for all values of its symbols. Else the refusal
/// has an iteration that leaves the memref. An access without iterations is
/// inside.
///
/// The extent of a dynamic dimension is what `memref.dim` returns for it, or
/// the size that the memref is allocated with. Nothing else relates it to
/// another symbol.
FusionResult checkSubscripts(mlir::Operation *access);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_BOUNDS_H
