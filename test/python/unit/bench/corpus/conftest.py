"""Make a corpus of two programs of our own in the folders that the public one has."""

from __future__ import annotations

import json
import sys
import textwrap

import pytest

from bridge.bench.corpus.patterns import Corpus

NORM = """
    import torch
    from torch import device

    class Repro(torch.nn.Module):
        def forward(self, x, size):
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            first, second = y.chunk(2, -1)
            return torch.ops.aten.view.default(first * second, size)

    def make_inputs():
        return [torch.randn(8, 4096), [8, 1, 2048]]
"""
ORACLE = """
    import torch

    def oracle_forward(inputs):
        return inputs[0].sum()
"""
POINTS = {"points": [{"shape_hash": "0", "models": {}, "inputs": [[[8, 4096], "f32"], ["S", [8, 1, 2048]]]}]}


@pytest.fixture
def corpus(tmp_path, monkeypatch) -> Corpus:
    """Return a corpus of two patterns: one that Bridge fuses, and one that no compiler accepts."""
    for name, source in {"norm_1": NORM, "bad_2": NORM.replace("x.pow(2)", "x.unknown()")}.items():
        folder = tmp_path / "repros" / "canonical" / name
        folder.mkdir(parents=True)
        (folder / "repro.py").write_text(textwrap.dedent(source))
        (folder / "oracle.py").write_text(textwrap.dedent(ORACLE))
        (folder / "shapes.json").write_text(json.dumps(POINTS))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Corpus(tmp_path)
