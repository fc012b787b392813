// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 3 {
// CHECK: affine.for %{{.*}} = 0 to 14 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 48 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<3x14xf32>
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 48 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<3x14xf32>
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.kernels = [0, 0], bridge.nodes = ["op0", "op1"], bridge.parallel}
// CHECK: affine.for %{{.*}} = 0 to 3 {
// CHECK: affine.for %{{.*}} = 0 to 48 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 14 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<3x48xf32>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<3x48xbf16>
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.kernels = [1, 1], bridge.nodes = ["op3", "op4"], bridge.parallel}
// CHECK-NEXT: return
module {
  func.func @group0(%arg0: memref<3x14x48xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<3x14xf32> {bridge.buffer = "buf0"}, %arg2: memref<3x14xf32> {bridge.buffer = "buf1"}, %arg3: memref<48xbf16> {bridge.buffer = "arg1_1"}, %arg4: memref<48xbf16> {bridge.buffer = "arg2_1"}, %arg5: memref<3x48xf32> {bridge.buffer = "buf3"}, %arg6: memref<3x48xbf16> {bridge.buffer = "buf4"}) {
    affine.for %arg7 = 0 to 3 {
      affine.for %arg8 = 0 to 14 {
        %cst = arith.constant 0.000000e+00 : f32
        %cst_0 = arith.constant 0.000000e+00 : f32
        %cst_1 = arith.constant 0.000000e+00 : f32
        %0:3 = affine.for %arg9 = 0 to 48 iter_args(%arg10 = %cst, %arg11 = %cst_0, %arg12 = %cst_1) -> (f32, f32, f32) {
          %1 = affine.load %arg0[%arg7, %arg8, %arg9] : memref<3x14x48xbf16>
          %2 = arith.extf %1 : bf16 to f32
          %cst_2 = arith.constant 0.000000e+00 : f32
          %cst_3 = arith.constant 1.000000e+00 : f32
          %3:3 = bridge.combine welford (%arg10, %arg11, %arg12), (%2, %cst_2, %cst_3) : f32, f32, f32
          affine.yield %3#0, %3#1, %3#2 : f32, f32, f32
        }
        affine.store %0#0, %arg1[%arg7, %arg8] : memref<3x14xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg7 = 0 to 3 {
      affine.for %arg8 = 0 to 14 {
        %cst = arith.constant 0.000000e+00 : f32
        %cst_0 = arith.constant 0.000000e+00 : f32
        %cst_1 = arith.constant 0.000000e+00 : f32
        %0:3 = affine.for %arg9 = 0 to 48 iter_args(%arg10 = %cst, %arg11 = %cst_0, %arg12 = %cst_1) -> (f32, f32, f32) {
          %1 = affine.load %arg0[%arg7, %arg8, %arg9] : memref<3x14x48xbf16>
          %2 = arith.extf %1 : bf16 to f32
          %cst_2 = arith.constant 0.000000e+00 : f32
          %cst_3 = arith.constant 1.000000e+00 : f32
          %3:3 = bridge.combine welford (%arg10, %arg11, %arg12), (%2, %cst_2, %cst_3) : f32, f32, f32
          affine.yield %3#0, %3#1, %3#2 : f32, f32, f32
        }
        affine.store %0#1, %arg2[%arg7, %arg8] : memref<3x14xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    affine.for %arg7 = 0 to 3 {
      affine.for %arg8 = 0 to 48 {
        %cst = arith.constant 0.000000e+00 : f32
        %0 = affine.for %arg9 = 0 to 14 iter_args(%arg10 = %cst) -> (f32) {
          %1 = affine.load %arg0[%arg7, %arg9, %arg8] : memref<3x14x48xbf16>
          %2 = arith.extf %1 : bf16 to f32
          %3 = affine.load %arg1[%arg7, %arg9] : memref<3x14xf32>
          %4 = arith.subf %2, %3 : f32
          %5 = affine.load %arg2[%arg7, %arg9] : memref<3x14xf32>
          %cst_0 = arith.constant 4.800000e+01 : f32
          %6 = arith.divf %5, %cst_0 : f32
          %cst_1 = arith.constant 9.99999974E-6 : f32
          %7 = arith.addf %6, %cst_1 : f32
          %8 = math.rsqrt %7 : f32
          %9 = arith.mulf %4, %8 : f32
          %10 = affine.load %arg3[%arg8] : memref<48xbf16>
          %11 = arith.extf %10 : bf16 to f32
          %12 = arith.mulf %9, %11 : f32
          %13 = affine.load %arg4[%arg8] : memref<48xbf16>
          %14 = arith.extf %13 : bf16 to f32
          %15 = arith.addf %12, %14 : f32
          %16 = arith.addf %arg10, %15 : f32
          affine.yield %16 : f32
        }
        affine.store %0, %arg5[%arg7, %arg8] : memref<3x48xf32>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op3"]}
    affine.for %arg7 = 0 to 3 {
      affine.for %arg8 = 0 to 48 {
        %0 = affine.load %arg5[%arg7, %arg8] : memref<3x48xf32>
        %cst = arith.constant 1.400000e+01 : f32
        %1 = arith.divf %0, %cst : f32
        %2 = arith.truncf %1 : f32 to bf16
        affine.store %2, %arg6[%arg7, %arg8] : memref<3x48xbf16>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op4"]}
    return
  }
}
