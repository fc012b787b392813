"""Test Bridge in the compilations of a server's configuration.

Inductor's hooks, without a scope of Bridge's around them.
"""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from functions import rows, sample
from torch._inductor.custom_graph_pass import CustomGraphPass

import bridge
from bridge import inductor, reports
from bridge.options import Options
from bridge.scheduling import hook
from bridge.serving import served
from bridge.serving.served import AfterFusion, BeforeLowering, identity_of


class OwnersPass(CustomGraphPass):
    """Stand for the class of passes of the configuration's owner."""


@pytest.fixture
def options(tmp_path, monkeypatch):
    """Return options of Inductor's that have both of Bridge's passes."""
    monkeypatch.setattr(reports, "_warned", set())
    parts = Options(), identity_of(Options()), str(tmp_path)
    return {
        inductor.HOOK: inductor.kept_pass(AfterFusion(*parts)),
        inductor.GRAPH_HOOK: inductor.kept_graph_pass(BeforeLowering(*parts), OwnersPass),
    }


def compiled(compiler, options):
    torch.testing.assert_close(compiler(rows, options=options)(sample()), rows(sample()))
    return bridge.report()


def test_a_compilation_with_these_options_is_bridges(compiler, options, tmp_path):
    report = compiled(
        compiler, {name: pickle.loads(pickle.dumps(copy.deepcopy(value))) for name, value in options.items()}
    )
    assert len(report.fused) == 1
    (file,) = (tmp_path / "rank_0").iterdir()
    assert "1 of 1 groups fused" in file.read_text()


def test_in_a_scope_of_bridges_they_do_nothing(compiler, options, tmp_path):
    with bridge.enabled(max_nodes=1) as report:
        compiled(compiler, options)
    assert report.graphs == 1 and not report.fused, "the options of the scope count"
    assert not list(tmp_path.iterdir())


def test_withheld(compiler, options):
    with hook.withheld():
        assert compiled(compiler, options) is None


def test_another_bridge_than_the_configurations(compiler, options, monkeypatch):
    monkeypatch.setattr(hook, "implementation_hash", lambda: "another")
    with pytest.warns(RuntimeWarning, match="another Bridge"):
        assert compiled(compiler, options) is None


def test_the_identity(monkeypatch):
    plain = identity_of(Options())
    assert plain == identity_of(Options(strict=True)), "it decides nothing"
    assert plain != identity_of(Options(max_nodes=3))
    assert len({identity_of(Options(dump_dir="folder")) for _ in range(2)}) == 2
    monkeypatch.setattr(served, "__version__", "another")
    assert identity_of(Options()) != plain
