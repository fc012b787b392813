"""What Bridge's options accept, and which of a user's options are Bridge's."""

from __future__ import annotations

import os

import pytest

from bridge.options import (
    DEFAULT_PIPELINE,
    DEFAULTS,
    OptionError,
    Options,
    default_pipeline,
    from_environment,
    make_options,
    split_options,
    variable,
)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in DEFAULTS:
        monkeypatch.delenv(variable(name), raising=False)


@pytest.mark.parametrize(
    ("arguments", "passes"),
    [
        ((True, False), DEFAULT_PIPELINE),
        ((True, True), DEFAULT_PIPELINE),
        ((True, False, True), "builtin.module(bridge-fuse{excess-precision=false})"),
        ((False, False), "builtin.module(bridge-fuse{unroll-and-jam=true simt-target=false})"),
        ((False, True), "builtin.module(bridge-fuse{unroll-and-jam=true simt-target=false recompute-math=true})"),
    ],
    ids=str,
)
def test_passes_of_a_code_generator(arguments, passes):
    assert default_pipeline(*arguments) == passes


class TestSplit:
    def test_prefix_and_hyphens(self):
        given = {"bridge.training": True, "max-nodes": 3, "max-autotune": True}
        assert split_options(given, {"max_autotune"}) == ({"training": True, "max_nodes": 3}, {"max-autotune": True})
        assert split_options(None, {"max_autotune"}) == ({}, {})

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"max_nodes": 1, "bridge.max_nodes": 2}, "'max_nodes' is given twice"),
            ({"nonsense": 1}, "unknown option 'nonsense'; those of Bridge are dump_dir, "),
            ({"strict": True}, "write 'bridge.strict' for Bridge's"),
        ],
        ids=["twice", "unknown", "ambiguous"],
    )
    def test_refusals(self, given, message):
        with pytest.raises(OptionError, match=message):
            split_options(given, {"max_autotune", "strict"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("max_nodes", 0, "must be at least 1, got 0"),
        ("max_nodes", True, "must be int, got True"),
        ("training", 1, "must be bool, got 1"),
        ("dump_dir", 5, "must be str or None, got 5"),
        ("plugins", "lib.so", "must be a list of paths"),
        ("plugins", ["/nowhere/lib.so"], "there is no file '/nowhere/lib.so'"),
        ("nonsense", 1, "unknown bridge option 'nonsense'; valid: dump_dir, "),
    ],
)
def test_bad_values(name, value, message):
    with pytest.raises(OptionError, match=message):
        make_options({name: value})


def test_paths_become_text(tmp_path):
    library = tmp_path / "lib.so"
    library.write_text("")
    made = make_options({"dump_dir": tmp_path, "plugins": [library]})
    assert made == Options(dump_dir=str(tmp_path), plugins=(str(library),))


def test_environment():
    given = {"BRIDGE_TRAINING": "1", "BRIDGE_STRICT": "", "BRIDGE_PLUGINS": f"a.so{os.pathsep}b.so", "TRAINING": "0"}
    assert from_environment(given) == {"training": True, "plugins": ("a.so", "b.so")}
    with pytest.raises(OptionError, match="BRIDGE_TRAINING must be 0 or 1, got 'yes'"):
        from_environment({"BRIDGE_TRAINING": "yes"})
    with pytest.raises(OptionError, match="BRIDGE_MAX_NODES must be a number, got '-1'"):
        from_environment({"BRIDGE_MAX_NODES": "-1"})


def test_what_only_tells_decides_nothing():
    assert Options(dump_dir="/tmp/x", strict=True).deciding() == Options().deciding()
    assert set(Options.names()) - set(Options().deciding()) == {"dump_dir", "strict"}
    assert all(Options.meanings()[name] for name in Options.names())
