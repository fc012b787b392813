// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-pad-extents,canonicalize))' \
// RUN:   | FileCheck %s

// A row from its second element on is shifted to the lanes of these elements:
// its load needs no guard, its store needs one.

// CHECK: #[[SHIFTED:.*]] = affine_set<(d0) : (d0 - 1 >= 0)>
// CHECK-LABEL: func @should_shift
// CHECK: affine.for %{{.*}} = 0 to 1001
// CHECK: affine.for %[[I:.*]] = 0 to 64
// CHECK-NEXT: affine.for %[[R:.*]] = 0 to 1001 {
// CHECK-NEXT: %[[X:.*]] = affine.load %arg0[%[[I]], %[[R]]]
// CHECK-NEXT: affine.if #[[SHIFTED]](%[[R]]) {
// CHECK-NEXT: affine.store %[[X]], %arg2[%[[I]], %[[R]] - 1]
func.func @should_shift(%in: memref<64x1001xf32>, %t: memref<64x1001xf32>, %out: memref<64x1000xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 1001 {
      %x = affine.load %in[%i, %r] : memref<64x1001xf32>
      affine.store %x, %t[%i, %r] : memref<64x1001xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 1000 {
      %x = affine.load %in[%i, %j + 1] : memref<64x1001xf32>
      affine.store %x, %out[%i, %j] : memref<64x1000xf32>
    }
  }
  return
}

// -----

// The other lanes would read outside %in: the load is guarded, and they add
// zero to the sum.

// CHECK: #[[SHORT:.*]] = affine_set<(d0) : (-d0 + 48 >= 0)>
// CHECK-LABEL: func @should_pad_reduction
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.0
// CHECK-DAG: %[[BOUND:.*]] = arith.constant 49 : i64
// CHECK: affine.for %[[R:.*]] = 0 to 56 iter_args(%[[ACC:.*]] = %[[ZERO]])
// CHECK-NEXT: %[[X:.*]] = affine.if #[[SHORT]](%[[R]]) -> f32 {
// CHECK-NEXT: affine.load %arg0[%{{.*}}, %[[R]]]
// CHECK-NEXT: affine.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: affine.yield %[[ZERO]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[LANE:.*]] = arith.index_cast %[[R]] : index to i64
// CHECK-NEXT: %[[OWN:.*]] = arith.cmpi slt, %[[LANE]], %[[BOUND]]
// CHECK-NEXT: %[[TERM:.*]] = arith.select %[[OWN]], %[[X]], %[[ZERO]]
// CHECK-NEXT: arith.addf %[[ACC]], %[[TERM]]
func.func @should_pad_reduction(%in: memref<64x49xf32>, %sum: memref<64xf32>, %out: memref<64x56xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %s = affine.for %r = 0 to 49 iter_args(%acc = %zero) -> (f32) {
      %x = affine.load %in[%i, %r] : memref<64x49xf32>
      %y = arith.addf %acc, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %sum[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 56 {
      %s = affine.load %sum[%i] : memref<64xf32>
      affine.store %s, %out[%i, %j] : memref<64x56xf32>
    }
  }
  return
}

// -----

// Nests that access parts of one buffer are padded, although they share no
// element.

// CHECK-LABEL: func @should_pad_parts_of_one_buffer
// CHECK-COUNT-2: affine.for %{{.*}} = 0 to 49
func.func @should_pad_parts_of_one_buffer(%a: memref<64x49xf32> {bridge.storage = "whole"}, %b: memref<64x7xf32> {bridge.storage = "whole"}) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 49 {
      affine.store %zero, %a[%i, %j] : memref<64x49xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 7 {
      affine.store %zero, %b[%i, %j] : memref<64x7xf32>
    }
  }
  return
}

// -----

// Nests that share no element keep their loops.

// CHECK-LABEL: func @should_not_pad_what_shares_nothing
// CHECK: affine.for %{{.*}} = 0 to 32
// CHECK: affine.for %{{.*}} = 0 to 16
func.func @should_not_pad_what_shares_nothing(%in: memref<64x48xf32>, %a: memref<64x32xf32>, %b: memref<64x16xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 32 {
      %x = affine.load %in[%i, %j] : memref<64x48xf32>
      affine.store %x, %a[%i, %j] : memref<64x32xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 16 {
      %x = affine.load %in[%i, %j + 32] : memref<64x48xf32>
      affine.store %x, %b[%i, %j] : memref<64x16xf32>
    }
  }
  return
}

// -----

// The index of an extremum has no neutral element here.

// CHECK-LABEL: func @should_not_pad_argmax
// CHECK: affine.for %{{.*}} = 0 to 49 iter_args
func.func @should_not_pad_argmax(%in: memref<64x49xf32>, %arg: memref<64xi64>, %out: memref<64x56xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  affine.for %i = 0 to 64 {
    // expected-remark@+1 {{[reduction_not_splittable] its iterations cannot be reordered, or no lane can be left out}}
    %s:2 = affine.for %r = 0 to 49 iter_args(%best = %low, %at = %none) -> (f32, i64) {
      %x = affine.load %in[%i, %r] : memref<64x49xf32>
      %n = arith.index_cast %r : index to i64
      %c:2 = bridge.combine argmax (%best, %at), (%x, %n) : f32, i64
      affine.yield %c#0, %c#1 : f32, i64
    }
    affine.store %s#1, %arg[%i] : memref<64xi64>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 56 {
      %s = affine.load %arg[%i] : memref<64xi64>
      %f = arith.sitofp %s : i64 to f32
      affine.store %f, %out[%i, %j] : memref<64x56xf32>
    }
  }
  return
}

// -----

// A row is rounded for a store and extended after the load: the extension is
// cloned under the guard, so that the value before rounding can be forwarded.

// CHECK: #[[PIECE:.*]] = affine_set<(d0) : (-d0 + 39 >= 0, d0 - 35 >= 0)>
// CHECK-LABEL: func @should_extend_under_the_guard
// CHECK: affine.for %[[R:.*]] = 0 to 60 {
// CHECK: affine.for %[[R:.*]] = 0 to 60 {
// CHECK: %[[X:.*]] = affine.if #[[PIECE]](%[[R]]) -> f32 {
// CHECK-NEXT: %[[L:.*]] = affine.load %arg1
// CHECK-NEXT: %[[E:.*]] = arith.extf %[[L]] : bf16 to f32
// CHECK-NEXT: affine.yield %[[E]] : f32
// CHECK: math.exp %[[X]]
func.func @should_extend_under_the_guard(%in: memref<8x60xf32>, %row: memref<8x60xbf16>, %out: memref<8x5xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %r = 0 to 60 {
      %x = affine.load %in[%i, %r] : memref<8x60xf32>
      %y = arith.truncf %x : f32 to bf16
      affine.store %y, %row[%i, %r] : memref<8x60xbf16>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 5 {
      %x = affine.load %row[%i, %j + 35] : memref<8x60xbf16>
      %y = arith.extf %x : bf16 to f32
      %z = math.exp %y : f32
      affine.store %z, %out[%i, %j] : memref<8x5xf32>
    }
  }
  return
}

// -----

// A guard in a guard becomes one guard, which CSE can merge with others. Two
// guards stay if the inner one has an `else` region with effects or other
// values than zero.

// CHECK-DAG: #[[BOTH:.*]] = affine_set<(d0, d1) : (d0 - 2 >= 0, -d1 + 48 >= 0)>
// CHECK-DAG: #[[ROWS:.*]] = affine_set<(d0) : (d0 - 2 >= 0)>
// CHECK-DAG: #[[LANES:.*]] = affine_set<(d0) : (-d0 + 48 >= 0)>
// CHECK-LABEL: func @should_pad_under_guards
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.0
// CHECK: affine.for %[[R:.*]] = 0 to 56 {
// CHECK-NEXT: affine.if #[[BOTH]](%{{.*}}, %[[R]]) -> f32 {
// CHECK-NEXT: affine.load
// CHECK: affine.if #[[LANES]](%[[R]]) -> f32 {
// CHECK-NEXT: affine.if #[[ROWS]](%{{.*}}) -> f32 {
// CHECK: affine.yield %[[ONE]]
func.func @should_pad_under_guards(%in: memref<64x49xf32>, %t: memref<64x49xf32>, %u: memref<64x49xf32>, %out: memref<64x56xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 49 {
      %x = affine.if affine_set<(d0) : (d0 - 2 >= 0)>(%i) -> f32 {
        %y = affine.load %in[%i, %r] : memref<64x49xf32>
        affine.yield %y : f32
      } else {
        affine.yield %zero : f32
      }
      %z = affine.if affine_set<(d0) : (d0 - 2 >= 0)>(%i) -> f32 {
        %y = affine.load %in[%i, %r] : memref<64x49xf32>
        affine.yield %y : f32
      } else {
        affine.yield %one : f32
      }
      affine.store %x, %t[%i, %r] : memref<64x49xf32>
      affine.store %z, %u[%i, %r] : memref<64x49xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 56 {
      %x = affine.load %t[%i, %j mod 49] : memref<64x49xf32>
      affine.store %x, %out[%i, %j] : memref<64x56xf32>
    }
  }
  return
}

// -----

// What a lane beside the guard holds may be no position: a gather stays under it.

// CHECK: #[[SHORT:.*]] = affine_set<(d0) : (-d0 + 48 >= 0)>
// CHECK-LABEL: func @should_gather_under_the_guard
// CHECK: affine.for %[[R:.*]] = 0 to 56
// CHECK: %[[ID:.*]] = affine.if #[[SHORT]](%[[R]]) -> i64 {
// CHECK-NEXT: affine.load %arg1[%{{.*}}, %[[R]]]
// CHECK: affine.if #[[SHORT]](%[[R]]) -> f32 {
// CHECK-NEXT: %[[Y:.*]] = bridge.gather %arg2[%{{.*}}] at (%[[ID]])
// CHECK-NEXT: affine.yield %[[Y]]
func.func @should_gather_under_the_guard(%in: memref<64x56xf32>, %ids: memref<64x49xi64>, %table: memref<32xf32>, %u: memref<64x49xf32>, %out: memref<64x56xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 56 {
      %x = affine.load %in[%i, %j] : memref<64x56xf32>
      affine.store %x, %out[%i, %j] : memref<64x56xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 49 {
      %x = affine.load %in[%i, %j] : memref<64x56xf32>
      %id = affine.load %ids[%i, %j] : memref<64x49xi64>
      %zero = arith.constant 0 : index
      %size = arith.constant 32 : index
      %one = arith.constant 1 : index
      %y = bridge.gather %table[%zero] at (%id) of (%size) by (%one) {checks = array<i1: true>, wraps = array<i1: true>} : memref<32xf32>, i64
      %z = arith.addf %x, %y : f32
      affine.store %z, %u[%i, %j] : memref<64x49xf32>
    }
  }
  return
}

// -----

// The zeros of the last rows share one outer loop with the others, which share
// two: these are padded to the same lanes, the zeros stay as they are.

// CHECK-LABEL: func @should_pad_beside_shallower_nest
// CHECK: affine.for %{{.*}} = 0 to 56 iter_args
// CHECK: affine.for %{{.*}} = 0 to 49
// CHECK-NEXT: affine.for %{{.*}} = 0 to 56 {
// CHECK: affine.for %{{.*}} = 0 to 7 {
// CHECK-NEXT: affine.for %{{.*}} = 0 to 56 {
// CHECK-NEXT: affine.store
func.func @should_pad_beside_shallower_nest(
    %in: memref<64x49x49xf32>, %sum: memref<64x49xf32>,
    %out: memref<64x49x56xf32> {bridge.storage = "whole"},
    %rest: memref<64x7x56xf32> {bridge.storage = "whole"}) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 49 {
      %s = affine.for %r = 0 to 49 iter_args(%acc = %zero) -> (f32) {
        %x = affine.load %in[%i, %j, %r] : memref<64x49x49xf32>
        %y = arith.addf %acc, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<64x49xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 49 {
      affine.for %r = 0 to 56 {
        %s = affine.load %sum[%i, %j] : memref<64x49xf32>
        affine.store %s, %out[%i, %j, %r] : memref<64x49x56xf32>
      }
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 7 {
      affine.for %r = 0 to 56 {
        affine.store %zero, %rest[%i, %j, %r] : memref<64x7x56xf32>
      }
    }
  }
  return
}
