"""Test vLLM's own backend: a compilation for each piecewise graph and each size, and its cache."""

from __future__ import annotations

import re
import threading

import pytest
import torch
from piecewise_model import make_config, run

import bridge
from bridge import reports
from bridge.scheduling import hook
from bridge.serving import vllm as plugin


def compiled(lines) -> list[str]:
    return [line for line in lines if "not compiled" not in line]


def test_piecewise_graphs(cache, lines):
    """A line and a report for each graph and size, by layer; results are vLLM's."""
    expected, counts = run(make_config(sizes=(8,)), 8, 13, 21, layers=2)
    assert lines() == [], "nobody has asked for Bridge"
    results, ours = run(make_config(sizes=(8,), bridge={}), 8, 13, 21, layers=2)
    torch.testing.assert_close(results, expected)
    assert ours["num_backend_compilations"] == counts["num_backend_compilations"] == 6, "three graphs, two sizes"
    assert len(lines()) == 6
    assert sum("layers.0, layers.1, 1 to 2048 tokens: " in line for line in lines()) == 1
    assert sum("layers.0, layers.1, 8 tokens: " in line for line in lines()) == 1
    kernels = [re.search(r"(\d+) -> (\d+) kernels", line).groups() for line in compiled(lines())]
    assert sum(int(after) for _, after in kernels) < sum(int(before) for before, _ in kernels)
    files = list(cache.rglob("bridge/graph_*.txt"))
    assert len(files) == len(compiled(lines()))
    assert all("groups fused" in file.read_text() for file in files)


def test_equal_graphs_are_compiled_once(cache, lines):
    """The graphs of the inner layers are the same: vLLM compiles one, with Bridge as without."""
    run(make_config(bridge={}), 8, layers=3)
    assert len(lines()) == 4
    assert len(compiled(lines())) == 3


def test_on_off_and_on_again(cache, lines):
    """Over one cache folder each finds its own artifacts, and other options are something else."""
    compilations, loaded, results = [], [], []
    for additional in ({"bridge": {}}, {}, {"bridge": {}}, {}, {"bridge": {"max_nodes": 3}}):
        earlier = len(compiled(lines()))
        result, counts = run(make_config(**additional), 8)
        results += result
        compilations.append((counts["num_inductor_compiles"] > 0, len(compiled(lines())) > earlier))
        loaded.append(counts["num_aot_artifacts_loaded"])
    assert compilations == [(True, True), (True, False), (False, False), (False, False), (True, True)]
    assert loaded == [0, 0, 1, 1, 0]
    for result in results[1:]:
        torch.testing.assert_close(result, results[0])


def test_environment_asks_for_it(cache, lines, monkeypatch):
    monkeypatch.setenv("BRIDGE_VLLM", '{"max_nodes": 32}')
    config = make_config()
    assert config.additional_config[plugin.ASKED] is True
    run(config, 8)
    assert compiled(lines())


def test_the_key_has_bridge(cache, monkeypatch):
    """Its options, its version and its native library."""
    plain, on, other = (
        make_config(**given).compute_hash() for given in ({}, {"bridge": {}}, {"bridge": {"strict": True}})
    )
    assert make_config().compute_hash() == plain
    assert make_config(bridge={}).compute_hash() == on != plain
    assert other not in (plain, on)
    monkeypatch.setattr(hook, "implementation_hash", lambda: "another library")
    assert make_config(bridge={}).compute_hash() not in (plain, on)


def test_dumps_are_made_again(cache, tmp_path):
    """What is in a cache has nothing to dump."""
    for folder in ("first", "second"):
        run(make_config(bridge={"dump_dir": str(tmp_path / folder)}), 8)
        assert list((tmp_path / folder).rglob("01-affine.mlir"))


def test_a_bad_option_does_not_stop_the_server(cache, lines):
    with pytest.warns(RuntimeWarning, match="bridge is off, .*nonsense"):
        config = make_config(bridge={"nonsense": 1})
    run(config, 8)
    assert not lines()


def test_a_plugin_that_fails_does_not_stop_the_server(cache, monkeypatch, lines):
    """A compilation that fails with Bridge is done without; one warning says so."""
    expected, _ = run(make_config(), 8)

    def fails(*args):
        raise RuntimeError("a fault")

    monkeypatch.setattr(hook, "run_after_fusion", fails)
    with pytest.warns(RuntimeWarning) as warned:
        results, _ = run(make_config(bridge={}), 8)
    torch.testing.assert_close(results, expected)
    assert len([w for w in warned if "could not be compiled: " in str(w.message)]) == 1
    assert not compiled(lines())


def test_without_a_native_library(cache, monkeypatch):
    """What is missing on a machine is a warning, and the graphs are vLLM's."""
    from bridge.affine import mlir_runtime

    expected, _ = run(make_config(), 8)

    def missing():
        raise bridge.Unsupported(bridge.Reason.plugin_missing, "no library")

    monkeypatch.setattr(mlir_runtime, "load_plugin", missing)
    monkeypatch.setattr(mlir_runtime, "_contexts", threading.local())
    with pytest.warns(RuntimeWarning, match="plugin_missing"):
        results, _ = run(make_config(bridge={}), 8)
    torch.testing.assert_close(results, expected)
    assert not bridge.report().fused
    assert reports.bugs() == []
