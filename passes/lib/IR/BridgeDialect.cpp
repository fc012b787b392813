//===- BridgeDialect.cpp - the bridge dialect -----------------------------===//

#include "Bridge/IR/BridgeDialect.h"
#include "Bridge/IR/BridgeOps.h"

using namespace mlir;

#include "Bridge/IR/BridgeDialect.cpp.inc"

void bridge::BridgeDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "Bridge/IR/BridgeOps.cpp.inc"
      >();
}
