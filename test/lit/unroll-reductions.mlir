// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-unroll-reductions,canonicalize))' \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-unroll-reductions{max-loads=2 min-lanes=65}))' \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=FUSED
// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse{rows-of-segments=false})' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse{simt-target=false})' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=NONE

// NONE-NOT: bridge.unrolled_reductions

// CHECK-LABEL: func private @should_take_declaration
func.func private @should_take_declaration(memref<64xf32>)

// -----

// CHECK-LABEL: func @should_unroll_what_a_row_reduces
// CHECK-SAME: attributes {bridge.unrolled_reductions}
// CHECK: affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT: affine.load %arg0[%[[I]], 0, %[[J]]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: affine.load %arg0[%[[I]], 1, %[[J]]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: affine.load %arg0[%[[I]], 2, %[[J]]]
// CHECK-NEXT: %[[S:.*]] = arith.addf
// CHECK-NEXT: affine.store %[[S]], %arg1[%[[I]], %[[J]]]
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
// FUSED-LABEL: func @should_unroll_what_a_row_reduces
// FUSED: } {bridge.band, bridge.kernels = [0, 1]
// FUSED-SAME: bridge.parallel
func.func @should_unroll_what_a_row_reduces(%in: memref<8x3x64xf32>, %sum: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 3 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x3x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// What the row reduces is made of the sum by a nest over the same loops; the
// other sum of the kernel, over two loops, is unrolled, too.

// CHECK-LABEL: func @should_unroll_all_of_a_kernel
// CHECK-SAME: attributes {bridge.unrolled_reductions}
// CHECK-COUNT-3: affine.load %arg0
// CHECK: affine.store %{{.*}}, %arg2
// CHECK-NOT: iter_args
// CHECK-COUNT-6: affine.load %arg1
// CHECK-NOT: iter_args
// CHECK: affine.store %{{.*}}, %arg3
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
// FUSED-LABEL: func @should_unroll_all_of_a_kernel
// FUSED: } {bridge.band, bridge.kernels = [0, 0, 1, 2]
func.func @should_unroll_all_of_a_kernel(%in: memref<8x3x64xf32>, %more: memref<8x2x3x64xf32>, %sum: memref<8x64xf32>, %other: memref<8x64xf32>, %mid: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 3 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x3x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 2 iter_args(%a = %zero) -> (f32) {
        %t = affine.for %f = 0 to 3 iter_args(%b = %a) -> (f32) {
          %x = affine.load %more[%i, %e, %f, %j] : memref<8x2x3x64xf32>
          %y = arith.maximumf %b, %x : f32
          affine.yield %y : f32
        }
        affine.yield %t : f32
      }
      affine.store %s, %other[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["other"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = affine.load %other[%i, %j] : memref<8x64xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %mid[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["mid"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %mid[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [2], bridge.nodes = ["row"]}
  return
}

// -----

// Nothing reduces the row: a kernel with a loop for the sum serves both.

// CHECK-LABEL: func @should_not_unroll_without_a_row
// CHECK-NOT: bridge.unrolled_reductions
// CHECK: affine.for %{{.*}} = 0 to 3 iter_args
func.func @should_not_unroll_without_a_row(%in: memref<8x3x64xf32>, %sum: memref<8x64xf32>, %out: memref<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 3 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x3x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = math.exp %x : f32
      affine.store %y, %out[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["out"]}
  return
}

// -----

// Memory is along the sum: each lane would read far from its neighbours.

// CHECK-LABEL: func @should_not_unroll_along_memory
// CHECK-NOT: bridge.unrolled_reductions
// CHECK: affine.for %{{.*}} = 0 to 3 iter_args
func.func @should_not_unroll_along_memory(%in: memref<8x64x3xf32>, %sum: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 3 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %j, %e] : memref<8x64x3xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// Neither a state of several values nor so many loads; and a kernel that has
// one of these keeps all of its loops.

// CHECK-LABEL: func @should_not_unroll_a_part_of_a_kernel
// CHECK-NOT: bridge.unrolled_reductions
// CHECK: affine.for %{{.*}} = 0 to 3 iter_args
// CHECK: affine.for %{{.*}} = 0 to 129 iter_args
func.func @should_not_unroll_a_part_of_a_kernel(%in: memref<8x129x64xf32>, %sum: memref<8x64xf32>, %long: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 3 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x129x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 129 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x129x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %long[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["long"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// CHECK-LABEL: func @should_not_unroll_a_state_of_several_values
// CHECK-NOT: bridge.unrolled_reductions
// CHECK: affine.for %{{.*}} = 0 to 3 iter_args
func.func @should_not_unroll_a_state_of_several_values(%in: memref<8x3x64xf32>, %sum: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s:3 = affine.for %e = 0 to 3 iter_args(%a = %zero, %b = %zero, %c = %zero) -> (f32, f32, f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x3x64xf32>
        %y:3 = bridge.combine welford (%a, %b, %c), (%x, %zero, %one) : f32, f32, f32
        affine.yield %y#0, %y#1, %y#2 : f32, f32, f32
      }
      affine.store %s#1, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}
