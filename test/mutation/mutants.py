"""Faults to put into Bridge on purpose, one at a time: each line of code that a proof or a transformation rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """`old`, which occurs once in `file`, becomes `new`; `what` it breaks."""

    name: str
    what: str
    file: str
    old: str
    new: str

    @property
    def native(self) -> bool:
        return self.file.startswith("passes/")


MUTANTS = [
    Mutant(
        "parallel",
        "legality check",
        "passes/lib/Analysis/Legality.cpp",
        "  if (mayDepend(source, target, depth))\n    return false;\n",
        "  if (depth == 0 && mayDepend(source, target, depth))\n    return false;\n",
    ),
    Mutant(
        "dependence",
        "legality check",
        "passes/lib/Analysis/Legality.cpp",
        "          !relation.isIntegerEmpty());",
        "          false);",
    ),
    Mutant(
        "symbol",
        "legality check",
        "passes/lib/Analysis/ReachingStore.cpp",
        "expr.isFunctionOfSymbol(operand - map.getNumDims())",
        "expr.isFunctionOfDim(operand)",
    ),
    Mutant(
        "lanes",
        "legality check",
        "passes/lib/Analysis/LaneRule.cpp",
        "  return reaching && isSameLane(*reaching, load);",
        "  return reaching.has_value();",
    ),
    Mutant(
        "partition",
        "legality check",
        "passes/lib/Analysis/Bijection.cpp",
        "    if (!staysInside(map, tile, range) || !isInjective(map, tile))\n      return false;",
        "    (void)map;",
    ),
    Mutant(
        "guard",
        "guard",
        "passes/lib/Transforms/PadExtents.cpp",
        "bounds.push_back(-d + (offset + length - 1));",
        "bounds.push_back(-d + (offset + length));",
    ),
    Mutant(
        "guard start",
        "guard",
        "passes/lib/Transforms/PadExtents.cpp",
        "      bounds.push_back(d - offset);",
        "      bounds.push_back(d - offset - 1);",
    ),
    Mutant(
        "unguarded load",
        "guard",
        "passes/lib/Transforms/GuardedClone.cpp",
        "  bool inside = staysInside(trial, operands);",
        "  bool inside = true;",
    ),
    Mutant(
        "guard in a guard",
        "guard",
        "passes/lib/Transforms/GuardedClone.cpp",
        "constraints.push_back(expr.shiftDims(guard.getNumDims(), dims));",
        "constraints.push_back(expr.shiftDims(guard.getNumDims(), dims) + 1);",
    ),
    Mutant(
        "guarded rows",
        "guard",
        "passes/lib/Analysis/Bijection.cpp",
        "domain.push_back(extent - 1 - own.getResult(k));",
        "domain.push_back(extent - own.getResult(k));",
    ),
    Mutant(
        "guarded subscript",
        "legality check",
        "bridge/affine/translate/access.py",
        "any(span is not None and prover.less_equal(span[1], size - 1) for span in above)",
        "any(span is not None for span in above)",
    ),
    Mutant(
        "short last row",
        "legality check",
        "bridge/affine/translate/access.py",
        "        sizes[position] = _outer_size(left, chain[position], prover)\n",
        "        sizes[position] = _outer_size(left, chain[position], prover) + 1\n",
    ),
    Mutant(
        "masked combiner",
        "guard",
        "passes/lib/Transforms/PadExtents.cpp",
        "    condition = compare(arith::CmpIPredicate::slt, low + length);",
        "    condition = compare(arith::CmpIPredicate::slt, low + length + 1);",
    ),
    Mutant(
        "lane offset",
        "piece offset",
        "passes/lib/Transforms/PadExtents.cpp",
        "AffineMap::get(1, 0, d - offset), lane);",
        "AffineMap::get(1, 0, d), lane);",
    ),
    Mutant(
        "piece offset",
        "piece offset",
        "passes/lib/Transforms/IndexSetSplit.cpp",
        "own.getLoc(), piece.getSubMap({unsigned(position)}), tileIvs);",
        "own.getLoc(), AffineMap::get(piece.getNumDims(), 0, builder.getAffineDimExpr(0)), tileIvs);",
    ),
    Mutant(
        "piece left out",
        "reduction combine",
        "passes/lib/Transforms/IndexSetSplit.cpp",
        "  for (AffineMap piece : pieces)\n",
        "  for (AffineMap piece : pieces.drop_back(pieces.size() > 1 && !carried.empty()))\n",
    ),
    Mutant(
        "neutral element",
        "reduction combine",
        "passes/lib/Analysis/Combiners.cpp",
        "  if (auto neutral = arith::getNeutralElement(combiner))\n    return {*neutral};",
        "  if (arith::getNeutralElement(combiner))\n"
        "    return {cast<TypedAttr>(Builder(combiner).getOneAttr(combiner->getResult(0).getType()))};",
    ),
    Mutant(
        "combined pieces",
        "reduction combine",
        "lowering/lift/reductions.py",
        "functools.reduce(combine, [evaluator.value(p) for p in pieces])",
        "evaluator.value(pieces[0])",
    ),
    Mutant(
        "lifted subscript",
        "piece offset",
        "lowering/lift/evaluate.py",
        "linear_offset(subscripts, strides, self.env.shifts.get(name, ()))",
        "linear_offset(subscripts, strides, self.env.shifts.get(name, ())).as_coeff_Add()[1]",
    ),
    Mutant(
        "lifted guard",
        "guard",
        "lowering/lift/band.py",
        "        masks = [evaluator.condition(guard) for guard in nest.guards[store]]",
        "        masks = []",
    ),
    Mutant(
        "order of a comparison",
        "translation",
        "bridge/affine/translate/elementwise.py",
        "self.create(operation, [a.value, b.value], [flag], attributes)",
        "self.create(operation, [b.value, a.value], [flag], attributes)",
    ),
    Mutant(
        "selection",
        "translation",
        "bridge/affine/translate/elementwise.py",
        "[mask.value, a.value, b.value]",
        "[mask.value, b.value, a.value]",
    ),
    Mutant(
        "integer of a truth value",
        "translation",
        "bridge/affine/translate/elementwise.py",
        'return self._compare("ne", x, self._op_constant(0, x.dtype))',
        'return self._compare("gt", x, self._op_constant(0, x.dtype))',
    ),
    Mutant(
        "strict comparison",
        "translation",
        "bridge/affine/translate/elementwise.py",
        'attributes = {"predicate": ir.IntegerAttr.get(i64, predicates[name])}',
        'attributes = {"predicate": ir.IntegerAttr.get(i64, predicates[{"lt": "le", "gt": "ge"}.get(name, name)])}',
    ),
    Mutant(
        "bitwise complement",
        "translation",
        "bridge/affine/translate/elementwise.py",
        "self._op_constant(1 if x.dtype == torch.bool else -1, x.dtype)",
        "self._op_constant(1, x.dtype)",
    ),
    Mutant(
        "first extremum",
        "lift",
        "lowering/lift/reductions.py",
        "takes_a = ops.or_(better, ops.and_(tie, ops.lt(a[1], b[1])))",
        "takes_a = ops.or_(better, ops.and_(tie, ops.gt(a[1], b[1])))",
    ),
    Mutant(
        "moments",
        "lift",
        "lowering/lift/reductions.py",
        "ops.mul(ops.mul(delta, delta), ops.mul(a[2], share))",
        "ops.mul(delta, ops.mul(a[2], share))",
    ),
    Mutant(
        "terms of a softmax",
        "lift",
        "lowering/lift/reductions.py",
        'evaluator.reduce(dtype, "sum", functools.reduce(ops.add, terms))',
        'evaluator.reduce(dtype, "sum", terms[0])',
    ),
    Mutant(
        "lane numbers",
        "lift",
        "lowering/lift/lanes.py",
        "    return found[::-1]\n",
        "    return found\n",
    ),
    Mutant(
        "halves of a pair",
        "code generation",
        "lowering/triton/kernels.py",
        "key=lambda half: half.pair.half",
        "key=lambda half: -half.pair.half",
    ),
    Mutant(
        "segments",
        "code generation",
        "lowering/triton/kernels.py",
        'f"tl.reshape({kept}, {tile})"',
        'f"tl.reshape(tl.flip({kept}, 1), {tile})"',
    ),
    Mutant(
        "guarded store",
        "code generation",
        "lowering/triton/kernels.py",
        "        self.bridge_guards[id(guarded)] = _Guard(guarded, value, mask, self.current_node)\n",
        "        self.bridge_guards.pop(id(guarded), None)\n",
    ),
    Mutant(
        "independent kernels",
        "code generation",
        "bridge/horizontal/independence.py",
        "waits |= reach[makers[name]] | 1 << makers[name]",
        "waits |= reach[makers[name]]",
    ),
    Mutant(
        "sliced reduction",
        "graph pass",
        "bridge/graph_passes/slice_propagation.py",
        "return Move(((source, kept[dim]),)) if kept[dim] not in reduced else None",
        "return Move(((source, dim),)) if kept[dim] not in reduced else None",
    ),
    Mutant(
        "repeated operand",
        "graph pass",
        "bridge/graph_passes/slice_propagation.py",
        "    return None if repeated else own",
        "    return None if own < 0 else own",
    ),
    Mutant(
        "last index",
        "graph pass",
        "bridge/graph_passes/shrink_domains.py",
        "bounds = (index, sys.maxsize if index == -1 else index + 1, 1)",
        "bounds = (index, index + 1, 1)",
    ),
]

#: A program of op_db (see torture/) that each of these mutants fails, by the mutant's name.
PROGRAMS = {
    "parallel": "bitwise_or/-/i8/norm-chunk/channels-last/5",
    "dependence": "bitwise_or/-/i8/norm-chunk/channels-last/5",
    "lanes": "bitwise_or/-/i8/norm-chunk/channels-last/5",
    "partition": "logical_and/-/f32/cat/wide+sliced/5",
    "guard": "argmax/-/i64/pad/wide+channels-last/5",
    "guard start": "remainder/-/i16/live-out/expanded/3",
    "guard in a guard": "abs/-/f32/padded-rows/wide/0",
    "guarded rows": "abs/-/f32/padded-rows/wide/0",
    "symbol": "where/-/f32/turned/wide+symbolic/0",
    "guarded subscript": "where/-/f32/frames/wide/0",
    "unguarded load": "atleast_3d/-/f32/strided/wide+transposed/5",
    "lane offset": "transpose_copy/-/i32/chunk/prime/0",
    "piece offset": "log/-/i8/live-out/one-row/1",
    "masked combiner": "amax/-/f32/consumers/wide+channels-last/4",
    "piece left out": "fliplr/-/i64/cat/wide+transposed/1",
    "neutral element": "aminmax/-/i8/strided/wide+every-other/2",
    "combined pieces": "nn.functional.linear/-/i16/chunk/sliced/2",
    "lifted subscript": "nn.functional.upsample_bilinear/-/f16/chunk/every-other/1",
    "lifted guard": "deg2rad/-/i64/live-out/prime/2",
    "order of a comparison": "gt/-/i32/live-out/sliced/0",
    "selection": "nan_to_num/-/i64/strided/prime/0",
    "integer of a truth value": "logical_and/-/i32/live-out/wide/2",
    "strict comparison": "gt/-/b8/live-out/prime/4",
    "bitwise complement": "bitwise_not/-/i32/live-out/odd/0",
    "first extremum": "abs/-/i32/extremum/wide/0",
    "moments": "neg/-/f32/chunk+looped/wide/0",
    "terms of a softmax": "abs/-/f32/chunk/wide/0",
    "lane numbers": "nn.functional.adaptive_max_pool2d/-/f64/norm-chunk/wide+transposed/4",
    "halves of a pair": "t/-/f32/stack/wide/1",
    "segments": "nn.functional.adaptive_max_pool2d/-/f64/norm-chunk/wide+transposed/4",
    "guarded store": "deg2rad/-/i64/live-out/prime/2",
    "independent kernels": "nextafter/-/f32/consumers/one-row/4",
    "sliced reduction": "abs/-/f32/pooled/wide/0",
    "repeated operand": "expand/-/f32/pooled/contiguous/1",
    "last index": "select/-/f32/between/wide/7",
}
