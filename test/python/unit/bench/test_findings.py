"""`bridge bench --findings`: what keeps kernels apart, by model."""

from __future__ import annotations

import re

from bridge.bench import command, findings
from bridge.reasons import Reason
from bridge.reports import GroupReport


def test_findings_keep_what_is_written_by_hand(tmp_path):
    path = tmp_path / "models.md"
    path.write_text("# By hand\n\n## Launches\n\nold\n")
    assert command.main(["--only", "dit", "--small", "--findings", str(path)]) == 0
    text = path.read_text()
    assert text.startswith("# By hand\n\n## Launches\n\n| model")
    assert "old" not in text
    assert re.search(r"\| dit-xl vision \| \d+ \| \d+ \| \d+ \|", text)
    assert "### dit-xl vision" in text


def test_findings_go_on_after_a_failure(tmp_path, monkeypatch):
    """Inductor 2.11 cannot compile Mamba-2."""

    def fail(case):
        raise TypeError("no\nmore")

    monkeypatch.setattr(findings, "find", fail)
    path = tmp_path / "models.md"
    assert command.main(["--only", "dit", "--small", "--findings", str(path)]) == 0
    assert "Not compiled, dit-xl vision: TypeError: no\n" in path.read_text()


def test_findings_have_every_reason_once():
    remarks = [("no_common_band", "a", "here"), ("no_common_band", "a", "there")]
    decisions = ['apart [not_liftable]: c at loc("op7"("FILE":1:0))', "persistent: d"]
    why = {"reason": Reason.not_profitable, "detail": "b at loc(x)"}
    group = GroupReport("group0", ["op0"], 2, 2, remarks=remarks, decisions=decisions, **why)
    assert findings.why(group) == [("not_profitable", "b"), ("not_liftable", "c"), ("no_common_band", "a")]
