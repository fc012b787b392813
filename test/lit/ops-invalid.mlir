// RUN: bridge-opt %s --split-input-file --verify-diagnostics

func.func @should_not_take_unknown_function(%a: f32) {
  // expected-error@+1 {{expected string or keyword}}
  %0 = bridge.special no_such_function %a : (f32) -> f32
  return
}

// -----

func.func @should_not_take_tensor(%a: tensor<4xf32>) {
  // expected-error@+1 {{operand #0 must be variadic of a floating-point, integer or index scalar}}
  %0 = bridge.special relu %a : (tensor<4xf32>) -> f32
  return
}

// -----

func.func @should_not_convert_other_type_than_dtype(%a: i8) {
  // expected-error@+1 {{result of type 'f32' cannot hold dtype "float64"}}
  %0 = bridge.convert %a {from = "uint8", to = "float64"} : i8 -> f32
  return
}

// -----

func.func @should_not_convert_unknown_dtype(%a: i8) {
  // expected-error@+1 {{operand of type 'i8' cannot hold dtype "byte"}}
  %0 = bridge.convert %a {from = "byte", to = "float32"} : i8 -> f32
  return
}

// -----

func.func @should_not_combine_wrong_count(%f: f32) {
  // expected-error@+1 {{of kind welford has 3 accumulators, got 2}}
  %0:2 = bridge.combine welford (%f, %f), (%f, %f) : f32, f32
  return
}

// -----

func.func @should_not_combine_wrong_types(%f: f32) {
  // expected-error@+1 {{of kind argmin expects an integer or index second type}}
  %0:2 = bridge.combine argmin (%f, %f), (%f, %f) : f32, f32
  return
}

// -----

func.func @should_not_combine_mixed_types(%f: f32, %d: f64) {
  // expected-error@+1 {{of kind online_softmax expects one floating-point type}}
  %0:2 = bridge.combine online_softmax (%f, %d), (%f, %d) : f32, f64
  return
}

// -----

func.func @should_not_gather_without_value(%m: memref<8xf32>, %i: index) {
  // expected-error@+1 {{needs a value}}
  %0 = "bridge.gather"(%m, %i) {checks = array<i1>, wraps = array<i1>} : (memref<8xf32>, index) -> f32
  return
}

// -----

func.func @should_not_gather_with_flags_of_another_number(%m: memref<8xf32>, %i: index, %v: i64) {
  // expected-error@+1 {{needs a flag of each kind for each of 1 values}}
  %0 = bridge.gather %m[%i] at (%v) of (%i) by (%i) {checks = array<i1: true>, wraps = array<i1>} : memref<8xf32>, i64
  return
}

// -----

func.func @should_not_gather_another_type(%m: memref<8xf32>, %i: index, %v: i64) {
  // expected-error@+1 {{result's type is the memref's element type}}
  %0 = "bridge.gather"(%m, %i, %v, %i, %i) {checks = array<i1: true>, wraps = array<i1: true>}
      : (memref<8xf32>, index, i64, index, index) -> f64
  return
}
