// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands))' \
// RUN:   | FileCheck %s

// Upstream's own parallelizer agrees about every band, with reductions inside:
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands,affine-parallelize))' \
// RUN:   | FileCheck %s --check-prefix=PARALLEL

// CHECK-LABEL: func @should_fuse_producer_and_consumer
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: %[[X:.*]] = affine.load %arg0[%[[I]]]
// CHECK-NEXT: affine.store %[[X]], %arg1[%[[I]]]
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 128 {
// CHECK-NEXT: affine.load %arg1[%[[I]]]
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%[[I]], %[[J]]]
// CHECK-NEXT: }
// CHECK-NEXT: } {bridge.band, bridge.kernels = [0, 1], bridge.nodes = ["op0", "op1"]}
// CHECK-NEXT: return
// PARALLEL-LABEL: func @should_fuse_producer_and_consumer
// PARALLEL: affine.parallel (%{{.*}}) = (0) to (64)
// PARALLEL: affine.parallel (%{{.*}}) = (0) to (128)
// PARALLEL-NOT: affine.for
func.func @should_fuse_producer_and_consumer(%in: memref<64xf32>, %t: memref<64xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %t[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["op0"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %y = affine.load %t[%i] : memref<64xf32>
      affine.store %y, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["op1"]}
  return
}

// -----

// All common loops are the band.

// CHECK-LABEL: func @should_fuse_readers_of_one_input
// CHECK: affine.for
// CHECK-NEXT: affine.for
// CHECK: affine.store %{{.*}}, %arg1
// CHECK: affine.store %{{.*}}, %arg2
// CHECK: } {bridge.band}
// CHECK-NEXT: } {bridge.band
// PARALLEL-LABEL: func @should_fuse_readers_of_one_input
// PARALLEL: affine.parallel (%{{.*}}) = (0) to (64)
// PARALLEL-NEXT: affine.parallel (%{{.*}}) = (0) to (128)
func.func @should_fuse_readers_of_one_input(%in: memref<64x128xf32>, %a: memref<64x128xf32>, %b: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = math.exp %x : f32
      affine.store %y, %a[%i, %j] : memref<64x128xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %y = math.sin %x : f32
      affine.store %y, %b[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// Sum of squares, normalise, absolute maximum, quantise: one row at a time, in
// order, with a symbolic number of rows.

// CHECK-LABEL: func @should_fuse_chain_of_four
// CHECK: affine.for %[[I:.*]] = 0 to %arg5 {
// CHECK: affine.for %{{.*}} = 0 to 128 iter_args
// CHECK: affine.store %{{.*}}, %arg1[%[[I]]]
// CHECK: affine.for %{{.*}} = 0 to 128 {
// CHECK: affine.load %arg1[%[[I]]]
// CHECK: affine.store %{{.*}}, %arg2
// CHECK: affine.for %{{.*}} = 0 to 128 iter_args
// CHECK: arith.maximumf
// CHECK: affine.store %{{.*}}, %arg3[%[[I]]]
// CHECK: affine.for %{{.*}} = 0 to 128 {
// CHECK: arith.divf
// CHECK: arith.fptosi
// CHECK: affine.store %{{.*}}, %arg4
// CHECK: } {bridge.band, bridge.kernels = [0, 1, 2, 3], bridge.nodes = ["squares", "norm", "absmax", "quantise"]}
// CHECK-NOT: affine.for
// PARALLEL-LABEL: func @should_fuse_chain_of_four
// PARALLEL: affine.parallel (%{{.*}}) = (0) to (symbol(%arg5))
// PARALLEL-NEXT: affine.for %{{.*}} = 0 to 128 iter_args
func.func @should_fuse_chain_of_four(%in: memref<?x128xf32>, %ss: memref<?xf32>, %t: memref<?x128xf32>, %m: memref<?xf32>, %q: memref<?x128xi8>, %n: index) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to %n {
    %s = affine.for %r = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<?x128xf32>
      %y = arith.mulf %x, %x : f32
      %b = arith.addf %a, %y : f32
      affine.yield %b : f32
    }
    affine.store %s, %ss[%i] : memref<?xf32>
  } {bridge.kernels = [0], bridge.nodes = ["squares"]}
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<?x128xf32>
      %s = affine.load %ss[%i] : memref<?xf32>
      %r = math.rsqrt %s : f32
      %y = arith.mulf %x, %r : f32
      affine.store %y, %t[%i, %j] : memref<?x128xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["norm"]}
  affine.for %i = 0 to %n {
    %s = affine.for %r = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %t[%i, %r] : memref<?x128xf32>
      %y = math.absf %x : f32
      %b = arith.maximumf %a, %y : f32
      affine.yield %b : f32
    }
    affine.store %s, %m[%i] : memref<?xf32>
  } {bridge.kernels = [2], bridge.nodes = ["absmax"]}
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 128 {
      %x = affine.load %t[%i, %j] : memref<?x128xf32>
      %s = affine.load %m[%i] : memref<?xf32>
      %y = arith.divf %x, %s : f32
      %z = arith.fptosi %y : f32 to i8
      affine.store %z, %q[%i, %j] : memref<?x128xi8>
    }
  } {bridge.kernels = [3], bridge.nodes = ["quantise"]}
  return
}

// -----

// The nests of one kernel are fused first: "c" is fused with "a" and "b" before
// "d", which is between them.

// CHECK-LABEL: func @should_fuse_nests_of_one_kernel_first
// CHECK: bridge.kernels = [1, 0, 0, 0], bridge.nodes = ["d", "a", "b", "c"]
// CHECK-NOT: affine.for
func.func @should_fuse_nests_of_one_kernel_first(%in: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %d: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %a[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["a"]}
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %b[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["b"]}
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %d[%i] : memref<64xf32>
  } {bridge.kernels = [1], bridge.nodes = ["d"]}
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %c[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["c"]}
  return
}

// -----

// A statement of the row between the inner loops keeps its place.

// CHECK-LABEL: func @should_fuse_statement_of_the_row
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK: affine.for %{{.*}} = 0 to 128 iter_args
// CHECK: affine.store %{{.*}}, %arg1[%[[I]]]
// CHECK-NEXT: affine.load %arg1[%[[I]]]
// CHECK-NEXT: math.rsqrt
// CHECK-NEXT: affine.store %{{.*}}, %arg2[%[[I]]]
// CHECK-NEXT: affine.for %{{.*}} = 0 to 128 {
// CHECK: affine.load %arg2[%[[I]]]
func.func @should_fuse_statement_of_the_row(%in: memref<64x128xf32>, %ss: memref<64xf32>, %rs: memref<64xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 128 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x128xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %ss[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    %s = affine.load %ss[%i] : memref<64xf32>
    %r = math.rsqrt %s : f32
    affine.store %r, %rs[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %in[%i, %j] : memref<64x128xf32>
      %s = affine.load %rs[%i] : memref<64xf32>
      %y = arith.mulf %x, %s : f32
      affine.store %y, %out[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// The second nest overwrites what the first reads, in the same row: inside a
// band iteration the read still comes first.

// CHECK-LABEL: func @should_fuse_write_after_read_in_one_row
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK: affine.load %arg0[%[[I]], %{{.*}} + 64]
// CHECK: affine.store %{{.*}}, %arg1
// CHECK: affine.store %{{.*}}, %arg0[%[[I]], %{{.*}}]
// CHECK: } {bridge.band
func.func @should_fuse_write_after_read_in_one_row(%a: memref<64x128xf32>, %out: memref<64x64xf32>, %in: memref<64x64xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %a[%i, %j + 64] : memref<64x128xf32>
      affine.store %x, %out[%i, %j] : memref<64x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %in[%i, %j] : memref<64x64xf32>
      affine.store %x, %a[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// Symbolic rows and columns: equal because they are the same value.

// CHECK-LABEL: func @should_fuse_symbolic_domains
// CHECK: affine.for %{{.*}} = 0 to %arg3 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to %arg4 {
// CHECK: affine.store %{{.*}}, %arg1
// CHECK: affine.store %{{.*}}, %arg2
// CHECK: } {bridge.band}
// CHECK-NEXT: } {bridge.band
func.func @should_fuse_symbolic_domains(%in: memref<?x?xf32>, %a: memref<?x?xf32>, %b: memref<?x?xf32>, %n: index, %m: index) {
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      %x = affine.load %in[%i, %j] : memref<?x?xf32>
      affine.store %x, %a[%i, %j] : memref<?x?xf32>
    }
  }
  affine.for %i = 0 to %n {
    affine.for %j = 0 to %m {
      %x = affine.load %a[%i, %j] : memref<?x?xf32>
      affine.store %x, %b[%i, %j] : memref<?x?xf32>
    }
  }
  return
}

// -----

// Operations between the nests that access nothing of them stay; the value that
// the second nest needs is computed before the merged nest.

// CHECK-LABEL: func @should_fuse_across_pure_operations
// CHECK: %[[K:.*]] = arith.addf %arg3, %arg3
// CHECK-NEXT: affine.for %{{.*}} = 0 to 64 {
// CHECK: affine.store %{{.*}}, %arg1
// CHECK: arith.addf %{{.*}}, %[[K]]
// CHECK: affine.store %{{.*}}, %arg2
// CHECK: } {bridge.band
// CHECK-NEXT: return
func.func @should_fuse_across_pure_operations(%in: memref<64xf32>, %t: memref<64xf32>, %out: memref<64xf32>, %f: f32) {
  affine.for %i = 0 to 64 {
    %x = affine.load %in[%i] : memref<64xf32>
    affine.store %x, %t[%i] : memref<64xf32>
  }
  %k = arith.addf %f, %f : f32
  affine.for %i = 0 to 64 {
    %x = affine.load %t[%i] : memref<64xf32>
    %y = arith.addf %x, %k : f32
    affine.store %y, %out[%i] : memref<64xf32>
  }
  return
}
