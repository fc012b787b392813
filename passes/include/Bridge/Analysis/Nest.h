//===- Nest.h - a top-level loop nest and its parts -------------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_NEST_H
#define BRIDGE_ANALYSIS_NEST_H

#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"

#include <optional>

namespace bridge {

/// A top-level loop nest.
///
/// `loops` are the perfectly nested loops without `iter_args`, outermost first.
/// Where the body of the innermost of them holds more than one loop (a fused
/// band) or a loop that carries values (a reduction), those stay in that body
/// and the nest is `pinned`: its band is exactly `loops`. A nest that is not
/// pinned is one statement over all its loops, and any prefix may be the band.
struct Nest {
  llvm::SmallVector<mlir::affine::AffineForOp> loops;
  bool pinned = false;

  mlir::affine::AffineForOp root() { return loops.front(); }
};

/// The parts of the nest rooted at `root`, which carries no values.
Nest getNest(mlir::affine::AffineForOp root);

/// The roots of the nests of a function body in program order. A loop that
/// carries values is none: it cannot be a band.
llvm::SmallVector<mlir::affine::AffineForOp> getRoots(mlir::Block &body);

/// Whether two loops run over the same iteration domain.
bool haveSameDomain(mlir::affine::AffineForOp a, mlir::affine::AffineForOp b);

/// How many outer loops the two nests can share as one band: the longest common
/// prefix of equal domains, or a pinned nest's depth. Zero if there is none.
unsigned getCommonBandDepth(Nest &a, Nest &b);

/// How many outer loops of the two nests have equal domains, pinned or not.
unsigned getSharedDepth(Nest &a, Nest &b);

/// How many outer loops they share at least: a pinned nest's whole band.
unsigned getLeastBandDepth(Nest &a, Nest &b);

/// The loops of the inner iteration spaces below a band of depth `depth`: one
/// chain for each statement of the band that has loops of its own.
llvm::SmallVector<llvm::SmallVector<mlir::affine::AffineForOp>>
getInnerChains(Nest &nest, unsigned depth);

/// The loads and stores in a loop, in program order.
llvm::SmallVector<mlir::Operation *>
getAccesses(mlir::affine::AffineForOp loop);

/// The loops from `outermost` inward while each body holds just one loop.
llvm::SmallVector<mlir::affine::AffineForOp>
getChain(mlir::affine::AffineForOp outermost);

/// The loops whose iterations are the lanes of a statement below a band, from
/// `outermost` inward. Unlike in a chain, a body may compute beside its loops
/// (what it reduces in one of them), and may hold several of one domain. Empty
/// if it holds loops of different domains.
llvm::SmallVector<mlir::affine::AffineForOp>
getLaneChain(mlir::affine::AffineForOp outermost);

/// The number of iterations of a chain, if all its trip counts are constant and
/// it fits in 64 bits.
std::optional<int64_t>
getVolume(llvm::ArrayRef<mlir::affine::AffineForOp> chain);

/// The trip counts of a chain of constant loops from 0 with step 1.
std::optional<llvm::SmallVector<int64_t>>
getConstantExtents(llvm::ArrayRef<mlir::affine::AffineForOp> chain);

/// Whether the nests access an element that both read or one writes, or parts
/// of one buffer. A store counts whichever elements it is to.
bool shareElements(Nest &a, Nest &b);

/// The iterations that execute `op`, by the loops and guards around it. Where
/// the negation of a guard (`else`) bounds them, they are fewer than these.
llvm::LogicalResult getDomain(mlir::Operation *op,
                              mlir::affine::FlatAffineValueConstraints &domain);

/// Makes the results of `map` on `operands` the first variables of `domain`.
llvm::LogicalResult
addExpression(mlir::AffineMap map, mlir::ValueRange operands,
              mlir::affine::FlatAffineValueConstraints &domain);

/// Whether `expr`, of `operands` as its dimensions, is in [low, high) wherever
/// `op` executes.
bool isWithin(mlir::AffineExpr expr, mlir::ValueRange operands, int64_t low,
              int64_t high, mlir::Operation *op);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_NEST_H
