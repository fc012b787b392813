//===- Iteration.h - the iterations before the passes -----------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_ITERATION_H
#define BRIDGE_ANALYSIS_ITERATION_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Operation.h"

namespace bridge {

// An example of a dependence names iterations of the loops that a pipeline was
// given. Passes that replace loops record how: the location of each access has
// a map from the variables of the loops around it, outermost first, to its
// iteration in the first loops. An attribute would keep CSE from merging equal
// loads of different nests.

/// Records that loops around the accesses in `root` have replaced others, from
/// position `first` on: `map` gives the variables of the replaced loops from
/// those of the loops that are there now. The loops around these, and those
/// further inside, stay.
void recordIterations(mlir::Operation *root, mlir::AffineMap map,
                      unsigned first = 0);

/// Returns the iteration of the first loops around `access`, given that of the
/// loops that are there now.
llvm::SmallVector<int64_t> getFirstIteration(mlir::Operation *access,
                                             llvm::ArrayRef<int64_t> iteration);

/// Returns the location of `op` without what `recordIterations` adds.
mlir::Location getPlainLocation(mlir::Operation *op);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_ITERATION_H
