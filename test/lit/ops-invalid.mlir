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
