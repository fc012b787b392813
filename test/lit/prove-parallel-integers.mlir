// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-prove-parallel))' \
// RUN:   | FileCheck %s

// Upstream's analysis alone does not prove the outer loop.
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(affine-parallelize))' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=UPSTREAM

// No two iterations write the same element, but the proof needs integers: with
// a fractional quotient, any two could.

// 7 i + j numbers the 56 iterations, and rolling by three keeps the numbers
// distinct.

// CHECK-LABEL: func @should_prove_rolled_store
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 7 {
// CHECK: } {bridge.band, bridge.parallel}
// CHECK-NEXT: } {bridge.band, bridge.parallel}
// UPSTREAM-LABEL: func @should_prove_rolled_store
// UPSTREAM: affine.for %{{.*}} = 0 to 8 {
func.func @should_prove_rolled_store(%in: memref<8x7xf32>, %out: memref<56xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 7 {
      %x = affine.load %in[%i, %j] : memref<8x7xf32>
      affine.store %x, %out[(%i * 7 + %j + 3) mod 56] : memref<56xf32>
    } {bridge.band}
  } {bridge.band}
  return
}

// -----

// One iteration more: the last and the first write the same element.

// CHECK-LABEL: func @should_not_prove_rolled_store_that_wraps
// CHECK-NOT: bridge.parallel
func.func @should_not_prove_rolled_store_that_wraps(%in: memref<57xf32>, %out: memref<56xf32>) {
  // expected-remark@+1 {{[loop_carried_dependence] an iteration needs another's result}}
  affine.for %i = 0 to 57 {
    %x = affine.load %in[%i] : memref<57xf32>
    // expected-note@below {{iteration (0) writes element [3] of argument 1}}
    // expected-note@below {{iteration (56) writes it}}
    affine.store %x, %out[(%i + 3) mod 56] : memref<56xf32>
  } {bridge.band}
  return
}

// -----

// mod 48 of 56: (0, 0) and (6, 6) write the same element, 3 and 51; the seven
// iterations of one i do not.

// CHECK-LABEL: func @should_prove_inner_loop_alone
// CHECK: } {bridge.band, bridge.parallel}
// CHECK-NEXT: } {bridge.band}
func.func @should_prove_inner_loop_alone(%in: memref<8x7xf32>, %out: memref<48xf32>) {
  // expected-remark@+1 {{[loop_carried_dependence] an iteration needs another's result}}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 7 {
      %x = affine.load %in[%i, %j] : memref<8x7xf32>
      // expected-note@below {{iteration (0, 1) writes element [4] of argument 1}}
      // expected-note@below {{iteration (7, 0) writes it}}
      affine.store %x, %out[(%i * 7 + %j + 3) mod 48] : memref<48xf32>
    } {bridge.band}
  } {bridge.band}
  return
}

// -----

// Each iteration reads what it stored itself, and no other iteration stores
// that.

// CHECK-LABEL: func @should_prove_rolled_store_and_load
// CHECK: } {bridge.band, bridge.parallel}
// CHECK-NEXT: } {bridge.band, bridge.parallel}
func.func @should_prove_rolled_store_and_load(%in: memref<8x7xf32>, %t: memref<56xf32>, %out: memref<8x7xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 7 {
      %x = affine.load %in[%i, %j] : memref<8x7xf32>
      affine.store %x, %t[(%i * 7 + %j + 3) mod 56] : memref<56xf32>
      %y = affine.load %t[(%i * 7 + %j + 3) mod 56] : memref<56xf32>
      affine.store %y, %out[%i, %j] : memref<8x7xf32>
    } {bridge.band}
  } {bridge.band}
  return
}

// -----

// Rolled by four, but stored rolled by three: it is the next iteration's
// element.

// CHECK-LABEL: func @should_not_prove_load_of_another_roll
// CHECK-NOT: bridge.parallel
func.func @should_not_prove_load_of_another_roll(%in: memref<56xf32>, %t: memref<56xf32>, %out: memref<56xf32>) {
  // expected-remark@+1 {{[loop_carried_dependence] an iteration needs another's result}}
  affine.for %i = 0 to 56 {
    %x = affine.load %in[%i] : memref<56xf32>
    // expected-note@below {{iteration (0) writes element [3] of argument 1}}
    affine.store %x, %t[(%i + 3) mod 56] : memref<56xf32>
    // expected-note@below {{iteration (55) reads it}}
    %y = affine.load %t[(%i + 4) mod 56] : memref<56xf32>
    affine.store %y, %out[%i] : memref<56xf32>
  } {bridge.band}
  return
}

// -----

// Both digits of i: each i has an element of its own.

// CHECK-LABEL: func @should_prove_digits
// CHECK: } {bridge.band, bridge.parallel}
func.func @should_prove_digits(%in: memref<64xf32>, %out: memref<8x8xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %out[%i mod 8, %i floordiv 8] : memref<8x8xf32>
  } {bridge.band}
  return
}

// -----

// The lower digit alone: several i have the same element.

// CHECK-LABEL: func @should_not_prove_one_of_two_digits
// CHECK-NOT: bridge.parallel
func.func @should_not_prove_one_of_two_digits(%in: memref<64xf32>, %out: memref<8x8xf32>) {
  // expected-remark@+1 {{[loop_carried_dependence]}}
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    // expected-note@below {{iteration (15) writes it}}
    // expected-note@below {{iteration (7) writes element [7, 0] of argument 1}}
    affine.store %x, %out[%i mod 8, 0] : memref<8x8xf32>
  } {bridge.band}
  return
}

// -----

// A loop that carries a value is not parallel, whatever elements it accesses.

// CHECK-LABEL: func @should_not_prove_loop_that_carries_values
// CHECK-NOT: bridge.parallel
func.func @should_not_prove_loop_that_carries_values(%in: memref<56xf32>, %out: memref<56xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{[loop_carried_dependence]}}
  %s = affine.for %i = 0 to 56 iter_args(%a = %zero) -> (f32) {
    %x = affine.load %in[%i] : memref<56xf32>
    %y = arith.addf %a, %x : f32
    affine.store %y, %out[(%i + 3) mod 56] : memref<56xf32>
    affine.yield %y : f32
  } {bridge.band}
  return
}
