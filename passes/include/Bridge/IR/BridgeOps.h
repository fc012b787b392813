//===- BridgeOps.h - operations of the bridge dialect -----------*- C++ -*-===//

#ifndef BRIDGE_IR_BRIDGEOPS_H
#define BRIDGE_IR_BRIDGEOPS_H

#include "Bridge/IR/BridgeDialect.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "Bridge/IR/BridgeEnums.h.inc"

#define GET_OP_CLASSES
#include "Bridge/IR/BridgeOps.h.inc"

#endif // BRIDGE_IR_BRIDGEOPS_H
