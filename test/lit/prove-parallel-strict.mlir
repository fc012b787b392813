// RUN: not bridge-opt %s \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-prove-parallel{strict=true}))' \
// RUN:     2>&1 | FileCheck %s

// CHECK: remark: [loop_carried_dependence] an iteration needs another's result
func.func @should_fail_on_recurrence(%a: memref<64xf32>) {
  affine.for %i = 1 to 64 {
    %0 = affine.load %a[%i - 1] : memref<64xf32>
    affine.store %0, %a[%i] : memref<64xf32>
  } {bridge.band}
  return
}
