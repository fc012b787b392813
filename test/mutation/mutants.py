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
        "      guarded && doesNothingElsewhere(guarded))",
        "      guarded)",
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
        "prover.less_equal(span[1], size - 1) for span in above)",
        "prover.less_equal(span[1], size) for span in above)",
    ),
    Mutant(
        "padded strides",
        "legality check",
        "bridge/affine/translate/access.py",
        "        return value // divisor\n",
        "        return -(-value // divisor)\n",
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
        "passes/lib/Transforms/PadExtents.cpp",
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
        "zip(subscripts, strides, strict=True)), sympy.Integer(0)))",
        "zip(subscripts, strides, strict=True)), sympy.Integer(0))).as_coeff_Add()[1]",
    ),
    Mutant(
        "lifted guard",
        "guard",
        "lowering/lift/band.py",
        "        masks = [evaluator.condition(guard) for guard in nest.guards[store]]",
        "        masks = []",
    ),
    Mutant(
        "signed comparison",
        "translation",
        "bridge/affine/translate/elementwise.py",
        '"signed": ("arith.cmpi", table.SIGNED_PREDICATES),',
        '"signed": ("arith.cmpi", table.UNSIGNED_PREDICATES),',
    ),
    Mutant(
        "selection",
        "translation",
        "bridge/affine/translate/elementwise.py",
        "[mask.value, a.value, b.value]",
        "[mask.value, b.value, a.value]",
    ),
    Mutant(
        "rounding to integers",
        "translation",
        "bridge/affine/translate/elementwise.py",
        "return self._cast(Typed(rounded, x.dtype), dtype)",
        "return self._cast(x, dtype)",
    ),
    Mutant(
        "strict comparison",
        "translation",
        "bridge/affine/ops_table.py",
        'FLOAT_PREDICATES = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}',
        'FLOAT_PREDICATES = {"eq": 1, "gt": 3, "ge": 2, "lt": 4, "le": 5, "ne": 13}',
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
        "        self.bridge_guards[id(guarded)] = guarded, mask\n",
        "        self.bridge_guards.pop(id(guarded), None)\n",
    ),
    Mutant(
        "independent kernels",
        "code generation",
        "bridge/horizontal/candidates.py",
        "    if any(reach[position] >> m & 1 for m in members):\n        return False\n",
        "",
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
    "guard start": "remainder/-/i16/live-out/expanded/3",
    "piece offset": "log/-/i8/live-out/one-row/1",
    "masked combiner": "amax/-/f32/consumers/wide+channels-last/4",
    "piece left out": "fliplr/-/i64/cat/wide+transposed/1",
    "combined pieces": "nn.functional.linear/-/i16/chunk/sliced/2",
    "lifted subscript": "nn.functional.upsample_bilinear/-/f16/chunk/every-other/1",
    "selection": "nan_to_num/-/i64/strided/prime/0",
    "bitwise complement": "bitwise_not/-/i32/live-out/odd/0",
    "halves of a pair": "t/-/f32/stack/wide/1",
}
