// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-prove-parallel))' \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-prove-parallel))' \
// RUN:     --mlir-pass-statistics --mlir-disable-threading -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=STATS

// STATS: (S) 1 num-parallel
// STATS: (S) 0 num-serial

// CHECK-LABEL: func @should_mark_elementwise
// CHECK: affine.for
// CHECK: } {bridge.band, bridge.parallel}
func.func @should_mark_elementwise(%a: memref<64xf32>, %b: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %0 = affine.load %a[%i] : memref<64xf32>
    %1 = bridge.special sigmoid %0 : (f32) -> f32
    affine.store %1, %b[%i] : memref<64xf32>
  } {bridge.band}
  return
}

// -----

// CHECK-LABEL: func @should_mark_outer_loop_of_row_sum
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK-NOT: bridge.parallel
// CHECK: } {bridge.band, bridge.parallel}
func.func @should_mark_outer_loop_of_row_sum(%a: memref<8x64xf32>, %b: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %0 = affine.load %a[%i, %j] : memref<8x64xf32>
      %1 = affine.load %b[%i] : memref<8xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %b[%i] : memref<8xf32>
    }
  } {bridge.band}
  return
}

// -----

// CHECK-LABEL: func @should_not_mark_recurrence
// CHECK-NOT: bridge.parallel
func.func @should_not_mark_recurrence(%a: memref<64xf32>) {
  // expected-remark@+1 {{[loop_carried_dependence] an iteration needs another's result}}
  affine.for %i = 1 to 64 {
    // expected-note@below {{iteration (63) reads it}}
    %0 = affine.load %a[%i - 1] : memref<64xf32>
    // expected-note@below {{iteration (62) writes element [62] of argument 0}}
    affine.store %0, %a[%i] : memref<64xf32>
  } {bridge.band}
  return
}

// -----

// CHECK-LABEL: func @should_not_touch_loop_without_band
// CHECK-NOT: bridge.parallel
func.func @should_not_touch_loop_without_band(%a: memref<64xf32>, %b: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %0 = affine.load %a[%i] : memref<64xf32>
    affine.store %0, %b[%i] : memref<64xf32>
  }
  return
}

// -----

// An attribute of the input is removed if the proof fails.

// CHECK-LABEL: func @should_not_keep_mark_of_recurrence
// CHECK-NOT: bridge.parallel
func.func @should_not_keep_mark_of_recurrence(%a: memref<64xf32>) {
  // expected-remark@+1 {{[loop_carried_dependence]}}
  affine.for %i = 1 to 64 {
    // expected-note@below {{iteration (63) reads it}}
    %0 = affine.load %a[%i - 1] : memref<64xf32>
    // expected-note@below {{iteration (62) writes element [62] of argument 0}}
    affine.store %0, %a[%i] : memref<64xf32>
  } {bridge.band, bridge.parallel}
  return
}

// -----

// The two memrefs are the same buffer: iteration i writes what iteration i + 1
// reads.

// CHECK-LABEL: func @should_not_mark_accesses_to_views
// CHECK-NOT: bridge.parallel
func.func @should_not_mark_accesses_to_views(%a: memref<65xf32>) {
  %view = memref.subview %a[1] [64] [1] : memref<65xf32> to memref<64xf32, strided<[1], offset: 1>>
  // expected-remark@+1 {{[aliasing] an accessed memref is a view or has a layout of its own}}
  affine.for %i = 0 to 64 {
    %0 = affine.load %a[%i] : memref<65xf32>
    affine.store %0, %view[%i] : memref<64xf32, strided<[1], offset: 1>>
  } {bridge.band}
  return
}

// -----

// A new allocation is no view.

// CHECK-LABEL: func @should_mark_accesses_to_allocation
// CHECK: } {bridge.band, bridge.parallel}
func.func @should_mark_accesses_to_allocation(%a: memref<64xf32>) {
  %t = memref.alloc() : memref<64xf32>
  affine.for %i = 0 to 64 {
    %0 = affine.load %a[%i] : memref<64xf32>
    affine.store %0, %t[%i] : memref<64xf32>
  } {bridge.band}
  memref.dealloc %t : memref<64xf32>
  return
}

// -----

// A loop that carries values is not parallel, whatever it accesses.

// CHECK-LABEL: func @should_not_mark_reduction
// CHECK-NOT: bridge.parallel
func.func @should_not_mark_reduction(%a: memref<64xf32>, %b: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{[loop_carried_dependence]}}
  %s = affine.for %i = 0 to 64 iter_args(%acc = %zero) -> (f32) {
    %0 = affine.load %a[%i] : memref<64xf32>
    %1 = arith.addf %acc, %0 : f32
    affine.yield %1 : f32
  } {bridge.band}
  affine.store %s, %b[] : memref<f32>
  return
}
