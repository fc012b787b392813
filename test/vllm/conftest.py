"""Hold what the tests with a real vLLM share: its environment, set before vLLM is imported, and no internal errors."""

from __future__ import annotations

import logging
import os
from importlib.metadata import entry_points
from unittest import mock

import pytest

os.environ |= {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    # The C++ compiler is not asked about the CPU in each process, and optimizes nothing.
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
    "TORCHINDUCTOR_DEBUG_COMPILE": "1",
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
}


@pytest.fixture(scope="session", autouse=True)
def plugin_is_found():
    """Find the plug-in that vLLM calls: without it nothing acts, in no process, and nothing says so.

    Metadata of an older Bridge, earlier on the path, hides that of the installed one.
    """
    found = [plugin.value for plugin in entry_points(group="vllm.general_plugins") if plugin.name == "bridge"]
    assert found == ["bridge.serving.vllm:register"], "this environment's metadata of bridge-inductor has no plug-in"


@pytest.fixture(autouse=True)
def no_internal_error():
    """Fail a test that ends with an internal error of Bridge's."""
    from bridge import reports

    with mock.patch.object(reports, "_bugs", []), mock.patch.object(reports, "_warned", set()):
        yield
        assert reports.bugs() == []


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """vLLM's cache folder, of one test."""
    monkeypatch.setenv("VLLM_CACHE_ROOT", str(tmp_path / "vllm"))
    return tmp_path / "vllm"


@pytest.fixture
def lines(caplog, monkeypatch):
    """Return what Bridge logs of graphs, by a logger of the test's, as a process's first engine sets vLLM's up anew."""
    from bridge.serving import reporting

    monkeypatch.setattr(reporting, "log", logging.getLogger("bridge_tests"))
    caplog.set_level(logging.DEBUG, logger="bridge_tests")
    return lambda: [message for message in caplog.messages if message.startswith("Bridge: graph ")]
