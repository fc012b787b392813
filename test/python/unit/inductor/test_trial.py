"""What Inductor would make of a graph: found on a copy, and nothing is left of it."""

import warnings

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import config, metrics
from torch._inductor.debug import DebugContext
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from bridge.inductor import trial


@pytest.fixture
def mode():
    return FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True)


@pytest.fixture
def graph(mode):
    """Two products of 32 by 32; each tensor has 4096 bytes."""
    with mode:
        return make_fx(lambda x: (x @ x) @ x)(torch.empty(32, 32)).graph


def test_copy_of_a_graph_leaves_the_graph_as_it_is(graph):
    graph.owning_module.meta["noted"] = 1
    before = [node.name for node in graph.nodes]
    copy = trial.copied(graph)
    assert copy.owning_module is not graph.owning_module
    copy.erase_node(next(iter(reversed(copy.nodes))))
    copy.owning_module.meta["noted"] = 2
    assert [node.name for node in graph.nodes] == before
    assert graph.owning_module.meta["noted"] == 1


def test_peak_of_a_graph_is_found_and_nothing_counted(graph, mode):
    before, generated = dict(counters["inductor"]), metrics.generated_kernel_count
    with V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
        assert trial.estimated_peak(graph, inference=True) == 12288
    assert (dict(counters["inductor"]), metrics.generated_kernel_count) == (before, generated)


def test_trial_measures_nothing_and_ends_with_an_error_too():
    with config.patch(benchmark_fusion=True), pytest.raises(RuntimeError, match="stop"), trial.apart(None):
        assert trial.running.get()
        assert not config.benchmark_fusion
        metrics.generated_kernel_count += 1
        generated = metrics.generated_kernel_count
        raise RuntimeError("stop")
    assert not trial.running.get()
    assert metrics.generated_kernel_count == generated - 1


def test_options_have_the_names_that_this_torch_has_for_them():
    """Torch 2.15 warns of `benchmark_epilogue_fusion`, which it calls `benchmark_template_fusion`."""
    with warnings.catch_warnings(), config.patch(max_autotune=True):
        warnings.simplefilter("error")
        with trial.apart(None):
            assert not config.max_autotune
    assert len(trial.no_measurements()) == 6


def test_guards_are_suppressed_only_in_the_block(mode):
    env = mode.shape_env
    with trial.apart(env):
        assert env._suppress_guards_tls()
    assert not env._suppress_guards_tls()


def test_counts_are_put_back_to_what_they_were():
    counters["inductor"]["counted"] = 2
    restore = trial.counts_restored()
    counters["inductor"]["counted"] += 5
    counters["inductor"]["new"] += 1
    restore()
    assert counters["inductor"].pop("counted") == 2
    assert "new" not in counters["inductor"]
