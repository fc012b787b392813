"""Test passes of a user's plug-in in Bridge's pipeline."""

from __future__ import annotations

import pytest
import torch
from explained import example_inputs, gated
from exported import NATIVE

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.lowering import compile_affine
from bridge.reasons import Reason, Unsupported

PLUGIN = NATIVE / "examples" / "libExactReciprocals.so"


@pytest.fixture(scope="module")
def exported():
    return bridge.export(gated, *example_inputs())


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

    @pytest.mark.in_turn(2)
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
