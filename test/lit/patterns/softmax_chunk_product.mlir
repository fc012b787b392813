// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 7 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 96 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<7xf32>
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 96 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<7xf32>
// CHECK: affine.for %{{.*}} = 0 to 96 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x96xbf16>
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 1], bridge.nodes = ["op0", "op1", "op2"], bridge.parallel}
// CHECK-NEXT: return
module {
  func.func @group0(%arg0: memref<7x192xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<7xf32> {bridge.buffer = "buf0"}, %arg2: memref<7xf32> {bridge.buffer = "buf1"}, %arg3: memref<7x96xbf16> {bridge.buffer = "buf2"}) {
    affine.for %arg4 = 0 to 7 {
      %cst = arith.constant 0xFF800000 : f32
      %cst_0 = arith.constant 0.000000e+00 : f32
      %0:2 = affine.for %arg5 = 0 to 192 iter_args(%arg6 = %cst, %arg7 = %cst_0) -> (f32, f32) {
        %1 = affine.load %arg0[%arg4, %arg5] : memref<7x192xbf16>
        %2 = arith.extf %1 : bf16 to f32
        %cst_1 = arith.constant 1.000000e+00 : f32
        %3:2 = bridge.combine online_softmax (%arg6, %arg7), (%2, %cst_1) : f32, f32
        affine.yield %3#0, %3#1 : f32, f32
      }
      affine.store %0#0, %arg1[%arg4] : memref<7xf32>
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg4 = 0 to 7 {
      %cst = arith.constant 0xFF800000 : f32
      %cst_0 = arith.constant 0.000000e+00 : f32
      %0:2 = affine.for %arg5 = 0 to 192 iter_args(%arg6 = %cst, %arg7 = %cst_0) -> (f32, f32) {
        %1 = affine.load %arg0[%arg4, %arg5] : memref<7x192xbf16>
        %2 = arith.extf %1 : bf16 to f32
        %cst_1 = arith.constant 1.000000e+00 : f32
        %3:2 = bridge.combine online_softmax (%arg6, %arg7), (%2, %cst_1) : f32, f32
        affine.yield %3#0, %3#1 : f32, f32
      }
      affine.store %0#1, %arg2[%arg4] : memref<7xf32>
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    affine.for %arg4 = 0 to 7 {
      affine.for %arg5 = 0 to 96 {
        %0 = affine.load %arg0[%arg4, %arg5] : memref<7x192xbf16>
        %1 = arith.extf %0 : bf16 to f32
        %2 = affine.load %arg1[%arg4] : memref<7xf32>
        %3 = arith.subf %1, %2 : f32
        %4 = math.exp %3 : f32
        %5 = affine.load %arg2[%arg4] : memref<7xf32>
        %6 = arith.divf %4, %5 : f32
        %7 = affine.load %arg0[%arg4, %arg5 + 96] : memref<7x192xbf16>
        %8 = arith.extf %7 : bf16 to f32
        %9 = affine.load %arg1[%arg4] : memref<7xf32>
        %10 = arith.subf %8, %9 : f32
        %11 = math.exp %10 : f32
        %12 = affine.load %arg2[%arg4] : memref<7xf32>
        %13 = arith.divf %11, %12 : f32
        %14 = arith.mulf %6, %13 : f32
        %15 = arith.truncf %14 : f32 to bf16
        affine.store %15, %arg3[%arg4, %arg5] : memref<7x96xbf16>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op2"]}
    return
  }
}
