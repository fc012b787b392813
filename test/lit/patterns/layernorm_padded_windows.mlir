// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 7 {
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK: affine.for %{{.*}} = 0 to 7 {
// CHECK: affine.for %{{.*}} = 0 to 2 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 24 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) -> f32 {
// CHECK: affine.if #{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}} * 7 + %{{.*}}, %{{.*}} * 7 + %{{.*}}] : memref<10x10xf32>
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 24 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) -> f32 {
// CHECK: affine.if #{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}} * 7 + %{{.*}}, %{{.*}} * 7 + %{{.*}}] : memref<10x10xf32>
// CHECK: affine.for %{{.*}} = 0 to 24 {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) -> f32 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : memref<2x2x7x7x24xbf16>
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 1], bridge.nodes = ["op0", "op1", "op3"], bridge.parallel}
// CHECK-NEXT: return
#map = affine_map<(d0, d1) -> (d1 + d0 * 7)>
#set = affine_set<(d0, d1, d2, d3) : (-d1 - d0 * 7 + 9 >= 0, -d3 - d2 * 7 + 9 >= 0)>
module {
  func.func @group0(%arg0: memref<10x10x24xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<10x10xf32> {bridge.buffer = "buf0"}, %arg2: memref<10x10xf32> {bridge.buffer = "buf1"}, %arg3: memref<24xbf16> {bridge.buffer = "arg1_1"}, %arg4: memref<24xbf16> {bridge.buffer = "arg2_1"}, %arg5: memref<2x2x7x7x24xbf16> {bridge.buffer = "buf3"}) {
    affine.for %arg6 = 0 to 10 {
      affine.for %arg7 = 0 to 10 {
        %cst = arith.constant 0.000000e+00 : f32
        %cst_0 = arith.constant 0.000000e+00 : f32
        %cst_1 = arith.constant 0.000000e+00 : f32
        %0:3 = affine.for %arg8 = 0 to 24 iter_args(%arg9 = %cst, %arg10 = %cst_0, %arg11 = %cst_1) -> (f32, f32, f32) {
          %1 = affine.load %arg0[%arg6, %arg7, %arg8] : memref<10x10x24xbf16>
          %2 = arith.extf %1 : bf16 to f32
          %cst_2 = arith.constant 0.000000e+00 : f32
          %cst_3 = arith.constant 1.000000e+00 : f32
          %3:3 = bridge.combine welford (%arg9, %arg10, %arg11), (%2, %cst_2, %cst_3) : f32, f32, f32
          affine.yield %3#0, %3#1, %3#2 : f32, f32, f32
        }
        affine.store %0#0, %arg1[%arg6, %arg7] : memref<10x10xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg6 = 0 to 10 {
      affine.for %arg7 = 0 to 10 {
        %cst = arith.constant 0.000000e+00 : f32
        %cst_0 = arith.constant 0.000000e+00 : f32
        %cst_1 = arith.constant 0.000000e+00 : f32
        %0:3 = affine.for %arg8 = 0 to 24 iter_args(%arg9 = %cst, %arg10 = %cst_0, %arg11 = %cst_1) -> (f32, f32, f32) {
          %1 = affine.load %arg0[%arg6, %arg7, %arg8] : memref<10x10x24xbf16>
          %2 = arith.extf %1 : bf16 to f32
          %cst_2 = arith.constant 0.000000e+00 : f32
          %cst_3 = arith.constant 1.000000e+00 : f32
          %3:3 = bridge.combine welford (%arg9, %arg10, %arg11), (%2, %cst_2, %cst_3) : f32, f32, f32
          affine.yield %3#0, %3#1, %3#2 : f32, f32, f32
        }
        affine.store %0#1, %arg2[%arg6, %arg7] : memref<10x10xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    affine.for %arg6 = 0 to 2 {
      affine.for %arg7 = 0 to 7 {
        affine.for %arg8 = 0 to 2 {
          affine.for %arg9 = 0 to 7 {
            affine.for %arg10 = 0 to 24 {
              %0 = affine.apply #map(%arg6, %arg7)
              %1 = arith.index_cast %0 : index to i64
              %c10_i64 = arith.constant 10 : i64
              %2 = arith.cmpi slt, %1, %c10_i64 : i64
              %3 = affine.apply #map(%arg8, %arg9)
              %4 = arith.index_cast %3 : index to i64
              %c10_i64_0 = arith.constant 10 : i64
              %5 = arith.cmpi slt, %4, %c10_i64_0 : i64
              %6 = arith.andi %2, %5 : i1
              %7 = affine.if #set(%arg6, %arg7, %arg8, %arg9) -> f32 {
                %9 = affine.load %arg0[%arg7 + %arg6 * 7, %arg9 + %arg8 * 7, %arg10] : memref<10x10x24xbf16>
                %10 = arith.extf %9 : bf16 to f32
                %11 = affine.load %arg1[%arg7 + %arg6 * 7, %arg9 + %arg8 * 7] : memref<10x10xf32>
                %12 = arith.subf %10, %11 : f32
                %13 = affine.load %arg2[%arg7 + %arg6 * 7, %arg9 + %arg8 * 7] : memref<10x10xf32>
                %cst = arith.constant 2.400000e+01 : f32
                %14 = arith.divf %13, %cst : f32
                %cst_1 = arith.constant 9.99999974E-6 : f32
                %15 = arith.addf %14, %cst_1 : f32
                %16 = math.rsqrt %15 : f32
                %17 = arith.mulf %12, %16 : f32
                %18 = affine.load %arg3[%arg10] : memref<24xbf16>
                %19 = arith.extf %18 : bf16 to f32
                %20 = arith.mulf %17, %19 : f32
                %21 = affine.load %arg4[%arg10] : memref<24xbf16>
                %22 = arith.extf %21 : bf16 to f32
                %23 = arith.addf %20, %22 : f32
                affine.yield %23 : f32
              } else {
                %cst = arith.constant 0.000000e+00 : f32
                affine.yield %cst : f32
              }
              %8 = arith.truncf %7 : f32 to bf16
              affine.store %8, %arg5[%arg6, %arg8, %arg7, %arg9, %arg10] : memref<2x2x7x7x24xbf16>
            }
          }
        }
      }
    } {bridge.kernels = [1], bridge.nodes = ["op3"]}
    return
  }
}
