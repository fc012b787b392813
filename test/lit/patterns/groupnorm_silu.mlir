// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK: affine.for %{{.*}} = 0 to 32 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 2 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 64 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<2x32xf32>
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 2 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 64 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<2x32xf32>
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<2x64xf32>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<2x64xf32>
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : memref<2x64x8x8xbf16>
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 1, 1, 2], bridge.nodes = ["op0", "op1", "op3", "op4", "op5"], bridge.parallel}
// CHECK-NEXT: return
module {
  func.func @group0(%arg0: memref<2x64x64xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<2x32xf32> {bridge.buffer = "buf0"}, %arg2: memref<2x32xf32> {bridge.buffer = "buf1"}, %arg3: memref<32x2xbf16> {bridge.buffer = "arg1_1"}, %arg4: memref<2x64xf32> {bridge.buffer = "buf3"}, %arg5: memref<32x2xbf16> {bridge.buffer = "arg2_1"}, %arg6: memref<2x64xf32> {bridge.buffer = "buf4"}, %arg7: memref<2x64x8x8xbf16> {bridge.buffer = "buf5"}) {
    affine.for %arg8 = 0 to 2 {
      affine.for %arg9 = 0 to 32 {
        %cst = arith.constant 0.000000e+00 : f32
        %cst_0 = arith.constant 0.000000e+00 : f32
        %cst_1 = arith.constant 0.000000e+00 : f32
        %0:3 = affine.for %arg10 = 0 to 2 iter_args(%arg11 = %cst, %arg12 = %cst_0, %arg13 = %cst_1) -> (f32, f32, f32) {
          %1:3 = affine.for %arg14 = 0 to 64 iter_args(%arg15 = %arg11, %arg16 = %arg12, %arg17 = %arg13) -> (f32, f32, f32) {
            %2 = affine.load %arg0[%arg8, %arg10 + %arg9 * 2, %arg14] : memref<2x64x64xbf16>
            %3 = arith.extf %2 : bf16 to f32
            %cst_2 = arith.constant 0.000000e+00 : f32
            %cst_3 = arith.constant 1.000000e+00 : f32
            %4:3 = bridge.combine welford (%arg15, %arg16, %arg17), (%3, %cst_2, %cst_3) : f32, f32, f32
            affine.yield %4#0, %4#1, %4#2 : f32, f32, f32
          }
          affine.yield %1#0, %1#1, %1#2 : f32, f32, f32
        }
        affine.store %0#0, %arg1[%arg8, %arg9] : memref<2x32xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg8 = 0 to 2 {
      affine.for %arg9 = 0 to 32 {
        %cst = arith.constant 0.000000e+00 : f32
        %cst_0 = arith.constant 0.000000e+00 : f32
        %cst_1 = arith.constant 0.000000e+00 : f32
        %0:3 = affine.for %arg10 = 0 to 2 iter_args(%arg11 = %cst, %arg12 = %cst_0, %arg13 = %cst_1) -> (f32, f32, f32) {
          %1:3 = affine.for %arg14 = 0 to 64 iter_args(%arg15 = %arg11, %arg16 = %arg12, %arg17 = %arg13) -> (f32, f32, f32) {
            %2 = affine.load %arg0[%arg8, %arg10 + %arg9 * 2, %arg14] : memref<2x64x64xbf16>
            %3 = arith.extf %2 : bf16 to f32
            %cst_2 = arith.constant 0.000000e+00 : f32
            %cst_3 = arith.constant 1.000000e+00 : f32
            %4:3 = bridge.combine welford (%arg15, %arg16, %arg17), (%3, %cst_2, %cst_3) : f32, f32, f32
            affine.yield %4#0, %4#1, %4#2 : f32, f32, f32
          }
          affine.yield %1#0, %1#1, %1#2 : f32, f32, f32
        }
        affine.store %0#1, %arg2[%arg8, %arg9] : memref<2x32xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    affine.for %arg8 = 0 to 2 {
      affine.for %arg9 = 0 to 32 {
        affine.for %arg10 = 0 to 2 {
          %0 = affine.load %arg2[%arg8, %arg9] : memref<2x32xf32>
          %cst = arith.constant 1.280000e+02 : f32
          %1 = arith.divf %0, %cst : f32
          %cst_0 = arith.constant 9.99999974E-6 : f32
          %2 = arith.addf %1, %cst_0 : f32
          %3 = math.rsqrt %2 : f32
          %4 = affine.load %arg3[%arg9, %arg10] : memref<32x2xbf16>
          %5 = arith.extf %4 : bf16 to f32
          %6 = arith.mulf %3, %5 : f32
          affine.store %6, %arg4[%arg8, %arg10 + %arg9 * 2] : memref<2x64xf32>
        }
      }
    } {bridge.kernels = [1], bridge.nodes = ["op3"]}
    affine.for %arg8 = 0 to 2 {
      affine.for %arg9 = 0 to 32 {
        affine.for %arg10 = 0 to 2 {
          %0 = affine.load %arg1[%arg8, %arg9] : memref<2x32xf32>
          %1 = arith.negf %0 : f32
          %2 = affine.load %arg4[%arg8, %arg10 + %arg9 * 2] : memref<2x64xf32>
          %3 = arith.mulf %1, %2 : f32
          %4 = affine.load %arg5[%arg9, %arg10] : memref<32x2xbf16>
          %5 = arith.extf %4 : bf16 to f32
          %6 = arith.addf %3, %5 : f32
          affine.store %6, %arg6[%arg8, %arg10 + %arg9 * 2] : memref<2x64xf32>
        }
      }
    } {bridge.kernels = [1], bridge.nodes = ["op4"]}
    affine.for %arg8 = 0 to 2 {
      affine.for %arg9 = 0 to 64 {
        affine.for %arg10 = 0 to 8 {
          affine.for %arg11 = 0 to 8 {
            %0 = affine.load %arg0[%arg8, %arg9, %arg11 + %arg10 * 8] : memref<2x64x64xbf16>
            %1 = arith.extf %0 : bf16 to f32
            %2 = affine.load %arg4[%arg8, %arg9] : memref<2x64xf32>
            %3 = arith.mulf %1, %2 : f32
            %4 = affine.load %arg6[%arg8, %arg9] : memref<2x64xf32>
            %5 = arith.addf %3, %4 : f32
            %6 = affine.load %arg0[%arg8, %arg9, %arg11 + %arg10 * 8] : memref<2x64x64xbf16>
            %7 = arith.extf %6 : bf16 to f32
            %8 = affine.load %arg4[%arg8, %arg9] : memref<2x64xf32>
            %9 = arith.mulf %7, %8 : f32
            %10 = affine.load %arg6[%arg8, %arg9] : memref<2x64xf32>
            %11 = arith.addf %9, %10 : f32
            %12 = arith.negf %11 : f32
            %13 = math.exp %12 : f32
            %cst = arith.constant 1.000000e+00 : f32
            %14 = arith.addf %13, %cst : f32
            %15 = arith.divf %5, %14 : f32
            %16 = arith.truncf %15 : f32 to bf16
            affine.store %16, %arg7[%arg8, %arg9, %arg10, %arg11] : memref<2x64x8x8xbf16>
          }
        }
      }
    } {bridge.kernels = [2], bridge.nodes = ["op5"]}
    return
  }
}
