// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 3 {
// CHECK: affine.for %{{.*}} = 0 to 4 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 8 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 8 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<3x4xf32>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<3x4xf32>
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK: affine.for %{{.*}} = 0 to 8 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : memref<3x8x4x8xf8E4M3FN>
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 1], bridge.nodes = ["op0", "op2", "op1"], bridge.parallel}
// CHECK-NEXT: return
module {
  func.func @group0(%arg0: memref<3x8x4x8xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<3x4xf32> {bridge.buffer = "buf0"}, %arg2: memref<3x4xf32> {bridge.buffer = "buf2"}, %arg3: memref<3x8x4x8xf8E4M3FN> {bridge.buffer = "buf1"}) {
    affine.for %arg4 = 0 to 3 {
      affine.for %arg5 = 0 to 4 {
        %cst = arith.constant 0xFF800000 : f32
        %0 = affine.for %arg6 = 0 to 8 iter_args(%arg7 = %cst) -> (f32) {
          %1 = affine.for %arg8 = 0 to 8 iter_args(%arg9 = %arg7) -> (f32) {
            %2 = affine.load %arg0[%arg4, %arg6, %arg5, %arg8] : memref<3x8x4x8xbf16>
            %3 = arith.extf %2 : bf16 to f32
            %4 = affine.load %arg0[%arg4, %arg6, %arg5, %arg8] : memref<3x8x4x8xbf16>
            %5 = arith.extf %4 : bf16 to f32
            %6 = arith.negf %5 : f32
            %7 = math.exp %6 : f32
            %cst_0 = arith.constant 1.000000e+00 : f32
            %8 = arith.addf %7, %cst_0 : f32
            %9 = arith.divf %3, %8 : f32
            %10 = math.absf %9 : f32
            %11 = arith.maximumf %arg9, %10 : f32
            affine.yield %11 : f32
          }
          affine.yield %1 : f32
        }
        affine.store %0, %arg1[%arg4, %arg5] : memref<3x4xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg4 = 0 to 3 {
      affine.for %arg5 = 0 to 4 {
        %0 = affine.load %arg1[%arg4, %arg5] : memref<3x4xf32>
        %cst = arith.constant 0.00223214296 : f32
        %1 = arith.mulf %0, %cst : f32
        %cst_0 = arith.constant 9.99999996E-13 : f32
        %2 = arith.maximumf %1, %cst_0 : f32
        affine.store %2, %arg2[%arg4, %arg5] : memref<3x4xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op2"]}
    affine.for %arg4 = 0 to 3 {
      affine.for %arg5 = 0 to 8 {
        affine.for %arg6 = 0 to 4 {
          affine.for %arg7 = 0 to 8 {
            %0 = affine.load %arg0[%arg4, %arg5, %arg6, %arg7] : memref<3x8x4x8xbf16>
            %1 = arith.extf %0 : bf16 to f32
            %2 = affine.load %arg0[%arg4, %arg5, %arg6, %arg7] : memref<3x8x4x8xbf16>
            %3 = arith.extf %2 : bf16 to f32
            %4 = arith.negf %3 : f32
            %5 = math.exp %4 : f32
            %cst = arith.constant 1.000000e+00 : f32
            %6 = arith.addf %5, %cst : f32
            %7 = arith.divf %1, %6 : f32
            %8 = affine.load %arg1[%arg4, %arg6] : memref<3x4xf32>
            %cst_0 = arith.constant 0.00223214296 : f32
            %9 = arith.mulf %8, %cst_0 : f32
            %cst_1 = arith.constant 9.99999996E-13 : f32
            %10 = arith.maximumf %9, %cst_1 : f32
            %11 = arith.divf %7, %10 : f32
            %12 = arith.truncf %11 : f32 to f8E4M3FN
            affine.store %12, %arg3[%arg4, %arg5, %arg6, %arg7] : memref<3x8x4x8xf8E4M3FN>
          }
        }
      }
    } {bridge.kernels = [1], bridge.nodes = ["op1"]}
    return
  }
}
