// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 7 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 96 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<7xf32>
// CHECK: affine.for %{{.*}} = 0 to 96 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x96xbf16>
// CHECK: } {bridge.band, bridge.kernels = [0, 0], bridge.nodes = ["op0", "op1"], bridge.parallel}
// CHECK: affine.for %{{.*}} = 0 to 7 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 32 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<7xf32>
// CHECK: affine.for %{{.*}} = 0 to 32 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x32xbf16>
// CHECK: } {bridge.band, bridge.kernels = [1, 1], bridge.nodes = ["op2", "op3"], bridge.parallel}
// CHECK: affine.for %{{.*}} = 0 to 7 {
// CHECK: affine.for %{{.*}} = 0 to 4 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x4xbf16>
// CHECK: } {bridge.kernels = [2], bridge.nodes = ["op4"]}
// CHECK-NEXT: return
module {
  func.func @group0(%arg0: memref<7x132xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<7xf32> {bridge.buffer = "buf0"}, %arg2: memref<96xbf16> {bridge.buffer = "arg1_1"}, %arg3: memref<7x96xbf16> {bridge.buffer = "buf1"}, %arg4: memref<7xf32> {bridge.buffer = "buf2"}, %arg5: memref<32xbf16> {bridge.buffer = "arg2_1"}, %arg6: memref<7x32xbf16> {bridge.buffer = "buf3"}, %arg7: memref<7x4xbf16> {bridge.buffer = "buf4"}) {
    affine.for %arg8 = 0 to 7 {
      %cst = arith.constant 0.000000e+00 : f32
      %0 = affine.for %arg9 = 0 to 96 iter_args(%arg10 = %cst) -> (f32) {
        %1 = affine.load %arg0[%arg8, %arg9] : memref<7x132xbf16>
        %2 = arith.extf %1 : bf16 to f32
        %3 = arith.mulf %2, %2 : f32
        %4 = arith.addf %arg10, %3 : f32
        affine.yield %4 : f32
      }
      affine.store %0, %arg1[%arg8] : memref<7xf32>
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg8 = 0 to 7 {
      affine.for %arg9 = 0 to 96 {
        %0 = affine.load %arg0[%arg8, %arg9] : memref<7x132xbf16>
        %1 = arith.extf %0 : bf16 to f32
        %2 = affine.load %arg1[%arg8] : memref<7xf32>
        %cst = arith.constant 9.600000e+01 : f32
        %3 = arith.divf %2, %cst : f32
        %cst_0 = arith.constant 9.99999997E-7 : f32
        %4 = arith.addf %3, %cst_0 : f32
        %5 = math.rsqrt %4 : f32
        %6 = arith.mulf %1, %5 : f32
        %7 = affine.load %arg2[%arg9] : memref<96xbf16>
        %8 = arith.extf %7 : bf16 to f32
        %9 = arith.mulf %6, %8 : f32
        %10 = arith.truncf %9 : f32 to bf16
        affine.store %10, %arg3[%arg8, %arg9] : memref<7x96xbf16>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    affine.for %arg8 = 0 to 7 {
      %cst = arith.constant 0.000000e+00 : f32
      %0 = affine.for %arg9 = 0 to 32 iter_args(%arg10 = %cst) -> (f32) {
        %1 = affine.load %arg0[%arg8, %arg9 + 96] : memref<7x132xbf16>
        %2 = arith.extf %1 : bf16 to f32
        %3 = arith.mulf %2, %2 : f32
        %4 = arith.addf %arg10, %3 : f32
        affine.yield %4 : f32
      }
      affine.store %0, %arg4[%arg8] : memref<7xf32>
    } {bridge.kernels = [1], bridge.nodes = ["op2"]}
    affine.for %arg8 = 0 to 7 {
      affine.for %arg9 = 0 to 32 {
        %0 = affine.load %arg0[%arg8, %arg9 + 96] : memref<7x132xbf16>
        %1 = arith.extf %0 : bf16 to f32
        %2 = affine.load %arg4[%arg8] : memref<7xf32>
        %cst = arith.constant 3.200000e+01 : f32
        %3 = arith.divf %2, %cst : f32
        %cst_0 = arith.constant 9.99999997E-7 : f32
        %4 = arith.addf %3, %cst_0 : f32
        %5 = math.rsqrt %4 : f32
        %6 = arith.mulf %1, %5 : f32
        %7 = affine.load %arg5[%arg9] : memref<32xbf16>
        %8 = arith.extf %7 : bf16 to f32
        %9 = arith.mulf %6, %8 : f32
        %10 = arith.truncf %9 : f32 to bf16
        affine.store %10, %arg6[%arg8, %arg9] : memref<7x32xbf16>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op3"]}
    affine.for %arg8 = 0 to 7 {
      affine.for %arg9 = 0 to 4 {
        %0 = affine.load %arg0[%arg8, %arg9 + 128] : memref<7x132xbf16>
        %1 = arith.extf %0 : bf16 to f32
        affine.store %0, %arg7[%arg8, %arg9] : memref<7x4xbf16>
      }
    } {bridge.kernels = [2], bridge.nodes = ["op4"]}
    return
  }
}
