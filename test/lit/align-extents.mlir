// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-align-extents,canonicalize))' \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-align-extents{max-pieces=3},canonicalize))' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=FEW
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-align-extents{min-tile=8 max-pieces=32},canonicalize))' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=SMALL
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-align-extents,canonicalize,bridge-simplify-guards,canonicalize))' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=DECIDED

// CHECK-LABEL: func private @should_take_declaration
func.func private @should_take_declaration(memref<64xf32>)

// -----

// A row of 256 in pieces of 64 and 192: the tile is 64, which also divides the
// offset. Each nest gets its body once for each of its tiles.

// CHECK-LABEL: func @should_align_64_and_192_of_256
// CHECK: affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT: %[[S:.*]] = affine.for %[[R:.*]] = 0 to 64 iter_args(%[[A:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT: %[[X0:.*]] = affine.load %arg0[%[[I]], %[[R]]]
// CHECK-NEXT: %[[A0:.*]] = arith.addf %[[A]], %[[X0]]
// CHECK-NEXT: %[[X1:.*]] = affine.load %arg0[%[[I]], %[[R]] + 64]
// CHECK-NEXT: %[[A1:.*]] = arith.addf %[[A0]], %[[X1]]
// CHECK-NEXT: %[[X2:.*]] = affine.load %arg0[%[[I]], %[[R]] + 128]
// CHECK-NEXT: %[[A2:.*]] = arith.addf %[[A1]], %[[X2]]
// CHECK-NEXT: %[[X3:.*]] = affine.load %arg0[%[[I]], %[[R]] + 192]
// CHECK-NEXT: %[[A3:.*]] = arith.addf %[[A2]], %[[X3]]
// CHECK-NEXT: affine.yield %[[A3]]
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[S]], %arg1[%[[I]]]
// CHECK: affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[J]]]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%{{.*}}, %[[J]]]
// CHECK-NEXT: }
// CHECK: affine.for %[[K:.*]] = 0 to 64 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[K]] + 64]
// CHECK-NEXT: affine.store %{{.*}}, %arg3[%{{.*}}, %[[K]]]
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[K]] + 128]
// CHECK-NEXT: affine.store %{{.*}}, %arg3[%{{.*}}, %[[K]] + 64]
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[K]] + 192]
// CHECK-NEXT: affine.store %{{.*}}, %arg3[%{{.*}}, %[[K]] + 128]
// CHECK-NEXT: }

// The row would have four pieces, more than the limit: no nest is split.
// FEW-LABEL: func @should_align_64_and_192_of_256
// FEW: affine.for %{{.*}} = 0 to 256 iter_args
// FEW: affine.for %{{.*}} = 0 to 64 {
// FEW: affine.for %{{.*}} = 0 to 192 {

// No common tile is less than 64 here.
// SMALL-LABEL: func @should_align_64_and_192_of_256
// SMALL: affine.for %{{.*}} = 0 to 64 iter_args
// SMALL: affine.for %{{.*}} = 0 to 64 {
// SMALL: affine.for %{{.*}} = 0 to 64 {
func.func @should_align_64_and_192_of_256(%in: memref<8x256xf32>, %sum: memref<8xf32>, %a: memref<8x64xf32>, %b: memref<8x192xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    %s = affine.for %r = 0 to 256 iter_args(%acc = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<8x256xf32>
      %c = arith.addf %acc, %x : f32
      affine.yield %c : f32
    }
    affine.store %s, %sum[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j] : memref<8x256xf32>
      affine.store %x, %a[%i, %j] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 192 {
      %x = affine.load %in[%i, %j + 64] : memref<8x256xf32>
      affine.store %x, %b[%i, %j] : memref<8x192xf32>
    }
  }
  return
}

// -----

// 64 divides the extents, but only 32 divides the offset: with tiles of 32,
// pieces of the two nests access the same elements.

// CHECK-LABEL: func @should_refine_the_tile_by_an_offset
// CHECK: affine.for %[[R:.*]] = 0 to 32 iter_args
// CHECK-DAG: affine.load %arg0[%{{.*}}, %[[R]]]
// CHECK-DAG: affine.load %arg0[%{{.*}}, %[[R]] + 32]
// CHECK-DAG: affine.load %arg0[%{{.*}}, %[[R]] + 64]
// CHECK-DAG: affine.load %arg0[%{{.*}}, %[[R]] + 96]
// CHECK: affine.yield
// CHECK: affine.for %[[J:.*]] = 0 to 32 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[J]] + 32]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%{{.*}}, %[[J]]]
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[J]] + 64]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%{{.*}}, %[[J]] + 32]
// CHECK-NEXT: }

// Four pieces of 32 are more than the limit, two of 64 are not: the tile
// divides only the extents.
// FEW-LABEL: func @should_refine_the_tile_by_an_offset
// FEW: affine.for %[[R:.*]] = 0 to 64 iter_args
// FEW-DAG: affine.load %arg0[%{{.*}}, %[[R]]]
// FEW-DAG: affine.load %arg0[%{{.*}}, %[[R]] + 64]
// FEW: affine.for %[[J:.*]] = 0 to 64 {
// FEW-NEXT: affine.load %arg0[%{{.*}}, %[[J]] + 32]
// FEW-NEXT: affine.store
// FEW-NEXT: }
func.func @should_refine_the_tile_by_an_offset(%in: memref<8x128xf32>, %sum: memref<8xf32>, %out: memref<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    %s = affine.for %r = 0 to 128 iter_args(%acc = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<8x128xf32>
      %c = arith.addf %acc, %x : f32
      affine.yield %c : f32
    }
    affine.store %s, %sum[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j + 32] : memref<8x128xf32>
      affine.store %x, %out[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// The extents are equal, but the tile is smaller: the nests access elements at
// an offset of 64, which the tile divides.

// CHECK-LABEL: func @should_refine_equal_extents_by_an_offset
// CHECK: affine.for %[[R:.*]] = 0 to 64 iter_args
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[R]]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[R]] + 64]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: affine.yield
// CHECK: affine.for %[[K:.*]] = 0 to 64 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[K]] + 64]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%{{.*}}, %[[K]]]
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[K]] + 128]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%{{.*}}, %[[K]] + 64]
// CHECK-NEXT: }
func.func @should_refine_equal_extents_by_an_offset(%in: memref<8x192xf32>, %sum: memref<8xf32>, %out: memref<8x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    %s = affine.for %r = 0 to 128 iter_args(%acc = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<8x192xf32>
      %c = arith.addf %acc, %x : f32
      affine.yield %c : f32
    }
    affine.store %s, %sum[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j + 64] : memref<8x192xf32>
      affine.store %x, %out[%i, %j] : memref<8x128xf32>
    }
  }
  return
}

// -----

// Nests that can have all their loops in the band have no lanes to align.

// CHECK-LABEL: func @should_not_touch_nests_of_equal_loops
// CHECK: affine.for %{{.*}} = 0 to 128 {
// CHECK: affine.for %{{.*}} = 0 to 128 {
func.func @should_not_touch_nests_of_equal_loops(%in: memref<8x128xf32>, %t: memref<8x192xf32>, %out: memref<8x128xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<8x128xf32>
      affine.store %x, %t[%i, %j] : memref<8x192xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 128 {
      %x = affine.load %t[%i, %j + 64] : memref<8x192xf32>
      affine.store %x, %out[%i, %j] : memref<8x128xf32>
    }
  }
  return
}

// -----

// An offset of 8 would make the tile smaller than a sector: it is 64, unless
// smaller tiles are allowed.

// CHECK-LABEL: func @should_not_refine_below_the_smallest_tile
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
// CHECK: affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[J]] + 8]
// CHECK-NEXT: affine.store
// CHECK-NEXT: }
// SMALL-LABEL: func @should_not_refine_below_the_smallest_tile
// SMALL: affine.for %{{.*}} = 0 to 8 iter_args
// SMALL-COUNT-16: affine.load %arg0[
// SMALL: affine.for %[[J:.*]] = 0 to 8 {
// SMALL-NEXT: affine.load %arg0[%{{.*}}, %[[J]] + 8]
// SMALL-COUNT-7: affine.load %arg0[
// SMALL-NOT: affine.load
// SMALL: return
func.func @should_not_refine_below_the_smallest_tile(%in: memref<4x128xf32>, %sum: memref<4xf32>, %out: memref<4x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 4 {
    %s = affine.for %r = 0 to 128 iter_args(%acc = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<4x128xf32>
      %c = arith.addf %acc, %x : f32
      affine.yield %c : f32
    }
    affine.store %s, %sum[%i] : memref<4xf32>
  }
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j + 8] : memref<4x128xf32>
      affine.store %x, %out[%i, %j] : memref<4x64xf32>
    }
  }
  return
}

// -----

// The common divisor of the extents is only 8.

// CHECK-LABEL: func @should_not_align_below_the_smallest_tile
// CHECK: affine.for %{{.*}} = 0 to 40 {
// CHECK: affine.for %{{.*}} = 0 to 24 {
// SMALL-LABEL: func @should_not_align_below_the_smallest_tile
// SMALL: affine.for %{{.*}} = 0 to 8 {
// SMALL-COUNT-5: affine.store %{{.*}}, %arg1
// SMALL: affine.for %{{.*}} = 0 to 8 {
// SMALL-COUNT-3: affine.store %{{.*}}, %arg2
func.func @should_not_align_below_the_smallest_tile(%in: memref<4x40xf32>, %a: memref<4x40xf32>, %b: memref<4x24xf32>) {
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 40 {
      %x = affine.load %in[%i, %j] : memref<4x40xf32>
      affine.store %x, %a[%i, %j] : memref<4x40xf32>
    }
  }
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 24 {
      %x = affine.load %in[%i, %j] : memref<4x40xf32>
      affine.store %x, %b[%i, %j] : memref<4x24xf32>
    }
  }
  return
}

// -----

// The guards of the second nest change at 32 and at 96 (`j < 96` and `j >= 32`):
// in a tile of 32 each holds always or never.

// CHECK-LABEL: func @should_refine_the_tile_by_guards
// CHECK: affine.for %{{.*}} = 0 to 32 iter_args
// CHECK-COUNT-4: arith.addf
// CHECK: affine.for %{{.*}} = 0 to 32 {
// CHECK-COUNT-4: affine.if
// CHECK-NOT: affine.if
// CHECK: return
// DECIDED-LABEL: func @should_refine_the_tile_by_guards
// DECIDED: affine.for %[[J:.*]] = 0 to 32 {
// DECIDED-NEXT: affine.store %[[ZERO:.*]], %arg2[%{{.*}}, %[[J]]]
// DECIDED-NEXT: affine.load %arg0[%{{.*}}, %[[J]] + 32]
// DECIDED-NEXT: affine.store %{{.*}}, %arg2[%{{.*}}, %[[J]] + 32]
// DECIDED-NEXT: affine.load %arg0[%{{.*}}, %[[J]] + 64]
// DECIDED-NEXT: affine.store %{{.*}}, %arg2[%{{.*}}, %[[J]] + 64]
// DECIDED-NEXT: affine.store %[[ZERO]], %arg2[%{{.*}}, %[[J]] + 96]
// DECIDED-NEXT: }
// FEW-LABEL: func @should_refine_the_tile_by_guards
// FEW: affine.for %{{.*}} = 0 to 128 iter_args
// FEW: affine.for %{{.*}} = 0 to 128 {
func.func @should_refine_the_tile_by_guards(%in: memref<8x128xf32>, %sum: memref<8xf32>, %b: memref<8x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    %s = affine.for %r = 0 to 128 iter_args(%acc = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<8x128xf32>
      %c = arith.addf %acc, %x : f32
      affine.yield %c : f32
    }
    affine.store %s, %sum[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 128 {
      %y = affine.if affine_set<(d0) : (d0 - 32 >= 0, -d0 + 95 >= 0)>(%j) -> f32 {
        %x = affine.load %in[%i, %j] : memref<8x128xf32>
        affine.yield %x : f32
      } else {
        affine.yield %zero : f32
      }
      affine.store %y, %b[%i, %j] : memref<8x128xf32>
    }
  }
  return
}

// -----

// Comparisons of the subscript count too: `j < 64` and `j > 31` change at 64
// and 32.

// CHECK-LABEL: func @should_refine_the_tile_by_comparisons
// CHECK: affine.for %{{.*}} = 0 to 32 iter_args
// CHECK-COUNT-4: arith.addf
// CHECK: affine.for %{{.*}} = 0 to 32 {
// CHECK-COUNT-4: arith.cmpi slt
// DECIDED-LABEL: func @should_refine_the_tile_by_comparisons
// DECIDED-NOT: arith.cmpi
// DECIDED: return
func.func @should_refine_the_tile_by_comparisons(%in: memref<8x128xf32>, %sum: memref<8xf32>, %b: memref<8x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %c31 = arith.constant 31 : i64
  %c64 = arith.constant 64 : i64
  affine.for %i = 0 to 8 {
    %s = affine.for %r = 0 to 128 iter_args(%acc = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<8x128xf32>
      %c = arith.addf %acc, %x : f32
      affine.yield %c : f32
    }
    affine.store %s, %sum[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 128 {
      %k = arith.index_cast %j : index to i64
      %below = arith.cmpi slt, %k, %c64 : i64
      %above = arith.cmpi sgt, %k, %c31 : i64
      %both = arith.andi %below, %above : i1
      %x = affine.load %in[%i, %j] : memref<8x128xf32>
      %y = arith.select %both, %x, %zero : f32
      affine.store %y, %b[%i, %j] : memref<8x128xf32>
    }
  }
  return
}

// -----

// Inner loops of two dimensions: the innermost one is tiled, the other unrolled,
// in the order of the loops.

// CHECK-LABEL: func @should_align_two_dimensional_loops
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 32 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, 0, %[[J]]]
// CHECK-NEXT: affine.store
// CHECK-NEXT: affine.load %arg0[%{{.*}}, 0, %[[J]] + 32]
// CHECK-NEXT: affine.store
// CHECK-NEXT: affine.load %arg0[%{{.*}}, 1, %[[J]]]
// CHECK-NEXT: affine.store
// CHECK-NEXT: affine.load %arg0[%{{.*}}, 1, %[[J]] + 32]
// CHECK-NEXT: affine.store
// CHECK-NEXT: affine.load %arg0[%{{.*}}, 2, %[[J]]]
// CHECK-NEXT: affine.store
// CHECK-NEXT: affine.load %arg0[%{{.*}}, 2, %[[J]] + 32]
// CHECK-NEXT: affine.store %{{.*}}, %arg1[%{{.*}}, 2, %[[J]] + 32]
// CHECK-NEXT: }
// CHECK: affine.for %[[K:.*]] = 0 to 32 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, 1, %[[K]]]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%{{.*}}, %[[K]]]
// CHECK-NEXT: }
func.func @should_align_two_dimensional_loops(%in: memref<8x3x64xf32>, %a: memref<8x3x64xf32>, %b: memref<8x32xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %h = 0 to 3 {
      affine.for %j = 0 to 64 {
        %x = affine.load %in[%i, %h, %j] : memref<8x3x64xf32>
        affine.store %x, %a[%i, %h, %j] : memref<8x3x64xf32>
      }
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%i, 1, %j] : memref<8x3x64xf32>
      affine.store %x, %b[%i, %j] : memref<8x32xf32>
    }
  }
  return
}

// -----

// A running sum stores each partial sum, which pieces would change. The other
// nest is not split either.

// CHECK-LABEL: func @should_not_align_running_sum
// CHECK: affine.for %{{.*}} = 0 to 128 iter_args
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_align_running_sum(%in: memref<8x128xf32>, %t: memref<8x128xf32>, %out: memref<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    // expected-remark@+1 {{[reduction_not_splittable] its iterations cannot be reordered}}
    %s = affine.for %j = 0 to 128 iter_args(%acc = %zero) -> (f32) {
      %x = affine.load %in[%i, %j] : memref<8x128xf32>
      %y = arith.addf %acc, %x : f32
      affine.store %y, %t[%i, %j] : memref<8x128xf32>
      affine.yield %y : f32
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j + 64] : memref<8x128xf32>
      affine.store %x, %out[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// A recurrence through memory.

// CHECK-LABEL: func @should_not_align_recurrence
// CHECK: affine.for %{{.*}} = 0 to 128 {
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_align_recurrence(%t: memref<8x129xf32>, %out: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    // expected-remark@+1 {{[reduction_not_splittable] its iterations cannot be reordered}}
    affine.for %j = 0 to 128 {
      %x = affine.load %t[%i, %j] : memref<8x129xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%i, %j + 1] : memref<8x129xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %t[%i, %j + 64] : memref<8x129xf32>
      affine.store %x, %out[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_align_views
// CHECK: affine.for %{{.*}} = 0 to 128 {
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_align_views(%t: memref<8x128xf32, strided<[1, 1]>>, %a: memref<8x128xf32>, %out: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    // expected-remark@+1 {{[aliasing] an accessed memref is a view or has a layout of its own}}
    affine.for %j = 0 to 128 {
      %x = affine.load %a[%i, %j] : memref<8x128xf32>
      affine.store %x, %t[%i, %j] : memref<8x128xf32, strided<[1, 1]>>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %a[%i, %j] : memref<8x128xf32>
      affine.store %x, %out[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_touch_equal_extents
// CHECK: affine.for %{{.*}} = 0 to 128 iter_args
// CHECK: affine.for %[[J:.*]] = 0 to 128 {
// CHECK-NEXT: affine.load %arg0
// CHECK-NEXT: affine.store %{{.*}}, %arg2
// CHECK-NEXT: }
// SMALL-LABEL: func @should_not_touch_equal_extents
// SMALL: affine.for %{{.*}} = 0 to 128 iter_args
// SMALL: affine.for %{{.*}} = 0 to 128 {
func.func @should_not_touch_equal_extents(%in: memref<8x128xf32>, %sum: memref<8xf32>, %out: memref<8x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    %s = affine.for %r = 0 to 128 iter_args(%acc = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<8x128xf32>
      %c = arith.addf %acc, %x : f32
      affine.yield %c : f32
    }
    affine.store %s, %sum[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<8x128xf32>
      affine.store %x, %out[%i, %j] : memref<8x128xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_align_nests_that_share_nothing
// CHECK: affine.for %{{.*}} = 0 to 128 {
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_align_nests_that_share_nothing(%a: memref<8x128xf32>, %b: memref<8x128xf32>, %c: memref<8x64xf32>, %d: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 128 {
      %x = affine.load %a[%i, %j] : memref<8x128xf32>
      affine.store %x, %b[%i, %j] : memref<8x128xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %c[%i, %j] : memref<8x64xf32>
      affine.store %x, %d[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_align_symbolic_extents
// CHECK: affine.for %{{.*}} = 0 to %arg3 {
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_align_symbolic_extents(%in: memref<8x?xf32>, %a: memref<8x?xf32>, %b: memref<8x64xf32>, %n: index) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to %n {
      %x = affine.load %in[%i, %j] : memref<8x?xf32>
      affine.store %x, %a[%i, %j] : memref<8x?xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j] : memref<8x?xf32>
      affine.store %x, %b[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// A symbolic row of two pieces and one of one piece: each iteration of the
// constant loop is a piece, wherever the loop is in the chain.

// CHECK-LABEL: func @should_unroll_around_symbolic_tile
// CHECK: affine.for %[[I:.*]] = 0 to %arg4 {
// CHECK-NEXT: %[[S:.*]] = affine.for %[[R:.*]] = 0 to %arg5 iter_args(%[[A:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT: %[[X0:.*]] = affine.load %arg0[%[[I]], 0, %[[R]]]
// CHECK-NEXT: %[[A0:.*]] = arith.addf %[[A]], %[[X0]]
// CHECK-NEXT: %[[X1:.*]] = affine.load %arg0[%[[I]], 1, %[[R]]]
// CHECK-NEXT: %[[A1:.*]] = arith.addf %[[A0]], %[[X1]]
// CHECK-NEXT: affine.yield %[[A1]]
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[S]], %arg1[%[[I]]]
// CHECK: affine.for %[[J:.*]] = 0 to %arg5 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, 1, %[[J]]]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%{{.*}}, %[[J]]]
// CHECK-NEXT: }
// CHECK: affine.for %[[K:.*]] = 0 to %arg5 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, 0, %[[K]]]
// CHECK-NEXT: affine.store %{{.*}}, %arg3[%{{.*}}, %[[K]], 0]
// CHECK-NEXT: affine.load %arg0[%{{.*}}, 1, %[[K]]]
// CHECK-NEXT: affine.store %{{.*}}, %arg3[%{{.*}}, %[[K]], 1]
// CHECK-NEXT: }
func.func @should_unroll_around_symbolic_tile(%in: memref<?x2x?xf32>, %sum: memref<?xf32>, %a: memref<?x?xf32>, %b: memref<?x?x2xf32>, %rows: index, %part: index) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to %rows {
    %s = affine.for %p = 0 to 2 iter_args(%outer = %zero) -> (f32) {
      %t = affine.for %r = 0 to %part iter_args(%acc = %outer) -> (f32) {
        %x = affine.load %in[%i, %p, %r] : memref<?x2x?xf32>
        %y = arith.addf %acc, %x : f32
        affine.yield %y : f32
      }
      affine.yield %t : f32
    }
    affine.store %s, %sum[%i] : memref<?xf32>
  }
  affine.for %i = 0 to %rows {
    affine.for %j = 0 to %part {
      %x = affine.load %in[%i, 1, %j] : memref<?x2x?xf32>
      affine.store %x, %a[%i, %j] : memref<?x?xf32>
    }
  }
  affine.for %i = 0 to %rows {
    affine.for %k = 0 to %part {
      affine.for %p = 0 to 2 {
        %x = affine.load %in[%i, %p, %k] : memref<?x2x?xf32>
        affine.store %x, %b[%i, %k, %p] : memref<?x?x2xf32>
      }
    }
  }
  return
}

// -----

// Two different symbols have no common tile, nor have a symbol and a number.

// CHECK-LABEL: func @should_not_unroll_around_different_tiles
// CHECK: affine.for %{{.*}} = 0 to 2 iter_args
// CHECK: affine.for %{{.*}} = 0 to %arg4 iter_args
func.func @should_not_unroll_around_different_tiles(%in: memref<?x2x?xf32>, %sum: memref<?xf32>, %a: memref<?x?xf32>, %rows: index, %part: index, %other: index) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to %rows {
    %s = affine.for %p = 0 to 2 iter_args(%outer = %zero) -> (f32) {
      %t = affine.for %r = 0 to %part iter_args(%acc = %outer) -> (f32) {
        %x = affine.load %in[%i, %p, %r] : memref<?x2x?xf32>
        %y = arith.addf %acc, %x : f32
        affine.yield %y : f32
      }
      affine.yield %t : f32
    }
    affine.store %s, %sum[%i] : memref<?xf32>
  }
  affine.for %i = 0 to %rows {
    affine.for %j = 0 to %other {
      %x = affine.load %in[%i, 1, %j] : memref<?x2x?xf32>
      affine.store %x, %a[%i, %j] : memref<?x?xf32>
    }
  }
  return
}

// -----

// A running sum has an order, which pieces would change.

// CHECK-LABEL: func @should_not_unroll_ordered_iterations
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to %arg3 {
func.func @should_not_unroll_ordered_iterations(%in: memref<?x2x?xf32>, %a: memref<?x?xf32>, %rows: index, %part: index) {
  affine.for %i = 0 to %rows {
    // expected-remark @below {{[reduction_not_splittable] its iterations cannot be reordered}}
    affine.for %p = 0 to 2 {
      affine.for %r = 0 to %part {
        %x = affine.load %in[%i, 0, 0] : memref<?x2x?xf32>
        %z = affine.load %in[%i, %p, %r] : memref<?x2x?xf32>
        %y = arith.addf %x, %z : f32
        affine.store %y, %in[%i, 0, 0] : memref<?x2x?xf32>
      }
    }
  }
  affine.for %i = 0 to %rows {
    affine.for %j = 0 to %part {
      %x = affine.load %in[%i, 1, %j] : memref<?x2x?xf32>
      affine.store %x, %a[%i, %j] : memref<?x?xf32>
    }
  }
  return
}
