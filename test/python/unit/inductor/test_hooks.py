"""Test the hook in which the passes over the graph run: beside the user's, in Bridge's compilations only."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from functions import plain, sample
from threads import in_thread
from torch._inductor import config, custom_graph_pass

import bridge
from bridge import graph_passes, inductor
from bridge.options import Options
from bridge.scheduling import hook

HOOK = "post_grad_custom_post_pass"


class UsersPass(custom_graph_pass.CustomGraphPass):
    def __init__(self, identity=None, calls=None):
        self.identity, self.calls = identity, [] if calls is None else calls

    def __call__(self, graph):
        self.calls.append(self.identity)

    def uuid(self):
        return self.identity


@pytest.fixture
def run(compiler):
    """Return a function that compiles, anew, a function that has nothing to change."""

    def compile_and_run(backend="bridge", **options):
        torch._dynamo.reset()
        torch.testing.assert_close(compiler(plain, backend=backend, options=options)(sample()), plain(sample()))

    return compile_and_run


@pytest.fixture
def ours(monkeypatch):
    """Replace Bridge's passes by one that records when it ran; return the list of all that ran."""
    ran: list = []

    def one(graph):
        ran.append("bridge")
        yield "a line"

    monkeypatch.setattr(graph_passes, "PASSES", {"store_reread": one})
    return ran


def test_users_pass_is_first(run, ours):
    users = UsersPass("users", ours)
    with config.patch({HOOK: users}):
        run()
        assert ours == ["users", "bridge"]
        assert getattr(config, HOOK) is users
        run("inductor")
    assert ours == ["users", "bridge", "users"]
    assert getattr(config, HOOK) is None


def test_users_pass_in_the_options(run, ours):
    run(**{HOOK: UsersPass("users", ours)})
    assert ours == ["users", "bridge"]


def test_several_passes_of_the_user(run, ours):
    if not hasattr(custom_graph_pass, "get_custom_graph_passes"):
        pytest.skip("this torch takes one")
    with config.patch({HOOK: [UsersPass("first", ours), UsersPass("second", ours)]}):
        run()
    assert ours == ["first", "second", "bridge"]


def test_a_pass_that_asks_for_inference_is_told(run, ours):
    base = getattr(custom_graph_pass, "CustomInferenceAwareGraphPass", None)
    if base is None:
        pytest.skip("this torch does not tell")

    def told(self, graph, is_inference):
        ours.append(is_inference)

    users = type("Told", (base,), {"__call__": told, "uuid": lambda self: "told"})()
    with config.patch({HOOK: users}):
        run()
    assert ours == [True, "bridge"]


def test_the_report_has_what_was_changed(run, ours, counters):
    run()
    assert bridge.report().choices == ["a line"]
    assert counters() == {"store_reread": 1}


def test_an_option_turns_a_pass_off(run, ours):
    run(store_reread=False)
    assert ours == []


class TestErrors:
    @pytest.fixture(autouse=True)
    def broken(self, monkeypatch):
        def passes(graph):
            yield "done before"
            raise LookupError("broken")

        monkeypatch.setattr(graph_passes, "PASSES", {"store_reread": passes})

    @pytest.mark.expects_internal_error
    @pytest.mark.filterwarnings("ignore:bridge leaves the code")
    def test_production_goes_on(self, run):
        run(strict=False)
        (refusal,) = bridge.report().refusals
        assert refusal.reason is bridge.Reason.internal_error
        assert refusal.detail == "store_reread: LookupError: broken"
        assert bridge.report().choices == ["done before"]

    def test_strict_mode_raises(self, run):
        with pytest.raises(Exception, match="broken"):
            run(strict=True)


class TestCache:
    @pytest.fixture
    def outcome(self, run):
        from torch._dynamo.utils import counters

        def compile_and_look(*arguments, **options):
            counters.clear()
            with config.patch(fx_graph_cache=True):
                run(*arguments, **options)
            (found,) = [o for o in ("hit", "miss", "bypass") if counters["inductor"][f"fxgraph_cache_{o}"]]
            return found

        with torch._inductor.utils.fresh_cache():
            yield compile_and_look

    def test_options_are_part_of_the_key(self, outcome):
        assert [outcome(), outcome(), outcome(store_reread=False)] == ["miss", "hit", "miss"]

    @pytest.mark.parametrize("backend", ["bridge", "inductor"])
    def test_users_identity_is_part_of_the_key(self, outcome, backend):
        with config.patch({HOOK: UsersPass("1")}):
            assert [outcome(backend), outcome(backend)] == ["miss", "hit"]
        with config.patch({HOOK: UsersPass("2")}):
            assert outcome(backend) == "miss"
        with config.patch({HOOK: UsersPass(None)}):
            assert outcome(backend) == "bypass"


class Kept:
    """Stand for what a configuration keeps, and record its calls."""

    def __init__(self, active=True):
        self.calls, self.is_active = [], active

    def active(self):
        return self.is_active

    def key(self):
        return "the key"

    def __call__(self, *arguments):
        self.calls.append(arguments)
        return arguments[0]


def kept_passes(**how):
    """Return the passes of a configuration; the base of the one over the graph is another's class."""
    return inductor.kept_pass(Kept(**how)), inductor.kept_graph_pass(Kept(**how), UsersPass)


def test_passes_that_a_configuration_keeps(compiler):
    schedule, graph = kept_passes()
    config = {inductor.HOOK: schedule, inductor.GRAPH_HOOK: graph}
    torch.testing.assert_close(compiler(plain, options=config)(sample()), plain(sample()))
    assert len(schedule.implementation.calls) == 1
    ((_, inference),) = graph.implementation.calls
    assert inference and isinstance(graph, UsersPass)


def test_kept_passes_that_are_not_active(compiler):
    schedule, graph = kept_passes(active=False)
    compiler(plain, options={inductor.HOOK: schedule, inductor.GRAPH_HOOK: graph})(sample())
    assert not schedule.implementation.calls and not graph.implementation.calls


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"])
def test_kept_passes_can_be_copied(again):
    for one in map(again, kept_passes()):
        assert one.uuid() == "the key"
        assert repr(one) == "<the key>"


def test_another_threads_compilation_does_not_see_it(compiler):
    def seen():
        return bool(getattr(config, HOOK)), copy.deepcopy(getattr(config, HOOK))

    with hook.active(Options(), bridge.Report()):
        assert bool(getattr(config, HOOK))
        assert in_thread(seen) == (False, None)
    assert getattr(config, HOOK) is None
