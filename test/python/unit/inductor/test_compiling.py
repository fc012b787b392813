"""Test what Bridge asks of torch.compile: versions, options, counters, and errors handed through."""

import threading
from types import SimpleNamespace

import pytest
import torch
from torch._dynamo import exc
from torch._dynamo.backends import registry
from torch._dynamo.utils import counters

from bridge.inductor import compiling, inventory


@pytest.fixture
def differences(monkeypatch):
    """Return what a newer torch is said to have in another form, and the releases that were asked about."""
    found: list[str] = []
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(inventory, "moved", lambda release: asked.append(release) or found)
    compiling._obstacle_in_newer.cache_clear()
    yield found, asked
    compiling._obstacle_in_newer.cache_clear()


@pytest.mark.parametrize("version", ["2.11.0+cu130", "2.12.1", "2.13.0a0+git1234567", "2.14.1", "2.15.0"])
def test_torch_that_was_tested_works_and_nothing_is_compared(monkeypatch, differences, version):
    monkeypatch.setattr(torch, "__version__", version)
    assert compiling.torch_obstacle() is None
    assert differences[1] == []


@pytest.mark.parametrize("version", ["2.10.1", "1.13.0"])
def test_older_torch_does_not_work(monkeypatch, differences, version):
    monkeypatch.setattr(torch, "__version__", version)
    assert f"torch {version} is older" in compiling.torch_obstacle()


@pytest.mark.parametrize("version", ["2.16.0", "2.16.0.dev20260101+cpu", "3.0.0"])
def test_newer_torch_of_the_same_form_works_with_one_line_of_log(monkeypatch, differences, caplog, version):
    monkeypatch.setattr(torch, "__version__", version)
    assert [compiling.torch_obstacle(), compiling.torch_obstacle()] == [None, None]
    (said,) = caplog.messages
    assert version in said and compiling.tested_versions() in said


def test_newer_torch_of_another_form_does_not_work_and_is_told_why(monkeypatch, differences, caplog):
    differences[0].append("torch._inductor.scheduler.Scheduler.codegen is gone")
    monkeypatch.setattr(torch, "__version__", "2.16.0")
    assert compiling.torch_obstacle().endswith("torch._inductor.scheduler.Scheduler.codegen is gone")
    assert caplog.messages == []


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
