"""Run PyTorch's own tests of Inductor, with Bridge in every compilation.

The folder `test` of a checkout of PyTorch, of the release that is installed, is named by BRIDGE_PYTORCH_TESTS. A case
is a part of a file, "FILE NUMBER": TESTS_A_CASE tests in one process. Each test runs with Bridge; one that fails runs
again without. What fails in both is Inductor's.
"""

from __future__ import annotations

import functools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bridge

from .excused_tests import EXCUSED
from .outcome import Outcome, Verdict

FOLDER = "BRIDGE_PYTORCH_TESTS"
TESTS_A_CASE = 40
SECONDS_A_TEST = 180
TIME_LIMIT = 2.0 * TESTS_A_CASE * SECONDS_A_TEST
CASES_A_PROCESS = 1000
#: Files under `inductor`, and how many of their tests run (None: all), chosen by a fixed seed.
FILES: dict[str, int | None] = {
    "test_perf.py": None,
    "test_loop_ordering.py": None,
    "test_mmdecomp.py": None,
    "test_memory_planning.py": None,
    "test_cpu_repro.py": None,
    "test_torchinductor.py": None,
    "test_torchinductor_dynamic_shapes.py": None,
    "test_torchinductor_opinfo.py": 600,
    "test_aot_inductor.py": None,
    "test_fused_attention.py": None,
    "test_combo_kernels.py": None,
}
#: Their tests ask for a GPU and look at no more than the schedule: without one they run on the CPU.
ON_CPU = ("test_perf.py", "test_loop_ordering.py")
#: The interpreter of Triton is too slow for these.
TARGETS = ("cpp", "cuda")
#: PyTorch's own settings and conftest.py ask for more than what is needed here, and for an older pytest.
_PLUGIN = ("-q", "-p", "no:cacheprovider", "-p", "torture.pytorch_plugin", "-W", "ignore", "--tb=short")
_NO_SETTINGS = ("-c", os.devnull, "--rootdir", ".", "--noconftest")


@dataclass(frozen=True)
class Failure:
    """Hold a test that fails with Bridge, and not without it. died: the process ended in it."""

    test: str
    message: str
    died: bool


def names(target: str) -> Sequence[str]:
    """Return parts of all files; nothing without a checkout, or for the interpreter."""
    if FOLDER not in os.environ or target not in TARGETS:
        return []
    return [f"{file} {i}" for file in FILES for i in range(-(-len(_tests(file)) // TESTS_A_CASE))]


def run(name: str, target: str) -> Outcome:
    """Run one part of a file. Its worst test decides the verdict."""
    file, number = name.split()
    started, first = time.monotonic(), int(number) * TESTS_A_CASE
    results = run_tests(file, _tests(file)[first : first + TESTS_A_CASE], alone=False)
    failed = [test for test, result in results.items() if result["outcome"] == "failed"]
    alone = run_tests(file, failed, alone=True) if failed else {}
    return judge(name, results, alone, time.monotonic() - started)


@functools.cache
def _tests(file: str) -> list[str]:
    """Return ids of the tests of a file that run, in the order of the file."""
    with tempfile.TemporaryDirectory() as folder:
        collected = Path(folder, "ids")
        _pytest(file, ["--collect-only", "--bridge-lines", os.devnull, "--bridge-collected", str(collected)])
        tests = collected.read_text(encoding="utf-8").split("\n") if collected.exists() else []
    wanted = FILES[file]
    if wanted is None or wanted >= len(tests):
        return tests
    return [tests[i] for i in sorted(random.Random(0).sample(range(len(tests)), wanted))]


def run_tests(file: str, tests: Sequence[str], alone: bool) -> dict[str, dict[str, Any]]:
    """Return what became of each test, by its id.

    A test that ends the process has failed; the rest go on without it.
    """
    results: dict[str, dict[str, Any]] = {}
    while missing := [test for test in tests if test not in results]:
        lines = _lines(file, missing, alone)
        results |= {line["test"]: line for line in lines if "test" in line}
        ended = next((s for line in lines if (s := line.get("start")) and s not in results), missing[0])
        if any(test not in results for test in missing):
            results[ended] = {"test": ended, "outcome": "failed", "detail": "the process ended", "died": True}
    return results


def _lines(file: str, tests: Sequence[str], alone: bool) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        ids, lines = Path(folder, "ids"), Path(folder, "lines")
        ids.write_text("\n".join(tests), encoding="utf-8")
        lines.touch()
        options = ["--bridge-ids", str(ids), "--bridge-lines", str(lines), *(["--bridge-alone"] if alone else [])]
        _pytest(file, [*options, "--bridge-seconds", str(SECONDS_A_TEST)], len(tests))
        return [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]


def _pytest(file: str, options: Sequence[str], tests: int = 1) -> None:
    folder = Path(os.environ[FOLDER], "inductor")
    # The Bridge of this process, be it installed or in a checkout.
    here, package = Path(__file__).parents[1], Path(bridge.__file__).parents[1]
    path = os.pathsep.join([str(here), str(here.parent / "support"), str(package), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    on_cpu = ["--bridge-on-cpu"] if file in ON_CPU else []
    command = [sys.executable, "-m", "pytest", *_PLUGIN, *_NO_SETTINGS, *options, *on_cpu, file]
    try:
        limit = 300 + tests * SECONDS_A_TEST
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return


def judge(
    name: str, results: dict[str, dict[str, Any]], alone: dict[str, dict[str, Any]], seconds: float = 0.0
) -> Outcome:
    """Return the outcome of a case from what its tests did with Bridge, and those that failed, without."""
    failures = find_failures(results, alone)
    faults = [f"{test}: {fault}" for test, result in results.items() for fault in result.get("faults", ())]
    more = [f"{t}: {r['before']} -> {r['after']} kernels" for t, r in results.items() if _more_kernels(r)]
    found = [f"{failure.test}: {failure.message}" for failure in failures]
    return Outcome(
        name,
        _verdict(results, failures, bool(faults), bool(more)),
        "; ".join([*found, *faults, *more]),
        tuple(reason for result in results.values() for reason in result.get("reasons", ())),
        _figures(results, alone, failures),
        seconds,
    )


def find_failures(results: dict[str, dict[str, Any]], alone: dict[str, dict[str, Any]]) -> list[Failure]:
    """Return tests that fail with Bridge and pass without it, but for those that are excused."""
    mine = [
        test
        for test, result in results.items()
        if result["outcome"] == "failed" and alone[test]["outcome"] == "passed" and test not in EXCUSED
    ]
    return [Failure(test, results[test]["detail"], results[test].get("died", False)) for test in mine]


def _more_kernels(result: dict[str, Any]) -> bool:
    return result.get("after", 0) > result.get("before", 0)


def _verdict(results: dict[str, dict[str, Any]], failures: list[Failure], faults: bool, more: bool) -> Verdict:
    """Return the first that holds of these, from the worst on."""
    values = results.values()
    holds = {
        Verdict.hang: any("too long" in failure.message for failure in failures),
        Verdict.crash: any(failure.died or "not close" not in failure.message for failure in failures),
        Verdict.wrong: bool(failures),
        Verdict.internal_error: faults,
        Verdict.worse: more,
        Verdict.fused: any(result.get("fused") for result in values),
        Verdict.restructured: any(result.get("changed") for result in values),
        Verdict.refused: any(result.get("reasons") for result in values),
        Verdict.same: any(result["outcome"] == "passed" for result in values),
        Verdict.skipped: True,
    }
    return next(verdict for verdict, is_so in holds.items() if is_so)


def _figures(
    results: dict[str, dict[str, Any]], alone: dict[str, dict[str, Any]], failures: list[Failure]
) -> dict[str, float]:
    outcomes = [result["outcome"] for result in results.values()]
    excused = sum(alone[t]["outcome"] == "passed" and t in EXCUSED for t in alone)
    return {
        "tests": len(outcomes),
        "passed": outcomes.count("passed"),
        "skipped": outcomes.count("skipped"),
        "inductor_fails": len(alone) - len(failures) - excused,
        "excused": excused,
        "failures": len(failures),
        "kernels_before": sum(result.get("before", 0) for result in results.values()),
        "kernels_after": sum(result.get("after", 0) for result in results.values()),
    }
