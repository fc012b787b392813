"""Find the values of symbolic sizes that would make the passes fuse what they have to refuse for all values."""

from __future__ import annotations

import itertools
import re

from ..affine.mlir_runtime import context, ir, passmanager

#: Symbols fixed at a time, at most: what needs more is a static compilation.
MOST_SYMBOLS = 2


def find_guards(module: str, sizes: dict[str, int], pipeline: str) -> list[str]:
    """Return conditions, each of which lets the passes make one band of the function.

    module: its text before the passes, whose arguments for sizes are labelled `bridge.size`; sizes: a typical value
    of each label.  Found by running the passes on the function with those sizes as constants: a guard is what was
    seen to work, not a guess.
    """
    symbols = sorted({symbol for label in sizes for symbol in _symbols(label)})
    if symbols and _fuses(module, {}, pipeline):
        return []  # What keeps its kernels apart is asked after the passes.
    found: list[frozenset[str]] = []
    for count in range(1, MOST_SYMBOLS + 1):
        for chosen in map(frozenset, itertools.combinations(symbols, count)):
            if any(known <= chosen for known in found):
                continue
            fixed = {label: value for label, value in sizes.items() if set(_symbols(label)) <= chosen}
            if _fuses(module, fixed, pipeline):
                found.append(chosen)
    return [_words(chosen, sizes) for chosen in found]


def _symbols(label: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*", label)


def _words(chosen: frozenset[str], sizes: dict[str, int]) -> str:
    """Return the sizes that consist of the symbols, in as few conditions as there are."""
    own = {label: value for label, value in sizes.items() if set(_symbols(label)) <= chosen}
    single = {label: value for label, value in own.items() if label in chosen}
    covers = {*single} == chosen
    return " and ".join(f"{label} == {value}" for label, value in sorted((single if covers else own).items()))


def _fuses(text: str, fixed: dict[str, int], pipeline: str) -> bool:
    with context() as known, ir.Location.unknown():
        module = ir.Module.parse(text)
        _fix(module.body.operations[0].operation, fixed)
        handler = known.attach_diagnostic_handler(lambda diagnostic: True)
        try:
            passmanager.PassManager.parse(pipeline).run(module.operation)
        except ir.MLIRError:
            return False
        finally:
            handler.detach()
        roots = [op.operation for op in module.body.operations[0].regions[0].blocks[0].operations]
        loops = [op for op in roots if op.name == "affine.for"]
        return len(loops) == 1 and "bridge.parallel" in loops[0].attributes and not _runs_once(loops[0])


def _runs_once(loop: ir.Operation) -> bool:
    """Return True for a loop of one iteration: a band of it would be a kernel of one program, which is not made."""
    return str(loop.attributes["upperBoundMap"]) == "affine_map<() -> (1)>"


def _fix(function: ir.Operation, fixed: dict[str, int]) -> None:
    """Put constants in the place of arguments for sizes."""
    block = function.regions[0].blocks[0]
    for argument, labels in zip(block.arguments, ir.ArrayAttr(function.attributes["arg_attrs"]), strict=True):
        labels = ir.DictAttr(labels)
        label = ir.StringAttr(labels["bridge.size"]).value if "bridge.size" in labels else None
        if label in fixed:
            constant = ir.Operation.create(
                "arith.constant",
                results=[ir.IndexType.get()],
                attributes={"value": ir.IntegerAttr.get(ir.IndexType.get(), fixed[label])},
                ip=ir.InsertionPoint.at_block_begin(block),
            )
            argument.replace_all_uses_with(constant.result)
