// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 5 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 256 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<5xf32>
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 128 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<5x2xf32>
// CHECK: affine.for %{{.*}} = 0 to 128 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<5x2x128xf8E4M3FN>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<5x2xf32>
// CHECK: } {bridge.band, bridge.kernels = [0, 1, 1, 1], bridge.nodes = ["op0", "op1", "op2", "op3"], bridge.parallel}
// CHECK-NEXT: return
module {
  func.func @group0(%arg0: memref<5x256xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<5xf32> {bridge.buffer = "buf0"}, %arg2: memref<2x128xbf16> {bridge.buffer = "arg1_1"}, %arg3: memref<5x2xf32> {bridge.buffer = "buf1"}, %arg4: memref<5x2x128xf8E4M3FN> {bridge.buffer = "buf2"}, %arg5: memref<5x2xf32> {bridge.buffer = "buf3"}) {
    affine.for %arg6 = 0 to 5 {
      %cst = arith.constant 0.000000e+00 : f32
      %0 = affine.for %arg7 = 0 to 256 iter_args(%arg8 = %cst) -> (f32) {
        %1 = affine.load %arg0[%arg6, %arg7] : memref<5x256xbf16>
        %2 = arith.extf %1 : bf16 to f32
        %3 = arith.mulf %2, %2 : f32
        %4 = arith.addf %arg8, %3 : f32
        affine.yield %4 : f32
      }
      affine.store %0, %arg1[%arg6] : memref<5xf32>
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg6 = 0 to 5 {
      affine.for %arg7 = 0 to 2 {
        %cst = arith.constant 0xFF800000 : f32
        %0 = affine.for %arg8 = 0 to 128 iter_args(%arg9 = %cst) -> (f32) {
          %1 = affine.load %arg0[%arg6, %arg8 + %arg7 * 128] : memref<5x256xbf16>
          %2 = arith.extf %1 : bf16 to f32
          %3 = affine.load %arg1[%arg6] : memref<5xf32>
          %cst_0 = arith.constant 2.560000e+02 : f32
          %4 = arith.divf %3, %cst_0 : f32
          %cst_1 = arith.constant 9.99999997E-7 : f32
          %5 = arith.addf %4, %cst_1 : f32
          %6 = math.rsqrt %5 : f32
          %7 = arith.mulf %2, %6 : f32
          %8 = affine.load %arg2[%arg7, %arg8] : memref<2x128xbf16>
          %9 = arith.extf %8 : bf16 to f32
          %10 = arith.mulf %7, %9 : f32
          %11 = math.absf %10 : f32
          %12 = arith.maximumf %arg9, %11 : f32
          affine.yield %12 : f32
        }
        affine.store %0, %arg3[%arg6, %arg7] : memref<5x2xf32>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op1"]}
    affine.for %arg6 = 0 to 5 {
      affine.for %arg7 = 0 to 2 {
        affine.for %arg8 = 0 to 128 {
          %0 = affine.load %arg0[%arg6, %arg8 + %arg7 * 128] : memref<5x256xbf16>
          %1 = arith.extf %0 : bf16 to f32
          %2 = affine.load %arg1[%arg6] : memref<5xf32>
          %cst = arith.constant 2.560000e+02 : f32
          %3 = arith.divf %2, %cst : f32
          %cst_0 = arith.constant 9.99999997E-7 : f32
          %4 = arith.addf %3, %cst_0 : f32
          %5 = math.rsqrt %4 : f32
          %6 = arith.mulf %1, %5 : f32
          %7 = affine.load %arg2[%arg7, %arg8] : memref<2x128xbf16>
          %8 = arith.extf %7 : bf16 to f32
          %9 = arith.mulf %6, %8 : f32
          %10 = affine.load %arg3[%arg6, %arg7] : memref<5x2xf32>
          %cst_1 = arith.constant 9.99999996E-13 : f32
          %11 = arith.maximumf %10, %cst_1 : f32
          %cst_2 = arith.constant 0.00223214296 : f32
          %12 = arith.mulf %11, %cst_2 : f32
          %13 = arith.divf %9, %12 : f32
          %14 = arith.truncf %13 : f32 to f8E4M3FN
          affine.store %14, %arg4[%arg6, %arg7, %arg8] : memref<5x2x128xf8E4M3FN>
        }
      }
    } {bridge.kernels = [1], bridge.nodes = ["op2"]}
    affine.for %arg6 = 0 to 5 {
      affine.for %arg7 = 0 to 2 {
        %0 = affine.load %arg3[%arg6, %arg7] : memref<5x2xf32>
        %cst = arith.constant 9.99999996E-13 : f32
        %1 = arith.maximumf %0, %cst : f32
        %cst_0 = arith.constant 0.00223214296 : f32
        %2 = arith.mulf %1, %cst_0 : f32
        affine.store %2, %arg5[%arg6, %arg7] : memref<5x2xf32>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op3"]}
    return
  }
}
