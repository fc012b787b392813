//===- bridge-opt.cpp - Bridge's passes on the command line ---------------===//
//
// mlir-opt with the bridge dialect and passes. All upstream dialects and passes
// are there, too: they are in the library that Python's mlir loads.
//
//===----------------------------------------------------------------------===//

#include "Bridge/IR/BridgeDialect.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir-c/RegisterEverything.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  // The C functions, as the C++ ones' headers name every dialect's class.
  mlirRegisterAllDialects(wrap(&registry));
  mlirRegisterAllPasses();
  registry.insert<bridge::BridgeDialect>();
  bridge::registerBridgePasses();
  bridge::registerBridgePipelines();
  llvm::cl::AddExtraVersionPrinter(
      [](llvm::raw_ostream &os) { os << "Bridge " BRIDGE_VERSION "\n"; });
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Bridge's optimizer driver\n", registry));
}
