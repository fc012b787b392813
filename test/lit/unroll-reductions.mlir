// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-unroll-reductions,canonicalize))' \
// RUN:   | FileCheck %s
// RUN: bridge-opt %s --split-input-file \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-unroll-reductions{max-loads=2 max-sector-loads=1 min-lanes=65}))' \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse)' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=FUSED
// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse{rows-of-segments=false})' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=NONE
// RUN: bridge-opt %s --split-input-file --pass-pipeline='builtin.module(bridge-fuse{simt-target=false})' 2>/dev/null \
// RUN:   | FileCheck %s --check-prefix=NONE

// NONE-NOT: bridge.unrolled_reductions

// CHECK-LABEL: func private @should_take_declaration
func.func private @should_take_declaration(memref<64xf32>)

// -----

// CHECK-LABEL: func @should_unroll_what_a_row_reduces
// CHECK-SAME: attributes {bridge.unrolled_reductions}
// CHECK: affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT: affine.load %arg0[%[[I]], 0, %[[J]]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: affine.load %arg0[%[[I]], 1, %[[J]]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: affine.load %arg0[%[[I]], 2, %[[J]]]
// CHECK-NEXT: %[[S:.*]] = arith.addf
// CHECK-NEXT: affine.store %[[S]], %arg1[%[[I]], %[[J]]]
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
// FUSED-LABEL: func @should_unroll_what_a_row_reduces
// FUSED: } {bridge.band, bridge.kernels = [0, 1]
// FUSED-SAME: bridge.parallel
func.func @should_unroll_what_a_row_reduces(%in: memref<8x3x64xf32>, %sum: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 3 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x3x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// What the row reduces is made of the sum by a nest over the same loops; the
// other sum of the kernel, over two loops, is unrolled, too.

// CHECK-LABEL: func @should_unroll_all_of_a_kernel
// CHECK-SAME: attributes {bridge.unrolled_reductions}
// CHECK-COUNT-3: affine.load %arg0
// CHECK: affine.store %{{.*}}, %arg2
// CHECK-NOT: iter_args
// CHECK-COUNT-6: affine.load %arg1
// CHECK-NOT: iter_args
// CHECK: affine.store %{{.*}}, %arg3
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
// FUSED-LABEL: func @should_unroll_all_of_a_kernel
// FUSED: } {bridge.band, bridge.kernels = [0, 0, 1, 2]
func.func @should_unroll_all_of_a_kernel(%in: memref<8x3x64xf32>, %more: memref<8x2x3x64xf32>, %sum: memref<8x64xf32>, %other: memref<8x64xf32>, %mid: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 3 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x3x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 2 iter_args(%a = %zero) -> (f32) {
        %t = affine.for %f = 0 to 3 iter_args(%b = %a) -> (f32) {
          %x = affine.load %more[%i, %e, %f, %j] : memref<8x2x3x64xf32>
          %y = arith.maximumf %b, %x : f32
          affine.yield %y : f32
        }
        affine.yield %t : f32
      }
      affine.store %s, %other[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["other"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = affine.load %other[%i, %j] : memref<8x64xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %mid[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["mid"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %mid[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [2], bridge.nodes = ["row"]}
  return
}

// -----

// Nothing reduces the row: a kernel with a loop for the sum serves both.

// CHECK-LABEL: func @should_not_unroll_without_a_row
// CHECK-NOT: bridge.unrolled_reductions
// CHECK: affine.for %{{.*}} = 0 to 3 iter_args
func.func @should_not_unroll_without_a_row(%in: memref<8x3x64xf32>, %sum: memref<8x64xf32>, %out: memref<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 3 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x3x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = math.exp %x : f32
      affine.store %y, %out[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["out"]}
  return
}

// -----

// Memory is along the sum: each lane would read far from its neighbours.

// CHECK-LABEL: func @should_not_unroll_along_memory
// CHECK-NOT: bridge.unrolled_reductions
// CHECK: affine.for %{{.*}} = 0 to 3 iter_args
func.func @should_not_unroll_along_memory(%in: memref<8x64x3xf32>, %sum: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 3 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %j, %e] : memref<8x64x3xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// So many loads are not unrolled, and a kernel that has them keeps all of its
// loops.

// CHECK-LABEL: func @should_not_unroll_a_part_of_a_kernel
// CHECK-NOT: bridge.unrolled_reductions
// CHECK: affine.for %{{.*}} = 0 to 3 iter_args
// CHECK: affine.for %{{.*}} = 0 to 129 iter_args
func.func @should_not_unroll_a_part_of_a_kernel(%in: memref<8x129x64xf32>, %sum: memref<8x64xf32>, %long: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 3 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x129x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 129 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x129x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %long[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["long"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// The steps of a state of several values begin with the first one's.

// CHECK-LABEL: func @should_unroll_a_state_of_several_values
// CHECK-SAME: attributes {bridge.unrolled_reductions}
// CHECK: affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT: affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT: %[[X:.*]] = affine.load %arg0[%[[I]], 0, %[[J]]]
// CHECK-NEXT: %[[A:.*]]:3 = bridge.combine welford (%[[ZERO:.*]], %[[ZERO]], %[[ZERO]]), (%[[X]], %[[ZERO]], %[[ONE:.*]])
// CHECK-NEXT: %[[Y:.*]] = affine.load %arg0[%[[I]], 1, %[[J]]]
// CHECK-NEXT: %[[B:.*]]:3 = bridge.combine welford (%[[A]]#0, %[[A]]#1, %[[A]]#2), (%[[Y]], %[[ZERO]], %[[ONE]])
// CHECK-NEXT: affine.store %[[B]]#1, %arg1[%[[I]], %[[J]]]
// FUSED-LABEL: func @should_unroll_a_state_of_several_values
// FUSED: } {bridge.band, bridge.kernels = [0, 1]
func.func @should_unroll_a_state_of_several_values(%in: memref<8x2x64xf32>, %sum: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s:3 = affine.for %e = 0 to 2 iter_args(%a = %zero, %b = %zero, %c = %zero) -> (f32, f32, f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x2x64xf32>
        %y:3 = bridge.combine welford (%a, %b, %c), (%x, %zero, %one) : f32, f32, f32
        affine.yield %y#0, %y#1, %y#2 : f32, f32, f32
      }
      affine.store %s#1, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// The index of an extremum is the number of the iteration.

// CHECK-LABEL: func @should_unroll_an_index
// CHECK: %[[A:.*]]:2 = bridge.combine argmax (%{{.*}}, %[[FIRST:.*]]), (%{{.*}}, %[[FIRST]]) : f32, i64
// CHECK: %[[B:.*]]:2 = bridge.combine argmax (%[[A]]#0, %[[A]]#1), (%{{.*}}, %{{.*}}) : f32, i64
// CHECK: affine.store %[[B]]#1
// FUSED-LABEL: func @should_unroll_an_index
// FUSED: } {bridge.band, bridge.kernels = [0, 1]
func.func @should_unroll_an_index(%in: memref<8x2x64xf32>, %at: memref<8x64xi64>, %out: memref<8xi64>) {
  %least = arith.constant 0xFF800000 : f32
  %first = arith.constant 0 : i64
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s:2 = affine.for %e = 0 to 2 iter_args(%a = %least, %b = %first) -> (f32, i64) {
        %x = affine.load %in[%i, %e, %j] : memref<8x2x64xf32>
        %k = arith.index_cast %e : index to i64
        %y:2 = bridge.combine argmax (%a, %b), (%x, %k) : f32, i64
        affine.yield %y#0, %y#1 : f32, i64
      }
      affine.store %s#1, %at[%i, %j] : memref<8x64xi64>
    }
  } {bridge.kernels = [0], bridge.nodes = ["at"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %first) -> (i64) {
      %x = affine.load %at[%i, %j] : memref<8x64xi64>
      %y = arith.addi %a, %x : i64
      affine.yield %y : i64
    }
    affine.store %m, %out[%i] : memref<8xi64>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// A lane keeps all of the elements: not more of them than a sum may have.

// CHECK-LABEL: func @should_not_unroll_a_state_of_many_loads
// CHECK-NOT: bridge.unrolled_reductions
// CHECK: affine.for %{{.*}} = 0 to 33 iter_args
func.func @should_not_unroll_a_state_of_many_loads(%in: memref<8x33x64xf32>, %sum: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s:3 = affine.for %e = 0 to 33 iter_args(%a = %zero, %b = %zero, %c = %zero) -> (f32, f32, f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x33x64xf32>
        %y:3 = bridge.combine welford (%a, %b, %c), (%x, %zero, %one) : f32, f32, f32
        affine.yield %y#0, %y#1, %y#2 : f32, f32, f32
      }
      affine.store %s#1, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// What several reductions have of each element is elementwise work of their
// kernel: it has the same lanes, and one loop more. An earlier kernel feeds it.

// CHECK-LABEL: func @should_unroll_elementwise_work_of_the_kernel
// CHECK-SAME: attributes {bridge.unrolled_reductions}
// CHECK-NOT: iter_args
// CHECK: affine.store %{{.*}}, %arg2
// CHECK: affine.for
// CHECK-NEXT: affine.for
// CHECK-COUNT-2: affine.store %{{.*}}, %arg3
// CHECK-NOT: iter_args
// CHECK: affine.store %{{.*}}, %arg4
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
// FUSED-LABEL: func @should_unroll_elementwise_work_of_the_kernel
// FUSED: } {bridge.band, bridge.kernels = [0, 1, 1, 2]
func.func @should_unroll_elementwise_work_of_the_kernel(%in: memref<8x2x64xf32>, %more: memref<8x2x64xf32>, %peak: memref<8x64xf32>, %part: memref<8x2x64xf32>, %sum: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 2 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %e, %j] : memref<8x2x64xf32>
        %y = arith.maximumf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %peak[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["peak"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      affine.for %e = 0 to 2 {
        %x = affine.load %more[%i, %e, %j] : memref<8x2x64xf32>
        %p = affine.load %peak[%i, %j] : memref<8x64xf32>
        %y = arith.subf %x, %p : f32
        affine.store %y, %part[%i, %e, %j] : memref<8x2x64xf32>
      }
    }
  } {bridge.kernels = [1], bridge.nodes = ["part"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 2 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %part[%i, %e, %j] : memref<8x2x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [1], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [2], bridge.nodes = ["row"]}
  return
}

// -----

// Of so many elements a lane keeps none.

// CHECK-LABEL: func @should_not_unroll_much_elementwise_work
// CHECK: affine.for %{{.*}} = 0 to 33 {
// CHECK-NOT: iter_args
// CHECK: affine.for %{{.*}} = 0 to 64 iter_args
func.func @should_not_unroll_much_elementwise_work(%in: memref<8x33x64xf32>, %part: memref<8x33x64xf32>, %sum: memref<8x64xf32>, %out: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      affine.for %e = 0 to 33 {
        %x = affine.load %in[%i, %e, %j] : memref<8x33x64xf32>
        %y = math.exp %x : f32
        affine.store %y, %part[%i, %e, %j] : memref<8x33x64xf32>
      }
    }
  } {bridge.kernels = [0], bridge.nodes = ["part"]}
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 64 {
      %s = affine.for %e = 0 to 33 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %part[%i, %e, %j] : memref<8x33x64xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%i, %j] : memref<8x64xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 8 {
    %m = affine.for %j = 0 to 64 iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%i, %j] : memref<8x64xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<8xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// Of a symbolic number of lanes: memory is along the two parts that each adds
// up, a sector.

// CHECK-LABEL: func @should_unroll_parts_of_symbolic_lanes
// CHECK-SAME: attributes {bridge.unrolled_reductions}
// CHECK: affine.for %[[J:.*]] = 0 to %arg3 {
// CHECK-NEXT: affine.load %arg0[%[[J]], 0]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: affine.load %arg0[%[[J]], 1]
// CHECK-NEXT: %[[S:.*]] = arith.addf
// CHECK-NEXT: affine.store %[[S]], %arg1[%[[J]]]
// CHECK: affine.for %{{.*}} = 0 to %arg3 iter_args
// FUSED-LABEL: func @should_unroll_parts_of_symbolic_lanes
// FUSED: } {bridge.band, bridge.kernels = [0, 1]
func.func @should_unroll_parts_of_symbolic_lanes(%in: memref<?x2xf32>, %sum: memref<?xf32>, %out: memref<1xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 1 {
    affine.for %j = 0 to %n {
      %s = affine.for %e = 0 to 2 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%j, %e] : memref<?x2xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%j] : memref<?xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 1 {
    %m = affine.for %j = 0 to %n iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%j] : memref<?xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<1xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}

// -----

// More than a sector: each lane would read far from its neighbours.

// CHECK-LABEL: func @should_not_unroll_more_than_a_sector
// CHECK-NOT: bridge.unrolled_reductions
// CHECK: affine.for %{{.*}} = 0 to 9 iter_args
func.func @should_not_unroll_more_than_a_sector(%in: memref<?x9xf32>, %sum: memref<?xf32>, %out: memref<1xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 1 {
    affine.for %j = 0 to %n {
      %s = affine.for %e = 0 to 9 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%j, %e] : memref<?x9xf32>
        %y = arith.addf %a, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sum[%j] : memref<?xf32>
    }
  } {bridge.kernels = [0], bridge.nodes = ["sum"]}
  affine.for %i = 0 to 1 {
    %m = affine.for %j = 0 to %n iter_args(%a = %zero) -> (f32) {
      %x = affine.load %sum[%j] : memref<?xf32>
      %y = arith.addf %a, %x : f32
      affine.yield %y : f32
    }
    affine.store %m, %out[%i] : memref<1xf32>
  } {bridge.kernels = [1], bridge.nodes = ["row"]}
  return
}
