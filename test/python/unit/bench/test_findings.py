"""Test `bridge bench --findings`: what keeps kernels apart, by model."""

from __future__ import annotations

import re

import pytest
import torch

from bridge.bench import command, findings
from bridge.reasons import Reason
from bridge.reports import GroupReport, Report


@pytest.mark.in_turn(2)
def test_findings_keep_what_is_written_by_hand(tmp_path):
    path = tmp_path / "models.md"
    path.write_text("# By hand\n\n## Launches\n\nold\n")
    assert command.main(["--only", "dit", "--small", "--findings", str(path)]) == 0
    text = path.read_text()
    assert text.startswith("# By hand\n\n## Launches\n\n| model")
    assert "old" not in text
    assert re.search(r"\| dit-xl vision \| \d+ \| \d+ \| \d+ \|", text)
    assert "### dit-xl vision" in text


def test_findings_of_nothing_are_an_error(tmp_path, capsys):
    """Check that steps of training, at which nothing looks, do not end as if there were no findings."""
    path = tmp_path / "models.md"
    assert command.main(["--only", "dit", "--modes", "training", "--findings", str(path)]) == 2
    assert "no step of training" in capsys.readouterr().err and not path.exists()


def test_findings_go_on_after_a_failure(tmp_path, monkeypatch):
    """Check that findings go on after a failure, as of Mamba-2 with Inductor 2.11."""

    def fail(case, dynamic):
        raise TypeError("no\nmore")

    monkeypatch.setattr(findings, "find", fail)
    path = tmp_path / "models.md"
    assert command.main(["--only", "dit", "--small", "--findings", str(path)]) == 0
    assert "Not compiled, dit-xl vision: TypeError: no\n" in path.read_text()


@pytest.mark.parametrize("words", [(), ("--dtype", "float32", "--dynamic")])
def test_findings_are_of_the_conditions_that_are_asked_for(tmp_path, monkeypatch, words):
    found = []

    def find(case, dynamic):
        found.append((case.inputs[0].dtype, dynamic))
        return findings.Finding(case.name, 1, 1, Report())

    monkeypatch.setattr(findings, "find", find)
    path = tmp_path / "models.md"
    assert command.main(["--only", "dit", "--small", "--findings", str(path), *words]) == 0
    assert found == [(torch.float32, True) if words else (torch.bfloat16, False)]


def test_templates_are_not_timed_without_a_gpu(tmp_path, capsys):
    path = tmp_path / "models.md"
    assert command.main(["--only", "dit", "--findings", str(path), "--max-autotune"]) == 2
    assert "without a GPU" in capsys.readouterr().err
    assert not path.exists()


def test_findings_have_every_reason_once():
    remarks = [("no_common_band", "a", "here"), ("no_common_band", "a", "there")]
    decisions = ['apart [not_liftable]: c at loc("op7"("FILE":1:0))', "persistent: d"]
    why = {"reason": Reason.not_profitable, "detail": "b at loc(x)"}
    group = GroupReport("group0", ["op0"], 2, 2, remarks=remarks, decisions=decisions, **why)
    assert findings.why(group) == [("not_profitable", "b"), ("not_liftable", "c"), ("no_common_band", "a")]
