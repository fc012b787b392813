// RUN: bridge-opt %s --pass-pipeline='builtin.module(bridge-fuse)' | FileCheck %s
// RUN: bridge-opt %s --bridge-fuse --mlir-print-ir-after-all -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=AFTER

// AFTER-DAG: IR Dump After ProveParallel (bridge-prove-parallel)
// AFTER-DAG: IR Dump After {{.*}}(canonicalize
// AFTER-DAG: IR Dump After {{.*}}(cse

// CHECK-LABEL: func @should_prove_and_clean_up
// CHECK: affine.for
// CHECK-COUNT-1: bridge.special hypot
// CHECK-NOT: bridge.special
// CHECK-NOT: bridge.convert
// CHECK: {bridge.band, bridge.parallel}
func.func @should_prove_and_clean_up(%a: memref<64xf32>, %b: memref<64xf32>, %u: i8) {
  affine.for %i = 0 to 64 {
    %dead = bridge.convert %u {from = "uint8", to = "float32"} : i8 -> f32
    %0 = affine.load %a[%i] : memref<64xf32>
    %1 = bridge.special hypot %0, %0 : (f32, f32) -> f32
    %2 = bridge.special hypot %0, %0 : (f32, f32) -> f32
    %3 = arith.addf %1, %2 : f32
    affine.store %3, %b[%i] : memref<64xf32>
  } {bridge.band}
  return
}
