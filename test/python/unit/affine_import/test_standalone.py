"""What is read off an affine function that no scheduler made: arguments, nests and loads; and what is refused."""

from __future__ import annotations

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


def test_bands_are_lifted_under_the_names_of_the_buffers():
    bands = read_function(function(TWICE)).lift(["a", "b", "c"], True, lambda registers: False)
    assert [[node.name for node in band.nodes] for band in bands] == [["arg1"], ["arg2"]]
    assert [node.iter_sizes for band in bands for node in band.nodes] == [[4, 8], [4, 8]]
