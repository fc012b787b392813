//===- ExtentPasses.td - Bridge's passes on extents --------*- tablegen -*-===//

#ifndef BRIDGE_TRANSFORMS_EXTENTPASSES
#define BRIDGE_TRANSFORMS_EXTENTPASSES

include "mlir/Pass/PassBase.td"

def SplitIndexSets : Pass<"bridge-split-index-sets", "::mlir::func::FuncOp"> {
  let summary = "Splits index sets so that inner extents agree";
  let description = [{
    Two nests over one band may have inner loops of different extents because
    one accesses a full row and the other accesses pieces of it. If the pieces
    partition the row, the index set of the first nest is split: it gets the
    extent of the second, and its body once for each piece. The pieces are
    affine maps that are solved from the access relations: contiguous,
    interleaved, reversed or of several dimensions. A short innermost loop with
    guards on its induction variable (two halves stacked to neighbours) is
    unrolled first: its iterations are interleaved pieces. So is that of a nest
    that accesses the same elements in the same loops. The state of a
    reduction passes from piece to piece, which only reassociates it. A nest
    whose iterations depend on each other otherwise (a running sum, a
    recurrence) is not split. Nor is one where each iteration of the tile would
    have more than four neighbours in memory because it accesses one value for
    all of them, such as the scale of a segment: each of the pieces would access
    every sector of the row.

    With option `parts`, a nest that works in pieces on a part of the row alone
    gives the others the pieces that it would have of all of it. Where the
    neighbours in the first 64 of 256 elements are rotated, by 32 iterations
    that access `2 * j` and `2 * j + 1`, nests over the row get 128 iterations
    with these two subscripts.

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
           "The most iterations of an innermost loop with guards on its "
           "variable that is unrolled">,
    Option<"parts", "parts", "bool", /*default=*/"false",
           "Also split by copies of all pieces that a nest accesses which works "
           "on a part of the rows only, or by those that it would access with "
           "more lanes, which bridge-pad-extents gives it">,
  ];
  let statistics = [
    Statistic<"numUnrolled", "num-unrolled", "Loops unrolled">,
    Statistic<"numSplit", "num-split", "Nests split">,
    Statistic<"numRefused", "num-refused", "Nests that cannot be split">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def UnrollReductions : Pass<"bridge-unroll-reductions", "::mlir::func::FuncOp"> {
  let summary = "Unrolls short reductions whose results a row reduces";
  let description = [{
    A sum over experts, over the fields of a table or over the tokens of a
    window has a result for each element of a row, and memory is along the row,
    not along the sum. The lanes of the row are then around the loop that
    carries the sum. Another nest that reduces the row has the same lanes
    without that loop, and both cannot be one band. Unrolled, each lane adds up
    its own elements, and what is left has the lanes of the row.

    This is done where a later nest over the same outer loops reduces what the
    nest stores, be it by way of nests over the same loops, and to all nests of
    a kernel of Inductor's that reduce in the same loops. An elementwise nest of
    that kernel, over the lanes and what is reduced in them, is unrolled with
    them: what it makes of each element is for several reductions, as of the
    exponents for a maximum and a sum. The order of the iterations stays, so that
    no dependence changes.

    A row of a symbolic number of lanes cannot be worked on in segments, as it is
    in no registers. Where memory is along what each lane reduces, that is done
    as well, if it is no more than a sector: the parts of sums that Inductor has
    split are such.

    Before:

    ```mlir
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 256 {
        %s = affine.for %e = 0 to 2 iter_args(%a = %zero) -> (f32) {
          %x = affine.load %in[%i, %e, %j] : memref<64x2x256xf32>
          %b = arith.addf %a, %x : f32
          affine.yield %b : f32
        }
        affine.store %s, %sum[%i, %j] : memref<64x256xf32>
      }
    }
    affine.for %i = 0 to 64 {
      %m = affine.for %j = 0 to 256 iter_args(%a = %least) -> (f32) {
        %y = affine.load %sum[%i, %j] : memref<64x256xf32>
        ...
    ```

    After, the first nest is:

    ```mlir
    affine.for %i = 0 to 64 {
      affine.for %j = 0 to 256 {
        %x = affine.load %in[%i, 0, %j] : memref<64x2x256xf32>
        %b = arith.addf %zero, %x : f32
        %y = affine.load %in[%i, 1, %j] : memref<64x2x256xf32>
        %c = arith.addf %b, %y : f32
        affine.store %c, %sum[%i, %j] : memref<64x256xf32>
      }
    }
    ```

    Where the state is several values (a variance, a softmax, the index of an
    extremum), the steps stay `bridge.combine`, one on the results of another.
    What is generated for them is arithmetic on all that the lane has: a mean and
    then the squares, a maximum and then the exponentials, or comparisons. With

    ```mlir
    %s:2 = affine.for %e = 0 to 2 iter_args(%a = %least, %n = %first) -> (f32, i64) {
      %x = affine.load %in[%i, %e, %j] : memref<64x2x256xf32>
      %k = arith.index_cast %e : index to i64
      %b:2 = bridge.combine argmax (%a, %n), (%x, %k) : f32, i64
      affine.yield %b#0, %b#1 : f32, i64
    }
    ```

    in the place of the sum, each lane has

    ```mlir
    %x = affine.load %in[%i, 0, %j] : memref<64x2x256xf32>
    %b:2 = bridge.combine argmax (%least, %first), (%x, %zero) : f32, i64
    %y = affine.load %in[%i, 1, %j] : memref<64x2x256xf32>
    %c:2 = bridge.combine argmax (%b#0, %b#1), (%y, %one) : f32, i64
    ```
  }];
  let options = [
    Option<"maxLoads", "max-loads", "int64_t", /*default=*/"128",
           "The most loads that a lane has of what is reduced, which are as "
           "many instructions">,
    Option<"maxStateLoads", "max-state-loads", "int64_t", /*default=*/"32",
           "The same of a reduction whose state is several values, and of an "
           "elementwise nest: a lane keeps all that it loads">,
    Option<"maxSectorLoads", "max-sector-loads", "int64_t", /*default=*/"8",
           "The same where the lanes are a symbolic number and memory is along "
           "what each of them reduces: as many as are in a sector">,
    Option<"minLanes", "min-lanes", "int64_t", /*default=*/"16",
           "The fewest iterations of the innermost lane loop, about a sector "
           "of memory">,
  ];
  let statistics = [
    Statistic<"numUnrolled", "num-unrolled", "Reductions unrolled">,
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect"];
}

def AlignExtents : Pass<"bridge-align-extents", "::mlir::func::FuncOp"> {
  let summary = "Gives the nests of a band one inner extent";
  let description = [{
    Where several nests over one band have inner loops of different extents,
    all are split into contiguous pieces of a common tile: the greatest common
    divisor of the extents. If the limits allow it, the tile also divides the
    offsets between their accesses and the points at which their guards change:
    then pieces of different nests access the same elements, and
    `bridge-simplify-guards` removes the guards.

    A symbolic extent cannot be divided. If each chain of inner loops has one
    symbolic loop, and all these loops have the same domain, that domain is the
    tile, and each iteration of the constant loops is a piece.

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
           "The fewest iterations of a piece, about a sector of memory">,
    Option<"shiftedOnly", "shifted-only", "bool", /*default=*/"false",
           "Split only nests with guards or reads at several offsets; the "
           "others, which would share no more loads if split, are left to "
           "bridge-pad-extents">,
  ];
  let statistics = [
    Statistic<"numAligned", "num-aligned", "Nests split">,
    Statistic<"numRefused", "num-refused", "Nests that cannot be split">,
  ];
  let dependentDialects = ["::bridge::BridgeDialect",
                           "::mlir::affine::AffineDialect"];
}

def PadExtents : Pass<"bridge-pad-extents", "::mlir::func::FuncOp"> {
  let summary = "Pads shorter inner loops with guarded lanes";
  let description = [{
    If the nests of a band still have different inner extents, because no tile
    divides them all, the shorter loops get the domain of the longest one. A loop
    that reads a row from an offset on is shifted by that offset: then its
    elements are in the lanes that other nests access them in. Stores, and loads
    that would leave their memref, stand in an `affine.if`; in the other lanes, a
    reduction combines its neutral element.
    Nests with fewer outer loops in common than these stay as they are.

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
  let summary = "Removes guards that always or never hold";
  let description = [{
    Removes each `affine.if`, and each comparison of a subscript with a constant,
    that has one outcome in all iterations that execute it: the iteration domain
    together with the condition, or with its negation, is empty. Upstream folds
    only conditions that are constant regardless of the domain.

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

def SimplifySubscripts : Pass<"bridge-simplify-subscripts", "::mlir::func::FuncOp"> {
  let summary = "Simplifies subscripts to one short form";
  let description = [{
    Composed index maps (rows rolled, then cut into windows) make long
    subscripts, and different subscripts of one element: upstream simplifies
    without the loops' bounds, and writes `x mod d` as `x - (x floordiv d) * d`.
    This pass splits divisions by digits of a mixed radix, as the bounds allow
    it, and writes remainders as `mod`. Addresses take less arithmetic then, and
    two loads of one element have equal subscripts.

    Before:

    ```mlir
    affine.for %i = 0 to 56 {
      affine.for %j = 0 to 7 {
        %x = affine.load %in[(%i * 7 + %j) floordiv 49,
                             %i * 7 + %j - ((%i * 7 + %j) floordiv 7) * 7]
            : memref<8x7xf32>
        ...
    ```

    After:

    ```mlir
    affine.for %i = 0 to 56 {
      affine.for %j = 0 to 7 {
        %x = affine.load %in[%i floordiv 7, %j] : memref<8x7xf32>
        ...
    ```
  }];
  let statistics = [
    Statistic<"numSimplified", "num-simplified", "Accesses changed">,
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect"];
}

#endif // BRIDGE_TRANSFORMS_EXTENTPASSES
