"""Test that the demonstration runs from beginning to end and says what it promises."""

import re

import pytest

from bridge.offline import demo

#: Fewer calls to time: tests have the compiler optimize nothing.
RUN = "from bridge.offline import demo; demo.PAIRS = 3; raise SystemExit(demo.main())"


def test_demo_shows_the_fusion(fork):
    shown = fork(RUN)
    assert "Kernels with Inductor: 2\n" in shown
    assert "Kernels with Bridge:   1\n" in shown
    assert shown.count("@triton.jit") == 1
    assert re.search(r"\d+ registers, 0 spills", shown)
    before, after = shown.split("After the passes")
    assert before.count("affine.for") == 4
    assert "bridge.parallel" in after
    errors = dict(re.findall(r"^ +(inductor|bridge) +(\S+e-\d+)$", shown, re.MULTILINE))
    assert float(errors["bridge"]) < 2 * float(errors["inductor"])
    assert re.search(r"inductor / bridge: \d+\.\d\d", shown)
    assert "bridge: 2 -> 1 kernels; " in shown


@pytest.mark.slow
def test_demo_does_without_triton(python):
    shown = python(f"""
        import sys
        sys.modules["triton"] = None
        import importlib.util
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name == "triton" else find(name, *rest)
        {RUN}
    """)
    assert "Triton is not installed" in shown
    assert "@triton.jit" not in shown
    assert "1 kernel with other loops (group0)" in shown


def test_without_triton_the_part_about_the_gpu_is_left_out(monkeypatch, capsys):
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(demo, "show_gpu", lambda: pytest.fail("needs Triton"))
    monkeypatch.setattr(demo, "show_cpu", lambda: print("the part about the CPU"))
    demo.main()
    shown = capsys.readouterr().out
    assert shown.index("Triton is not installed") < shown.index("the part about the CPU")
