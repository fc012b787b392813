"""Test what is read off an affine function that no scheduler made: arguments, nests and loads; and what is refused."""

from __future__ import annotations

import re

import pytest
import torch

from bridge.lowering.affine_import.standalone import read_function
from bridge.reasons import Reason, Unsupported


def function(body, x="%x: memref<4x8xf32>", out="%out: memref<4x8xf32>"):
    return f"func.func @f({x}, %mid: memref<4x8xf32>, {out}) {{ {body} return }}"


def copy(source, target):
    return f"""affine.for %i = 0 to 4 {{ affine.for %j = 0 to 8 {{
      %v = affine.load %{source}[%i, %j] : memref<4x8xf32>
      affine.store %v, %{target}[%i, %j] : memref<4x8xf32> }} }} """


TWICE = copy("x", "mid") + copy("mid", "out")


def test_arguments_and_nests():
    read = read_function(function(TWICE))
    assert (read.inputs, read.outputs) == ([0], [1, 2])
    assert (read.nests, read.reads) == ([[1], [2]], [[0], [1]])
    assert {(a.shape, a.dtype) for a in read.arguments} == {((4, 8), torch.float32)}


def test_labels_name_the_arguments_and_what_is_returned():
    labelled = function(TWICE, out='%out: memref<4x8xf32> {bridge.buffer = "buf7", bridge.output}')
    read = read_function(labelled)
    assert [a.name for a in read.arguments] == ["arg0", "arg1", "buf7"]
    assert read.outputs == [2]
    assert read_function(labelled, outputs=["arg1"]).outputs == [1]


def test_the_key_is_of_the_meaning_not_of_the_spelling():
    key = read_function(function(TWICE)).key
    assert read_function(function(TWICE).replace("%mid", "%between").replace("{", "{\n")).key == key
    assert read_function(function(copy("x", "out"))).key != key


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (copy("mid", "out") + copy("x", "mid"), Reason.mutation),
        ("%v = arith.constant 0.0 : f32 affine.store %v, %out[0, 0] : memref<4x8xf32>", Reason.unsupported_op),
    ],
    ids=["read before it is defined", "outside of the nests"],
)
def test_other_functions_are_refused(body, reason):
    with pytest.raises(Unsupported) as raised:
        read_function(function(body))
    assert raised.value.reason is reason


@pytest.mark.parametrize("bounds", ["0 to 0", "5 to 5", "3 to 1"])
def test_a_loop_without_iterations_is_refused(bounds):
    """Check that a loop without iterations is refused: torch failed with `Invalid ranges [0:-1]`."""
    empty = read_function(function(copy("x", "out").replace("0 to 4", bounds)))
    with pytest.raises(Unsupported, match="a loop without iterations"):
        empty.lift(["a", "b", "c"], True, lambda registers: False)


def test_bands_are_lifted_under_the_names_of_the_buffers():
    bands = read_function(function(TWICE)).lift(["a", "b", "c"], True, lambda registers: False)
    assert [[node.name for node in band.nodes] for band in bands] == [["arg1"], ["arg2"]]
    assert [node.iter_sizes for band in bands for node in band.nodes] == [[4, 8], [4, 8]]


def rows(body, loop="%j = 0 to 8"):
    return function(f"affine.for %i = 0 to 4 {{ affine.for {loop} {{ {body} }} }}")


LOAD, STORE = "%v = affine.load %x[%i, %j] : memref<4x8xf32>", "affine.store %v, %out[%i, %j] : memref<4x8xf32>"
GUARD = "affine.if affine_set<(d0) : (-d0 + 4 >= 0)>(%j)"


@pytest.mark.parametrize(
    ("text", "example"),
    [
        (rows(LOAD.replace("%j", "%j + 3") + STORE), "(3, 5) reads element [3, 8] of argument 0"),
        (rows(LOAD.replace("%i", "%i - 1") + STORE), "(0, 0) reads element [-1, 0] of argument 0"),
        (rows(LOAD + STORE.replace("%i", "%i * 2")), "(3, 0) writes element [6, 0] of argument 2"),
        (rows(LOAD + f"{GUARD} {{ {STORE.replace('%j', '%j + 4')} }}"), "(3, 4) writes element [3, 8] of argument 2"),
        (rows(LOAD.replace("%j", "%j floordiv 2 + 5") + STORE), "(3, 7) reads element [3, 8] of argument 0"),
    ],
    ids=["offset", "negative", "stride", "guard", "division"],
)
def test_an_access_outside_of_its_memref_is_refused_with_an_iteration(text, example):
    for pipeline in (None, "builtin.module(bridge-fuse)"):
        with pytest.raises(Unsupported) as raised:
            read_function(text, pipeline=pipeline)
        assert raised.value.reason is Reason.subscript_out_of_bounds
        assert f"iteration {example}" in raised.value.detail


@pytest.mark.parametrize(
    "text",
    [
        rows(LOAD + f"{GUARD} {{ {STORE.replace('%j', '%j + 3')} }}"),
        rows(f"{GUARD} {{ }} else {{ {LOAD.replace('%j', '%j - 5')} {STORE} }}"),
        rows(LOAD.replace("%j", "(%j * 3) mod 8") + STORE),
        rows(LOAD.replace("%j", "%j + 100") + STORE, loop="%j = 3 to 3"),
    ],
    ids=["guard", "else", "remainder", "no iterations"],
)
def test_an_access_that_is_always_inside_is_read(text):
    assert read_function(text).nests == [[2]]


@pytest.mark.parametrize("pipeline", [None, "builtin.module(func.func(affine-loop-tile{tile-size=2}))"])
def test_a_refusal_names_the_iterations_of_the_module_as_it_was_given(pipeline):
    """Check that a refusal names iterations of the given module, not of the normalised or tiled loops."""
    outside = rows(LOAD + STORE, loop="%j = 2 to 10 step 3")
    with pytest.raises(Unsupported, match=re.escape("iteration (3, 8) reads element [3, 8] of argument 0")):
        read_function(outside, pipeline=pipeline)
    carried = rows(LOAD.replace("%x[%i, %j]", "%out[%i, %j - 3]") + STORE, loop="%j = 4 to 8 step 3")
    with pytest.raises(Unsupported, match=re.escape("iteration (3, 4) writes element [3, 4] of argument 2")) as raised:
        read_function(carried, pipeline=pipeline)
    assert raised.value.reason is Reason.loop_carried_dependence
