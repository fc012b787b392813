// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 3 {
// CHECK: affine.for %{{.*}} = 0 to 4 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 16 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<3x4xf32>
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, 0] : memref<3x4x16x2xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, 1] : memref<3x4x16x2xbf16>
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.kernels = [0, 0], bridge.nodes = ["op0", "op1"], bridge.parallel}
// CHECK-NEXT: return
#map = affine_map<(d0) -> (d0)>
#set = affine_set<(d0) : (-d0 >= 0)>
#set1 = affine_set<(d0) : (d0 - 1 >= 0)>
module {
  func.func @group0(%arg0: memref<3x4x32xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<3x4xf32> {bridge.buffer = "buf0"}, %arg2: memref<16x2xbf16> {bridge.buffer = "arg1_1"}, %arg3: memref<3x16xbf16> {bridge.buffer = "arg2_1"}, %arg4: memref<3x16xbf16> {bridge.buffer = "arg3_1"}, %arg5: memref<3x4x16x2xbf16> {bridge.buffer = "buf1"}) {
    affine.for %arg6 = 0 to 3 {
      affine.for %arg7 = 0 to 4 {
        %cst = arith.constant 0.000000e+00 : f32
        %0 = affine.for %arg8 = 0 to 32 iter_args(%arg9 = %cst) -> (f32) {
          %1 = affine.load %arg0[%arg6, %arg7, %arg8] : memref<3x4x32xbf16>
          %2 = arith.extf %1 : bf16 to f32
          %3 = arith.mulf %2, %2 : f32
          %4 = arith.addf %arg9, %3 : f32
          affine.yield %4 : f32
        }
        affine.store %0, %arg1[%arg6, %arg7] : memref<3x4xf32>
      }
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg6 = 0 to 3 {
      affine.for %arg7 = 0 to 4 {
        affine.for %arg8 = 0 to 16 {
          affine.for %arg9 = 0 to 2 {
            %0 = affine.apply #map(%arg9)
            %1 = arith.index_cast %0 : index to i64
            %c0_i64 = arith.constant 0 : i64
            %2 = arith.cmpi sge, %1, %c0_i64 : i64
            %3 = affine.apply #map(%arg9)
            %4 = arith.index_cast %3 : index to i64
            %c1_i64 = arith.constant 1 : i64
            %5 = arith.cmpi slt, %4, %c1_i64 : i64
            %6 = affine.if #set(%arg9) -> f32 {
              %16 = affine.load %arg0[%arg6, %arg7, %arg8 * 2] : memref<3x4x32xbf16>
              %17 = arith.extf %16 : bf16 to f32
              %18 = affine.load %arg1[%arg6, %arg7] : memref<3x4xf32>
              %cst = arith.constant 3.200000e+01 : f32
              %19 = arith.divf %18, %cst : f32
              %cst_1 = arith.constant 9.99999997E-7 : f32
              %20 = arith.addf %19, %cst_1 : f32
              %21 = math.rsqrt %20 : f32
              %22 = arith.mulf %17, %21 : f32
              %23 = affine.load %arg2[%arg8, 0] : memref<16x2xbf16>
              %24 = arith.extf %23 : bf16 to f32
              %25 = arith.mulf %22, %24 : f32
              %26 = affine.load %arg3[%arg6, %arg8] : memref<3x16xbf16>
              %27 = arith.extf %26 : bf16 to f32
              %28 = arith.mulf %25, %27 : f32
              %29 = affine.load %arg0[%arg6, %arg7, %arg8 * 2 + 1] : memref<3x4x32xbf16>
              %30 = arith.extf %29 : bf16 to f32
              %31 = affine.load %arg1[%arg6, %arg7] : memref<3x4xf32>
              %cst_2 = arith.constant 3.200000e+01 : f32
              %32 = arith.divf %31, %cst_2 : f32
              %cst_3 = arith.constant 9.99999997E-7 : f32
              %33 = arith.addf %32, %cst_3 : f32
              %34 = math.rsqrt %33 : f32
              %35 = arith.mulf %30, %34 : f32
              %36 = affine.load %arg2[%arg8, 1] : memref<16x2xbf16>
              %37 = arith.extf %36 : bf16 to f32
              %38 = arith.mulf %35, %37 : f32
              %39 = affine.load %arg4[%arg6, %arg8] : memref<3x16xbf16>
              %40 = arith.extf %39 : bf16 to f32
              %41 = arith.mulf %38, %40 : f32
              %42 = arith.subf %28, %41 : f32
              affine.yield %42 : f32
            } else {
              %cst = arith.constant 0.000000e+00 : f32
              affine.yield %cst : f32
            }
            %7 = affine.apply #map(%arg9)
            %8 = arith.index_cast %7 : index to i64
            %c1_i64_0 = arith.constant 1 : i64
            %9 = arith.cmpi sge, %8, %c1_i64_0 : i64
            %10 = affine.apply #map(%arg9)
            %11 = arith.index_cast %10 : index to i64
            %c2_i64 = arith.constant 2 : i64
            %12 = arith.cmpi slt, %11, %c2_i64 : i64
            %13 = affine.if #set1(%arg9) -> f32 {
              %16 = affine.load %arg0[%arg6, %arg7, %arg8 * 2] : memref<3x4x32xbf16>
              %17 = arith.extf %16 : bf16 to f32
              %18 = affine.load %arg1[%arg6, %arg7] : memref<3x4xf32>
              %cst = arith.constant 3.200000e+01 : f32
              %19 = arith.divf %18, %cst : f32
              %cst_1 = arith.constant 9.99999997E-7 : f32
              %20 = arith.addf %19, %cst_1 : f32
              %21 = math.rsqrt %20 : f32
              %22 = arith.mulf %17, %21 : f32
              %23 = affine.load %arg2[%arg8, 0] : memref<16x2xbf16>
              %24 = arith.extf %23 : bf16 to f32
              %25 = arith.mulf %22, %24 : f32
              %26 = affine.load %arg4[%arg6, %arg8] : memref<3x16xbf16>
              %27 = arith.extf %26 : bf16 to f32
              %28 = arith.mulf %25, %27 : f32
              %29 = affine.load %arg0[%arg6, %arg7, %arg8 * 2 + 1] : memref<3x4x32xbf16>
              %30 = arith.extf %29 : bf16 to f32
              %31 = affine.load %arg1[%arg6, %arg7] : memref<3x4xf32>
              %cst_2 = arith.constant 3.200000e+01 : f32
              %32 = arith.divf %31, %cst_2 : f32
              %cst_3 = arith.constant 9.99999997E-7 : f32
              %33 = arith.addf %32, %cst_3 : f32
              %34 = math.rsqrt %33 : f32
              %35 = arith.mulf %30, %34 : f32
              %36 = affine.load %arg2[%arg8, 1] : memref<16x2xbf16>
              %37 = arith.extf %36 : bf16 to f32
              %38 = arith.mulf %35, %37 : f32
              %39 = affine.load %arg3[%arg6, %arg8] : memref<3x16xbf16>
              %40 = arith.extf %39 : bf16 to f32
              %41 = arith.mulf %38, %40 : f32
              %42 = arith.addf %28, %41 : f32
              affine.yield %42 : f32
            } else {
              %cst = arith.constant 0.000000e+00 : f32
              affine.yield %cst : f32
            }
            %14 = arith.select %5, %6, %13 : f32
            %15 = arith.truncf %14 : f32 to bf16
            affine.store %15, %arg5[%arg6, %arg7, %arg8, %arg9] : memref<3x4x16x2xbf16>
          }
        }
      }
    } {bridge.kernels = [0], bridge.nodes = ["op1"]}
    return
  }
}
