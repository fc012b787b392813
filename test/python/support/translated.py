"""Hold bodies of loops that are translated to affine, lifted back, and translated again."""

from __future__ import annotations

from unittest import mock

import sympy
import torch
from torch._inductor.virtualized import V

from bridge import inductor
from bridge.affine.mlir_runtime import ir
from bridge.affine.pipeline import run_pipeline
from bridge.affine.translate.group import GroupTarget, NodeSource, make_prover, trace_group, translate_group
from bridge.diagnostics.dump import Dump
from bridge.lowering.lift.band import FunctionTables, lift_band
from bridge.reasons import Unsupported

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
DTYPES = [*FLOATS, *INTEGERS, torch.bool]
ROWS, COLUMNS = sympy.Integer(16), sympy.Integer(48)
CANONICAL = "builtin.module(func.func(canonicalize,cse))"


def translate(body, buffers, sizes, rounds):
    source = NodeSource("op0", body, sizes, 0)
    target = GroupTarget(buffers.__getitem__, lambda name: ROWS * COLUMNS, make_prover(), rounds)
    return translate_group("group", [source], trace_group([source]), target)


def lift(translation, triton=True):
    """Return the function's one nest as a LoopBody."""
    stores = {t.name: {a.buffer for a in t.accesses if a.is_write} for t in translation.traces}
    buffers = [(name, m.view.strides) for name, m in translation.memrefs.items()]
    with translation.module.context:
        entry = translation.module.body.operations[0].regions[0].blocks[0]
        (nest,) = (op.operation for op in entry.operations if op.operation.name == "affine.for")
        shifts = {name: m.shifted for name, m in translation.memrefs.items()}
        tables = FunctionTables(buffers, translation.symbols, triton, seeds=translation.seeds, shifts=shifts)
        (node,) = lift_band(nest, entry, tables, stores).nodes
        return inductor.make_loop_body(node.body, node.iter_sizes, node.reduce_sizes)


def stored_values(translation):
    """Return every store of the canonicalized module as a term: what is computed, in any order."""
    run_pipeline(translation.module, CANONICAL, Dump(None, "group"))
    stores = []

    def visit(operation):
        if operation.name == "affine.store":
            stores.append(term(operation))
        return ir.WalkResult.ADVANCE

    with translation.module.context:
        translation.module.operation.walk(visit)
    return stores


def term(operation):
    """Return an operation with its attributes, types, operands, and what its regions yield."""
    operation = getattr(operation, "operation", operation)
    attributes = sorted(f"{a} = {operation.attributes[a]}" for a in operation.attributes)
    yields = [term(list(region.blocks[0].operations)[-1]) for region in operation.regions if region.blocks]
    operands = [
        argument_name(o) if isinstance(o.owner, ir.Block) else (term(o.owner), o.result_number)
        for o in values_of(operation)
    ]
    return operation.name, attributes, [str(r.type) for r in operation.results], operands, yields


def values_of(operation):
    return [ir.OpResult(o) if not isinstance(o.owner, ir.Block) else ir.BlockArgument(o) for o in operation.operands]


def argument_name(argument):
    """Return a buffer's name, or the depth and position of a loop's argument."""
    owner, depth = argument.owner.owner.operation, 0
    if owner.name == "func.func":
        return str(owner.attributes["arg_attrs"][argument.arg_number])
    while owner.name != "func.func":
        owner, depth = owner.parent.operation, depth + 1
    return depth, argument.arg_number


def check(body, buffers, sizes=((ROWS, COLUMNS), ()), triton=True):
    """Check that what comes back from the lift translates to the same module, with values that round and without.

    triton: lift for Triton, or else for C++.
    """
    for rounds in (True, False):
        first = translate(body, buffers, sizes, rounds)
        with mock.patch.object(inductor, "buffer_dtype", buffers.__getitem__):
            lifted = lift(first, triton)
        second = translate(lifted, buffers, lifted.sizes, rounds)
        assert stored_values(second) == stored_values(first)


def reason_of(body, buffers, sizes=((ROWS, COLUMNS), ())):
    """Return the refusal's reason; None where the body is translated and comes back."""
    try:
        check(body, buffers, sizes)
    except Unsupported as refusal:
        return refusal.reason
    return None


def pointwise(compute, count=0):
    """Return a body that stores what `compute(ops, values, indices)` gives for `count` loaded values."""

    def body(indices, _):
        ops = V.get_ops_handler()
        at = indices[0] * COLUMNS + indices[1]
        values = [ops.load(f"in{k}", at) for k in range(count)]
        ops.store("out", at, compute(ops, values, indices))

    return body


def buffers_of(dtype, result, count=3):
    return {"out": result, **{f"in{k}": dtype for k in range(count)}}
