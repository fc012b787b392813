// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-forward-stores,canonicalize))' \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-forward-stores{excess-precision=false},canonicalize))' \
// RUN:   | FileCheck %s --check-prefix=ROUND

// Each function is one band whose second statement reads what the first stored.

// The lanes are reversed: lane j recomputes what lane 127 - j stores, from the
// inputs of that lane.

// CHECK-LABEL: func @should_forward_reversed_lanes
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 128 {
// CHECK-NEXT: affine.load %arg0[%[[I]], %[[J]]]
// CHECK-NEXT: math.exp
// CHECK-NEXT: affine.store %{{.*}}, %arg1[%[[I]], %[[J]]]
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 128 {
// CHECK-NEXT: %[[X:.*]] = affine.load %arg0[%[[I]], -%[[K]] + 127]
// CHECK-NEXT: %[[Y:.*]] = math.exp %[[X]]
// CHECK-NEXT: affine.store %[[Y]], %arg2[%[[I]], %[[K]]]
// CHECK-NEXT: }
// CHECK-NEXT: } {bridge.band}
func.func @should_forward_reversed_lanes(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// Shifted by one: lane j - 1 exists only under the guard, and the copy stays
// under it.

// CHECK-LABEL: func @should_forward_shifted_under_guard
// CHECK: affine.store %{{.*}}, %arg1
// CHECK: affine.for %[[K:.*]] = 0 to 128 {
// CHECK-NEXT: %[[Z:.*]] = affine.if #{{.*}}(%[[K]]) -> f32 {
// CHECK-NEXT: %[[X:.*]] = affine.load %arg0[%{{.*}}, %[[K]] - 1]
// CHECK-NEXT: %[[Y:.*]] = math.exp %[[X]]
// CHECK-NEXT: affine.yield %[[Y]]
// CHECK-NEXT: } else {
// CHECK-NEXT: affine.yield %{{.*}}
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[Z]], %arg2
func.func @should_forward_shifted_under_guard(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %z = affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%j) -> f32 {
        %v = affine.load %t[%i, %j - 1] : memref<64x128xf32>
        affine.yield %v : f32
      } else {
        affine.yield %zero : f32
      }
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// In the other branch the guard does not hold: lane -1 does not exist.

// CHECK-LABEL: func @should_not_forward_in_the_other_branch
// CHECK: affine.load %arg1[%{{.*}}, %{{.*}} - 1]
func.func @should_not_forward_in_the_other_branch(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      // expected-note@below {{iteration (63, 0) writes element [63, 0] of argument 1}}
      affine.store %x, %t[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %z = affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%j) -> f32 {
        affine.yield %zero : f32
      } else {
        // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
        // expected-note@below {{iteration (63, 1) reads it}}
        %v = affine.load %t[%i, %j - 1] : memref<64x128xf32>
        affine.yield %v : f32
      }
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// Memory holds 16 bits. With excess precision, a load that is extended again
// gets the value before rounding; another load gets the rounded one.

// CHECK-LABEL: func @should_forward_from_before_the_rounding
// CHECK: affine.store %{{.*}}, %arg1
// CHECK: affine.for %[[K:.*]] = 0 to 128 {
// CHECK: affine.load %arg0[%{{.*}}, -%[[K]] + 127]
// CHECK-NEXT: %[[EXT:.*]] = arith.extf
// CHECK-NEXT: %[[Y:.*]] = math.exp %[[EXT]]
// CHECK-NEXT: %[[T:.*]] = arith.truncf %[[Y]]
// CHECK-NEXT: affine.store %[[T]], %arg2
// CHECK-NEXT: affine.store %[[Y]], %arg3
// CHECK-NEXT: }
// ROUND-LABEL: func @should_forward_from_before_the_rounding
// ROUND: affine.store %{{.*}}, %arg1
// ROUND: affine.for %[[K:.*]] = 0 to 128 {
// ROUND: affine.load %arg0[%{{.*}}, -%[[K]] + 127]
// ROUND-NEXT: arith.extf
// ROUND-NEXT: %[[Y:.*]] = math.exp
// ROUND-NEXT: %[[T:.*]] = arith.truncf %[[Y]] : f32 to bf16
// ROUND-NEXT: %[[R:.*]] = arith.extf %[[T]] : bf16 to f32
// ROUND-NEXT: affine.store %[[T]], %arg2
// ROUND-NEXT: affine.store %[[R]], %arg3
func.func @should_forward_from_before_the_rounding(%in: memref<64x128xbf16>, %t: memref<64x128xbf16>, %a: memref<64x128xbf16>, %b: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xbf16>
      %e = arith.extf %x : bf16 to f32
      %y = math.exp %e : f32
      %s = arith.truncf %y : f32 to bf16
      affine.store %s, %t[%i, %j] : memref<64x128xbf16>
    }
    affine.for %j = 0 to 128 {
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xbf16>
      %e = arith.extf %z : bf16 to f32
      affine.store %z, %a[%i, %j] : memref<64x128xbf16>
      affine.store %e, %b[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// Extended to another type than it was rounded from: the rounding stays.

// CHECK-LABEL: func @should_forward_rounded_to_another_type
// CHECK: affine.store %{{.*}}, %arg1
// CHECK: arith.truncf %{{.*}} : f64 to f16
// CHECK-NEXT: %[[R:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK-NEXT: affine.store %[[R]], %arg2
func.func @should_forward_rounded_to_another_type(%in: memref<64x128xf64>, %t: memref<64x128xf16>, %b: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf64>
      %s = arith.truncf %x : f64 to f16
      affine.store %s, %t[%i, %j] : memref<64x128xf16>
    }
    affine.for %j = 0 to 128 {
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xf16>
      %e = arith.extf %z : f16 to f32
      affine.store %e, %b[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// A row is stored in two pieces. Each load gets the value of the piece that it
// reads: here the exponential, below the sine.

// CHECK-LABEL: func @should_forward_the_right_piece
// CHECK: affine.store %{{.*}}, %arg1[%[[I:.*]], %[[J:.*]]]
// CHECK: affine.store %{{.*}}, %arg1[%[[I]], %[[J]] + 64]
// CHECK: affine.for %[[K:.*]] = 0 to 64 {
// CHECK-NEXT: %[[A:.*]] = affine.load %arg0[%[[I]], %[[K]] + 64]
// CHECK-NEXT: %[[B:.*]] = math.sin %[[A]]
// CHECK-NEXT: %[[C:.*]] = affine.load %arg0[%[[I]], %[[K]]]
// CHECK-NEXT: %[[D:.*]] = math.exp %[[C]]
// CHECK-NEXT: %[[E:.*]] = arith.subf %[[B]], %[[D]]
// CHECK-NEXT: affine.store %[[E]], %arg2[%[[I]], %[[K]]]
func.func @should_forward_the_right_piece(%in: memref<8x128xf32>, %t: memref<8x128xf32>, %out: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j] : memref<8x128xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%i, %j] : memref<8x128xf32>
      %v = affine.load %in[%i, %j + 64] : memref<8x128xf32>
      %w = math.sin %v : f32
      affine.store %w, %t[%i, %j + 64] : memref<8x128xf32>
    }
    affine.for %j = 0 to 64 {
      %y = affine.load %t[%i, %j + 64] : memref<8x128xf32>
      %x = affine.load %t[%i, %j] : memref<8x128xf32>
      %z = arith.subf %y, %x : f32
      affine.store %z, %out[%i, %j] : memref<8x64xf32>
    }
  } {bridge.band}
  return
}

// -----

// Some lanes read one piece, some the other.

// CHECK-LABEL: func @should_not_forward_from_two_pieces
// CHECK: affine.load %arg1[%{{.*}}, %{{.*}} + 32]
func.func @should_not_forward_from_two_pieces(%in: memref<8x128xf32>, %t: memref<8x128xf32>, %out: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j] : memref<8x128xf32>
      %y = math.exp %x : f32
      // expected-note@below {{iteration (7, 32) writes element [7, 32] of argument 1}}
      affine.store %y, %t[%i, %j] : memref<8x128xf32>
      %v = affine.load %in[%i, %j + 64] : memref<8x128xf32>
      %w = math.sin %v : f32
      affine.store %w, %t[%i, %j + 64] : memref<8x128xf32>
    }
    affine.for %j = 0 to 64 {
      // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
      // expected-note@below {{iteration (7, 0) reads it}}
      %y = affine.load %t[%i, %j + 32] : memref<8x128xf32>
      affine.store %y, %out[%i, %j] : memref<8x64xf32>
    }
  } {bridge.band}
  return
}

// -----

// One store, in the same iteration of the same loop: it is the same lane.

// CHECK-LABEL: func @should_not_touch_value_of_the_same_lane
// CHECK: math.exp
// CHECK: affine.for %[[K:.*]] = 0 to 128 {
// CHECK-NEXT: %[[Z:.*]] = affine.load %arg1[%{{.*}}, %[[K]]]
// CHECK-NEXT: affine.store %[[Z]], %arg2
func.func @should_not_touch_value_of_the_same_lane(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %z = affine.load %t[%i, %j] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// Lane 8 a + b of two loops is lane 8 a + b of one.

// CHECK-LABEL: func @should_not_touch_value_of_the_same_lane_of_other_loops
// CHECK: math.exp
// CHECK: affine.for %[[K:.*]] = 0 to 32 {
// CHECK-NEXT: affine.load %arg1[%{{.*}}, %[[K]]]
func.func @should_not_touch_value_of_the_same_lane_of_other_loops(%in: memref<64x32xf32>, %t: memref<64x32xf32>, %out: memref<64x32xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %a = 0 to 4 {
      affine.for %b = 0 to 8 {
        %x = affine.load %in[%i, %a * 8 + %b] : memref<64x32xf32>
        %y = math.exp %x : f32
        affine.store %y, %t[%i, %a * 8 + %b] : memref<64x32xf32>
      }
    }
    affine.for %j = 0 to 32 {
      %z = affine.load %t[%i, %j] : memref<64x32xf32>
      affine.store %z, %out[%i, %j] : memref<64x32xf32>
    }
  } {bridge.band}
  return
}

// -----

// Interleaved: lane 8 a + b stores element a + 4 b.

// CHECK-LABEL: func @should_forward_from_another_lane_of_other_loops
// CHECK: affine.for %[[K:.*]] = 0 to 32 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[K]] mod 4, %[[K]] floordiv 4]
// CHECK-NEXT: math.exp
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%{{.*}}, %[[K]]]
func.func @should_forward_from_another_lane_of_other_loops(%in: memref<64x4x8xf32>, %t: memref<64x32xf32>, %out: memref<64x32xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %a = 0 to 4 {
      affine.for %b = 0 to 8 {
        %x = affine.load %in[%i, %a, %b] : memref<64x4x8xf32>
        %y = math.exp %x : f32
        affine.store %y, %t[%i, %b * 4 + %a] : memref<64x32xf32>
      }
    }
    affine.for %j = 0 to 32 {
      %z = affine.load %t[%i, %j] : memref<64x32xf32>
      affine.store %z, %out[%i, %j] : memref<64x32xf32>
    }
  } {bridge.band}
  return
}

// -----

// The copy of the second statement reads the first statement's result in
// another lane again: reversed twice is shifted, 127 - (126 - j).

// CHECK-LABEL: func @should_forward_a_chain
// CHECK: affine.store %{{.*}}, %arg1[%[[I:.*]], %[[J:.*]]]
// CHECK: affine.for %[[K:.*]] = 0 to 128 {
// CHECK-NEXT: %[[A:.*]] = affine.load %arg0[%[[I]], -%[[K]] + 127]
// CHECK-NEXT: %[[B:.*]] = math.exp %[[A]]
// CHECK-NEXT: %[[C:.*]] = math.sin %[[B]]
// CHECK-NEXT: affine.store %[[C]], %arg2[%[[I]], %[[K]]]
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[L:.*]] = 0 to 127 {
// CHECK-NEXT: %[[D:.*]] = affine.load %arg0[%[[I]], %[[L]] + 1]
// CHECK-NEXT: %[[E:.*]] = math.exp %[[D]]
// CHECK-NEXT: %[[F:.*]] = math.sin %[[E]]
// CHECK-NEXT: affine.store %[[F]], %arg3[%[[I]], %[[L]]]
// CHECK-NEXT: }
func.func @should_forward_a_chain(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %u: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      %y = math.sin %x : f32
      affine.store %y, %u[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 127 {
      %z = affine.load %u[%i, -%j + 126] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// A value that is computed once a band iteration is not recomputed.

// CHECK-LABEL: func @should_forward_with_row_value
// CHECK: %[[R:.*]] = math.rsqrt
// CHECK: affine.store %{{.*}}, %arg2
// CHECK: affine.for %[[K:.*]] = 0 to 128 {
// CHECK-NEXT: %[[X:.*]] = affine.load %arg0[%{{.*}}, -%[[K]] + 127]
// CHECK-NEXT: arith.mulf %[[X]], %[[R]]
// CHECK-NEXT: affine.store %{{.*}}, %arg3
func.func @should_forward_with_row_value(%in: memref<64x128xf32>, %sum: memref<64xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    %s = affine.load %sum[%i] : memref<64xf32>
    %r = math.rsqrt %s : f32
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = arith.mulf %x, %r : f32
      affine.store %y, %t[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// All lanes may read the reduction of a row.

// CHECK-LABEL: func @should_not_touch_reduction_of_the_row
// CHECK: affine.for %{{.*}} = 0 to 128 {
// CHECK-NEXT: affine.load %arg1[%{{.*}}]
func.func @should_not_touch_reduction_of_the_row(%in: memref<64x128xf32>, %sum: memref<64xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x128xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
    affine.for %j = 0 to 128 {
      %z = affine.load %sum[%i] : memref<64xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// Only the lanes of a segment may read its reduction: the others would have to
// recompute it.

// CHECK-LABEL: func @should_not_recompute_reduction
// CHECK: affine.load %arg1[%{{.*}}, -%{{.*}} + 3]
func.func @should_not_recompute_reduction(%in: memref<64x4x32xf32>, %sum: memref<64x4xf32>, %out: memref<64x4x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 4 {
      %s = affine.for %r = 0 to 32 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b, %r] : memref<64x4x32xf32>
        %c = arith.addf %a, %x : f32
        affine.yield %c : f32
      }
      // expected-note@below {{iteration (63, 1) writes element [63, 1] of argument 1}}
      affine.store %s, %sum[%i, %b] : memref<64x4xf32>
    }
    affine.for %b = 0 to 4 {
      affine.for %j = 0 to 32 {
        // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
        // expected-note@below {{iteration (63, 2, 0) reads it}}
        %z = affine.load %sum[%i, -%b + 3] : memref<64x4xf32>
        affine.store %z, %out[%i, %b, %j] : memref<64x4x32xf32>
      }
    }
  } {bridge.band}
  return
}

// -----

// A running sum is not recomputed either: its store is in the reduction's own
// loop.

// CHECK-LABEL: func @should_not_recompute_running_sum
// CHECK: affine.load %arg1[%{{.*}}, -%{{.*}} + 127]
func.func @should_not_recompute_running_sum(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %j = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = arith.addf %a, %x : f32
      // expected-note@below {{iteration (63, 63) writes element [63, 63] of argument 1}}
      affine.store %y, %t[%i, %j] : memref<64x128xf32>
      affine.yield %y : f32
    }
    affine.for %j = 0 to 128 {
      // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
      // expected-note@below {{iteration (63, 64) reads it}}
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// The last load reads element 128, which no lane stores.

// CHECK-LABEL: func @should_not_forward_out_of_range
// CHECK: affine.load %arg1[%{{.*}}, %{{.*}} + 1]
func.func @should_not_forward_out_of_range(%in: memref<64x128xf32>, %t: memref<64x129xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      // expected-note@below {{iteration (63, 1) writes element [63, 1] of argument 1}}
      affine.store %x, %t[%i, %j] : memref<64x129xf32>
    }
    affine.for %j = 0 to 128 {
      // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
      // expected-note@below {{iteration (63, 0) reads it}}
      %z = affine.load %t[%i, %j + 1] : memref<64x129xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// The number of lanes is a symbol: it is not known that m - 1 - j is one of the
// %n lanes.

// CHECK-LABEL: func @should_not_forward_out_of_symbolic_range
// CHECK: affine.load %arg1[%{{.*}}, -%{{.*}} + symbol(%arg4) - 1]
func.func @should_not_forward_out_of_symbolic_range(%in: memref<64x?xf32>, %t: memref<64x?xf32>, %out: memref<64x?xf32>, %n: index, %m: index) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to %n {
      %x = affine.load %in[%i, %j] : memref<64x?xf32>
      // expected-note@below {{iteration (63, 0) writes element [63, 0] of argument 1}}
      affine.store %x, %t[%i, %j] : memref<64x?xf32>
    }
    affine.for %j = 0 to %m {
      // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
      // expected-note@below {{iteration (63, 4) reads it, where argument 4 = 5 and argument 3 = 3}}
      %z = affine.load %t[%i, -%j + symbol(%m) - 1] : memref<64x?xf32>
      affine.store %z, %out[%i, %j] : memref<64x?xf32>
    }
  } {bridge.band}
  return
}

// -----

// Lane j + n / 2 is not lane j: the symbols in subscripts count. Under the guard
// it is a lane for any n, and its value is computed again.

// CHECK-LABEL: func @should_forward_by_a_symbolic_distance
// CHECK: affine.if
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %{{.*}} + symbol(%arg3)]
// CHECK-NEXT: affine.store %{{.*}}, %arg2
func.func @should_forward_by_a_symbolic_distance(%in: memref<64x?xf32>, %t: memref<64x?xf32>, %out: memref<64x?xf32>, %half: index) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to affine_map<()[s0] -> (s0 * 2)>()[%half] {
      %x = affine.load %in[%i, %j] : memref<64x?xf32>
      affine.store %x, %t[%i, %j] : memref<64x?xf32>
    }
    affine.for %j = 0 to affine_map<()[s0] -> (s0 * 2)>()[%half] {
      affine.if affine_set<(d0)[s0] : (s0 - d0 - 1 >= 0)>(%j)[%half] {
        %z = affine.load %t[%i, %j + symbol(%half)] : memref<64x?xf32>
        affine.store %z, %out[%i, %j] : memref<64x?xf32>
      }
    }
  } {bridge.band}
  return
}

// -----

// Where the guard admits one iteration more, that reads what no lane has stored.

// CHECK-LABEL: func @should_not_forward_a_symbolic_distance
// CHECK: affine.load %arg1[%{{.*}}, %{{.*}} + symbol(%arg3)]
func.func @should_not_forward_a_symbolic_distance(%in: memref<64x?xf32>, %t: memref<64x?xf32>, %out: memref<64x?xf32>, %half: index) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to affine_map<()[s0] -> (s0 * 2)>()[%half] {
      %x = affine.load %in[%i, %j] : memref<64x?xf32>
      // expected-note@below {{iteration (63, 2) writes element [63, 2] of argument 1}}
      affine.store %x, %t[%i, %j] : memref<64x?xf32>
    }
    affine.for %j = 0 to affine_map<()[s0] -> (s0 * 2)>()[%half] {
      affine.if affine_set<(d0)[s0] : (s0 - d0 >= 0)>(%j)[%half] {
        // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
        // expected-note@below {{iteration (63, 0) reads it, where argument 3 = 2}}
        %z = affine.load %t[%i, %j + symbol(%half)] : memref<64x?xf32>
        affine.store %z, %out[%i, %j] : memref<64x?xf32>
      }
    }
  } {bridge.band}
  return
}

// -----

// No lane stores the elements that are read: they are 2 j + 1, and the stored
// ones 2 j'. They are from before the band.

// CHECK-LABEL: func @should_not_forward_between_lanes
// CHECK: affine.load %arg1[%{{.*}}, %{{.*}} * 2 + 1]
func.func @should_not_forward_between_lanes(%in: memref<64x64xf32>, %t: memref<64x128xf32>, %out: memref<64x64xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j] : memref<64x64xf32>
      affine.store %x, %t[%i, %j * 2] : memref<64x128xf32>
    }
    affine.for %j = 0 to 64 {
      %z = affine.load %t[%i, %j * 2 + 1] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x64xf32>
    }
  } {bridge.band}
  return
}

// -----

// The input that the copies would read is overwritten.

// CHECK-LABEL: func @should_not_recompute_from_overwritten_input
// CHECK: affine.load %arg1[%{{.*}}, -%{{.*}} + 127]
func.func @should_not_recompute_from_overwritten_input(%in: memref<64x128xf32>, %t: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
      // expected-note@below {{iteration (63, 63) reads it}}
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      // expected-note@below {{iteration (63, 63) writes element [63, 63] of argument 0}}
      affine.store %z, %in[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// The store comes after the load: the load's element is from before the band.

// CHECK-LABEL: func @should_not_forward_from_a_later_store
// CHECK: affine.load %arg1[%{{.*}}, -%{{.*}} + 127]
func.func @should_not_forward_from_a_later_store(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
      // expected-note@below {{iteration (63, 63) reads element [63, 64] of argument 1}}
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      // expected-note@below {{iteration (63, 64) writes it}}
      affine.store %x, %t[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// Loops that are not below a band are no lanes.

// CHECK-LABEL: func @should_not_touch_loops_without_band
// CHECK: affine.load %arg1[%{{.*}}, -%{{.*}} + 127]
func.func @should_not_touch_loops_without_band(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      affine.store %x, %t[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// Two stores under guards store one half of the row each. The load reads only
// the lower half, which the first one stores.

// CHECK-LABEL: func @should_forward_from_the_guarded_store
// CHECK: affine.if
// CHECK: affine.if
// CHECK: affine.for %[[K:.*]] = 0 to 64 {
// CHECK-NEXT: %[[X:.*]] = affine.load %arg0[%{{.*}}, -%[[K]] + 63]
// CHECK-NEXT: %[[Y:.*]] = math.exp %[[X]]
// CHECK-NEXT: affine.store %[[Y]], %arg3[%{{.*}}, %[[K]]]
// CHECK-NEXT: }
func.func @should_forward_from_the_guarded_store(%in: memref<64x128xf32>, %c: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x64xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      affine.if affine_set<(d0) : (-d0 + 63 >= 0)>(%j) {
        %x = affine.load %in[%i, %j] : memref<64x128xf32>
        %y = math.exp %x : f32
        affine.store %y, %t[%i, %j] : memref<64x128xf32>
      }
      affine.if affine_set<(d0) : (d0 - 64 >= 0)>(%j) {
        %x = affine.load %c[%i, %j] : memref<64x128xf32>
        affine.store %x, %t[%i, %j] : memref<64x128xf32>
      }
    }
    affine.for %j = 0 to 64 {
      %z = affine.load %t[%i, -%j + 63] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x64xf32>
    }
  } {bridge.band}
  return
}

// -----

// Under the guard, some lanes overwrite what the first statement stores.

// CHECK-LABEL: func @should_not_forward_what_is_overwritten_under_guard
// CHECK: affine.load %arg2[%{{.*}}, -%{{.*}} + 127]
func.func @should_not_forward_what_is_overwritten_under_guard(%in: memref<64x128xf32>, %c: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      // expected-note@below {{iteration (63, 63) writes element [63, 63] of argument 2}}
      affine.store %x, %t[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      affine.if affine_set<(d0) : (d0 - 64 >= 0)>(%j) {
        %x = affine.load %c[%i, %j] : memref<64x128xf32>
        affine.store %x, %t[%i, %j] : memref<64x128xf32>
      }
    }
    affine.for %j = 0 to 128 {
      // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
      // expected-note@below {{iteration (63, 64) reads it}}
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// A loop of fewer lanes overwrites some elements, too.

// CHECK-LABEL: func @should_not_forward_what_is_overwritten_in_part
// CHECK: affine.load %arg2[%{{.*}}, %{{.*}}]
func.func @should_not_forward_what_is_overwritten_in_part(%in: memref<64x128xf32>, %c: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      // expected-note@below {{iteration (63, 0) writes element [63, 0] of argument 2}}
      affine.store %x, %t[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 64 {
      %x = affine.load %c[%i, %j] : memref<64x128xf32>
      affine.store %x, %t[%i, %j + 64] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
      // expected-note@below {{iteration (63, 0) reads it}}
      %z = affine.load %t[%i, %j] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// Store and load are in one loop: half of the loads execute before their
// element is stored.

// CHECK-LABEL: func @should_not_forward_from_a_later_iteration
// CHECK: affine.load %arg1[%{{.*}}, -%{{.*}} + 127]
func.func @should_not_forward_from_a_later_iteration(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      // expected-note@below {{iteration (63, 63) writes element [63, 63] of argument 1}}
      affine.store %x, %t[%i, %j] : memref<64x128xf32>
      // expected-remark@below {{[cross_lane_dependence] a load needs another lane's value}}
      // expected-note@below {{iteration (63, 64) reads it}}
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// Each statement reads two lanes of the one before: the number of copies
// doubles with each statement.

// CHECK-LABEL: func @should_not_recompute_without_end
// CHECK-NOT: bridge.band
func.func @should_not_recompute_without_end(%t0: memref<64x128xf32>, %t1: memref<64x128xf32>, %t2: memref<64x128xf32>, %t3: memref<64x128xf32>, %t4: memref<64x128xf32>, %t5: memref<64x128xf32>, %t6: memref<64x128xf32>, %t7: memref<64x128xf32>, %t8: memref<64x128xf32>, %t9: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %t0[%i, 127 - %j] : memref<64x128xf32>
      %y = affine.load %t0[%i, (%j + 1) mod 128] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t1[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t1[%i, 127 - %j] : memref<64x128xf32>
      %y = affine.load %t1[%i, (%j + 1) mod 128] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t2[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t2[%i, 127 - %j] : memref<64x128xf32>
      %y = affine.load %t2[%i, (%j + 1) mod 128] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t3[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t3[%i, 127 - %j] : memref<64x128xf32>
      %y = affine.load %t3[%i, (%j + 1) mod 128] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t4[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t4[%i, 127 - %j] : memref<64x128xf32>
      %y = affine.load %t4[%i, (%j + 1) mod 128] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t5[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t5[%i, 127 - %j] : memref<64x128xf32>
      %y = affine.load %t5[%i, (%j + 1) mod 128] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t6[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t6[%i, 127 - %j] : memref<64x128xf32>
      %y = affine.load %t6[%i, (%j + 1) mod 128] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t7[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t7[%i, 127 - %j] : memref<64x128xf32>
      // expected-remark @+1 {{[budget_exceeded] too much would be computed again}}
      %y = affine.load %t7[%i, (%j + 1) mod 128] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t8[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t8[%i, 127 - %j] : memref<64x128xf32>
      %y = affine.load %t8[%i, (%j + 1) mod 128] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t9[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}

// -----

// Each statement reads the first elements of a pair and of two pairs. The copies
// double with each statement, but are copies of the same two values: they are
// merged, once there are too many.

// CHECK-LABEL: func.func @should_merge_equal_copies
// CHECK-NOT: affine.load %arg8
// CHECK: affine.store %{{.*}}, %arg9
func.func @should_merge_equal_copies(%t0: memref<64x128xf32>, %t1: memref<64x128xf32>, %t2: memref<64x128xf32>, %t3: memref<64x128xf32>, %t4: memref<64x128xf32>, %t5: memref<64x128xf32>, %t6: memref<64x128xf32>, %t7: memref<64x128xf32>, %t8: memref<64x128xf32>, %t9: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %t0[%i, (%j floordiv 2) * 2] : memref<64x128xf32>
      %y = affine.load %t0[%i, (%j floordiv 4) * 4] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t1[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t1[%i, (%j floordiv 2) * 2] : memref<64x128xf32>
      %y = affine.load %t1[%i, (%j floordiv 4) * 4] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t2[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t2[%i, (%j floordiv 2) * 2] : memref<64x128xf32>
      %y = affine.load %t2[%i, (%j floordiv 4) * 4] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t3[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t3[%i, (%j floordiv 2) * 2] : memref<64x128xf32>
      %y = affine.load %t3[%i, (%j floordiv 4) * 4] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t4[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t4[%i, (%j floordiv 2) * 2] : memref<64x128xf32>
      %y = affine.load %t4[%i, (%j floordiv 4) * 4] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t5[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t5[%i, (%j floordiv 2) * 2] : memref<64x128xf32>
      %y = affine.load %t5[%i, (%j floordiv 4) * 4] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t6[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t6[%i, (%j floordiv 2) * 2] : memref<64x128xf32>
      %y = affine.load %t6[%i, (%j floordiv 4) * 4] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t7[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t7[%i, (%j floordiv 2) * 2] : memref<64x128xf32>
      %y = affine.load %t7[%i, (%j floordiv 4) * 4] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t8[%i, %j] : memref<64x128xf32>
    }
    affine.for %j = 0 to 128 {
      %x = affine.load %t8[%i, (%j floordiv 2) * 2] : memref<64x128xf32>
      %y = affine.load %t8[%i, (%j floordiv 4) * 4] : memref<64x128xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t9[%i, %j] : memref<64x128xf32>
    }
  } {bridge.band}
  return
}
