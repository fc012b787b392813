// RUN: bridge-opt %s --lower-affine --convert-scf-to-cf --convert-to-llvm \
// RUN:     --reconcile-unrealized-casts | FileCheck %s

// CHECK-LABEL: llvm.func @should_lower
// CHECK: llvm.load
// CHECK: llvm.intr.exp
// CHECK: llvm.store
// CHECK-NOT: unrealized_conversion_cast
func.func @should_lower(%a: memref<64xf32>, %b: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %0 = affine.load %a[%i] : memref<64xf32>
    %1 = math.exp %0 : f32
    affine.store %1, %b[%i] : memref<64xf32>
  }
  return
}
