"""Test files that repeat a failure of the passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from explained import example_inputs, gated
from exported import bridge_opt

import bridge
from bridge.affine.pipeline import run_pipeline
from bridge.reasons import Unsupported


class TestReproducer:
    PIPELINE = "builtin.module(func.func(canonicalize),transform-interpreter)"

    def test_repeats_the_failure(self, compiler, tmp_path):
        options = {"bridge.pipeline": self.PIPELINE, "dump_dir": str(tmp_path)}
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
