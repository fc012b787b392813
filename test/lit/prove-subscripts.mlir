// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-prove-subscripts))' \
// RUN:   | FileCheck %s
// RUN: not bridge-opt %s --split-input-file -o /dev/null \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-prove-subscripts{strict=true}))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=STRICT

// STRICT: [subscript_out_of_bounds]

// CHECK-LABEL: func private @should_accept_declaration
func.func private @should_accept_declaration(memref<64xf32>)

// -----

// The whole row, from the last element to the first.

func.func @should_accept_row(%a: memref<8x512xf32>, %b: memref<8x512xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 512 {
      %x = affine.load %a[%i, -%j + 511] : memref<8x512xf32>
      affine.store %x, %b[%i, %j] : memref<8x512xf32>
    }
  }
  return
}

// -----

func.func @should_refuse_offset(%a: memref<8x512xf32>, %b: memref<8x256xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 256 {
      // expected-remark@below {{[subscript_out_of_bounds] an access is not proven inside of its memref}}
      // expected-note@below {{iteration (7, 212) reads element [7, 512] of argument 0, whose dimension 1 has 512 elements}}
      %x = affine.load %a[%i, %j + 300] : memref<8x512xf32>
      affine.store %x, %b[%i, %j] : memref<8x256xf32>
    }
  }
  return
}

// -----

// 211 + 300 is the last element.

func.func @should_accept_guarded_offset(%a: memref<512xf32>, %b: memref<512xf32>) {
  affine.for %i = 0 to 256 {
    %x = affine.load %a[%i] : memref<512xf32>
    affine.if affine_set<(d0) : (-d0 + 211 >= 0)>(%i) {
      affine.store %x, %b[%i + 300] : memref<512xf32>
    }
  }
  return
}

// -----

func.func @should_refuse_offset_of_a_guard_that_is_too_wide(%a: memref<512xf32>, %b: memref<512xf32>) {
  affine.for %i = 0 to 256 {
    %x = affine.load %a[%i] : memref<512xf32>
    affine.if affine_set<(d0) : (-d0 + 212 >= 0)>(%i) {
      // expected-remark@below {{[subscript_out_of_bounds]}}
      // expected-note@below {{iteration (212) writes element [512] of argument 1, whose dimension 0 has 512 elements}}
      affine.store %x, %b[%i + 300] : memref<512xf32>
    }
  }
  return
}

// -----

// Guards on results of affine.apply, and one guard inside of another.

func.func @should_accept_nested_guards(%a: memref<16xf32>, %b: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %k = affine.apply affine_map<(d0) -> (d0 - 24)>(%i)
    affine.if affine_set<(d0) : (d0 >= 0)>(%k) {
      affine.if affine_set<(d0) : (-d0 + 15 >= 0)>(%k) {
        %x = affine.load %a[%k] : memref<16xf32>
        affine.store %x, %b[%i] : memref<64xf32>
      }
    }
  }
  return
}

// -----

// Where a guard does not hold: i is no multiple of 4, or above 31.

func.func @should_accept_else_region(%a: memref<64xf32>, %b: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    affine.if affine_set<(d0) : (d0 - 32 >= 0)>(%i) {
      %x = affine.load %a[%i - 32] : memref<64xf32>
      affine.store %x, %b[%i] : memref<64xf32>
    } else {
      affine.if affine_set<(d0) : (d0 == 0)>(%i) {
      } else {
        %x = affine.load %a[-%i + 64] : memref<64xf32>
        affine.store %x, %b[%i * 2] : memref<64xf32>
      }
    }
  }
  return
}

// -----

func.func @should_refuse_else_region(%a: memref<64xf32>, %b: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    affine.if affine_set<(d0) : (d0 - 32 >= 0, -d0 + 40 >= 0)>(%i) {
    } else {
      // expected-remark@below {{[subscript_out_of_bounds]}}
      // expected-note@below {{reads element [}}
      %x = affine.load %a[%i * 2] : memref<64xf32>
      affine.store %x, %b[%i] : memref<64xf32>
    }
  }
  return
}

// -----

func.func @should_refuse_negative_subscript(%a: memref<64xf32>, %b: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    // expected-remark@below {{[subscript_out_of_bounds]}}
    // expected-note@below {{iteration (0) reads element [-1] of argument 0, whose dimension 0 has 64 elements}}
    %x = affine.load %a[%i - 1] : memref<64xf32>
    affine.store %x, %b[%i] : memref<64xf32>
  }
  return
}

// -----

// The bytes after the row are those of the next row: still outside.

func.func @should_refuse_access_to_another_row(%a: memref<8x8xf32>, %b: memref<8x8xf32>) {
  affine.for %i = 0 to 7 {
    affine.for %j = 0 to 8 {
      // expected-remark@below {{[subscript_out_of_bounds]}}
      // expected-note@below {{iteration (6, 7) reads element [6, 8] of argument 0, whose dimension 1 has 8 elements}}
      %x = affine.load %a[%i, %j + 1] : memref<8x8xf32>
      affine.store %x, %b[%i, %j] : memref<8x8xf32>
    }
  }
  return
}

// -----

// A loop that never runs, alone and inside of another one.

func.func @should_accept_loops_without_iterations(%a: memref<4xf32>, %none: memref<0xf32>) {
  affine.for %i = 5 to 5 {
    %x = affine.load %a[%i] : memref<4xf32>
    affine.store %x, %a[%i + 9] : memref<4xf32>
  }
  affine.for %i = 9 to 3 {
    affine.for %j = 0 to 100 {
      %x = affine.load %none[%j] : memref<0xf32>
      affine.store %x, %a[%j] : memref<4xf32>
    }
  }
  affine.for %i = 0 to 0 {
    %x = affine.load %none[%i] : memref<0xf32>
    affine.store %x, %none[%i] : memref<0xf32>
  }
  return
}

// -----

// The last iteration of steps of 5 from 1 is 61, and of the triangle (63, 63).

func.func @should_accept_steps_and_triangles(%a: memref<62xf32>, %b: memref<64xf32>) {
  affine.for %i = 1 to 64 step 5 {
    %x = affine.load %a[%i] : memref<62xf32>
    affine.store %x, %a[%i] : memref<62xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = affine_map<(d0) -> (d0)>(%i) to 64 {
      %x = affine.load %b[%j - %i] : memref<64xf32>
      affine.store %x, %b[%j] : memref<64xf32>
    }
  }
  return
}

// -----

func.func @should_refuse_step(%a: memref<61xf32>) {
  affine.for %i = 1 to 64 step 5 {
    // expected-remark@below {{[subscript_out_of_bounds]}}
    // expected-note@below {{iteration (61) reads element [61] of argument 0}}
    %x = affine.load %a[%i] : memref<61xf32>
    affine.if affine_set<(d0) : (-d0 + 60 >= 0)>(%i) {
      affine.store %x, %a[%i] : memref<61xf32>
    }
  }
  return
}

// -----

// Divisions: the digits of i, and a remainder of what is negative.

func.func @should_accept_divisions(%a: memref<8x7xf32>, %b: memref<4xf32>) {
  affine.for %i = 0 to 56 {
    %x = affine.load %a[%i floordiv 7, %i mod 7] : memref<8x7xf32>
    affine.store %x, %a[%i floordiv 7, %i - (%i floordiv 7) * 7] : memref<8x7xf32>
    affine.store %x, %b[(-%i) mod 4] : memref<4xf32>
    affine.store %x, %b[(%i + 1) ceildiv 19] : memref<4xf32>
  }
  return
}

// -----

func.func @should_refuse_divisions(%a: memref<8x7xf32>, %b: memref<3xf32>) {
  affine.for %i = 0 to 57 {
    // expected-remark@below {{[subscript_out_of_bounds]}}
    // expected-note@below {{iteration (56) reads element [8, 0] of argument 0, whose dimension 0 has 8 elements}}
    %x = affine.load %a[%i floordiv 7, %i mod 7] : memref<8x7xf32>
    // expected-remark@below {{[subscript_out_of_bounds]}}
    // expected-note@below {{writes element [3] of argument 1, whose dimension 0 has 3 elements}}
    affine.store %x, %b[%i mod 4] : memref<3xf32>
  }
  return
}

// -----

// Iterations of which only integers between 0 and 1 would be outside.

func.func @should_accept_what_only_fractions_leave(%a: memref<32xf32>) {
  affine.for %i = 0 to 64 {
    affine.if affine_set<(d0) : (d0 mod 2 - 1 >= 0)>(%i) {
      %x = affine.load %a[(%i - 1) floordiv 2] : memref<32xf32>
      affine.store %x, %a[%i floordiv 2] : memref<32xf32>
    }
  }
  return
}

// -----

// The extent is what memref.dim gives; a loop of zero iterations included.

func.func @should_accept_dynamic_extent(%a: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?x8xf32>
  affine.for %i = 0 to %n {
    affine.for %j = 0 to 8 {
      %x = affine.load %a[-%i + symbol(%n) - 1, %j] : memref<?x8xf32>
      affine.store %x, %a[%i, %j] : memref<?x8xf32>
    }
  }
  return
}

// -----

func.func @should_refuse_dynamic_extent(%a: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?xf32>
  affine.for %i = 0 to %n {
    // expected-remark@below {{[subscript_out_of_bounds]}}
    // expected-note@below {{iteration (1) reads element [2] of argument 0, whose dimension 0 has 2 elements, where dimension 0 of argument 0 = 2}}
    %x = affine.load %a[%i + 1] : memref<?xf32>
    affine.store %x, %a[%i] : memref<?xf32>
  }
  return
}

// -----

// Nothing relates the size to the memref.

func.func @should_refuse_size_of_another(%a: memref<?xf32> {bridge.buffer = "buf0"}, %n: index {bridge.size = "s0"}) {
  affine.for %i = 0 to %n {
    // expected-remark@below {{[subscript_out_of_bounds]}}
    // expected-note@below {{iteration (2) reads element [2] of buf0, whose dimension 0 has 0 elements, where s0 = 3}}
    %x = affine.load %a[%i] : memref<?xf32>
    // expected-remark@below {{[subscript_out_of_bounds]}}
    // expected-note@below {{of buf0}}
    affine.store %x, %a[%i] : memref<?xf32>
  }
  return
}

// -----

func.func @should_accept_own_memory(%n: index) {
  %a = memref.alloc(%n) : memref<?xf32>
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to %n {
    affine.store %zero, %a[%i] : memref<?xf32>
  }
  return
}

// -----

// Symbols: a constant, and an argument that a guard bounds.

func.func @should_accept_symbols(%a: memref<64xf32>, %n: index) {
  %c60 = arith.constant 60 : index
  affine.for %i = 0 to 4 {
    %x = affine.load %a[%i + symbol(%c60)] : memref<64xf32>
    affine.if affine_set<()[s0] : (s0 >= 0, -s0 + 60 >= 0)>()[%n] {
      affine.store %x, %a[%i + symbol(%n)] : memref<64xf32>
    }
  }
  return
}

// -----

func.func @should_refuse_symbol(%a: memref<64xf32>, %n: index) {
  affine.for %i = 0 to 4 {
    affine.if affine_set<()[s0] : (s0 >= 0, -s0 + 61 >= 0)>()[%n] {
      // expected-remark@below {{[subscript_out_of_bounds]}}
      // expected-note@below {{iteration (3) reads element [64] of argument 0, whose dimension 0 has 64 elements, where argument 1 = 61}}
      %x = affine.load %a[%i + symbol(%n)] : memref<64xf32>
      affine.store %x, %a[%i] : memref<64xf32>
    }
  }
  return
}

// -----

// An access of several elements.

func.func @should_accept_vectors(%a: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 step 8 {
      %x = affine.vector_load %a[%i, %j] : memref<8x64xf32>, vector<8xf32>
      affine.vector_store %x, %a[%i, %j] : memref<8x64xf32>, vector<8xf32>
    }
  }
  return
}

// -----

func.func @should_refuse_vectors(%a: memref<8x60xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 60 step 8 {
      // expected-remark@below {{[subscript_out_of_bounds]}}
      // expected-note@below {{iteration (7, 56) reads element [7, 56] of argument 0, whose dimension 1 has 60 elements}}
      %x = affine.vector_load %a[%i, %j] : memref<8x60xf32>, vector<8xf32>
      // expected-remark@below {{[subscript_out_of_bounds]}}
      // expected-note@below {{iteration (7, 56) writes element [7, 56] of argument 0}}
      affine.vector_store %x, %a[%i, %j] : memref<8x60xf32>, vector<8xf32>
    }
  }
  return
}

// -----

// Not affine: a stride that is a symbol.

func.func @should_refuse_semi_affine_subscript(%a: memref<64xf32>, %n: index) {
  affine.for %i = 0 to 4 {
    // expected-remark@below {{[non_affine_index] its subscripts or iterations are not affine}}
    %x = affine.load %a[%i * symbol(%n)] : memref<64xf32>
    affine.store %x, %a[%i] : memref<64xf32>
  }
  return
}

// -----

// With 64 bits, i * (2^63 - 1) is another number, whose remainder is negative.

func.func @should_refuse_dividend_that_overflows(%a: memref<64xf32>) {
  affine.for %i = 0 to 4 {
    // expected-remark@below {{[non_affine_index] a dividend in its subscripts may not fit in 64 bits}}
    %x = affine.load %a[(%i * 9223372036854775807) mod 3] : memref<64xf32>
    affine.store %x, %a[%i] : memref<64xf32>
  }
  return
}

// -----

// Scalars, and an access without loops.

func.func @should_accept_scalars(%a: memref<f32>, %b: memref<4xf32>) {
  %x = affine.load %a[] : memref<f32>
  affine.store %x, %b[3] : memref<4xf32>
  return
}

// -----

func.func @should_refuse_access_outside_of_loops(%a: memref<f32>, %b: memref<4xf32>) {
  %x = affine.load %a[] : memref<f32>
  // expected-remark@below {{[subscript_out_of_bounds]}}
  // expected-note@below {{iteration () writes element [4] of argument 1, whose dimension 0 has 4 elements}}
  affine.store %x, %b[4] : memref<4xf32>
  return
}

// -----

func.func @should_accept_parallel_loops(%a: memref<8x8xf32>) {
  affine.parallel (%i, %j) = (0, 0) to (8, 8) {
    %x = affine.load %a[%i, %j] : memref<8x8xf32>
    affine.store %x, %a[%i, %j] : memref<8x8xf32>
  }
  return
}

// -----

func.func @should_refuse_gather(%a: memref<8x512xf32>, %ids: memref<8xi64>, %b: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %id = affine.load %ids[%i] : memref<8xi64>
    %one = arith.constant 1 : index
    // expected-remark@below {{[indirect_index] the place of the element depends on data}}
    %x = bridge.gather %a[%i] at (%id) of (%one) by (%one) {checks = array<i1: true>, wraps = array<i1: true>} : memref<8x512xf32>, i64
    affine.store %x, %b[%i] : memref<8xf32>
  }
  return
}
