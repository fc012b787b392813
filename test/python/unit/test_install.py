"""Test Bridge for every compilation: bridge.install and bridge.enabled."""

from __future__ import annotations

import gc
import warnings

import pytest
import torch
from counted import FUSED, UsersPass, compile_and_run
from functions import rows, sample
from threads import in_thread

import bridge
from bridge.scheduling import hook


class TestWholeProcess:
    def test_enabled_takes_every_way_into_inductor(self, compiler, config):
        with bridge.enabled() as report:
            assert compile_and_run() == FUSED
            assert compile_and_run("bridge") == FUSED
            graph = torch.fx.symbolic_trace(rows)
            torch.testing.assert_close(tuple(torch._inductor.compile(graph, [sample()])(sample())), rows(sample()))
        assert report.graphs == 2, "the one with a backend of its own has its own report"
        assert len(report.fused) == 2
        assert compile_and_run() == {}

    def test_enabled_nests_and_is_undone_by_an_error(self, compiler, config):
        with bridge.enabled(max_nodes=1):
            with bridge.enabled():
                assert compile_and_run() == FUSED
            assert compile_and_run() == {"groups_seen": 1, "refused.budget_exceeded": 1}
            with pytest.raises(KeyError), bridge.enabled():
                raise KeyError
            assert hook.current().options.max_nodes == 1
        assert hook.current() is None

    def test_install_holds_in_every_thread(self, compiler, config):
        bridge.install(max_nodes=1)
        bridge.install()
        bridge.install()
        assert compile_and_run() == FUSED
        assert in_thread(compile_and_run) == FUSED
        in_thread(bridge.uninstall)
        assert compile_and_run() == {}
        assert in_thread(compile_and_run) == {}

    def test_uninstall_without_install(self, config):
        bridge.uninstall()
        assert config._post_fusion_custom_pass is None

    @pytest.mark.parametrize("enter", [bridge.install, lambda **o: bridge.enabled(**o).__enter__()])
    def test_bad_options_change_nothing(self, config, enter):
        with pytest.raises(bridge.OptionError, match="'nonsense'.*max_nodes"):
            enter(nonsense=1)
        assert config._post_fusion_custom_pass is None

    def test_users_pass_before(self, compiler, config):
        users = UsersPass()
        with config.patch(_post_fusion_custom_pass=users):
            with bridge.enabled():
                assert compile_and_run() == FUSED
            assert config._post_fusion_custom_pass is users
            bridge.install()
            assert compile_and_run() == FUSED
            bridge.uninstall()
            assert config._post_fusion_custom_pass is users
            assert compile_and_run() == {}
        assert users.calls == 3

    def test_users_pass_after(self, compiler, config):
        users = UsersPass()
        with bridge.enabled():
            with config.patch(_post_fusion_custom_pass=users):
                assert compile_and_run() == FUSED
            assert users.calls == 1
            assert compile_and_run() == FUSED
            assert users.calls == 1
        bridge.install()
        with config.patch(_post_fusion_custom_pass=users):
            assert compile_and_run() == FUSED
        assert users.calls == 2
        bridge.uninstall()


class TestWithoutWith:
    """Test that the call without `with` turns nothing on, as torch.no_grad(), and now warns."""

    def test_a_warning_says_so(self, config):
        with pytest.warns(RuntimeWarning, match="turns nothing on without `with`.* bridge.install") as said:
            bridge.enabled()
        assert said[0].filename == __file__
        assert hook.current() is None and config._post_fusion_custom_pass is None

    def test_a_prompt_shows_what_to_write(self):
        with bridge.enabled() as report:
            pass
        assert report.graphs == 0
        with pytest.warns(RuntimeWarning):
            assert "`with bridge.enabled():`" in repr(bridge.enabled())

    @pytest.mark.parametrize("options", [{"max_nodes": "3"}, {"nonsense": 1}])
    def test_a_bad_option_is_an_error_of_the_call(self, options):
        with warnings.catch_warnings(), pytest.raises(bridge.OptionError):
            warnings.simplefilter("error")
            bridge.enabled(**options)

    def test_a_decorated_function_is_a_block_in_every_thread(self, compiler, config):
        """Check that a decorated function is a block in every thread: each call has its own scope.

        Where the function is never called, there is no warning of a missing `with`.
        """
        seen = []

        @bridge.enabled(max_nodes=7)
        def decorated(depth: int) -> None:
            seen.append(hook.current().options.max_nodes)
            if depth:
                in_thread(lambda: decorated(depth - 1))
                decorated(depth - 1)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            decorated(2)
            bridge.enabled()(decorated)
            gc.collect()
        assert seen == [7] * 7 and hook.current() is None

    def test_one_object_may_begin_several_blocks(self, compiler, config):
        block = bridge.enabled(max_nodes=7)
        with block as outer, block as inner:
            assert outer is not inner and hook.current().options.max_nodes == 7
        assert hook.current() is None
        with block:
            assert hook.current() is not None


@pytest.mark.in_turn(2)
def test_nothing_is_done_when_the_process_ends(python):
    """Check that nothing is done when the process ends: an import then would be printed.

    The process has an installation, and a generator that never ended.
    """
    code = """
        import os
        os.dup2(1, 2)
        import bridge
        bridge.install()
        def unfinished():
            with bridge.enabled():
                yield
        kept = unfinished()
        next(kept)
    """
    assert python(code) == ""
