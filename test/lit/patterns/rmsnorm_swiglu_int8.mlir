// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null | FileCheck %s
// Written by update.py from benchmarks/patterns.py.

// CHECK-LABEL: func.func @
// CHECK: affine.for %{{.*}} = 0 to 7 {
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 96 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<7xf32>
// CHECK: affine.for %{{.*}} = 0 to 96 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x96xf32>
// CHECK: %{{.*}} = affine.for %{{.*}} = 0 to 96 iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<7xf32>
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<7xf32>
// CHECK: affine.for %{{.*}} = 0 to 96 {
// CHECK: affine.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x96xi8>
// CHECK: } {bridge.band, bridge.kernels = [0, 1, 1, 1, 1], bridge.nodes = ["op0", "op1", "op2", "op3", "op4"], bridge.parallel}
// CHECK-NEXT: return
module {
  func.func @group0(%arg0: memref<7x192xbf16> {bridge.buffer = "arg0_1"}, %arg1: memref<7x192xbf16> {bridge.buffer = "arg1_1"}, %arg2: memref<7xf32> {bridge.buffer = "buf0"}, %arg3: memref<192xbf16> {bridge.buffer = "arg2_1"}, %arg4: memref<7x96xf32> {bridge.buffer = "buf1"}, %arg5: memref<7xf32> {bridge.buffer = "buf2"}, %arg6: memref<7xf32> {bridge.buffer = "buf3"}, %arg7: memref<7x96xi8> {bridge.buffer = "buf4"}) {
    affine.for %arg8 = 0 to 7 {
      %cst = arith.constant 0.000000e+00 : f32
      %0 = affine.for %arg9 = 0 to 192 iter_args(%arg10 = %cst) -> (f32) {
        %1 = affine.load %arg0[%arg8, %arg9] : memref<7x192xbf16>
        %2 = arith.extf %1 : bf16 to f32
        %3 = affine.load %arg1[%arg8, %arg9] : memref<7x192xbf16>
        %4 = arith.extf %3 : bf16 to f32
        %5 = arith.addf %2, %4 : f32
        %6 = arith.mulf %5, %5 : f32
        %7 = arith.addf %arg10, %6 : f32
        affine.yield %7 : f32
      }
      affine.store %0, %arg2[%arg8] : memref<7xf32>
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %arg8 = 0 to 7 {
      affine.for %arg9 = 0 to 96 {
        %0 = affine.load %arg0[%arg8, %arg9] : memref<7x192xbf16>
        %1 = arith.extf %0 : bf16 to f32
        %2 = affine.load %arg1[%arg8, %arg9] : memref<7x192xbf16>
        %3 = arith.extf %2 : bf16 to f32
        %4 = arith.addf %1, %3 : f32
        %5 = affine.load %arg2[%arg8] : memref<7xf32>
        %cst = arith.constant 1.920000e+02 : f32
        %6 = arith.divf %5, %cst : f32
        %cst_0 = arith.constant 9.99999997E-7 : f32
        %7 = arith.addf %6, %cst_0 : f32
        %8 = math.rsqrt %7 : f32
        %9 = arith.mulf %4, %8 : f32
        %10 = affine.load %arg3[%arg9] : memref<192xbf16>
        %11 = arith.extf %10 : bf16 to f32
        %12 = arith.mulf %9, %11 : f32
        %13 = affine.load %arg0[%arg8, %arg9] : memref<7x192xbf16>
        %14 = arith.extf %13 : bf16 to f32
        %15 = affine.load %arg1[%arg8, %arg9] : memref<7x192xbf16>
        %16 = arith.extf %15 : bf16 to f32
        %17 = arith.addf %14, %16 : f32
        %18 = affine.load %arg2[%arg8] : memref<7xf32>
        %cst_1 = arith.constant 1.920000e+02 : f32
        %19 = arith.divf %18, %cst_1 : f32
        %cst_2 = arith.constant 9.99999997E-7 : f32
        %20 = arith.addf %19, %cst_2 : f32
        %21 = math.rsqrt %20 : f32
        %22 = arith.mulf %17, %21 : f32
        %23 = affine.load %arg3[%arg9] : memref<192xbf16>
        %24 = arith.extf %23 : bf16 to f32
        %25 = arith.mulf %22, %24 : f32
        %26 = arith.negf %25 : f32
        %27 = math.exp %26 : f32
        %cst_3 = arith.constant 1.000000e+00 : f32
        %28 = arith.addf %27, %cst_3 : f32
        %29 = arith.divf %12, %28 : f32
        %30 = affine.load %arg0[%arg8, %arg9 + 96] : memref<7x192xbf16>
        %31 = arith.extf %30 : bf16 to f32
        %32 = affine.load %arg1[%arg8, %arg9 + 96] : memref<7x192xbf16>
        %33 = arith.extf %32 : bf16 to f32
        %34 = arith.addf %31, %33 : f32
        %35 = affine.load %arg2[%arg8] : memref<7xf32>
        %cst_4 = arith.constant 1.920000e+02 : f32
        %36 = arith.divf %35, %cst_4 : f32
        %cst_5 = arith.constant 9.99999997E-7 : f32
        %37 = arith.addf %36, %cst_5 : f32
        %38 = math.rsqrt %37 : f32
        %39 = arith.mulf %34, %38 : f32
        %40 = affine.load %arg3[%arg9 + 96] : memref<192xbf16>
        %41 = arith.extf %40 : bf16 to f32
        %42 = arith.mulf %39, %41 : f32
        %43 = arith.mulf %29, %42 : f32
        affine.store %43, %arg4[%arg8, %arg9] : memref<7x96xf32>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op1"]}
    affine.for %arg8 = 0 to 7 {
      %cst = arith.constant 0xFF800000 : f32
      %0 = affine.for %arg9 = 0 to 96 iter_args(%arg10 = %cst) -> (f32) {
        %1 = affine.load %arg4[%arg8, %arg9] : memref<7x96xf32>
        %2 = math.absf %1 : f32
        %3 = arith.maximumf %arg10, %2 : f32
        affine.yield %3 : f32
      }
      affine.store %0, %arg5[%arg8] : memref<7xf32>
    } {bridge.kernels = [1], bridge.nodes = ["op2"]}
    affine.for %arg8 = 0 to 7 {
      %0 = affine.load %arg5[%arg8] : memref<7xf32>
      %cst = arith.constant 0.00787401571 : f32
      %1 = arith.mulf %0, %cst : f32
      affine.store %1, %arg6[%arg8] : memref<7xf32>
    } {bridge.kernels = [1], bridge.nodes = ["op3"]}
    affine.for %arg8 = 0 to 7 {
      affine.for %arg9 = 0 to 96 {
        %0 = affine.load %arg4[%arg8, %arg9] : memref<7x96xf32>
        %1 = affine.load %arg6[%arg8] : memref<7xf32>
        %2 = arith.divf %0, %1 : f32
        %3 = math.roundeven %2 : f32
        %4 = arith.fptosi %3 : f32 to i8
        affine.store %4, %arg7[%arg8, %arg9] : memref<7x96xi8>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op4"]}
    return
  }
}
