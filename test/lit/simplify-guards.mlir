// RUN: bridge-opt %s --split-input-file --allow-unregistered-dialect \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-simplify-guards))' \
// RUN:   | FileCheck %s

// CHECK-LABEL: func private @should_take_declaration
func.func private @should_take_declaration(memref<64xf32>)

// -----

// CHECK-LABEL: func @should_inline_what_always_runs
// CHECK: affine.for %[[J:.*]] = 32 to 64 {
// CHECK-NEXT: %[[X:.*]] = affine.load %arg0[%[[J]]]
// CHECK-NEXT: affine.store %[[X]], %arg1[%[[J]]]
// CHECK-NEXT: }
func.func @should_inline_what_always_runs(%in: memref<64xf32>, %out: memref<64xf32>) {
  affine.for %j = 32 to 64 {
    affine.if affine_set<(d0) : (d0 - 32 >= 0)>(%j) {
      %x = affine.load %in[%j] : memref<64xf32>
      affine.store %x, %out[%j] : memref<64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_erase_what_never_runs
// CHECK: affine.for %{{.*}} = 0 to 32 {
// CHECK-NEXT: }
func.func @should_erase_what_never_runs(%in: memref<64xf32>, %out: memref<64xf32>) {
  affine.for %j = 0 to 32 {
    affine.if affine_set<(d0) : (d0 - 32 >= 0)>(%j) {
      %x = affine.load %in[%j] : memref<64xf32>
      affine.store %x, %out[%j] : memref<64xf32>
    }
  }
  return
}

// -----

// One iteration more, at either end.

// CHECK-LABEL: func @should_not_touch_guard_that_some_iterations_pass
// CHECK: affine.for %{{.*}} = 0 to 33 {
// CHECK-NEXT: affine.if
// CHECK: affine.for %{{.*}} = 31 to 64 {
// CHECK-NEXT: affine.if
func.func @should_not_touch_guard_that_some_iterations_pass(%in: memref<64xf32>, %out: memref<64xf32>) {
  affine.for %j = 0 to 33 {
    affine.if affine_set<(d0) : (d0 - 32 >= 0)>(%j) {
      %x = affine.load %in[%j] : memref<64xf32>
      affine.store %x, %out[%j] : memref<64xf32>
    }
  }
  affine.for %j = 31 to 64 {
    affine.if affine_set<(d0) : (d0 - 32 >= 0)>(%j) {
      %x = affine.load %in[%j] : memref<64xf32>
      affine.store %x, %out[%j] : memref<64xf32>
    }
  }
  return
}

// -----

// The results are those of the branch that runs.

// CHECK-LABEL: func @should_take_the_branch_that_runs
// CHECK: affine.for %[[J:.*]] = 0 to 32 {
// CHECK-NEXT: %[[A:.*]] = affine.load %arg0[%[[J]]]
// CHECK-NEXT: affine.store %[[A]], %arg2[%[[J]]]
// CHECK-NEXT: }
// CHECK: affine.for %[[K:.*]] = 32 to 64 {
// CHECK-NEXT: %[[B:.*]] = affine.load %arg1[%[[K]]]
// CHECK-NEXT: affine.store %[[B]], %arg2[%[[K]]]
// CHECK-NEXT: }
func.func @should_take_the_branch_that_runs(%a: memref<64xf32>, %b: memref<64xf32>, %out: memref<64xf32>) {
  affine.for %j = 0 to 32 {
    %z = affine.if affine_set<(d0) : (-d0 + 31 >= 0)>(%j) -> f32 {
      %x = affine.load %a[%j] : memref<64xf32>
      affine.yield %x : f32
    } else {
      %x = affine.load %b[%j] : memref<64xf32>
      affine.yield %x : f32
    }
    affine.store %z, %out[%j] : memref<64xf32>
  }
  affine.for %j = 32 to 64 {
    %z = affine.if affine_set<(d0) : (-d0 + 31 >= 0)>(%j) -> f32 {
      %x = affine.load %a[%j] : memref<64xf32>
      affine.yield %x : f32
    } else {
      %x = affine.load %b[%j] : memref<64xf32>
      affine.yield %x : f32
    }
    affine.store %z, %out[%j] : memref<64xf32>
  }
  return
}

// -----

// Several constraints: the guard never holds if one of them never does, and
// always if all of them always do. Here `j >= 0`, and both of `j >= 0` and `j <
// 32`.

// CHECK-LABEL: func @should_decide_every_constraint
// CHECK: affine.for %[[J:.*]] = 0 to 32 {
// CHECK-NEXT: affine.store %arg1, %arg0[%[[J]]]
// CHECK-NEXT: affine.if
// CHECK-NEXT: affine.store %arg2
// CHECK-NEXT: }
// CHECK-NEXT: }
func.func @should_decide_every_constraint(%out: memref<64xf32>, %a: f32, %b: f32, %c: f32) {
  affine.for %j = 0 to 32 {
    affine.if affine_set<(d0) : (d0 >= 0, -d0 + 31 >= 0)>(%j) {
      affine.store %a, %out[%j] : memref<64xf32>
    }
    affine.if affine_set<(d0) : (d0 >= 0, -d0 + 30 >= 0)>(%j) {
      affine.store %b, %out[%j] : memref<64xf32>
    }
    affine.if affine_set<(d0) : (d0 - 1 >= 0, -d0 - 1 >= 0)>(%j) {
      affine.store %c, %out[%j] : memref<64xf32>
    }
  }
  return
}

// -----

// The outer guard decides the inner ones: under `j >= 16`, `j >= 8` holds, and
// `j < 12` does not. The outer guard's other branch is not used for that.

// CHECK-LABEL: func @should_decide_nested_guards
// CHECK: affine.for %[[J:.*]] = 0 to 32 {
// CHECK-NEXT: affine.if #[[OUTER:.*]](%[[J]]) {
// CHECK-NEXT: affine.store %arg1, %arg0[%[[J]]]
// CHECK-NEXT: } else {
// CHECK-NEXT: affine.if #[[INNER:.*]](%[[J]]) {
// CHECK-NEXT: affine.store %arg3, %arg0[%[[J]]]
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
func.func @should_decide_nested_guards(%out: memref<64xf32>, %a: f32, %b: f32, %c: f32) {
  affine.for %j = 0 to 32 {
    affine.if affine_set<(d0) : (d0 - 16 >= 0)>(%j) {
      affine.if affine_set<(d0) : (d0 - 8 >= 0)>(%j) {
        affine.store %a, %out[%j] : memref<64xf32>
      }
      affine.if affine_set<(d0) : (-d0 + 11 >= 0)>(%j) {
        affine.store %b, %out[%j] : memref<64xf32>
      }
    } else {
      affine.if affine_set<(d0) : (d0 - 8 >= 0)>(%j) {
        affine.store %c, %out[%j] : memref<64xf32>
      }
    }
  }
  return
}

// -----

// A guard inside one that always holds: both are removed.

// CHECK-LABEL: func @should_inline_both_of_nested_guards
// CHECK: affine.for %[[J:.*]] = 0 to 32 {
// CHECK-NEXT: %[[X:.*]] = affine.load %arg0[%[[J]]]
// CHECK-NEXT: affine.store %[[X]], %arg1[%[[J]]]
// CHECK-NEXT: }
func.func @should_inline_both_of_nested_guards(%in: memref<64xf32>, %out: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %j = 0 to 32 {
    %z = affine.if affine_set<(d0) : (-d0 + 40 >= 0)>(%j) -> f32 {
      %y = affine.if affine_set<(d0) : (d0 + 4 >= 0)>(%j) -> f32 {
        %x = affine.load %in[%j] : memref<64xf32>
        affine.yield %x : f32
      } else {
        affine.yield %zero : f32
      }
      affine.yield %y : f32
    } else {
      affine.yield %zero : f32
    }
    affine.store %z, %out[%j] : memref<64xf32>
  }
  return
}

// -----

// Equalities: never, sometimes, always.

// CHECK-LABEL: func @should_decide_equalities
// CHECK: affine.for %[[J:.*]] = 0 to 32 {
// CHECK-NEXT: affine.if #[[SET:.*]](%[[J]]) {
// CHECK-NEXT: affine.store %arg2
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: affine.for %[[K:.*]] = 7 to 8 {
// CHECK-NEXT: affine.store %arg3, %arg0[%[[K]]]
// CHECK-NEXT: }
func.func @should_decide_equalities(%out: memref<64xf32>, %a: f32, %b: f32, %c: f32) {
  affine.for %j = 0 to 32 {
    affine.if affine_set<(d0) : (d0 - 32 == 0)>(%j) {
      affine.store %a, %out[%j] : memref<64xf32>
    }
    affine.if affine_set<(d0) : (d0 - 7 == 0)>(%j) {
      affine.store %b, %out[%j] : memref<64xf32>
    }
  }
  affine.for %j = 7 to 8 {
    affine.if affine_set<(d0) : (d0 - 7 == 0)>(%j) {
      affine.store %c, %out[%j] : memref<64xf32>
    }
  }
  return
}

// -----

// Conditions on what is computed from the loops: pieces of a split row.

// CHECK-LABEL: func @should_decide_composed_subscripts
// CHECK: affine.for %[[J:.*]] = 0 to 32 {
// CHECK-NEXT: %[[P:.*]] = affine.apply
// CHECK-NEXT: affine.store %arg1, %arg0[%[[P]]]
// CHECK-NEXT: }
func.func @should_decide_composed_subscripts(%out: memref<64xf32>, %a: f32, %b: f32) {
  affine.for %j = 0 to 32 {
    %p = affine.apply affine_map<(d0) -> (d0 + 32)>(%j)
    affine.if affine_set<(d0) : (d0 - 32 >= 0)>(%p) {
      affine.store %a, %out[%p] : memref<64xf32>
    }
    affine.if affine_set<(d0) : (d0 floordiv 32 == 0)>(%p) {
      affine.store %b, %out[%p] : memref<64xf32>
    }
  }
  return
}

// -----

// Constraints over both loops: j <= i holds where j < 4 and i >= 4.

// CHECK-LABEL: func @should_decide_by_several_loops
// CHECK: affine.for %[[I:.*]] = 4 to 8 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 4 {
// CHECK-NEXT: affine.store %arg1, %arg0[%[[I]], %[[J]]]
// CHECK-NEXT: affine.if
func.func @should_decide_by_several_loops(%out: memref<8x4xf32>, %a: f32, %b: f32) {
  affine.for %i = 4 to 8 {
    affine.for %j = 0 to 4 {
      affine.if affine_set<(d0, d1) : (d0 - d1 >= 0)>(%i, %j) {
        affine.store %a, %out[%i, %j] : memref<8x4xf32>
      }
      affine.if affine_set<(d0, d1) : (d0 - d1 - 2 >= 0)>(%i, %j) {
        affine.store %b, %out[%i, %j] : memref<8x4xf32>
      }
    }
  }
  return
}

// -----

// With a symbolic size: j < n holds for every n, and j >= n for none. Nothing
// is known of j >= 16 and of another symbol.

// CHECK-LABEL: func @should_decide_by_symbols
// CHECK: affine.for %[[J:.*]] = 0 to %arg2 {
// CHECK-NEXT: affine.store %arg1, %arg0[%[[J]]]
// CHECK-NEXT: affine.if #{{.*}}(%[[J]]) {
// CHECK-NEXT: affine.store
// CHECK-NEXT: }
// CHECK-NEXT: affine.if #{{.*}}(%[[J]])[%arg3] {
// CHECK-NEXT: affine.store
// CHECK-NEXT: }
// CHECK-NEXT: }
func.func @should_decide_by_symbols(%out: memref<?xf32>, %a: f32, %n: index, %m: index) {
  affine.for %j = 0 to %n {
    affine.if affine_set<(d0)[s0] : (-d0 + s0 - 1 >= 0)>(%j)[%n] {
      affine.store %a, %out[%j] : memref<?xf32>
    }
    affine.if affine_set<(d0)[s0] : (d0 - s0 >= 0)>(%j)[%n] {
      affine.store %a, %out[%j] : memref<?xf32>
    }
    affine.if affine_set<(d0) : (d0 - 16 >= 0)>(%j) {
      affine.store %a, %out[%j] : memref<?xf32>
    }
    affine.if affine_set<(d0)[s0] : (-d0 + s0 - 1 >= 0)>(%j)[%m] {
      affine.store %a, %out[%j] : memref<?xf32>
    }
  }
  return
}

// -----

// Comparisons of a subscript with a constant: of [16, 32), each predicate with
// the last constant for which it is false (true), and the one after.

// CHECK-LABEL: func @should_decide_comparisons
// CHECK: affine.for %[[J:.*]] = 16 to 32 {
// CHECK-NEXT: %[[K:.*]] = arith.index_cast %[[J]]

// slt 16 never, slt 17 sometimes, slt 31 sometimes, slt 32 always
// CHECK-NEXT: %[[F1:.*]] = arith.constant false
// CHECK-NEXT: %[[U1:.*]] = arith.cmpi slt, %[[K]], %c17
// CHECK-NEXT: %[[U2:.*]] = arith.cmpi slt, %[[K]], %c31
// CHECK-NEXT: %[[T1:.*]] = arith.constant true
// CHECK-NEXT: "test.use"(%[[F1]], %[[U1]], %[[U2]], %[[T1]])

// sle 15 never, sle 16 sometimes, sle 30 sometimes, sle 31 always
// CHECK-NEXT: %[[F2:.*]] = arith.constant false
// CHECK-NEXT: %[[U3:.*]] = arith.cmpi sle, %[[K]], %c16
// CHECK-NEXT: %[[U4:.*]] = arith.cmpi sle, %[[K]], %c30
// CHECK-NEXT: %[[T2:.*]] = arith.constant true
// CHECK-NEXT: "test.use"(%[[F2]], %[[U3]], %[[U4]], %[[T2]])

// sgt 15 always, sgt 16 sometimes, sgt 30 sometimes, sgt 31 never
// CHECK-NEXT: %[[T3:.*]] = arith.constant true
// CHECK-NEXT: %[[U5:.*]] = arith.cmpi sgt, %[[K]], %c16
// CHECK-NEXT: %[[U6:.*]] = arith.cmpi sgt, %[[K]], %c30
// CHECK-NEXT: %[[F3:.*]] = arith.constant false
// CHECK-NEXT: "test.use"(%[[T3]], %[[U5]], %[[U6]], %[[F3]])

// sge 16 always, sge 17 sometimes, sge 31 sometimes, sge 32 never
// CHECK-NEXT: %[[T4:.*]] = arith.constant true
// CHECK-NEXT: %[[U7:.*]] = arith.cmpi sge, %[[K]], %c17
// CHECK-NEXT: %[[U8:.*]] = arith.cmpi sge, %[[K]], %c31
// CHECK-NEXT: %[[F4:.*]] = arith.constant false
// CHECK-NEXT: "test.use"(%[[T4]], %[[U7]], %[[U8]], %[[F4]])
func.func @should_decide_comparisons() {
  %c15 = arith.constant 15 : i64
  %c16 = arith.constant 16 : i64
  %c17 = arith.constant 17 : i64
  %c30 = arith.constant 30 : i64
  %c31 = arith.constant 31 : i64
  %c32 = arith.constant 32 : i64
  affine.for %j = 16 to 32 {
    %k = arith.index_cast %j : index to i64
    %a = arith.cmpi slt, %k, %c16 : i64
    %b = arith.cmpi slt, %k, %c17 : i64
    %c = arith.cmpi slt, %k, %c31 : i64
    %d = arith.cmpi slt, %k, %c32 : i64
    "test.use"(%a, %b, %c, %d) : (i1, i1, i1, i1) -> ()
    %e = arith.cmpi sle, %k, %c15 : i64
    %f = arith.cmpi sle, %k, %c16 : i64
    %g = arith.cmpi sle, %k, %c30 : i64
    %h = arith.cmpi sle, %k, %c31 : i64
    "test.use"(%e, %f, %g, %h) : (i1, i1, i1, i1) -> ()
    %l = arith.cmpi sgt, %k, %c15 : i64
    %m = arith.cmpi sgt, %k, %c16 : i64
    %n = arith.cmpi sgt, %k, %c30 : i64
    %o = arith.cmpi sgt, %k, %c31 : i64
    "test.use"(%l, %m, %n, %o) : (i1, i1, i1, i1) -> ()
    %p = arith.cmpi sge, %k, %c16 : i64
    %q = arith.cmpi sge, %k, %c17 : i64
    %r = arith.cmpi sge, %k, %c31 : i64
    %s = arith.cmpi sge, %k, %c32 : i64
    "test.use"(%p, %q, %r, %s) : (i1, i1, i1, i1) -> ()
  }
  return
}

// -----

// A comparison is decided by the guards around it, and by constants that are
// negative.

// CHECK-LABEL: func @should_decide_comparison_under_guard
// CHECK: affine.if
// CHECK-NEXT: %[[K:.*]] = arith.index_cast
// CHECK-NEXT: %[[T:.*]] = arith.constant true
// CHECK-NEXT: %[[T2:.*]] = arith.constant true
// CHECK-NEXT: "test.use"(%[[T]], %[[T2]])
// CHECK: arith.cmpi sge
func.func @should_decide_comparison_under_guard() {
  %c8 = arith.constant 8 : i64
  %low = arith.constant -1 : i64
  affine.for %j = 0 to 32 {
    affine.if affine_set<(d0) : (d0 - 8 >= 0)>(%j) {
      %k = arith.index_cast %j : index to i64
      %a = arith.cmpi sge, %k, %c8 : i64
      %b = arith.cmpi sgt, %k, %low : i64
      "test.use"(%a, %b) : (i1, i1) -> ()
    }
    %k = arith.index_cast %j : index to i64
    %a = arith.cmpi sge, %k, %c8 : i64
    "test.use"(%a) : (i1) -> ()
  }
  return
}

// -----

// A narrow integer wraps around: 200 is -56 in 8 bits, and that is less than
// 100.

// CHECK-LABEL: func @should_not_decide_narrow_comparison
// CHECK: arith.cmpi slt
func.func @should_not_decide_narrow_comparison() {
  %c = arith.constant 100 : i8
  affine.for %j = 200 to 250 {
    %k = arith.index_cast %j : index to i8
    %a = arith.cmpi slt, %k, %c : i8
    "test.use"(%a) : (i1) -> ()
  }
  return
}

// -----

// Not changed: comparisons of a value that is no subscript, with a value that
// is no constant, or other than signed inequalities.

// CHECK-LABEL: func @should_not_touch_other_comparisons
// CHECK: arith.cmpi slt, %{{.*}}, %arg1
// CHECK-NEXT: arith.cmpi slt, %arg1, %{{.*}}
// CHECK-NEXT: arith.cmpi slt, %{{.*}}, %{{.*}}
// CHECK-NEXT: arith.cmpi ult
// CHECK-NEXT: arith.cmpi eq
func.func @should_not_touch_other_comparisons(%idx: memref<32xindex>, %x: i64) {
  %c32 = arith.constant 32 : i64
  affine.for %j = 0 to 32 {
    %v = affine.load %idx[%j] : memref<32xindex>
    %w = arith.index_cast %v : index to i64
    %k = arith.index_cast %j : index to i64
    %a = arith.cmpi slt, %k, %x : i64
    %b = arith.cmpi slt, %x, %c32 : i64
    %c = arith.cmpi slt, %w, %c32 : i64
    %d = arith.cmpi ult, %k, %c32 : i64
    %e = arith.cmpi eq, %k, %c32 : i64
    "test.use"(%a, %b, %c, %d, %e) : (i1, i1, i1, i1, i1) -> ()
  }
  return
}
