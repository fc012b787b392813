// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands))' \
// RUN:   | FileCheck %s --implicit-check-not=bridge.band

// Row i of the second nest needs row i + 1 of the first.

// CHECK-LABEL: func @should_not_fuse_dependence_between_rows
func.func @should_not_fuse_dependence_between_rows(%in: memref<65x128xf32>, %t: memref<65x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<65x128xf32>
      // expected-note@below {{iteration (63, 0) writes it}}
      affine.store %x, %t[%i, %j] : memref<65x128xf32>
    }
  }
  // expected-remark@+1 {{[loop_carried_dependence] merged, one band iteration would need another's result}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      // expected-note@below {{iteration (62, 0) reads element [63, 0] of argument 1}}
      %x = affine.load %t[%i + 1, %j] : memref<65x128xf32>
      affine.store %x, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_fuse_dependence_between_symbolic_rows
func.func @should_not_fuse_dependence_between_symbolic_rows(%in: memref<?x128xf32>, %t: memref<?x128xf32>, %out: memref<?x128xf32>, %n: index) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<?x128xf32>
      // expected-note@below {{iteration (1, 127) writes element [1, 127] of argument 1}}
      affine.store %x, %t[%i, %j] : memref<?x128xf32>
    }
  }
  // expected-remark@+1 {{[loop_carried_dependence]}}
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 128 {
      // expected-note@below {{iteration (2, 127) reads it, where argument 3 = 4}}
      %x = affine.load %t[%n - %i - 1, %j] : memref<?x128xf32>
      affine.store %x, %out[%i, %j] : memref<?x128xf32>
    }
  }
  return
}

// -----

// The second nest overwrites what a later row of the first reads.

// CHECK-LABEL: func @should_not_fuse_write_after_read_of_another_row
func.func @should_not_fuse_write_after_read_of_another_row(%a: memref<65x64xf32>, %out: memref<64x64xf32>, %in: memref<64x64xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      // expected-note@below {{iteration (63, 0) reads it}}
      %x = affine.load %a[%i, %j] : memref<65x64xf32>
      affine.store %x, %out[%i, %j] : memref<64x64xf32>
    }
  }
  // expected-remark@+1 {{[loop_carried_dependence]}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j] : memref<64x64xf32>
      // expected-note@below {{iteration (62, 0) writes element [63, 0] of argument 0}}
      affine.store %x, %a[%i + 1, %j] : memref<65x64xf32>
    }
  }
  return
}

// -----

// A transposed consumer: the extents are equal, the elements are not.

// CHECK-LABEL: func @should_not_fuse_transposed_consumer
func.func @should_not_fuse_transposed_consumer(%in: memref<64x64xf32>, %t: memref<64x64xf32>, %out: memref<64x64xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j] : memref<64x64xf32>
      // expected-note@below {{iteration (62, 63) writes element [62, 63] of argument 1}}
      affine.store %x, %t[%i, %j] : memref<64x64xf32>
    }
  }
  // expected-remark@+1 {{[loop_carried_dependence]}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      // expected-note@below {{iteration (63, 62) reads it}}
      %x = affine.load %t[%j, %i] : memref<64x64xf32>
      affine.store %x, %out[%i, %j] : memref<64x64xf32>
    }
  }
  return
}

// -----

// A and C cannot be fused: B reads all rows of A, and C reads B.

// CHECK-LABEL: func @should_not_fuse_around_a_nest_between
// CHECK: affine.store %{{.*}}, %arg1
// CHECK: affine.store %{{.*}}, %arg2
// CHECK: affine.store %{{.*}}, %arg3
func.func @should_not_fuse_around_a_nest_between(%in: memref<64x32xf32>, %a: memref<64x32xf32>, %b: memref<32xf32>, %c: memref<64x32xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%i, %j] : memref<64x32xf32>
      affine.store %x, %a[%i, %j] : memref<64x32xf32>
    }
  }
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{[no_common_band] the nests' outer loops have different domains}}
  affine.for %j = 0 to 32 {
    %s = affine.for %i = 0 to 64 iter_args(%acc = %zero) -> (f32) {
      %x = affine.load %a[%i, %j] : memref<64x32xf32>
      %y = arith.addf %acc, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %b[%j] : memref<32xf32>
  }
  // expected-remark@+2 {{[cycle_through_other_node] another nest depends on the one and feeds the other}}
  // expected-remark@+1 {{[no_common_band]}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      %x = affine.load %a[%i, %j] : memref<64x32xf32>
      %y = affine.load %b[%j] : memref<32xf32>
      %z = arith.addf %x, %y : f32
      affine.store %z, %c[%i, %j] : memref<64x32xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_fuse_nests_that_share_nothing
func.func @should_not_fuse_nests_that_share_nothing(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %d: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %a[%i] : memref<64xf32>
    affine.store %x, %b[%i] : memref<64xf32>
  }
  // expected-remark@+1 {{[not_profitable] the nests share no element}}
  affine.for %i = 0 to 64 {
    %x = affine.load %c[%i] : memref<64xf32>
    affine.store %x, %d[%i] : memref<64xf32>
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_fuse_different_outer_domains
func.func @should_not_fuse_different_outer_domains(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %a[%i] : memref<64xf32>
    affine.store %x, %b[%i] : memref<64xf32>
  }
  // expected-remark@+1 {{[no_common_band] the nests' outer loops have different domains}}
  affine.for %i = 0 to 63 {
    %x = affine.load %b[%i] : memref<64xf32>
    affine.store %x, %c[%i] : memref<64xf32>
  }
  return
}

// -----

// Two sizes may be equal at run time, but that is not known here.

// CHECK-LABEL: func @should_not_fuse_different_symbols
func.func @should_not_fuse_different_symbols(%a: memref<?xf32>, %b: memref<?xf32>, %c: memref<?xf32>, %n: index, %m: index) {
  affine.for %i = 0 to %n {
    %x = affine.load %a[%i] : memref<?xf32>
    affine.store %x, %b[%i] : memref<?xf32>
  }
  // expected-remark@+1 {{[no_common_band]}}
  affine.for %i = 0 to %m {
    %x = affine.load %b[%i] : memref<?xf32>
    affine.store %x, %c[%i] : memref<?xf32>
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_fuse_different_inner_extents
func.func @should_not_fuse_different_inner_extents(%in: memref<64x128xf32>, %sum: memref<64xf32>, %out: memref<64x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x128xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  // expected-remark@+1 {{[extents_do_not_agree] the inner loops of the band have different extents}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 96 {
      %x = affine.load %sum[%i] : memref<64xf32>
      affine.store %x, %out[%i, %j] : memref<64x96xf32>
    }
  }
  return
}

// -----

// A call has unknown effects. (Upstream's dependence graph omits it.)

func.func private @anything(memref<64xf32>)

// CHECK-LABEL: func @should_not_fuse_across_call
func.func @should_not_fuse_across_call(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %a[%i] : memref<64xf32>
    affine.store %x, %b[%i] : memref<64xf32>
  }
  func.call @anything(%b) : (memref<64xf32>) -> ()
  // expected-remark@+1 {{[side_effect] an operation of the block has unknown effects}}
  affine.for %i = 0 to 64 {
    %x = affine.load %b[%i] : memref<64xf32>
    affine.store %x, %c[%i] : memref<64xf32>
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_fuse_across_copy
func.func @should_not_fuse_across_copy(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %a[%i] : memref<64xf32>
    affine.store %x, %b[%i] : memref<64xf32>
  }
  memref.copy %c, %b : memref<64xf32> to memref<64xf32>
  // expected-remark@+1 {{[cycle_through_other_node]}}
  affine.for %i = 0 to 64 {
    %x = affine.load %b[%i] : memref<64xf32>
    affine.store %x, %a[%i] : memref<64xf32>
  }
  return
}

// -----

func.func private @anything(memref<64xf32>)

// CHECK-LABEL: func @should_not_fuse_call_inside
func.func @should_not_fuse_call_inside(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %a[%i] : memref<64xf32>
    affine.store %x, %b[%i] : memref<64xf32>
  }
  // expected-remark@+1 {{[side_effect] an operation of the nest has effects that are no affine access}}
  affine.for %i = 0 to 64 {
    func.call @anything(%b) : (memref<64xf32>) -> ()
    %x = affine.load %b[%i] : memref<64xf32>
    affine.store %x, %c[%i] : memref<64xf32>
  }
  return
}

// -----

// A gather is no affine access.

// CHECK-LABEL: func @should_not_fuse_gather
func.func @should_not_fuse_gather(%a: memref<64xf32>, %b: memref<64xf32>, %at: memref<64xindex>, %c: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %a[%i] : memref<64xf32>
    affine.store %x, %b[%i] : memref<64xf32>
  }
  // expected-remark@+1 {{[side_effect]}}
  affine.for %i = 0 to 64 {
    %k = affine.load %at[%i] : memref<64xindex>
    %x = memref.load %b[%k] : memref<64xf32>
    affine.store %x, %c[%i] : memref<64xf32>
  }
  return
}

// -----

// A view of %b by another name.

// CHECK-LABEL: func @should_not_fuse_views
func.func @should_not_fuse_views(%a: memref<64x64xf32>, %b: memref<64x64xf32>) {
  %view = memref.reinterpret_cast %b to offset: [0], sizes: [64, 64], strides: [64, 1] : memref<64x64xf32> to memref<64x64xf32>
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %a[%i, %j] : memref<64x64xf32>
      affine.store %x, %b[%i, %j] : memref<64x64xf32>
    }
  }
  // expected-remark@+1 {{[aliasing] an accessed memref is a view or has a layout of its own}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %view[%j, %i] : memref<64x64xf32>
      affine.store %x, %a[%i, %j] : memref<64x64xf32>
    }
  }
  return
}

// -----

// [i, j] and [i + 1, j - 1] are one element of this layout.

// CHECK-LABEL: func @should_not_fuse_overlapping_layout
func.func @should_not_fuse_overlapping_layout(%a: memref<64x64xf32>, %t: memref<64x64xf32, strided<[1, 1]>>, %c: memref<64x64xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %a[%i, %j] : memref<64x64xf32>
      affine.store %x, %t[%i, %j] : memref<64x64xf32, strided<[1, 1]>>
    }
  }
  // expected-remark@+1 {{[aliasing]}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %t[%i, %j] : memref<64x64xf32, strided<[1, 1]>>
      affine.store %x, %c[%i, %j] : memref<64x64xf32>
    }
  }
  return
}

// -----

// Upstream's analysis takes a vector for its first element.

// CHECK-LABEL: func @should_not_fuse_vector_accesses
func.func @should_not_fuse_vector_accesses(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>) {
  affine.for %i = 0 to 56 {
    %x = affine.vector_load %a[%i] : memref<64xf32>, vector<8xf32>
    affine.vector_store %x, %b[%i] : memref<64xf32>, vector<8xf32>
  }
  // expected-remark@+1 {{[unsupported_op] an access of several elements at once}}
  affine.for %i = 0 to 56 {
    %x = affine.load %b[%i] : memref<64xf32>
    affine.store %x, %c[%i] : memref<64xf32>
  }
  return
}

// -----

// The third nest's gather may read any row, of which the first writes each.

// CHECK-LABEL: func @should_not_fuse_gather_from_what_is_written
func.func @should_not_fuse_gather_from_what_is_written(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %ids: memref<64xi64>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      affine.store %x, %t[%i, %j] : memref<64x128xf32>
    }
  }
  // expected-remark@+1 {{[indirect_index] an element whose place depends on data is read from a memref that is not only read}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %id = affine.load %ids[%i] : memref<64xi64>
      %rows = arith.constant 64 : index
      %stride = arith.constant 128 : index
      %y = bridge.gather %t[%j] at (%id) of (%rows) by (%stride) {checks = array<i1: true>, wraps = array<i1: true>} : memref<64x128xf32>, i64
      %z = arith.addf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}
