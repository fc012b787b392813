"""Test bridge.export: affine IR that leaves Bridge."""

from __future__ import annotations

import re

import pytest
import torch
from explained import example_inputs, gated
from exported import bridge_opt

import bridge
from bridge.reasons import Reason


@pytest.fixture(scope="module")
def exported():
    return bridge.export(gated, *example_inputs())


class TestExport:
    def test_arguments_are_labelled(self, exported):
        labels = re.findall(r"memref<(\S+)> \{(.*?)\}", exported.splitlines()[1])
        assert labels == [
            ("64x1024xf32", 'bridge.buffer = "arg0_1"'),
            ("64xf32", 'bridge.buffer = "buf0"'),
            ("64x512xf32", 'bridge.buffer = "buf1", bridge.output'),
        ]

    def test_bridge_opt_takes_it(self, exported):
        done = bridge_opt("-", "--bridge-fuse", stdin=exported)
        assert done.returncode == 0 and "bridge.parallel" in done.stdout

    def test_one_kernel_alone_is_exported_too(self):
        text = bridge.export(lambda x: torch.relu(x) + 1, torch.zeros(8, 8))
        assert text.count("func.func") == 1 and "affine.store" in text

    def test_kernels_without_words_are_left_out(self):
        text = bridge.export(lambda x: ((x @ x) * 2, torch.cumsum(x, 0).relu()), torch.zeros(64, 64))
        reasons = re.findall(r"^// left out: .*\[(\w+)\]", text, re.MULTILINE)
        assert "node_not_loops" in reasons and set(reasons) <= set(Reason.__members__)
        assert text.count("func.func") >= 1

    def test_unsigned_types_are_labelled(self):
        text = bridge.export(lambda x: (x.sum(-1) * 255).to(torch.uint8), torch.zeros(8, 8))
        assert 'bridge.dtype = "uint8"' in text

    def test_locations(self):
        text = bridge.export(gated, *example_inputs(), locations=True)
        assert 'explained.py"' in text

    def test_lines_that_are_shifted_by_a_symbol_are_left_out(self):
        """Check that no text claims for a buffer the order in which a rolled image is seen."""

        def rolled(x):
            return torch.roll(torch.softmax(x, -1), 1, 1)

        text = bridge.export(rolled, torch.zeros(3, 5, 8), dynamic=True)
        assert "cyclic shifts of" in text, text
