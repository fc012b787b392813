//===- Nest.h - a top-level loop nest and its parts -------------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_NEST_H
#define BRIDGE_ANALYSIS_NEST_H

#include "mlir/Dialect/Affine/Analysis/AffineStructures.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace bridge {

/// A top-level loop nest.
///
/// `loops` are the perfectly nested loops without `iter_args`, outermost first.
/// The nest is imperfectly nested if the body of the innermost of them holds
/// loops: more than one (a fused band), or one that carries values (a
/// reduction). Its band is then exactly `loops`. Otherwise the nest is one
/// statement over all its loops, and any prefix of them may be the band.
struct Nest {
  llvm::SmallVector<mlir::affine::AffineForOp> loops;
  bool imperfectlyNested = false;

  mlir::affine::AffineForOp root() { return loops.front(); }
};

/// The iteration domain of a nest below a band: the band's loops, and the chain
/// of inner loops with their constant extents.
struct InnerDomain {
  llvm::ArrayRef<mlir::affine::AffineForOp> band;
  llvm::ArrayRef<mlir::affine::AffineForOp> chain;
  llvm::SmallVector<int64_t> extents;
};

/// Returns the parts of the nest rooted at `root`, which carries no values.
Nest getNest(mlir::affine::AffineForOp root);

/// Returns the roots of the nests of a function body in program order, without
/// the loops that carry values, which cannot be bands.
llvm::SmallVector<mlir::affine::AffineForOp> getRoots(mlir::Block &body);

/// True if two loops have the same iteration domain.
bool haveSameDomain(mlir::affine::AffineForOp a, mlir::affine::AffineForOp b);

/// True if a loop goes from 0 in steps of 1.
bool countsFromZero(mlir::affine::AffineForOp loop);

/// Returns how many outer loops the two nests can share as one band: the
/// longest common prefix of equal domains, or the depth of an imperfectly
/// nested one. Zero if there is none.
unsigned getCommonBandDepth(Nest &a, Nest &b);

/// Returns how many outer loops of the two nests have equal domains, however
/// they are nested.
unsigned getSharedDepth(Nest &a, Nest &b);

/// Returns the least depth of a common band: the depth of an imperfectly nested
/// one, else 1.
unsigned getLeastBandDepth(Nest &a, Nest &b);

/// Returns the inner loops below a band of depth `depth`: one chain for each
/// statement of the band that has loops of its own.
llvm::SmallVector<llvm::SmallVector<mlir::affine::AffineForOp>>
getInnerChains(Nest &nest, unsigned depth);

/// Returns the loads and stores in a loop, in program order.
llvm::SmallVector<mlir::Operation *>
getAccesses(mlir::affine::AffineForOp loop);

/// Returns the stores to `memref` in a loop, in program order.
llvm::SmallVector<mlir::affine::AffineStoreOp>
getStores(mlir::Value memref, mlir::affine::AffineForOp loop);

/// True if a load in a loop is of one of the memrefs.
bool loadsAny(mlir::affine::AffineForOp loop,
              const llvm::SmallDenseSet<mlir::Value> &memrefs);

/// Adds the memrefs that are stored to in a loop.
void addStored(mlir::affine::AffineForOp loop,
               llvm::SmallDenseSet<mlir::Value> &memrefs);

/// Returns which of the loops has the induction variable `iv`.
std::optional<unsigned>
getPosition(llvm::ArrayRef<mlir::affine::AffineForOp> loops, mlir::Value iv);

/// Returns the loops around `op` inside `band`, outermost first.
llvm::SmallVector<mlir::affine::AffineForOp>
getLoopsInBand(mlir::Operation *op, mlir::affine::AffineForOp band);

/// Returns the loops from `outermost` inward while each body holds one loop.
llvm::SmallVector<mlir::affine::AffineForOp>
getChain(mlir::affine::AffineForOp outermost);

/// Returns the loops whose iterations are the lanes of a statement below a
/// band, from `outermost` inward. Unlike in a chain, a body may hold other
/// operations beside its loops (what it reduces in one of them), and several
/// loops of one domain. Empty if it holds loops of different domains.
llvm::SmallVector<mlir::affine::AffineForOp>
getLaneChain(mlir::affine::AffineForOp outermost);

/// Returns the number of iterations of a chain, if all its trip counts are
/// constant and the number fits in 64 bits.
std::optional<int64_t>
getVolume(llvm::ArrayRef<mlir::affine::AffineForOp> chain);

/// Returns the trip counts of a chain of constant loops from 0 with step 1.
std::optional<llvm::SmallVector<int64_t>>
getConstantExtents(llvm::ArrayRef<mlir::affine::AffineForOp> chain);

/// True if the nests access an element that both read or one writes, or parts
/// of one buffer. A store counts whichever elements it is to.
bool shareElements(Nest &a, Nest &b);

/// True if all loads that depend on the loop's variable are along memory. A row
/// whose elements are far apart, as those of a column, is for a tile of many
/// rows, which one kernel does not keep.
bool isAlongMemory(mlir::affine::AffineForOp loop);

/// Adds the constraints of the loops and guards around `op` to `domain`. The
/// `else` region of a guard adds none: there `domain` is a superset of the
/// iterations that execute `op`.
llvm::LogicalResult
getIterationDomain(mlir::Operation *op,
                   mlir::affine::FlatAffineValueConstraints &domain);

/// Makes the results of `map` on `operands` the first variables of `domain`.
llvm::LogicalResult
addExpression(mlir::AffineMap map, mlir::ValueRange operands,
              mlir::affine::FlatAffineValueConstraints &domain);

/// True if `expr`, of `operands` as its dimensions, is not below `low` wherever
/// `op` executes.
bool isAtLeast(mlir::AffineExpr expr, mlir::ValueRange operands, int64_t low,
               mlir::Operation *op);

/// True if `expr`, of `operands` as its dimensions, is in [low, high) wherever
/// `op` executes.
bool isWithin(mlir::AffineExpr expr, mlir::ValueRange operands, int64_t low,
              int64_t high, mlir::Operation *op);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_NEST_H
