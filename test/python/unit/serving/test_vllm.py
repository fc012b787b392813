"""Test vLLM's plug-in, with stand-ins for what it wraps; test/vllm has the tests with vLLM itself."""

from __future__ import annotations

import dataclasses
import pickle
import sys
import types
from typing import Any

import pytest
import torch
from functions import rows, sample
from torch._inductor.custom_graph_pass import CustomGraphPass

import bridge
from bridge import inductor, reports
from bridge.scheduling import hook
from bridge.serving import vllm as plugin


@dataclasses.dataclass
class Compilation:
    inductor_compile_config: dict[str, Any] = dataclasses.field(default_factory=dict)


class InductorPass(CustomGraphPass):
    """Stand for vLLM's class of passes over a graph."""


def make_modules(folder):
    """Return vLLM's modules, as far as the plug-in knows them."""

    class VllmConfig:
        def __init__(self, additional_config, compilation_config=None):
            self.additional_config = additional_config
            self.compilation_config = compilation_config or Compilation()
            self.__post_init__()

        def __post_init__(self):
            self.checked = True

    class CompilerManager:
        cache_dir = str(folder)

        def compile(self, graph, inputs, additional_inductor_config, compile_range, graph_index=0, num_graphs=1):
            with torch._inductor.config.patch(additional_inductor_config):
                return torch._inductor.compile(graph, inputs)

    names = {
        "vllm": {"envs": types.SimpleNamespace(VLLM_CACHE_ROOT=str(folder))},
        "vllm.config": {"VllmConfig": VllmConfig},
        "vllm.compilation": {},
        "vllm.compilation.backends": {"CompilerManager": CompilerManager},
        "vllm.compilation.passes": {},
        "vllm.compilation.passes.inductor_pass": {"InductorPass": InductorPass},
    }
    return {name: types.SimpleNamespace(__path__=[], **members) for name, members in names.items()}


@pytest.fixture
def vllm(tmp_path, monkeypatch):
    """Return what `make_modules` makes, in which the plug-in is registered."""
    monkeypatch.delenv("BRIDGE_VLLM", raising=False)
    monkeypatch.setattr(reports, "_warned", set())
    modules = make_modules(tmp_path)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    plugin.register()
    plugin.register()
    return types.SimpleNamespace(
        VllmConfig=modules["vllm.config"].VllmConfig,
        CompilerManager=modules["vllm.compilation.backends"].CompilerManager,
    )


@dataclasses.dataclass(frozen=True)
class Range:
    start: int
    end: int

    def is_single_size(self):
        return self.start == self.end


def compile_piece(vllm, config):
    """Compile `rows` as a piecewise graph of vLLM's, and check its result."""
    graph = torch.fx.symbolic_trace(rows)
    call = vllm.CompilerManager().compile(
        graph, [sample()], config.compilation_config.inductor_compile_config, compile_range=Range(1, 8), graph_index=2
    )
    torch.testing.assert_close(tuple(call(sample())), rows(sample()))


def test_nothing_where_nobody_asks(vllm):
    config = vllm.VllmConfig({"another": 1})
    assert config.checked and config.additional_config == {"another": 1}
    assert config.compilation_config.inductor_compile_config == {}
    assert not hasattr(vllm.CompilerManager.compile, "bridges")


def test_the_configuration_has_bridge(vllm):
    given, theirs = {"bridge": {"max_nodes": 3}}, {"size_asserts": False}
    config = vllm.VllmConfig(given, Compilation(theirs))
    assert given == {"bridge": {"max_nodes": 3}} and theirs == {"size_asserts": False}, "the user's own are not changed"
    assert config.additional_config.keys() == {"bridge", plugin.IDENTITY}
    assert config.compilation_config.inductor_compile_config.keys() == {
        "size_asserts",
        inductor.HOOK,
        inductor.GRAPH_HOOK,
    }
    config.__post_init__()
    identity = config.additional_config[plugin.IDENTITY]
    assert vllm.VllmConfig(given).additional_config[plugin.IDENTITY] == identity
    assert vllm.VllmConfig({"bridge": True}).additional_config[plugin.IDENTITY] != identity


def test_a_compilation_that_is_used_again_forgets(vllm):
    compilation = vllm.VllmConfig({"bridge": {}}).compilation_config
    vllm.VllmConfig({}, compilation)
    assert compilation.inductor_compile_config == {}


def test_a_pass_of_the_users(vllm):
    """Check that a pass of the user's over the graph stays; over the schedule there is no room for two."""
    own = object()
    config = vllm.VllmConfig({"bridge": {}}, Compilation({inductor.GRAPH_HOOK: own}))
    assert config.compilation_config.inductor_compile_config[inductor.GRAPH_HOOK] is own
    with pytest.warns(RuntimeWarning, match="a pass of its own"):
        config = vllm.VllmConfig({"bridge": {}}, Compilation({inductor.HOOK: own}))
    assert config.compilation_config.inductor_compile_config == {inductor.HOOK: own}


def test_a_wish_that_cannot_be_read(vllm):
    with pytest.warns(RuntimeWarning, match="bridge is off, .*nonsense"):
        config = vllm.VllmConfig({"bridge": {"nonsense": 1}})
    assert config.compilation_config.inductor_compile_config == {}


def test_a_configuration_of_another_form(vllm, recwarn):
    """Check a later vLLM's configuration of another form: a warning, but only where Bridge is asked for."""
    vllm.VllmConfig({}, types.SimpleNamespace())
    assert not recwarn.list
    with pytest.warns(RuntimeWarning, match="bridge is off, .*inductor_compile_config"):
        vllm.VllmConfig({"bridge": {}}, types.SimpleNamespace())


def test_a_vllm_that_is_another(monkeypatch, recwarn):
    monkeypatch.setattr(reports, "_warned", set())
    monkeypatch.setitem(sys.modules, "vllm.config", None)
    monkeypatch.delenv("BRIDGE_VLLM", raising=False)
    plugin.register()
    assert not recwarn.list
    monkeypatch.setenv("BRIDGE_VLLM", "1")
    with pytest.warns(RuntimeWarning, match="cannot be put into vLLM"):
        plugin.register()


def test_a_piecewise_graph(vllm, compiler, tmp_path):
    compile_piece(vllm, vllm.VllmConfig({"bridge": {}}))
    assert len(bridge.report().fused) == 1
    assert (tmp_path / "bridge" / "graph_3_of_1_1_to_8_tokens.txt").exists()


def test_a_process_that_is_sent_the_configuration(vllm, compiler, tmp_path):
    config = vllm.VllmConfig({"bridge": {}})
    vllm.CompilerManager.compile = vllm.CompilerManager.compile.__wrapped__
    compilation = config.compilation_config
    compilation.inductor_compile_config = pickle.loads(pickle.dumps(compilation.inductor_compile_config))
    compile_piece(vllm, config)
    assert (tmp_path / "bridge" / "graph_3_of_1_1_to_8_tokens.txt").exists()


def test_a_graph_that_fails_with_bridge(vllm, compiler, monkeypatch):
    def fails(*args):
        raise RuntimeError("a fault")

    monkeypatch.setattr(hook, "run_after_fusion", fails)
    with pytest.warns(RuntimeWarning, match="bridge leaves graph 3 of 1.*could not be compiled: .*a fault"):
        compile_piece(vllm, vllm.VllmConfig({"bridge": {}}))
    with pytest.raises(Exception, match="a fault"):
        compile_piece(vllm, vllm.VllmConfig({"bridge": {"strict": True}}))


def test_arguments_that_are_others(vllm, compiler):
    """Check that the hooks work where a later vLLM passes other arguments."""
    plugin.watch_compilations()
    config = vllm.VllmConfig({"bridge": {}})
    graph, options = torch.fx.symbolic_trace(rows), config.compilation_config.inductor_compile_config
    vllm.CompilerManager().compile(graph, [sample()], options, compile_range=None)
    assert len(bridge.report().fused) == 1
