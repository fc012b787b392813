//===- BridgeDialect.td - the bridge dialect ---------------*- tablegen -*-===//

#ifndef BRIDGE_IR_BRIDGEDIALECT
#define BRIDGE_IR_BRIDGEDIALECT

include "mlir/IR/OpBase.td"

def Bridge_Dialect : Dialect {
  let name = "bridge";
  let cppNamespace = "::bridge";
  let summary = "The operations of Inductor's loop IR that upstream dialects lack.";
  let description = [{
    Inductor's loop bodies translate to `affine` loops over `arith` and `math`
    operations. This dialect has the rest: the elementwise functions that
    `arith` and `math` lack, conversions between torch dtypes that signless
    types cannot tell apart, and reduction steps with more than one value of
    state. These operations are pure and elementwise on scalars, so dependence
    analysis, canonicalization and CSE treat them as they treat `arith`'s. One
    more, `bridge.gather`, reads a memref to which nothing is stored.

    Discardable attributes, set on `affine.for`:

    - `bridge.band` (unit): a loop of a fused band;
    - `bridge.nodes` (strings), `bridge.kernels` (integers), on a nest's root:
      the names of its scheduler nodes, and for each the number of the kernel
      that Inductor has it in;
    - `bridge.parallel` (unit): the loop was proven free of loop-carried
      dependences.
  }];
}

class Bridge_Op<string mnemonic, list<Trait> traits = []>
    : Op<Bridge_Dialect, mnemonic, traits>;

#endif // BRIDGE_IR_BRIDGEDIALECT
