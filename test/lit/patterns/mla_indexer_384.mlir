// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 7 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 16 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<7xf32>
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 16 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, f32, f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<7xf32>
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x96xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}} + 16] : memref<7x96xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}} + 32] : memref<7x96xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}} + 48] : memref<7x96xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}} + 64] : memref<7x96xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}} + 80] : memref<7x96xbf16>
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}) -> f32 {
// CHECK: %{{.*}} = affine.if #{{.*}}(%{{.*}}) -> f32 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x16xbf16>
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 0, 1], bridge.nodes = ["op0", "op1", "op3", "op4"], bridge.parallel}
// CHECK-NEXT: return
#map = affine_map<(d0) -> (d0)>
#set = affine_set<(d0) : (-d0 + 7 >= 0)>
#set1 = affine_set<(d0) : (d0 - 8 >= 0)>
module {
  func.func @group0(%arg0: memref<7x96xbf16> {bridge.buffer = "arg1_1"}, %arg1: memref<7xf32> {bridge.buffer = "buf0"}, %arg2: memref<7xf32> {bridge.buffer = "buf1"}, %arg3: memref<96xbf16> {bridge.buffer = "arg2_1"}, %arg4: memref<96xbf16> {bridge.buffer = "arg3_1"}, %arg5: memref<7x96xbf16> {bridge.buffer = "buf3"}, %arg6: memref<7x16xbf16> {bridge.buffer = "arg0_1"}, %arg7: memref<7x16xbf16> {bridge.buffer = "arg4_1"}, %arg8: memref<7x16xbf16> {bridge.buffer = "buf4"}) {
    affine.for %arg9 = 0 to 7 {
      %cst = arith.constant 0.000000e+00 : f32
      %cst_0 = arith.constant 0.000000e+00 : f32
      %cst_1 = arith.constant 0.000000e+00 : f32
      %0:3 = affine.for %arg10 = 0 to 96 iter_args(%arg11 = %cst, %arg12 = %cst_0, %arg13 = %cst_1) -> (f32, f32, f32) {
        %1 = affine.load %arg0[%arg9, %arg10] : memref<7x96xbf16>
        %2 = arith.extf %1 : bf16 to f32
        %cst_2 = arith.constant 0.000000e+00 : f32
        %cst_3 = arith.constant 1.000000e+00 : f32
        %3:3 = bridge.combine welford (%arg11, %arg12, %arg13), (%2, %cst_2, %cst_3) : f32, f32, f32
        affine.yield %3#0, %3#1, %3#2 : f32, f32, f32
      }
      affine.store %0#0, %arg1[%arg9] : memref<7xf32>
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg9 = 0 to 7 {
      %cst = arith.constant 0.000000e+00 : f32
      %cst_0 = arith.constant 0.000000e+00 : f32
      %cst_1 = arith.constant 0.000000e+00 : f32
      %0:3 = affine.for %arg10 = 0 to 96 iter_args(%arg11 = %cst, %arg12 = %cst_0, %arg13 = %cst_1) -> (f32, f32, f32) {
        %1 = affine.load %arg0[%arg9, %arg10] : memref<7x96xbf16>
        %2 = arith.extf %1 : bf16 to f32
        %cst_2 = arith.constant 0.000000e+00 : f32
        %cst_3 = arith.constant 1.000000e+00 : f32
        %3:3 = bridge.combine welford (%arg11, %arg12, %arg13), (%2, %cst_2, %cst_3) : f32, f32, f32
        affine.yield %3#0, %3#1, %3#2 : f32, f32, f32
      }
      affine.store %0#1, %arg2[%arg9] : memref<7xf32>
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    affine.for %arg9 = 0 to 7 {
      affine.for %arg10 = 0 to 96 {
        %0 = affine.load %arg0[%arg9, %arg10] : memref<7x96xbf16>
        %1 = arith.extf %0 : bf16 to f32
        %2 = affine.load %arg1[%arg9] : memref<7xf32>
        %3 = arith.subf %1, %2 : f32
        %4 = affine.load %arg2[%arg9] : memref<7xf32>
        %cst = arith.constant 9.600000e+01 : f32
        %5 = arith.divf %4, %cst : f32
        %cst_0 = arith.constant 9.99999974E-6 : f32
        %6 = arith.addf %5, %cst_0 : f32
        %7 = math.rsqrt %6 : f32
        %8 = arith.mulf %3, %7 : f32
        %9 = affine.load %arg3[%arg10] : memref<96xbf16>
        %10 = arith.extf %9 : bf16 to f32
        %11 = arith.mulf %8, %10 : f32
        %12 = affine.load %arg4[%arg10] : memref<96xbf16>
        %13 = arith.extf %12 : bf16 to f32
        %14 = arith.addf %11, %13 : f32
        %15 = arith.truncf %14 : f32 to bf16
        affine.store %15, %arg5[%arg9, %arg10] : memref<7x96xbf16>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op3"]}
    affine.for %arg9 = 0 to 7 {
      affine.for %arg10 = 0 to 16 {
        %0 = affine.load %arg5[%arg9, %arg10] : memref<7x96xbf16>
        %1 = arith.extf %0 : bf16 to f32
        %2 = affine.load %arg6[%arg9, %arg10] : memref<7x16xbf16>
        %3 = arith.extf %2 : bf16 to f32
        %4 = arith.mulf %1, %3 : f32
        %5 = affine.apply #map(%arg10)
        %6 = arith.index_cast %5 : index to i64
        %c0_i64 = arith.constant 0 : i64
        %7 = arith.cmpi sge, %6, %c0_i64 : i64
        %8 = affine.apply #map(%arg10)
        %9 = arith.index_cast %8 : index to i64
        %c8_i64 = arith.constant 8 : i64
        %10 = arith.cmpi slt, %9, %c8_i64 : i64
        %11 = affine.if #set(%arg10) -> f32 {
          %25 = affine.load %arg5[%arg9, %arg10 + 8] : memref<7x96xbf16>
          %26 = arith.extf %25 : bf16 to f32
          %27 = arith.negf %26 : f32
          affine.yield %27 : f32
        } else {
          %cst = arith.constant 0.000000e+00 : f32
          affine.yield %cst : f32
        }
        %12 = affine.apply #map(%arg10)
        %13 = arith.index_cast %12 : index to i64
        %c8_i64_0 = arith.constant 8 : i64
        %14 = arith.cmpi sge, %13, %c8_i64_0 : i64
        %15 = affine.apply #map(%arg10)
        %16 = arith.index_cast %15 : index to i64
        %c16_i64 = arith.constant 16 : i64
        %17 = arith.cmpi slt, %16, %c16_i64 : i64
        %18 = affine.if #set1(%arg10) -> f32 {
          %25 = affine.load %arg5[%arg9, %arg10 - 8] : memref<7x96xbf16>
          %26 = arith.extf %25 : bf16 to f32
          affine.yield %26 : f32
        } else {
          %cst = arith.constant 0.000000e+00 : f32
          affine.yield %cst : f32
        }
        %19 = arith.select %10, %11, %18 : f32
        %20 = affine.load %arg7[%arg9, %arg10] : memref<7x16xbf16>
        %21 = arith.extf %20 : bf16 to f32
        %22 = arith.mulf %19, %21 : f32
        %23 = arith.addf %4, %22 : f32
        %24 = arith.truncf %23 : f32 to bf16
        affine.store %24, %arg8[%arg9, %arg10] : memref<7x16xbf16>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op4"]}
    return
  }
}
