// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 3 {
// CHECK: affine.for %{{.*}} = 0 to 16 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 0, %{{.*}}] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 0, %{{.*}} + 16] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 1, %{{.*}}] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 1, %{{.*}} + 16] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 2, %{{.*}}] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 2, %{{.*}} + 16] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 3, %{{.*}}] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 3, %{{.*}} + 16] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 4, %{{.*}}] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 4, %{{.*}} + 16] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 5, %{{.*}}] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 5, %{{.*}} + 16] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 6, %{{.*}}] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 6, %{{.*}} + 16] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 7, %{{.*}}] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 7, %{{.*}} + 16] : memref<3x8x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 0, %{{.*}}] : memref<3x2x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 0, %{{.*}} + 16] : memref<3x2x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 1, %{{.*}}] : memref<3x2x32xbf16>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, 1, %{{.*}} + 16] : memref<3x2x32xbf16>
// CHECK: } {bridge.band, bridge.parallel}
// CHECK: } {bridge.band, bridge.kernels = [0, 1], bridge.nodes = ["op0", "op1"], bridge.parallel}
// CHECK-NEXT: return
#map = affine_map<(d0) -> (d0)>
#set = affine_set<(d0) : (-d0 + 15 >= 0)>
#set1 = affine_set<(d0) : (d0 - 16 >= 0)>
module {
  func.func @group0(%arg0: memref<3x8x32xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<3x32xbf16> {bridge.buffer = "arg1_1"}, %arg2: memref<3x32xbf16> {bridge.buffer = "arg2_1"}, %arg3: memref<3x8x32xbf16> {bridge.buffer = "buf0"}, %arg4: memref<3x2x32xbf16> {bridge.buffer = "arg3_1"}, %arg5: memref<3x2x32xbf16> {bridge.buffer = "buf1"}) {
    affine.for %arg6 = 0 to 3 {
      affine.for %arg7 = 0 to 8 {
        affine.for %arg8 = 0 to 32 {
          %0 = affine.load %arg0[%arg6, %arg7, %arg8] : memref<3x8x32xbf16>
          %1 = arith.extf %0 : bf16 to f32
          %2 = affine.load %arg1[%arg6, %arg8] : memref<3x32xbf16>
          %3 = arith.extf %2 : bf16 to f32
          %4 = arith.mulf %1, %3 : f32
          %5 = affine.apply #map(%arg8)
          %6 = arith.index_cast %5 : index to i64
          %c0_i64 = arith.constant 0 : i64
          %7 = arith.cmpi sge, %6, %c0_i64 : i64
          %8 = affine.apply #map(%arg8)
          %9 = arith.index_cast %8 : index to i64
          %c16_i64 = arith.constant 16 : i64
          %10 = arith.cmpi slt, %9, %c16_i64 : i64
          %11 = affine.if #set(%arg8) -> f32 {
            %25 = affine.load %arg0[%arg6, %arg7, %arg8 + 16] : memref<3x8x32xbf16>
            %26 = arith.extf %25 : bf16 to f32
            %27 = arith.negf %26 : f32
            affine.yield %27 : f32
          } else {
            %cst = arith.constant 0.000000e+00 : f32
            affine.yield %cst : f32
          }
          %12 = affine.apply #map(%arg8)
          %13 = arith.index_cast %12 : index to i64
          %c16_i64_0 = arith.constant 16 : i64
          %14 = arith.cmpi sge, %13, %c16_i64_0 : i64
          %15 = affine.apply #map(%arg8)
          %16 = arith.index_cast %15 : index to i64
          %c32_i64 = arith.constant 32 : i64
          %17 = arith.cmpi slt, %16, %c32_i64 : i64
          %18 = affine.if #set1(%arg8) -> f32 {
            %25 = affine.load %arg0[%arg6, %arg7, %arg8 - 16] : memref<3x8x32xbf16>
            %26 = arith.extf %25 : bf16 to f32
            affine.yield %26 : f32
          } else {
            %cst = arith.constant 0.000000e+00 : f32
            affine.yield %cst : f32
          }
          %19 = arith.select %10, %11, %18 : f32
          %20 = affine.load %arg2[%arg6, %arg8] : memref<3x32xbf16>
          %21 = arith.extf %20 : bf16 to f32
          %22 = arith.mulf %19, %21 : f32
          %23 = arith.addf %4, %22 : f32
          %24 = arith.truncf %23 : f32 to bf16
          affine.store %24, %arg3[%arg6, %arg7, %arg8] : memref<3x8x32xbf16>
        }
      }
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg6 = 0 to 3 {
      affine.for %arg7 = 0 to 2 {
        affine.for %arg8 = 0 to 32 {
          %0 = affine.load %arg4[%arg6, %arg7, %arg8] : memref<3x2x32xbf16>
          %1 = arith.extf %0 : bf16 to f32
          %2 = affine.load %arg1[%arg6, %arg8] : memref<3x32xbf16>
          %3 = arith.extf %2 : bf16 to f32
          %4 = arith.mulf %1, %3 : f32
          %5 = affine.apply #map(%arg8)
          %6 = arith.index_cast %5 : index to i64
          %c0_i64 = arith.constant 0 : i64
          %7 = arith.cmpi sge, %6, %c0_i64 : i64
          %8 = affine.apply #map(%arg8)
          %9 = arith.index_cast %8 : index to i64
          %c16_i64 = arith.constant 16 : i64
          %10 = arith.cmpi slt, %9, %c16_i64 : i64
          %11 = affine.if #set(%arg8) -> f32 {
            %25 = affine.load %arg4[%arg6, %arg7, %arg8 + 16] : memref<3x2x32xbf16>
            %26 = arith.extf %25 : bf16 to f32
            %27 = arith.negf %26 : f32
            affine.yield %27 : f32
          } else {
            %cst = arith.constant 0.000000e+00 : f32
            affine.yield %cst : f32
          }
          %12 = affine.apply #map(%arg8)
          %13 = arith.index_cast %12 : index to i64
          %c16_i64_0 = arith.constant 16 : i64
          %14 = arith.cmpi sge, %13, %c16_i64_0 : i64
          %15 = affine.apply #map(%arg8)
          %16 = arith.index_cast %15 : index to i64
          %c32_i64 = arith.constant 32 : i64
          %17 = arith.cmpi slt, %16, %c32_i64 : i64
          %18 = affine.if #set1(%arg8) -> f32 {
            %25 = affine.load %arg4[%arg6, %arg7, %arg8 - 16] : memref<3x2x32xbf16>
            %26 = arith.extf %25 : bf16 to f32
            affine.yield %26 : f32
          } else {
            %cst = arith.constant 0.000000e+00 : f32
            affine.yield %cst : f32
          }
          %19 = arith.select %10, %11, %18 : f32
          %20 = affine.load %arg2[%arg6, %arg8] : memref<3x32xbf16>
          %21 = arith.extf %20 : bf16 to f32
          %22 = arith.mulf %19, %21 : f32
          %23 = arith.addf %4, %22 : f32
          %24 = arith.truncf %23 : f32 to bf16
          affine.store %24, %arg5[%arg6, %arg7, %arg8] : memref<3x2x32xbf16>
        }
      }
    } {bridge.kernels = [1], bridge.nodes = ["op1"]}
    return
  }
}
