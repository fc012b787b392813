//===- Plugin.cpp - what libBridgePasses.so exports -----------------------===//
//
// Python loads the plug-in with ctypes after `import mlir.ir`, so its undefined
// symbols resolve to the copy of MLIR that Python already runs.
//
//===----------------------------------------------------------------------===//

#include "Bridge/BindingsHash.h"
#include "Bridge/IR/BridgeDialect.h"
#include "Bridge/Transforms/Passes.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

#define BRIDGE_EXPORT __attribute__((visibility("default")))

extern "C" {

/// Registers the passes and the pipelines with the process. Safe to repeat.
BRIDGE_EXPORT void bridgeRegisterPasses();

/// Registers and loads the bridge dialect in `context`, the MLIRContext * of
/// Python's `Context._CAPIPtr` capsule. Safe to repeat.
BRIDGE_EXPORT void bridgeRegisterDialects(void *context);

/// Bridge's version, as in pyproject.toml.
BRIDGE_EXPORT const char *bridgeVersion();

/// The version of the MLIR that the plug-in was built for.
BRIDGE_EXPORT const char *bridgeMlirVersion();

/// The hash of the Python files that the same build generated.
BRIDGE_EXPORT const char *bridgeBindingsHash();

} // extern "C"

static bool registerOnce() {
  bridge::registerBridgePasses();
  bridge::registerBridgePipelines();
  return true;
}

void bridgeRegisterPasses() {
  [[maybe_unused]] static bool registered = registerOnce();
}

void bridgeRegisterDialects(void *context) {
  auto *ctx = static_cast<mlir::MLIRContext *>(context);
  mlir::DialectRegistry registry;
  registry.insert<bridge::BridgeDialect>();
  ctx->appendDialectRegistry(registry);
  ctx->loadDialect<bridge::BridgeDialect>();
}

const char *bridgeVersion() { return BRIDGE_VERSION; }

const char *bridgeMlirVersion() { return BRIDGE_MLIR_VERSION; }

const char *bridgeBindingsHash() { return BRIDGE_BINDINGS_HASH; }
