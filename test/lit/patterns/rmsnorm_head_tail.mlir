// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 7 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 192 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<7xf32>
// CHECK: affine.for %{{.*}} = 0 to 192 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x192xbf16>
// CHECK: affine.for %{{.*}} = 0 to 192 {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}) -> f32 {
// CHECK: affine.if #{{.*}}(%{{.*}}) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}} - 24] : memref<7x168xbf16>
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 1], bridge.nodes = ["op0", "op1", "op2"], bridge.parallel}
// CHECK-NEXT: return
module {
  func.func @group0(%arg0: memref<7x192xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<7xf32> {bridge.buffer = "buf0"}, %arg2: memref<192xbf16> {bridge.buffer = "arg1_1"}, %arg3: memref<7x192xbf16> {bridge.buffer = "buf1"}, %arg4: memref<7x168xbf16> {bridge.buffer = "buf2"}) {
    affine.for %arg5 = 0 to 7 {
      %cst = arith.constant 0.000000e+00 : f32
      %0 = affine.for %arg6 = 0 to 192 iter_args(%arg7 = %cst) -> (f32) {
        %1 = affine.load %arg0[%arg5, %arg6] : memref<7x192xbf16>
        %2 = arith.extf %1 : bf16 to f32
        %3 = arith.mulf %2, %2 : f32
        %4 = arith.addf %arg7, %3 : f32
        affine.yield %4 : f32
      }
      affine.store %0, %arg1[%arg5] : memref<7xf32>
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg5 = 0 to 7 {
      affine.for %arg6 = 0 to 192 {
        %0 = affine.load %arg0[%arg5, %arg6] : memref<7x192xbf16>
        %1 = arith.extf %0 : bf16 to f32
        %2 = affine.load %arg1[%arg5] : memref<7xf32>
        %cst = arith.constant 1.920000e+02 : f32
        %3 = arith.divf %2, %cst : f32
        %cst_0 = arith.constant 9.99999997E-7 : f32
        %4 = arith.addf %3, %cst_0 : f32
        %5 = math.rsqrt %4 : f32
        %6 = arith.mulf %1, %5 : f32
        %7 = affine.load %arg2[%arg6] : memref<192xbf16>
        %8 = arith.extf %7 : bf16 to f32
        %9 = arith.mulf %6, %8 : f32
        %10 = arith.truncf %9 : f32 to bf16
        affine.store %10, %arg3[%arg5, %arg6] : memref<7x192xbf16>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    affine.for %arg5 = 0 to 7 {
      affine.for %arg6 = 0 to 168 {
        %0 = affine.load %arg3[%arg5, %arg6 + 24] : memref<7x192xbf16>
        %1 = arith.extf %0 : bf16 to f32
        %cst = arith.constant 2.000000e+00 : f32
        %2 = arith.mulf %1, %cst : f32
        %3 = arith.truncf %2 : f32 to bf16
        affine.store %3, %arg4[%arg5, %arg6] : memref<7x168xbf16>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op2"]}
    return
  }
}
