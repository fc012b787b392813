// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-interchange-loops))' \
// RUN:   | FileCheck %s

// After the interchange, the nests are fused.
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=FUSED

// CHECK-LABEL: func private @should_take_declaration
func.func private @should_take_declaration(memref<64xf32>)

// -----

// The copies of a head are around the rows that all of them read.

// CHECK-LABEL: func @should_move_rows_of_reader_out
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 256 iter_args
// CHECK: } {bridge.kernels = [0], bridge.nodes = ["sum"]}
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[H:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT: affine.load %arg1[%[[I]]]
// CHECK-NEXT: affine.load %arg0[%[[I]], %[[J]] + %[[H]] * 64]
// CHECK: affine.store %{{.*}}, %arg2[%[[H]], %[[I]], %[[J]]]
// CHECK: } {bridge.kernels = [1], bridge.nodes = ["scaled"]}
// CHECK-NEXT: return

// FUSED-LABEL: func @should_move_rows_of_reader_out
// FUSED: bridge.nodes = ["sum", "scaled"], bridge.parallel}
// FUSED-NEXT: return
func.func @should_move_rows_of_reader_out(%in: memref<64x256xf32>, %sum: memref<64xf32>, %out: memref<4x64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %h = 0 to 4 {
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 64 {
        %s = affine.load %sum[%i] : memref<64xf32>
        %x = affine.load %in[%i, %j + %h * 64] : memref<64x256xf32>
        %y = arith.mulf %x, %s : f32
        affine.store %y, %out[%h, %i, %j] : memref<4x64x64xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["scaled"]}
  return
}

// -----

// The reader reduces over the channels, so its rows are pixels; the writer has
// the channels around them.

// CHECK-LABEL: func @should_move_rows_of_writer_out
// CHECK: affine.for %[[P:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[C:.*]] = 0 to 32 {
// CHECK: affine.store %{{.*}}, %arg1[%[[C]], %[[P]]]
// CHECK: } {bridge.kernels = [0], bridge.nodes = ["act"]}
// CHECK-NEXT: affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 32 iter_args

// FUSED-LABEL: func @should_move_rows_of_writer_out
// FUSED: bridge.nodes = ["act", "sum"], bridge.parallel}
// FUSED-NEXT: return
func.func @should_move_rows_of_writer_out(%in: memref<32x64xf32>, %act: memref<32x64xf32>, %sum: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %c = 0 to 32 {
    affine.for %p = 0 to 64 {
      %x = affine.load %in[%c, %p] : memref<32x64xf32>
      %y = math.exp %x : f32
      affine.store %y, %act[%c, %p] : memref<32x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["act"]}
  affine.for %p = 0 to 64 {
    %s = affine.for %c = 0 to 32 iter_args(%a = %zero) -> (f32) {
      %y = affine.load %act[%c, %p] : memref<32x64xf32>
      %b = arith.addf %a, %y : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%p] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["sum"]}
  return
}

// -----

// The copy gets the band of its writer's kernel, although any prefix of the
// writer's own loops could be a band.

// CHECK-LABEL: func @should_move_to_band_of_kernel
// CHECK: bridge.nodes = ["scaled"]
// CHECK-NEXT: affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 4 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 64 {

// FUSED-LABEL: func @should_move_to_band_of_kernel
// FUSED: bridge.nodes = ["sum", "scaled", "copy"], bridge.parallel}
// FUSED-NEXT: return
func.func @should_move_to_band_of_kernel(%in: memref<64x256xf32>, %sum: memref<64xf32>, %t: memref<64x256xf32>, %out: memref<4x64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 256 {
      %s = affine.load %sum[%i] : memref<64xf32>
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      %y = arith.mulf %x, %s : f32
      affine.store %y, %t[%i, %j] : memref<64x256xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["scaled"]}
  affine.for %h = 0 to 4 {
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 64 {
        %x = affine.load %t[%i, %j + %h * 64] : memref<64x256xf32>
        affine.store %x, %out[%h, %i, %j] : memref<4x64x64xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["copy"]}
  return
}

// -----

// A running product over the heads: its loops have an order.

// CHECK-LABEL: func @should_not_interchange_recurrence
// CHECK: bridge.nodes = ["sum"]
// CHECK-NEXT: affine.for %{{.*}} = 0 to 4 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_interchange_recurrence(%in: memref<64x64xf32>, %sum: memref<64xf32>, %out: memref<5x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x64xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %h = 0 to 4 {
    affine.for %i = 0 to 64 {
      %s = affine.load %sum[%i] : memref<64xf32>
      %x = affine.load %out[%h, %i] : memref<5x64xf32>
      %y = arith.mulf %x, %s : f32
      affine.store %y, %out[%h + 1, %i] : memref<5x64xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["product"]}
  return
}

// -----

// No nest of the kernel is interchanged: its other nest has other loops.

// CHECK-LABEL: func @should_not_interchange_part_of_kernel
// CHECK: bridge.nodes = ["sum"]
// CHECK-NEXT: affine.for %{{.*}} = 0 to 4 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_interchange_part_of_kernel(%in: memref<64x64xf32>, %sum: memref<64xf32>, %out: memref<4x64xf32>, %flat: memref<256xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x64xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %h = 0 to 4 {
    affine.for %i = 0 to 64 {
      %s = affine.load %sum[%i] : memref<64xf32>
      affine.store %s, %out[%h, %i] : memref<4x64xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["copies"]}
  affine.for %k = 0 to 256 {
    %x = affine.load %out[%k floordiv 64, %k mod 64] : memref<4x64xf32>
    affine.store %x, %flat[%k] : memref<256xf32>
  } {bridge.kernels = [1], bridge.nodes = ["flat"]}
  return
}

// -----

// The reader already has the loops of one writer: it is not interchanged for
// the other, whose columns it reads.

// CHECK-LABEL: func @should_not_leave_other_fusion_candidate
// CHECK: bridge.nodes = ["columns"]
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT: affine.load %arg1[%[[I]]]
// CHECK-NEXT: affine.load %arg2[%[[J]]]
func.func @should_not_leave_other_fusion_candidate(%in: memref<64x64xf32>, %rows: memref<64xf32>, %columns: memref<64xf32>, %out: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x64xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %rows[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["rows"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%r, %i] : memref<64x64xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %columns[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["columns"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %s = affine.load %rows[%i] : memref<64xf32>
      %t = affine.load %columns[%j] : memref<64xf32>
      %y = arith.mulf %s, %t : f32
      affine.store %y, %out[%i, %j] : memref<64x64xf32>
    }
  } {bridge.kernels = [2], bridge.nodes = ["product"]}
  return
}

// -----

// As many rows in a block as there are blocks in a row: that the loops of both
// nests have equal extents says nothing of their iterations.

// CHECK-LABEL: func @should_move_rows_of_equal_extent
// CHECK: bridge.nodes = ["scale"]}
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[R:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT: affine.load %arg0[%[[B]], %[[R]], %[[C]], %[[J]]]
// CHECK-NEXT: affine.load %arg1[%[[B]], %[[C]]]
// CHECK: bridge.nodes = ["scaled"]}

// A nest that copies what a moved one stores follows it.
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[R:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT: affine.load %arg2[%[[B]], %[[R]], %[[C]], %[[J]]]
// CHECK: bridge.nodes = ["copy"]}

// FUSED-LABEL: func @should_move_rows_of_equal_extent
// FUSED: bridge.nodes = ["scale", "scaled", "copy"], bridge.parallel}
// FUSED-NEXT: return
func.func @should_move_rows_of_equal_extent(%in: memref<8x8x8x8xf32>, %scale: memref<8x8xf32>, %t: memref<8x8x8x8xf32>, %out: memref<8x8x8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %b = 0 to 8 {
    affine.for %c = 0 to 8 {
      %s = affine.for %r = 0 to 8 iter_args(%m = %zero) -> (f32) {
        %p = affine.for %j = 0 to 8 iter_args(%n = %m) -> (f32) {
          %x = affine.load %in[%b, %r, %c, %j] : memref<8x8x8x8xf32>
          %y = arith.maximumf %n, %x : f32
          affine.yield %y : f32
        }
        affine.yield %p : f32
      }
      affine.store %s, %scale[%b, %c] : memref<8x8xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["scale"]}
  affine.for %b = 0 to 8 {
    affine.for %r = 0 to 8 {
      affine.for %c = 0 to 8 {
        affine.for %j = 0 to 8 {
          %x = affine.load %in[%b, %r, %c, %j] : memref<8x8x8x8xf32>
          %s = affine.load %scale[%b, %c] : memref<8x8xf32>
          %y = arith.mulf %x, %s : f32
          affine.store %y, %t[%b, %r, %c, %j] : memref<8x8x8x8xf32>
        }
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["scaled"]}
  affine.for %b = 0 to 8 {
    affine.for %r = 0 to 8 {
      affine.for %c = 0 to 8 {
        affine.for %j = 0 to 8 {
          %x = affine.load %t[%b, %r, %c, %j] : memref<8x8x8x8xf32>
          affine.store %x, %out[%b, %r, %c, %j] : memref<8x8x8x8xf32>
        }
      }
    }
  } {bridge.kernels = [2], bridge.nodes = ["copy"]}
  return
}

// -----

// Rows first, then blocks of what they give: the last nest is over the rows,
// too, but the blocks, which it needs, are between the two.

// CHECK-LABEL: func @should_move_rows_past_what_is_before
// CHECK: bridge.nodes = ["scale"]}
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[C:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[R:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT: affine.load %arg0[%[[B]], %[[R]], %[[C]], %[[J]]]
// CHECK: bridge.nodes = ["scaled"]}

// FUSED-LABEL: func @should_move_rows_past_what_is_before
// FUSED: bridge.nodes = ["scale", "scaled"], bridge.parallel}
// FUSED-NEXT: return
func.func @should_move_rows_past_what_is_before(%in: memref<8x8x4x8xf32>, %mean: memref<8x8xf32>, %scale: memref<8x4xf32>, %out: memref<8x8x4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %b = 0 to 8 {
    affine.for %r = 0 to 8 {
      %s = affine.for %c = 0 to 4 iter_args(%m = %zero) -> (f32) {
        %p = affine.for %j = 0 to 8 iter_args(%n = %m) -> (f32) {
          %x = affine.load %in[%b, %r, %c, %j] : memref<8x8x4x8xf32>
          %y = arith.addf %n, %x : f32
          affine.yield %y : f32
        }
        affine.yield %p : f32
      }
      affine.store %s, %mean[%b, %r] : memref<8x8xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["mean"]}
  affine.for %b = 0 to 8 {
    affine.for %c = 0 to 4 {
      %s = affine.for %r = 0 to 8 iter_args(%m = %zero) -> (f32) {
        %p = affine.for %j = 0 to 8 iter_args(%n = %m) -> (f32) {
          %x = affine.load %in[%b, %r, %c, %j] : memref<8x8x4x8xf32>
          %z = affine.load %mean[%b, %r] : memref<8x8xf32>
          %w = arith.mulf %x, %z : f32
          %y = arith.maximumf %n, %w : f32
          affine.yield %y : f32
        }
        affine.yield %p : f32
      }
      affine.store %s, %scale[%b, %c] : memref<8x4xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["scale"]}
  affine.for %b = 0 to 8 {
    affine.for %r = 0 to 8 {
      affine.for %c = 0 to 4 {
        affine.for %j = 0 to 8 {
          %x = affine.load %in[%b, %r, %c, %j] : memref<8x8x4x8xf32>
          %z = affine.load %mean[%b, %r] : memref<8x8xf32>
          %s = affine.load %scale[%b, %c] : memref<8x4xf32>
          %w = arith.mulf %x, %z : f32
          %y = arith.mulf %w, %s : f32
          affine.store %y, %out[%b, %r, %c, %j] : memref<8x8x4x8xf32>
        }
      }
    }
  } {bridge.kernels = [2], bridge.nodes = ["scaled"]}
  return
}

// -----

// The candidate for a fusion may come before the nest that a reader is moved for,
// or after it; only one before it can be needed by it.

// CHECK-LABEL: func @should_move_writer_past_a_later_candidate
// CHECK: bridge.nodes = ["max"]}
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 2 {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4 iter_args
// CHECK-NEXT: affine.load %arg0[%[[I]] + %[[B]] * 4, %[[J]]]
// CHECK: bridge.nodes = ["part"]}
// CHECK-NEXT: affine.for %{{.*}} = 0 to 4 {
// CHECK: bridge.nodes = ["sum"]}
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 {
// CHECK: bridge.nodes = ["scaled"]}
// CHECK-NEXT: return

// FUSED-LABEL: func @should_move_writer_past_a_later_candidate
// FUSED: return
func.func @should_move_writer_past_a_later_candidate(%x: memref<8x4xf32>, %max: memref<8xf32>, %part: memref<2x4xf32>, %sum: memref<4xf32>, %y: memref<8x4xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 4 iter_args(%n = %zero) -> (f32) {
      %a = affine.load %x[%i, %j] : memref<8x4xf32>
      %b = arith.maximumf %n, %a : f32
      affine.yield %b : f32
    }
    affine.store %m, %max[%i] : memref<8xf32>
  } {bridge.kernels = [0], bridge.nodes = ["max"]}
  affine.for %b = 0 to 2 {
    affine.for %j = 0 to 4 {
      %s = affine.for %i = 0 to 4 iter_args(%n = %zero) -> (f32) {
        %a = affine.load %x[%i + %b * 4, %j] : memref<8x4xf32>
        %m = affine.load %max[%i + %b * 4] : memref<8xf32>
        %p = arith.mulf %a, %m : f32
        %q = arith.addf %n, %p : f32
        affine.yield %q : f32
      }
      affine.store %s, %part[%b, %j] : memref<2x4xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["part"]}
  affine.for %j = 0 to 4 {
    %s = affine.for %b = 0 to 2 iter_args(%n = %zero) -> (f32) {
      %a = affine.load %part[%b, %j] : memref<2x4xf32>
      %q = arith.addf %n, %a : f32
      affine.yield %q : f32
    }
    affine.store %s, %sum[%j] : memref<4xf32>
  } {bridge.kernels = [2], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 4 {
      %a = affine.load %x[%i, %j] : memref<8x4xf32>
      %m = affine.load %max[%i] : memref<8xf32>
      %p = arith.mulf %a, %m : f32
      affine.store %p, %y[%i, %j] : memref<8x4xf32>
    }
  } {bridge.kernels = [3], bridge.nodes = ["scaled"]}
  return
}
