// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands{segments=true}))' \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands))' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=WHOLE

// How deep a band may be, and what its lanes may read of each other. WHOLE is
// without segments, for a target that is not SIMT.

// The consumer reverses the row: with both loops in the band, iteration (i, j)
// would depend on (i, 127 - j). With one loop, the dependence is between lanes.

// CHECK-LABEL: func @should_fuse_at_a_shallower_band
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 128 {
// CHECK: affine.store %{{.*}}, %arg1[%[[I]], %[[J]]]
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 128 {
// CHECK-NEXT: affine.load %arg1[%[[I]], -%[[K]] + 127]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%[[I]], %[[K]]]
// CHECK-NEXT: }
// CHECK-NEXT: } {bridge.band,
// CHECK-NEXT: return
// WHOLE-LABEL: func @should_fuse_at_a_shallower_band
// WHOLE: affine.load %arg1[%{{.*}}, -%{{.*}} + 127]
// WHOLE-NEXT: affine.store
// WHOLE-NEXT: }
// WHOLE-NEXT: } {bridge.band,
// WHOLE-NEXT: return
func.func @should_fuse_at_a_shallower_band(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%i, %j] : memref<64x128xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// Two of three common loops are the band.

// CHECK-LABEL: func @should_fuse_at_the_deepest_band_that_is_legal
// CHECK: affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 16 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 32 {
// CHECK: affine.store %{{.*}}, %arg1
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 32 {
// CHECK-NEXT: affine.load %arg1[%[[I]], %[[J]], -%[[K]] + 31]
// CHECK-NEXT: affine.store
// CHECK-NEXT: }
// CHECK-NEXT: } {bridge.band}
// CHECK-NEXT: } {bridge.band,
// CHECK-NEXT: return
func.func @should_fuse_at_the_deepest_band_that_is_legal(%in: memref<8x16x32xf32>, %t: memref<8x16x32xf32>, %out: memref<8x16x32xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 16 {
      affine.for %k = 0 to 32 {
        %x = affine.load %in[%i, %j, %k] : memref<8x16x32xf32>
        affine.store %x, %t[%i, %j, %k] : memref<8x16x32xf32>
      }
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 16 {
      affine.for %k = 0 to 32 {
        %x = affine.load %t[%i, %j, -%k + 31] : memref<8x16x32xf32>
        affine.store %x, %out[%i, %j, %k] : memref<8x16x32xf32>
      }
    }
  }
  return
}

// -----

// A reduction over a row and one over its 8 segments have equally many lanes,
// 256. The consumer reads each segment's sum in that segment's lanes. The loop
// over the rows is the band, and no loop below it is.

// CHECK-LABEL: func @should_fuse_row_and_segments
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: %[[S:.*]] = affine.for %{{.*}} = 0 to 256 iter_args
// CHECK: affine.store %[[S]], %arg1[%[[I]]]
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 8 {
// CHECK-NEXT: %[[P:.*]] = affine.for %{{.*}} = 0 to 32 iter_args
// CHECK: affine.store %[[P]], %arg2[%[[I]], %[[B]]]
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 256 {
// CHECK-NEXT: affine.load %arg1[%[[I]]]
// CHECK-NEXT: affine.load %arg2[%[[I]], %[[J]] floordiv 32]
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: affine.store %{{.*}}, %arg3[%[[I]], %[[J]]]
// CHECK-NEXT: }
// CHECK-NEXT: } {bridge.band, bridge.kernels = [0, 1, 2], bridge.nodes = ["row", "segments", "scale"]}
// CHECK-NEXT: return

// Without segments, the band of the second nest is (i, b), which the others do
// not have.

// WHOLE-LABEL: func @should_fuse_row_and_segments
// WHOLE: affine.for %[[I:.*]] = 0 to 64 {
// WHOLE-NEXT: affine.for %[[B:.*]] = 0 to 8 {
// WHOLE-NEXT: affine.for %{{.*}} = 0 to 32 iter_args
// WHOLE: affine.store %{{.*}}, %arg2
// WHOLE-NEXT: }
// WHOLE-NEXT: } {bridge.kernels = [1], bridge.nodes = ["segments"]}
func.func @should_fuse_row_and_segments(%in: memref<64x256xf32>, %row: memref<64xf32>, %segment: memref<64x8xf32>, %out: memref<64x256xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %c = arith.addf %a, %x : f32
      affine.yield %c : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["row"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 8 {
      %s = affine.for %r = 0 to 32 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 32 + %r] : memref<64x256xf32>
        %c = arith.addf %a, %x : f32
        affine.yield %c : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x8xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["segments"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 256 {
      %x = affine.load %row[%i] : memref<64xf32>
      %y = affine.load %segment[%i, %j floordiv 32] : memref<64x8xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x256xf32>
    }
  } {bridge.kernels = [2], bridge.nodes = ["scale"]}
  return
}

// -----

// The consumer may have the loops of the segments: b is the segment, and all of
// its lanes read its reduction. Both loops are the band.

// CHECK-LABEL: func @should_fuse_segments_as_band
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 {
// CHECK: affine.for %{{.*}} = 0 to 32 iter_args
// CHECK: affine.for %{{.*}} = 0 to 32 {
// CHECK: } {bridge.band}
// CHECK-NEXT: } {bridge.band,
// CHECK-NEXT: return
// WHOLE-LABEL: func @should_fuse_segments_as_band
// WHOLE: affine.for %{{.*}} = 0 to 64 {
// WHOLE-NEXT: affine.for %{{.*}} = 0 to 8 {
// WHOLE: } {bridge.band}
// WHOLE-NEXT: } {bridge.band,
// WHOLE-NEXT: return
func.func @should_fuse_segments_as_band(%in: memref<64x8x32xf32>, %segment: memref<64x8xf32>, %out: memref<64x8x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 8 {
      %s = affine.for %r = 0 to 32 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b, %r] : memref<64x8x32xf32>
        %c = arith.addf %a, %x : f32
        affine.yield %c : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x8xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 8 {
      affine.for %j = 0 to 32 {
        %y = affine.load %segment[%i, %b] : memref<64x8xf32>
        affine.store %y, %out[%i, %b, %j] : memref<64x8x32xf32>
      }
    }
  }
  return
}

// -----

// A band of two loops becomes a band of one when a nest of the row is fused
// with it: its inner loop becomes lanes.

// CHECK-LABEL: func @should_fuse_band_of_segments_with_row
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 {
// CHECK: affine.for %{{.*}} = 0 to 32 iter_args
// CHECK: affine.store %{{.*}}, %arg1
// CHECK: affine.for %{{.*}} = 0 to 32 {
// CHECK: affine.store %{{.*}}, %arg2
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: %[[S:.*]] = affine.for %{{.*}} = 0 to 256 iter_args
// CHECK: affine.store %[[S]], %arg3[%[[I]]]
// CHECK-NEXT: } {bridge.band,
// CHECK-NEXT: return
// WHOLE-LABEL: func @should_fuse_band_of_segments_with_row
// WHOLE: affine.store %{{.*}}, %arg2
// WHOLE-NEXT: }
// WHOLE-NEXT: } {bridge.band}
// WHOLE-NEXT: } {bridge.band,
// WHOLE-NEXT: affine.for %{{.*}} = 0 to 64 {
// WHOLE-NEXT: affine.for %{{.*}} = 0 to 256 iter_args
func.func @should_fuse_band_of_segments_with_row(%in: memref<64x256xf32>, %segment: memref<64x8xf32>, %t: memref<64x256xf32>, %sum: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 8 {
      %s = affine.for %r = 0 to 32 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 32 + %r] : memref<64x256xf32>
        %c = arith.addf %a, %x : f32
        affine.yield %c : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x8xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 8 {
      affine.for %j = 0 to 32 {
        %y = affine.load %segment[%i, %b] : memref<64x8xf32>
        affine.store %y, %t[%i, %b * 32 + %j] : memref<64x256xf32>
      }
    }
  }
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %t[%i, %r] : memref<64x256xf32>
      %c = arith.addf %a, %x : f32
      affine.yield %c : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  return
}

// -----

// Lane j reads the sum of segment j mod 8, but is in segment j floordiv 32.

// CHECK-LABEL: func @should_not_fuse_reader_of_another_segment
// CHECK-NOT: bridge.band
// WHOLE-LABEL: func @should_not_fuse_reader_of_another_segment
// WHOLE-NOT: bridge.band
func.func @should_not_fuse_reader_of_another_segment(%in: memref<64x256xf32>, %segment: memref<64x8xf32>, %out: memref<64x256xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 8 {
      %s = affine.for %r = 0 to 32 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 32 + %r] : memref<64x256xf32>
        %c = arith.addf %a, %x : f32
        affine.yield %c : f32
      }
      // expected-note@below {{iteration (63, 0) writes element [63, 0] of argument 1}}
      affine.store %s, %segment[%i, %b] : memref<64x8xf32>
    }
  }
  // expected-remark@+1 {{[cross_lane_dependence] a load needs what another lane reduces}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 256 {
      // expected-note@below {{iteration (63, 8) reads it}}
      %y = affine.load %segment[%i, %j mod 8] : memref<64x8xf32>
      affine.store %y, %out[%i, %j] : memref<64x256xf32>
    }
  }
  return
}

// -----

// The segments interleave: segment b has the lanes 32 b + r of its loops, but
// the elements 8 r + b. The consumer reads them in other lanes.

// CHECK-LABEL: func @should_not_fuse_reader_of_interleaved_segments
// CHECK-NOT: bridge.band
func.func @should_not_fuse_reader_of_interleaved_segments(%in: memref<64x256xf32>, %segment: memref<64x8xf32>, %out: memref<64x256xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 8 {
      %s = affine.for %r = 0 to 32 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %r * 8 + %b] : memref<64x256xf32>
        %c = arith.addf %a, %x : f32
        affine.yield %c : f32
      }
      // expected-note@below {{iteration (63, 0) writes element [63, 0] of argument 1}}
      affine.store %s, %segment[%i, %b] : memref<64x8xf32>
    }
  }
  // expected-remark@+1 {{[cross_lane_dependence] a load needs what another lane reduces}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 256 {
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      // expected-note@below {{iteration (63, 8) reads it}}
      %y = affine.load %segment[%i, %j mod 8] : memref<64x8xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x256xf32>
    }
  }
  return
}

// -----

// The segments in reverse: segment 7 - b is another lane's.

// CHECK-LABEL: func @should_not_fuse_reader_of_reversed_segments
// CHECK-NOT: bridge.band
func.func @should_not_fuse_reader_of_reversed_segments(%in: memref<64x8x32xf32>, %segment: memref<64x8xf32>, %out: memref<64x8x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 8 {
      %s = affine.for %r = 0 to 32 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b, %r] : memref<64x8x32xf32>
        %c = arith.addf %a, %x : f32
        affine.yield %c : f32
      }
      // expected-note@below {{iteration (63, 3) writes element [63, 3] of argument 1}}
      affine.store %s, %segment[%i, %b] : memref<64x8xf32>
    }
  }
  // The first refusal is the one that is said: that of the deepest band.
  // expected-remark@+1 {{[loop_carried_dependence] merged, one band iteration would need another's result}}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 8 {
      affine.for %j = 0 to 32 {
        // expected-note@below {{iteration (63, 4, 0) reads it}}
        %y = affine.load %segment[%i, -%b + 7] : memref<64x8xf32>
        affine.store %y, %out[%i, %b, %j] : memref<64x8x32xf32>
      }
    }
  }
  return
}

// -----

// A running sum is read in reverse: each lane needs another lane's sum, which
// cannot be recomputed.

// CHECK-LABEL: func @should_not_fuse_reader_of_reversed_running_sum
// CHECK-NOT: bridge.band
func.func @should_not_fuse_reader_of_reversed_running_sum(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %j = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = arith.addf %a, %x : f32
      // expected-note@below {{iteration (63, 63) writes element [63, 63] of argument 1}}
      affine.store %y, %t[%i, %j] : memref<64x128xf32>
      affine.yield %y : f32
    }
  }
  // expected-remark@+1 {{[cross_lane_dependence] a load needs what another lane reduces}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      // expected-note@below {{iteration (63, 64) reads it}}
      %z = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// The last lane reads an element that the band does not store.

// CHECK-LABEL: func @should_not_fuse_reader_of_unknown_element
// CHECK-NOT: bridge.band
func.func @should_not_fuse_reader_of_unknown_element(%in: memref<64x128xf32>, %t: memref<64x129xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %j = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      // expected-note@below {{iteration (63, 1) writes element [63, 1] of argument 1}}
      affine.store %x, %t[%i, %j] : memref<64x129xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
  }
  // expected-remark@+1 {{[cross_lane_dependence] a load needs an element that its band iteration writes, and which store does is not proven}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      // expected-note@below {{iteration (63, 0) reads it}}
      %z = affine.load %t[%i, %j + 1] : memref<64x129xf32>
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// A guard outside the lanes: the store of a band iteration is below one.

// CHECK-LABEL: func @should_fuse_guarded_row_values
// CHECK: bridge.band
// CHECK-NEXT: return
// WHOLE-LABEL: func @should_fuse_guarded_row_values
// WHOLE: bridge.band
func.func @should_fuse_guarded_row_values(%in: memref<28xf32>, %t: memref<24xf32>, %out: memref<24xf32>) {
  affine.for %i = 0 to 28 {
    affine.if affine_set<(d0) : (-d0 + 23 >= 0)>(%i) {
      %x = affine.load %in[%i] : memref<28xf32>
      affine.store %x, %t[%i] : memref<24xf32>
    }
  }
  affine.for %i = 0 to 28 {
    affine.if affine_set<(d0) : (-d0 + 23 >= 0)>(%i) {
      %x = affine.load %t[%i] : memref<24xf32>
      %y = math.exp %x : f32
      affine.store %y, %out[%i] : memref<24xf32>
    }
  }
  return
}
