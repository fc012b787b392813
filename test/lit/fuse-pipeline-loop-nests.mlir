// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(bridge-fuse{simt-target=false})' \
// RUN:   | FileCheck %s --check-prefix=NESTS
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=LANES

// Fusions that are profitable on a SIMT target, where a row is in registers,
// but not in sequential loops.

// The halves are stored and read again in other lanes: `exp` would be
// recomputed.

// NESTS-LABEL: func @should_not_compute_exp_again_in_loops
// NESTS-NOT: bridge.band
// LANES-LABEL: func @should_not_compute_exp_again_in_loops
// LANES: bridge.nodes = ["exp", "product"], bridge.parallel}
func.func @should_not_compute_exp_again_in_loops(%in: memref<64x256xf32>, %t: memref<64x256xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 256 {
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      %y = math.exp %x : f32
      affine.store %y, %t[%i, %j] : memref<64x256xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["exp"]}
  // expected-remark @+1 {{[not_profitable] a transcendental function or a random number would be computed again}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %t[%i, %j] : memref<64x256xf32>
      %y = affine.load %t[%i, %j + 128] : memref<64x256xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["product"]}
  return
}

// -----

// The same of a function that math lacks; what takes no longer than a load may
// be computed again.

// NESTS-LABEL: func @should_not_compute_sigmoid_again_in_loops
// NESTS-NOT: bridge.band
// LANES-LABEL: func @should_not_compute_sigmoid_again_in_loops
// LANES: bridge.nodes = ["sigmoid", "product"], bridge.parallel}
func.func @should_not_compute_sigmoid_again_in_loops(%in: memref<64x256xf32>, %t: memref<64x256xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 256 {
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      %y = bridge.special sigmoid %x : (f32) -> f32
      affine.store %y, %t[%i, %j] : memref<64x256xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sigmoid"]}
  // expected-remark @+1 {{[not_profitable] a transcendental function or a random number would be computed again}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %x = affine.load %t[%i, %j] : memref<64x256xf32>
      %y = affine.load %t[%i, %j + 128] : memref<64x256xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["product"]}
  return
}

// -----

// NESTS-LABEL: func @should_compute_relu_again_in_loops
// NESTS: bridge.nodes = ["relu", "product"]
// LANES-LABEL: func @should_compute_relu_again_in_loops
// LANES: bridge.nodes = ["relu", "product"], bridge.parallel}
func.func @should_compute_relu_again_in_loops(%in: memref<64x256xf32>, %t: memref<64x256xf32>, %out: memref<64x256xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 256 {
      %x = affine.load %in[%i, %j] : memref<64x256xf32>
      %y = bridge.special relu %x : (f32) -> f32
      affine.store %y, %t[%i, %j] : memref<64x256xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["relu"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 256 {
      %x = affine.load %t[%i, %j] : memref<64x256xf32>
      %y = affine.load %t[%i, -%j + 255] : memref<64x256xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i, %j] : memref<64x256xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["product"]}
  return
}

// -----

// Rows in rolled order: the address of each row would take a division.

// NESTS-LABEL: func @should_not_divide_for_every_row_in_loops
// NESTS-NOT: bridge.band
// LANES-LABEL: func @should_not_divide_for_every_row_in_loops
// LANES: bridge.nodes = ["sum", "rolled"], bridge.parallel}
func.func @should_not_divide_for_every_row_in_loops(%in: memref<64x96xf32>, %sum: memref<64xf32>, %out: memref<8x8x96xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x96xf32>
      %b = arith.addf %a, %x : f32
      affine.yield %b : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  // expected-remark @+1 {{[no_common_band] the nests' outer loops have different domains}}
  affine.for %j = 0 to 8 {
    affine.for %k = 0 to 8 {
      affine.for %r = 0 to 96 {
        %s = affine.load %sum[(%j * 8 + %k + 3) mod 64] : memref<64xf32>
        %x = affine.load %in[(%j * 8 + %k + 3) mod 64, %r] : memref<64x96xf32>
        %y = arith.mulf %s, %x : f32
        affine.store %y, %out[%j, %k, %r] : memref<8x8x96xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["rolled"]}
  return
}
