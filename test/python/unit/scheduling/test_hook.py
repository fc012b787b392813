"""Test that what Bridge changes of Inductor is changed for its own compilations only."""

from __future__ import annotations

import copy
import json
import threading

import pytest
import torch
from counted import FUSED, UsersPass, compile_and_run
from functions import rows, sample
from threads import in_thread

import bridge
from bridge import inductor
from bridge.options import Options
from bridge.scheduling import hook


class TestOneCompilation:
    def test_nothing_is_left(self, compiler, config):
        before = config.get_config_copy()
        assert compile_and_run("bridge") == FUSED
        assert config.get_config_copy() == before
        assert hook.current() is None
        assert compile_and_run() == {}

    def test_nothing_is_left_by_an_error(self, compiler, config):
        users = config.patch(_post_fusion_custom_pass=UsersPass(KeyError("broken")))
        with users, pytest.raises(torch._dynamo.exc.TorchDynamoException, match="broken"):
            compile_and_run("bridge")
        assert config._post_fusion_custom_pass is None
        assert hook.current() is None

    def test_users_pass_runs_and_stays(self, compiler, config):
        users = UsersPass()
        with config.patch(_post_fusion_custom_pass=users):
            assert compile_and_run("bridge") == FUSED
            assert config._post_fusion_custom_pass is users
        assert users.calls == 1

    def test_users_pass_in_the_options(self, compiler, config):
        users = UsersPass()
        torch.compile(rows, backend="bridge", options={"_post_fusion_custom_pass": users})(sample())
        assert users.calls == 1 and bridge.report().fused
        assert config._post_fusion_custom_pass is None

    def test_users_pass_is_first(self, compiler, config, monkeypatch):
        order = []
        first = UsersPass()

        def users(nodes):
            order.append("user")
            return first(nodes)

        def ours(nodes, *_):
            order.append("bridge")
            return nodes

        monkeypatch.setattr(hook, "fuse_schedule", ours)
        with config.patch(_post_fusion_custom_pass=users):
            compile_and_run("bridge")
        assert order == ["user", "bridge"]


class TestThreads:
    def test_a_compilation_is_invisible_to_other_threads(self, compiler, config):
        with hook.active(Options(), bridge.Report()) as report:
            assert in_thread(compile_and_run) == {}
            assert in_thread(lambda: copy.deepcopy(config._post_fusion_custom_pass)) is None
            assert compile_and_run() == FUSED
        assert report.graphs == 1

    def test_scopes_that_do_not_nest_leave_nothing(self, config):
        first_in, second_in = threading.Event(), threading.Event()

        def other():
            assert first_in.wait(60)
            with hook.active(Options(max_nodes=2), bridge.Report()):
                second_in.set()
                assert first_out.wait(60)
                return hook.current().options.max_nodes

        first_out = threading.Event()
        results = []
        thread = threading.Thread(target=lambda: results.append(other()))
        thread.start()
        with hook.active(Options(max_nodes=1), bridge.Report()):
            first_in.set()
            assert second_in.wait(60)
            assert hook.current().options.max_nodes == 1
        first_out.set()
        thread.join(60)
        assert results == [2]
        assert config._post_fusion_custom_pass is None

    def test_two_compilations_at_once(self, compiler, config):
        # Dynamo lets one thread compile at a time: torch's tracing has state of the process.
        both = threading.Barrier(2)
        reports = {}

        def compile_in(number, function):
            both.wait(60)
            options = {"bridge.max_nodes": number}
            with torch.no_grad(), config.patch(fx_graph_cache=False), bridge.enabled(max_nodes=number + 1) as outer:
                torch.compile(rows, backend="bridge", options=options)(sample())
                torch.compile(function)(sample())
            reports[number] = outer

        # Two functions: Dynamo keeps what it has compiled for both threads.
        work = [(1, lambda x: rows(x)), (64, lambda x: rows(x))]
        threads = [threading.Thread(target=compile_in, args=arguments) for arguments in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(240)
        assert {number: len(report.fused) for number, report in reports.items()} == {1: 1, 64: 1}
        assert sum(torch._dynamo.utils.counters["bridge"].values()) == 8


SCRIPT = """
import json, sys
import torch
import torch._dynamo
import torch._functorch.config
import torch._inductor.config
from torch._inductor.utils import run_and_get_code

# run_and_get_code sees what is generated, and nothing is where a cache has the graph.
torch._inductor.config.fx_graph_cache = False
torch._functorch.config.enable_autograd_cache = False

def rows(x):
    gate, up = (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)).chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up

def pointwise(x):
    return torch.relu(x) * 2 + 1

def product(x):
    return x @ x.T

def attention(x):
    heads = x.reshape(1, 2, 16, 64)
    return torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)

def code(function, backend):
    torch._dynamo.reset()
    x = torch.arange(32 * 64, dtype=torch.float32).reshape(32, 64).sin()
    with torch.no_grad():
        _, (text,) = run_and_get_code(torch.compile(function, backend=backend), x)
    # The first line has the number of the compilation in this process.
    return text.partition("\\n")[2]

def codes(backend):
    return [code(function, backend) for function in (rows, pointwise, product, attention)]
"""


class TestOutputCode:
    def test_identical_to_a_process_without_bridge(self, fork):
        without = "print(json.dumps(codes('inductor')))\nassert 'bridge' not in sys.modules"
        untouched = json.loads(fork(SCRIPT + without))
        within = """
from bridge.backend import bridge
runs = [codes("inductor"), codes(bridge), codes(bridge), codes("inductor")]
print(json.dumps(runs))
"""
        before, first, second, after = json.loads(fork(SCRIPT + within))
        assert before == after == untouched
        assert first == second
        rows_code, *others = first
        assert rows_code != untouched[0], "the function that Bridge fuses"
        assert others == untouched[1:]


def test_a_graph_on_several_streams_is_left_alone(monkeypatch):
    """Check that a graph on several streams is left alone: one kernel would be on only one of the streams."""
    monkeypatch.setattr(inductor, "apart_by_user", lambda nodes: "the graph runs on several streams")
    monkeypatch.setattr(hook.graphs, "apart_by_user", lambda graph: True)
    monkeypatch.setattr(hook, "change_graph", lambda *_: pytest.fail("changed"))
    torch._dynamo.reset()
    x = sample()
    with bridge.enabled(shrink_domains=True) as report:
        torch.testing.assert_close(torch.compile(rows, options={"fx_graph_cache": False})(x), rows(x))
    assert not report.fused
    assert [(r.reason, r.detail) for r in report.refusals] == [
        (bridge.Reason.different_device, "the graph runs on several streams")
    ]
