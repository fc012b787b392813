// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-split-index-sets))' 2>/dev/null \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands{require-equal-extents=false}))' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefixes=CHECK,FUSE
// RUN: bridge-opt %s --split-input-file --bridge-fuse 2>/dev/null \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(bridge-fuse{simt-target=false unroll-and-jam=true})' 2>/dev/null \
// RUN:   | FileCheck %s

// IR that the translation does not make, but a user's pipeline may. A failed
// assertion would end the user's process: the passes must handle every
// function, fused or not.

// CHECK-LABEL: func private @should_take_declaration
func.func private @should_take_declaration(memref<64xf32>)

// -----

// CHECK-LABEL: func @should_take_empty_function
func.func @should_take_empty_function() { return }

// -----

// CHECK-LABEL: func @should_fuse_loops_with_a_step
// FUSE: bridge.band
func.func @should_fuse_loops_with_a_step(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>) {
  affine.for %i = 0 to 64 step 2 {
    %0 = affine.load %a[%i] : memref<64xf32>
    affine.store %0, %b[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 step 2 {
    %0 = affine.load %b[%i] : memref<64xf32>
    affine.store %0, %c[%i] : memref<64xf32>
  }
  return
}

// -----

// CHECK-LABEL: func @should_fuse_loops_with_lower_bounds
// FUSE: bridge.band
func.func @should_fuse_loops_with_lower_bounds(%a: memref<8x64xf32>, %b: memref<8x64xf32>, %c: memref<8x64xf32>) {
  affine.for %i = 2 to 8 {
    affine.for %j = 5 to 64 {
      %0 = affine.load %a[%i, %j] : memref<8x64xf32>
      affine.store %0, %b[%i, %j] : memref<8x64xf32>
    }
  }
  affine.for %i = 2 to 8 {
    affine.for %j = 5 to 64 {
      %0 = affine.load %b[%i, %j] : memref<8x64xf32>
      affine.store %0, %c[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_fuse_affine_parallel
// FUSE-NOT: bridge.band
func.func @should_not_fuse_affine_parallel(%a: memref<8x64xf32>, %b: memref<8x64xf32>, %c: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    affine.parallel (%j) = (0) to (64) {
      %0 = affine.load %a[%i, %j] : memref<8x64xf32>
      affine.store %0, %b[%i, %j] : memref<8x64xf32>
    }
  }
  affine.parallel (%i) = (0) to (8) {
    affine.parallel (%j) = (0) to (64) {
      %0 = affine.load %a[%i, %j] : memref<8x64xf32>
      affine.store %0, %b[%i, %j] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %0 = affine.load %b[%i, %j] : memref<8x64xf32>
      affine.store %0, %c[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_fuse_scf_if_inside
// FUSE-NOT: bridge.band
func.func @should_not_fuse_scf_if_inside(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %p: i1) {
  affine.for %i = 0 to 64 {
    %0 = affine.load %a[%i] : memref<64xf32>
    scf.if %p {
      affine.store %0, %b[%i] : memref<64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    %0 = affine.load %b[%i] : memref<64xf32>
    affine.store %0, %c[%i] : memref<64xf32>
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_fuse_across_scf_if
// FUSE-NOT: bridge.band
func.func @should_not_fuse_across_scf_if(%a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>, %p: i1) {
  affine.for %i = 0 to 64 {
    %0 = affine.load %a[%i] : memref<64xf32>
    affine.store %0, %b[%i] : memref<64xf32>
  }
  scf.if %p {
    affine.for %i = 0 to 64 {
      %0 = affine.load %b[%i] : memref<64xf32>
      affine.store %0, %c[%i] : memref<64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    %0 = affine.load %b[%i] : memref<64xf32>
    affine.store %0, %c[%i] : memref<64xf32>
  }
  return
}

// -----

// CHECK-LABEL: func @should_fuse_imperfect_nests
// FUSE: bridge.band
func.func @should_fuse_imperfect_nests(%a: memref<8x64xf32>, %b: memref<8x64xf32>, %c: memref<8x64xf32>, %s: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %1 = affine.load %s[%i] : memref<8xf32>
    affine.for %j = 0 to 64 {
      %0 = affine.load %a[%i, %j] : memref<8x64xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %b[%i, %j] : memref<8x64xf32>
    }
    affine.store %1, %s[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 32 {
      %0 = affine.load %b[%i, %j] : memref<8x64xf32>
      affine.store %0, %c[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_fuse_loop_without_iterations
// FUSE: bridge.band
func.func @should_fuse_loop_without_iterations(%a: memref<8x64xf32>, %b: memref<8x64xf32>, %c: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %0 = affine.load %a[%i, %j] : memref<8x64xf32>
      affine.store %0, %b[%i, %j] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 0 {
      %0 = affine.load %b[%i, %j] : memref<8x64xf32>
      affine.store %0, %c[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_fuse_loop_with_negative_bound
// FUSE: bridge.band
func.func @should_fuse_loop_with_negative_bound(%a: memref<8x64xf32>, %b: memref<8x64xf32>, %c: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %0 = affine.load %a[%i, %j] : memref<8x64xf32>
      affine.store %0, %b[%i, %j] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to -32 {
      %0 = affine.load %b[%i, %j] : memref<8x64xf32>
      affine.store %0, %c[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_fuse_loops_with_max_and_min_bounds
// FUSE: bridge.band
func.func @should_fuse_loops_with_max_and_min_bounds(%a: memref<?x64xf32>, %b: memref<?x64xf32>, %c: memref<?x64xf32>, %m: index, %n: index) {
  affine.for %i = max affine_map<(d0) -> (0, d0)>(%m) to min affine_map<(d0) -> (d0, 100)>(%n) {
    affine.for %j = 0 to 64 {
      %0 = affine.load %a[%i, %j] : memref<?x64xf32>
      affine.store %0, %b[%i, %j] : memref<?x64xf32>
    }
  }
  affine.for %i = max affine_map<(d0) -> (0, d0)>(%m) to min affine_map<(d0) -> (d0, 100)>(%n) {
    affine.for %j = 0 to 32 {
      %0 = affine.load %b[%i, %j] : memref<?x64xf32>
      %1 = affine.load %b[%i, %j + 32] : memref<?x64xf32>
      %2 = arith.addf %0, %1 : f32
      affine.store %2, %c[%i, %j] : memref<?x64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_fuse_triangular_loops
// FUSE: bridge.band
func.func @should_fuse_triangular_loops(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) {
      %0 = affine.load %a[%i, %j] : memref<64x64xf32>
      affine.store %0, %b[%i, %j] : memref<64x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) {
      %0 = affine.load %b[%i, %j] : memref<64x64xf32>
      affine.store %0, %c[%i, %j] : memref<64x64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_fuse_outermost_reductions
// FUSE-NOT: bridge.band
func.func @should_not_fuse_outermost_reductions(%a: memref<64xf32>, %b: memref<1xf32>, %c: memref<1xf32>) {
  %z = arith.constant 0.0 : f32
  %s = affine.for %i = 0 to 64 iter_args(%x = %z) -> (f32) {
    %0 = affine.load %a[%i] : memref<64xf32>
    %1 = arith.addf %x, %0 : f32
    affine.yield %1 : f32
  }
  affine.store %s, %b[0] : memref<1xf32>
  %t = affine.for %i = 0 to 64 iter_args(%x = %z) -> (f32) {
    %0 = affine.load %a[%i] : memref<64xf32>
    %1 = arith.mulf %x, %0 : f32
    affine.yield %1 : f32
  }
  affine.store %t, %c[0] : memref<1xf32>
  return
}

// -----

// CHECK-LABEL: func @should_leave_nested_modules_alone
// FUSE-NOT: bridge.band
module {
  func.func @should_leave_nested_modules_alone(%a: memref<64xf32>, %b: memref<64xf32>) {
    affine.for %i = 0 to 64 {
      %0 = affine.load %a[%i] : memref<64xf32>
      affine.store %0, %b[%i] : memref<64xf32>
    }
    return
  }
  module {
    func.func @nested(%a: memref<64xf32>, %b: memref<64xf32>) {
      affine.for %i = 0 to 64 {
        %0 = affine.load %a[%i] : memref<64xf32>
        affine.store %0, %b[%i] : memref<64xf32>
      }
      affine.for %i = 0 to 64 {
        %0 = affine.load %b[%i] : memref<64xf32>
        affine.store %0, %a[%i] : memref<64xf32>
      }
      return
    }
  }
}

// -----

// CHECK-LABEL: func @should_not_fuse_memref_of_memrefs
// FUSE-NOT: bridge.band
func.func @should_not_fuse_memref_of_memrefs(%a: memref<64xf32>, %h: memref<4xmemref<64xf32>>, %c: memref<64xf32>) {
  affine.for %i = 0 to 4 {
    %m = affine.load %h[%i] : memref<4xmemref<64xf32>>
    affine.for %j = 0 to 64 {
      %0 = affine.load %m[%j] : memref<64xf32>
      affine.store %0, %a[%j] : memref<64xf32>
    }
  }
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 64 {
      %0 = affine.load %a[%j] : memref<64xf32>
      affine.store %0, %c[%j] : memref<64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_fuse_across_blocks
// FUSE-NOT: bridge.band
func.func @should_not_fuse_across_blocks(%p: i1, %a: memref<64xf32>, %b: memref<64xf32>) {
  cf.cond_br %p, ^bb1, ^bb2
^bb1:
  affine.for %i = 0 to 64 {
    %0 = affine.load %a[%i] : memref<64xf32>
    affine.store %0, %b[%i] : memref<64xf32>
  }
  cf.br ^bb2
^bb2:
  affine.for %i = 0 to 64 {
    %0 = affine.load %b[%i] : memref<64xf32>
    affine.store %0, %a[%i] : memref<64xf32>
  }
  return
}

// -----

// CHECK-LABEL: func @should_fuse_after_affine_if
// FUSE: bridge.band
func.func @should_fuse_after_affine_if(%n: index, %a: memref<64xf32>, %b: memref<64xf32>, %c: memref<64xf32>) {
  affine.if affine_set<(d0) : (d0 - 3 >= 0)>(%n) {
    affine.for %i = 0 to 64 {
      %0 = affine.load %a[%i] : memref<64xf32>
      affine.store %0, %b[%i] : memref<64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    %0 = affine.load %a[%i] : memref<64xf32>
    affine.store %0, %b[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    %0 = affine.load %b[%i] : memref<64xf32>
    affine.store %0, %c[%i] : memref<64xf32>
  }
  return
}

// -----

// CHECK-LABEL: func @should_not_fuse_scalar_accumulation
// FUSE-NOT: bridge.band
func.func @should_not_fuse_scalar_accumulation(%a: memref<f32>, %b: memref<f32>, %c: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %0 = affine.load %a[] : memref<f32>
    affine.store %0, %c[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    %0 = affine.load %c[%i] : memref<64xf32>
    affine.store %0, %b[] : memref<f32>
  }
  return
}

// -----

// CHECK-LABEL: func @should_fuse_loops_without_iterations
// FUSE: bridge.band
func.func @should_fuse_loops_without_iterations(%a: memref<8x64xf32>, %b: memref<8x64xf32>, %c: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 0 {
      %0 = affine.load %a[%i, %j] : memref<8x64xf32>
      affine.store %0, %b[%i, %j] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 0 {
      %0 = affine.load %b[%i, %j] : memref<8x64xf32>
      affine.store %0, %c[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// Several lanes store one element: which of them stores it last is not known.

// CHECK-LABEL: func @should_not_overflow
// FUSE-NOT: bridge.band
func.func @should_not_overflow(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 4611686018427387904 {
      affine.for %k = 0 to 4611686018427387904 {
      %0 = affine.load %a[%i, %j+%k] : memref<?x?xf32>
      affine.store %0, %b[%i, %j+%k] : memref<?x?xf32>
    } }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %0 = affine.load %b[%i, %j] : memref<?x?xf32>
      affine.store %0, %c[%i, %j] : memref<?x?xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_fuse_negative_lower_bound
// FUSE: bridge.band
func.func @should_fuse_negative_lower_bound(%a: memref<8x64xf32>, %b: memref<8x64xf32>, %c: memref<8x64xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = -64 to 0 {
      %0 = affine.load %a[%i, -%j] : memref<8x64xf32>
      affine.store %0, %b[%i, -%j] : memref<8x64xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 32 {
      %0 = affine.load %b[%i, %j + 1] : memref<8x64xf32>
      affine.store %0, %c[%i, %j] : memref<8x64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func @should_fuse_across_deallocation
// FUSE: bridge.band
func.func @should_fuse_across_deallocation(%a: memref<64xf32>, %c: memref<64xf32>) {
  %b = memref.alloc() : memref<64xf32>
  %d = memref.alloc() : memref<64xf32>
  affine.for %i = 0 to 64 {
    %0 = affine.load %a[%i] : memref<64xf32>
    affine.store %0, %b[%i] : memref<64xf32>
    affine.store %0, %d[%i] : memref<64xf32>
  }
  memref.dealloc %d : memref<64xf32>
  affine.for %i = 0 to 64 {
    %0 = affine.load %b[%i] : memref<64xf32>
    affine.store %0, %c[%i] : memref<64xf32>
  }
  memref.dealloc %b : memref<64xf32>
  return
}
