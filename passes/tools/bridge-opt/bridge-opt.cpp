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
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

/// Prints why a library is no plug-in; true if it is one.
template <typename Plugin> static bool isPlugin(llvm::StringRef library) {
  auto plugin = Plugin::load(library.str());
  if (plugin)
    return true;
  std::string why = llvm::toString(plugin.takeError());
  llvm::errs() << "bridge-opt: error: " << why << "\n";
  return false;
}

/// True if all libraries that the arguments name can be loaded. MLIR's own
/// option aborts the process where one cannot.
static bool checkPlugins(llvm::ArrayRef<char *> arguments) {
  for (auto [i, given] : llvm::enumerate(arguments)) {
    auto [name, library] = llvm::StringRef(given).ltrim('-').split('=');
    if (library.empty() && i + 1 < arguments.size())
      library = arguments[i + 1];
    if (name == "load-pass-plugin" && !isPlugin<mlir::PassPlugin>(library))
      return false;
    if (name == "load-dialect-plugin" &&
        !isPlugin<mlir::DialectPlugin>(library))
      return false;
  }
  return true;
}

int main(int argc, char **argv) {
  if (!checkPlugins(llvm::ArrayRef(argv + 1, argv + argc)))
    return EXIT_FAILURE;
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
