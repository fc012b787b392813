//===- Legality.h - what the dependence analysis may be asked ---*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_LEGALITY_H
#define BRIDGE_ANALYSIS_LEGALITY_H

#include "Bridge/Analysis/Collision.h"
#include "Bridge/Support/Reasons.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

#include <set>
#include <vector>

namespace bridge {

/// Why nests stay apart, or dependence analysis cannot be trusted with one;
/// notes: an example, where it is a dependence.
struct Objection {
  Reason reason;
  llvm::StringRef text;
  Notes notes = {};
};

/// Emits an objection as a remark at `op`.
void refuse(mlir::Operation *op, const Objection &objection);

/// Upstream's analysis compares subscripts of one SSA value: it does not see
/// that two memrefs overlap, that two subscripts of a non-identity layout meet,
/// that a vector access is wide, or what other operations do. Nothing if `root`
/// holds none of these. Arguments of a function are taken not to overlap.
std::optional<Objection> getObjection(mlir::Operation *root);

/// Whether the iterations of a chain (see `getChain`) may run in any order: no
/// dependence through memory, and every value that they carry is the state of
/// a reduction that nothing but its associative combiner reads.
bool isReorderable(llvm::ArrayRef<mlir::affine::AffineForOp> chain);

/// Two accesses by subscripts, loops and depth, in numbers.
using Question = std::vector<int64_t>;

/// Those between which there is no dependence: valid as long as the function's
/// arguments are.
using Independent = std::set<Question>;

/// Whether no iteration of `loop`, which `getObjection` has nothing against,
/// depends on another: by upstream's analysis of each pair of accesses, and
/// where that finds a dependence, by asking its relation for an integer point.
/// What is found is added to `known`.
bool isParallel(mlir::affine::AffineForOp loop, Independent &known);
bool isParallel(mlir::affine::AffineForOp loop);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_LEGALITY_H
