"""Bridge for every compilation: bridge.install and bridge.enabled."""

from __future__ import annotations

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


def test_nothing_is_done_when_the_process_ends(python):
    """Neither an installation nor a generator that never ended imports anything then, which would be printed."""
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
