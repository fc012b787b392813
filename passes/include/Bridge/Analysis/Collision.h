//===- Collision.h - examples of dependences --------------------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_COLLISION_H
#define BRIDGE_ANALYSIS_COLLISION_H

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// What is to be said at a place beside a refusal.
struct Note {
  mlir::Location location;
  std::string text;
};

using Notes = llvm::SmallVector<Note, 0>;

/// Two iterations that touch one element, `source`'s before `target`'s, as an
/// integer point of upstream's dependence relation.
struct Collision {
  mlir::Operation *source, *target;
  /// Variables of the loops around each access, outermost first.
  llvm::SmallVector<int64_t> sourceIteration, targetIteration;
  llvm::SmallVector<int64_t> element;
  /// The sizes that the point was found for.
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> sizes;
};

/// Two iterations of `loop` that must not change places; nothing if there are
/// none, or upstream's analysis does not model the accesses.
std::optional<Collision> findCollision(mlir::affine::AffineForOp loop);

/// An element that one lane below `band` stores and, in the same band
/// iteration, `load` reads; in another lane where there is such a pair.
std::optional<Collision> findLaneCollision(mlir::affine::AffineLoadOp load,
                                           mlir::affine::AffineForOp band);

/// The collision in words, a note for each of its two accesses; none without
/// one.
Notes describe(const std::optional<Collision> &collision);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_COLLISION_H
