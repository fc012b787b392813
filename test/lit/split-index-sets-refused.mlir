// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-split-index-sets))' \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-split-index-sets{max-pieces=8}))' \
// RUN:   2>/dev/null | FileCheck %s --check-prefix=EIGHT

// CHECK-LABEL: func @should_not_split_extents_that_do_not_divide
// CHECK: affine.for %{{.*}} = 0 to 256 iter_args
func.func @should_not_split_extents_that_do_not_divide(%in: memref<64x256xf32>, %sum: memref<64xf32>, %out: memref<64x96xf32>) {
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
    affine.for %j = 0 to 96 {
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      affine.store %x, %out[%i, %j] : memref<64x96xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_split_for_two_tiles
// CHECK: affine.for %{{.*}} = 0 to 256 iter_args
func.func @should_not_split_for_two_tiles(%in: memref<64x256xf32>, %sum: memref<64xf32>, %a: memref<64x128xf32>, %b: memref<64x64xf32>, %other: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%acc = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %y = arith.addf %acc, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      affine.store %x, %a[%i, %j] : memref<64x128xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      affine.store %x, %b[%i, %j] : memref<64x64xf32>
    }
  }
  return
}

// -----

// The tile reads only the sum: no access relation determines its piece of the
// row.

// CHECK-LABEL: func @should_not_split_without_access_relation
// CHECK: affine.for %{{.*}} = 0 to 256 iter_args
func.func @should_not_split_without_access_relation(%in: memref<64x256xf32>, %sum: memref<64xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{[reduction_not_splittable] no family of affine pieces}}
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
      %x = affine.load %sum[%i] : memref<64xf32>
      affine.store %x, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// The same number of elements, but other elements: the tile is read transposed,
// in the rows of other band iterations.

// CHECK-LABEL: func @should_not_split_by_transposed_tile
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
func.func @should_not_split_by_transposed_tile(%in: memref<64x64xf32>, %sum: memref<64xf32>, %out: memref<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{[reduction_not_splittable]}}
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x64xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%j, %i] : memref<64x64xf32>
      affine.store %x, %out[%i, %j] : memref<64x32xf32>
    }
  }
  return
}

// -----

// j mod 128 is each element of a half twice: the images are no partition.

// CHECK-LABEL: func @should_not_split_by_quasi_affine_subscript
// CHECK: affine.for %{{.*}} = 0 to 256 iter_args
func.func @should_not_split_by_quasi_affine_subscript(%in: memref<64x256xf32>, %sum: memref<64xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{[reduction_not_splittable]}}
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
      %x = affine.load %in[%i, %j mod 64] : memref<64x256xf32>
      affine.store %x, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// More pieces than max-pieces, 16 unless given.

// CHECK-LABEL: func @should_not_split_into_more_than_max_pieces
// CHECK: affine.for %{{.*}} = 0 to 2048 iter_args
// EIGHT-LABEL: func @should_not_split_into_more_than_max_pieces
// EIGHT: affine.for %{{.*}} = 0 to 2048 iter_args
func.func @should_not_split_into_more_than_max_pieces(%in: memref<64x2048xf32>, %sum: memref<64xf32>, %out: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 2048 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x2048xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j] : memref<64x2048xf32>
      affine.store %x, %out[%i, %j] : memref<64x64xf32>
    }
  }
  return
}

// -----

// Sixteen pieces: split by default, but not with max-pieces=8.

// CHECK-LABEL: func @should_split_into_max_pieces
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
// EIGHT-LABEL: func @should_split_into_max_pieces
// EIGHT: affine.for %{{.*}} = 0 to 1024 iter_args
func.func @should_split_into_max_pieces(%in: memref<64x1024xf32>, %sum: memref<64xf32>, %out: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 1024 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x1024xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j] : memref<64x1024xf32>
      affine.store %x, %out[%i, %j] : memref<64x64xf32>
    }
  }
  return
}

// -----

// Every step of a running sum is stored: the order of the row matters.

// CHECK-LABEL: func @should_not_split_running_sum
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
func.func @should_not_split_running_sum(%in: memref<8x64xf32>, %t: memref<8x64xf32>, %out: memref<8x32xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{or its iterations cannot be reordered}}
  affine.for %i = 0 to 8 {
    %s = affine.for %r = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<8x64xf32>
      %b = arith.addf %a, %x : f32
      affine.store %b, %t[%i, %r] : memref<8x64xf32>
      affine.yield %b : f32
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 32 {
      %x = affine.load %t[%i, %j] : memref<8x64xf32>
      %y = affine.load %t[%i, %j + 32] : memref<8x64xf32>
      %z = arith.addf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<8x32xf32>
    }
  }
  return
}

// -----

// A recurrence through memory instead of iter_args.

// CHECK-LABEL: func @should_not_split_recurrence_in_memory
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_split_recurrence_in_memory(%t: memref<8x65xf32>, %out: memref<8x32xf32>) {
  // expected-remark@+1 {{[reduction_not_splittable]}}
  affine.for %i = 0 to 8 {
    affine.for %r = 0 to 64 {
      %x = affine.load %t[%i, %r] : memref<8x65xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%i, %r + 1] : memref<8x65xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 32 {
      %x = affine.load %t[%i, %j] : memref<8x65xf32>
      %y = affine.load %t[%i, %j + 32] : memref<8x65xf32>
      %z = arith.addf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<8x32xf32>
    }
  }
  return
}

// -----

// Subtraction is not associative.

// CHECK-LABEL: func @should_not_split_other_combiner
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
func.func @should_not_split_other_combiner(%in: memref<8x64xf32>, %last: memref<8xf32>, %out: memref<8x32xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{[reduction_not_splittable]}}
  affine.for %i = 0 to 8 {
    %s = affine.for %r = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<8x64xf32>
      %b = arith.subf %x, %a : f32
      affine.yield %b : f32
    }
    affine.store %s, %last[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%i, %j] : memref<8x64xf32>
      affine.store %x, %out[%i, %j] : memref<8x32xf32>
    }
  }
  return
}

// -----

// Two states that exchange their places are no two reductions.

// CHECK-LABEL: func @should_not_split_swapped_states
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
func.func @should_not_split_swapped_states(%in: memref<8x64xf32>, %sum: memref<8xf32>, %out: memref<8x32xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{[reduction_not_splittable]}}
  affine.for %i = 0 to 8 {
    %s:2 = affine.for %r = 0 to 64 iter_args(%a = %zero, %b = %zero) -> (f32, f32) {
      %x = affine.load %in[%i, %r] : memref<8x64xf32>
      %c = arith.addf %a, %x : f32
      affine.yield %b, %c : f32, f32
    }
    affine.store %s#0, %sum[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%i, %j] : memref<8x64xf32>
      affine.store %x, %out[%i, %j] : memref<8x32xf32>
    }
  }
  return
}

// -----

// The outer loop adds up sums of the inner loop: its state does not pass
// through the inner loop.

// CHECK-LABEL: func @should_not_split_sum_of_partial_sums
// CHECK: affine.for %{{.*}} = 0 to 4 iter_args
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
func.func @should_not_split_sum_of_partial_sums(%in: memref<8x4x64xf32>, %sum: memref<8xf32>, %out: memref<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{[reduction_not_splittable]}}
  affine.for %i = 0 to 8 {
    %s = affine.for %h = 0 to 4 iter_args(%a = %zero) -> (f32) {
      %t = affine.for %d = 0 to 64 iter_args(%b = %zero) -> (f32) {
        %x = affine.load %in[%i, %h, %d] : memref<8x4x64xf32>
        %c = arith.addf %b, %x : f32
        affine.yield %c : f32
      }
      %u = arith.addf %a, %t : f32
      affine.yield %u : f32
    }
    affine.store %s, %sum[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, 0, %j] : memref<8x4x64xf32>
      affine.store %x, %out[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// The piece 3 j is partly outside the row.

// CHECK-LABEL: func @should_not_split_by_images_outside_of_the_row
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_split_by_images_outside_of_the_row(%in: memref<8x128xf32>, %t: memref<8x64xf32>, %out: memref<8x32xf32>) {
  // expected-remark@+1 {{[reduction_not_splittable]}}
  affine.for %i = 0 to 8 {
    affine.for %r = 0 to 64 {
      %x = affine.load %in[%i, %r] : memref<8x128xf32>
      affine.store %x, %t[%i, %r] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%i, 3 * %j] : memref<8x128xf32>
      affine.store %x, %out[%i, %j] : memref<8x32xf32>
    }
  }
  return
}

// -----

// h + d is the same element for several (h, d).

// CHECK-LABEL: func @should_not_split_by_overlapping_images
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_split_by_overlapping_images(%in: memref<8x64xf32>, %t: memref<8x64xf32>, %out: memref<8x2x16xf32>) {
  // expected-remark@+1 {{[reduction_not_splittable]}}
  affine.for %i = 0 to 8 {
    affine.for %r = 0 to 64 {
      %x = affine.load %in[%i, %r] : memref<8x64xf32>
      affine.store %x, %t[%i, %r] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %h = 0 to 2 {
      affine.for %d = 0 to 16 {
        %x = affine.load %in[%i, %h + %d] : memref<8x64xf32>
        affine.store %x, %out[%i, %h, %d] : memref<8x2x16xf32>
      }
    }
  }
  return
}

// -----

// Four nests that read pixels of patches, two of them the same.

// CHECK-LABEL: func @should_not_split_by_tiles_that_overlap
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_split_by_tiles_that_overlap(%in: memref<16x64x6xf32>, %t: memref<16x64x6xf32>, %a: memref<16x4x4x6xf32>, %b: memref<16x4x4x6xf32>, %c: memref<16x4x4x6xf32>, %d: memref<16x4x4x6xf32>) {
  // expected-remark@+1 {{[reduction_not_splittable]}}
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
          %x = affine.load %t[%i, %j * 16 + %k * 2, %l] : memref<16x64x6xf32>
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

// The three nests do not read one pixel of each patch.

// CHECK-LABEL: func @should_not_split_by_tiles_that_leave_a_gap
// CHECK: affine.for %{{.*}} = 0 to 64 {
func.func @should_not_split_by_tiles_that_leave_a_gap(%in: memref<16x64x6xf32>, %t: memref<16x64x6xf32>, %a: memref<16x4x4x6xf32>, %b: memref<16x4x4x6xf32>, %c: memref<16x4x4x6xf32>) {
  // expected-remark@+1 {{[reduction_not_splittable]}}
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
  return
}

// -----

// The second nest has one value for each eight neighbours of the first: a lane
// that had all eight would access each sector of memory eight times.

// CHECK-LABEL: func @should_not_split_many_neighbours
// CHECK: affine.for %{{.*}} = 0 to 32 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 8 {
func.func @should_not_split_many_neighbours(%in: memref<64x32x8xf32>, %scale: memref<64x32xf32>, %sum: memref<64xf32>, %out: memref<64x32x8xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{no family of affine pieces}}
  affine.for %i = 0 to 64 {
    affine.for %f = 0 to 32 {
      affine.for %k = 0 to 8 {
        %x = affine.load %in[%i, %f, %k] : memref<64x32x8xf32>
        %s = affine.load %scale[%i, %f] : memref<64x32xf32>
        %y = arith.mulf %x, %s : f32
        affine.store %y, %out[%i, %f, %k] : memref<64x32x8xf32>
      }
    }
  }
  affine.for %i = 0 to 64 {
    %s = affine.for %f = 0 to 32 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %scale[%i, %f] : memref<64x32xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  return
}

// -----

// Four neighbours.

// CHECK-LABEL: func @should_split_few_neighbours
// CHECK: affine.for %{{.*}} = 0 to 32 {
// CHECK-NOT: affine.for
// CHECK-COUNT-4: affine.store %{{.*}}, %arg3
func.func @should_split_few_neighbours(%in: memref<64x32x4xf32>, %scale: memref<64x32xf32>, %sum: memref<64xf32>, %out: memref<64x32x4xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %f = 0 to 32 {
      affine.for %k = 0 to 4 {
        %x = affine.load %in[%i, %f, %k] : memref<64x32x4xf32>
        %s = affine.load %scale[%i, %f] : memref<64x32xf32>
        %y = arith.mulf %x, %s : f32
        affine.store %y, %out[%i, %f, %k] : memref<64x32x4xf32>
      }
    }
  }
  affine.for %i = 0 to 64 {
    %s = affine.for %f = 0 to 32 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %scale[%i, %f] : memref<64x32xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  return
}
