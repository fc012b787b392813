"""`bridge bench --corpus`, on a corpus of two programs of our own in the folders that the public one has."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import torch

from bridge import cli
from bridge.bench import gpu_measurements
from bridge.bench.corpus import exclusive, measured, numerics, pool, tables
from bridge.bench.corpus.command import chosen, summary
from bridge.bench.corpus.compiled import compile_offline
from bridge.bench.corpus.patterns import Corpus, outline_inputs
from bridge.reports import Report

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
    """Two patterns: one that Bridge fuses, and one that no compiler takes."""
    for name, source in {"norm_1": NORM, "bad_2": NORM.replace("x.pow(2)", "x.unknown()")}.items():
        folder = tmp_path / "repros" / "canonical" / name
        folder.mkdir(parents=True)
        (folder / "repro.py").write_text(textwrap.dedent(source))
        (folder / "oracle.py").write_text(textwrap.dedent(ORACLE))
        (folder / "shapes.json").write_text(json.dumps(POINTS))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Corpus(tmp_path)


def test_a_folder_that_is_no_corpus_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no checkout of the corpus"):
        Corpus(tmp_path)


def test_names_are_in_the_order_of_their_hashes(corpus):
    assert corpus.names() == ["norm_1", "bad_2"]
    assert chosen(corpus.names(), ["bad"], "0/1") == ["bad_2"]
    assert chosen(corpus.names(), [], "1/2") == ["bad_2"]


def test_inputs_have_the_layouts_of_their_entries():
    entries = [[[2, 3], "bf16", {"st": [1, 2]}], ["S", [6]], ["sc", 0.5], [[4], "f32", {"alias": 0, "off": 2}]]
    strided, size, number, alias = outline_inputs({"inputs": entries, "alias_group_nbytes": [24]})
    assert (strided.shape, strided.stride(), strided.dtype) == ((2, 3), (1, 2), torch.bfloat16)
    assert (size, number) == ([6], 0.5)
    assert (alias.storage_offset(), alias.untyped_storage().nbytes()) == (2, 24)


def test_a_pattern_is_compiled_with_and_without_bridge(corpus):
    record = compile_offline(corpus, "norm_1")
    assert (record["status"], record["inductor"], record["bridge"], record["claimed"]) == ("fused", 2, 1, [2, 1])
    assert not record["same_code"]


def test_a_pattern_that_inductor_cannot_compile_is_skipped(corpus):
    record = compile_offline(corpus, "bad_2")
    assert record["status"] == "skipped" and "unknown" in record["detail"]


def test_a_failure_of_bridge_alone_is_a_crash(corpus):
    with mock.patch("bridge.scheduling.hook.run_after_fusion", side_effect=RuntimeError("a bug")):
        record = compile_offline(corpus, "norm_1")
    assert record["status"] == "crash" and "a bug" in record["detail"]


def test_the_command_goes_on_where_it_was_stopped(corpus, tmp_path, capsys):
    command = ["bench", "--corpus", str(corpus.folder), "--workers", "1", "--out", str(tmp_path / "out")]
    assert cli.main([*command, "--only", "norm"]) == 0
    assert "norm_1 fused 2 -> 1 kernels" in capsys.readouterr().out
    assert cli.main(command) == 0
    printed = capsys.readouterr().out
    assert "[1/1] bad_2 skipped" in printed and "2 patterns: 1 fused, 1 skipped" in printed
    assert "| all | 2 | 2 | 1 |" in (tmp_path / "out" / "corpus.md").read_text()
    assert "norm_1\tfused\t2\t1\t" in (tmp_path / "out" / "corpus.tsv").read_text()


def test_a_process_that_ends_or_hangs_is_a_result(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text("import sys, time\nname = sys.stdin.readline()\ntime.sleep(60 * ('slow' in name))\nsys.exit(7)\n")
    with mock.patch.object(pool, "_COMMAND", [sys.executable, str(script)]):
        worker = pool.Worker([], limit=2.0)
        assert worker.ask("quick") == {"pattern": "quick", "status": "crash", "detail": "the process ended with code 7"}
        assert worker.ask("slow") == {"pattern": "slow", "status": "hang", "detail": "no result in 2 s"}


def test_a_failure_is_said_and_ends_red():
    lines = summary([{"pattern": "a", "status": "worse", "inductor": 1, "bridge": 2}])
    assert "FAILED a worse 1 -> 2 kernels" in lines


def test_the_reference_is_computed_in_double():
    def program(x):
        half = torch.ops.prims.convert_element_type.default(x, torch.bfloat16)
        return torch.ops.prims.convert_element_type.default(half, torch.float32).sum(), x.add_(1)

    x = torch.full((1000,), 1.001)
    total, changed, also_changed = numerics.in_double(program, [x])
    assert total.dtype is torch.float64 and abs(total.item() - 1000 * x[0].item()) < 1e-9
    assert torch.equal(changed, also_changed)


def test_errors_are_those_of_finite_values():
    nan, inf = float("nan"), float("inf")
    expected = torch.tensor([3.0, 4.0, nan, inf])
    assert numerics.error(torch.tensor([3.0, 4.5, nan, inf]), expected) == pytest.approx(0.1)
    assert numerics.error(torch.tensor([3.0, 4.0, 0.0, inf]), expected) == inf
    assert numerics.error(torch.tensor([nan, 4.0, nan, inf]), expected) == inf


def test_an_error_may_be_inductors_and_half_more():
    assert numerics.too_far([1.4e-3, 1.6e-3, 1e-7], [1e-3, 1e-3, 0.0], [1e-6] * 3) == [1]


@pytest.fixture
def stub_gpu(monkeypatch):
    """A machine whose CUDA graphs run on the CPU."""

    def captured(call):
        return SimpleNamespace(replay=call), None

    monkeypatch.setattr(gpu_measurements, "captured", captured)
    monkeypatch.setattr(gpu_measurements, "event_times", lambda call, count: [(call(), 100.0)[1] for _ in range(count)])
    for name in ("synchronize", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setitem(sys.modules, "oracle_harness", SimpleNamespace(resolve_oracle=lambda f, inputs: (f, None)))


def test_the_course_of_a_measurement(corpus, stub_gpu):
    record = measured.measure(corpus, "norm_1")
    assert record["status"] not in ("skipped", "crash", "wrong"), record
    assert record["reference"] == "float64" and max(record["errors"]) < 1e-6
    assert {record["bridge_us"], record["oracle_us"]} == {50.0} and record["over_oracle"] == 1.0


def test_a_wrong_result_is_found(corpus, stub_gpu):
    def broken(gm, inputs):
        return lambda *args: [2 * result for result in gm(*args)]

    with (
        mock.patch.object(measured, "bridge_backend", lambda: broken),
        mock.patch("bridge.report", lambda: Report()),
    ):
        record = measured.measure(corpus, "norm_1")
    assert record["status"] == "wrong" and "result 0" in record["detail"]


def test_code_runs_within_the_lock():
    held = []
    backend = exclusive.locked(lambda gm, inputs: lambda *args: held.append(exclusive._depth))
    backend(None, [])()
    assert held == [1] and exclusive._depth == 0


def test_nothing_of_the_corpus_is_in_the_repository():
    package = Path(measured.__file__).parent
    assert not list(package.rglob("*.json")) and not list(package.rglob("repro*.py"))


def test_records_are_cases_of_the_torture(corpus, monkeypatch):
    generator = pytest.importorskip("torture.corpus")
    monkeypatch.setenv("BRIDGE_CORPUS", str(corpus.folder))
    generator._corpus.cache_clear()
    assert generator.names("triton") == ["norm_1", "bad_2"] and generator.names("cpp") == []
    case = generator.run("norm_1", "triton")
    assert (case.verdict.name, case.figures["inductor"], case.figures["bridge"]) == ("fused", 2, 1)
    assert generator.run("bad_2", "triton").verdict.name == "skipped"
    generator._corpus.cache_clear()


def test_tables_have_the_reasons_and_gaps_of_what_stays_apart():
    group = {"kernels": [3, 3], "bytes": [3 << 20, 1 << 20], "why": [["mutation", "words"]]}
    left = {"pattern": "a", "status": "refused", "inductor": 3, "bridge": 3, "reasons": ["mutation"], "apart": [group]}
    timed = {"pattern": "b", "status": "same", "inductor": 1, "bridge": 1, "reasons": [], "over_inductor": 1.1}
    text = "\n".join(tables.describe([left, timed], 9))
    assert "2 of 9 patterns" in text and "| mutation | 1 |" in text
    assert "| a | 3 -> 3 | 3.0 | 1.0 | mutation |" in text and "- b: 1.100" in text
