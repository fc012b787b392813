//===- Passes.td - Bridge's passes -------------------------*- tablegen -*-===//

#ifndef BRIDGE_TRANSFORMS_PASSES
#define BRIDGE_TRANSFORMS_PASSES

include "Bridge/Transforms/ExtentPasses.td"
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

    A kernel may have nests of two sets of loops, such as one that stores %x
    over windows and pixels and one that sums up its rows. Then the nests that
    are not over the producer's loops take those over first, where what the
    producer reads of them says how, and all follow the consumer:

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

    A kernel of which one nest can not take the loops over stays as it is.

    A consumer that pads has iterations to which no row belongs. What reads and
    stores in the producer stands under a guard then, `r < 49` of 56:

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
           "The most iterations of loops that depend on each other in the "
           "order, which are looked at one by one">,
    Option<"divisions", "divisions", "bool", /*default=*/"true",
           "Allow orders whose subscripts have floordiv or mod; in loops that "
           "run one after the other, each costs a division a row">,
    Option<"guards", "guards", "bool", /*default=*/"true",
           "Allow loops of the consumer that have more iterations than there "
           "are rows, up to twice as many">,
  ];
  let statistics = [
    Statistic<"numReindexed", "num-reindexed", "Nests in another order">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
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
    Option<"maxDependenceChecks", "max-dependence-checks", "int64_t",
           /*default=*/"100000",
           "Pairs of accesses of a function that may be asked about; nests "
           "that would take more stay apart">,
  ];
  let statistics = [
    Statistic<"numTried", "num-tried", "Pairs of nests tried">,
    Statistic<"numProofs", "num-proofs", "Loops asked to be proven parallel">,
    Statistic<"numDependenceChecks", "num-dependence-checks",
              "Pairs of accesses that the proofs are about">,
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
