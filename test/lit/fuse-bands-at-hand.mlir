// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands{segments=true rows-of-segments=true},bridge-forward-stores))' 2>/dev/null \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands{segments=true rows-of-segments=false},bridge-forward-stores))' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=APART

// One iteration reduces two rows, and its lanes read both results: they get
// the values, and not what is stored last.

// CHECK-LABEL: func @should_fuse_reader_of_two_results
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK: %[[A:.*]] = affine.for
// CHECK: affine.store %[[A]], %arg1[%[[I]], 0]
// CHECK: %[[B:.*]] = affine.for
// CHECK: affine.store %[[B]], %arg1[%[[I]], 1]
// CHECK: affine.for
// CHECK-NOT: affine.load %arg1
// CHECK: %[[X:.*]] = affine.load %arg0
// CHECK-NEXT: %[[Y:.*]] = arith.subf %[[X]], %[[A]]
// CHECK-NEXT: %[[Z:.*]] = arith.mulf %[[Y]], %[[B]]
// CHECK-NEXT: affine.store %[[Z]], %arg2
// CHECK: bridge.band
// APART-LABEL: func @should_fuse_reader_of_two_results
// APART-NOT: bridge.band
func.func @should_fuse_reader_of_two_results(%in: memref<64x2x128xf32>, %sums: memref<64x2xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %a = affine.for %r = 0 to 128 iter_args(%s = %zero) -> (f32) {
      %x = affine.load %in[%i, 0, %r] : memref<64x2x128xf32>
      %c = arith.addf %s, %x : f32
      affine.yield %c : f32
    }
    affine.store %a, %sums[%i, 0] : memref<64x2xf32>
    %b = affine.for %r = 0 to 128 iter_args(%s = %zero) -> (f32) {
      %x = affine.load %in[%i, 1, %r] : memref<64x2x128xf32>
      %c = arith.addf %s, %x : f32
      affine.yield %c : f32
    }
    affine.store %b, %sums[%i, 1] : memref<64x2xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %a = affine.load %sums[%i, 0] : memref<64x2xf32>
      %b = affine.load %sums[%i, 1] : memref<64x2xf32>
      %x = affine.load %in[%i, 0, %j] : memref<64x2x128xf32>
      %y = arith.subf %x, %a : f32
      %z = arith.mulf %y, %b : f32
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// Which of the two a lane reads depends on the lane: it is no value of the
// iteration.

// CHECK-LABEL: func @should_not_fuse_reader_of_either_result
// CHECK-NOT: bridge.band
func.func @should_not_fuse_reader_of_either_result(%in: memref<64x2x128xf32>, %sums: memref<64x2xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %a = affine.for %r = 0 to 128 iter_args(%s = %zero) -> (f32) {
      %x = affine.load %in[%i, 0, %r] : memref<64x2x128xf32>
      %c = arith.addf %s, %x : f32
      affine.yield %c : f32
    }
    affine.store %a, %sums[%i, 0] : memref<64x2xf32>
    %b = affine.for %r = 0 to 128 iter_args(%s = %zero) -> (f32) {
      %x = affine.load %in[%i, 1, %r] : memref<64x2x128xf32>
      %c = arith.addf %s, %x : f32
      affine.yield %c : f32
    }
    affine.store %b, %sums[%i, 1] : memref<64x2xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %a = affine.load %sums[%i, %j mod 2] : memref<64x2xf32>
      %x = affine.load %in[%i, 0, %j] : memref<64x2x128xf32>
      %y = arith.subf %x, %a : f32
      affine.store %y, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// The results are those of the rows in reverse: another iteration's.

// CHECK-LABEL: func @should_not_fuse_reader_of_reversed_rows
// CHECK-NOT: bridge.band
func.func @should_not_fuse_reader_of_reversed_rows(%in: memref<65x2x128xf32>, %sums: memref<65x2xf32>, %out: memref<65x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %a = affine.for %r = 0 to 128 iter_args(%s = %zero) -> (f32) {
      %x = affine.load %in[%i, 0, %r] : memref<65x2x128xf32>
      %c = arith.addf %s, %x : f32
      affine.yield %c : f32
    }
    affine.store %a, %sums[%i, 0] : memref<65x2xf32>
    %b = affine.for %r = 0 to 128 iter_args(%s = %zero) -> (f32) {
      %x = affine.load %in[%i, 1, %r] : memref<65x2x128xf32>
      %c = arith.addf %s, %x : f32
      affine.yield %c : f32
    }
    affine.store %b, %sums[%i, 1] : memref<65x2xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %a = affine.load %sums[-%i + 63, 0] : memref<65x2xf32>
      %b = affine.load %sums[-%i + 63, 1] : memref<65x2xf32>
      %y = arith.subf %b, %a : f32
      affine.store %y, %out[%i, %j] : memref<65x128xf32>
    }
  }
  return
}
