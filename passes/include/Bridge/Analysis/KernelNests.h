//===- KernelNests.h - the nests of one kernel of Inductor's ----*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_KERNELNESTS_H
#define BRIDGE_ANALYSIS_KERNELNESTS_H

#include "Bridge/Analysis/Nest.h"
#include "Bridge/Analysis/ReachingStore.h"

namespace bridge {

/// Returns the iteration of `writer`'s loops that computes what `reader` reads,
/// at the reader's first load of what a band iteration of the writer stores.
std::optional<ReachingStore> solveFirstLoad(Nest &writer, Nest &reader);

/// True if Inductor has the two nests in the same kernels.
bool areInOneKernel(Nest &a, Nest &b);

/// Returns the nests of the kernel that `nest` is in, itself among them, for a
/// change of their loops. Empty if one of them has other loops or loops that
/// are not parallel: the change is made to all nests of a kernel or to none. If
/// `others` is given, nests with other loops are added to it instead.
llvm::SmallVector<mlir::affine::AffineForOp> getKernelNests(
    Nest &nest, llvm::ArrayRef<mlir::affine::AffineForOp> roots,
    llvm::SmallVectorImpl<mlir::affine::AffineForOp> *others = nullptr);

/// Calls `change` with pairs of a writer and a later reader in `body`, and with
/// all roots, until it returns false for every pair.
void changePairs(
    mlir::Block &body,
    llvm::function_ref<bool(mlir::affine::AffineForOp writer,
                            mlir::affine::AffineForOp reader,
                            llvm::ArrayRef<mlir::affine::AffineForOp> roots)>
        change);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_KERNELNESTS_H
