//===- FusionResult.h - the outcome of a check or a fusion ------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_FUSIONRESULT_H
#define BRIDGE_ANALYSIS_FUSIONRESULT_H

#include "Bridge/Support/Reasons.h"

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"

#include <optional>
#include <string>

namespace bridge {

/// A text to attach to a remark, at a location of its own.
struct Note {
  mlir::Location location;
  std::string text;
};

using Notes = llvm::SmallVector<Note, 0>;

/// Why nests are not fused, or why a nest cannot be analysed. `notes` have an
/// example of the dependence if the reason is one.
struct Refusal {
  Reason reason;
  llvm::StringRef text;
  Notes notes = {};
};

/// The outcome of a check or a fusion: success or a refusal. It is like
/// mlir::affine::FusionResult, with the reason and the words of the refusal.
class [[nodiscard]] FusionResult {
public:
  static FusionResult success() { return FusionResult(); }

  FusionResult(Refusal refusal) : refusal(std::move(refusal)) {}

  /// Makes `failed(result)` and `succeeded(result)` work.
  operator llvm::LogicalResult() const { return llvm::failure(isRefused()); }

  bool isRefused() const { return refusal.has_value(); }

  /// The refusal; only for a result that is one.
  const Refusal &getRefusal() const { return *refusal; }

private:
  FusionResult() = default;

  std::optional<Refusal> refusal;
};

/// Emits a refusal as a remark at `op`, with its notes.
void refuse(mlir::Operation *op, const Refusal &refusal);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_FUSIONRESULT_H
