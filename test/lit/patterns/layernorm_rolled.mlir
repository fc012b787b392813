// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK: affine.for %{{.*}} = 0 to 5 {
// CHECK: affine.for %{{.*}} = 0 to 5 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 24 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, (%{{.*}} + 2) mod 5, (%{{.*}} + 2) mod 5] : memref<2x5x5xf32>
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 24 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, (%{{.*}} + 2) mod 5, (%{{.*}} + 2) mod 5] : memref<2x5x5xf32>
// CHECK: affine.for %{{.*}} = 0 to 24 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : memref<2x5x5x24xbf16>
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 1], bridge.nodes = ["op0", "op1", "op3"], bridge.parallel}
// CHECK-NEXT: return
module {
  func.func @group0(%arg0: memref<2x5x5x24xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<2x5x5xf32> {bridge.buffer = "buf0"}, %arg2: memref<2x5x5xf32> {bridge.buffer = "buf1"}, %arg3: memref<24xbf16> {bridge.buffer = "arg1_1"}, %arg4: memref<24xbf16> {bridge.buffer = "arg2_1"}, %arg5: memref<2x5x5x24xbf16> {bridge.buffer = "buf3"}) {
    affine.for %arg6 = 0 to 2 {
      affine.for %arg7 = 0 to 5 {
        affine.for %arg8 = 0 to 5 {
          %cst = arith.constant 0.000000e+00 : f32
          %cst_0 = arith.constant 0.000000e+00 : f32
          %cst_1 = arith.constant 0.000000e+00 : f32
          %0:3 = affine.for %arg9 = 0 to 24 iter_args(%arg10 = %cst, %arg11 = %cst_0, %arg12 = %cst_1) -> (f32, f32, f32) {
            %1 = affine.load %arg0[%arg6, %arg7, %arg8, %arg9] : memref<2x5x5x24xbf16>
            %2 = arith.extf %1 : bf16 to f32
            %cst_2 = arith.constant 0.000000e+00 : f32
            %cst_3 = arith.constant 1.000000e+00 : f32
            %3:3 = bridge.combine welford (%arg10, %arg11, %arg12), (%2, %cst_2, %cst_3) : f32, f32, f32
            affine.yield %3#0, %3#1, %3#2 : f32, f32, f32
          }
          affine.store %0#0, %arg1[%arg6, %arg7, %arg8] : memref<2x5x5xf32>
        }
      }
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg6 = 0 to 2 {
      affine.for %arg7 = 0 to 5 {
        affine.for %arg8 = 0 to 5 {
          %cst = arith.constant 0.000000e+00 : f32
          %cst_0 = arith.constant 0.000000e+00 : f32
          %cst_1 = arith.constant 0.000000e+00 : f32
          %0:3 = affine.for %arg9 = 0 to 24 iter_args(%arg10 = %cst, %arg11 = %cst_0, %arg12 = %cst_1) -> (f32, f32, f32) {
            %1 = affine.load %arg0[%arg6, %arg7, %arg8, %arg9] : memref<2x5x5x24xbf16>
            %2 = arith.extf %1 : bf16 to f32
            %cst_2 = arith.constant 0.000000e+00 : f32
            %cst_3 = arith.constant 1.000000e+00 : f32
            %3:3 = bridge.combine welford (%arg10, %arg11, %arg12), (%2, %cst_2, %cst_3) : f32, f32, f32
            affine.yield %3#0, %3#1, %3#2 : f32, f32, f32
          }
          affine.store %0#1, %arg2[%arg6, %arg7, %arg8] : memref<2x5x5xf32>
        }
      }
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    affine.for %arg6 = 0 to 2 {
      affine.for %arg7 = 0 to 5 {
        affine.for %arg8 = 0 to 5 {
          affine.for %arg9 = 0 to 24 {
            %0 = affine.load %arg0[%arg6, (%arg7 + 2) mod 5, (%arg8 + 2) mod 5, %arg9] : memref<2x5x5x24xbf16>
            %1 = arith.extf %0 : bf16 to f32
            %2 = affine.load %arg1[%arg6, (%arg7 + 2) mod 5, (%arg8 + 2) mod 5] : memref<2x5x5xf32>
            %3 = arith.subf %1, %2 : f32
            %4 = affine.load %arg2[%arg6, (%arg7 + 2) mod 5, (%arg8 + 2) mod 5] : memref<2x5x5xf32>
            %cst = arith.constant 2.400000e+01 : f32
            %5 = arith.divf %4, %cst : f32
            %cst_0 = arith.constant 9.99999974E-6 : f32
            %6 = arith.addf %5, %cst_0 : f32
            %7 = math.rsqrt %6 : f32
            %8 = arith.mulf %3, %7 : f32
            %9 = affine.load %arg3[%arg9] : memref<24xbf16>
            %10 = arith.extf %9 : bf16 to f32
            %11 = arith.mulf %8, %10 : f32
            %12 = affine.load %arg4[%arg9] : memref<24xbf16>
            %13 = arith.extf %12 : bf16 to f32
            %14 = arith.addf %11, %13 : f32
            %15 = arith.truncf %14 : f32 to bf16
            affine.store %15, %arg5[%arg6, %arg7, %arg8, %arg9] : memref<2x5x5x24xbf16>
          }
        }
      }
    } {bridge.kernels = [1], bridge.nodes = ["op3"]}
    return
  }
}
