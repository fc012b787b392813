// RUN: bridge-opt %s --split-input-file --verify-diagnostics \
// RUN:     --pass-pipeline='builtin.module(func.func(bridge-fuse-bands{segments=true},bridge-forward-stores))' \
// RUN:   | FileCheck %s

// A nest that overwrites what the nests before it read. The lanes of a band run
// side by side: no lane may overwrite what another one has still to read.

// The row is read by its reduction and by the nest that scales it, and then
// overwritten, each element by the lane that read it.

// CHECK-LABEL: func @should_fuse_in_place
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT: %[[S:.*]] = affine.for
// CHECK: affine.for %[[J:.*]] = 0 to 128 {
// CHECK-NEXT: affine.load %arg0[%[[I]], %[[J]]]
// CHECK: affine.for %[[K:.*]] = 0 to 128 {
// CHECK-NEXT: affine.load %arg0[%[[I]], %[[K]]]
// CHECK: affine.store %{{.*}}, %arg0[%[[I]], %[[K]]]
// CHECK-NEXT: }
// CHECK-NEXT: } {bridge.band, bridge.kernels = [0, 1, 2], bridge.nodes = ["sum", "scale", "update"]}
// CHECK-NEXT: return
func.func @should_fuse_in_place(%x: memref<64x128xf32>, %s: memref<64xf32>, %out: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %sum = affine.for %j = 0 to 128 iter_args(%acc = %zero) -> f32 {
      %v = affine.load %x[%i, %j] : memref<64x128xf32>
      %next = arith.addf %acc, %v : f32
      affine.yield %next : f32
    }
    affine.store %sum, %s[%i] : memref<64xf32>
  } {bridge.nodes = ["sum"], bridge.kernels = [0]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %v = affine.load %x[%i, %j] : memref<64x128xf32>
      %sum = affine.load %s[%i] : memref<64xf32>
      %w = arith.mulf %v, %sum : f32
      affine.store %w, %out[%i, %j] : memref<64x128xf32>
    }
  } {bridge.nodes = ["scale"], bridge.kernels = [1]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %v = affine.load %x[%i, %j] : memref<64x128xf32>
      %w = arith.addf %v, %v : f32
      affine.store %w, %x[%i, %j] : memref<64x128xf32>
    }
  } {bridge.nodes = ["update"], bridge.kernels = [2]}
  return
}

// -----

// Each half is overwritten by the lane that read it, by a store of its own. The
// second store comes after a load of what the first one does not write.

// CHECK-LABEL: func @should_fuse_in_place_by_halves
// CHECK: affine.for %[[I:.*]] = 0 to 64 {
// CHECK: affine.for %{{.*}} = 0 to 64 {
// CHECK: affine.for %[[K:.*]] = 0 to 64 {
// CHECK: affine.store %{{.*}}, %arg0[%[[I]], %[[K]]]
// CHECK: affine.store %{{.*}}, %arg0[%[[I]], %[[K]] + 64]
// CHECK: } {bridge.band, bridge.kernels = [], bridge.nodes = ["max", "gate", "update"]}
// CHECK-NEXT: return
func.func @should_fuse_in_place_by_halves(%x: memref<64x128xf32>, %m: memref<64xf32>, %out: memref<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 64 {
    %max = affine.for %j = 0 to 64 iter_args(%acc = %zero) -> f32 {
      %v = affine.load %x[%i, %j] : memref<64x128xf32>
      %next = arith.maximumf %acc, %v : f32
      affine.yield %next : f32
    }
    affine.store %max, %m[%i] : memref<64xf32>
  } {bridge.nodes = ["max"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %a = affine.load %x[%i, %j] : memref<64x128xf32>
      %b = affine.load %x[%i, %j + 64] : memref<64x128xf32>
      %w = arith.mulf %a, %b : f32
      affine.store %w, %out[%i, %j] : memref<64x64xf32>
    }
  } {bridge.nodes = ["gate"]}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %a = affine.load %x[%i, %j] : memref<64x128xf32>
      %c = arith.addf %a, %a : f32
      affine.store %c, %x[%i, %j] : memref<64x128xf32>
      %b = affine.load %x[%i, %j + 64] : memref<64x128xf32>
      %d = arith.addf %b, %b : f32
      affine.store %d, %x[%i, %j + 64] : memref<64x128xf32>
    }
  } {bridge.nodes = ["update"]}
  return
}

// -----

// The first nest reads the row backwards: lane j of the update overwrites what
// lane 127 - j may not have read yet.

// CHECK-LABEL: func @should_not_fuse_what_another_lane_overwrites
// CHECK-NOT: bridge.band
// CHECK: return
func.func @should_not_fuse_what_another_lane_overwrites(%x: memref<64x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      // expected-note @below {{iteration (63, 63) reads element [63, 64] of argument 0}}
      %v = affine.load %x[%i, -%j + 127] : memref<64x128xf32>
      affine.store %v, %out[%i, %j] : memref<64x128xf32>
    }
  }
  // expected-remark @below {{[loop_carried_dependence] merged, one band iteration would need another's result}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %v = affine.load %x[%i, %j] : memref<64x128xf32>
      %w = arith.addf %v, %v : f32
      // expected-note @below {{iteration (63, 64) writes it}}
      affine.store %w, %x[%i, %j] : memref<64x128xf32>
    }
  }
  return
}

// -----

// The next row is read by another band iteration than the one that overwrites
// it.

// CHECK-LABEL: func @should_not_fuse_what_another_row_overwrites
// CHECK-NOT: bridge.band
// CHECK: return
func.func @should_not_fuse_what_another_row_overwrites(%x: memref<65x128xf32>, %out: memref<64x128xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      // expected-note @below {{iteration (62, 0) reads element [63, 0] of argument 0}}
      %v = affine.load %x[%i + 1, %j] : memref<65x128xf32>
      affine.store %v, %out[%i, %j] : memref<64x128xf32>
    }
  }
  // expected-remark @below {{[loop_carried_dependence] merged, one band iteration would need another's result}}
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %v = affine.load %out[%i, %j] : memref<64x128xf32>
      // expected-note @below {{iteration (63, 0) writes it}}
      affine.store %v, %x[%i, %j] : memref<65x128xf32>
    }
  }
  return
}
