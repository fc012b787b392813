"""Test the generator that runs PyTorch's own tests, on a file with one test for each thing that can happen."""

from __future__ import annotations

import pytest
from torture import pytorch_tests
from torture.outcome import Verdict

TESTS = """
import os
import unittest
from bridge.scheduling import hook

def installed():
    return hook.current() is not None

class Tests(unittest.TestCase):
    def test_passes(self):
        self.assertTrue(True)
    def test_fails_alone_too(self):
        self.fail("of Inductor")
    def test_ends_the_process_with_bridge(self):
        if installed():
            os._exit(3)
    def test_is_skipped(self):
        self.skipTest("no device")
    def test_is_wrong_with_bridge(self):
        self.assertFalse(installed(), "Tensor-likes are not close!")
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("test")
    (folder / "inductor").mkdir()
    (folder / "inductor" / "test_own.py").write_text(TESTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(pytorch_tests.FOLDER, str(folder))
        patch.setattr(pytorch_tests, "FILES", {"test_own.py": None})
        [name] = pytorch_tests.names("cpp")
        yield pytorch_tests.run(name, "cpp")
    pytorch_tests._tests.cache_clear()


@pytest.mark.in_turn(3)
class TestCourse:
    def test_every_test_has_a_result(self, outcome):
        assert outcome.figures["tests"] == 5
        assert (outcome.figures["passed"], outcome.figures["skipped"]) == (1, 1)

    def test_only_what_passes_without_bridge_is_a_failure(self, outcome):
        assert outcome.figures["failures"] == 2
        assert outcome.figures["inductor_fails"] == 1
        assert "test_ends_the_process_with_bridge: the process ended" in outcome.detail
        assert "test_is_wrong_with_bridge" in outcome.detail
        assert "alone_too" not in outcome.detail

    def test_worst_test_decides(self, outcome):
        assert outcome.verdict is Verdict.crash


def result(**fields):
    return {"outcome": "passed", "detail": "", "before": 0, "after": 0, **fields}


@pytest.mark.parametrize(
    ("with_bridge", "alone", "verdict"),
    [
        (result(), None, Verdict.same),
        (result(outcome="skipped"), None, Verdict.skipped),
        (result(before=2, after=1, fused=1), None, Verdict.fused),
        (result(before=1, after=2), None, Verdict.worse),
        (result(faults=["internal_error: KeyError"]), None, Verdict.internal_error),
        (result(outcome="failed", detail="Tensor-likes are not close!"), result(), Verdict.wrong),
        (result(outcome="failed", detail="NameError"), result(), Verdict.crash),
        (result(outcome="failed", detail="the test took too long"), result(), Verdict.hang),
        (result(outcome="failed", detail="NameError"), result(outcome="failed"), Verdict.skipped),
    ],
)
def test_verdict_of_one_test(with_bridge, alone, verdict):
    judged = pytorch_tests.judge("f 0", {"t": with_bridge}, {} if alone is None else {"t": alone})
    assert judged.verdict is verdict


def test_excused_test_is_no_failure(monkeypatch):
    monkeypatch.setattr(pytorch_tests, "EXCUSED", {"t": "counts kernels"})
    failed = result(outcome="failed", detail="1 != 2", before=2, after=1, fused=1)
    judged = pytorch_tests.judge("f 0", {"t": failed}, {"t": result()})
    assert judged.verdict is Verdict.fused
    assert judged.figures["excused"] == 1
