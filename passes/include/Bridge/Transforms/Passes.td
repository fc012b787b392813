//===- Passes.td - Bridge's passes -------------------------*- tablegen -*-===//

#ifndef BRIDGE_TRANSFORMS_PASSES
#define BRIDGE_TRANSFORMS_PASSES

include "Bridge/Transforms/ExtentPasses.td"
include "mlir/Pass/PassBase.td"

def InterchangeLoops : Pass<"bridge-interchange-loops", "::mlir::func::FuncOp"> {
  let summary = "Moves the loops that two nests can share outermost";
  let description = [{
    A nest that reads what another one computes once a band iteration may run
    over the same rows with other loops around or between them: heads before
    positions, channels before pixels, copies of a head. The access relations
    are solved for the writer's iteration; the reader's loops that determine it
    go outermost, in the writer's order. If the reader's band is fixed, because
    it reduces what the writer computes, the writer's loops that this band
    determines go outermost instead. All loops must be parallel, and all nests
    of a kernel of Inductor's are interchanged or none of them.

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
  let summary = "Gives a producer the outer loops of its consumer";
  let description = [{
    A nest that reads what another one computes once a band iteration, but in
    another order (rolled, cut into windows, transposed), shares no band with
    it. The access relations are solved for the producer's iteration as a
    function of the consumer's outer loops. If that function is a bijection, the
    producer, and all nests that Inductor has in one kernel with it, get the
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

    A kernel may have nests over different loops, such as one that stores %x over
    windows and pixels and one that sums up its rows. The nests that are not over
    the producer's loops get these first, if the producer's reads determine how;
    then all get the consumer's:

    ```mlir
    affine.for %i = 0 to 8 {
      affine.for %j = 0 to 8 {
        affine.for %r = 0 to 96 {
          ...
          affine.store %v, %x[%i * 8 + %j, %r] : memref<64x96xf32>
    ```

    becomes, by way of one loop over 64 rows,

    ```mlir
    affine.for %j = 0 to 8 {
      affine.for %k = 0 to 8 {
        affine.for %r = 0 to 96 {
          ...
          affine.store %v, %x[%k * 8 + %j, %r] : memref<64x96xf32>
    ```

    A nest of the kernel that reads the producer's rows in the consumer's loops
    stays as it is. A kernel is not changed if one of its nests cannot get the loops.

    A consumer that has one iteration for each of a reduction's, in another order,
    takes the producer's loops instead: others may read the same in the
    producer's order. This is so where the producer's iteration is a number whose
    digits are the consumer's variables. Scales in tiles of 128 x 4,

    ```mlir
    affine.for %i = 0 to 2 {
      affine.for %j = 0 to 32 {
        affine.for %k = 0 to 4 {
          affine.for %l = 0 to 4 {
            %s = affine.load %max[%i * 128 + %k * 32 + %j, %l] : memref<256x4xf32>
            affine.store %s, %out[%i, %j, %k, %l] : memref<2x32x4x4xf32>
    ```

    become rows of them:

    ```mlir
    affine.for %r = 0 to 256 {
      affine.for %l = 0 to 4 {
        %s = affine.load %max[%r, %l] : memref<256x4xf32>
        affine.store %s, %out[%r floordiv 128, %r mod 32,
                              %r floordiv 32 mod 4, %l] : memref<2x32x4x4xf32>
    ```

    A consumer that pads has iterations without a row. The producer's loads and
    stores are guarded then, here with `r < 49` of 56:

    ```mlir
    affine.for %r = 0 to 56 {
      %s = affine.for %k = 0 to 96 iter_args(%a = %zero) -> (f32) {
        %x = affine.if affine_set<(d0) : (-d0 + 48 >= 0)>(%r) -> f32 {
          %y = affine.load %in[%r, %k] : memref<49x96xf32>
          affine.yield %y : f32
        } else {
          affine.yield %zero : f32
        }
        ...
      }
      affine.if affine_set<(d0) : (-d0 + 48 >= 0)>(%r) {
        affine.store %s, %sum[%r] : memref<49xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"maxPoints", "max-points", "int64_t", /*default=*/"65536",
           "The most iterations at which a map is evaluated to prove that it "
           "is a bijection">,
    Option<"divisions", "divisions", "bool", /*default=*/"true",
           "Allow maps with floordiv or mod, which cost a division for each row "
           "in loops that run one after the other">,
    Option<"guards", "guards", "bool", /*default=*/"true",
           "Allow a consumer with more iterations than the producer has rows, "
           "but less than twice as many">,
  ];
  let statistics = [
    Statistic<"numReindexed", "num-reindexed", "Nests with the loops of a consumer">,
    Statistic<"numFollowing", "num-following", "Nests with the loops of a producer">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def FuseBands : Pass<"bridge-fuse-bands", "::mlir::func::FuncOp"> {
  let summary = "Fuses nests under one copy of their common outer loops";
  let description = [{
    Two nests over the same outer domain are fused: one copy of the outer loops,
    the band, with both bodies in it. Upstream's memref dependence graph gives
    the place of the fused nest. Upstream's dependence analysis proves that every
    loop of the band is parallel, so that no dependence is between two band
    iterations; one inside an iteration keeps its order. Nests that Inductor has
    in one kernel are fused first. Refusals are remarks.

    Arguments of the function are assumed not to overlap. Upstream's analysis
    does not model accesses to views or to memrefs with a layout of their own,
    accesses of vectors, and operations that are not affine: nests with these are
    refused. So are pairs with an operation of unknown effects between them.

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
           "Fuse only nests whose inner loops have equal extents, as one kernel "
           "of Inductor's needs it">,
    Option<"segments", "segments", "bool", /*default=*/"false",
           "Also try shallower bands: a loop around a reduction becomes lanes, "
           "and the reduction is over segments of the row">,
    Option<"rowsOfSegments", "rows-of-segments", "bool", /*default=*/"true",
           "With segments, also fuse what reduces over the row, or needs in "
           "all lanes, what its segments have reduced">,
    Option<"recomputeMath", "recompute-math", "bool", /*default=*/"true",
           "Allow fusions that recompute exp, log and the like, which costs "
           "little in a kernel that keeps its row in registers">,
    Option<"recomputeDraws", "recompute-draws", "bool", /*default=*/"true",
           "Allow fusions that draw a random number again, which takes longer "
           "than to load it">,
    Option<"maxDependenceChecks", "max-dependence-checks", "int64_t",
           /*default=*/"100000",
           "The most pairs of accesses of a function that are checked; nests "
           "that would take more are not fused">,
  ];
  let statistics = [
    Statistic<"numTried", "num-tried", "Pairs of nests tried">,
    Statistic<"numProofs", "num-proofs", "Loops checked to be parallel">,
    Statistic<"numDependenceChecks", "num-dependence-checks",
              "Pairs of accesses checked">,
    Statistic<"numFused", "num-fused", "Pairs of nests fused">,
    Statistic<"numRefused", "num-refused", "Pairs of nests refused">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def ForwardStores : Pass<"bridge-forward-stores", "::mlir::func::FuncOp"> {
  let summary = "Recomputes what another lane of a band stores";
  let description = [{
    The iterations of a band's inner loops are lanes: the code generator runs
    them side by side, and no lane sees the memory that another one writes. A
    load of an element that an inner loop of the same band iteration stores is
    legal if the same lane stores it. Otherwise this pass replaces it by a copy
    of the stored value's computation, at the iteration that stores the element;
    the access relations are solved for that iteration. Reductions are never
    recomputed: `bridge-fuse-bands` refuses nests with a load that would need
    it.

    What may be computed again is limited, as the copies may double with each
    statement. At the limit equal copies are merged, and where that leaves too
    many, the band is refused: `budget_exceeded`.

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
           "Forward a value as it was before it was rounded for the store, if "
           "the loaded value is extended again">,
  ];
  let statistics = [
    Statistic<"numForwarded", "num-forwarded", "Loads replaced">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def UnrollAndJam : Pass<"bridge-unroll-and-jam", "::mlir::func::FuncOp"> {
  let summary = "Unrolls and jams inner loops that use a value of the row";
  let description = [{
    Some code generators emit one loop body for each statement, and recompute in
    every inner iteration a value that the band computes once an iteration.
    Inductor's C++ is one of them, and its stores keep the compiler from hoisting
    the value. The inner loop is strip-mined into contiguous pieces, and the loop
    over the pieces is unrolled and jammed: one inner iteration computes several
    elements with the same value.

    A loop that exchanges elements with another one of the band stays: what
    Inductor loads in the kernel that stored it is the value that was stored
    last, for any element.

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

    After, with a factor of two:

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
    Option<"unrollJamFactor", "unroll-jam-factor", "int64_t", /*default=*/"2",
           "The number of elements that an inner iteration computes">,
    Option<"minExtent", "min-extent", "int64_t", /*default=*/"64",
           "The fewest iterations that an inner loop keeps, several vectors">,
  ];
  let statistics = [
    Statistic<"numUnrolled", "num-unrolled", "Inner loops unrolled and jammed">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def ProveParallel : Pass<"bridge-prove-parallel", "::mlir::func::FuncOp"> {
  let summary = "Marks the band loops that are proven parallel";
  let description = [{
    The post-condition of every fusion, on the final IR. Affine dependence
    analysis checks each `affine.for` with `bridge.band`. A loop without a
    loop-carried dependence gets the unit attribute `bridge.parallel`; any other
    loop loses it, if it had it, and gets a remark. So does a loop that the
    analysis does not model: with accesses to views or to memrefs with a layout
    of their own, accesses of vectors, or operations that are not affine.

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

def ProveSubscripts : Pass<"bridge-prove-subscripts", "::mlir::func::FuncOp"> {
  let summary = "Proves that no access leaves its memref";
  let description = [{
    For IR that Bridge has not made: nothing says that its subscripts are inside
    of their dimensions, and generated code does not check them. Each affine load
    and store gets a proof, for all iterations of the loops and guards around it
    and all values of its symbols: with a subscript below zero, or not below the
    extent, the iterations have no integer point. An access without a proof gets
    a remark that names such a point. Upstream's bound check of a load or store
    does not look at guards.

    The extent of a dynamic dimension is what `memref.dim` returns for it, or the
    size that the memref is allocated with. The IR itself does not change.

    Before:

    ```mlir
    affine.for %i = 0 to 256 {
      %x = affine.load %a[%i + 300] : memref<512xf32>
      affine.if affine_set<(d0) : (-d0 + 211 >= 0)>(%i) {
        affine.store %x, %b[%i + 300] : memref<512xf32>
      }
    }
    ```

    After:

    ```mlir
    affine.for %i = 0 to 256 {
      // remark: [subscript_out_of_bounds] an access is not proven inside of its
      //         memref
      // note: iteration (212) reads element [512] of argument 0, whose
      //       dimension 0 has 512 elements
      %x = affine.load %a[%i + 300] : memref<512xf32>
      affine.if affine_set<(d0) : (-d0 + 211 >= 0)>(%i) {
        affine.store %x, %b[%i + 300] : memref<512xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"strict", "strict", "bool", /*default=*/"false",
           "Fail when an access is not proven inside of its memref">,
  ];
  let statistics = [
    Statistic<"numInside", "num-inside", "Accesses proven inside">,
    Statistic<"numNotProven", "num-not-proven", "Accesses not proven inside">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect"];
}

#endif // BRIDGE_TRANSFORMS_PASSES
