"""Test that the first screens in docs/tools.md are those that the programs have."""

from __future__ import annotations

import importlib.util
import re

import pytest
from paths import ROOT

from bridge.inductor.compiling import torch_release

spec = importlib.util.spec_from_file_location("first_screens", ROOT / "docs" / "first_screens.py")
assert spec is not None and spec.loader is not None
first_screens = importlib.util.module_from_spec(spec)
spec.loader.exec_module(first_screens)

#: Half a minute.
SLOW = {"tiny Swin": pytest.mark.slow}


@pytest.mark.skipif(torch_release() < (2, 13), reason="its kernels are others")
@pytest.mark.parametrize("name", [pytest.param(n, marks=SLOW.get(n, ())) for n in first_screens.PROGRAMS])
def test_screen(name):
    """Check that a screen shown in the docs, which `make docs` writes, is what the program prints now.

    Torch 2.15 names other operations as the origin of a node of `mse_loss_backward`.
    """
    pytest.importorskip("transformers")
    shown = first_screens.without_times(first_screens.written(first_screens.PAGE.read_text())[name])
    now = first_screens.without_times(first_screens.screen(name))
    assert without_operations(now) == without_operations(shown)
    assert now == shown or torch_release() >= (2, 15)


def without_operations(screen: str) -> str:
    """Return a screen without what each kernel computes and from which lines, which stands before the bytes."""
    return re.sub(r"(\(graph \d+ group\d+\): ).*?(; [\d.]+ [KM]B)", r"\1\2", screen)


def test_figures_are_compared_where_operations_are_not():
    merged = "2 kernels merged into 1 (graph 0 group0): pow (a.py:1 x), mul; 72.1 MB -> 40.0 MB, saves 0 us"
    assert without_operations(merged) == without_operations(merged.replace("pow", "silu")) != merged
    assert without_operations(merged) != without_operations(merged.replace("40", "41"))
    assert without_operations(merged) != without_operations(merged.replace("2 kernels", "3 kernels"))


def test_what_differs_between_runs_is_not_compared():
    once, again = "8 kernels; 16.1 us (37%\n  less); in 1.2 s", "8 kernels; 2 ms (5% less); in 12 s"
    assert first_screens.without_times(once) == first_screens.without_times(again).replace("ms", "us")
    assert first_screens.without_times(once) != first_screens.without_times(once.replace("8", "9"))
