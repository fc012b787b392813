"""Test the dump of a compilation: what is in it, and that it can be replayed."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import warnings
from pathlib import Path

import pytest
import torch
from functions import rows, sample

import bridge
from bridge.diagnostics.dump import Dump

NATIVE = Path(bridge.__file__).parent / "_native"


@pytest.fixture
def dumped(compiler, tmp_path):
    """Return a function that compiles `rows` with a dump and options and returns the folder of its only group."""

    def compile_and_run(folder=tmp_path / "dump", **options):
        compiled = torch.compile(rows, backend="bridge", options={"dump_dir": str(folder), **options})
        torch.testing.assert_close(compiled(sample()), rows(sample()))
        return next(folder.iterdir())

    return compile_and_run


def replay(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run replay.sh with the bridge-opt and the LLVM that belong to this Python."""
    libraries = [Path(sysconfig.get_path("platlib")) / "llvm" / "lib", os.environ.get("LD_LIBRARY_PATH", "")]
    path = f"{NATIVE / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries))}
    command = [str(folder / "replay.sh"), *arguments]
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=60)


class TestStages:
    def test_are_numbered_in_order(self, dumped):
        names = sorted(path.name for path in dumped().iterdir())
        assert names[:2] == ["00-loop-ir.txt", "01-affine.mlir"]
        assert names[-1] == "replay.sh"
        numbers = [int(name[:2]) for name in names[:-1]]
        assert numbers == list(range(len(numbers)))
        stages = [name[3:] for name in names[:-1]]
        fused = stages.index("fused.mlir")
        assert "after-bridge-fuse-bands.mlir" in stages[2:fused]
        assert all(re.fullmatch(r"after-[a-z-]+\.mlir", stage) for stage in stages[2:fused])

    def test_have_what_their_names_say(self, dumped):
        folder = dumped()
        text = {path.name[3:]: path.read_text() for path in folder.glob("0*")}
        assert "ops.load" in text["loop-ir.txt"]
        assert "affine.for" in text["affine.mlir"] and "bridge.band" not in text["affine.mlir"]
        assert "bridge.band" in text["fused.mlir"]
        assert "affine.for" in text["after-bridge-fuse-bands.mlir"]

    def test_replay_gives_the_fused_module(self, dumped):
        folder = dumped()
        done = replay(folder)
        assert done.returncode == 0, done.stderr
        (fused,) = folder.glob("*-fused.mlir")
        assert done.stdout.strip() == fused.read_text().strip()

    def test_replay_takes_more_arguments(self, dumped):
        done = replay(dumped(), "--mlir-print-ir-after-all")
        assert "IR Dump After" in done.stderr

    def test_a_pass_that_fails_leaves_those_before(self, dumped):
        pipeline = "builtin.module(func.func(canonicalize),transform-interpreter)"
        with pytest.warns(RuntimeWarning, match="pass_failed"):
            folder = dumped(**{"bridge.pipeline": pipeline})
        names = {path.name for path in folder.iterdir()}
        assert {"01-affine.mlir", "02-after-canonicalize.mlir", "replay.sh"} <= names
        assert not any("fused" in name for name in names)
        done = replay(folder)
        assert done.returncode != 0 and "transform" in done.stderr

    def test_environment_variable(self, compiler, monkeypatch, tmp_path):
        monkeypatch.setenv("BRIDGE_DUMP_DIR", str(tmp_path))
        torch.compile(rows, backend="bridge")(sample())
        assert len(list(tmp_path.glob("*/*-affine.mlir"))) == 1


class TestDump:
    def test_without_a_folder_does_nothing(self):
        dump = Dump(None, "group0")
        assert not dump.active
        assert dump.write("stage.txt", lambda: pytest.fail("made for nothing")) is None
        dump.replay("x.mlir", "builtin.module()")
        with dump.pass_tree() as tree:
            assert tree is None

    def test_passes_of_a_tree_come_in_their_order(self, tmp_path):
        dump = Dump(str(tmp_path), "group0")
        dump.write("affine.mlir", "module")
        printed = ["m/0_first.mlir", "m/f/1_0_second.mlir", "m/f/1_1_third.mlir", "m/f/1_10_last.mlir"]
        with dump.pass_tree() as tree:
            for name in reversed(printed):
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).write_text(name)
        names = sorted(path.name for path in dump.folder.iterdir())
        passes = ["01-after-first.mlir", "02-after-second.mlir", "03-after-third.mlir", "04-after-last.mlir"]
        assert names == ["00-affine.mlir", *passes]
        assert [(dump.folder / name).read_text() for name in passes] == printed

    def test_a_pipeline_is_quoted(self, tmp_path):
        dump = Dump(str(tmp_path), "group0")
        dump.replay("x.mlir", "a'b; rm -rf .")
        script = (dump.folder / "replay.sh").read_text().replace("bridge-opt", "printf '%s|'")
        command = ["sh", "-c", script, str(dump.folder / "replay.sh")]
        shown = subprocess.run(command, check=True, capture_output=True, text=True)
        assert "x.mlir|--pass-pipeline=a'b; rm -rf .|" in shown.stdout

    def test_folder_that_cannot_be_written(self, tmp_path, compiler):
        taken = tmp_path / "file"
        taken.write_text("")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dump = Dump(str(taken), "group0")
            assert dump.write("stage.txt", "text") is None
            assert not dump.active
            assert Dump(str(taken), "group1").write("stage.txt", "text") is None
        (warning,) = [w for w in caught if issubclass(w.category, RuntimeWarning)]
        assert str(taken) in str(warning.message)
