// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-split-index-sets{parts=true},canonicalize))' \
// RUN:   | FileCheck %s

// Lanes that the part lacks are padded, and all nests are fused.
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=FUSED

// Loop nests that run one after the other need no padding, and no such split.
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-split-index-sets,canonicalize))' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=WHOLE

// Neighbours are rotated in the first 64 of 288 elements, which are no
// multiple of 64.

// CHECK-LABEL: func @should_split_by_interleaved_part
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: %{{.*}} = affine.for %[[J:.*]] = 0 to 144 iter_args(%[[ACC:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT: %[[X0:.*]] = affine.load %arg0[%[[I]], %[[J]] * 2]
// CHECK-NEXT: %[[S0:.*]] = arith.addf %[[ACC]], %[[X0]]
// CHECK-NEXT: %[[X1:.*]] = affine.load %arg0[%[[I]], %[[J]] * 2 + 1]
// CHECK-NEXT: %[[S1:.*]] = arith.addf %[[S0]], %[[X1]]
// CHECK-NEXT: affine.yield %[[S1]]
// CHECK: affine.for %{{.*}} = 0 to 32 {

// FUSED-LABEL: func @should_split_by_interleaved_part
// FUSED: affine.for %{{.*}} = 0 to 144 iter_args
// FUSED: affine.for %{{.*}} = 0 to 144 {
// FUSED: bridge.nodes = ["sum", "rotated"], bridge.parallel}
// FUSED-NEXT: return

// WHOLE-LABEL: func @should_split_by_interleaved_part
// WHOLE: affine.for %{{.*}} = 0 to 288 iter_args
func.func @should_split_by_interleaved_part(%in: memref<64x288xf32>, %sum: memref<64xf32>, %out: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 288 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x288xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      %s = affine.load %sum[%i] : memref<64xf32>
      %x = affine.load %in[%i, 2 * %j] : memref<64x288xf32>
      %y = affine.load %in[%i, 2 * %j + 1] : memref<64x288xf32>
      %z = arith.mulf %x, %s : f32
      %w = arith.mulf %y, %s : f32
      affine.store %w, %out[%i, 2 * %j] : memref<64x64xf32>
      affine.store %z, %out[%i, 2 * %j + 1] : memref<64x64xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["rotated"]}
  return
}

// -----

// Neighbours are rotated in the first 64 of 256 elements. The other three times 64
// are pieces like these, and no lane is idle.

// CHECK-LABEL: func @should_split_by_copies_of_a_part
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: %{{.*}} = affine.for %[[J:.*]] = 0 to 32 iter_args(%[[ACC:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT: %[[X0:.*]] = affine.load %arg0[%[[I]], %[[J]] * 2]
// CHECK-NEXT: %[[S0:.*]] = arith.addf %[[ACC]], %[[X0]]
// CHECK-NEXT: %[[X1:.*]] = affine.load %arg0[%[[I]], %[[J]] * 2 + 1]
// CHECK-NEXT: %[[S1:.*]] = arith.addf %[[S0]], %[[X1]]
// CHECK-NEXT: %[[X2:.*]] = affine.load %arg0[%[[I]], %[[J]] * 2 + 64]
// CHECK-NEXT: %[[S2:.*]] = arith.addf %[[S1]], %[[X2]]
// CHECK-NEXT: %[[X3:.*]] = affine.load %arg0[%[[I]], %[[J]] * 2 + 65]
// CHECK: affine.load %arg0[%[[I]], %[[J]] * 2 + 193]
// CHECK: affine.for %{{.*}} = 0 to 32 {

// FUSED-LABEL: func @should_split_by_copies_of_a_part
// FUSED: affine.for %{{.*}} = 0 to 32 iter_args
// FUSED: affine.for %{{.*}} = 0 to 32 {
// FUSED: bridge.nodes = ["sum", "rotated"], bridge.parallel}
// FUSED-NEXT: return

// WHOLE-LABEL: func @should_split_by_copies_of_a_part
// WHOLE: affine.for %{{.*}} = 0 to 256 iter_args
func.func @should_split_by_copies_of_a_part(%in: memref<64x256xf32>, %sum: memref<64xf32>, %out: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      %s = affine.load %sum[%i] : memref<64xf32>
      %x = affine.load %in[%i, 2 * %j] : memref<64x256xf32>
      %y = affine.load %in[%i, 2 * %j + 1] : memref<64x256xf32>
      %z = arith.mulf %x, %s : f32
      %w = arith.mulf %y, %s : f32
      affine.store %w, %out[%i, 2 * %j] : memref<64x64xf32>
      affine.store %z, %out[%i, 2 * %j + 1] : memref<64x64xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["rotated"]}
  return
}

// -----

// In the last 64 of 200: lanes 68 to 99 of 100. 32 does not divide 200.

// CHECK-LABEL: func @should_split_by_part_at_the_end
// CHECK: affine.for %[[J:.*]] = 0 to 100 iter_args
// CHECK: affine.load %arg0[%{{.*}}, %[[J]] * 2]
// CHECK: affine.load %arg0[%{{.*}}, %[[J]] * 2 + 1]
// CHECK: affine.for %{{.*}} = 0 to 32 {

// FUSED: #[[FROM:.*]] = affine_set<(d0) : (d0 - 68 >= 0)>
// FUSED-LABEL: func @should_split_by_part_at_the_end
// FUSED: affine.for %[[J:.*]] = 0 to 100 {
// FUSED: affine.load %arg0[%{{.*}}, %[[J]] * 2]
// FUSED: affine.load %arg0[%{{.*}}, %[[J]] * 2 + 1]
// FUSED: affine.if #[[FROM]](%[[J]]) {
// FUSED: bridge.nodes = ["sum", "rotated"], bridge.parallel}
// FUSED-NEXT: return
func.func @should_split_by_part_at_the_end(%in: memref<64x200xf32>, %sum: memref<64xf32>, %out: memref<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 200 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x200xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      %s = affine.load %sum[%i] : memref<64xf32>
      %x = affine.load %in[%i, 2 * %j + 136] : memref<64x200xf32>
      %y = affine.load %in[%i, 2 * %j + 137] : memref<64x200xf32>
      %z = arith.mulf %x, %y : f32
      %w = arith.mulf %z, %s : f32
      affine.store %w, %out[%i, %j] : memref<64x32xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["rotated"]}
  return
}

// -----

// Halves of a part: with more iterations they would access elements twice.

// CHECK-LABEL: func @should_not_split_by_halves_of_a_part
// CHECK: affine.for %{{.*}} = 0 to 200 iter_args
func.func @should_not_split_by_halves_of_a_part(%in: memref<64x200xf32>, %sum: memref<64xf32>, %out: memref<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 200 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x200xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%i, %j] : memref<64x200xf32>
      %y = affine.load %in[%i, %j + 32] : memref<64x200xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x32xf32>
    }
  }
  return
}

// -----

// Pairs that begin at an odd element: the first of the row has no neighbour.

// CHECK-LABEL: func @should_not_split_by_pairs_at_odd_places
// CHECK: affine.for %{{.*}} = 0 to 200 iter_args
func.func @should_not_split_by_pairs_at_odd_places(%in: memref<64x200xf32>, %sum: memref<64xf32>, %out: memref<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 200 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x200xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%i, 2 * %j + 3] : memref<64x200xf32>
      %y = affine.load %in[%i, 2 * %j + 4] : memref<64x200xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x32xf32>
    }
  }
  return
}

// -----

// A running sum: its iterations cannot be put in another order.

// CHECK-LABEL: func @should_not_split_recurrence_by_part
// CHECK: affine.for %{{.*}} = 1 to 200 {
func.func @should_not_split_recurrence_by_part(%in: memref<64x200xf32>, %sum: memref<64x200xf32>, %out: memref<64x32xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %r = 1 to 200 {
      %x = affine.load %in[%i, %r] : memref<64x200xf32>
      %a = affine.load %sum[%i, %r - 1] : memref<64x200xf32>
      %b = arith.addf %a, %x : f32
      affine.store %b, %sum[%i, %r] : memref<64x200xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%i, 2 * %j] : memref<64x200xf32>
      %y = affine.load %in[%i, 2 * %j + 1] : memref<64x200xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x32xf32>
    }
  }
  return
}
