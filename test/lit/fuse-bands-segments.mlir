// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands{segments=true}))' 2>/dev/null \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands{segments=true}))' 2>&1 >/dev/null \
// RUN:   | FileCheck %s --check-prefix=WHY --implicit-check-not='remark:'

// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands{segments=true rows-of-segments=false}))' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=APART

// Rows of segments: what is stored once in each, and pairs of their elements.
// APART is without reductions of what segments have reduced.


// The last nest has an iteration for each segment, whose sum it reads: one of
// the segment's lanes stores.

// CHECK-LABEL: func @should_fuse_one_store_a_segment
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK: affine.for %{{.*}} = 0 to 128 iter_args
// CHECK: affine.for %[[B:.*]] = 0 to 16 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 iter_args
// CHECK: affine.store %{{.*}}, %arg2[%[[I]], %[[B]]]
// CHECK: affine.for %[[C:.*]] = 0 to 16 {
// CHECK-NEXT: affine.load %arg2[%[[I]], %[[C]]]
// CHECK: affine.store %{{.*}}, %arg3[%[[I]], %[[C]]]
// CHECK: } {bridge.band, bridge.kernels = [0, 1, 2]
// CHECK-NEXT: return
func.func @should_fuse_one_store_a_segment(%in: memref<64x128xf32>, %row: memref<64xf32>, %segment: memref<64x16xf32>, %out: memref<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x128xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["row"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 8 + %p] : memref<64x128xf32>
        %m = affine.load %row[%i] : memref<64xf32>
        %n = arith.mulf %x, %m : f32
        %y = arith.addf %a, %n : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.load %segment[%i, %b] : memref<64x16xf32>
      %e = math.absf %s : f32
      affine.store %e, %out[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [2], bridge.nodes = ["scale"]}
  return
}

// -----

// It reads the sum of another segment.

// WHY: remark: [cross_lane_dependence] a load needs what another lane reduces
// CHECK-LABEL: func @should_not_fuse_one_store_of_another_segment
// CHECK: } {bridge.band, bridge.kernels = [0, 1]
// CHECK-NEXT: affine.for
func.func @should_not_fuse_one_store_of_another_segment(%in: memref<64x128xf32>, %row: memref<64xf32>, %segment: memref<64x16xf32>, %out: memref<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x128xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["row"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 8 + %p] : memref<64x128xf32>
        %m = affine.load %row[%i] : memref<64xf32>
        %n = arith.mulf %x, %m : f32
        %y = arith.addf %a, %n : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.load %segment[%i, 15 - %b] : memref<64x16xf32>
      %e = math.absf %s : f32
      affine.store %e, %out[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [2], bridge.nodes = ["scale"]}
  return
}

// -----

// No reduction is stored once in each of the 16 iterations: they are no
// segments, and the rows have different extents.

// WHY: remark: [extents_do_not_agree]
// CHECK-LABEL: func @should_not_fuse_fewer_lanes_that_are_no_segments
// CHECK: } {bridge.band, bridge.kernels = [0, 1]
// CHECK-NEXT: affine.for
func.func @should_not_fuse_fewer_lanes_that_are_no_segments(%in: memref<64x128xf32>, %row: memref<64xf32>, %t: memref<64x16x8xf32>, %out: memref<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x128xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["row"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 8 {
        %m = affine.load %row[%i] : memref<64xf32>
        affine.store %m, %t[%i, %b, %p] : memref<64x16x8xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["all"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.load %row[%i] : memref<64xf32>
      affine.store %s, %out[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [2], bridge.nodes = ["some"]}
  return
}

// -----

// The sum of a segment is subtracted from its even and from its odd elements.
// The last nest adds these again, of a whole row: a lane computes them again
// with the sum, which its own segment stored and nobody has changed.

// CHECK-LABEL: func @should_fuse_reader_of_pairs_of_its_segment
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 16 {
// CHECK: affine.store %{{.*}}, %arg1[%[[I]], %[[B]]]
// CHECK: affine.for %{{.*}} = 0 to 16 iter_args
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 iter_args
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 1]
// CHECK-NEXT: return
func.func @should_fuse_reader_of_pairs_of_its_segment(%in: memref<64x16x16xf32>, %segment: memref<64x16xf32>, %t: memref<64x16x16xf32>, %row: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b, %p] : memref<64x16x16xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 8 {
        %s = affine.load %segment[%i, %b] : memref<64x16xf32>
        %x = affine.load %in[%i, %b, %p * 2] : memref<64x16x16xf32>
        %y = affine.load %in[%i, %b, %p * 2 + 1] : memref<64x16x16xf32>
        %u = arith.subf %x, %s : f32
        %v = arith.subf %y, %s : f32
        affine.store %u, %t[%i, %b, %p * 2] : memref<64x16x16xf32>
        affine.store %v, %t[%i, %b, %p * 2 + 1] : memref<64x16x16xf32>
      }
    }
  } {bridge.kernels = [0], bridge.nodes = ["elements"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %b = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %c = affine.for %p = 0 to 8 iter_args(%d = %a) -> (f32) {
        %x = affine.load %t[%i, %b, %p * 2] : memref<64x16x16xf32>
        %y = affine.load %t[%i, %b, %p * 2 + 1] : memref<64x16x16xf32>
        %u = arith.addf %d, %x : f32
        %v = arith.addf %u, %y : f32
        affine.yield %v : f32
      }
      affine.yield %c : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// The lane that reads them is in another segment.

// WHY: remark: [cross_lane_dependence] a load needs what another lane reduces
// CHECK-LABEL: func @should_not_fuse_reader_of_pairs_of_another_segment
// CHECK: bridge.band, bridge.kernels = [0, 0]
// CHECK-NEXT: affine.for
func.func @should_not_fuse_reader_of_pairs_of_another_segment(%in: memref<64x16x16xf32>, %segment: memref<64x16xf32>, %t: memref<64x16x16xf32>, %row: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b, %p] : memref<64x16x16xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 8 {
        %s = affine.load %segment[%i, %b] : memref<64x16xf32>
        %x = affine.load %in[%i, %b, %p * 2] : memref<64x16x16xf32>
        %y = affine.load %in[%i, %b, %p * 2 + 1] : memref<64x16x16xf32>
        %u = arith.subf %x, %s : f32
        %v = arith.subf %y, %s : f32
        affine.store %u, %t[%i, %b, %p * 2] : memref<64x16x16xf32>
        affine.store %v, %t[%i, %b, %p * 2 + 1] : memref<64x16x16xf32>
      }
    }
  } {bridge.kernels = [0], bridge.nodes = ["elements"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %b = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %c = affine.for %p = 0 to 8 iter_args(%d = %a) -> (f32) {
        %x = affine.load %t[%i, 15 - %b, %p * 2] : memref<64x16x16xf32>
        %y = affine.load %t[%i, 15 - %b, %p * 2 + 1] : memref<64x16x16xf32>
        %u = arith.addf %d, %x : f32
        %v = arith.addf %u, %y : f32
        affine.yield %v : f32
      }
      affine.yield %c : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// Even and odd elements of blocks of 16: the digits of the number of a pair are
// the block and the pair in it.

// CHECK-LABEL: func @should_fuse_reader_of_even_and_odd_elements
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK: affine.for %{{.*}} = 0 to 16 iter_args
// CHECK: } {bridge.band, bridge.kernels = [0, 1]
// CHECK-NEXT: return
func.func @should_fuse_reader_of_even_and_odd_elements(%in: memref<64x256xf32>, %t: memref<64x256xf32>, %row: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 8 {
        %x = affine.load %in[%i, %b * 16 + %p * 2] : memref<64x256xf32>
        %y = affine.load %in[%i, %b * 16 + %p * 2 + 1] : memref<64x256xf32>
        affine.store %y, %t[%i, %b * 16 + %p * 2] : memref<64x256xf32>
        affine.store %x, %t[%i, %b * 16 + %p * 2 + 1] : memref<64x256xf32>
      }
    }
  } {bridge.kernels = [0], bridge.nodes = ["swap"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %b = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %c = affine.for %p = 0 to 8 iter_args(%d = %a) -> (f32) {
        %x = affine.load %t[%i, %b * 16 + %p * 2] : memref<64x256xf32>
        %y = affine.load %t[%i, %b * 16 + %p * 2 + 1] : memref<64x256xf32>
        %u = arith.addf %d, %x : f32
        %v = arith.addf %u, %y : f32
        affine.yield %v : f32
      }
      affine.yield %c : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// Whether element 16 b + p is even or odd is another thing in each lane.

// WHY: remark: [cross_lane_dependence] a load needs an element that its band iteration writes, and which store does is not proven
// CHECK-LABEL: func @should_not_fuse_reader_of_elements_of_either_kind
// CHECK: bridge.kernels = [0]
func.func @should_not_fuse_reader_of_elements_of_either_kind(%in: memref<64x256xf32>, %t: memref<64x256xf32>, %row: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 8 {
        %x = affine.load %in[%i, %b * 16 + %p * 2] : memref<64x256xf32>
        %y = affine.load %in[%i, %b * 16 + %p * 2 + 1] : memref<64x256xf32>
        affine.store %y, %t[%i, %b * 16 + %p * 2] : memref<64x256xf32>
        affine.store %x, %t[%i, %b * 16 + %p * 2 + 1] : memref<64x256xf32>
      }
    }
  } {bridge.kernels = [0], bridge.nodes = ["swap"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %b = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %c = affine.for %p = 0 to 8 iter_args(%d = %a) -> (f32) {
        %x = affine.load %t[%i, %b * 16 + %p] : memref<64x256xf32>
        %u = arith.addf %d, %x : f32
        affine.yield %u : f32
      }
      affine.yield %c : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// Pairs of codes, which are made in two steps: each lane has made the elements
// of its own pair before, of what the segment has reduced.

// CHECK-LABEL: func @should_fuse_what_a_lane_made_in_two_steps
// CHECK: } {bridge.band, bridge.kernels = [0, 1, 1, 1, 2]
// CHECK-NEXT: return
func.func @should_fuse_what_a_lane_made_in_two_steps(%in: memref<64x128xf32>, %row: memref<64xf32>, %segment: memref<64x16xf32>, %t: memref<64x128xf32>, %c: memref<64x128xf32>, %out: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %b = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %s = affine.for %p = 0 to 4 iter_args(%d = %a) -> (f32) {
        %x = affine.load %in[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %y = affine.load %in[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
        %z = arith.addf %x, %y : f32
        %e = arith.addf %d, %z : f32
        affine.yield %e : f32
      }
      affine.yield %s : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["row"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.for %p = 0 to 4 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %y = affine.load %in[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
        %m = affine.load %row[%i] : memref<64xf32>
        %u = arith.mulf %x, %m : f32
        %v = arith.mulf %y, %m : f32
        %n = arith.maximumf %u, %v : f32
        %z = arith.maximumf %a, %n : f32
        affine.yield %z : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 4 {
        %m = affine.load %segment[%i, %b] : memref<64x16xf32>
        %x = affine.load %in[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %u = arith.divf %x, %m : f32
        affine.store %u, %t[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %y = affine.load %in[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
        %v = arith.divf %y, %m : f32
        affine.store %v, %t[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["elements"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 4 {
        %x = affine.load %t[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %u = math.absf %x : f32
        affine.store %u, %c[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %y = affine.load %t[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
        %v = math.absf %y : f32
        affine.store %v, %c[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["codes"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 4 {
        %0 = affine.load %c[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %1 = affine.load %c[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
        %2 = arith.addf %0, %1 : f32
        affine.store %2, %out[%i, %b * 4 + %p] : memref<64x64xf32>
      }
    }
  } {bridge.kernels = [2], bridge.nodes = ["pairs"]}
  return
}

// -----

// The pairs are those of the segment before, whose largest element no lane of
// this one has.

// CHECK-LABEL: func @should_not_fuse_what_another_segment_made
// CHECK: bridge.nodes = ["row", "segment", "elements", "codes"]
// CHECK: bridge.nodes = ["pairs"]
// WHY: remark: [cross_lane_dependence] a load needs what another lane reduces
func.func @should_not_fuse_what_another_segment_made(%in: memref<64x128xf32>, %row: memref<64xf32>, %segment: memref<64x16xf32>, %t: memref<64x128xf32>, %c: memref<64x128xf32>, %out: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %b = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %s = affine.for %p = 0 to 4 iter_args(%d = %a) -> (f32) {
        %x = affine.load %in[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %y = affine.load %in[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
        %z = arith.addf %x, %y : f32
        %e = arith.addf %d, %z : f32
        affine.yield %e : f32
      }
      affine.yield %s : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["row"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.for %p = 0 to 4 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %y = affine.load %in[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
        %m = affine.load %row[%i] : memref<64xf32>
        %u = arith.mulf %x, %m : f32
        %v = arith.mulf %y, %m : f32
        %n = arith.maximumf %u, %v : f32
        %z = arith.maximumf %a, %n : f32
        affine.yield %z : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 4 {
        %m = affine.load %segment[%i, %b] : memref<64x16xf32>
        %x = affine.load %in[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %u = arith.divf %x, %m : f32
        affine.store %u, %t[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %y = affine.load %in[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
        %v = arith.divf %y, %m : f32
        affine.store %v, %t[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["elements"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 4 {
        %x = affine.load %t[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %u = math.absf %x : f32
        affine.store %u, %c[%i, %b * 8 + %p * 2] : memref<64x128xf32>
        %y = affine.load %t[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
        %v = math.absf %y : f32
        affine.store %v, %c[%i, %b * 8 + %p * 2 + 1] : memref<64x128xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["codes"]}
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 4 {
        %0 = affine.load %c[%i, %b * -8 + %p * 2 + 120] : memref<64x128xf32>
        %1 = affine.load %c[%i, %b * -8 + %p * 2 + 121] : memref<64x128xf32>
        %2 = arith.addf %0, %1 : f32
        affine.store %2, %out[%i, %b * 4 + %p] : memref<64x64xf32>
      }
    }
  } {bridge.kernels = [2], bridge.nodes = ["pairs"]}
  return
}

// -----

// The row adds up what its segments reduced: each lane has its segment's, and
// one of them adds it.

// APART-LABEL: func @should_fuse_sum_of_what_segments_reduced
// APART-NOT: bridge.rows_of_segments
// APART: {bridge.kernels = [0]
// APART: {bridge.kernels = [1]
// CHECK-LABEL: func @should_fuse_sum_of_what_segments_reduced
// CHECK-SAME: attributes {bridge.rows_of_segments}
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 9 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 iter_args
// CHECK: affine.store %{{.*}}, %arg1[%[[I]], %[[B]]]
// CHECK: affine.for %[[C:.*]] = 0 to 9 iter_args
// CHECK-NEXT: affine.load %arg1[%[[I]], %[[C]]]
// CHECK: affine.store %{{.*}}, %arg2[%[[I]]]
// CHECK: } {bridge.band, bridge.kernels = [0, 1]
// CHECK-NEXT: return
func.func @should_fuse_sum_of_what_segments_reduced(%in: memref<64x72xf32>, %segment: memref<64x9xf32>, %row: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 9 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 8 + %p] : memref<64x72xf32>
        %y = arith.maximumf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x9xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %b = 0 to 9 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %segment[%i, %b] : memref<64x9xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// What it adds in a lane is another segment's.

// WHY: remark: [cross_lane_dependence] a load needs what another lane reduces
// CHECK-LABEL: func @should_not_fuse_sum_in_another_order
// CHECK: {bridge.kernels = [0]
// CHECK: {bridge.kernels = [1]
func.func @should_not_fuse_sum_in_another_order(%in: memref<64x128xf32>, %segment: memref<64x16xf32>, %row: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 8 + %p] : memref<64x128xf32>
        %y = arith.maximumf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %b = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %segment[%i, 15 - %b] : memref<64x16xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// Segments of six lanes are none of a row whose lanes are a power of two.

// WHY: remark: [extents_do_not_agree]
// CHECK-LABEL: func @should_not_fuse_sum_of_segments_of_no_power_of_two
// CHECK: {bridge.kernels = [0]
// CHECK: {bridge.kernels = [1]
func.func @should_not_fuse_sum_of_segments_of_no_power_of_two(%in: memref<64x96xf32>, %segment: memref<64x16xf32>, %row: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.for %p = 0 to 6 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 6 + %p] : memref<64x96xf32>
        %y = arith.maximumf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %b = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %segment[%i, %b] : memref<64x16xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %row[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// The number of the largest one: no number can be left out of that.

// WHY: remark: [extents_do_not_agree]
// CHECK-LABEL: func @should_not_fuse_number_of_a_segment
// CHECK: {bridge.kernels = [0]
// CHECK: {bridge.kernels = [1]
func.func @should_not_fuse_number_of_a_segment(%in: memref<64x128xf32>, %segment: memref<64x16xf32>, %row: memref<64xi64>) {
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 0 : i64
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 8 + %p] : memref<64x128xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x16xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    %s:2 = affine.for %b = 0 to 16 iter_args(%a = %zero, %n = %first) -> (f32, i64) {
      %x = affine.load %segment[%i, %b] : memref<64x16xf32>
      %c = arith.index_cast %b : index to i64
      %y:2 = bridge.combine argmax (%a, %n), (%x, %c) : f32, i64
      affine.yield %y#0, %y#1 : f32, i64
    }
    affine.store %s#1, %row[%i] : memref<64xi64>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// Segments of a column: its elements are far apart in memory.

// WHY: remark: [extents_do_not_agree]
// CHECK-LABEL: func @should_not_fuse_segments_of_a_column
// CHECK: {bridge.kernels = [0]
// CHECK: {bridge.kernels = [1]
func.func @should_not_fuse_segments_of_a_column(%in: memref<128x64xf32>, %segment: memref<16x64xf32>, %column: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%b * 8 + %p, %i] : memref<128x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%b, %i] : memref<16x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %b = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %segment[%b, %i] : memref<16x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %column[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["column"]}
  return
}

// -----

// A vector that is along memory does not bring the elements of a column nearer.

// WHY: remark: [extents_do_not_agree]
// CHECK-LABEL: func @should_not_fuse_segments_of_a_column_with_a_vector
// CHECK: {bridge.kernels = [0]
// CHECK: {bridge.kernels = [1]
func.func @should_not_fuse_segments_of_a_column_with_a_vector(%in: memref<128x64xf32>, %mean: memref<128xf32>, %segment: memref<16x64xf32>, %column: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%b * 8 + %p, %i] : memref<128x64xf32>
        %m = affine.load %mean[%b * 8 + %p] : memref<128xf32>
        %d = arith.subf %x, %m : f32
        %y = arith.addf %a, %d : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%b, %i] : memref<16x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %b = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %segment[%b, %i] : memref<16x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %column[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["column"]}
  return
}

// -----

// All lanes need what the third segment reduced, and the row has the ratio of
// the last and the first. They are broadcast, which no copy of them is.

// APART-LABEL: func @should_fuse_what_one_segment_reduced
// APART-NOT: bridge.rows_of_segments
// APART: {bridge.kernels = [0]
// APART: {bridge.kernels = [1]
// CHECK-LABEL: func @should_fuse_what_one_segment_reduced
// CHECK-SAME: attributes {bridge.rows_of_segments}
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK: affine.store %{{.*}}, %arg1[%[[I]], %{{.*}}]
// CHECK: affine.load %arg1[%[[I]], 2]
// CHECK: affine.load %arg1[%[[I]], 3]
// CHECK: affine.load %arg1[%[[I]], 0]
// CHECK: } {bridge.band, bridge.kernels = [0, 1, 2]
// CHECK-NEXT: return
func.func @should_fuse_what_one_segment_reduced(%in: memref<64x32xf32>, %segment: memref<64x4xf32>, %out: memref<64x32xf32>, %row: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 4 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 8 + %p] : memref<64x32xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%i, %b] : memref<64x4xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%i, %j] : memref<64x32xf32>
      %s = affine.load %segment[%i, 2] : memref<64x4xf32>
      %y = arith.divf %x, %s : f32
      affine.store %y, %out[%i, %j] : memref<64x32xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["out"]}
  affine.for %i = 0 to 64 {
    %x = affine.load %segment[%i, 3] : memref<64x4xf32>
    %s = affine.load %segment[%i, 0] : memref<64x4xf32>
    %y = arith.divf %x, %s : f32
    affine.store %y, %row[%i] : memref<64xf32>
  } {bridge.kernels = [2], bridge.nodes = ["row"]}
  return
}

// -----

// One segment of a column: its elements are far apart in memory.

// WHY: remark: [cross_lane_dependence] a load needs what another lane reduces
// CHECK-LABEL: func @should_not_fuse_what_one_segment_of_a_column_reduced
// CHECK: {bridge.kernels = [0]
// CHECK: {bridge.kernels = [1]
func.func @should_not_fuse_what_one_segment_of_a_column_reduced(%in: memref<32x64xf32>, %segment: memref<4x64xf32>, %column: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 4 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%b * 8 + %p, %i] : memref<32x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %segment[%b, %i] : memref<4x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["segment"]}
  affine.for %i = 0 to 64 {
    %x = affine.load %segment[3, %i] : memref<4x64xf32>
    %s = affine.load %segment[0, %i] : memref<4x64xf32>
    %y = arith.divf %x, %s : f32
    affine.store %y, %column[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["column"]}
  return
}

// -----

// Segments of eight lanes read what their segment of 32 has reduced: a division
// of the lane's number, of whose digits the bounds are known.

// CHECK-LABEL: func @should_fuse_segments_of_longer_segments
// CHECK: affine.for %[[B:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 32 iter_args
// CHECK: affine.for %[[C:.*]] = 0 to 16 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 iter_args
// CHECK: affine.load %arg1[%{{.*}}, %[[C]] floordiv 4]
// CHECK: } {bridge.band, bridge.kernels = [0, 1]
// CHECK-NEXT: return
func.func @should_fuse_segments_of_longer_segments(%in: memref<64x128xf32>, %long: memref<64x4xf32>, %short: memref<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 4 {
      %s = affine.for %p = 0 to 32 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 32 + %p] : memref<64x128xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %long[%i, %b] : memref<64x4xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["long"]}
  affine.for %i = 0 to 64 {
    affine.for %c = 0 to 16 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %c * 8 + %p] : memref<64x128xf32>
        %l = affine.load %long[%i, %c floordiv 4] : memref<64x4xf32>
        %d = arith.divf %x, %l : f32
        %y = arith.maximumf %a, %d : f32
        affine.yield %y : f32
      }
      affine.store %s, %short[%i, %c] : memref<64x16xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["short"]}
  return
}

// -----

// They read the segments in another order: what lanes elsewhere reduced.

// WHY: remark: [cross_lane_dependence] a load needs what another lane reduces
// CHECK-LABEL: func @should_not_fuse_segments_of_other_longer_segments
// CHECK: {bridge.kernels = [0]
// CHECK: {bridge.kernels = [1]
func.func @should_not_fuse_segments_of_other_longer_segments(%in: memref<64x128xf32>, %long: memref<64x4xf32>, %short: memref<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 4 {
      %s = affine.for %p = 0 to 32 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %b * 32 + %p] : memref<64x128xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %long[%i, %b] : memref<64x4xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["long"]}
  affine.for %i = 0 to 64 {
    affine.for %c = 0 to 16 {
      %s = affine.for %p = 0 to 8 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %c * 8 + %p] : memref<64x128xf32>
        %l = affine.load %long[%i, %c mod 4] : memref<64x4xf32>
        %d = arith.divf %x, %l : f32
        %y = arith.maximumf %a, %d : f32
        affine.yield %y : f32
      }
      affine.store %s, %short[%i, %c] : memref<64x16xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["short"]}
  return
}
