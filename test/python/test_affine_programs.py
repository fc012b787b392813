"""Affine IR that leaves Bridge and comes back: bridge.export, bridge.lowering.compile_affine, plug-ins, reproducers."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
import torch
from explained import example_inputs, gated

import bridge
from bridge import offline
from bridge.affine.pipeline import run_pipeline
from bridge.backend import bridge as bridge_backend
from bridge.lowering import compile_affine
from bridge.reasons import Reason, Unsupported

NATIVE = Path(bridge.__file__).parent / "_native"
PLUGIN = NATIVE / "examples" / "libExactReciprocals.so"
CPU_PASSES = "builtin.module(bridge-fuse{unroll-and-jam=true simt-target=false})"


@pytest.fixture(scope="module")
def exported():
    return bridge.export(gated, *example_inputs())


def kernels_of(program, *inputs):
    return offline.compile_for_gpu(program.run, inputs, compile_fx=program.backend).n_kernels


def bridge_opt(*arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess:
    libraries = [Path(sysconfig.get_path("platlib")) / "llvm" / "lib", os.environ.get("LD_LIBRARY_PATH", "")]
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries))}
    command = [NATIVE / "bin" / "bridge-opt", *arguments]
    return subprocess.run(
        command, input=stdin, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


class TestExport:
    def test_arguments_are_labelled(self, exported):
        labels = re.findall(r"memref<(\S+)> \{(.*?)\}", exported.splitlines()[1])
        assert labels == [
            ("64x1024xf32", 'bridge.buffer = "arg0_1"'),
            ("64xf32", 'bridge.buffer = "buf0"'),
            ("64x512xf32", 'bridge.buffer = "buf1", bridge.output'),
        ]

    def test_bridge_opt_takes_it(self, exported):
        done = bridge_opt("-", "--bridge-fuse", stdin=exported)
        assert done.returncode == 0 and "bridge.parallel" in done.stdout

    def test_one_kernel_alone_is_exported_too(self):
        text = bridge.export(lambda x: torch.relu(x) + 1, torch.zeros(8, 8))
        assert text.count("func.func") == 1 and "affine.store" in text

    def test_kernels_without_words_are_left_out(self):
        text = bridge.export(lambda x: ((x @ x) * 2, torch.cumsum(x, 0).relu()), torch.zeros(64, 64))
        reasons = re.findall(r"^// left out: .*\[(\w+)\]", text, re.MULTILINE)
        assert "node_not_loops" in reasons and set(reasons) <= set(Reason.__members__)
        assert text.count("func.func") >= 1

    def test_unsigned_types_are_labelled(self):
        text = bridge.export(lambda x: (x.sum(-1) * 255).to(torch.uint8), torch.zeros(8, 8))
        assert 'bridge.dtype = "uint8"' in text

    def test_locations(self):
        text = bridge.export(gated, *example_inputs(), locations=True)
        assert 'explained.py"' in text


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
        normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        gate, up = normed.chunk(2, -1)
        torch.testing.assert_close(result, torch.tanh(gate) * up)

    def test_ir_of_another_origin(self, compiler):
        """Written by hand, tiled by an upstream pass: two outputs, of which one is used again."""
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


def nest(body: str, arguments: str = "%x: memref<8x8xf32>, %out: memref<8x8xf32>") -> str:
    return f"func.func @f({arguments}) {{ affine.for %i = 0 to 8 {{ affine.for %j = 1 to 8 {{ {body} }} }} return }}"


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
            ("module {}", {}, "none"),
            (nest(f"{LOAD} {STORE}"), {"function": "g"}, "no function 'g'"),
            (nest(f"{LOAD} {STORE}"), {"outputs": ["arg9"]}, "no argument 'arg9'"),
            (nest(f"{LOAD} {STORE}"), {"outputs": ["arg0"]}, "does not store"),
        ],
    )
    def test_bad_input_is_named(self, text, arguments, words):
        with pytest.raises(ValueError, match=words):
            compile_affine(text, **arguments)

    def test_what_cannot_be_lifted_is_said_at_the_call(self, exported):
        program = compile_affine(exported.replace("arith.addf", "arith.subf", 1))
        with pytest.raises(Unsupported, match="reduction by arith.subf") as raised:
            program(*example_inputs())
        assert raised.value.reason is Reason.not_liftable

    def test_tensors_that_do_not_fit(self, exported):
        program = compile_affine(exported)
        with pytest.raises(ValueError, match="arg0_1 is torch.float32"):
            program(torch.zeros(3, 3))
        with pytest.raises(ValueError, match="1 tensors are needed"):
            program()


@pytest.mark.skipif(not PLUGIN.exists(), reason="built without BRIDGE_BUILD_EXAMPLES")
class TestPlugins:
    @pytest.mark.parametrize("isolate", [False, True], ids=["", "isolated"])
    def test_a_users_pass_takes_part(self, isolate):
        (x,) = example_inputs()

        def backend(gm, inputs):
            passes = "builtin.module(func.func(exact-reciprocals),bridge-fuse)"
            own = {"plugins": [str(PLUGIN)], "pipeline": passes, "isolate": isolate}
            return bridge_backend(gm, inputs, options=own)

        (kernel,) = offline.compile_for_gpu(gated, [x], compile_fx=backend).kernels
        (plain,) = offline.compile_for_gpu(gated, [x], compile_fx=bridge_backend).kernels
        # The mean: a division by 1024, and a multiplication by its reciprocal, which rounds the same.
        assert " / " in plain.source and " / " not in kernel.source
        assert "0.0009765625" in kernel.source

    def test_in_compile_affine(self, compiler, exported):
        (x,) = example_inputs()
        passes = "builtin.module(func.func(exact-reciprocals))"
        program = compile_affine(exported, pipeline=passes, plugins=[str(PLUGIN)])
        assert "arith.divf" in exported and "arith.divf" not in program.module
        torch.testing.assert_close(program(x)[0], gated(x))

    def test_what_is_no_plugin(self, tmp_path, exported):
        text = tmp_path / "lib.so"
        text.write_text("no library")
        with pytest.raises(Unsupported) as raised:
            compile_affine(exported, plugins=[str(text)])
        assert raised.value.reason is Reason.plugin_missing
        with pytest.raises(Unsupported) as raised:
            compile_affine(exported, plugins=[str(NATIVE / "libBridgePasses.so")])
        assert raised.value.reason is Reason.plugin_version_mismatch

    def test_content_is_part_of_the_cache_key(self, tmp_path):
        from bridge.options import make_options
        from bridge.reports import Report
        from bridge.scheduling import hook

        library, keys = tmp_path / "lib.so", []
        for content in ("one", "other"):
            library.write_text(content)
            with hook.active(make_options({"plugins": [library], "dump_dir": None}), Report()):
                keys.append(hook._Pass().key())
        assert keys[0] != keys[1]


class TestReproducer:
    PIPELINE = "builtin.module(func.func(canonicalize),transform-interpreter)"

    def test_repeats_the_failure(self, compiler, tmp_path):
        options = {"bridge.affine.pipeline": self.PIPELINE, "dump_dir": str(tmp_path)}
        with pytest.warns(RuntimeWarning, match=r"(?s)pass_failed.*to repeat: bridge-opt --run-reproducer"):
            compiler(gated, backend="bridge", options=options)(*example_inputs())
        (command,) = re.findall(r"--run-reproducer (\S+)", bridge.report().groups[0].detail)
        assert Path(command).parent.parent == tmp_path
        done = bridge_opt("--run-reproducer", command)
        assert done.returncode != 0 and "transform" in done.stderr
        assert 'pipeline: "builtin.module(' in Path(command).read_text()

    def test_without_a_dump_it_is_a_temporary_file(self, monkeypatch, tmp_path):
        from bridge.affine.mlir_runtime import context, ir
        from bridge.diagnostics.dump import Dump

        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        with context(), ir.Location.unknown():
            module = ir.Module.parse("func.func @f() { return }")
        with pytest.raises(Unsupported, match="to repeat: ") as raised:
            run_pipeline(module, self.PIPELINE, Dump(None, "group"))
        (file,) = tmp_path.iterdir()
        assert str(file) in raised.value.detail and "func.func @f" in file.read_text()
