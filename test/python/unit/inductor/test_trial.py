"""Tell what Inductor would make of a graph: found on a copy, and nothing is left of it."""

import warnings
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted
from torch._dynamo.utils import counters
from torch._inductor import config, metrics
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.sizevars import SizeVarAllocator
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Interpreter
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.inductor import trial


@pytest.fixture
def mode():
    return FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True)


@pytest.fixture
def graph(mode):
    """Return a graph of two products of 32 by 32; each tensor has 4096 bytes."""
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
        assert trial.Trials(inference=True).estimate(graph).peak == 12288
    assert (dict(counters["inductor"]), metrics.generated_kernel_count) == (before, generated)


def simplified_in_trials(function, mode, monkeypatch, *inputs):
    """Return how many indices each of two trials of a function's graph has simplified."""
    made, simplify = [0], SizeVarAllocator._simplify_with_ranges

    def counted(*arguments):
        made[-1] += 1
        return simplify(*arguments)

    monkeypatch.setattr(SizeVarAllocator, "_simplify_with_ranges", counted)
    graph, trials = make_fx(function)(*inputs).graph, trial.Trials(inference=True)
    with V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
        peaks = [(trials.estimate(graph), made.append(0)) for _ in range(2)]
    assert peaks[0] == peaks[1]
    return made[:2]


def rows(x):
    return (x - x.sum(-1, keepdim=True)).view(-1, 8).exp()


def test_indices_that_one_trial_has_simplified_serve_the_next(mode, monkeypatch):
    with mode:
        first, second = simplified_in_trials(rows, mode, monkeypatch, torch.empty(32, 32))
    assert first > 0 == second


def known_to_lowering(graph, mode):
    """Return the function by which a lowering of a graph simplifies indices while it runs."""
    known = []
    with V.set_fake_mode(mode):
        inputs = [node.meta["val"] for node in graph.nodes if node.op == "placeholder"]
        lowering = GraphLowering(graph.owning_module, inputs, mode.shape_env, is_inference=True)
        output = lowering.output
        lowering.output = lambda *given: (known.append(lowering.sizevars.simplify_with_ranges), output(*given))[1]
        with V.set_graph_handler(lowering), V.set_extern_kernel_nodes([]):
            lowering.run(*inputs)
    return known[0]


def test_lowering_of_a_graph_knows_what_trials_have_simplified_and_the_next_one_does_not(graph, mode):
    trials = trial.Trials(inference=True)
    with V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
        trials.estimate(graph)
    trials.serve(graph)
    Interpreter(graph.owning_module).run(torch.ones(32, 32))  # Inductor propagates fake tensors before it lowers
    (simplify,) = [own for name, own in trials._simplified.items() if name == "simplify_with_ranges"]
    assert known_to_lowering(graph, mode) is simplify
    assert known_to_lowering(graph, mode) is not simplify


def test_graph_that_was_not_tried_is_lowered_as_it_is(graph):
    trial.Trials(inference=True).serve(graph)
    assert "process_inputs" not in vars(graph)


def test_indices_with_symbols_are_simplified_in_each_trial(monkeypatch):
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x = mode.from_tensor(torch.empty(32, 32), symbolic_context=StatelessSymbolicContext([DimDynamic.DYNAMIC] * 2))
    with mode:
        first, second = simplified_in_trials(rows, mode, monkeypatch, x)
    assert first == second > 0


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
    """Check that options have this torch's names: 2.15 calls `benchmark_epilogue_fusion` otherwise, and warns."""
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


@torch.library.custom_op("bridge_trial::fill", mutates_args=("x",))
def fill(x: torch.Tensor) -> None:
    x.fill_(7.0)


def test_operators_of_the_user_that_change_tensors():
    """Check that operators of the user that change tensors pass a trial.

    Inductor's last passes, which come after Bridge's, make calls of them: a trial had no code for them before.
    """

    def function(x, w, a):
        filled = a * 2
        fill(filled)
        last = F.rms_norm(x, (64,), w)[:, -1:]
        return last @ last.transpose(1, 2), filled

    given = torch.randn(4, 16, 64), torch.randn(64), torch.randn(8, 8)
    ours, _ = run_emitted(function, given, partial(bridge_backend, options={"strict": True}))
    assert bridge.report().counters["shrink_domains"] == 1
    torch.testing.assert_close(tuple(ours), function(*given))
