"""Plug into pytest: PyTorch's own tests with Bridge in every compilation, and a line of JSON for each test.

    pytest -p torture.pytorch_plugin --bridge-lines FILE [--bridge-slice FROM:TO:STEP] [--bridge-alone] TESTS

A line {"start": id} is written before a test and one with all that it did after it, so that a test that ends the
process is known.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
import time
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bridge-lines", help="file that the lines are added to")
    parser.addoption("--bridge-slice", help="FROM:TO:STEP, of the tests in their order")
    parser.addoption("--bridge-ids", help="file with the ids of tests, a line each: only these")
    parser.addoption("--bridge-collected", help="file for the ids of all tests that are collected")
    parser.addoption("--bridge-seconds", type=int, default=0, help="time limit of one test; 0: none")
    parser.addoption("--bridge-on-cpu", action="store_true", help="tests of the GPU that need none run on the CPU")
    parser.addoption("--bridge-changed", action="store_true", help="end a test where Bridge leaves a graph as it is")
    parser.addoption("--bridge-alone", action="store_true", help="Inductor without Bridge")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.bridge_lines:
        if config.option.bridge_on_cpu:
            _without_gpu()
        config.pluginmanager.register(Lines(config))


class Lines:
    """Run each test with Bridge installed, or without, and write what became of it."""

    def __init__(self, config: pytest.Config):
        self.options = config.option
        self.reports: list[Any] = []
        self.phases: list[Any] = []
        self.started = 0.0
        if not self.options.bridge_alone:
            _listen(self.reports, self.options.bridge_changed)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.options.bridge_on_cpu:
            for module in {item.module for item in items if isinstance(item, pytest.Function)}:
                _to_cpu(module)
        if self.options.bridge_slice:
            bounds = (int(i) if i else None for i in self.options.bridge_slice.split(":"))
            items[:] = items[slice(*bounds)]
        if self.options.bridge_ids:
            with open(self.options.bridge_ids, encoding="utf-8") as file:
                wanted = set(file.read().split("\n"))
            items[:] = [item for item in items if test_id(item.nodeid) in wanted]

        if self.options.bridge_collected:
            with open(self.options.bridge_collected, "w", encoding="utf-8") as file:
                file.write("\n".join(test_id(item.nodeid) for item in items))

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self) -> Any:
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(self.options.bridge_seconds)
        try:
            return (yield)
        finally:
            signal.alarm(0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        import bridge

        self.reports.clear()
        self.phases.clear()
        self.started = time.monotonic()
        self._write({"start": test_id(item.nodeid)})
        if not self.options.bridge_alone:
            bridge.install(training=True)
        try:
            return (yield)
        finally:
            bridge.uninstall()
            self._write({"test": test_id(item.nodeid), **self._result()})

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.phases.append(report)

    def _result(self) -> dict[str, Any]:
        failed = [phase for phase in self.phases if phase.failed]
        skipped = [phase for phase in self.phases if phase.skipped and not hasattr(phase, "wasxfail")]
        outcome = "failed" if failed else "skipped" if skipped else "passed"
        said = (failed or skipped or [None])[0]
        return {
            "outcome": outcome,
            "detail": _message(said) if said is not None else "",
            "seconds": round(time.monotonic() - self.started, 2),
            **_sum(self.reports),
        }

    def _write(self, fields: dict[str, Any]) -> None:
        with open(self.options.bridge_lines, "a", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")


def _too_long(*_: Any) -> None:
    raise TimeoutError("the test took too long")


def _without_gpu() -> None:
    """Make tests that ask for PyTorch's GPU and do not need one (of the schedule, of bytes) run on the CPU."""
    from torch.testing._internal import inductor_utils

    if not inductor_utils.HAS_GPU:
        inductor_utils.GPU_TYPE = "cpu"


def _to_cpu(module: Any) -> None:
    """Change the module's own names for the GPU, in defaults of functions and attributes of classes, to the CPU."""
    for value in vars(module).values():
        if inspect.isfunction(value) and value.__kwdefaults__:
            value.__kwdefaults__ = {k: "cpu" if v == "cuda" else v for k, v in value.__kwdefaults__.items()}
        elif inspect.isclass(value) and vars(value).get("device") == "cuda":
            setattr(value, "device", "cpu")  # noqa: B010 - to mypy a class has no such attribute


def test_id(node: str) -> str:
    """Return the id of a test without the folders: FILE::CLASS::TEST."""
    path, *rest = node.split("::")
    return "::".join([os.path.basename(path), *rest])


test_id.__test__ = False  # pytest takes it for a test


def _listen(reports: list[Any], only_changed: bool) -> None:
    """Keep the report of every graph that Bridge sees.

    only_changed: what Bridge leaves as Inductor has it is not compiled further; this finds faults faster.
    """
    from bridge.scheduling import hook

    publish = hook.publish

    def kept(report: Any) -> None:
        reports.append(report)
        publish(report)
        if only_changed and not _changed(report):
            pytest.skip("Bridge leaves the graph as it is")

    hook.publish = kept


def _changed(report: Any) -> bool:
    fused = any(entry.fused for entry in report.groups)
    return fused or bool(report.choices) or report.kernels_before != report.kernels_after


def _sum(reports: list[Any]) -> dict[str, Any]:
    """Return what Bridge did: kernels before and after, fused groups, reasons of the rest, and faults in words."""
    from bridge.reports import FAULTS

    left = [entry for report in reports for entry in [*report.groups, *report.refusals] if entry.reason is not None]
    return {
        "graphs": len(reports),
        "before": sum(report.kernels_before for report in reports),
        "after": sum(report.kernels_after for report in reports),
        "fused": sum(entry.fused for report in reports for entry in report.groups),
        "changed": any(map(_changed, reports)),
        "reasons": [entry.reason.name for entry in left],
        "faults": [f"{entry.reason.name}: {entry.detail}"[:300] for entry in left if entry.reason in FAULTS],
    }


def _message(phase: Any) -> str:
    """Return the last line of an error, or why a test is skipped."""
    if phase.skipped:
        return str(phase.longrepr[-1] if isinstance(phase.longrepr, tuple) else phase.longrepr)[:200]
    crash = getattr(phase.longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else phase.longrepr)[:600]
