// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(bridge-fuse)' | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(bridge-fuse{recompute-draws=true})' \
// RUN:     2>/dev/null | FileCheck %s --check-prefix=AGAIN

// A random number is a function of its seed and offset: it moves with its
// iteration, as what is loaded does.

// The halves of a row whose elements are dropped out: the offsets of both are
// those of the elements.

// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0, d1) -> (d0 * 256 + d1)>
// CHECK-DAG: #[[SECOND:.*]] = affine_map<(d0, d1) -> (d0 * 256 + d1 + 128)>
// CHECK-LABEL: func @should_fuse_dropped_halves
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK: affine.for %[[J:.*]] = 0 to 128
// CHECK: %[[AT:.*]] = affine.apply #[[FIRST]](%[[I]], %[[J]])
// CHECK: %[[OFFSET:.*]] = arith.index_cast %[[AT]] : index to i32
// CHECK: bridge.special rand %{{.*}}, %[[OFFSET]]
// CHECK: %[[AT:.*]] = affine.apply #[[SECOND]](%[[I]], %[[J]])
// CHECK: %[[OFFSET:.*]] = arith.index_cast %[[AT]] : index to i32
// CHECK: bridge.special rand %{{.*}}, %[[OFFSET]]
// CHECK: bridge.nodes = ["sum", "gate"], bridge.parallel}
func.func @should_fuse_dropped_halves(%seeds: memref<2xi64>, %in: memref<64x256xf32>, %sum: memref<64xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %seed = affine.load %seeds[1] : memref<2xi64>
      %at = affine.apply affine_map<(d0, d1) -> (d0 * 256 + d1)>(%i, %r)
      %offset = arith.index_cast %at : index to i32
      %noise = bridge.special rand %seed, %offset : (i64, i32) -> f32
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %y = arith.mulf %x, %noise : f32
      %b = arith.addf %a, %y : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %s = affine.load %sum[%i] : memref<64xf32>
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      %y = affine.load %in[%i, %j + 128] : memref<64x256xf32>
      %z = arith.mulf %x, %y : f32
      %w = arith.mulf %z, %s : f32
      affine.store %w, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["gate"]}
  return
}

// -----

// The lanes are reversed: what one has drawn another would have to draw again,
// which takes longer than a load.

// CHECK-LABEL: func @should_not_draw_again
// CHECK-NOT: bridge.band
// AGAIN-LABEL: func @should_not_draw_again
// AGAIN: bridge.special rand
// AGAIN: bridge.special rand
// AGAIN: bridge.nodes = ["draw", "reversed"], bridge.parallel}
func.func @should_not_draw_again(%seeds: memref<2xi64>, %in: memref<64x128xf32>, %t: memref<64x128xf32>, %sum: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %seed = affine.load %seeds[0] : memref<2xi64>
      %at = affine.apply affine_map<(d0, d1) -> (d0 * 128 + d1)>(%i, %j)
      %offset = arith.index_cast %at : index to i32
      %noise = bridge.special rand %seed, %offset : (i64, i32) -> f32
      affine.store %noise, %t[%i, %j] : memref<64x128xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["draw"]}
  // expected-remark @+1 {{[not_profitable] a transcendental function or a random number would be computed again}}
  affine.for %i = 0 to 64 {
    %s = affine.for %j = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      %y = affine.load %in[%i, %j] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      %b = arith.addf %a, %z : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["reversed"]}
  return
}
