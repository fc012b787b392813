"""Test that every file of examples/ runs."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from exported import bridge_opt
from notebook import run_cells, shown_by
from paths import ROOT

import bridge

EXAMPLES = ROOT / "examples"
PLUGIN = Path(bridge.__file__).parent / "_native" / "examples" / "libExactReciprocals.so"
NEEDS = {"transformers_model": "transformers"}

#: A whole model, as in test_models.py.
SLOW = {"transformers_model": pytest.mark.slow}

NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, ())) for name in NAMES])
def test_runs(name, compiler, monkeypatch, tmp_path, capsys):
    library = NEEDS.get(name)
    if library is not None and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    if name == "own_pass" and not PLUGIN.exists():
        pytest.skip("built without BRIDGE_BUILD_EXAMPLES")
    monkeypatch.chdir(tmp_path)
    # Not as `__main__`, which Dynamo takes for one and the same module.
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    module.main()
    assert capsys.readouterr().out


@pytest.mark.skipif(not PLUGIN.exists(), reason="built without BRIDGE_BUILD_EXAMPLES")
def test_bridge_opt_loads_the_pass_of_a_plugin():
    """Check that a plug-in's pass is registered with the MLIR of bridge-opt, not with a copy from the plug-in."""
    body = "%c = arith.constant 2.0 : f32\n%y = arith.divf %x, %c : f32\nreturn %y : f32"
    text = f"func.func @f(%x: f32) -> f32 {{\n{body}\n}}"
    passes = "--pass-pipeline=builtin.module(func.func(exact-reciprocals))"
    done = bridge_opt(f"--load-pass-plugin={PLUGIN}", passes, stdin=text)
    assert done.returncode == 0, done.stderr
    assert "arith.mulf" in done.stdout and "arith.divf" not in done.stdout


@pytest.mark.parametrize("option", ["--load-pass-plugin=libmissing.so", "--load-dialect-plugin", "--load-pass-plugin"])
def test_bridge_opt_says_in_a_line_that_a_plugin_cannot_be_loaded(option):
    """Check that bridge-opt reports a plug-in that it cannot load in one line.

    MLIR's option aborted, with a stack of addresses.
    """
    done = bridge_opt(*([option] if "=" in option else [option, __file__]), stdin="module {}")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and done.stdout == ""
    assert line.startswith("bridge-opt: error: Could not load library ")
    assert ("libmissing.so" if "=" in option else __file__) in line


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook_has_what_its_cells_print(path, compiler):
    """Check that a notebook holds what its cells print.

    Generated code differs between versions of torch: cells tagged `varies` need only print something.
    """
    for cell, printed in run_cells(json.loads(path.read_text())):
        if "varies" in cell["metadata"].get("tags", ()):
            assert printed and shown_by(cell)
        else:
            assert printed == shown_by(cell), "run test/python/support/notebook.py on it"
