"""Test the checks by mutation: what is broken on purpose, between the passes or in the lift, is seen by those that can.

test/mutation/ does the same to the C++ code, with a build for each.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable

import pytest
import torch
import validate
from functions import norm
from fuzz import ROUNDING, error
from index_maps import complaints, run
from paths import ROOT

import bridge
from bridge.affine import isolation, pipeline
from bridge.affine.isl_verifier import Recheck
from bridge.affine.mlir_runtime import context, ir
from bridge.lowering.lift import evaluate, reductions
from bridge.reasons import InvariantError, Reason


def halves(x):
    """Compute a reduction in two pieces, and a gate."""
    gate, up = norm(x).chunk(2, dim=-1)
    return torch.sigmoid(gate) * up


def tail(x, weight):
    """Store a norm under a guard, beside a load that needs one."""
    x = norm(x)
    return x, weight * x[:, 24:]


def own_row(x):
    return torch.sigmoid(x[:, :32] - x.sum(-1, keepdim=True)), x.amax(-1)


def mirrored(x):
    """Compute row i from row 6 - i: the kernels must stay apart."""
    return torch.sigmoid(x[:, :32] - x.sum(-1, keepdim=True).flip(0))


def other_segment(x):
    """Multiply by a sum that another lane reduces."""
    x = x.unflatten(-1, (2, 32))
    return x * x.sum(-1, keepdim=True).flip(1)


def other_lane(x):
    """Read a value that another lane stores."""
    x = torch.relu(x) + x.mean(-1, keepdim=True)
    return x, 2 * x.flip(-1), x[:, 1:33] * 3


def shifted_rows(x):
    """Share a band but for one row, with parts that overlap."""
    x = x / (1 + x.abs().amax(-1, keepdim=True))
    return x[1:, :48] * 2, x[:, 16:] + 1


def part_of_row(x):
    """Add up a part of the row, in lanes that all have an element."""
    part = x[:, 8:48]
    return x * x.amax(-1, keepdim=True), part * part.sum(-1, keepdim=True)


def two_elements(x):
    """Read one element each, by as many readers as the row has parts."""
    return torch.sigmoid(x.sum(-1, keepdim=True) + x[:, :1].expand(-1, 32)) * x[:, 1:2]


#: Programs that what is broken would make wrong kernels of: legal fusions, and what is none.
FUNCTIONS = [halves, tail, own_row, mirrored, other_segment, other_lane, shifted_rows, part_of_row, two_elements]


def red(function: Callable) -> set[str]:
    """Return which checks find something."""
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator) for shape in ((7, 64), (40,))]
    inputs = inputs[: function.__code__.co_argcount]
    found, touched, buffers = run(function, inputs)
    results = [buffers[name] for name, *_ in found.outputs]
    layouts = [layout for _, *layout in found.outputs]
    expected = function(*[t.double() for t in inputs])
    expected = expected if isinstance(expected, tuple) else (expected,)
    results = [torch.as_strided(t, *layout) for t, layout in zip(results, layouts, strict=True)]
    checks = {
        "isl": not all(map(_proven, found.groups)),
        "execution": any(map(validate.differences, found.groups)),
        "index maps": bool(complaints(found, touched, buffers)),
        "numerics": any(error(r, e) > ROUNDING[torch.float32] for r, e in zip(results, expected, strict=True)),
    }
    return {name for name, finds in checks.items() if finds}


def _proven(group: validate.Group) -> bool:
    try:
        with context(), ir.Location.unknown():
            recheck, after = Recheck(ir.Module.parse(group.before)), ir.Module.parse(group.after)
            return bool(recheck.verify(after))
    except InvariantError:
        return False


@pytest.fixture
def rewrite(monkeypatch):
    """Return a function that changes the IR that the passes get, and the IR that the lift gets."""

    def patch(after: tuple[str, str], before: tuple[str, str] | None = None) -> None:
        transform = pipeline.transform

        def rewritten(module, passes, tree=None):
            if before is not None:
                isolation._replace(module, _replaced(str(module), *before))
            remarks = transform(module, passes, tree)
            isolation._replace(module, _replaced(str(module), *after))
            return remarks

        monkeypatch.setattr(pipeline, "transform", rewritten)

    return patch


def _replaced(text: str, old: str, new: str) -> str:
    changed, count = re.subn(old, new, text)
    assert count, text
    return changed


@pytest.mark.one_in(2)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_is_found_where_nothing_is_broken(function):
    assert red(function) == set()


def test_legality_check(rewrite):
    """Check that a wrong legality check is found: as if the passes did not see that a row needs another's sum."""
    mirror = r"(affine.load %arg\d+\[)-(%arg\d+) \+ 6(\] : memref<7xf32>)"
    rewrite(before=(mirror, r"\1\2\3"), after=(r"(affine.load %arg\d+\[)(%arg\d+)(\] : memref<7xf32>)", r"\1-\2 + 6\3"))
    assert red(mirrored) >= {"isl", "execution", "numerics"}


@pytest.mark.parametrize(("old", "new"), [(r"d0 - 24 >= 0", "d0 - 25 >= 0"), (r"d0 - 24 >= 0", "d0 - 23 >= 0")])
def test_guard(rewrite, old, new):
    rewrite(after=(old, new))
    assert red(tail) >= {"isl", "execution", "index maps"}


def test_piece_offset(rewrite):
    rewrite(after=(r"\+ 32\] : memref<7x64xf32>", "+ 31] : memref<7x64xf32>"))
    assert red(halves) == {"execution", "index maps", "numerics"}


def test_piece_offset_in_the_lift(monkeypatch):
    location = evaluate.Evaluator.location

    def shifted(self, operation, first_operand):
        name, index = location(self, operation, first_operand)
        return name, index.subs(32, 31)

    monkeypatch.setattr(evaluate.Evaluator, "location", shifted)
    assert red(halves) == {"index maps", "numerics"}


def test_reduction_combine(rewrite):
    """Check that a wrong combination is found: a piece is added twice, and another not at all."""
    twice = r"(arith.addf %arg\d+, )(%\d+)( : f32[^}]*?arith.addf %\d+, )%\d+( : f32\n\s+affine.yield)"
    rewrite(after=(twice, r"\1\2\3\2\4"))
    assert red(halves) == {"execution", "numerics"}


def test_reduction_by_what_is_no_reduction(rewrite):
    """Check that the lift refuses a loop that is no reduction, so that the kernels are Inductor's."""
    rewrite(after=(r"arith.addf (%\d+), (%\d+)( : f32\n\s+affine.yield)", r"arith.subf \1, \2\3"))
    assert red(halves) == {"execution"}
    assert bridge.report().groups[0].reason is Reason.not_liftable


def test_reduction_combine_in_the_lift(monkeypatch):
    pieces = reductions._pieces
    monkeypatch.setattr(reductions, "_pieces", lambda *arguments: pieces(*arguments)[:1])
    assert red(halves) == {"numerics"}


def test_mutants_of_the_sources_apply(monkeypatch):
    """Check that what test/mutation/ replaces is in the sources, once: else it would have nothing to break."""
    monkeypatch.syspath_prepend(ROOT / "test" / "mutation")
    mutants = importlib.import_module("mutants").MUTANTS
    found = {mutant.name: (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) for mutant in mutants}
    assert len(found) > 10 and set(found.values()) == {1}, found
