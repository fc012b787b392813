// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-unroll-and-jam,canonicalize))' \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-unroll-and-jam{min-extent=65}))' \
// RUN:   | FileCheck %s --check-prefix=LONG

// CHECK-LABEL: func private @should_take_declaration
func.func private @should_take_declaration(memref<64xf32>)

// -----

// CHECK-LABEL: func @should_unroll_and_jam
// CHECK: %[[R:.*]] = math.rsqrt
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[J]]]
// CHECK-NEXT: arith.mulf %{{.*}}, %[[R]]
// CHECK-NEXT: affine.store {{.*}}[%{{.*}}, %[[J]]]
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[J]] + 64]
// CHECK-NEXT: arith.mulf %{{.*}}, %[[R]]
// CHECK-NEXT: affine.store {{.*}}[%{{.*}}, %[[J]] + 64]
// LONG-LABEL: func @should_unroll_and_jam
// LONG: affine.for %{{.*}} = 0 to 128
func.func @should_unroll_and_jam(%in: memref<64x128xf32>, %sum: memref<64xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    %s = affine.load %sum[%i] : memref<64xf32>
    %r = math.rsqrt %s : f32
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = arith.mulf %x, %r : f32
      affine.store %y, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// CHECK-LABEL: func @should_not_unroll_without_row_value
// CHECK: affine.for %{{.*}} = 0 to 128 {
func.func @should_not_unroll_without_row_value(%in: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = math.exp %x : f32
      affine.store %y, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// CHECK-LABEL: func @should_not_unroll_what_another_loop_reads
// CHECK-COUNT-2: affine.for %{{.*}} = 0 to 128 {
func.func @should_not_unroll_what_another_loop_reads(%in: memref<64x128xf32>, %sum: memref<64xf32>, %mid: memref<64x128xbf16>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    %s = affine.load %sum[%i] : memref<64xf32>
    %r = math.rsqrt %s : f32
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = arith.mulf %x, %r : f32
      %z = arith.truncf %y : f32 to bf16
      affine.store %z, %mid[%i, %j] : memref<64x128xbf16>
    }
    affine.for %j = 0 to 128 {
      %z = affine.load %mid[%i, %j] : memref<64x128xbf16>
      %x = arith.extf %z : bf16 to f32
      %y = arith.mulf %x, %r : f32
      affine.store %y, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// CHECK-LABEL: func @should_not_unroll_where_factor_does_not_divide
// CHECK: affine.for %{{.*}} = 0 to 129 {
func.func @should_not_unroll_where_factor_does_not_divide(%in: memref<64x129xf32>, %sum: memref<64xf32>, %out: memref<64x129xf32>) {
  affine.for %i = 0 to 64 {
    %s = affine.load %sum[%i] : memref<64xf32>
    %r = math.rsqrt %s : f32
    affine.for %j = 0 to 129 {
      %x = affine.load %in[%i, %j] : memref<64x129xf32>
      %y = arith.mulf %x, %r : f32
      affine.store %y, %out[%i, %j] : memref<64x129xf32>
    }
  } {bridge.band}
  return
}

// -----

// Each element depends on the one before it.

// CHECK-LABEL: func @should_not_unroll_recurrence
// CHECK: affine.for %{{.*}} = 0 to 128 {
func.func @should_not_unroll_recurrence(%t: memref<64x129xf32>, %sum: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %s = affine.load %sum[%i] : memref<64xf32>
    %r = math.rsqrt %s : f32
    affine.for %j = 0 to 128 {
      %x = affine.load %t[%i, %j] : memref<64x129xf32>
      %y = arith.mulf %x, %r : f32
      affine.store %y, %t[%i, %j + 1] : memref<64x129xf32>
    }
  } {bridge.band}
  return
}
