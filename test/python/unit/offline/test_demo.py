"""Test what the demonstration prints and measures, without a compilation."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path

import pytest
import torch

from bridge.offline import demo


def statements(source: str) -> list[str]:
    (function,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(function, ast.FunctionDef)
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return [ast.unparse(statement).replace("torch.nn.functional.", "F.") for statement in body]


def test_the_function_that_is_shown_is_the_one_that_is_compiled():
    assert statements(demo.SOURCE) == statements(inspect.getsource(demo.f))


def test_inputs_are_the_same_each_time_and_the_weight_is_one_row():
    first, second = demo.make_inputs((3, 8), torch.bfloat16), demo.make_inputs((3, 8), torch.bfloat16)
    assert [tuple(t.shape) for t in first] == [(3, 8), (3, 8), (8,)]
    assert {t.dtype for t in first} == {torch.bfloat16}
    assert all(map(torch.equal, first, second))
    assert not torch.equal(first[0], first[1])


def test_stages_are_read_from_wherever_the_dump_has_them(tmp_path):
    folder = tmp_path / "graph0"
    folder.mkdir()
    (folder / "group0-affine.mlir").write_text("two nests")
    with pytest.raises(StopIteration):
        demo.read_stages(tmp_path)
    (folder / "group0-fused.mlir").write_text("one nest")
    assert demo.read_stages(tmp_path) == {"affine": "two nests", "fused": "one nest"}


def test_times_are_medians_and_the_ratio_is_that_of_the_pairs(capsys):
    demo.show_times([(0.004, 0.001), (0.002, 0.001), (0.009, 0.003)])
    assert capsys.readouterr().out.splitlines() == [
        "    inductor  4.00 ms (median)",
        "    bridge    1.00 ms (median)",
        "    inductor / bridge: 3.00 (median of the pairs)",
    ]


def test_only_bridge_gets_a_folder_for_its_stages_and_it_is_gone_afterwards():
    with demo.without_caches("inductor") as theirs, demo.without_caches("bridge") as ours:
        folder = Path(ours["dump_dir"])
        assert theirs == {"fx_graph_cache": False}
        assert ours == {"fx_graph_cache": False, "dump_dir": str(folder)}
        assert folder.is_dir()
    assert not folder.exists()
