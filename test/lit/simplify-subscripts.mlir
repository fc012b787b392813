// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-simplify-subscripts))' \
// RUN:   | FileCheck %s

// CHECK-LABEL: func private @should_take_declaration
func.func private @should_take_declaration(memref<64xf32>)

// -----

// %j is less than 7, the factor of %i: it is a digit.

// CHECK-LABEL: func @should_take_digits_apart
// CHECK: affine.for %[[I:.*]] = 0 to 56 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 7 {
// CHECK-NEXT: affine.load %arg0[%[[I]] floordiv 7, %[[I]] mod 7, %[[J]]]
func.func @should_take_digits_apart(%in: memref<8x7x7xf32>, %out: memref<56x7xf32>) {
  affine.for %i = 0 to 56 {
    affine.for %j = 0 to 7 {
      %x = affine.load %in[(%i * 7 + %j) floordiv 49, ((%i * 7 + %j) floordiv 7) mod 7, (%i * 7 + %j) mod 7] : memref<8x7x7xf32>
      affine.store %x, %out[%i, %j] : memref<56x7xf32>
    }
  }
  return
}

// -----

// The same subscript with a longer loop: the digits overlap.

// CHECK-LABEL: func @should_not_take_overlapping_digits_apart
// CHECK: affine.load %arg0[(%{{.*}} * 7 + %{{.*}}) floordiv 49]
func.func @should_not_take_overlapping_digits_apart(%in: memref<9xf32>, %out: memref<56x8xf32>) {
  affine.for %i = 0 to 56 {
    affine.for %j = 0 to 8 {
      %x = affine.load %in[(%i * 7 + %j) floordiv 49] : memref<9xf32>
      affine.store %x, %out[%i, %j] : memref<56x8xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_write_remainders
// CHECK: affine.load %arg0[(%{{.*}} + 3) mod 56, (%{{.*}} + 3) mod 7]
func.func @should_write_remainders(%in: memref<56x7xf32>, %out: memref<56xf32>) {
  affine.for %i = 0 to 56 {
    %x = affine.load %in[%i + 3 - ((%i + 3) floordiv 56) * 56, (%i + 3) mod 56 - (((%i + 3) mod 56) floordiv 7) * 7] : memref<56x7xf32>
    affine.store %x, %out[%i] : memref<56xf32>
  }
  return
}

// -----

// A row rolled by three and cut into windows of seven, subscripted by its
// number and by its window: equal elements get equal subscripts, whichever
// variable comes first.

// CHECK-LABEL: func @should_give_one_form
// CHECK: %[[X:.*]] = affine.load %arg0[[[MAP:.*]]] : memref<8x7xf32>
// CHECK: %[[Y:.*]] = affine.load %arg0[[[MAP]]] : memref<8x7xf32>
func.func @should_give_one_form(%in: memref<8x7xf32>, %out: memref<8x7xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 7 {
      %x = affine.load %in[(%i + (%j + 3) floordiv 7) mod 8, (%j + 3) mod 7] : memref<8x7xf32>
      %y = affine.load %in[((%j + %i * 7 + 3) mod 56) floordiv 7, ((%j + %i * 7 + 3) mod 56) mod 7] : memref<8x7xf32>
      %z = arith.addf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<8x7xf32>
    }
  }
  return
}

// -----

// A symbolic bound does not simplify the subscript.

// CHECK-LABEL: func @should_keep_symbolic_digits
// CHECK: affine.load %arg0[(%{{.*}} * 7 + %{{.*}}) floordiv 49]
func.func @should_keep_symbolic_digits(%in: memref<?xf32>, %out: memref<56x?xf32>, %n: index) {
  affine.for %i = 0 to 56 {
    affine.for %j = 0 to %n {
      %x = affine.load %in[(%i * 7 + %j) floordiv 49] : memref<?xf32>
      affine.store %x, %out[%i, %j] : memref<56x?xf32>
    }
  }
  return
}

// -----

// A quotient of a quotient is one quotient: row 128 a + 32 b + c of a tile,
// taken apart and put together again.

// CHECK-LABEL: func @should_divide_quotients_once
// CHECK: affine.for %[[I:.*]] = 0 to 256 {
// CHECK-NEXT: affine.load %arg0[%[[I]]]
func.func @should_divide_quotients_once(%in: memref<256xf32>, %out: memref<256xf32>) {
  affine.for %i = 0 to 256 {
    %x = affine.load %in[%i + (%i floordiv 128) * 128 - ((%i floordiv 32) floordiv 4) * 128] : memref<256xf32>
    affine.store %x, %out[%i] : memref<256xf32>
  }
  return
}

// -----

// With something added between, there are two.

// CHECK-LABEL: func @should_not_divide_shifted_quotients_once
// CHECK: affine.load %arg0[(%{{.*}} floordiv 32 + 1) floordiv 4]
func.func @should_not_divide_shifted_quotients_once(%in: memref<3xf32>, %out: memref<256xf32>) {
  affine.for %i = 0 to 256 {
    %x = affine.load %in[(%i floordiv 32 + 1) floordiv 4] : memref<3xf32>
    affine.store %x, %out[%i] : memref<256xf32>
  }
  return
}
