//===- Passes.td - Bridge's passes -------------------------*- tablegen -*-===//

#ifndef BRIDGE_TRANSFORMS_PASSES
#define BRIDGE_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def InterchangeLoops : Pass<"bridge-interchange-loops", "::mlir::func::FuncOp"> {
  let summary = "Puts the loops that two nests can share outermost";
  let description = [{
    A nest that reads what another computes for each of its band iterations may
    run over the same rows with other loops around or between them: heads before
    positions, channels before pixels, copies of a head. The access relations
    are solved for the writer's iteration; the reader's loops that determine it
    go outermost, in the writer's order. Where it is the reader whose band is
    given, because it reduces what the writer computes, the writer's loops that
    the band determines do. All loops must be parallel, and a kernel of
    Inductor's moves whole or stays.

    Before:

    ```mlir
    affine.for %i = 0 to 64 {
      %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
        ...
      }
      affine.store %s, %sum[%i] : memref<64xf32>
    }
    affine.for %h = 0 to 4 {
      affine.for %i = 0 to 64 {
        affine.for %j = 0 to 64 {
          %s = affine.load %sum[%i] : memref<64xf32>
          ...
          affine.store %y, %out[%h, %i, %j] : memref<4x64x64xf32>
    ```

    After, the second nest is:

    ```mlir
    affine.for %i = 0 to 64 {
      affine.for %h = 0 to 4 {
        affine.for %j = 0 to 64 {
          ...
          affine.store %y, %out[%h, %i, %j] : memref<4x64x64xf32>
    ```
  }];
  let statistics = [
    Statistic<"numInterchanged", "num-interchanged",
              "Nests with their loops in another order">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def ReindexBands : Pass<"bridge-reindex-bands", "::mlir::func::FuncOp"> {
  let summary = "Computes rows in the order of the nest that reads them";
  let description = [{
    A nest that reads what another computes for each of its band iterations, but
    in another order (rolled, cut into windows, transposed), shares no band with
    it. The access relations are solved for the producer's iteration as a
    function of the consumer's outer loops; where that is one to one, the
    producer, and all that Inductor has in one kernel with it, gets the
    consumer's loops.

    Before:

    ```mlir
    affine.for %i = 0 to 64 {
      %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %r] : memref<64x96xf32>
        ...
      }
      affine.store %s, %sum[%i] : memref<64xf32>
    }
    affine.for %j = 0 to 8 {
      affine.for %k = 0 to 8 {
        affine.for %r = 0 to 96 {
          %s = affine.load %sum[%k * 8 + %j] : memref<64xf32>
          ...
    ```

    After, the first nest is:

    ```mlir
    affine.for %j = 0 to 8 {
      affine.for %k = 0 to 8 {
        %s = affine.for %r = 0 to 96 iter_args(%a = %zero) -> (f32) {
          %x = affine.load %in[%k * 8 + %j, %r] : memref<64x96xf32>
          ...
        }
        affine.store %s, %sum[%k * 8 + %j] : memref<64xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"maxPoints", "max-points", "int64_t", /*default=*/"65536",
           "The most iterations of loops that depend on each other in the "
           "order, which are looked at one by one">,
    Option<"divisions", "divisions", "bool", /*default=*/"true",
           "Allow orders whose subscripts have floordiv or mod; in loops that "
           "run one after the other, each costs a division a row">,
  ];
  let statistics = [
    Statistic<"numReindexed", "num-reindexed", "Nests in another order">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def SplitIndexSets : Pass<"bridge-split-index-sets", "::mlir::func::FuncOp"> {
  let summary = "Splits index sets so that inner extents agree";
  let description = [{
    A nest whose inner loops run over a whole row, and another over the same
    band that works on parts of the row, have inner loops of different extents.
    Where the parts partition the row, the first is rewritten to the extent of
    the second, with its body once for each part. The parts are affine maps that
    are solved from the access relations: contiguous, interleaved, reversed or
    of several dimensions. A short innermost loop whose iterations guards tell
    apart (two halves stacked to neighbours) is unrolled first: its iterations
    are interleaved pieces. A reduction's state goes from part to part, which
    reassociates it and changes nothing else; a nest whose iterations depend on
    each other otherwise (a running sum, a recurrence) is left alone.

    Before:

    ```mlir
    affine.for %i = 0 to 64 {
      %s = affine.for %r = 0 to 256 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %r] : memref<64x256xf32>
        %b = arith.addf %a, %x : f32
        affine.yield %b : f32
      }
      affine.store %s, %sum[%i] : memref<64xf32>
    }
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 128 {
        %x = affine.load %in[%i, %j] : memref<64x256xf32>
        %y = affine.load %in[%i, %j + 128] : memref<64x256xf32>
        ...
    ```

    After, the first nest is:

    ```mlir
    affine.for %i = 0 to 64 {
      %s = affine.for %j = 0 to 128 iter_args(%a = %zero) -> (f32) {
        %x = affine.load %in[%i, %j] : memref<64x256xf32>
        %b = arith.addf %a, %x : f32
        %y = affine.load %in[%i, %j + 128] : memref<64x256xf32>
        %c = arith.addf %b, %y : f32
        affine.yield %c : f32
      }
      affine.store %s, %sum[%i] : memref<64xf32>
    }
    ```
  }];
  let options = [
    Option<"maxPieces", "max-pieces", "int64_t", /*default=*/"16",
           "The most pieces that a nest is split into">,
    Option<"maxInterleaved", "max-interleaved", "int64_t", /*default=*/"4",
           "The most iterations of an innermost loop that are told apart by "
           "guards and become pieces">,
  ];
  let statistics = [
    Statistic<"numUnrolled", "num-unrolled", "Loops whose iterations became pieces">,
    Statistic<"numSplit", "num-split", "Nests split">,
    Statistic<"numRefused", "num-refused", "Nests without a partition">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def AlignExtents : Pass<"bridge-align-extents", "::mlir::func::FuncOp"> {
  let summary = "Gives the nests of a band one inner extent";
  let description = [{
    Where several nests over one band have inner loops of different extents,
    all are split into contiguous pieces of a common tile: of the greatest
    common divisor of the extents. If the limits allow it, the tile also divides
    the offsets between their accesses and the points at which their guards
    change: then pieces of different nests touch the same elements, and
    `bridge-simplify-guards` removes the guards.

    Before:

    ```mlir
    affine.for %i = 0 to 64 {
      affine.for %r = 0 to 96 {
        %x = affine.load %in[%i, %r] : memref<64x96xf32>
        affine.store %x, %t[%i, %r] : memref<64x96xf32>
      }
    }
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 64 {
        %y = affine.load %t[%i, %j + 32] : memref<64x96xf32>
        affine.store %y, %out[%i, %j] : memref<64x64xf32>
      }
    }
    ```

    After, the second nest is:

    ```mlir
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 32 {
        %y = affine.load %t[%i, %j + 32] : memref<64x96xf32>
        affine.store %y, %out[%i, %j] : memref<64x64xf32>
        %z = affine.load %t[%i, %j + 64] : memref<64x96xf32>
        affine.store %z, %out[%i, %j + 32] : memref<64x64xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"maxPieces", "max-pieces", "int64_t", /*default=*/"16",
           "The most pieces that a nest is split into">,
    Option<"minTile", "min-tile", "int64_t", /*default=*/"16",
           "The fewest iterations of a piece: a sector of memory, about">,
    Option<"shiftedOnly", "shifted-only", "bool", /*default=*/"false",
           "Leave nests to bridge-pad-extents that only differ in extent: "
           "where no lane reads at several offsets or has a guard, pieces "
           "share no load that one wider loop does not">,
  ];
  let statistics = [
    Statistic<"numAligned", "num-aligned", "Nests split">,
    Statistic<"numRefused", "num-refused", "Nests that cannot be split">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def PadExtents : Pass<"bridge-pad-extents", "::mlir::func::FuncOp"> {
  let summary = "Gives shorter inner loops lanes that do nothing";
  let description = [{
    Where the nests of a band still differ in their inner extent, because no
    tile divides them all, the shorter loops run over the longest one's domain:
    shifted, so that a loop that reads a row from an offset on has its elements
    in the lanes that other nests have them in, and guarded. Stores, and loads
    that would leave their memref, stand in an `affine.if`; a reduction gets its
    neutral element in the other lanes.

    Before:

    ```mlir
    affine.for %i = 0 to 64 {
      affine.for %r = 0 to 1001 {
        %x = affine.load %in[%i, %r] : memref<64x1001xf32>
        affine.store %x, %t[%i, %r] : memref<64x1001xf32>
      }
    }
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 1000 {
        %y = affine.load %in[%i, %j + 1] : memref<64x1001xf32>
        affine.store %y, %out[%i, %j] : memref<64x1000xf32>
      }
    }
    ```

    After, the second nest is:

    ```mlir
    affine.for %i = 0 to 64 {
      affine.for %r = 0 to 1001 {
        %y = affine.load %in[%i, %r] : memref<64x1001xf32>
        affine.if affine_set<(d0) : (-d0 + 1000 >= 0, d0 - 1 >= 0)>(%r) {
          affine.store %y, %out[%i, %r - 1] : memref<64x1000xf32>
        }
      }
    }
    ```
  }];
  let statistics = [
    Statistic<"numPadded", "num-padded", "Loops padded">,
    Statistic<"numRefused", "num-refused", "Loops that cannot be padded">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect"];
}

def SimplifyGuards : Pass<"bridge-simplify-guards", "::mlir::func::FuncOp"> {
  let summary = "Removes guards that hold always or never";
  let description = [{
    Asks for every `affine.if`, and every comparison of a subscript with a
    constant, whether the iterations that reach it decide it: the iteration
    domain together with the condition, or with its negation, is empty. Upstream
    folds the conditions that are constant without their domain.

    Before:

    ```mlir
    affine.for %j = 0 to 32 {
      %x = affine.if affine_set<(d0) : (d0 - 32 >= 0)>(%j) -> f32 {
        affine.yield %a : f32
      } else {
        affine.yield %b : f32
      }
      affine.store %x, %out[%j] : memref<32xf32>
    }
    ```

    After:

    ```mlir
    affine.for %j = 0 to 32 {
      affine.store %b, %out[%j] : memref<32xf32>
    }
    ```
  }];
  let statistics = [
    Statistic<"numSimplified", "num-simplified", "Guards removed">,
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect"];
}

def FuseBands : Pass<"bridge-fuse-bands", "::mlir::func::FuncOp"> {
  let summary = "Merges nests under one copy of their common outer loops";
  let description = [{
    Two nests over the same outer domain are merged: one copy of the outer
    loops, the band, with both bodies in it. Upstream's memref dependence graph
    says where the merged nest may stand; upstream's dependence analysis proves
    that every loop of the merged band is parallel. A dependence between two
    band iterations would show there; one inside an iteration keeps its order.
    Nests that Inductor has in one kernel meet first. Refusals are remarks.

    Arguments of the function are taken not to overlap. Nests with accesses to
    views, to memrefs with a layout of their own, of vectors, or by operations
    that are not affine are refused, and so are pairs with an operation of
    unknown effects between them: upstream's analysis does not see what those do.

    Before:

    ```mlir
    affine.for %i = 0 to 64 {
      %x = affine.load %in[%i] : memref<64xf32>
      affine.store %x, %t[%i] : memref<64xf32>
    } {bridge.kernels = [0], bridge.nodes = ["op0"]}
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 128 {
        %y = affine.load %t[%i] : memref<64xf32>
        affine.store %y, %out[%i, %j] : memref<64x128xf32>
      }
    } {bridge.kernels = [1], bridge.nodes = ["op1"]}
    ```

    After:

    ```mlir
    affine.for %i = 0 to 64 {
      %x = affine.load %in[%i] : memref<64xf32>
      affine.store %x, %t[%i] : memref<64xf32>
      affine.for %j = 0 to 128 {
        %y = affine.load %t[%i] : memref<64xf32>
        affine.store %y, %out[%i, %j] : memref<64x128xf32>
      }
    } {bridge.band, bridge.kernels = [0, 1], bridge.nodes = ["op0", "op1"]}
    ```
  }];
  let options = [
    Option<"requireEqualExtents", "require-equal-extents", "bool",
           /*default=*/"true",
           "Merge only nests whose inner loops have equal extents, which is "
           "what one kernel of Inductor's can run">,
    Option<"segments", "segments", "bool", /*default=*/"false",
           "A loop around a reduction may become lanes of a shallower band: "
           "the reduction is over segments of the row then">,
    Option<"recomputeMath", "recompute-math", "bool", /*default=*/"true",
           "Compute exp, log and the like again where another lane has: in a "
           "kernel that keeps its row in registers that is for free">,
  ];
  let statistics = [
    Statistic<"numTried", "num-tried", "Pairs of nests tried">,
    Statistic<"numProofs", "num-proofs", "Loops asked to be proven parallel">,
    Statistic<"numFused", "num-fused", "Pairs of nests merged">,
    Statistic<"numRefused", "num-refused", "Pairs of nests refused">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def ForwardStores : Pass<"bridge-forward-stores", "::mlir::func::FuncOp"> {
  let summary = "Computes again what another lane of a band has stored";
  let description = [{
    The iterations of a band's inner loops are lanes: the code generator runs
    them side by side, and none sees the memory that another writes. A load of
    an element that an inner loop of the same band iteration stores gets its
    value from the same lane, or, by this pass, from a copy of the computation
    at the iteration that stores the element. Which iteration that is follows
    from the access relations. Reductions are never computed again; a load that
    would need one keeps `bridge-fuse-bands` from merging.

    Before:

    ```mlir
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 128 {
        %x = affine.load %in[%i, %j] : memref<64x128xf32>
        %y = math.exp %x : f32
        affine.store %y, %t[%i, %j] : memref<64x128xf32>
      }
      affine.for %j = 0 to 128 {
        %z = affine.load %t[%i, -%j + 127] : memref<64x128xf32>
        affine.store %z, %out[%i, %j] : memref<64x128xf32>
      }
    } {bridge.band}
    ```

    After, the second loop is:

    ```mlir
      affine.for %j = 0 to 128 {
        %x1 = affine.load %in[%i, -%j + 127] : memref<64x128xf32>
        %y1 = math.exp %x1 : f32
        affine.store %y1, %out[%i, %j] : memref<64x128xf32>
      }
    ```
  }];
  let options = [
    Option<"excessPrecision", "excess-precision", "bool", /*default=*/"true",
           "Forward a value as it was before the store rounded it, where the "
           "load extends it again">,
  ];
  let statistics = [
    Statistic<"numForwarded", "num-forwarded", "Loads replaced">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def ShareRowValues : Pass<"bridge-share-row-values", "::mlir::func::FuncOp"> {
  let summary = "Lets a row value serve several elements of an inner loop";
  let description = [{
    A value that a band computes once an iteration and uses in an inner loop is
    computed again in every inner iteration by a code generator that emits one
    body a statement; Inductor's C++ does so, and its stores keep the compiler
    from hoisting it. The inner loop is split into contiguous pieces, so that
    one inner iteration works on several elements with the same row value.

    Before:

    ```mlir
    affine.for %i = 0 to 64 {
      %s = affine.load %sum[%i] : memref<64xf32>
      %r = math.rsqrt %s : f32
      affine.for %j = 0 to 128 {
        %x = affine.load %in[%i, %j] : memref<64x128xf32>
        %y = arith.mulf %x, %r : f32
        affine.store %y, %out[%i, %j] : memref<64x128xf32>
      }
    } {bridge.band}
    ```

    After, with two pieces:

    ```mlir
    affine.for %i = 0 to 64 {
      %s = affine.load %sum[%i] : memref<64xf32>
      %r = math.rsqrt %s : f32
      affine.for %j = 0 to 64 {
        %x = affine.load %in[%i, %j] : memref<64x128xf32>
        %y = arith.mulf %x, %r : f32
        affine.store %y, %out[%i, %j] : memref<64x128xf32>
        %x1 = affine.load %in[%i, %j + 64] : memref<64x128xf32>
        %y1 = arith.mulf %x1, %r : f32
        affine.store %y1, %out[%i, %j + 64] : memref<64x128xf32>
      }
    } {bridge.band}
    ```
  }];
  let options = [
    Option<"pieces", "pieces", "int64_t", /*default=*/"2",
           "Elements that share a row value">,
    Option<"minExtent", "min-extent", "int64_t", /*default=*/"64",
           "The fewest iterations that an inner loop keeps: several vectors">,
  ];
  let statistics = [
    Statistic<"numSplit", "num-split", "Inner loops split">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def ProveParallel : Pass<"bridge-prove-parallel", "::mlir::func::FuncOp"> {
  let summary = "Marks the band loops that are proven parallel";
  let description = [{
    The post-condition of every fusion, on the final IR: asks affine dependence
    analysis about each `affine.for` that carries `bridge.band`. A loop without
    a loop-carried dependence gets the unit attribute `bridge.parallel`; any
    other loses it, if it had it, and gets a remark. So does a loop with
    accesses that the analysis cannot be trusted with: to views, to memrefs with
    a layout of their own, of vectors, or by operations that are not affine.

    Before:

    ```mlir
    affine.for %i = 0 to 64 {
      %0 = affine.load %a[%i] : memref<64xf32>
      affine.store %0, %b[%i] : memref<64xf32>
    } {bridge.band}
    affine.for %i = 1 to 64 {
      %0 = affine.load %a[%i - 1] : memref<64xf32>
      affine.store %0, %a[%i] : memref<64xf32>
    } {bridge.band}
    ```

    After:

    ```mlir
    affine.for %i = 0 to 64 {
      %0 = affine.load %a[%i] : memref<64xf32>
      affine.store %0, %b[%i] : memref<64xf32>
    } {bridge.band, bridge.parallel}
    // remark: [loop_carried_dependence] an iteration needs another's result
    affine.for %i = 1 to 64 {
      %0 = affine.load %a[%i - 1] : memref<64xf32>
      affine.store %0, %a[%i] : memref<64xf32>
    } {bridge.band}
    ```
  }];
  let options = [
    Option<"strict", "strict", "bool", /*default=*/"false",
           "Fail when a loop cannot be proven parallel">,
  ];
  let statistics = [
    Statistic<"numParallel", "num-parallel", "Loops proven parallel">,
    Statistic<"numSerial", "num-serial", "Loops not proven parallel">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect"];
}

#endif // BRIDGE_TRANSFORMS_PASSES
