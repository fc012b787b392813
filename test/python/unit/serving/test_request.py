"""Test what asks for Bridge in a server."""

from __future__ import annotations

import pytest

from bridge import OptionError, Options
from bridge.serving.request import requested


@pytest.mark.parametrize("configured", [True, {}])
def test_asked_for_with_the_defaults(configured):
    assert requested("BRIDGE_VLLM", configured) == Options()


def test_asked_for_with_options():
    assert requested("BRIDGE_VLLM", {"max_nodes": 3}) == Options(max_nodes=3)


def test_not_asked_for(monkeypatch):
    monkeypatch.setenv("BRIDGE_VLLM", "1")
    assert requested("BRIDGE_VLLM", False) is None, "the configuration counts before the environment"
    monkeypatch.delenv("BRIDGE_VLLM")
    assert requested("BRIDGE_VLLM") is None


@pytest.mark.parametrize(
    ("text", "options"),
    [("1", Options()), ("true", Options()), ('{"strict": true}', Options(strict=True)), ("", None), ("0", None)],
)
def test_the_environment(text, options, monkeypatch, recwarn):
    monkeypatch.setenv("BRIDGE_VLLM", text)
    assert requested("BRIDGE_VLLM") == options
    assert not recwarn.list, "the variable is not taken for an option's"


@pytest.mark.parametrize("text", ["yes", "[1]", '"on"'])
def test_an_environment_that_cannot_be_read(text, monkeypatch):
    monkeypatch.setenv("BRIDGE_VLLM", text)
    with pytest.raises(OptionError, match=r"BRIDGE_VLLM|braces"):
        requested("BRIDGE_VLLM")


def test_options_that_there_are_not():
    with pytest.raises(OptionError, match="nonsense"):
        requested("BRIDGE_VLLM", {"nonsense": 1})
    with pytest.raises(OptionError, match="braces"):
        requested("BRIDGE_VLLM", "on")
