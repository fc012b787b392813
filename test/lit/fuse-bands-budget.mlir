// RUN: bridge-opt %s --pass-pipeline='builtin.module(func.func(bridge-fuse-bands{max-dependence-checks=4}))' 2>&1 \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --bridge-fuse=max-dependence-checks=4 2>&1 | FileCheck %s
// RUN: bridge-opt %s --bridge-fuse=max-dependence-checks=2 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: bridge-opt %s --bridge-fuse 2>&1 | FileCheck %s --check-prefix=ALL

// Three checks prove the first two nests: the store to %t with itself and with the load, the store to %u with
// itself. With the third nest they would be five, and one is left.

// CHECK: remark: [budget_exceeded] merged, the proof would take more dependence checks than are left
// CHECK-LABEL: func @three_nests
// CHECK: bridge.nodes = ["op0", "op1"]
// CHECK: bridge.nodes = ["op2"]

// NONE-COUNT-2: remark: [budget_exceeded]
// NONE-NOT: bridge.band

// ALL-NOT: remark
// ALL: bridge.nodes = ["op0", "op1", "op2"]
func.func @three_nests(%in: memref<64xf32>, %t: memref<64xf32>, %u: memref<64xf32>, %out: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %t[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["op0"]}
  affine.for %i = 0 to 64 {
    %x = affine.load %t[%i] : memref<64xf32>
    affine.store %x, %u[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["op1"]}
  affine.for %i = 0 to 64 {
    %x = affine.load %u[%i] : memref<64xf32>
    affine.store %x, %out[%i] : memref<64xf32>
  } {bridge.kernels = [2], bridge.nodes = ["op2"]}
  return
}
