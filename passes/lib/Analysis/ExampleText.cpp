//===- ExampleText.cpp - iterations and elements in words -----------------===//

#include "Bridge/Analysis/ExampleText.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

std::string bridge::getName(Value value, StringRef attribute) {
  if (auto extent = value.getDefiningOp<memref::DimOp>())
    if (auto index = extent.getConstantIndex())
      return "dimension " + std::to_string(*index) + " of " +
             getName(extent.getSource(), "bridge.buffer");
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return isa<MemRefType>(value.getType()) ? "a memref" : "a size";
  std::string number = "argument " + std::to_string(argument.getArgNumber());
  auto function =
      dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (!function)
    return number;
  auto name =
      function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), attribute);
  return name ? name.getValue().str() : number;
}

std::string bridge::getPoint(ArrayRef<int64_t> numbers) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(numbers, stream);
  return text;
}

std::string bridge::getSizes(const Sizes &sizes) {
  std::string text;
  for (auto [value, size] : sizes)
    text += (text.empty() ? ", where " : " and ") +
            getName(value, "bridge.size") + " = " + std::to_string(size);
  return text;
}
