// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 7 {
// CHECK: affine.for %{{.*}} = 0 to 48 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x96xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}} + 48] : memref<7x96xbf16>
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 48 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<7xf32>
// CHECK: affine.for %{{.*}} = 0 to 48 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x96xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}} + 48] : memref<7x96xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x96xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}} + 48] : memref<7x96xbf16>
// CHECK: } {bridge.band, bridge.kernels = [0, 0, 1, 1], bridge.nodes = ["op0", "op1", "op2", "op3"], bridge.parallel}
// CHECK-NEXT: return
#map = affine_map<(d0) -> (d0)>
#set = affine_set<(d0) : (-d0 + 47 >= 0)>
#set1 = affine_set<(d0) : (d0 - 48 >= 0)>
module {
  func.func @group0(%arg0: memref<7x96xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<7x96xbf16> {bridge.buffer = "arg1_1"}, %arg2: memref<7x96xbf16> {bridge.buffer = "buf0"}, %arg3: memref<7xf32> {bridge.buffer = "buf1"}, %arg4: memref<96xbf16> {bridge.buffer = "arg2_1"}, %arg5: memref<7x96xbf16> {bridge.buffer = "arg4_1"}, %arg6: memref<7x96xbf16> {bridge.buffer = "buf2"}, %arg7: memref<7x96xbf16> {bridge.buffer = "arg3_1"}, %arg8: memref<7x96xbf16> {bridge.buffer = "buf3"}) {
    affine.for %arg9 = 0 to 7 {
      affine.for %arg10 = 0 to 96 {
        %0 = affine.load %arg0[%arg9, %arg10] : memref<7x96xbf16>
        %1 = arith.extf %0 : bf16 to f32
        %2 = affine.load %arg1[%arg9, %arg10] : memref<7x96xbf16>
        %3 = arith.extf %2 : bf16 to f32
        %4 = arith.addf %1, %3 : f32
        %5 = arith.truncf %4 : f32 to bf16
        affine.store %5, %arg2[%arg9, %arg10] : memref<7x96xbf16>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg9 = 0 to 7 {
      %cst = arith.constant 0.000000e+00 : f32
      %0 = affine.for %arg10 = 0 to 96 iter_args(%arg11 = %cst) -> (f32) {
        %1 = affine.load %arg2[%arg9, %arg10] : memref<7x96xbf16>
        %2 = arith.extf %1 : bf16 to f32
        %3 = arith.mulf %2, %2 : f32
        %4 = arith.addf %arg11, %3 : f32
        affine.yield %4 : f32
      }
      affine.store %0, %arg3[%arg9] : memref<7xf32>
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    affine.for %arg9 = 0 to 7 {
      affine.for %arg10 = 0 to 96 {
        %0 = affine.apply #map(%arg10)
        %1 = arith.index_cast %0 : index to i64
        %c0_i64 = arith.constant 0 : i64
        %2 = arith.cmpi sge, %1, %c0_i64 : i64
        %3 = affine.apply #map(%arg10)
        %4 = arith.index_cast %3 : index to i64
        %c48_i64 = arith.constant 48 : i64
        %5 = arith.cmpi slt, %4, %c48_i64 : i64
        %6 = affine.if #set(%arg10) -> f32 {
          %19 = affine.load %arg2[%arg9, %arg10 + 48] : memref<7x96xbf16>
          %20 = arith.extf %19 : bf16 to f32
          %21 = affine.load %arg3[%arg9] : memref<7xf32>
          %cst = arith.constant 9.600000e+01 : f32
          %22 = arith.divf %21, %cst : f32
          %cst_1 = arith.constant 9.99999997E-7 : f32
          %23 = arith.addf %22, %cst_1 : f32
          %24 = math.rsqrt %23 : f32
          %25 = arith.mulf %20, %24 : f32
          %26 = affine.load %arg4[%arg10 + 48] : memref<96xbf16>
          %27 = arith.extf %26 : bf16 to f32
          %28 = arith.mulf %25, %27 : f32
          %29 = arith.negf %28 : f32
          affine.yield %29 : f32
        } else {
          %cst = arith.constant 0.000000e+00 : f32
          affine.yield %cst : f32
        }
        %7 = affine.apply #map(%arg10)
        %8 = arith.index_cast %7 : index to i64
        %c48_i64_0 = arith.constant 48 : i64
        %9 = arith.cmpi sge, %8, %c48_i64_0 : i64
        %10 = affine.apply #map(%arg10)
        %11 = arith.index_cast %10 : index to i64
        %c96_i64 = arith.constant 96 : i64
        %12 = arith.cmpi slt, %11, %c96_i64 : i64
        %13 = affine.if #set1(%arg10) -> f32 {
          %19 = affine.load %arg2[%arg9, %arg10 - 48] : memref<7x96xbf16>
          %20 = arith.extf %19 : bf16 to f32
          %21 = affine.load %arg3[%arg9] : memref<7xf32>
          %cst = arith.constant 9.600000e+01 : f32
          %22 = arith.divf %21, %cst : f32
          %cst_1 = arith.constant 9.99999997E-7 : f32
          %23 = arith.addf %22, %cst_1 : f32
          %24 = math.rsqrt %23 : f32
          %25 = arith.mulf %20, %24 : f32
          %26 = affine.load %arg4[%arg10 - 48] : memref<96xbf16>
          %27 = arith.extf %26 : bf16 to f32
          %28 = arith.mulf %25, %27 : f32
          affine.yield %28 : f32
        } else {
          %cst = arith.constant 0.000000e+00 : f32
          affine.yield %cst : f32
        }
        %14 = arith.select %5, %6, %13 : f32
        %15 = affine.load %arg5[%arg9, %arg10] : memref<7x96xbf16>
        %16 = arith.extf %15 : bf16 to f32
        %17 = arith.mulf %14, %16 : f32
        %18 = arith.truncf %17 : f32 to bf16
        affine.store %18, %arg6[%arg9, %arg10] : memref<7x96xbf16>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op2"]}
    affine.for %arg9 = 0 to 7 {
      affine.for %arg10 = 0 to 96 {
        %0 = affine.load %arg2[%arg9, %arg10] : memref<7x96xbf16>
        %1 = arith.extf %0 : bf16 to f32
        %2 = affine.load %arg3[%arg9] : memref<7xf32>
        %cst = arith.constant 9.600000e+01 : f32
        %3 = arith.divf %2, %cst : f32
        %cst_0 = arith.constant 9.99999997E-7 : f32
        %4 = arith.addf %3, %cst_0 : f32
        %5 = math.rsqrt %4 : f32
        %6 = arith.mulf %1, %5 : f32
        %7 = affine.load %arg4[%arg10] : memref<96xbf16>
        %8 = arith.extf %7 : bf16 to f32
        %9 = arith.mulf %6, %8 : f32
        %10 = affine.load %arg7[%arg9, %arg10] : memref<7x96xbf16>
        %11 = arith.extf %10 : bf16 to f32
        %12 = arith.mulf %9, %11 : f32
        %13 = affine.load %arg6[%arg9, %arg10] : memref<7x96xbf16>
        %14 = arith.extf %13 : bf16 to f32
        %15 = arith.addf %12, %14 : f32
        %16 = arith.truncf %15 : f32 to bf16
        affine.store %16, %arg8[%arg9, %arg10] : memref<7x96xbf16>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op3"]}
    return
  }
}
