//===- ExampleText.h - iterations and elements in words ---------*- C++ -*-===//

#ifndef BRIDGE_ANALYSIS_EXAMPLETEXT_H
#define BRIDGE_ANALYSIS_EXAMPLETEXT_H

#include "mlir/IR/Value.h"

#include <string>
#include <utility>

namespace bridge {

/// Values of symbols at an integer point.
using Sizes = llvm::SmallVector<std::pair<mlir::Value, int64_t>>;

/// Returns the name that an argument has in `attribute`, else its number.
std::string getName(mlir::Value value, llvm::StringRef attribute);

/// Returns numbers with commas between them.
std::string getPoint(llvm::ArrayRef<int64_t> numbers);

/// Returns `, where s0 = 4 and s1 = 7`; nothing without sizes.
std::string getSizes(const Sizes &sizes);

} // namespace bridge

#endif // BRIDGE_ANALYSIS_EXAMPLETEXT_H
