//===- BridgeDialect.h - the bridge dialect ---------------------*- C++ -*-===//

#ifndef BRIDGE_IR_BRIDGEDIALECT_H
#define BRIDGE_IR_BRIDGEDIALECT_H

#include "mlir/IR/Dialect.h"

#include "Bridge/IR/BridgeDialect.h.inc"

namespace bridge {

/// Marks the `affine.for`s of a fused band.
inline constexpr llvm::StringLiteral kBandAttr = "bridge.band";

/// On a nest's root: the names of its scheduler nodes, in program order.
inline constexpr llvm::StringLiteral kNodesAttr = "bridge.nodes";

/// On a nest's root: for each of its nodes, the number of the kernel that
/// Inductor has it in.
inline constexpr llvm::StringLiteral kKernelsAttr = "bridge.kernels";

/// On a function's argument: the name of the buffer that it is a part of. The
/// parts of one buffer do not overlap.
inline constexpr llvm::StringLiteral kStorageAttr = "bridge.storage";

/// Marks a function with a band that reduces over a row, or broadcasts in it,
/// what segments of the row have reduced.
inline constexpr llvm::StringLiteral kRowsOfSegmentsAttr =
    "bridge.rows_of_segments";

/// Marks a function with reductions that were unrolled for a row that reduces
/// their results.
inline constexpr llvm::StringLiteral kUnrolledReductionsAttr =
    "bridge.unrolled_reductions";

/// Marks an `affine.for` proven free of loop-carried dependences.
inline constexpr llvm::StringLiteral kParallelAttr = "bridge.parallel";

} // namespace bridge

#endif // BRIDGE_IR_BRIDGEDIALECT_H
