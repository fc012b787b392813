"""Test `torch.compile(f, backend="bridge")`: options, modes, reports and counters."""

from __future__ import annotations

import warnings

import pytest
import torch
from functions import plain, rows, sample

import bridge
from bridge.options import Options, make_options, split_options

INDUCTORS = frozenset({"max_autotune", "triton.cudagraphs"})


class TestOptions:
    def test_bare_and_prefixed_names_are_ours(self):
        given = {"bridge.max-nodes": 3, "dump-dir": "d", "max_autotune": True, "triton.cudagraphs": False}
        ours, theirs = split_options(given, INDUCTORS)
        assert ours == {"max_nodes": 3, "dump_dir": "d"}
        assert theirs == {"max_autotune": True, "triton.cudagraphs": False}

    @pytest.mark.parametrize("name", ["nonsense", "bridge.nonsense"])
    def test_unknown_name_lists_the_valid_ones(self, name):
        with pytest.raises(bridge.OptionError) as caught:
            make_options(split_options({name: 1}, INDUCTORS)[0])
        assert "nonsense" in str(caught.value)
        assert all(valid in str(caught.value) for valid in Options.names())

    def test_a_name_given_twice(self):
        with pytest.raises(bridge.OptionError, match="'strict' is given twice"):
            split_options({"strict": True, "bridge.strict": False}, INDUCTORS)

    def test_a_name_that_inductor_has_too_needs_the_prefix(self):
        with pytest.raises(bridge.OptionError, match=r"bridge\.strict"):
            split_options({"strict": True}, {"strict"})
        assert split_options({"bridge.strict": True}, {"strict"})[0] == {"strict": True}

    def test_no_name_is_ambiguous_with_this_torch(self):
        from bridge.inductor import option_names

        assert not option_names() & set(Options.names())
        assert "max_autotune" in option_names()

    @pytest.mark.parametrize(
        ("name", "value"),
        [("max_nodes", 0), ("max_nodes", True), ("strict", 1), ("pipeline", None), ("dump_dir", 3)],
    )
    def test_bad_value_is_named(self, name, value):
        with pytest.raises(bridge.OptionError, match=f"'{name}'.*{value!r}"):
            make_options({name: value})

    def test_environment_and_its_errors(self, monkeypatch, tmp_path):
        monkeypatch.setenv("BRIDGE_DUMP_DIR", str(tmp_path))
        monkeypatch.setenv("BRIDGE_STRICT", "1")
        assert make_options({}) == Options(dump_dir=str(tmp_path), strict=True)
        assert make_options({"dump_dir": None, "strict": False}) == Options()
        monkeypatch.setenv("BRIDGE_STRICT", "yes")
        with pytest.raises(bridge.OptionError, match="BRIDGE_STRICT"):
            make_options({})


class TestCompile:
    @pytest.mark.parametrize(
        ("options", "named"),
        [({"nonsense": 1}, "nonsense"), ({"bridge.nonsense": 1}, "nonsense"), ({"max_nodes": "x"}, "max_nodes")],
    )
    def test_option_error_reaches_the_user(self, compiler, options, named):
        with pytest.raises(bridge.OptionError, match=named):
            compiler(plain, backend="bridge", options=options)(sample())

    @pytest.mark.parametrize("arguments", [{"options": {"max_autotune": "x"}}, {"mode": "nonsense"}])
    def test_inductors_own_error_is_inductors(self, compiler, arguments):
        with pytest.raises(RuntimeError) as theirs:
            compiler(plain, **arguments)(sample())
        with pytest.raises(RuntimeError) as ours:
            compiler(plain, backend="bridge", **arguments)(sample())
        assert str(ours.value).startswith(str(theirs.value))

    @pytest.mark.parametrize(
        "arguments", [{"mode": "reduce-overhead"}, {"options": {"triton.cudagraphs": True, "bridge.max_nodes": 9}}]
    )
    def test_modes_and_options_reach_inductor(self, compiler, arguments):
        from torch._inductor import config

        seen = []

        def see(nodes):
            seen.append(config.triton.cudagraphs)
            return nodes

        with config.patch(_post_fusion_custom_pass=see):
            compiler(plain, backend="bridge", **arguments)(sample())
        assert seen == [True]
        assert config.triton.cudagraphs is False

    def test_dynamic_compiles_once_for_all_sizes(self, compiler):
        compiled = compiler(rows, backend="bridge", dynamic=True)
        for size in (32, 48):
            x = torch.randn(size, size + 16)
            torch.testing.assert_close(compiled(x), rows(x))
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1

    def test_fullgraph_refuses_a_graph_break(self, compiler):
        with pytest.raises(torch._dynamo.exc.Unsupported):
            compiler(_two_graphs, backend="bridge", fullgraph=True)(sample())

    def test_reset_reaches_cudagraphs(self, compiler, monkeypatch):
        import torch._inductor.cudagraph_trees as trees

        calls = []
        monkeypatch.setattr(trees, "reset_cudagraph_trees", lambda: calls.append(1))
        compiler(plain, backend="bridge")(sample())
        torch._dynamo.reset()
        assert calls


def _two_graphs(x):
    y = rows(x)
    torch._dynamo.graph_break()
    return y, rows(x * 2)


class TestReport:
    def test_report_and_counters_of_a_fusion(self, compiler, counters):
        assert bridge.report() is None
        torch.testing.assert_close(compiler(rows, backend="bridge")(sample()), rows(sample()))
        report = bridge.report()
        (group,) = report.fused
        assert report.counters == counters()
        assert counters() == {"groups_seen": 1, "groups_fused": 1}
        assert {"translate", "passes", "lift"} <= set(group.seconds)
        assert report.total_seconds >= sum(group.seconds.values()) > 0
        text = report.details()
        assert "1 of 1 groups fused" in text and "group0" in text and "ms:" in text
        assert str(report).startswith("bridge: 1 kernel; ") and "of it Bridge." in str(report)

    def test_counters_add_up_over_compilations(self, compiler, counters):
        for _ in range(2):
            torch._dynamo.reset()
            compiler(rows, backend="bridge")(sample())
        assert counters()["groups_fused"] == 2
        assert bridge.report().counters["groups_fused"] == 1

    def test_graphs_of_one_function_share_a_report(self, compiler):
        compiler(_two_graphs, backend="bridge")(sample())
        report = bridge.report()
        assert report.graphs == 2
        assert {group.graph for group in report.groups} == {0, 1}
        assert "in 2 graphs" in str(report) and "graph 1 group" in report.details()

    def test_another_function_has_its_own(self, compiler):
        compiler(rows, backend="bridge")(sample())
        first = bridge.report()
        compiler(plain, backend="bridge")(sample())
        assert bridge.report() is not first
        assert bridge.report().graphs == 1 and not bridge.report().groups

    def test_graphs_that_inductor_does_not_schedule(self):
        assert "cache" in str(bridge.Report())


def _loss(x):
    (y,) = rows(x)
    return y.sum()


class TestTraining:
    def _gradient(self, compiler, **options):
        x = sample().requires_grad_()
        with torch.enable_grad():
            loss = compiler(_loss, backend="bridge", options=options)(x)
        # Outside of every context of the forward's, as a training loop has it.
        loss.backward()
        expected = sample().requires_grad_()
        with torch.enable_grad():
            _loss(expected).backward()
        torch.testing.assert_close(x.grad, expected.grad)

    def test_training_graphs_are_left_alone_if_asked_for(self, compiler, counters):
        self._gradient(compiler, training=False)
        assert counters() == {"refused.training_graph": 2}
        report = bridge.report()
        assert report.graphs == 2 and {r.reason.name for r in report.refusals} == {"training_graph"}
        assert str(report).count("2 graphs not looked at: compiled for training") == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the hint was given once
            torch._dynamo.reset()
            self._gradient(compiler, training=False)

    def test_option_holds_for_the_backward_that_is_compiled_later(self, compiler, counters):
        with torch._functorch.config.patch(force_non_lazy_backward_lowering=False):
            self._gradient(compiler, training=True, strict=True)
        assert "refused.training_graph" not in counters()
        assert counters()["groups_seen"] >= 1
        assert bridge.report().graphs == 2
        assert torch._inductor.config._post_fusion_custom_pass is None
