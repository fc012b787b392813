"""Test affine IR that leaves Bridge and comes back.

The ways are bridge.export, bridge.lowering.compile_affine, plug-ins, reproducers.
"""

from __future__ import annotations

import re

import pytest
import torch
from explained import example_inputs, gated
from functions import norm

import bridge
from bridge import offline
from bridge.lowering import compile_affine
from bridge.reasons import Reason, Unsupported

CPU_PASSES = "builtin.module(bridge-fuse{unroll-and-jam=true simt-target=false})"


@pytest.fixture(scope="module")
def exported():
    return bridge.export(gated, *example_inputs())


def kernels_of(program, *inputs):
    return offline.compile_for_gpu(program.run, inputs, compile_fx=program.backend).n_kernels


class TestCompileAffine:
    def test_every_nest_becomes_a_kernel(self, exported):
        program = compile_affine(exported)
        assert kernels_of(program, *example_inputs()) == 2

    def test_passes_of_the_users_choice(self, exported):
        program = compile_affine(exported, pipeline="builtin.module(bridge-fuse)")
        assert kernels_of(program, *example_inputs()) == 1
        assert "bridge.parallel" in program.module

    @pytest.mark.parametrize("pipeline", [None, CPU_PASSES], ids=["apart", "fused"])
    def test_computes_the_function(self, compiler, pipeline):
        (x,) = example_inputs()
        program = compile_affine(bridge.export(gated, x, backend_target="cpu"), pipeline=pipeline)
        (result,) = program(x)
        exact = gated(x.double())
        assert (result.double() - exact).abs().max() < 4 * (gated(x).double() - exact).abs().max()

    def test_an_edit_by_hand_counts(self, compiler, exported):
        (x,) = example_inputs()
        edited = exported.replace("bridge.special sigmoid", "math.tanh").replace("(f32) -> f32", "f32")
        edited = re.sub(r"(math\.tanh %\w+ :) f32", r"\1 f32", edited)
        (result,) = compile_affine(edited)(x)
        gate, up = norm(x).chunk(2, -1)
        torch.testing.assert_close(result, torch.tanh(gate) * up)

    def test_ir_of_another_origin(self, compiler):
        """Check IR written by hand and tiled by an upstream pass: two outputs, of which one is used again."""
        text = """
        func.func @scaled(%x: memref<32x48xf32>, %rows: memref<32xf32>, %out: memref<32x48xf32>) {
          %zero = arith.constant 0.0 : f32
          affine.for %i = 0 to 32 {
            %sum = affine.for %j = 0 to 48 iter_args(%s = %zero) -> (f32) {
              %v = affine.load %x[%i, %j] : memref<32x48xf32>
              %t = arith.addf %s, %v : f32
              affine.yield %t : f32
            }
            affine.store %sum, %rows[%i] : memref<32xf32>
          }
          affine.for %i = 0 to 32 {
            affine.for %j = 0 to 48 {
              %v = affine.load %x[%i, 47 - %j] : memref<32x48xf32>
              %s = affine.load %rows[%i] : memref<32xf32>
              %t = arith.divf %v, %s : f32
              affine.store %t, %out[%i, %j] : memref<32x48xf32>
            }
          }
          return
        }
        """
        x = torch.rand(32, 48) + 1
        program = compile_affine(text, pipeline="builtin.module(func.func(affine-loop-tile{tile-size=16}))")
        rows, out = program(x)
        torch.testing.assert_close(rows, x.sum(-1))
        torch.testing.assert_close(out, x.flip(-1) / x.sum(-1, keepdim=True))
        assert [a.name for a in compile_affine(text, outputs=["arg2"]).outputs] == ["arg2"]

    def test_a_guard_keeps_an_access_inside(self, compiler):
        """Check that a guard keeps an access in bounds: columns from the third on, and zeros beyond the last."""
        shifted = LOAD.replace("%j]", "%j + 2]")
        guarded = f"""%v = affine.if affine_set<(d0) : (-d0 + 5 >= 0)>(%j) -> f32 {{
          {shifted.replace("%v", "%w")} affine.yield %w : f32 }} else {{
          %z = arith.constant 0.0 : f32 affine.yield %z : f32 }}"""
        x = torch.randn(8, 8)
        (out,) = compile_affine(nest(f"{guarded} {STORE}").replace("%j = 1", "%j = 0"))(x)
        torch.testing.assert_close(out, torch.nn.functional.pad(x[:, 2:], (0, 2)))
        with pytest.raises(Unsupported, match=r"reads element \[\d, 8\] of argument 0") as raised:
            compile_affine(nest(f"{shifted} {STORE}"))
        assert raised.value.reason is Reason.subscript_out_of_bounds


def nest(body: str, arguments: str = "%x: memref<8x8xf32>, %out: memref<8x8xf32>") -> str:
    return f"func.func @f({arguments}) {{ affine.for %i = 0 to 8 {{ affine.for %j = 1 to 8 {{ {body} }} }} return }}"


def rows(bounds: str, added: str = "") -> str:
    """Return a function of 8 rows that adds up %t of what is `added`, or copies each element, in bounds of a loop."""
    if added:
        each = f"""%z = arith.constant 0.0 : f32
          %sum = affine.for %j = {bounds} iter_args(%s = %z) -> (f32) {{ {added} affine.yield %t : f32 }}
          affine.store %sum, %out[%i, 0] : memref<8x8xf32>"""
    else:
        each = f"affine.for %j = {bounds} {{ {LOAD} {STORE} }}"
    arguments = "%x: memref<8x8xf32>, %out: memref<8x8xf32>"
    return f"func.func @f({arguments}) {{ affine.for %i = 0 to 8 {{ {each} }} return }}"


LOAD = "%v = affine.load %x[%i, %j] : memref<8x8xf32>"
STORE = "affine.store %v, %out[%i, %j] : memref<8x8xf32>"


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (nest(f"%v = affine.load %out[%i, %j - 1] : memref<8x8xf32> {STORE}"), Reason.loop_carried_dependence),
            (nest(f"{LOAD} affine.store %v, %x[%i, 8 - %j] : memref<8x8xf32>"), Reason.loop_carried_dependence),
            (
                nest(f"{LOAD} {STORE}", "%x: memref<8x?xf32>, %out: memref<8x8xf32>").replace(
                    "[%i, %j] : memref<8x8xf32> affine", "[%i, %j] : memref<8x?xf32> affine"
                ),
                Reason.dynamic_extent,
            ),
            (
                nest(f"{LOAD} {STORE}").replace(
                    "return",
                    "affine.for %i = 0 to 8 { %z = arith.constant 0.0 : f32 "
                    "affine.store %z, %out[%i, 0] : memref<8x8xf32> } return",
                ),
                Reason.mutation,
            ),
            (
                nest("%m = memref.alloc() : memref<8x8xf32> %v = affine.load %m[%i, %j] : memref<8x8xf32> " + STORE),
                Reason.aliasing,
            ),
        ],
        ids=["scan", "mirrored", "dynamic", "stored twice", "own memory"],
    )
    def test_has_a_reason(self, text, reason):
        with pytest.raises(Unsupported) as raised:
            compile_affine(text)
        assert raised.value.reason is reason
        if reason is Reason.loop_carried_dependence:
            assert re.search(r"iteration \(\d, \d\) \w+ element \[\d, \d\]", raised.value.detail)

    @pytest.mark.parametrize(
        ("text", "arguments", "words"),
        [
            ("func.func @f(", {}, "MLIR does not take"),
            ("module {}", {}, "has no function"),
            ("func.func private @f(memref<8xf32>)", {}, "has no function"),
            ("func.func private @f(memref<8xf32>)", {"function": "f"}, "no function 'f'"),
            (nest(f"{LOAD} {STORE}"), {"function": "g"}, "no function 'g'"),
            (nest(f"{LOAD} {STORE}"), {"outputs": ["arg9"]}, "no argument 'arg9'"),
            (nest(f"{LOAD} {STORE}"), {"outputs": ["arg0"]}, "does not store"),
        ],
    )
    def test_bad_input_is_named(self, text, arguments, words):
        with pytest.raises(ValueError, match=words):
            compile_affine(text, **arguments)

    def test_what_a_lowering_cannot_lift_is_said_without_inductors_words(self):
        guarded = f"{LOAD} affine.if affine_set<(d0) : (-d0 + 5 >= 0)>(%j) {{ {STORE} }}"
        program = compile_affine(nest(guarded))
        with pytest.raises(Unsupported) as raised:
            program(torch.randn(8, 8))
        assert (raised.value.reason, raised.value.detail) == (Reason.not_liftable, "arg1: a store under a guard")

    def test_what_cannot_be_lifted_is_said_at_the_call(self, exported):
        program = compile_affine(exported.replace("arith.addf", "arith.subf", 1))
        with pytest.raises(Unsupported, match="reduction by arith.subf") as raised:
            program(*example_inputs())
        assert raised.value.reason is Reason.not_liftable

    @pytest.mark.parametrize(
        ("bounds", "words"),
        [
            ("0 to affine_map<(d0) -> (d0 + 1)>(%i)", "depends on a loop around it"),
            ("affine_map<(d0) -> (d0)>(%i) to 8", "depends on a loop around it"),
            ("0 to min affine_map<(d0) -> (d0 + 3, 8)>(%i)", "several upper bounds"),
        ],
        ids=["lower triangle", "upper triangle", "windows"],
    )
    @pytest.mark.parametrize("reduces", [True, False])
    def test_loops_of_a_triangle_or_of_windows_were_an_internal_error(self, bounds, words, reduces):
        """Check that a loop with other iterations in each of an outer loop has a reason, where it raised a KeyError."""
        text = rows(bounds, f"{LOAD} %t = arith.addf %s, %v : f32" if reduces else "")
        program = compile_affine(text)
        with pytest.raises(Unsupported, match=words) as raised:
            program(torch.randn(8, 8))
        assert raised.value.reason is Reason.not_liftable

    def test_a_triangle_by_a_guard(self):
        """Check what docs/tools.md says to write in the place of a triangle's loops."""
        guarded = f"affine.if affine_set<(d0, d1) : (d0 - d1 >= 0)>(%i, %j) -> f32 {{ {LOAD} affine.yield %v : f32 }}"
        total = f"%w = {guarded} else {{ affine.yield %z : f32 }} %t = arith.addf %s, %w : f32"
        x = torch.randn(8, 8)
        (found,) = compile_affine(rows("0 to 8", total))(x)
        torch.testing.assert_close(found[:, 0], x.tril().sum(-1))

    def test_tensors_that_do_not_fit(self, exported):
        program = compile_affine(exported)
        with pytest.raises(ValueError, match="arg0_1 is torch.float32"):
            program(torch.zeros(3, 3))
        with pytest.raises(ValueError, match="1 tensors are needed"):
            program()
