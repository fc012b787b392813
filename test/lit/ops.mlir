// RUN: bridge-opt %s | bridge-opt | FileCheck %s
// RUN: bridge-opt %s --mlir-print-op-generic | bridge-opt | FileCheck %s

// CHECK-LABEL: func @should_round_trip_special
func.func @should_round_trip_special(%a: f32, %i: i64, %n: index) {
  // CHECK: bridge.special sigmoid %{{.*}} : (f32) -> f32
  %0 = bridge.special sigmoid %a : (f32) -> f32
  // CHECK: bridge.special hypot %{{.*}}, %{{.*}} : (f32, f32) -> f32
  %1 = bridge.special hypot %a, %0 : (f32, f32) -> f32
  // CHECK: bridge.special floor_to_int %{{.*}} : (f32) -> i64
  %2 = bridge.special floor_to_int %1 : (f32) -> i64
  // CHECK: bridge.special floordiv %{{.*}}, %{{.*}} : (index, index) -> index
  %3 = bridge.special floordiv %n, %n : (index, index) -> index
  return
}

// CHECK-LABEL: func @should_round_trip_convert
func.func @should_round_trip_convert(%a: i8, %b: i1, %c: f32) {
  // CHECK: bridge.convert %{{.*}} {from = "uint8", to = "float32"} : i8 -> f32
  %0 = bridge.convert %a {from = "uint8", to = "float32"} : i8 -> f32
  // CHECK: bridge.convert %{{.*}} {from = "bool", to = "float64"} : i1 -> f64
  %1 = bridge.convert %b {from = "bool", to = "float64"} : i1 -> f64
  // CHECK: bridge.convert %{{.*}} {from = "float32", to = "int64"} : f32 -> index
  %2 = bridge.convert %c {from = "float32", to = "int64"} : f32 -> index
  return
}

// CHECK-LABEL: func @should_round_trip_combine
func.func @should_round_trip_combine(%f: f32, %i: index, %p: i1, %b: i32) {
  // CHECK: bridge.combine welford (%{{.*}}, %{{.*}}, %{{.*}}), (%{{.*}}, %{{.*}}, %{{.*}}) : f32, f32, f32
  %0:3 = bridge.combine welford (%f, %f, %f), (%f, %f, %f) : f32, f32, f32
  // CHECK: bridge.combine argmax (%{{.*}}, %{{.*}}), (%{{.*}}, %{{.*}}) : f32, index
  %1:2 = bridge.combine argmax (%f, %i), (%f, %i) : f32, index
  // CHECK: bridge.combine online_softmax
  %2:2 = bridge.combine online_softmax (%f, %f), (%f, %f) : f32, f32
  // CHECK: bridge.combine any (%{{.*}}), (%{{.*}}) : i1
  %3 = bridge.combine any (%p), (%p) : i1
  // CHECK: bridge.combine xor_sum (%{{.*}}), (%{{.*}}) : i32
  %4 = bridge.combine xor_sum (%b), (%b) : i32
  // CHECK: bridge.combine prod (%{{.*}}), (%{{.*}}) : f32
  %5 = bridge.combine prod (%f), (%f) : f32
  return
}

// CHECK-LABEL: func @should_round_trip_gather
func.func @should_round_trip_gather(%m: memref<512x64xf32>, %base: index, %i: i64, %j: i32, %n: index) {
  // CHECK: bridge.gather %{{.*}}[%{{.*}}] at (%{{.*}}) of (%{{.*}}) by (%{{.*}}) {checks = array<i1: true>, wraps = array<i1: false>} : memref<512x64xf32>, i64
  %0 = bridge.gather %m[%base] at (%i) of (%n) by (%n)
      {checks = array<i1: true>, wraps = array<i1: false>} : memref<512x64xf32>, i64
  // CHECK: bridge.gather %{{.*}}[%{{.*}}] at (%{{.*}}, %{{.*}}) of (%{{.*}}, %{{.*}}) by (%{{.*}}, %{{.*}})
  %1 = bridge.gather %m[%base] at (%i, %j) of (%n, %n) by (%n, %n)
      {checks = array<i1: true, false>, wraps = array<i1: true, true>} : memref<512x64xf32>, i64, i32
  // CHECK: arith.addf %{{.*}}, %{{.*}} : f32
  %2 = arith.addf %0, %1 : f32
  return
}

// CHECK-LABEL: func @should_round_trip_random_numbers
func.func @should_round_trip_random_numbers(%seed: i64, %offset: i32, %low: i64, %high: i64) {
  // CHECK: bridge.special rand %{{.*}}, %{{.*}} : (i64, i32) -> f32
  %0 = bridge.special rand %seed, %offset : (i64, i32) -> f32
  // CHECK: bridge.special randn %{{.*}}, %{{.*}} : (i64, i32) -> f32
  %1 = bridge.special randn %seed, %offset : (i64, i32) -> f32
  // CHECK: bridge.special randint64 %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (i64, i32, i64, i64) -> i64
  %2 = bridge.special randint64 %seed, %offset, %low, %high : (i64, i32, i64, i64) -> i64
  return
}
