"""Hold results of `bridge bench` for tests."""

from __future__ import annotations

import dataclasses

from bridge.bench.results import Result, Run, Side


def side(**values) -> Side:
    return dataclasses.replace(Side(20, 10, 100.0, 50.0, 8.0, 1 << 20, 1e-2), **values)


def result(model="llama", mode="prefill", batch=1, ratio=0.9, **values) -> Result:
    whole = Result(model, mode, batch, side(), side(triton_launches=8), ratio, 0.01, 0.8, 0.02, 0.3, {"aliasing": 1})
    return dataclasses.replace(whole, **values)


def run_of(*results: Result, **values) -> Run:
    return Run({"GPU": "none"}, list(results), **values)
