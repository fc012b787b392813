//===- Forward.h - recompute what other lanes store -------------*- C++ -*-===//

#ifndef BRIDGE_TRANSFORMS_FORWARD_H
#define BRIDGE_TRANSFORMS_FORWARD_H

#include "Bridge/Analysis/FusionResult.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// A load that cannot be forwarded, and why.
struct ForwardFailure {
  mlir::affine::AffineLoadOp load;
  Refusal refusal;
};

/// Replaces the loads below `band`, the innermost loop of a band, that need
/// what other lanes store, by copies of the stored values' computation; counts
/// them in `forwarded`, and sets `broadcast` where one stays, as the code
/// generator can broadcast what it reads; null if it cannot. Nothing if all are
/// replaced or stay; else the first load that is not, with the loads before it
/// replaced.
std::optional<ForwardFailure> forwardStores(mlir::affine::AffineForOp band,
                                            bool excessPrecision,
                                            int64_t &forwarded,
                                            bool *broadcast = nullptr);

} // namespace bridge

#endif // BRIDGE_TRANSFORMS_FORWARD_H
