"""The demonstration runs from beginning to end and says what it promises."""

import re


def test_demo_shows_the_fusion(python):
    shown = python("from bridge.offline.demo import main; raise SystemExit(main())")
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


def test_demo_does_without_triton(python):
    shown = python("""
        import sys
        sys.modules["triton"] = None
        import importlib.util
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name == "triton" else find(name, *rest)
        from bridge.offline.demo import main
        raise SystemExit(main())
    """)
    assert "Triton is not installed" in shown
    assert "@triton.jit" not in shown
    assert "1 kernel with other loops (group0)" in shown
