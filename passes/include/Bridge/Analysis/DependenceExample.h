//===- DependenceExample.h - an integer point of a dependence ---*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_DEPENDENCEEXAMPLE_H
#define BRIDGE_ANALYSIS_DEPENDENCEEXAMPLE_H

#include "Bridge/Analysis/ExampleText.h"
#include "Bridge/Analysis/FusionResult.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace bridge {

/// An integer point of upstream's dependence relation: two iterations that
/// access one element, that of `source` before that of `target`.
struct DependenceExample {
  mlir::Operation *source, *target;
  /// Variables of the loops that were around each access before the passes,
  /// outermost first.
  llvm::SmallVector<int64_t> sourceIteration, targetIteration;
  llvm::SmallVector<int64_t> element;
  /// The symbols of the relation, with their values at this point.
  Sizes sizes;
};

/// Returns an example of a dependence that `loop` carries; nothing if there is
/// none, or if upstream's analysis does not model the accesses.
std::optional<DependenceExample>
findDependenceExample(mlir::affine::AffineForOp loop);

/// Returns an element that one lane below `band` stores and that `load` reads
/// in the same band iteration, in another lane if there is such a pair.
std::optional<DependenceExample>
findLaneDependenceExample(mlir::affine::AffineLoadOp load,
                          mlir::affine::AffineForOp band);

/// Returns the example in words: a note for each of its two accesses. Empty
/// without an example.
Notes describe(const std::optional<DependenceExample> &example);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_DEPENDENCEEXAMPLE_H
