"""Hold what the tests of a whole compilation share: the backend, a cache folder, and processes of their own.

Inductor's compiled C++ is kept from one test to the next; its graph caches are off, but in test_cache_key.py.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from unittest import mock

import faster_compiler
import forked
import processes
import pytest
import sampling
import torch

import bridge
from bridge import reports

# Else each process asks the C++ compiler about the CPU's vectors, 20 s with a new cache folder and 3 s with an old one.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run all parameters of tests marked one_in, and slow tests")
    parser.addoption("--thin", type=int, default=1, metavar="N", help="without --all: one in N parameters of all tests")
    parser.addoption(
        "--turn", type=_hexadecimal, default=0, metavar="TURN", help="without --all: which parameters those are"
    )
    parser.addoption("--few", action="append", default=[], metavar="PATH", help="with --thin: one in four functions")


def _hexadecimal(turn: str) -> int:
    return int(turn or "0", 16)


def pytest_configure(config):
    """Tell the C++ compiler not to optimise, which halves its time; where all tests are run it optimises."""
    if not config.getoption("--all"):
        os.environ.setdefault("TORCHINDUCTOR_DEBUG_COMPILE", "1")


def pytest_collection_finish(session):
    """Keep Python's collector from walking again and again what torch's modules hold: it looks at what tests make."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_collection_modifyitems(config, items):
    """Leave out the parameters whose turn it is not, and the tests marked `slow`."""
    if config.getoption("--all"):
        return
    few = tuple(Path(path).resolve() for path in config.getoption("--few"))
    chosen = sampling.Sample(config.getoption("--turn"), config.getoption("--thin"), few).of(items)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


@pytest.fixture(scope="session", autouse=True)
def faster_cpp(tmp_path_factory):
    """Make the C++ compiler do less for each kernel, also in processes that tests start."""
    with mock.patch.dict(os.environ, faster_compiler.make(tmp_path_factory.mktemp("compiler"))):
        yield


@pytest.fixture(autouse=True)
def no_internal_error(request):
    """Fail a test that ends with an internal error of Bridge, unless it is marked `expects_internal_error`.

    Errors of one test are kept from all others.
    """
    last = bridge.report()
    with mock.patch.object(reports, "_bugs", []):
        yield
        found, report = reports.bugs(), bridge.report()
    if report is not None and report is not last:
        found += [detail for reason, detail in report.reasons() if reason is bridge.Reason.internal_error]
    if found and request.node.get_closest_marker("expects_internal_error") is None:
        pytest.fail("internal errors of Bridge's: " + "; ".join(dict.fromkeys(found)))


@pytest.fixture(scope="session")
def backend():
    """Register backend="bridge" where the package is a source tree that is not installed."""
    import torch._dynamo

    if "bridge" not in torch._dynamo.list_backends(exclude_tags=()):
        from bridge.backend import bridge

        torch._dynamo.register_backend(bridge, name="bridge")


@pytest.fixture(scope="session")
def inductor_cache(tmp_path_factory):
    """Set Inductor's cache folder for all tests of the process, and return it."""
    previous = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    folder = tmp_path_factory.mktemp("inductor")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
    yield folder
    os.environ.pop("TORCHINDUCTOR_CACHE_DIR")
    if previous is not None:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = previous


@pytest.fixture
def compiler(backend, inductor_cache, monkeypatch):
    """Return torch.compile in a state as of a new process: nothing compiled, no counters, no graph caches."""
    import torch._functorch.config
    import torch._inductor.config

    from bridge.scheduling import hook

    monkeypatch.delenv("BRIDGE_DUMP_DIR", raising=False)
    monkeypatch.setattr(reports, "_warned", set())
    monkeypatch.setattr(reports, "_last", None)
    hook._unfinished.set(None)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with (
        torch._inductor.config.patch(fx_graph_cache=False),
        torch._functorch.config.patch(enable_autograd_cache=False),
        torch.no_grad(),
    ):
        yield torch.compile
    torch._dynamo.reset()


@pytest.fixture
def counters():
    """Return a function that reads Dynamo's counters of Bridge."""
    return lambda: dict(torch._dynamo.utils.counters["bridge"])


@pytest.fixture(scope="session")
def python(inductor_cache):
    """Return a function that runs Python code in a new process and returns what it printed."""

    def run(code: str, **variables: str) -> str:
        command = [sys.executable, "-c", textwrap.dedent(code)]
        done = subprocess.run(
            command, check=False, env=processes.environment(**variables), capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def fork(inductor_cache):
    """Return a function that runs code as `python` does, in a fork of a process with torch and with its settings."""

    def run(code: str, **variables: str) -> str:
        status, out, err = forked.start(code, processes.environment(**variables)).ended(300)
        assert status == 0, err
        return out

    return run
