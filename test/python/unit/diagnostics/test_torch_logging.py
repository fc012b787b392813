"""Test Bridge in torch's own tools: TORCH_LOGS, TORCH_TRACE, TORCH_COMPILE_DEBUG, compile_times."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import forked
import processes
import pytest
import torch
from functions import rows, sample

from bridge.diagnostics.torch_logging import without_errors

PROGRAM = """
from functions import rows, sample
from bridge import offline
from bridge.backend import bridge
offline.compile_for_gpu(rows, [sample()], compile_fx=bridge)
"""

#: What the import of torch does with TORCH_LOGS, where it has been imported.
READ_AGAIN = """
import torch
torch._logging._init_logs()
"""


def said(folder: Path, **variables: str) -> str:
    """Return what a process with such an environment writes to stderr."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command,
        env=processes.environment(**variables),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Return (stderr, folder) of a process in which all logs and traces are on."""
    folder = tmp_path_factory.mktemp("everything")
    logs, trace = {"TORCH_LOGS": "+bridge,bridge_ir"}, {"TORCH_TRACE": str(folder / "trace")}
    return said(folder, TORCH_COMPILE_DEBUG="1", **logs, **trace), folder


@pytest.mark.in_turn(3)
def test_log_has_the_decisions():
    environment = processes.environment(TORCH_LOGS="bridge")
    status, _, text = forked.start(READ_AGAIN + PROGRAM, environment).ended(300)
    assert status == 0, text
    assert "bridge: 1 of 1 groups fused" in text and "group0 (op0, op1): 2 -> 1 kernels: " in text
    assert "ms: translate" not in text and "affine.for" not in text


def test_debug_log_has_the_details(everything):
    assert "ms: translate" in everything[0]


def test_artifact_has_the_affine_ir(everything):
    lines = [line for line in everything[0].splitlines() if "[__bridge_ir]" in line]
    assert [line.split()[-1] for line in lines if " group0 " in line] == ["affine.mlir", "fused.mlir"]
    assert any("affine.for" in line for line in lines)


def test_trace_has_an_artifact_for_each_stage(everything):
    (log,) = (everything[1] / "trace").glob("*.log")
    text = log.read_text()
    names = re.findall(r'"artifact": {"name": "(bridge_[^"]*)", "encoding": "string"}', text)
    assert {"bridge_group0_affine.mlir", "bridge_group0_fused.mlir", "bridge_report"} <= set(names)
    assert "bridge: 1 of 1 groups fused" in text


def test_debug_folder_has_the_stages_beside_inductors(everything):
    (affine,) = everything[1].glob("torch_compile_debug/*/torchinductor/*/bridge/*/01-affine.mlir")
    assert "affine.for" in affine.read_text()
    assert list(affine.parents[2].glob("*.py"))


def test_set_logs(fork):
    """Check that `set_logs` knows the artifact: importing Bridge registers it, where torch is imported before."""
    program = """
    import torch, bridge
    torch._logging.set_logs(modules={"bridge_ir": True})
    print(torch._logging._internal.log_state.is_artifact_enabled("bridge_ir"))
    """
    assert fork(program).strip() == "True"


@pytest.mark.in_turn(2)
def test_naming_the_package_in_torch_logs_loads_little(python):
    loaded = "import torch, sys; print([n for n in ('torch._inductor', 'triton', 'mlir') if n in sys.modules])"
    assert python(loaded, TORCH_LOGS="bridge").strip() == "[]"


@pytest.mark.in_turn(2)
@pytest.mark.one_in(2)
@pytest.mark.parametrize("first", ["bridge", "bridge.config", "bridge.cli", "bridge.commands.explain", "torch"])
def test_torch_logs_knows_the_artifact_whichever_is_imported_first(python, first):
    """Check that TORCH_LOGS works, whichever is imported first.

    Imported after Bridge, torch ended with a ValueError about the names.
    """
    program = f"""
    import {first}
    import torch
    print(torch._logging._internal.log_state.is_artifact_enabled("bridge_ir"))
    """
    assert python(program, TORCH_LOGS="bridge,bridge_ir").strip() == "True"


@pytest.mark.in_turn(2)
def test_compile_times_and_counters(compiler, counters):
    compiler(rows, backend="bridge")(sample())
    times = torch._dynamo.utils.compile_times()
    assert all(re.search(rf"^{name}\b", times, re.MULTILINE) for name in ("bridge", "bridge.passes", "bridge.lift"))
    assert counters()["groups_fused"] == 1


def test_an_error_that_is_raised_is_not_logged_as_well(caplog):
    """Check that an error that is raised is not logged too: torch logs 40 lines for a shape that does not fit."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    with without_errors():
        logger.error("a traceback")
        logging.getLogger("bridge").error("of Bridge")
    logger.error("afterwards")
    assert [record.message for record in caplog.records] == ["of Bridge", "afterwards"]
