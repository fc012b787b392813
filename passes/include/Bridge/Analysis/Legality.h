//===- Legality.h - what dependence analysis proves -------------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_LEGALITY_H
#define BRIDGE_ANALYSIS_LEGALITY_H

#include "Bridge/Analysis/DependenceExample.h"
#include "Bridge/Analysis/FusionResult.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

#include <set>
#include <vector>

namespace bridge {

/// Refuses a nest that upstream's dependence analysis does not model.
///
/// Upstream compares subscripts of one SSA value. It does not know that two
/// memrefs overlap, that two subscripts of a non-identity layout are one
/// element, that a vector access is wide, or what other operations do.
/// Arguments of a function are assumed not to overlap.
FusionResult checkAnalysable(mlir::Operation *root);

/// True if the iterations of a chain (see `getChain`) may run in any order: no
/// loop carries a dependence through memory, and each carried value is the
/// state of a reduction that only its associative combiner reads.
bool isReorderable(llvm::ArrayRef<mlir::affine::AffineForOp> chain);

/// Two accesses and a loop depth: subscripts, bounds and steps as numbers.
using DependenceQuery = std::vector<int64_t>;

/// The queries that were answered "no dependence". They are about values of one
/// function, and valid only while its arguments are.
using DependenceQueryCache = std::set<DependenceQuery>;

/// True if no iteration of `loop`, which `checkAnalysable` accepts, depends on
/// another. Upstream's analysis is asked about each pair of accesses; where it
/// finds a dependence, its relation is asked for an integer point. Pairs
/// without one are added to `cache`.
bool isParallel(mlir::affine::AffineForOp loop, DependenceQueryCache &cache);
bool isParallel(mlir::affine::AffineForOp loop);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_LEGALITY_H
