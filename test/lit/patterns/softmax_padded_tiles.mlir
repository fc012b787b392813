// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 16 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32) {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}, %{{.*}}) -> f32 {
// CHECK: affine.if #{{.*}}(%{{.*}}) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<2x13xf32>
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 16 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32) {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}, %{{.*}}) -> f32 {
// CHECK: affine.if #{{.*}}(%{{.*}}) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<2x13xf32>
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}, %{{.*}}) -> f32 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<2x16x16xbf16>
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 1], bridge.nodes = ["op0", "op1", "op2"], bridge.parallel}
// CHECK-NEXT: return
#map = affine_map<(d0) -> (d0)>
#set = affine_set<(d0, d1) : (-d0 + 12 >= 0, -d1 + 12 >= 0)>
module {
  func.func @group0(%arg0: memref<2x13x13xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<2x13xf32> {bridge.buffer = "buf0"}, %arg2: memref<2x13xf32> {bridge.buffer = "buf1"}, %arg3: memref<2x16x16xbf16> {bridge.buffer = "buf2"}) {
    affine.for %arg4 = 0 to 2 {
      affine.for %arg5 = 0 to 13 {
        %cst = arith.constant 0xFF800000 : f32
        %cst_0 = arith.constant 0.000000e+00 : f32
        %0:2 = affine.for %arg6 = 0 to 13 iter_args(%arg7 = %cst, %arg8 = %cst_0) -> (f32, f32) {
          %1 = affine.load %arg0[%arg4, %arg5, %arg6] : memref<2x13x13xbf16>
          %2 = arith.extf %1 : bf16 to f32
          %cst_1 = arith.constant 1.000000e+00 : f32
          %3:2 = bridge.combine online_softmax (%arg7, %arg8), (%2, %cst_1) : f32, f32
          affine.yield %3#0, %3#1 : f32, f32
        }
        affine.store %0#0, %arg1[%arg4, %arg5] : memref<2x13xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg4 = 0 to 2 {
      affine.for %arg5 = 0 to 13 {
        %cst = arith.constant 0xFF800000 : f32
        %cst_0 = arith.constant 0.000000e+00 : f32
        %0:2 = affine.for %arg6 = 0 to 13 iter_args(%arg7 = %cst, %arg8 = %cst_0) -> (f32, f32) {
          %1 = affine.load %arg0[%arg4, %arg5, %arg6] : memref<2x13x13xbf16>
          %2 = arith.extf %1 : bf16 to f32
          %cst_1 = arith.constant 1.000000e+00 : f32
          %3:2 = bridge.combine online_softmax (%arg7, %arg8), (%2, %cst_1) : f32, f32
          affine.yield %3#0, %3#1 : f32, f32
        }
        affine.store %0#1, %arg2[%arg4, %arg5] : memref<2x13xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    affine.for %arg4 = 0 to 2 {
      affine.for %arg5 = 0 to 16 {
        affine.for %arg6 = 0 to 16 {
          %0 = affine.apply #map(%arg5)
          %1 = arith.index_cast %0 : index to i64
          %c13_i64 = arith.constant 13 : i64
          %2 = arith.cmpi slt, %1, %c13_i64 : i64
          %3 = affine.apply #map(%arg6)
          %4 = arith.index_cast %3 : index to i64
          %c13_i64_0 = arith.constant 13 : i64
          %5 = arith.cmpi slt, %4, %c13_i64_0 : i64
          %6 = arith.andi %2, %5 : i1
          %7 = affine.if #set(%arg5, %arg6) -> f32 {
            %9 = affine.load %arg0[%arg4, %arg5, %arg6] : memref<2x13x13xbf16>
            %10 = arith.extf %9 : bf16 to f32
            %11 = affine.load %arg1[%arg4, %arg5] : memref<2x13xf32>
            %12 = arith.subf %10, %11 : f32
            %13 = math.exp %12 : f32
            %14 = affine.load %arg2[%arg4, %arg5] : memref<2x13xf32>
            %15 = arith.divf %13, %14 : f32
            affine.yield %15 : f32
          } else {
            %cst = arith.constant 0.000000e+00 : f32
            affine.yield %cst : f32
          }
          %8 = arith.truncf %7 : f32 to bf16
          affine.store %8, %arg3[%arg4, %arg5, %arg6] : memref<2x16x16xbf16>
        }
      }
    } {bridge.kernels = [1], bridge.nodes = ["op2"]}
    return
  }
}
