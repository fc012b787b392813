"""What Bridge asks of torch.compile: versions, options, counters, and errors handed through."""

import threading
from types import SimpleNamespace

import pytest
import torch
from torch._dynamo import exc
from torch._dynamo.backends import registry
from torch._dynamo.utils import counters

from bridge.inductor import compiling


@pytest.mark.parametrize(
    ("version", "supported"),
    [("2.10.1", False), ("2.11.0", True), ("2.13.0a0+git1234567", True), ("2.14.0", False), ("3.0.0", False)],
)
def test_supported_versions_are_compared_as_numbers(monkeypatch, version, supported):
    monkeypatch.setattr(torch, "__version__", version)
    assert compiling.torch_supported() is supported


def test_backend_that_is_registered_again_stays_the_first(monkeypatch):
    monkeypatch.setattr(registry, "_COMPILER_FNS", {})
    monkeypatch.setattr(registry, "_BACKENDS", {})
    first, second = (lambda gm, inputs: gm), (lambda gm, inputs: None)
    compiling.register_once("registered_once", first)
    compiling.register_once("registered_once", second)
    assert registry._COMPILER_FNS == {"registered_once": first}


def test_unknown_option_is_refused():
    assert "max_autotune" in compiling.option_names()
    assert compiling.config_patches(None, {"max_autotune": True})["max_autotune"] is True
    with pytest.raises(RuntimeError, match="no_such_option"):
        compiling.config_patches(None, {"no_such_option": True})


def test_error_for_the_user_keeps_its_class_and_arguments():
    error = compiling.raised_by_backend(KeyError("a", 3))
    assert isinstance(error, KeyError)
    assert isinstance(error, exc.ShortenTraceback)
    assert (type(error).__name__, error.args) == ("KeyError", ("a", 3))
    assert type(error) is type(compiling.raised_by_backend(KeyError("b")))


def test_only_a_graph_break_goes_on_after_the_graph():
    assert compiling.ends_in_graph_break(SimpleNamespace(compile_subgraph_reason=SimpleNamespace(graph_break=True)))
    assert not compiling.ends_in_graph_break(
        SimpleNamespace(compile_subgraph_reason=SimpleNamespace(graph_break=False))
    )
    assert not compiling.ends_in_graph_break(SimpleNamespace())


def test_counters_lose_nothing_to_other_threads():
    before = counters["bridge"]["counted_by_threads"]

    def add():
        for _ in range(200):
            compiling.add_counters({"counted_by_threads": 2})

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counters["bridge"].pop("counted_by_threads") - before == 1600
