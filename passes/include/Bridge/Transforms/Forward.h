//===- Forward.h - no value goes from lane to lane --------------*- C++ -*-===//

#ifndef BRIDGE_TRANSFORMS_FORWARD_H
#define BRIDGE_TRANSFORMS_FORWARD_H

#include "Bridge/Analysis/Legality.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// A load that cannot be forwarded, and why.
struct ForwardFailure {
  mlir::affine::AffineLoadOp load;
  Objection objection;
};

/// Replaces the loads below `band`, the innermost loop of a band, of what other
/// lanes store by copies of the computation, and counts them in `forwarded`.
/// Nothing if that works; else the band is half done.
std::optional<ForwardFailure> forwardStores(mlir::affine::AffineForOp band,
                                            bool excessPrecision,
                                            int64_t &forwarded);

} // namespace bridge

#endif // BRIDGE_TRANSFORMS_FORWARD_H
