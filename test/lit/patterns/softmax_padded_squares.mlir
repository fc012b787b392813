// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK: affine.for %{{.*}} = 0 to 13 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 16 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32) {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}) -> f32 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<2x13xf32>
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 16 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32) {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}) -> f32 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<2x13xf32>
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}) -> f32 {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}) -> f32 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<2x16x16xbf16>
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 1], bridge.nodes = ["op0", "op1", "op2"], bridge.parallel}
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK: affine.for %{{.*}} = 0 to 3 {
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<2x16x16xbf16>
// CHECK: } {bridge.kernels = [2], bridge.nodes = ["op3"]}
// CHECK-NEXT: return
#map = affine_map<(d0) -> (d0)>
#set = affine_set<(d0) : (-d0 + 12 >= 0)>
#set1 = affine_set<(d0) : (d0 - 13 >= 0)>
module {
  func.func @group0(%arg0: memref<2x13x13xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<2x13xf32> {bridge.buffer = "buf0"}, %arg2: memref<2x13xf32> {bridge.buffer = "buf1"}, %arg3: memref<2x16x16xbf16> {bridge.buffer = "buf2", bridge.storage = "buf4"}, %arg4: memref<2x16x16xbf16> {bridge.buffer = "buf3", bridge.storage = "buf4"}) {
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
        affine.for %arg7 = 0 to 16 {
          %0 = affine.apply #map(%arg7)
          %1 = arith.index_cast %0 : index to i64
          %c0_i64 = arith.constant 0 : i64
          %2 = arith.cmpi sge, %1, %c0_i64 : i64
          %3 = affine.apply #map(%arg7)
          %4 = arith.index_cast %3 : index to i64
          %c13_i64 = arith.constant 13 : i64
          %5 = arith.cmpi slt, %4, %c13_i64 : i64
          %6 = affine.if #set(%arg7) -> f32 {
            %16 = affine.load %arg0[%arg5, %arg6, %arg7] : memref<2x13x13xbf16>
            %17 = arith.extf %16 : bf16 to f32
            %18 = affine.load %arg1[%arg5, %arg6] : memref<2x13xf32>
            %19 = arith.subf %17, %18 : f32
            %20 = math.exp %19 : f32
            %21 = affine.load %arg2[%arg5, %arg6] : memref<2x13xf32>
            %22 = arith.divf %20, %21 : f32
            affine.yield %22 : f32
          } else {
            %cst = arith.constant 0.000000e+00 : f32
            affine.yield %cst : f32
          }
          %7 = affine.apply #map(%arg7)
          %8 = arith.index_cast %7 : index to i64
          %c13_i64_0 = arith.constant 13 : i64
          %9 = arith.cmpi sge, %8, %c13_i64_0 : i64
          %10 = affine.apply #map(%arg7)
          %11 = arith.index_cast %10 : index to i64
          %c16_i64 = arith.constant 16 : i64
          %12 = arith.cmpi slt, %11, %c16_i64 : i64
          %13 = affine.if #set1(%arg7) -> f32 {
            %cst = arith.constant 0.000000e+00 : f32
            affine.yield %cst : f32
          } else {
            %cst = arith.constant 0.000000e+00 : f32
            affine.yield %cst : f32
          }
          %14 = arith.select %5, %6, %13 : f32
          %15 = arith.truncf %14 : f32 to bf16
          affine.store %15, %arg3[%arg5, %arg6, %arg7] : memref<2x16x16xbf16>
        }
      }
    } {bridge.kernels = [1], bridge.nodes = ["op2"]}
    affine.for %arg5 = 0 to 2 {
      affine.for %arg6 = 0 to 3 {
        affine.for %arg7 = 0 to 16 {
          %cst = arith.constant 0.000000e+00 : f32
          %0 = arith.truncf %cst : f32 to bf16
          affine.store %0, %arg4[%arg5, %arg6, %arg7] : memref<2x16x16xbf16>
        }
      }
    } {bridge.kernels = [2], bridge.nodes = ["op3"]}
    return
  }
}
