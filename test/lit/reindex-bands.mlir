// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-reindex-bands,canonicalize))' \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-reindex-bands{max-points=63},canonicalize))' \
// RUN:   | FileCheck %s --check-prefix=FEW
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-reindex-bands{max-points=64},canonicalize))' \
// RUN:   | FileCheck %s --check-prefix=ENOUGH
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-reindex-bands{guards=false},canonicalize))' \
// RUN:   | FileCheck %s --check-prefix=FEWER

// After the reindexing, the nests are fused.
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-reindex-bands,canonicalize,bridge-fuse-bands))' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=FUSED

// In each function the last nest reads, for each iteration of its outer loops,
// one of the rows that the first computes.

// CHECK-LABEL: func private @should_take_declaration
func.func private @should_take_declaration(memref<64xf32>)

// -----

// Rows in the order of the columns of an 8 x 8 square: row 8 k + j for (j, k).

// CHECK-LABEL: func @should_permute_rows
// CHECK: affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 8 {
// CHECK-NEXT: %[[S:.*]] = affine.for %[[R:.*]] = 0 to 96 iter_args
// CHECK-NEXT: affine.load %arg0[%[[J]] + %[[K]] * 8, %[[R]]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: affine.yield
// CHECK-NEXT: }
// CHECK-NEXT: affine.store %[[S]], %arg1[%[[J]] + %[[K]] * 8]
// CHECK-NEXT: }
// CHECK-NEXT: } {bridge.kernels = [0], bridge.nodes = ["sum"]}
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 {

// 64 points are evaluated, no more.
// FEW-LABEL: func @should_permute_rows
// FEW: affine.for %{{.*}} = 0 to 64 {
// FEW-NEXT: affine.for %{{.*}} = 0 to 96 iter_args
// ENOUGH-LABEL: func @should_permute_rows
// ENOUGH: affine.for %{{.*}} = 0 to 8 {
// ENOUGH-NEXT: affine.for %{{.*}} = 0 to 8 {
// ENOUGH-NEXT: affine.for %{{.*}} = 0 to 96 iter_args
// FUSED-LABEL: func @should_permute_rows
// FUSED: bridge.band,
// FUSED-NEXT: return
func.func @should_permute_rows(%in: memref<64x96xf32>, %sum: memref<64xf32>, %out: memref<8x8x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x96xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      affine.for %r = 0 to 96 {
        %s = affine.load %sum[%k * 8 + %j] : memref<64xf32>
        %x = affine.load %in[%k * 8 + %j, %r] : memref<64x96xf32>
        %y = arith.mulf %x, %s : f32
        affine.store %y, %out[%j, %k, %r] : memref<8x8x96xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["scale"]}
  return
}

// -----

// A transposed band: rows (i, j) of 4 x 6 for (j, i) of 6 x 4. Each loop equals
// one of the others, so that no points are evaluated.

// CHECK-LABEL: func @should_transpose_rows
// CHECK: affine.for %[[J:.*]] = 0 to 6 {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[R:.*]] = 0 to 96 iter_args
// CHECK-NEXT: affine.load %arg0[%[[I]], %[[J]], %[[R]]]
// CHECK: affine.store %{{.*}}, %arg1[%[[I]], %[[J]]]
// FUSED-LABEL: func @should_transpose_rows
// FUSED: bridge.band,
// FUSED-NEXT: return
func.func @should_transpose_rows(%in: memref<4x6x96xf32>, %sum: memref<4x6xf32>, %out: memref<6x4x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 6 {
      %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %j, %r] : memref<4x6x96xf32>
        %b = arith.addf %a, %x : f32
        affine.yield %b : f32
      }
      affine.store %s, %sum[%i, %j] : memref<4x6xf32>
    }
  }
  affine.for %j = 0 to 6 {
    affine.for %i = 0 to 4 {
      affine.for %r = 0 to 96 {
        %s = affine.load %sum[%i, %j] : memref<4x6xf32>
        affine.store %s, %out[%j, %i, %r] : memref<6x4x96xf32>
      }
    }
  }
  return
}

// -----

// Rolled by three, and cut into 8 x 8.

// CHECK-LABEL: func @should_roll_rows
// CHECK: affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 8 {
// CHECK-NEXT: affine.load %arg0[%[[J]] * 8 + %[[K]] - ((%[[J]] * 8 + %[[K]] + 3) floordiv 64) * 64 + 3]
// CHECK-NEXT: math.exp
// CHECK-NEXT: affine.store %{{.*}}, %arg1[%[[J]] * 8 + %[[K]] - ((%[[J]] * 8 + %[[K]] + 3) floordiv 64) * 64 + 3]
// FUSED-LABEL: func @should_roll_rows
// FUSED: bridge.band,
// FUSED-NEXT: return
// FEW-LABEL: func @should_roll_rows
// FEW: affine.for %{{.*}} = 0 to 64 {
func.func @should_roll_rows(%in: memref<64xf32>, %t: memref<64xf32>, %out: memref<8x8x16xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    %y = math.exp %x : f32
    affine.store %y, %t[%i] : memref<64xf32>
  }
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      affine.for %r = 0 to 16 {
        %x = affine.load %t[(%j * 8 + %k + 3) mod 64] : memref<64xf32>
        affine.store %x, %out[%j, %k, %r] : memref<8x8x16xf32>
      }
    }
  }
  return
}

// -----

// Windows of 4 x 4 of an 8 x 16 image, (h, w) = (4 a + c, 4 b + d): two
// independent parts of 8 and 16 points. The limit of FEW allows both, but not
// the 128 points of their product.

// CHECK-LABEL: func @should_cut_rows_into_windows
// CHECK: affine.for %[[A:.*]] = 0 to 2 {
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[C:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[D:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 32 iter_args
// CHECK-NEXT: affine.load %arg0[%[[A]] * 4 + %[[C]], %[[B]] * 4 + %[[D]], %{{.*}}]
// CHECK: affine.store %{{.*}}, %arg1[%[[A]] * 4 + %[[C]], %[[B]] * 4 + %[[D]]]
// FEW-LABEL: func @should_cut_rows_into_windows
// FEW: affine.for %{{.*}} = 0 to 2 {
// FEW-NEXT: affine.for %{{.*}} = 0 to 4 {
// FEW-NEXT: affine.for %{{.*}} = 0 to 4 {
// FEW-NEXT: affine.for %{{.*}} = 0 to 4 {
// FEW-NEXT: affine.for %{{.*}} = 0 to 32 iter_args
// FUSED-LABEL: func @should_cut_rows_into_windows
// FUSED: bridge.band,
// FUSED-NEXT: return
func.func @should_cut_rows_into_windows(%in: memref<8x16x32xf32>, %sum: memref<8x16xf32>, %out: memref<2x4x4x4x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %h = 0 to 8 {
    affine.for %w = 0 to 16 {
      %s = affine.for %r = 0 to 32 iter_args(%acc = %zero) -> (f32) {
        %x = affine.load %in[%h, %w, %r] : memref<8x16x32xf32>
        %y = arith.addf %acc, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%h, %w] : memref<8x16xf32>
    }
  }
  affine.for %a = 0 to 2 {
    affine.for %b = 0 to 4 {
      affine.for %c = 0 to 4 {
        affine.for %d = 0 to 4 {
          affine.for %r = 0 to 32 {
            %s = affine.load %sum[%a * 4 + %c, %b * 4 + %d] : memref<8x16xf32>
            affine.store %s, %out[%a, %b, %c, %d, %r] : memref<2x4x4x4x32xf32>
          }
        }
      }
    }
  }
  return
}

// -----

// The loop over a dynamic batch is the same, the loops over its rows are not.

// CHECK-LABEL: func @should_permute_rows_of_dynamic_batch
// CHECK: affine.for %[[N:.*]] = 0 to %arg3 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 8 {
// CHECK-NEXT: affine.load %arg0[%[[N]], %[[J]] + %[[K]] * 8]
// CHECK-NEXT: affine.store %{{.*}}, %arg1[%[[N]], %[[J]] + %[[K]] * 8]
// FUSED-LABEL: func @should_permute_rows_of_dynamic_batch
// FUSED: bridge.band,
// FUSED-NEXT: return
func.func @should_permute_rows_of_dynamic_batch(%in: memref<?x64xf32>, %t: memref<?x64xf32>, %out: memref<?x8x8xf32>, %n: index) {
  affine.for %b = 0 to %n {
    affine.for %i = 0 to 64 {
      %x = affine.load %in[%b, %i] : memref<?x64xf32>
      affine.store %x, %t[%b, %i] : memref<?x64xf32>
    }
  }
  affine.for %b = 0 to %n {
    affine.for %j = 0 to 8 {
      affine.for %k = 0 to 8 {
        %x = affine.load %t[%b, %k * 8 + %j] : memref<?x64xf32>
        affine.store %x, %out[%b, %j, %k] : memref<?x8x8xf32>
      }
    }
  }
  return
}

// -----

// The batches have two sizes, which are not known to be equal.

// CHECK-LABEL: func @should_not_permute_rows_of_other_batch
// CHECK: affine.for %{{.*}} = 0 to %arg3 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_permute_rows_of_other_batch(%in: memref<?x64xf32>, %t: memref<?x64xf32>, %out: memref<?x8x8xf32>, %n: index, %m: index) {
  affine.for %b = 0 to %n {
    affine.for %i = 0 to 64 {
      %x = affine.load %in[%b, %i] : memref<?x64xf32>
      affine.store %x, %t[%b, %i] : memref<?x64xf32>
    }
  }
  affine.for %b = 0 to %m {
    affine.for %j = 0 to 8 {
      affine.for %k = 0 to 8 {
        %x = affine.load %t[%b, %k * 8 + %j] : memref<?x64xf32>
        affine.store %x, %out[%b, %j, %k] : memref<?x8x8xf32>
      }
    }
  }
  return
}

// -----

// (0, 2) and (1, 0) read the same row, and the last rows are not read.

// CHECK-LABEL: func @should_not_reindex_rows_read_twice
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT: affine.load
func.func @should_not_reindex_rows_read_twice(%in: memref<64xf32>, %t: memref<64xf32>, %out: memref<8x8xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %t[%i] : memref<64xf32>
  }
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      %x = affine.load %t[%j * 2 + %k] : memref<64xf32>
      affine.store %x, %out[%j, %k] : memref<8x8xf32>
    }
  }
  return
}

// -----

// The rows are distinct, but only 32 of 64.

// CHECK-LABEL: func @should_not_reindex_where_rows_are_left
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT: affine.load
func.func @should_not_reindex_where_rows_are_left(%in: memref<64xf32>, %t: memref<64xf32>, %out: memref<4x8xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %t[%i] : memref<64xf32>
  }
  affine.for %j = 0 to 4 {
    affine.for %k = 0 to 8 {
      %x = affine.load %t[%k * 8 + %j] : memref<64xf32>
      affine.store %x, %out[%j, %k] : memref<4x8xf32>
    }
  }
  return
}

// -----

// Every row is read in all iterations of k: the row does not depend on that
// loop.

// CHECK-LABEL: func @should_not_reindex_by_loops_around_the_rows
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT: affine.load
func.func @should_not_reindex_by_loops_around_the_rows(%in: memref<64xf32>, %t: memref<64xf32>, %out: memref<4x8x8xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %t[%i] : memref<64xf32>
  }
  affine.for %l = 0 to 4 {
    affine.for %j = 0 to 8 {
      affine.for %k = 0 to 8 {
        %x = affine.load %t[%k * 8 + %j] : memref<64xf32>
        affine.store %x, %out[%l, %j, %k] : memref<4x8x8xf32>
      }
    }
  }
  return
}

// -----

// Without the guard, (0, 0) would read row -1; row 63 is not read.

// CHECK-LABEL: func @should_not_reindex_by_what_a_guard_admits
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT: affine.load
func.func @should_not_reindex_by_what_a_guard_admits(%in: memref<64xf32>, %t: memref<64xf32>, %out: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %t[%i] : memref<64xf32>
  }
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      %y = affine.if affine_set<(d0, d1) : (d0 * 8 + d1 - 1 >= 0)>(%j, %k) -> f32 {
        %x = affine.load %t[%j * 8 + %k - 1] : memref<64xf32>
        affine.yield %x : f32
      } else {
        affine.yield %zero : f32
      }
      affine.store %y, %out[%j, %k] : memref<8x8xf32>
    }
  }
  return
}

// -----

// Row i depends on row i - 1: the order must not change.

// CHECK-LABEL: func @should_not_reindex_recurrence
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT: affine.load
func.func @should_not_reindex_recurrence(%t: memref<65xf32>, %out: memref<8x8xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %t[%i] : memref<65xf32>
    %y = math.exp %x : f32
    affine.store %y, %t[%i + 1] : memref<65xf32>
  }
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      %x = affine.load %t[%k * -8 - %j + 64] : memref<65xf32>
      affine.store %x, %out[%j, %k] : memref<8x8xf32>
    }
  }
  return
}

// -----

// The lanes of a row may be in another order.

// CHECK-LABEL: func @should_not_touch_rows_in_order
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 96 {
// CHECK-NEXT: affine.load %arg0[%[[I]], %[[J]]]
func.func @should_not_touch_rows_in_order(%in: memref<64x96xf32>, %t: memref<64x96xf32>, %out: memref<64x96xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 96 {
      %x = affine.load %in[%i, %j] : memref<64x96xf32>
      affine.store %x, %t[%i, %j] : memref<64x96xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 96 {
      %x = affine.load %t[%i, -%j + 95] : memref<64x96xf32>
      affine.store %x, %out[%i, %j] : memref<64x96xf32>
    }
  }
  return
}

// -----

// Two nests of one kernel: the reader reads one of them, and both are reindexed
// and keep their attributes.

// CHECK-LABEL: func @should_move_kin_together
// CHECK: affine.for %[[A:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 8 {
// CHECK-NEXT: affine.load %arg0[%[[A]] + %[[B]] * 8]
// CHECK-NEXT: math.exp
// CHECK-NEXT: affine.store %{{.*}}, %arg1[%[[A]] + %[[B]] * 8]
// CHECK-NEXT: }
// CHECK-NEXT: } {bridge.kernels = [0], bridge.nodes = ["a"]}
// CHECK-NEXT: affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[D:.*]] = 0 to 8 {
// CHECK-NEXT: affine.load %arg0[%[[C]] + %[[D]] * 8]
// CHECK-NEXT: math.sin
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%[[C]] + %[[D]] * 8]
// CHECK-NEXT: }
// CHECK-NEXT: } {bridge.kernels = [0], bridge.nodes = ["b"]}
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 {
func.func @should_move_kin_together(%in: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>, %out: memref<8x8xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    %y = math.exp %x : f32
    affine.store %y, %a[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["a"]}
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    %y = math.sin %x : f32
    affine.store %y, %b[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["b"]}
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      %x = affine.load %a[%k * 8 + %j] : memref<64xf32>
      affine.store %x, %out[%j, %k] : memref<8x8xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["c"]}
  return
}

// -----

// One of the kernel's nests has other loops, or is a recurrence: none is
// reindexed.

// CHECK-LABEL: func @should_not_move_without_kin_of_other_loops
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK: affine.for %{{.*}} = 0 to 32 {
func.func @should_not_move_without_kin_of_other_loops(%in: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>, %out: memref<8x8xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %a[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["a"]}
  affine.for %i = 0 to 32 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %b[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["b"]}
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      %x = affine.load %a[%k * 8 + %j] : memref<64xf32>
      affine.store %x, %out[%j, %k] : memref<8x8xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["c"]}
  return
}

// -----

// CHECK-LABEL: func @should_not_move_without_serial_kernel_nest
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_move_without_serial_kernel_nest(%in: memref<64xf32>, %a: memref<64xf32>, %b: memref<65xf32>, %out: memref<8x8xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %a[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["a"]}
  affine.for %i = 0 to 64 {
    %x = affine.load %b[%i] : memref<65xf32>
    affine.store %x, %b[%i + 1] : memref<65xf32>
  } {bridge.kernels = [0], bridge.nodes = ["b"]}
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      %x = affine.load %a[%k * 8 + %j] : memref<64xf32>
      affine.store %x, %out[%j, %k] : memref<8x8xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["c"]}
  return
}

// -----

// The reader is in the same kernel, of which all nests would have to be
// reindexed.

// CHECK-LABEL: func @should_not_move_for_nest_of_same_kernel
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK: affine.for %{{.*}} = 0 to 8 {
func.func @should_not_move_for_nest_of_same_kernel(%in: memref<64xf32>, %a: memref<64xf32>, %out: memref<8x8xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %a[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["a"]}
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      %x = affine.load %a[%k * 8 + %j] : memref<64xf32>
      affine.store %x, %out[%j, %k] : memref<8x8xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["c"]}
  return
}

// -----

// A chain: the second nest is reindexed for the third, then the first, which
// the second reads row by row, for the second.

// CHECK-LABEL: func @should_move_chain
// CHECK: affine.for %[[A:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 8 {
// CHECK-NEXT: affine.load %arg0[%[[A]] + %[[B]] * 8]
// CHECK-NEXT: affine.store %{{.*}}, %arg1[%[[A]] + %[[B]] * 8]
// CHECK: affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[D:.*]] = 0 to 8 {
// CHECK-NEXT: affine.load %arg1[%[[C]] + %[[D]] * 8]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%[[C]] + %[[D]] * 8]
func.func @should_move_chain(%in: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>, %out: memref<8x8xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %a[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    %x = affine.load %a[%i] : memref<64xf32>
    affine.store %x, %b[%i] : memref<64xf32>
  }
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      %x = affine.load %b[%k * 8 + %j] : memref<64xf32>
      affine.store %x, %out[%j, %k] : memref<8x8xf32>
    }
  }
  return
}

// -----

// Two readers need two orders: each nest is reindexed once, for the first of
// them.

// CHECK-LABEL: func @should_move_once
// CHECK: affine.for %[[A:.*]] = 0 to 6 {
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 4 {
// CHECK-NEXT: affine.load %arg0[%[[B]], %[[A]]]
func.func @should_move_once(%in: memref<4x6xf32>, %t: memref<4x6xf32>, %a: memref<6x4xf32>, %b: memref<4x6xf32>) {
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 6 {
      %x = affine.load %in[%i, %j] : memref<4x6xf32>
      affine.store %x, %t[%i, %j] : memref<4x6xf32>
    }
  }
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 4 {
      %x = affine.load %t[%j, %i] : memref<4x6xf32>
      affine.store %x, %a[%i, %j] : memref<6x4xf32>
    }
  }
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 6 {
      %x = affine.load %t[%i, %j] : memref<4x6xf32>
      affine.store %x, %b[%i, %j] : memref<4x6xf32>
    }
  }
  return
}

// -----

// A chain whose nests each need another order than their writer has: the second
// is reindexed for the third before the first is for the second.

// CHECK-LABEL: func @should_take_the_order_of_the_last
// CHECK: affine.for %[[A:.*]] = 0 to 6 {
// CHECK-NEXT: affine.for %[[B:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[C:.*]] = 0 to 2 {
// CHECK-NEXT: affine.load %arg0[%[[A]] + %[[B]] * 12 + %[[C]] * 6]
// CHECK: affine.for %[[D:.*]] = 0 to 6 {
// CHECK-NEXT: affine.for %[[E:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[F:.*]] = 0 to 2 {
// CHECK-NEXT: affine.load %arg1[%[[D]] + %[[E]] * 12 + %[[F]] * 6]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%[[E]] * 2 + %[[F]], %[[D]]]
// FUSED-LABEL: func @should_take_the_order_of_the_last
// FUSED: bridge.band,
// FUSED-NEXT: return
func.func @should_take_the_order_of_the_last(%in: memref<48xf32>, %a: memref<48xf32>, %b: memref<8x6xf32>, %out: memref<6x4x2xf32>) {
  affine.for %i = 0 to 48 {
    %x = affine.load %in[%i] : memref<48xf32>
    affine.store %x, %a[%i] : memref<48xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 6 {
      %x = affine.load %a[%i * 6 + %j] : memref<48xf32>
      affine.store %x, %b[%i, %j] : memref<8x6xf32>
    }
  }
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 4 {
      affine.for %k = 0 to 2 {
        %x = affine.load %b[%j * 2 + %k, %i] : memref<8x6xf32>
        affine.store %x, %out[%i, %j, %k] : memref<6x4x2xf32>
      }
    }
  }
  return
}

// -----

// Of two nests in one kernel, the first has other loops, the digits of the
// second's rows, and stores what the second reads: it gets the second's loops,
// then both get the third's.

// CHECK-LABEL: func @should_take_the_loops_of_its_kernel_first
// CHECK: affine.for %[[I:.*]] = 0 to 6 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 4 {
// CHECK: affine.for %[[R:.*]] = 0 to 16 {
// CHECK: affine.store %{{.*}}, %arg1[{{.*}}, %[[R]]]
// CHECK: affine.for %[[I:.*]] = 0 to 6 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[R:.*]] = 0 to 16 iter_args
// CHECK: affine.load %arg1[%[[I]] + %[[J]] * 6, %[[R]]]
// FUSED-LABEL: func @should_take_the_loops_of_its_kernel_first
// FUSED: bridge.band,
// FUSED-NEXT: return
func.func @should_take_the_loops_of_its_kernel_first(%in: memref<8x3x16xf32>, %x: memref<24x16xf32>, %sum: memref<24xf32>, %out: memref<6x4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 3 {
      affine.for %r = 0 to 16 {
        %v = affine.load %in[%i, %j, %r] : memref<8x3x16xf32>
        affine.store %v, %x[%i * 3 + %j, %r] : memref<24x16xf32>
      }
    }
  } {bridge.kernels = [0]}
  affine.for %i = 0 to 24 {
    %s = affine.for %r = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %v = affine.load %x[%i, %r] : memref<24x16xf32>
      %t = arith.addf %a, %v : f32
      affine.yield %t : f32
    }
    affine.store %s, %sum[%i] : memref<24xf32>
  } {bridge.kernels = [0]}
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 4 {
      affine.for %r = 0 to 16 {
        %s = affine.load %sum[%j * 6 + %i] : memref<24xf32>
        %v = affine.load %x[%j * 6 + %i, %r] : memref<24x16xf32>
        %w = arith.mulf %v, %s : f32
        affine.store %w, %out[%i, %j, %r] : memref<6x4x16xf32>
      }
    }
  } {bridge.kernels = [1]}
  return
}

// -----

// The first nest's rows are no digits of the second's: the kernel is not
// changed.

// CHECK-LABEL: func @should_not_move_half_a_kernel
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 4 {
// CHECK: affine.for %{{.*}} = 0 to 24 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 16 iter_args
func.func @should_not_move_half_a_kernel(%in: memref<8x4x16xf32>, %x: memref<32x16xf32>, %sum: memref<24xf32>, %out: memref<6x4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 4 {
      affine.for %r = 0 to 16 {
        %v = affine.load %in[%i, %j, %r] : memref<8x4x16xf32>
        affine.store %v, %x[%i * 4 + %j, %r] : memref<32x16xf32>
      }
    }
  } {bridge.kernels = [0]}
  affine.for %i = 0 to 24 {
    %s = affine.for %r = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %v = affine.load %x[%i, %r] : memref<32x16xf32>
      %t = arith.addf %a, %v : f32
      affine.yield %t : f32
    }
    affine.store %s, %sum[%i] : memref<24xf32>
  } {bridge.kernels = [0]}
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 4 {
      affine.for %r = 0 to 16 {
        %s = affine.load %sum[%j * 6 + %i] : memref<24xf32>
        %v = affine.load %x[%j * 6 + %i, %r] : memref<32x16xf32>
        %w = arith.mulf %v, %s : f32
        affine.store %w, %out[%i, %j, %r] : memref<6x4x16xf32>
      }
    }
  } {bridge.kernels = [1]}
  return
}

// -----

// The reader pads 49 rows to 56, three of them in front: its loop becomes the
// band. In the padding nothing is loaded or stored, and the sum is of zeros.

// CHECK-DAG: #[[ROWS:.*]] = affine_set<(d0) : (d0 - 3 >= 0, -d0 + 51 >= 0)>
// CHECK-LABEL: func @should_guard_padded_rows
// CHECK: affine.for %[[B:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 56 {
// CHECK-NEXT: %[[S:.*]] = affine.for %[[R:.*]] = 0 to 96 iter_args
// CHECK-NEXT: %[[X:.*]] = affine.if #[[ROWS]](%[[I]]) -> f32 {
// CHECK-NEXT: affine.load %arg0[%[[B]], %[[I]] - 3, %[[R]]]
// CHECK-NEXT: affine.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: affine.yield %{{.*}} : f32
// CHECK-NEXT: }
// CHECK-NEXT: arith.addf %{{.*}}, %[[X]]
// CHECK-NEXT: affine.yield
// CHECK-NEXT: }
// CHECK-NEXT: affine.if #[[ROWS]](%[[I]]) {
// CHECK-NEXT: affine.store %[[S]], %arg1[%[[B]], %[[I]] - 3]
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: } {bridge.kernels = [0], bridge.nodes = ["sum"]}
// FUSED-LABEL: func @should_guard_padded_rows
// FUSED: bridge.band,
// FUSED-NEXT: return
// FEWER-LABEL: func @should_guard_padded_rows
// FEWER: affine.for %{{.*}} = 0 to 49 {
func.func @should_guard_padded_rows(%in: memref<8x49x96xf32>, %sum: memref<8x49xf32>, %out: memref<8x56x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %b = 0 to 8 {
    affine.for %i = 0 to 49 {
      %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%b, %i, %r] : memref<8x49x96xf32>
        %t = arith.addf %a, %x : f32
        affine.yield %t : f32
      }
      affine.store %s, %sum[%b, %i] : memref<8x49xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %b = 0 to 8 {
    affine.for %j = 0 to 56 {
      affine.for %r = 0 to 96 {
        %y = affine.if affine_set<(d0) : (d0 - 3 >= 0, -d0 + 51 >= 0)>(%j) -> f32 {
          %s = affine.load %sum[%b, %j - 3] : memref<8x49xf32>
          affine.yield %s : f32
        } else {
          affine.yield %zero : f32
        }
        affine.store %y, %out[%b, %j, %r] : memref<8x56x96xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["pad"]}
  return
}

// -----

// 13 rows in windows of four, the last of which holds one.

// CHECK: #[[ROWS:.*]] = affine_set<(d0, d1) : (d0 * -4 - d1 + 12 >= 0)>
// CHECK-LABEL: func @should_guard_padded_windows
// CHECK: affine.for %[[W:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %[[I:.*]] = 0 to 4 {
// CHECK: affine.if #[[ROWS]](%[[W]], %[[I]]) -> f32 {
// CHECK-NEXT: affine.load %arg0[%[[W]] * 4 + %[[I]], %{{.*}}]
// CHECK: affine.if #[[ROWS]](%[[W]], %[[I]]) {
// CHECK-NEXT: affine.store %{{.*}}, %arg1[%[[W]] * 4 + %[[I]]]
func.func @should_guard_padded_windows(%in: memref<13x96xf32>, %sum: memref<13xf32>, %out: memref<4x4x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 13 {
    %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<13x96xf32>
      %t = arith.addf %a, %x : f32
      affine.yield %t : f32
    }
    affine.store %s, %sum[%i] : memref<13xf32>
  }
  affine.for %w = 0 to 4 {
    affine.for %j = 0 to 4 {
      affine.for %r = 0 to 96 {
        %y = affine.if affine_set<(d0, d1) : (d0 * -4 - d1 + 12 >= 0)>(%w, %j) -> f32 {
          %s = affine.load %sum[%w * 4 + %j] : memref<13xf32>
          affine.yield %s : f32
        } else {
          affine.yield %zero : f32
        }
        affine.store %y, %out[%w, %j, %r] : memref<4x4x96xf32>
      }
    }
  }
  return
}

// -----

// Half of the 26 iterations would have no row.

// CHECK-LABEL: func @should_not_guard_half_of_the_rows
// CHECK: affine.for %{{.*}} = 0 to 13 {
func.func @should_not_guard_half_of_the_rows(%in: memref<13xf32>, %t: memref<13xf32>, %out: memref<26x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 13 {
    %x = affine.load %in[%i] : memref<13xf32>
    affine.store %x, %t[%i] : memref<13xf32>
  }
  affine.for %j = 0 to 26 {
    affine.for %r = 0 to 96 {
      %y = affine.if affine_set<(d0) : (-d0 + 12 >= 0)>(%j) -> f32 {
        %x = affine.load %t[%j] : memref<13xf32>
        affine.yield %x : f32
      } else {
        affine.yield %zero : f32
      }
      affine.store %y, %out[%j, %r] : memref<26x96xf32>
    }
  }
  return
}

// -----

// Row 0 would be computed for two of the reader's 16 iterations, which have 13
// rows.

// CHECK-LABEL: func @should_not_guard_rows_read_twice
// CHECK: affine.for %{{.*}} = 0 to 13 {
func.func @should_not_guard_rows_read_twice(%in: memref<13xf32>, %t: memref<13xf32>, %out: memref<16x96xf32>) {
  affine.for %i = 0 to 13 {
    %x = affine.load %in[%i] : memref<13xf32>
    affine.store %x, %t[%i] : memref<13xf32>
  }
  affine.for %j = 0 to 16 {
    affine.for %r = 0 to 96 {
      %x = affine.load %t[%j mod 13] : memref<13xf32>
      affine.store %x, %out[%j, %r] : memref<16x96xf32>
    }
  }
  return
}

// -----

// The second reader has the producer's loops, and could not be fused
// afterwards.

// CHECK-LABEL: func @should_not_leave_who_has_the_rows
// CHECK: affine.for %{{.*}} = 0 to 49 {
func.func @should_not_leave_who_has_the_rows(%in: memref<49x96xf32>, %sum: memref<49xf32>, %padded: memref<56x96xf32>, %out: memref<49x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 49 {
    %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<49x96xf32>
      %t = arith.addf %a, %x : f32
      affine.yield %t : f32
    }
    affine.store %s, %sum[%i] : memref<49xf32>
  }
  affine.for %j = 0 to 56 {
    affine.for %r = 0 to 96 {
      %y = affine.if affine_set<(d0) : (-d0 + 48 >= 0)>(%j) -> f32 {
        %s = affine.load %sum[%j] : memref<49xf32>
        affine.yield %s : f32
      } else {
        affine.yield %zero : f32
      }
      affine.store %y, %padded[%j, %r] : memref<56x96xf32>
    }
  }
  affine.for %i = 0 to 49 {
    affine.for %r = 0 to 96 {
      %s = affine.load %sum[%i] : memref<49xf32>
      affine.store %s, %out[%i, %r] : memref<49x96xf32>
    }
  }
  return
}

// -----

// The nest that the rows are read from is reindexed with them.

// CHECK-LABEL: func @should_guard_what_feeds_padded_rows
// CHECK-COUNT-3: affine.for %{{.*}} = 0 to 56 {
// CHECK-NOT: 0 to 49
func.func @should_guard_what_feeds_padded_rows(%in: memref<49xf32>, %s: memref<49xf32>, %t: memref<49xf32>, %out: memref<56x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 49 {
    %x = affine.load %in[%i] : memref<49xf32>
    affine.store %x, %s[%i] : memref<49xf32>
  }
  affine.for %i = 0 to 49 {
    %x = affine.load %s[%i] : memref<49xf32>
    affine.store %x, %t[%i] : memref<49xf32>
  }
  affine.for %j = 0 to 56 {
    affine.for %r = 0 to 96 {
      %y = affine.if affine_set<(d0) : (-d0 + 48 >= 0)>(%j) -> f32 {
        %x = affine.load %t[%j] : memref<49xf32>
        affine.yield %x : f32
      } else {
        affine.yield %zero : f32
      }
      affine.store %y, %out[%j, %r] : memref<56x96xf32>
    }
  }
  return
}

// -----

// Loops of the same extents, but rows in another order.

// CHECK-LABEL: func @should_turn_rows
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: affine.for %[[R:.*]] = 0 to 96 iter_args
// CHECK-NEXT: affine.load %arg0[-%[[I]] + 63, %[[R]]]
// CHECK: affine.store %{{.*}}, %arg1[-%[[I]] + 63]
// FUSED-LABEL: func @should_turn_rows
// FUSED: bridge.band,
// FUSED-NEXT: return
func.func @should_turn_rows(%in: memref<64x96xf32>, %sum: memref<64xf32>, %out: memref<64x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x96xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 96 {
      %s = affine.load %sum[63 - %i] : memref<64xf32>
      affine.store %s, %out[%i, %r] : memref<64x96xf32>
    }
  }
  return
}

// -----

// The second reader reads the rows in the producer's order.

// CHECK-LABEL: func @should_not_turn_rows_that_another_has
// CHECK: affine.load %arg0[%{{.*}}, %{{.*}}]
// CHECK: affine.store %{{.*}}, %arg1[%{{arg[0-9]+}}]
func.func @should_not_turn_rows_that_another_has(%in: memref<64x96xf32>, %sum: memref<64xf32>, %turned: memref<64x96xf32>, %out: memref<64x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x96xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 96 {
      %s = affine.load %sum[63 - %i] : memref<64xf32>
      affine.store %s, %turned[%i, %r] : memref<64x96xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 96 {
      %s = affine.load %sum[%i] : memref<64xf32>
      affine.store %s, %out[%i, %r] : memref<64x96xf32>
    }
  }
  return
}

// -----

// Scales in tiles, 128 rows as 4 x 32 of which the 4 are the inner ones: their
// nest gets the rows of the reduction, which keeps its own loops.

// CHECK-LABEL: func @should_follow_rows_in_tiles
// CHECK: affine.for %[[R:.*]] = 0 to 256 {
// CHECK-NEXT: affine.for %[[L:.*]] = 0 to 4 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 16 iter_args
// CHECK: affine.store %{{.*}}, %arg1[%[[R]], %[[L]]]
// CHECK: affine.for %[[ROW:.*]] = 0 to 256 {
// CHECK-NEXT: affine.for %[[COLUMN:.*]] = 0 to 4 {
// CHECK-NEXT: affine.load %arg1[{{.*}}, %[[COLUMN]]]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%[[ROW]] floordiv 128, %[[ROW]] mod 32, (%[[ROW]] floordiv 32) mod 4, %[[COLUMN]]]
// FUSED-LABEL: func @should_follow_rows_in_tiles
// FUSED: bridge.band,
// FUSED-NEXT: return
func.func @should_follow_rows_in_tiles(%in: memref<256x4x16xf32>, %max: memref<256x4xf32>, %out: memref<2x32x4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %r = 0 to 256 {
    affine.for %l = 0 to 4 {
      %s = affine.for %e = 0 to 16 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%r, %l, %e] : memref<256x4x16xf32>
        %b = arith.maximumf %a, %x : f32
        affine.yield %b : f32
      }
      affine.store %s, %max[%r, %l] : memref<256x4xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["max"]}
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 32 {
      affine.for %k = 0 to 4 {
        affine.for %l = 0 to 4 {
          %s = affine.load %max[%i * 128 + %k * 32 + %j, %l] : memref<256x4xf32>
          affine.store %s, %out[%i, %j, %k, %l] : memref<2x32x4x4xf32>
        }
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["tiles"]}
  return
}

// -----

// The same of a symbolic number of tiles: the highest digit of a row has a
// symbolic number of values, for any of which rows are in the tiles.

// CHECK-LABEL: func @should_follow_rows_in_any_number_of_tiles
// CHECK: affine.for %{{.*}} = 0 to #{{.*}}()[%arg3] {
// CHECK: affine.for %[[ROW:.*]] = 0 to #{{.*}}()[%arg3] {
// CHECK-NEXT: affine.for %[[COLUMN:.*]] = 0 to 4 {
// CHECK-NEXT: affine.load %arg1[{{.*}}, %[[COLUMN]]]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%[[ROW]] floordiv 128, %[[ROW]] mod 32, (%[[ROW]] floordiv 32) mod 4, %[[COLUMN]]]
// FUSED-LABEL: func @should_follow_rows_in_any_number_of_tiles
// FUSED: bridge.band,
// FUSED-NEXT: return
func.func @should_follow_rows_in_any_number_of_tiles(%in: memref<?x4x16xf32>, %max: memref<?x4xf32>, %out: memref<?x32x4x4xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  affine.for %r = 0 to affine_map<()[s0] -> (s0 * 128)>()[%n] {
    affine.for %l = 0 to 4 {
      %s = affine.for %e = 0 to 16 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%r, %l, %e] : memref<?x4x16xf32>
        %b = arith.maximumf %a, %x : f32
        affine.yield %b : f32
      }
      affine.store %s, %max[%r, %l] : memref<?x4xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["max"]}
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 32 {
      affine.for %k = 0 to 4 {
        affine.for %l = 0 to 4 {
          %s = affine.load %max[%i * 128 + %k * 32 + %j, %l] : memref<?x4xf32>
          affine.store %s, %out[%i, %j, %k, %l] : memref<?x32x4x4xf32>
        }
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["tiles"]}
  return
}

// -----

// There is a tile less than rows would fill, or there are tiles of another
// number: rows are left, or may be.

// CHECK-LABEL: func @should_not_follow_in_another_number_of_tiles
// CHECK: affine.for %{{.*}} = 0 to #{{.*}}()[%arg3] {
// CHECK: {bridge.kernels = [0], bridge.nodes = ["max"]}
// CHECK-NEXT: affine.for %{{.*}} = 0 to #{{.*}}()[%arg3] {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 4 {
// CHECK: affine.for %{{.*}} = 0 to %arg4 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 4 {
func.func @should_not_follow_in_another_number_of_tiles(%in: memref<?x16xf32>, %max: memref<?xf32>, %fewer: memref<?x4xf32>, %n: index, %m: index, %other: memref<?x4xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %r = 0 to affine_map<()[s0] -> (s0 * 4)>()[%n] {
    %s = affine.for %e = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%r, %e] : memref<?x16xf32>
      %b = arith.maximumf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %max[%r] : memref<?xf32>
  } {bridge.kernels = [0], bridge.nodes = ["max"]}
  affine.for %i = 0 to affine_map<(d0) -> (d0 - 1)>(%n) {
    affine.for %k = 0 to 4 {
      %s = affine.load %max[%i * 4 + %k] : memref<?xf32>
      affine.store %s, %fewer[%i, %k] : memref<?x4xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["fewer"]}
  affine.for %i = 0 to %m {
    affine.for %k = 0 to 4 {
      %s = affine.load %max[%i * 4 + %k] : memref<?xf32>
      affine.store %s, %other[%i, %k] : memref<?x4xf32>
    }
  } {bridge.kernels = [2], bridge.nodes = ["other"]}
  return
}

// -----

// 24 of 32 rows of a tile: its loops are not the digits of all rows.

// CHECK-LABEL: func @should_not_follow_for_some_of_the_rows
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 24 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 4 {
func.func @should_not_follow_for_some_of_the_rows(%in: memref<256x16xf32>, %max: memref<256xf32>, %out: memref<2x24x4xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %r = 0 to 256 {
    %s = affine.for %e = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%r, %e] : memref<256x16xf32>
      %b = arith.maximumf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %max[%r] : memref<256xf32>
  } {bridge.kernels = [0], bridge.nodes = ["max"]}
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 24 {
      affine.for %k = 0 to 4 {
        %s = affine.load %max[%i * 128 + %k * 32 + %j] : memref<256xf32>
        affine.store %s, %out[%i, %j, %k] : memref<2x24x4xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["tiles"]}
  return
}

// -----

// The tiles' nest has the loops of a third, which reads its tiles.

// CHECK-LABEL: func @should_not_follow_away_from_another
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 32 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 16 iter_args
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 32 {
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 32 {
func.func @should_not_follow_away_from_another(%in: memref<256x16xf32>, %max: memref<256xf32>, %tiles: memref<8x32xf32>, %out: memref<8x32xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %r = 0 to 256 {
    %s = affine.for %e = 0 to 16 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%r, %e] : memref<256x16xf32>
      %b = arith.maximumf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %max[%r] : memref<256xf32>
  } {bridge.kernels = [0], bridge.nodes = ["max"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 32 {
      %s = affine.load %max[%j * 8 + %i] : memref<256xf32>
      affine.store %s, %tiles[%i, %j] : memref<8x32xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["tiles"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 32 {
      %s = affine.load %tiles[%i, %j] : memref<8x32xf32>
      %t = math.exp %s : f32
      affine.store %t, %out[%i, %j] : memref<8x32xf32>
    }
  } {bridge.kernels = [2], bridge.nodes = ["reader"]}
  return
}

// -----

// A copy in 8 x 8, of the first kernel, has the consumer's loops: it stays, and
// the kernel's other nests get them.

// CHECK-LABEL: func @should_reindex_beside_a_reader_with_the_loops
// CHECK: affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[R:.*]] = 0 to 96 {
// CHECK-NEXT: affine.load %arg0[%[[J]] * 8 + %[[K]], %[[R]]]
// CHECK: bridge.nodes = ["exp"]
// CHECK: affine.load %arg1[%{{.*}} * 8 + %{{.*}}, %{{.*}}]
// CHECK: bridge.nodes = ["copy"]
// CHECK: affine.for %[[J:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[K:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 96 iter_args
// CHECK: bridge.nodes = ["sum"]
// FUSED-LABEL: func @should_reindex_beside_a_reader_with_the_loops
// FUSED: bridge.band,
// FUSED-NEXT: return
func.func @should_reindex_beside_a_reader_with_the_loops(%in: memref<64x96xf32>, %e: memref<64x96xf32>, %copy: memref<8x8x96xf32>, %sum: memref<64xf32>, %out: memref<8x8x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 96 {
      %x = affine.load %in[%i, %r] : memref<64x96xf32>
      %y = math.exp %x : f32
      affine.store %y, %e[%i, %r] : memref<64x96xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["exp"]}
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      affine.for %r = 0 to 96 {
        %y = affine.load %e[%j * 8 + %k, %r] : memref<64x96xf32>
        affine.store %y, %copy[%j, %k, %r] : memref<8x8x96xf32>
      }
    }
  } {bridge.kernels = [0], bridge.nodes = ["copy"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
      %y = affine.load %e[%i, %r] : memref<64x96xf32>
      %b = arith.addf %a, %y : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      affine.for %r = 0 to 96 {
        %s = affine.load %sum[%j * 8 + %k] : memref<64xf32>
        %y = affine.load %e[%j * 8 + %k, %r] : memref<64x96xf32>
        %z = arith.divf %y, %s : f32
        affine.store %z, %out[%j, %k, %r] : memref<8x8x96xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["divide"]}
  return
}

// -----

// The same with a copy in the order of the square's columns: its loops have the
// same domains, and iterations that read other rows.

// CHECK-LABEL: func @should_not_reindex_beside_a_reader_in_another_order
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK: bridge.nodes = ["exp"]
// CHECK: bridge.nodes = ["copy"]
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK: bridge.nodes = ["sum"]
func.func @should_not_reindex_beside_a_reader_in_another_order(%in: memref<64x96xf32>, %e: memref<64x96xf32>, %copy: memref<8x8x96xf32>, %sum: memref<64xf32>, %out: memref<8x8x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 96 {
      %x = affine.load %in[%i, %r] : memref<64x96xf32>
      %y = math.exp %x : f32
      affine.store %y, %e[%i, %r] : memref<64x96xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["exp"]}
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      affine.for %r = 0 to 96 {
        %y = affine.load %e[%k * 8 + %j, %r] : memref<64x96xf32>
        affine.store %y, %copy[%j, %k, %r] : memref<8x8x96xf32>
      }
    }
  } {bridge.kernels = [0], bridge.nodes = ["copy"]}
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
      %y = affine.load %e[%i, %r] : memref<64x96xf32>
      %b = arith.addf %a, %y : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      affine.for %r = 0 to 96 {
        %s = affine.load %sum[%j * 8 + %k] : memref<64xf32>
        %y = affine.load %e[%j * 8 + %k, %r] : memref<64x96xf32>
        %z = arith.divf %y, %s : f32
        affine.store %z, %out[%j, %k, %r] : memref<8x8x96xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["divide"]}
  return
}
