//===- BridgeOps.td - operations of the bridge dialect -----*- tablegen -*-===//

#ifndef BRIDGE_IR_BRIDGEOPS
#define BRIDGE_IR_BRIDGEOPS

include "Bridge/IR/BridgeDialect.td"
include "Bridge/IR/BridgeEnums.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Bridge_Scalar
    : AnyTypeOf<[AnyFloat, AnyInteger, Index],
                "a floating-point, integer or index scalar">;

def Bridge_SpecialOp : Bridge_Op<"special", [Pure]> {
  let summary = "an elementwise function that arith and math lack";
  let description = [{
    Applies the named function to scalars. The function's meaning is that of the
    operation of the same name in Inductor's `ops` namespace; passes need to
    know only that it is pure. So is a random number: the same seed and offset
    give the same one, wherever it is drawn.

    Example:

    ```mlir
    %0 = bridge.special sigmoid %a : (f32) -> f32
    %1 = bridge.special hypot %a, %b : (f32, f32) -> f32
    %2 = bridge.special floor_to_int %a : (f32) -> i64
    %3 = bridge.special rand %seed, %offset : (i64, i32) -> f32
    ```
  }];
  let arguments = (ins Bridge_SpecialFn:$fn, Variadic<Bridge_Scalar>:$inputs);
  let results = (outs Bridge_Scalar:$result);
  let assemblyFormat = [{
    $fn $inputs attr-dict `:` functional-type($inputs, $result)
  }];
  let hasVerifier = 1;
}

def Bridge_ConvertOp : Bridge_Op<"convert", [Pure]> {
  let summary = "a conversion between torch dtypes";
  let description = [{
    Converts a value from one torch dtype to another, for the pairs that
    signless types cannot name: to or from an unsigned dtype, and to or from
    `bool`. `from` and `to` are dtype names without `torch.`.

    Example:

    ```mlir
    %0 = bridge.convert %a {from = "uint8", to = "float32"} : i8 -> f32
    %1 = bridge.convert %b {from = "float32", to = "bool"} : f32 -> i1
    ```
  }];
  let arguments = (ins Bridge_Scalar:$operand, StrAttr:$from, StrAttr:$to);
  let results = (outs Bridge_Scalar:$result);
  let assemblyFormat = [{
    $operand attr-dict `:` type($operand) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Bridge_GatherOp
    : Bridge_Op<"gather", [
        NoMemoryEffect, SameVariadicOperandSize,
        TypesMatchWith<"result's type is the memref's element type", "memref",
                       "result", "cast<MemRefType>($_self).getElementType()">]> {
  let summary = "an element at a place that depends on data";
  let description = [{
    Reads the element of `memref` at the offset `base` + sum of `values` *
    `strides`, in elements from the first. The values are positions along
    dimensions of the `sizes`: what `ops.indirect_indexing` of Inductor gives.
    `wraps` says which may be negative, and then count from the end; `checks`,
    which the kernel compares with their size.

    Nothing in the function may store to the memref: the element is then a
    function of the operands, and dependence analysis has nothing to ask. It is
    not speculatable: where the operation does not execute, a value may be no
    position at all.

    Example:

    ```mlir
    %0 = bridge.gather %m[%base] at (%i) of (%rows) by (%stride)
        {checks = array<i1: true>, wraps = array<i1: true>}
        : memref<512x64xf32>, i64
    ```
  }];
  let arguments = (ins AnyMemRef:$memref, Index:$base,
                   Variadic<AnySignlessInteger>:$values,
                   Variadic<Index>:$sizes, Variadic<Index>:$strides,
                   DenseBoolArrayAttr:$checks, DenseBoolArrayAttr:$wraps);
  let results = (outs Bridge_Scalar:$result);
  let assemblyFormat = [{
    $memref `[` $base `]` `at` ` ` `(` $values `)` `of` ` ` `(` $sizes `)` `by`
    ` ` `(` $strides `)` attr-dict `:` type($memref) `,` type($values)
  }];
  let hasVerifier = 1;
}

def Bridge_CombineOp
    : Bridge_Op<"combine", [
        Pure, SameVariadicOperandSize,
        RangedTypesMatchWith<"value's types are acc's", "acc", "value", "$_self">,
        RangedTypesMatchWith<"results' types are acc's", "acc", "combined",
                             "$_self">]> {
  let summary = "one step of a reduction";
  let description = [{
    Combines a reduction's state with a value and gives the new state. It is for
    reductions whose state is more than one value, or whose combiner `arith`
    lacks. Every kind is associative, up to rounding.

    | kind             | state and value      | types                      |
    |------------------|----------------------|----------------------------|
    | `welford`        | mean, m2, weight     | one floating-point type    |
    | `argmax`         | value, index         | any scalar, integer/index  |
    | `argmin`         | value, index         | any scalar, integer/index  |
    | `online_softmax` | maximum, sum         | one floating-point type    |
    | `any`            | flag                 | i1                         |
    | `xor_sum`        | bits                 | integer                    |
    | `prod`           | product              | any scalar                 |

    Example:

    ```mlir
    %m:3 = bridge.combine welford (%mean, %m2, %w), (%x, %zero, %one)
        : f32, f32, f32
    %a:2 = bridge.combine argmax (%best, %at), (%x, %i) : f32, index
    ```
  }];
  let arguments = (ins Bridge_CombineKind:$kind, Variadic<Bridge_Scalar>:$acc,
                   Variadic<Bridge_Scalar>:$value);
  let results = (outs Variadic<Bridge_Scalar>:$combined);
  let assemblyFormat = [{
    $kind ` ` `(` $acc `)` `,` `(` $value `)` attr-dict `:` type($acc)
  }];
  let hasVerifier = 1;
}

#endif // BRIDGE_IR_BRIDGEOPS
