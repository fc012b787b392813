//===- bridge-opt.cpp - Bridge's passes on the command line ---------------===//
//
// mlir-opt with the bridge dialect and passes, and with the upstream dialects
// and passes that the affine path to LLVM needs.
//
//===----------------------------------------------------------------------===//

#include "Bridge/IR/BridgeDialect.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/InlinerInterfaceImpl.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/Passes.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"

using namespace mlir;

static void registerDialects(DialectRegistry &registry) {
  registry
      .insert<bridge::BridgeDialect, affine::AffineDialect, arith::ArithDialect,
              cf::ControlFlowDialect, func::FuncDialect, index::IndexDialect,
              linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect,
              memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect,
              ub::UBDialect, vector::VectorDialect>();
  func::registerInlinerExtension(registry);
  LLVM::registerInlinerInterface(registry);
}

/// Lets convert-to-llvm find each dialect's patterns.
static void registerConvertToLLVMInterfaces(DialectRegistry &registry) {
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
}

static void registerConversions() {
  registerLowerAffinePass();
  registerConvertLinalgToStandardPass();
  registerConvertVectorToSCF();
  registerConvertVectorToLLVMPass();
  registerSCFToControlFlowPass();
  registerArithToLLVMConversionPass();
  registerConvertControlFlowToLLVMPass();
  registerConvertFuncToLLVMPass();
  registerConvertIndexToLLVMPass();
  registerConvertMathToFuncs();
  registerConvertMathToLibmPass();
  registerConvertMathToLLVMPass();
  registerConvertToLLVMPass();
  registerFinalizeMemRefToLLVMConversionPass();
  registerReconcileUnrealizedCastsPass();
  registerUBToLLVMConversionPass();
}

static void registerUpstreamPasses() {
  registerTransformsPasses();
  affine::registerAffinePasses();
  arith::registerArithPasses();
  math::registerMathPasses();
  memref::registerMemRefPasses();
  registerLinalgPasses();
  registerSCFPasses();
  vector::registerVectorPasses();
  registerConversions();
}

/// Takes away what cannot work: a plug-in is linked against the MLIR of the
/// Python bindings, and would register its passes with that copy, not with the
/// one linked into this program. `bridge import --plugin` loads it.
static void removePluginOptions(DialectRegistry &registry) {
  MlirOptMainConfig::registerCLOptions(registry);
  auto &options = llvm::cl::getRegisteredOptions();
  for (StringRef name : {"load-pass-plugin", "load-dialect-plugin"})
    if (llvm::cl::Option *option = options.lookup(name))
      option->removeArgument();
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  registerDialects(registry);
  registerConvertToLLVMInterfaces(registry);
  registerUpstreamPasses();
  bridge::registerBridgePasses();
  bridge::registerBridgePipelines();
  llvm::cl::AddExtraVersionPrinter(
      [](llvm::raw_ostream &os) { os << "Bridge " BRIDGE_VERSION "\n"; });
  removePluginOptions(registry);
  return asMainReturnCode(
      MlirOptMain(argc, argv, "Bridge's optimizer driver\n", registry));
}
