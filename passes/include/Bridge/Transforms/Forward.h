//===- Forward.h - no value goes from lane to lane --------------*- C++ -*-===//

#ifndef BRIDGE_TRANSFORMS_FORWARD_H
#define BRIDGE_TRANSFORMS_FORWARD_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// Replaces the loads below `band`, the innermost loop of a band, of what other
/// lanes store by copies of the computation, and counts them in `forwarded`.
/// Returns the first that needs what cannot be computed again, with the band
/// half done; null if there is none.
mlir::affine::AffineLoadOp forwardStores(mlir::affine::AffineForOp band,
                                         bool excessPrecision,
                                         int64_t &forwarded);

} // namespace bridge

#endif // BRIDGE_TRANSFORMS_FORWARD_H
