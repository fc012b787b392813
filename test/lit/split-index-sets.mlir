// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-split-index-sets,canonicalize))' \
// RUN:   | FileCheck %s

// Each function has a nest over full rows, and one over pieces of them. The
// first gets the extent of the second, and its body once for each piece.

// CHECK-LABEL: func @should_split_contiguous_halves
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: %[[SUM:.*]] = affine.for %[[J:.*]] = 0 to 128 iter_args(%[[ACC:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT: %[[X0:.*]] = affine.load %arg0[%[[I]], %[[J]]]
// CHECK-NEXT: %[[S0:.*]] = arith.addf %[[ACC]], %[[X0]]
// CHECK-NEXT: %[[X1:.*]] = affine.load %arg0[%[[I]], %[[J]] + 128]
// CHECK-NEXT: %[[S1:.*]] = arith.addf %[[S0]], %[[X1]]
// CHECK-NEXT: affine.yield %[[S1]]
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[SUM]], %arg1[%[[I]]]
func.func @should_split_contiguous_halves(%in: memref<64x256xf32>, %sum: memref<64xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      %y = affine.load %in[%i, %j + 128] : memref<64x256xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// The combiner may be any associative one; a maximum here.

// CHECK-LABEL: func @should_split_contiguous_thirds
// CHECK: affine.for %[[J:.*]] = 0 to 32 iter_args
// CHECK-DAG: affine.load %arg0[%{{.*}}, %[[J]]]
// CHECK-DAG: affine.load %arg0[%{{.*}}, %[[J]] + 32]
// CHECK-DAG: affine.load %arg0[%{{.*}}, %[[J]] + 64]
// CHECK: affine.yield
func.func @should_split_contiguous_thirds(%in: memref<8x96xf32>, %max: memref<8xf32>, %out: memref<8x32xf32>) {
  %low = arith.constant 0xFF800000 : f32
  affine.for %i = 0 to 8 {
    %s = affine.for %r = 0 to 96 iter_args(%a = %low) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<8x96xf32>
      %b = arith.maximumf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %max[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%i, %j] : memref<8x96xf32>
      %y = affine.load %in[%i, %j + 32] : memref<8x96xf32>
      %z = affine.load %in[%i, %j + 64] : memref<8x96xf32>
      %v = arith.addf %x, %y : f32
      %w = arith.addf %v, %z : f32
      affine.store %w, %out[%i, %j] : memref<8x32xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_split_interleaved
// CHECK: affine.for %[[J:.*]] = 0 to 128 iter_args
// CHECK: affine.load %arg0[%{{.*}}, %[[J]] * 2]
// CHECK-NEXT: arith.minimumf
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[J]] * 2 + 1]
// CHECK-NEXT: arith.minimumf
func.func @should_split_interleaved(%in: memref<64x256xf32>, %min: memref<64xf32>, %out: memref<64x128xf32>) {
  %high = arith.constant 0x7F800000 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %high) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %b = arith.minimumf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %min[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, 2 * %j] : memref<64x256xf32>
      %y = affine.load %in[%i, 2 * %j + 1] : memref<64x256xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// The tile's access determines one piece; the others are translated copies. (A
// subset test would take exponential time here.)

// CHECK-LABEL: func @should_split_into_sixteen_interleaved
// CHECK: affine.for %[[J:.*]] = 0 to 256 iter_args
// CHECK: affine.load %arg0[%{{.*}}, %[[J]] * 16]
// CHECK-COUNT-14: affine.load %arg0[%{{.*}}, %[[J]] * 16 + {{[0-9]+}}]
// CHECK: affine.load %arg0[%{{.*}}, %[[J]] * 16 + 15]
func.func @should_split_into_sixteen_interleaved(%in: memref<8x4096xf32>, %sum: memref<8xf32>, %out: memref<8x256xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    %s = affine.for %r = 0 to 4096 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<8x4096xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 256 {
      %x = affine.load %in[%i, 16 * %j + 3] : memref<8x4096xf32>
      affine.store %x, %out[%i, %j] : memref<8x256xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_split_with_reversed_part
// CHECK: affine.for %[[J:.*]] = 0 to 128 iter_args
// CHECK: affine.load %arg0[%{{.*}}, %[[J]]]
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: affine.load %arg0[%{{.*}}, -%[[J]] + 255]
// CHECK-NEXT: arith.mulf
func.func @should_split_with_reversed_part(%in: memref<64x256xf32>, %prod: memref<64xf32>, %out: memref<64x128xf32>) {
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %one) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %b = arith.mulf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %prod[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      %y = affine.load %in[%i, 255 - %j] : memref<64x256xf32>
      %z = arith.addf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_split_by_tile_of_two_dimensions
// CHECK: affine.for %[[I:.*]] = 0 to 16 {
// CHECK-NEXT: %{{.*}} = affine.for %[[H:.*]] = 0 to 2 iter_args(%[[A:.*]] = %{{.*}}) -> (f32) {
// CHECK-NEXT: %[[INNER:.*]] = affine.for %[[D:.*]] = 0 to 64 iter_args(%{{.*}} = %[[A]]) -> (f32) {
// CHECK-NEXT: affine.load %arg0[%[[I]], %[[H]] * 64 + %[[D]]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: affine.load %arg0[%[[I]], %[[H]] * 64 + %[[D]] + 128]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: affine.yield
// CHECK-NEXT: }
// CHECK-NEXT: affine.yield %[[INNER]]
func.func @should_split_by_tile_of_two_dimensions(%in: memref<16x256xf32>, %sum: memref<16xf32>, %out: memref<16x2x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 16 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<16x256xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 16 {
    affine.for %h = 0 to 2 {
      affine.for %d = 0 to 64 {
        %x = affine.load %in[%i, 64 * %h + %d] : memref<16x256xf32>
        %y = affine.load %in[%i, 64 * %h + %d + 128] : memref<16x256xf32>
        %z = arith.mulf %x, %y : f32
        affine.store %z, %out[%i, %h, %d] : memref<16x2x64xf32>
      }
    }
  }
  return
}

// -----

// The tile reads only the second half; the first half is a translated copy.

// CHECK-LABEL: func @should_split_where_one_half_is_read
// CHECK: affine.for %[[J:.*]] = 0 to 128 iter_args
// CHECK-DAG: affine.load %arg0[%{{.*}}, %[[J]]]
// CHECK-DAG: affine.load %arg0[%{{.*}}, %[[J]] + 128]
// CHECK: affine.yield
func.func @should_split_where_one_half_is_read(%in: memref<64x256xf32>, %sum: memref<64xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j + 128] : memref<64x256xf32>
      affine.store %x, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// Three values of state pass from piece to piece.

// CHECK-LABEL: func @should_split_welford
// CHECK: affine.for %[[J:.*]] = 0 to 128 iter_args(%[[M:.*]] = %{{.*}}, %[[V:.*]] = %{{.*}}, %[[W:.*]] = %{{.*}}) -> (f32, f32, f32) {
// CHECK-NEXT: %[[X0:.*]] = affine.load %arg0[%{{.*}}, %[[J]]]
// CHECK-NEXT: %[[C0:.*]]:3 = bridge.combine welford (%[[M]], %[[V]], %[[W]]), (%[[X0]],
// CHECK-NEXT: %[[X1:.*]] = affine.load %arg0[%{{.*}}, %[[J]] + 128]
// CHECK-NEXT: %[[C1:.*]]:3 = bridge.combine welford (%[[C0]]#0, %[[C0]]#1, %[[C0]]#2), (%[[X1]],
// CHECK-NEXT: affine.yield %[[C1]]#0, %[[C1]]#1, %[[C1]]#2
func.func @should_split_welford(%in: memref<64x256xf32>, %mean: memref<64xf32>, %m2: memref<64xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to 64 {
    %s:3 = affine.for %r = 0 to 256 iter_args(%a = %zero, %b = %zero, %c = %zero) -> (f32, f32, f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %n:3 = bridge.combine welford (%a, %b, %c), (%x, %zero, %one) : f32, f32, f32
      affine.yield %n#0, %n#1, %n#2 : f32, f32, f32
    }
    affine.store %s#0, %mean[%i] : memref<64xf32>
    affine.store %s#1, %m2[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      %y = affine.load %in[%i, %j + 128] : memref<64x256xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// The index that argmax carries is still the index in the row.

// CHECK-LABEL: func @should_split_argmax
// CHECK: affine.for %[[J:.*]] = 0 to 128 iter_args
// CHECK: bridge.combine argmax ({{.*}}), (%{{.*}}, %[[J]]) : f32, index
// CHECK: %[[R:.*]] = affine.apply {{.*}}(%[[J]])
// CHECK: bridge.combine argmax ({{.*}}), (%{{.*}}, %[[R]]) : f32, index
func.func @should_split_argmax(%in: memref<64x256xf32>, %at: memref<64xindex>, %out: memref<64x128xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : index
  affine.for %i = 0 to 64 {
    %s:2 = affine.for %r = 0 to 256 iter_args(%a = %low, %b = %none) -> (f32, index) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %n:2 = bridge.combine argmax (%a, %b), (%x, %r) : f32, index
      affine.yield %n#0, %n#1 : f32, index
    }
    affine.store %s#1, %at[%i] : memref<64xindex>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      %y = affine.load %in[%i, %j + 128] : memref<64x256xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// A reduction over two loops gets the two loops of the tile.

// CHECK-LABEL: func @should_split_reduction_over_two_loops
// CHECK: affine.for %[[I:.*]] = 0 to 16 {
// CHECK-NEXT: affine.for %[[H:.*]] = 0 to 4 iter_args
// CHECK-NEXT: affine.for %[[D:.*]] = 0 to 32 iter_args
// CHECK-DAG: affine.load %arg0[%[[I]], %[[H]], %[[D]]]
// CHECK-DAG: affine.load %arg0[%[[I]], %[[H]], %[[D]] + 32]
func.func @should_split_reduction_over_two_loops(%in: memref<16x4x64xf32>, %sum: memref<16xf32>, %out: memref<16x4x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 16 {
    %s = affine.for %h = 0 to 4 iter_args(%a = %zero) -> (f32) {
      %t = affine.for %d = 0 to 64 iter_args(%b = %a) -> (f32) {
        %x = affine.load %in[%i, %h, %d] : memref<16x4x64xf32>
        %c = arith.addf %b, %x : f32
        affine.yield %c : f32
      }
      affine.yield %t : f32
    }
    affine.store %s, %sum[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 16 {
    affine.for %h = 0 to 4 {
      affine.for %d = 0 to 32 {
        %x = affine.load %in[%i, %h, %d] : memref<16x4x64xf32>
        %y = affine.load %in[%i, %h, %d + 32] : memref<16x4x64xf32>
        %z = arith.mulf %x, %y : f32
        affine.store %z, %out[%i, %h, %d] : memref<16x4x32xf32>
      }
    }
  }
  return
}

// -----

// A pointwise nest is split in the same way.

// CHECK-LABEL: func @should_split_pointwise
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 128 {
// CHECK-NEXT: %[[X0:.*]] = affine.load %arg0[%[[I]], %[[J]]]
// CHECK-NEXT: %[[Y0:.*]] = math.exp %[[X0]]
// CHECK-NEXT: affine.store %[[Y0]], %arg1[%[[I]], %[[J]]]
// CHECK-NEXT: %[[X1:.*]] = affine.load %arg0[%[[I]], %[[J]] + 128]
// CHECK-NEXT: %[[Y1:.*]] = math.exp %[[X1]]
// CHECK-NEXT: affine.store %[[Y1]], %arg1[%[[I]], %[[J]] + 128]
// CHECK-NEXT: }
func.func @should_split_pointwise(%in: memref<64x256xf32>, %t: memref<64x256xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 256 {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%i, %r] : memref<64x256xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %t[%i, %j] : memref<64x256xf32>
      %y = affine.load %t[%i, %j + 128] : memref<64x256xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_split_with_symbolic_rows
// CHECK: affine.for %[[I:.*]] = 0 to %arg3 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 128 iter_args
// CHECK-DAG: affine.load %arg0[%[[I]], %[[J]]]
// CHECK-DAG: affine.load %arg0[%[[I]], %[[J]] + 128]
func.func @should_split_with_symbolic_rows(%in: memref<?x256xf32>, %sum: memref<?xf32>, %out: memref<?x128xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to %n {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<?x256xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<?xf32>
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<?x256xf32>
      %y = affine.load %in[%i, %j + 128] : memref<?x256xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<?x128xf32>
    }
  }
  return
}

// -----

// Four copies of a row: each iteration of the loop that no load depends on
// becomes a piece.

// CHECK-LABEL: func @should_split_copies
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
// CHECK: affine.for %[[J:.*]] = 0 to 64 {
// CHECK: affine.store %{{.*}}, %arg2[0, %{{.*}}, %[[J]]]
// CHECK: affine.store %{{.*}}, %arg2[1, %{{.*}}, %[[J]]]
// CHECK: affine.store %{{.*}}, %arg2[2, %{{.*}}, %[[J]]]
// CHECK: affine.store %{{.*}}, %arg2[3, %{{.*}}, %[[J]]]
func.func @should_split_copies(%in: memref<16x64xf32>, %sum: memref<16xf32>, %out: memref<4x16x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 16 {
    %s = affine.for %r = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<16x64xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 16 {
    affine.for %copy = 0 to 4 {
      affine.for %j = 0 to 64 {
        %s = affine.load %sum[%i] : memref<16xf32>
        %x = affine.load %in[%i, %j] : memref<16x64xf32>
        %y = arith.mulf %x, %s : f32
        affine.store %y, %out[%copy, %i, %j] : memref<4x16x64xf32>
      }
    }
  }
  return
}

// -----

// Two neighbouring lanes that compute different things: each becomes a piece,
// and the row's sum is split into the same two pieces.

// CHECK-LABEL: func @should_split_interleaved_lanes
// CHECK: affine.for %[[I:.*]] = 0 to 16 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 32 iter_args
// CHECK-NEXT: affine.load %arg0[%[[I]], %[[J]] * 2]
// CHECK: affine.load %arg0[%[[I]], %[[J]] * 2 + 1]
// CHECK: affine.for %[[K:.*]] = 0 to 16 {
// CHECK-NEXT: affine.for %[[L:.*]] = 0 to 32 {
// CHECK-NOT: affine.for
// CHECK: affine.store %{{.*}}, %arg2[%[[K]], %[[L]], 0]
// CHECK: affine.store %{{.*}}, %arg2[%[[K]], %[[L]], 1]
func.func @should_split_interleaved_lanes(%in: memref<16x64xf32>, %sum: memref<16xf32>, %out: memref<16x32x2xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 16 {
    %s = affine.for %r = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<16x64xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 32 {
      affine.for %lane = 0 to 2 {
        %s = affine.load %sum[%i] : memref<16xf32>
        %y = affine.if affine_set<(d0) : (-d0 >= 0)>(%lane) -> f32 {
          %x = affine.load %in[%i, %j * 2] : memref<16x64xf32>
          affine.yield %x : f32
        } else {
          %x = affine.load %in[%i, %j * 2 + 1] : memref<16x64xf32>
          affine.yield %x : f32
        }
        %z = arith.mulf %y, %s : f32
        affine.store %z, %out[%i, %j, %lane] : memref<16x32x2xf32>
      }
    }
  }
  return
}

// -----

// A transposed copy of the lanes has a loop over them, too, and no guard.

// CHECK-LABEL: func @should_split_copy_of_interleaved_lanes
// CHECK: affine.for %[[I:.*]] = 0 to 16 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 32 {
// CHECK-NOT: affine.for
// CHECK: affine.store %{{.*}}, %arg1[%[[I]], %[[J]], 0]
// CHECK: affine.store %{{.*}}, %arg1[%[[I]], %[[J]], 1]
// CHECK: affine.for %[[K:.*]] = 0 to 16 {
// CHECK-NEXT: affine.for %[[L:.*]] = 0 to 32 {
// CHECK-NOT: affine.for
// CHECK: affine.store %{{.*}}, %arg2[%[[L]], %[[K]], 0]
// CHECK: affine.store %{{.*}}, %arg2[%[[L]], %[[K]], 1]
// CHECK: affine.for %[[M:.*]] = 0 to 16 {
// CHECK-NEXT: affine.for %[[N:.*]] = 0 to 32 {
// CHECK-NOT: affine.for
// CHECK: affine.store %{{.*}}, %arg3[%[[M]], 0, %[[N]]]
// CHECK: affine.store %{{.*}}, %arg3[%[[M]], 1, %[[N]]]
func.func @should_split_copy_of_interleaved_lanes(%in: memref<16x64xf32>, %out: memref<16x32x2xf32>, %copy: memref<32x16x2xf32>, %again: memref<16x2x32xf32>) {
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 32 {
      affine.for %lane = 0 to 2 {
        %y = affine.if affine_set<(d0) : (-d0 >= 0)>(%lane) -> f32 {
          %x = affine.load %in[%i, %j * 2] : memref<16x64xf32>
          affine.yield %x : f32
        } else {
          %x = affine.load %in[%i, %j * 2 + 1] : memref<16x64xf32>
          affine.yield %x : f32
        }
        affine.store %y, %out[%i, %j, %lane] : memref<16x32x2xf32>
      }
    }
  }
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 32 {
      affine.for %lane = 0 to 2 {
        %x = affine.load %out[%i, %j, %lane] : memref<16x32x2xf32>
        affine.store %x, %copy[%j, %i, %lane] : memref<32x16x2xf32>
      }
    }
  }
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 32 {
      affine.for %lane = 0 to 2 {
        %x = affine.load %copy[%j, %i, %lane] : memref<32x16x2xf32>
        affine.store %x, %again[%i, %lane, %j] : memref<16x2x32xf32>
      }
    }
  }
  return
}

// -----

// Lanes of other elements, and those in other loops, stay a loop.

// CHECK-LABEL: func @should_not_unroll_lanes_of_others
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 32 {
// CHECK-NOT: affine.for
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 32 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 2 {
// CHECK: affine.for %{{.*}} = 0 to 32 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 2 {
func.func @should_not_unroll_lanes_of_others(%in: memref<16x64xf32>, %out: memref<16x32x2xf32>, %other: memref<16x32x2xf32>, %copy: memref<32x16x2xf32>) {
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 32 {
      affine.for %lane = 0 to 2 {
        %y = affine.if affine_set<(d0) : (-d0 >= 0)>(%lane) -> f32 {
          %x = affine.load %in[%i, %j * 2] : memref<16x64xf32>
          affine.yield %x : f32
        } else {
          %x = affine.load %in[%i, %j * 2 + 1] : memref<16x64xf32>
          affine.yield %x : f32
        }
        affine.store %y, %out[%i, %j, %lane] : memref<16x32x2xf32>
      }
    }
  }
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 32 {
      affine.for %lane = 0 to 2 {
        %x = affine.load %other[%i, %j, %lane] : memref<16x32x2xf32>
        %y = arith.mulf %x, %x : f32
        affine.store %y, %other[%i, %j, %lane] : memref<16x32x2xf32>
      }
    }
  }
  affine.for %j = 0 to 32 {
    affine.for %i = 0 to 16 {
      affine.for %lane = 0 to 2 {
        %x = affine.load %out[%i, %j, %lane] : memref<16x32x2xf32>
        affine.store %x, %copy[%j, %i, %lane] : memref<32x16x2xf32>
      }
    }
  }
  return
}

// -----

// Five lanes are more than the limit of unrolling.

// CHECK-LABEL: func @should_not_unroll_many_lanes
// CHECK: affine.for %{{.*}} = 0 to 5 {
func.func @should_not_unroll_many_lanes(%in: memref<16x5xf32>, %sum: memref<16xf32>, %out: memref<16x8x5xf32>) {
  affine.for %i = 0 to 16 {
    %x = affine.load %in[%i, 0] : memref<16x5xf32>
    affine.store %x, %sum[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 8 {
      affine.for %lane = 0 to 5 {
        affine.if affine_set<(d0) : (-d0 + 3 >= 0)>(%lane) {
          %s = affine.load %sum[%i] : memref<16xf32>
          affine.store %s, %out[%i, %j, %lane] : memref<16x8x5xf32>
        }
      }
    }
  }
  return
}

// -----

// Patches of 2 x 2 pixels of an 8 x 8 image, where each of four nests reads one
// pixel: none reads all pieces, and together they read each once.

// CHECK-LABEL: func @should_split_by_several_tiles
// CHECK: affine.for %[[I:.*]] = 0 to 16 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[C:.*]] = 0 to 6 {
// CHECK-NEXT: affine.load %arg0[%[[I]], %[[J]] * 16 + %[[K]] * 2, %[[C]]]
// CHECK: affine.load %arg0[%[[I]], %[[J]] * 16 + %[[K]] * 2 + 8, %[[C]]]
// CHECK: affine.load %arg0[%[[I]], %[[J]] * 16 + %[[K]] * 2 + 1, %[[C]]]
// CHECK: affine.load %arg0[%[[I]], %[[J]] * 16 + %[[K]] * 2 + 9, %[[C]]]
// CHECK: affine.store %{{.*}}, %arg1[%[[I]], %[[J]] * 16 + %[[K]] * 2 + 9, %[[C]]]
// CHECK-NEXT: }
func.func @should_split_by_several_tiles(%in: memref<16x64x6xf32>, %t: memref<16x64x6xf32>, %a: memref<16x4x4x6xf32>, %b: memref<16x4x4x6xf32>, %c: memref<16x4x4x6xf32>, %d: memref<16x4x4x6xf32>) {
  affine.for %i = 0 to 16 {
    affine.for %p = 0 to 64 {
      affine.for %l = 0 to 6 {
        %x = affine.load %in[%i, %p, %l] : memref<16x64x6xf32>
        %y = math.exp %x : f32
        affine.store %y, %t[%i, %p, %l] : memref<16x64x6xf32>
      }
    }
  }
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 4 {
      affine.for %k = 0 to 4 {
        affine.for %l = 0 to 6 {
          %x = affine.load %t[%i, %j * 16 + %k * 2, %l] : memref<16x64x6xf32>
          affine.store %x, %a[%i, %j, %k, %l] : memref<16x4x4x6xf32>
        }
      }
    }
  }
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 4 {
      affine.for %k = 0 to 4 {
        affine.for %l = 0 to 6 {
          %x = affine.load %t[%i, %j * 16 + %k * 2 + 8, %l] : memref<16x64x6xf32>
          affine.store %x, %b[%i, %j, %k, %l] : memref<16x4x4x6xf32>
        }
      }
    }
  }
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 4 {
      affine.for %k = 0 to 4 {
        affine.for %l = 0 to 6 {
          %x = affine.load %t[%i, %j * 16 + %k * 2 + 1, %l] : memref<16x64x6xf32>
          affine.store %x, %c[%i, %j, %k, %l] : memref<16x4x4x6xf32>
        }
      }
    }
  }
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 4 {
      affine.for %k = 0 to 4 {
        affine.for %l = 0 to 6 {
          %x = affine.load %t[%i, %j * 16 + %k * 2 + 9, %l] : memref<16x64x6xf32>
          affine.store %x, %d[%i, %j, %k, %l] : memref<16x4x4x6xf32>
        }
      }
    }
  }
  return
}

// -----

// The third nest works on pairs of each block of 16, and the second is split
// into its even and odd elements. Then the first, which has no element in
// common with the third, is split by what the second has become.

// CHECK-LABEL: func @should_split_by_what_was_split
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 16 iter_args
// CHECK-NEXT: affine.for %[[P:.*]] = 0 to 8 iter_args
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 {
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_split_by_what_was_split(%in: memref<64x256xf32>, %sum: memref<64xf32>, %t: memref<64x16x16xf32>, %out: memref<64x16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %e = 0 to 16 {
        %x = affine.load %in[%i, %b * 16 + %e] : memref<64x256xf32>
        %s = affine.load %sum[%i] : memref<64xf32>
        %y = arith.mulf %x, %s : f32
        affine.store %y, %t[%i, %b, %e] : memref<64x16x16xf32>
      }
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 8 {
        %x = affine.load %t[%i, %b, %p * 2] : memref<64x16x16xf32>
        %y = affine.load %t[%i, %b, %p * 2 + 1] : memref<64x16x16xf32>
        %z = arith.addf %x, %y : f32
        affine.store %z, %out[%i, %b, %p] : memref<64x16x8xf32>
      }
    }
  }
  return
}

// -----

// The tile reads the second quarter of each head and the third. The rows of the
// others follow at the same distance, and nothing of the tile tells of them.

// CHECK-LABEL: func @should_split_by_parts_of_each_head
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK: affine.for %[[H:.*]] = 0 to 6 iter_args
// CHECK: affine.for %[[D:.*]] = 0 to 8 iter_args
// CHECK: affine.load %arg0[%[[I]], %[[H]] * 32 + %[[D]]]
// CHECK: affine.load %arg0[%[[I]], %[[H]] * 32 + %[[D]] + 8]
// CHECK: affine.load %arg0[%[[I]], %[[H]] * 32 + %[[D]] + 16]
// CHECK: affine.load %arg0[%[[I]], %[[H]] * 32 + %[[D]] + 24]
func.func @should_split_by_parts_of_each_head(%in: memref<64x192xf32>, %sum: memref<64xf32>, %out: memref<64x6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 192 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x192xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %h = 0 to 6 {
      affine.for %d = 0 to 8 {
        %x = affine.load %in[%i, %h * 32 + %d + 8] : memref<64x192xf32>
        %y = affine.load %in[%i, %h * 32 + %d + 16] : memref<64x192xf32>
        %z = arith.mulf %x, %y : f32
        affine.store %z, %out[%i, %h, %d] : memref<64x6x8xf32>
      }
    }
  }
  return
}

// -----

// The same of a nest with a loop over the heads and one over a head.

// CHECK-LABEL: func @should_split_loops_over_heads_by_parts_of_each_head
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK: affine.for %[[H:.*]] = 0 to 6 {
// CHECK: affine.for %[[D:.*]] = 0 to 8 {
// CHECK: affine.load %arg0[%[[I]], %[[H]], %[[D]]]
// CHECK: affine.load %arg0[%[[I]], %[[H]], %[[D]] + 8]
// CHECK: affine.load %arg0[%[[I]], %[[H]], %[[D]] + 16]
// CHECK: affine.load %arg0[%[[I]], %[[H]], %[[D]] + 24]
func.func @should_split_loops_over_heads_by_parts_of_each_head(%in: memref<64x6x32xf32>, %all: memref<64x6x32xf32>, %out: memref<64x6x8xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %h = 0 to 6 {
      affine.for %d = 0 to 32 {
        %x = affine.load %in[%i, %h, %d] : memref<64x6x32xf32>
        %y = math.exp %x : f32
        affine.store %y, %all[%i, %h, %d] : memref<64x6x32xf32>
      }
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %h = 0 to 6 {
      affine.for %d = 0 to 8 {
        %x = affine.load %in[%i, %h, %d + 8] : memref<64x6x32xf32>
        affine.store %x, %out[%i, %h, %d] : memref<64x6x8xf32>
      }
    }
  }
  return
}

// -----

// Both tiles are half of what they share with the first nest: the one has 8 of
// a block's 16 elements, the other 128 of a row's 256.

// CHECK-LABEL: func @should_split_by_halves_of_blocks_and_of_rows
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 {
// CHECK-COUNT-2: math.exp
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_split_by_halves_of_blocks_and_of_rows(%in: memref<64x256xf32>, %t: memref<64x16x16xf32>, %out: memref<64x16x8xf32>, %other: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %e = 0 to 16 {
        %x = affine.load %in[%i, %b * 16 + %e] : memref<64x256xf32>
        %y = math.exp %x : f32
        affine.store %y, %t[%i, %b, %e] : memref<64x16x16xf32>
      }
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %b = 0 to 16 {
      affine.for %p = 0 to 8 {
        %x = affine.load %t[%i, %b, %p * 2] : memref<64x16x16xf32>
        %y = affine.load %t[%i, %b, %p * 2 + 1] : memref<64x16x16xf32>
        %z = arith.addf %x, %y : f32
        affine.store %z, %out[%i, %b, %p] : memref<64x16x8xf32>
      }
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j * 2] : memref<64x256xf32>
      affine.store %x, %other[%i, %j] : memref<64x128xf32>
    }
  }
  return
}
