// RUN: bridge-opt %s --pass-pipeline='builtin.module(bridge-fuse)' | FileCheck %s
// RUN: bridge-opt %s --bridge-fuse --mlir-print-ir-after-all -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=AFTER

// AFTER-DAG: IR Dump After ProveParallel (bridge-prove-parallel)
// AFTER-DAG: IR Dump After {{.*}}(canonicalize
// AFTER-DAG: IR Dump After {{.*}}(cse

// CHECK-LABEL: func @should_prove_and_clean_up
// CHECK: affine.for
// CHECK-COUNT-1: bridge.special hypot
// CHECK-NOT: bridge.special
// CHECK-NOT: bridge.convert
// CHECK: {bridge.band, bridge.parallel}
func.func @should_prove_and_clean_up(%a: memref<64xf32>, %b: memref<64xf32>, %u: i8) {
  affine.for %i = 0 to 64 {
    %dead = bridge.convert %u {from = "uint8", to = "float32"} : i8 -> f32
    %0 = affine.load %a[%i] : memref<64xf32>
    %1 = bridge.special hypot %0, %0 : (f32, f32) -> f32
    %2 = bridge.special hypot %0, %0 : (f32, f32) -> f32
    %3 = arith.addf %1, %2 : f32
    affine.store %3, %b[%i] : memref<64xf32>
  } {bridge.band}
  return
}

// The sum of squares is over full rows, the gate over halves. The pipeline
// fuses them into one nest with one band, loads each half of the row once in
// each loop, and proves the band parallel.

// CHECK-LABEL: func @should_fuse_norm_and_gate
// CHECK: affine.for %[[I:.*]] = 0 to 2048 {
// CHECK-NEXT: %[[SUM:.*]] = affine.for %[[J:.*]] = 0 to 4096 iter_args
// CHECK-COUNT-2: affine.load
// CHECK-NOT: affine.load
// CHECK: }
// CHECK-NEXT: affine.store %[[SUM]], %arg1[%[[I]]]
// CHECK-NEXT: %[[S:.*]] = affine.load %arg1[%[[I]]]
// CHECK-NEXT: %[[R:.*]] = math.rsqrt %[[S]]
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 4096 {
// CHECK-COUNT-2: affine.load
// CHECK-NOT: affine.load
// CHECK: affine.store %{{.*}}, %arg2[%[[I]], %[[J]]]
// CHECK-NEXT: }
// CHECK-NEXT: } {bridge.band, bridge.kernels = [0, 1], bridge.nodes = ["op0", "op1"], bridge.parallel}
// CHECK-NEXT: return
func.func @should_fuse_norm_and_gate(%x: memref<2048x8192xf32>, %ss: memref<2048xf32>, %out: memref<2048x4096xf32>) {
  affine.for %i = 0 to 2048 {
    %zero = arith.constant 0.0 : f32
    %s = affine.for %r = 0 to 8192 iter_args(%a = %zero) -> (f32) {
      %0 = affine.load %x[%i, %r] : memref<2048x8192xf32>
      %1 = arith.mulf %0, %0 : f32
      %2 = arith.addf %a, %1 : f32
      affine.yield %2 : f32
    }
    affine.store %s, %ss[%i] : memref<2048xf32>
  } {bridge.kernels = [0], bridge.nodes = ["op0"]}
  affine.for %i = 0 to 2048 {
    affine.for %j = 0 to 4096 {
      %0 = affine.load %x[%i, %j] : memref<2048x8192xf32>
      %s = affine.load %ss[%i] : memref<2048xf32>
      %r = math.rsqrt %s : f32
      %1 = arith.mulf %0, %r : f32
      %2 = bridge.special sigmoid %1 : (f32) -> f32
      %3 = affine.load %x[%i, %j + 4096] : memref<2048x8192xf32>
      %4 = affine.load %ss[%i] : memref<2048xf32>
      %5 = math.rsqrt %4 : f32
      %6 = arith.mulf %3, %5 : f32
      %7 = arith.mulf %2, %6 : f32
      affine.store %7, %out[%i, %j] : memref<2048x4096xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["op1"]}
  return
}

// The pipeline does not change its own output.

// CHECK-LABEL: func @should_keep_fused_band
// CHECK: affine.for
// CHECK-NOT: affine.for
// CHECK: } {bridge.band, bridge.kernels = [0, 1], bridge.nodes = ["a", "b"], bridge.parallel}
// CHECK-NEXT: return
func.func @should_keep_fused_band(%in: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %0 = affine.load %in[%i] : memref<64xf32>
    affine.store %0, %a[%i] : memref<64xf32>
    affine.store %0, %b[%i] : memref<64xf32>
  } {bridge.band, bridge.kernels = [0, 1], bridge.nodes = ["a", "b"], bridge.parallel}
  return
}

// Neighbours are rotated, and a copy of them is transposed.

// CHECK-LABEL: func @should_fuse_interleaved_with_its_transposed_copy
// CHECK: affine.for %[[I:.*]] = 0 to 16 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 32 {
// CHECK-DAG: affine.store %[[A:.*]], %arg1[%[[I]], %[[J]], 0]
// CHECK-DAG: affine.store %[[B:.*]], %arg1[%[[I]], %[[J]], 1]
// CHECK-DAG: affine.store %[[A]], %arg2[%[[J]], %[[I]], 0]
// CHECK-DAG: affine.store %[[B]], %arg2[%[[J]], %[[I]], 1]
// CHECK-NOT: affine.for
// CHECK: return
func.func @should_fuse_interleaved_with_its_transposed_copy(%in: memref<16x64xf32>, %out: memref<16x32x2xf32>, %copy: memref<32x16x2xf32>) {
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
  } {bridge.kernels = [0], bridge.nodes = ["op0"]}
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 32 {
      affine.for %lane = 0 to 2 {
        %x = affine.load %out[%i, %j, %lane] : memref<16x32x2xf32>
        affine.store %x, %copy[%j, %i, %lane] : memref<32x16x2xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["op1"]}
  return
}
