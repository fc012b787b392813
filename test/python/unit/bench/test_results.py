"""Test results of `bridge bench`: saved, loaded, summarised and compared."""

from __future__ import annotations

import pytest
from bench_results import result, run_of, side

from bridge.bench.results import half_range, load, regressions, summary


def test_a_saved_run_is_loaded_as_it_was(tmp_path):
    run = run_of(result(), result("swin", "vision", 64), failed={"bert prefill": "RuntimeError: no"}, left_out=["vit"])
    run.save(tmp_path / "run.json")
    assert load(tmp_path / "run.json") == run


@pytest.mark.parametrize("text", ["[]", "{}", '{"heading": {}, "results": [{"model": "llama"}]}'])
def test_something_else_is_no_run(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match="is not a result"):
        load(tmp_path / "run.json")


def test_the_same_again_is_no_regression():
    assert regressions(run_of(result()), run_of(result())) == []


def test_noise_is_no_regression():
    assert regressions(run_of(result(ratio=0.919)), run_of(result(ratio=0.9))) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"ratio": 0.93}, "time over Inductor's was 0.900 and is 0.930"),
        ({"triton_ratio": 0.85}, "Triton time"),
        ({"bridge": side(triton_launches=9)}, "2 Triton launches were saved and 1 are"),
        ({"bridge": side(triton_launches=8, peak_bytes=2 << 20)}, "peak memory"),
        ({"bridge": side(triton_launches=8, error=2e-2)}, "error against eager"),
    ],
)
def test_what_got_worse_is_said(values, words):
    (line,) = regressions(run_of(result(**values)), run_of(result()))
    assert line.startswith("llama prefill: ")
    assert words in line


def test_a_case_that_fails_now_is_a_regression():
    now = run_of(failed={"llama prefill": "RuntimeError: no", "new prefill": "RuntimeError: no"})
    assert regressions(now, run_of(result())) == ["llama prefill: failed, RuntimeError: no"]


def test_summary_means_are_geometric():
    text = summary([result(ratio=0.5), result("swin", "vision", 64, ratio=2.0)])
    assert "| total time, everything | 2 | 1.000 | 2.000 (swin vision) |" in text
    assert "| total time, vision | 1 | 2.000 |" in text
    assert "| Triton launches, 20 -> 16 | 2 | 0.800 | |" in text
    assert "decoding" not in text


def test_half_range_ignores_outliers():
    assert half_range([1.0, 1.0, 1.0, 1.0, 9.0]) < half_range([1.0, 1.1, 1.2, 1.3, 1.4]) * 50
    assert half_range([1.0] * 9 + [100.0]) == 0
