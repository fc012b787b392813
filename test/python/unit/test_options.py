"""Test what Bridge's options accept, and which of a user's options are Bridge's."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

from bridge import options
from bridge.options import (
    DEFAULT_PIPELINE,
    DEFAULTS,
    OTHER_VARIABLES,
    OptionError,
    Options,
    default_pipeline,
    from_environment,
    make_options,
    read_option,
    split_options,
    variable,
)

LOOP_NESTS = "unroll-and-jam=true simt-target=false"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in DEFAULTS:
        monkeypatch.delenv(variable(name), raising=False)


@pytest.mark.parametrize(
    ("arguments", "passes"),
    [
        ((True, False), DEFAULT_PIPELINE),
        ((True, True), "builtin.module(bridge-fuse{recompute-draws=true})"),
        ((True, False, True), "builtin.module(bridge-fuse{excess-precision=false})"),
        ((True, False, False, False), "builtin.module(bridge-fuse{rows-of-segments=false})"),
        ((False, False, False, False), f"builtin.module(bridge-fuse{{{LOOP_NESTS}}})"),
        ((False, False), "builtin.module(bridge-fuse{unroll-and-jam=true simt-target=false})"),
        (
            (False, True),
            f"builtin.module(bridge-fuse{{{LOOP_NESTS} recompute-math=true recompute-draws=true}})",
        ),
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
            ({"nonsense": 1}, "unknown option 'nonsense'; those of Bridge are concatenate_slices, "),
            ({"strct": 1}, "unknown option 'strct'; did you mean 'strict'?"),
            ({"max_autotun": 1}, "did you mean 'max_autotune'?"),
            ({"strict": True}, "write 'bridge.strict' for Bridge's"),
            (["strict"], r"options must be a dict like {'strict': True}, got \['strict'\]"),
            ({3: True}, "options must be a dict"),
        ],
        ids=["twice", "unknown", "misspelt", "misspelt of Inductor", "ambiguous", "a list", "a number's"],
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
        ("nonsense", 1, "unknown bridge option 'nonsense'; valid: concatenate_slices, "),
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


def test_environment(tmp_path):
    files = str(tmp_path / "a.so"), str(tmp_path / "b.so")
    for file in files:
        Path(file).write_text("")
    given = {"BRIDGE_TRAINING": "1", "BRIDGE_STRICT": "", "BRIDGE_PLUGINS": os.pathsep.join(files), "TRAINING": "0"}
    assert from_environment(given) == {"training": True, "plugins": files}
    with pytest.raises(OptionError, match="BRIDGE_TRAINING must be 0 or 1, got 'yes'"):
        from_environment({"BRIDGE_TRAINING": "yes"})
    with pytest.raises(OptionError, match="BRIDGE_MAX_NODES must be a number, got '-1'"):
        from_environment({"BRIDGE_MAX_NODES": "-1"})


@pytest.mark.parametrize(("name", "text", "words"), [("MAX_NODES", "0", "at least 1"), ("PLUGINS", "no.so", "no file")])
def test_a_variable_with_a_value_that_no_option_can_have_is_an_error_at_once(name, text, words):
    with pytest.raises(OptionError, match=f"variable BRIDGE_{name}: .*{words}"):
        from_environment({f"BRIDGE_{name}": text})


@pytest.mark.parametrize(
    ("name", "meant"), [("STRCT", "STRICT"), ("MAXNODES", "MAX_NODES"), ("PLUGIN", "PLUGINS"), ("strict", "STRICT")]
)
def test_a_misspelt_variable_is_an_error(name, meant):
    with pytest.raises(OptionError, match=f"variable BRIDGE_{name}; did you mean BRIDGE_{meant}?"):
        from_environment({f"BRIDGE_{name}": "1"})


def test_other_variables_are_named_once_and_ignored():
    """Check that other variables are named once and ignored: a service called `bridge` gives containers such ones."""
    options._say_that_it_is_ignored.cache_clear()
    with pytest.warns(RuntimeWarning, match="BRIDGE_SERVICE_HOST"):
        assert from_environment({"BRIDGE_SERVICE_HOST": "10.0.0.1"}) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_environment({"BRIDGE_SERVICE_HOST": "10.0.0.1"}) == {}, "said before"
        assert from_environment(dict.fromkeys(OTHER_VARIABLES, "x") | {"ABRIDGE_STRCT": "1"}) == {}


def test_an_option_of_the_command_line():
    assert read_option("max-nodes", "3") == ("max_nodes", 3)
    assert read_option("bridge.strict", "1") == ("strict", True)
    assert read_option("dump_dir", "a=b") == ("dump_dir", "a=b")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("strct", "1", "'strct'; did you mean 'strict'?"),
        ("strict", "yes", "'strict' must be 0 or 1, got 'yes'"),
        ("max_nodes", "0", "at least 1"),
        ("max_nodes", "many", "must be a number"),
        ("plugins", "/nowhere/lib.so", "no file '/nowhere/lib.so'"),
    ],
)
def test_an_option_of_the_command_line_that_cannot_be(name, text, words):
    with pytest.raises(OptionError, match=words):
        read_option(name, text)


def test_what_only_tells_decides_nothing():
    assert Options(dump_dir="/tmp/x", strict=True).deciding() == Options().deciding()
    assert set(Options.names()) - set(Options().deciding()) == {"dump_dir", "strict"}
    assert all(Options.meanings()[name] for name in Options.names())
