// RUN: bridge-opt %s --split-input-file --verify-diagnostics -o /dev/null --bridge-fuse
// RUN: bridge-opt %s --split-input-file --mlir-print-debuginfo --mlir-print-local-scope \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-forward-stores,canonicalize))' 2>/dev/null \
// RUN:   | FileCheck %s

// Examples name the iterations of the loops that the pipeline was given: here
// the subscripts of a store are its iteration in these loops, and other numbers
// in the loops that the passes make.

// Row 8 k + j for (j, k): bridge-interchange-loops makes (k, j) of the second
// nest, and bridge-reindex-bands gives the first one these loops.

func.func @should_name_rows_before_reindexing(%in: memref<64x96xf32>, %sum: memref<64xf32>, %out: memref<8x8x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x96xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    // expected-note@below {{iteration (55) writes element [55] of argument 1}}
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %j = 0 to 8 {
    // expected-remark@below {{[loop_carried_dependence]}}
    affine.for %k = 0 to 8 {
      affine.for %r = 0 to 96 {
        %s = affine.load %sum[%k * 8 + %j] : memref<64xf32>
        // expected-note@below {{iteration (6, 7, 0) reads it}}
        %t = affine.load %sum[%j * 8 + %k] : memref<64xf32>
        %y = arith.mulf %t, %s : f32
        affine.store %y, %out[%j, %k, %r] : memref<8x8x96xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["scale"]}
  return
}

// -----

// bridge-interchange-loops makes (i, h, j) of the second nest's (h, i, j).

func.func @should_name_loops_before_interchange(%in: memref<64x256xf32>, %sum: memref<64xf32>, %out: memref<4x64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    // expected-note@below {{iteration (31) writes element [31] of argument 1}}
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %h = 0 to 4 {
    // expected-remark@below {{[loop_carried_dependence]}}
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 64 {
        %s = affine.load %sum[%i] : memref<64xf32>
        // expected-note@below {{iteration (0, 32, 0) reads it}}
        %t = affine.load %sum[63 - %i] : memref<64xf32>
        %y = arith.mulf %t, %s : f32
        affine.store %y, %out[%h, %i, %j] : memref<4x64x64xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["scale"]}
  return
}

// -----

// bridge-split-index-sets makes two halves of the first nest's row.

func.func @should_name_lanes_before_split(%in: memref<64x256xf32>, %t: memref<64x256xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 256 {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      %y = math.exp %x : f32
      // expected-note@below {{iteration (31, 128) writes element [31, 128] of argument 1}}
      affine.store %y, %t[%i, %r] : memref<64x256xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["exp"]}
  // expected-remark@below {{[loop_carried_dependence]}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %t[%i, %j] : memref<64x256xf32>
      // expected-note@below {{iteration (32, 0) reads it}}
      %y = affine.load %t[63 - %i, %j + 128] : memref<64x256xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["product"]}
  return
}

// -----

// bridge-pad-extents shifts the second nest's lanes by one.

func.func @should_name_lanes_before_padding(%in: memref<64x1001xf32>, %t: memref<64x1001xf32>, %u: memref<64x1000xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 1001 {
      %x = affine.load %in[%i, %r] : memref<64x1001xf32>
      // expected-note@below {{iteration (31, 0) reads element [32, 0] of argument 2}}
      %y = affine.load %u[63 - %i, 0] : memref<64x1000xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %t[%i, %r] : memref<64x1001xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["exp"]}
  // expected-remark@below {{[loop_carried_dependence]}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 1000 {
      %x = affine.load %in[%i, %j + 1] : memref<64x1001xf32>
      // expected-note@below {{iteration (32, 0) writes it}}
      affine.store %x, %u[%i, %j] : memref<64x1000xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["shift"]}
  return
}

// -----

// bridge-split-index-sets unrolls the first nest's two interleaved halves, and
// splits the second nest's row by them.

func.func @should_name_lanes_before_unrolling(%in: memref<64x256xf32>, %t: memref<64x128x2xf32>, %u: memref<64x256xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      affine.for %p = 0 to 2 {
        %x = affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%p) -> f32 {
          // expected-note@below {{iteration (31, 0, 1) reads element [32, 1] of argument 2}}
          %y = affine.load %u[-%i + 63, %j * 2 + 1] : memref<64x256xf32>
          affine.yield %y : f32
        } else {
          %y = affine.load %in[%i, %j] : memref<64x256xf32>
          affine.yield %y : f32
        }
        affine.store %x, %t[%i, %j, %p] : memref<64x128x2xf32>
      }
    }
  } {bridge.kernels = [0], bridge.nodes = ["interleave"]}
  // expected-remark@below {{[loop_carried_dependence]}}
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 256 {
      %x = affine.load %in[%i, %r] : memref<64x256xf32>
      // expected-note@below {{iteration (32, 1) writes it}}
      affine.store %x, %u[%i, %r] : memref<64x256xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["copy"]}
  return
}

// -----

// bridge-forward-stores has lane j compute what lane 127 - j of the first
// statement does.

// CHECK-LABEL: func @should_record_lane_of_what_is_computed_again
// CHECK: affine.load %arg0[%arg3, %arg4] : memref<64x128xf32> loc("
// CHECK: affine.load %arg0[%arg3, -%arg4 + 127] : memref<64x128xf32> loc(fused<{bridge.iteration = affine_map<(d0, d1) -> (d0, -d1 + 127)>}>["
func.func @should_record_lane_of_what_is_computed_again(%in: memref<64x128xf32>, %t: memref<64x128xf32>, %out: memref<64x128xf32>) {
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
