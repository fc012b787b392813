//===- Kin.h - nests that change their loops together -----------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_KIN_H
#define BRIDGE_ANALYSIS_KIN_H

#include "Bridge/Analysis/Forwarding.h"
#include "Bridge/Analysis/Nest.h"

namespace bridge {

/// The iteration of `writer`'s loops that computes what `reader` reads of it,
/// at the reader's first load of what a band iteration of the writer stores.
std::optional<Source> solveFirstLoad(Nest &writer, Nest &reader);

/// Whether Inductor has the two nests in one kernel.
bool areInOneKernel(Nest &a, Nest &b);

/// The nests of `nest`'s kernels, itself among them, if all of them have its
/// loops and those may run in any order. Empty otherwise: a kernel moves whole
/// or stays. Nests with other loops go into `others` where it is given.
llvm::SmallVector<mlir::affine::AffineForOp>
getKin(Nest &nest, llvm::ArrayRef<mlir::affine::AffineForOp> roots,
       llvm::SmallVectorImpl<mlir::affine::AffineForOp> *others = nullptr);

/// Offers `change` a writer and a later reader, over and over, until it changes
/// none of the pairs of nests in `body`; it gets all roots as well.
void changePairs(
    mlir::Block &body,
    llvm::function_ref<bool(mlir::affine::AffineForOp writer,
                            mlir::affine::AffineForOp reader,
                            llvm::ArrayRef<mlir::affine::AffineForOp> roots)>
        change);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_KIN_H
