"""Test which loads are of what other lanes store, and which segment of the row that is."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
import torch
from ssa_values import evaluating, operations

from bridge import inductor
from bridge.lowering.lift.broadcasts import depends_on, find_broadcasts
from bridge.lowering.lift.evaluate import Evaluator
from bridge.reasons import Reason, Unsupported

BAND = """func.func @f(%x: memref<8xf32>, %y: memref<8xf32>) {{
  affine.for %i = 0 to 4 {{
    affine.for %a = 0 to {outer} {{ affine.for %b = 0 to 2 {{
      %v = affine.load %x[%a] : memref<8xf32>
      affine.store %v, %y[{stored}] : memref<8xf32> }} }}
    affine.for %c = 0 to 4 {{
      %w = affine.load %y[{loaded}] : memref<8xf32>
      %u = arith.negf %w : f32
      affine.store %u, %x[%c] : memref<8xf32> }}
  }} {{bridge.band, bridge.parallel}} return }}"""


@contextlib.contextmanager
def band(stored="%a * 2 + %b", loaded="3", outer=2, overwritten=()):
    """Yield (what is broadcast, the module, an evaluator) of a band that stores and loads at those places."""
    with evaluating(BAND.format(stored=stored, loaded=loaded, outer=outer)) as (evaluator, module):
        stores = operations(module, "affine.store")
        gone = [stores[number].operands[1] for number in overwritten]
        found = find_broadcasts(operations(module, "affine.for")[0], gone)
        yield found, module, Evaluator(replace(evaluator.env, broadcasts=found, row=8))


@pytest.mark.parametrize(
    ("accesses", "is_broadcast"),
    [
        ({}, True),
        ({"loaded": "%i + 1"}, True),
        ({"loaded": "%c"}, False),
        ({"stored": "%i"}, False),
        ({"stored": "%a", "outer": 1}, False),
        ({"overwritten": [0]}, False),
    ],
    ids=["one place", "one a row", "the lane's own", "stored at one place", "one segment", "what was there before"],
)
def test_a_broadcast_is_loaded_at_one_place_and_stored_at_several(accesses, is_broadcast):
    with band(**accesses) as (found, module, _):
        assert list(found) == [operations(module, "affine.load")[1].results[0]] * is_broadcast


def test_what_is_computed_from_a_broadcast():
    with band() as (found, module, _):
        first, second = operations(module, "affine.store")
        assert [depends_on(store.operands[0], found) for store in (first, second)] == [False, True]
        assert not depends_on(second.operands[0], {})


@pytest.mark.parametrize(
    ("accesses", "segment"),
    [
        ({}, 3),
        ({"loaded": "0"}, 0),
        ({"stored": "%a + %b * 2"}, 3),
        ({"stored": "%a + %b * 2", "loaded": "1"}, 2),
        ({"stored": "%i + %a * 2 + %b", "loaded": "%i + 2"}, 2),
    ],
    ids=["digits", "the first", "digits in another order", "its first digit", "beside the band's"],
)
def test_the_segment_that_stores_what_is_loaded(accesses, segment, monkeypatch):
    monkeypatch.setattr(inductor, "buffer_dtype", lambda name: torch.bfloat16)
    with band(**accesses) as (_, module, evaluator):
        value = evaluator.stored(operations(module, "affine.store")[1])
    assert value.startswith(f"neg(reduction(torch.float32, torch.float32, bridge_broadcast:{segment}:2, load(b1, ")


@pytest.mark.parametrize(
    ("accesses", "row"),
    [
        ({"loaded": "%i"}, 8),
        ({"loaded": "5"}, 8),
        ({"stored": "%a * 3 + %b", "loaded": "2"}, 8),
        ({"stored": "(%a * 6 + %b * 3) mod 8", "loaded": "1"}, 8),
        ({}, 10),
        ({}, None),
    ],
    ids=["another a row", "none", "between two", "not linear", "no whole segments", "under a guard"],
)
def test_a_segment_that_is_not_known_is_refused(accesses, row):
    with band(**accesses) as (_, module, evaluator):
        refusing = Evaluator(replace(evaluator.env, row=row))
        with pytest.raises(Unsupported) as raised:
            refusing.stored(operations(module, "affine.store")[1])
    assert raised.value.reason is Reason.not_liftable
