// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK: affine.for %{{.*}} = 0 to 13 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 13 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<2x13xf32>
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 13 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<2x13xf32>
// CHECK: affine.for %{{.*}} = 0 to 13 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<2x13x16xbf16>
// CHECK: affine.for %{{.*}} = 0 to 13 {
// CHECK: affine.if #{{.*}}(%{{.*}}) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<2x13x16xbf16>
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 0, 1], bridge.nodes = ["op0", "op1", "op2", "op3"], bridge.parallel}
// CHECK-NEXT: return
module {
  func.func @group0(%arg0: memref<2x13x13xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<2x13xf32> {bridge.buffer = "buf0"}, %arg2: memref<2x13xf32> {bridge.buffer = "buf1"}, %arg3: memref<2x13x16xbf16> {bridge.buffer = "buf2", bridge.storage = "buf4"}, %arg4: memref<2x13x16xbf16> {bridge.buffer = "buf3", bridge.storage = "buf4"}) {
    affine.for %arg5 = 0 to 2 {
      affine.for %arg6 = 0 to 13 {
        %cst = arith.constant 0xFF800000 : f32
        %cst_0 = arith.constant 0.000000e+00 : f32
        %0:2 = affine.for %arg7 = 0 to 13 iter_args(%arg8 = %cst, %arg9 = %cst_0) -> (f32, f32) {
          %1 = affine.load %arg0[%arg5, %arg6, %arg7] : memref<2x13x13xbf16>
          %2 = arith.extf %1 : bf16 to f32
          %cst_1 = arith.constant 1.000000e+00 : f32
          %3:2 = bridge.combine online_softmax (%arg8, %arg9), (%2, %cst_1) : f32, f32
          affine.yield %3#0, %3#1 : f32, f32
        }
        affine.store %0#0, %arg1[%arg5, %arg6] : memref<2x13xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg5 = 0 to 2 {
      affine.for %arg6 = 0 to 13 {
        %cst = arith.constant 0xFF800000 : f32
        %cst_0 = arith.constant 0.000000e+00 : f32
        %0:2 = affine.for %arg7 = 0 to 13 iter_args(%arg8 = %cst, %arg9 = %cst_0) -> (f32, f32) {
          %1 = affine.load %arg0[%arg5, %arg6, %arg7] : memref<2x13x13xbf16>
          %2 = arith.extf %1 : bf16 to f32
          %cst_1 = arith.constant 1.000000e+00 : f32
          %3:2 = bridge.combine online_softmax (%arg8, %arg9), (%2, %cst_1) : f32, f32
          affine.yield %3#0, %3#1 : f32, f32
        }
        affine.store %0#1, %arg2[%arg5, %arg6] : memref<2x13xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    affine.for %arg5 = 0 to 2 {
      affine.for %arg6 = 0 to 13 {
        affine.for %arg7 = 0 to 13 {
          %0 = affine.load %arg0[%arg5, %arg6, %arg7] : memref<2x13x13xbf16>
          %1 = arith.extf %0 : bf16 to f32
          %2 = affine.load %arg1[%arg5, %arg6] : memref<2x13xf32>
          %3 = arith.subf %1, %2 : f32
          %4 = math.exp %3 : f32
          %5 = affine.load %arg2[%arg5, %arg6] : memref<2x13xf32>
          %6 = arith.divf %4, %5 : f32
          %7 = arith.truncf %6 : f32 to bf16
          affine.store %7, %arg3[%arg5, %arg6, %arg7] : memref<2x13x16xbf16>
        }
      }
    } {bridge.kernels = [0], bridge.nodes = ["op2"]}
    affine.for %arg5 = 0 to 2 {
      affine.for %arg6 = 0 to 13 {
        affine.for %arg7 = 0 to 3 {
          %cst = arith.constant 0.000000e+00 : f32
          %0 = arith.truncf %cst : f32 to bf16
          affine.store %0, %arg4[%arg5, %arg6, %arg7] : memref<2x13x16xbf16>
        }
      }
    } {bridge.kernels = [1], bridge.nodes = ["op3"]}
    return
  }
}
