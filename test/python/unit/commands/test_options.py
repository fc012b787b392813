"""Test the configuration reference that `bridge options` prints."""

from __future__ import annotations

import argparse

from bridge.commands import options
from bridge.options import Options


def section(name):
    return options.reference().partition(f"\n## `{name}`\n")[2].partition("\n## ")[0]


def test_every_option_has_one_section():
    lines = options.reference().splitlines()
    assert [line for line in lines if line.startswith("## ")] == [f"## `{name}`" for name in Options.names()]


def test_a_section_has_meaning_type_default_and_variable():
    assert section("max_accesses") == (
        "\nLeave groups alone that have more loads and stores.\n\n"
        "- type: `int`\n- default: `2048`\n- environment: `BRIDGE_MAX_ACCESSES`\n"
    )


def test_options_that_decide_nothing_say_so():
    words = "no part of the key of Inductor's caches"
    assert [name for name in Options.names() if words in section(name)] == ["dump_dir", "strict"]


def test_the_command_prints_the_reference(capsys):
    parser = argparse.ArgumentParser()
    options.register(parser)
    assert options.run(parser.parse_args([])) == 0
    assert capsys.readouterr().out == options.reference()
