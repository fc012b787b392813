"""Test bridge.config: where options come from."""

from __future__ import annotations

import subprocess
import sys

import pytest

import bridge
from bridge.options import DEFAULTS, Options, from_environment, make_options


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in DEFAULTS:
        monkeypatch.delenv(f"BRIDGE_{name.upper()}", raising=False)


def test_has_every_option():
    assert set(bridge.config.get_config_copy()) == set(Options.names())


def test_patch_sets_defaults_of_options():
    with bridge.config.patch(max_nodes=3, training=False):
        assert make_options({}).max_nodes == 3
        assert make_options({"max_nodes": 5}) == Options(max_nodes=5, training=False)
    assert make_options({}) == Options()


def test_assignment():
    bridge.config.training = False
    try:
        assert not make_options({}).training
    finally:
        bridge.config.training = True
    assert make_options({}) == Options()


def test_config_is_above_the_environment(monkeypatch):
    monkeypatch.setenv("BRIDGE_MAX_NODES", "7")
    assert make_options({}).max_nodes == 7
    with bridge.config.patch(max_nodes=8):
        assert make_options({}).max_nodes == 8


@pytest.mark.parametrize("put", ["assign", "patch", "patch a dictionary", "patch by name"])
def test_what_no_option_can_be_is_an_error_at_once(put):
    ways = {
        "assign": lambda name, value: setattr(bridge.config, name, value),
        "patch": lambda name, value: bridge.config.patch(**{"max_nodes": 3, name: value}),
        "patch a dictionary": lambda name, value: bridge.config.patch({"max_nodes": 3, name: value}),
        "patch by name": bridge.config.patch,
    }
    with pytest.raises(bridge.OptionError, match="'strict' must be bool, got 'yes'"):
        ways[put]("strict", "yes")
    with pytest.raises(AttributeError, match="'strct'; did you mean 'strict'?"):
        ways[put]("strct", True)
    assert make_options({}) == Options()


def test_paths_are_kept_as_an_option_has_them(tmp_path):
    library = tmp_path / "lib.so"
    library.write_text("")
    with bridge.config.patch(plugins=[library]):
        assert bridge.config.plugins == (str(library),)


def test_environment_is_read_by_type(tmp_path):
    library = tmp_path / "lib.so"
    library.write_text("")
    given = {
        "BRIDGE_MAX_NODES": "12",
        "BRIDGE_TRAINING": "1",
        "BRIDGE_PIPELINE": "builtin.module()",
        "BRIDGE_STRICT": "",
    }
    assert from_environment(given) == {"max_nodes": 12, "training": True, "pipeline": "builtin.module()"}
    assert from_environment({"BRIDGE_PLUGINS": f"{library}:{library}"}) == {"plugins": (str(library), str(library))}


@pytest.mark.parametrize(("name", "text"), [("STRICT", "yes"), ("MAX_NODES", "-1")])
def test_environment_that_cannot_be_read(name, text):
    with pytest.raises(bridge.OptionError, match=f"BRIDGE_{name}.*{text}"):
        from_environment({f"BRIDGE_{name}": text})


def test_environment_of_a_process(python):
    assert python("import bridge; print(bridge.config.max_nodes)", BRIDGE_MAX_NODES="5").strip() == "5"


@pytest.mark.parametrize("value", ["lib.so", [3], ["/no/such/lib.so"]])
def test_plugins_are_paths(value):
    with pytest.raises(bridge.OptionError, match="plugins"):
        make_options({"plugins": value})


def test_import_is_light(python):
    """Check that the import loads neither torch, nor Inductor, nor MLIR; the configuration needs torch."""
    loaded = "any(name.split('.')[0] in ('torch', 'mlir', 'sympy') for name in sys.modules)"
    assert python(f"import bridge, sys; print({loaded})").strip() == "False"
    heavy = "[n for n in ('torch._inductor', 'torch._dynamo', 'mlir') if n in sys.modules]"
    assert python(f"import torch, bridge, sys; bridge.config; print({heavy})").strip() == "[]"


def test_every_public_name_is_there():
    for name in bridge.__all__:
        assert getattr(bridge, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = bridge.nonsense


@pytest.mark.in_turn(2)
def test_module_runs_as_a_program():
    done = subprocess.run([sys.executable, "-m", "bridge", "--version"], capture_output=True, text=True, check=True)
    assert bridge.__version__ in done.stdout
