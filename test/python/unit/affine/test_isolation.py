"""Test option isolate: the passes run in a helper process, and what goes wrong there costs no more than the fusion."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from unittest import mock

import pytest
import torch
from functions import rows, sample

import bridge
from bridge import offline
from bridge.affine import isolation
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason

#: A helper that goes wrong: in the passes, as one of C++ would.
SABOTAGED = """
import ctypes, os, signal, sys, time
from multiprocessing.connection import Connection
from bridge.affine import isolation

def go_wrong(module, pipeline, tree):
    {}

isolation.transform = go_wrong
isolation.serve(Connection(int(sys.argv[1])))
"""


@pytest.fixture(autouse=True)
def helper(compiler, monkeypatch):
    """End the helper process of another test, set strict mode, and end the helper of this test."""
    monkeypatch.setenv("BRIDGE_STRICT", "1")
    _end()
    yield
    _end()


def _end():
    if isolation._helper is not None:
        isolation._helper.process.kill()
        isolation._helper.end()
        isolation._helper = None


def compile_isolated(times: int = 1, **options) -> tuple[bridge.Report, list[str]]:
    """Compile, compare with eager, and return the report and Bridge's warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(times):
            torch._dynamo.reset()
            compiled = torch.compile(rows, backend="bridge", options={"isolate": True, **options})
            torch.testing.assert_close(compiled(sample()), rows(sample()))
    return bridge.report(), [str(w.message) for w in caught if "bridge" in str(w.message)]


def sabotage(monkeypatch, code: str) -> None:
    monkeypatch.setattr(isolation, "_COMMAND", [sys.executable, "-c", SABOTAGED.format(code)])


def offline_report(function, **options) -> bridge.Report:
    """Return the report of a compilation for a GPU: no C++ compiler is called, and nothing is run."""

    def backend(gm, inputs):
        return bridge_backend(gm, inputs, options=options)

    offline.compile_for_gpu(function, [sample()], compile_fx=backend)
    return bridge.report()


def test_what_comes_back_is_what_the_passes_make(tmp_path):
    folders = {}
    for isolate in (False, True):
        options = {"isolate": isolate, "dump_dir": str(tmp_path / str(isolate)), "recheck": True}
        assert len(offline_report(rows, **options).fused) == 1
        (folder,) = (tmp_path / str(isolate)).iterdir()
        folders[isolate] = {path.name: path.read_text() for path in folder.iterdir()}
    assert folders[True] == folders[False]
    assert any(name.endswith("fused.mlir") for name in folders[True])
    assert any("after-bridge-fuse-bands" in name for name in folders[True])


def test_one_helper_serves_several_compilations_and_threads():
    compile_isolated()
    first = isolation._helper.process.pid
    torch._dynamo.reset()
    thread = threading.Thread(target=compile_isolated)
    thread.start()
    thread.join(120)
    assert isolation._helper.process.pid == first != os.getpid()


def test_remarks_come_back_with_their_locations():
    def function(x):
        mean = x.mean(-1, keepdim=True)
        return x - mean, x + mean.flip(0)

    remarks = [[group.remarks for group in offline_report(function, isolate=i).groups] for i in (False, True)]
    assert remarks[0] == remarks[1]
    assert any("test_isolation.py" in where for group in remarks[0] for _, _, where in group)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("code", "fate"),
    [
        ("os.abort()", "SIGABRT"),
        ("ctypes.string_at(0)", "SIGSEGV"),
        ("print('out of luck', file=sys.stderr, flush=True); os._exit(3)", "status 3: out of luck"),
        ("raise MemoryError('none left')", "MemoryError: none left"),
    ],
    ids=["abort", "segfault", "exit", "exception"],
)
def test_a_crash_is_survived(monkeypatch, code, fate):
    sabotage(monkeypatch, code)
    report, said = compile_isolated(times=2)
    assert [group.reason for group in report.groups] == [Reason.pass_crashed]
    assert fate in report.groups[0].detail
    assert len(said) == 1 and "pass_crashed" in said[0]
    assert torch._dynamo.utils.counters["bridge"]["refused.pass_crashed"] == 2


@pytest.mark.parametrize(
    "code", ["time.sleep(600)", "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n    while True: pass"]
)
def test_a_hang_is_survived(monkeypatch, code):
    monkeypatch.setattr(isolation, "TIMEOUT", 1.0)
    sabotage(monkeypatch, code)
    helpers = []
    end = isolation._Helper.end

    def recorded_end(self):
        helpers.append(self.process)
        end(self)

    monkeypatch.setattr(isolation._Helper, "end", recorded_end)
    report, said = compile_isolated()
    assert [group.reason for group in report.groups] == [Reason.pass_timeout]
    assert len(said) == 1 and "pass_timeout" in said[0]
    assert [process.returncode for process in helpers] == [-signal.SIGKILL]


def test_the_next_compilation_has_a_new_helper(monkeypatch):
    with monkeypatch.context() as patched:
        sabotage(patched, "os.abort()")
        assert not compile_isolated()[0].fused
    assert len(compile_isolated()[0].fused) == 1
    isolation._helper.process.kill()  # in between, as by the system for want of memory
    isolation._helper.process.wait()
    assert len(compile_isolated()[0].fused) == 1


def test_an_interrupt_leaves_no_answer_for_the_next_question():
    with pytest.raises(KeyboardInterrupt), mock.patch.object(isolation._Helper, "alive", lambda self: True):
        compile_isolated()
        poll = isolation._helper.connection.poll

        def interrupted(patience):
            assert poll(patience)
            raise KeyboardInterrupt

        isolation._helper.connection = mock.Mock(wraps=isolation._helper.connection, poll=interrupted)
        isolation._ask(("module {}", "builtin.module()", None))
    assert len(compile_isolated()[0].fused) == 1


def test_a_helper_that_does_not_start(monkeypatch):
    monkeypatch.setattr(isolation, "_COMMAND", ["/nonexistent/python"])
    report, said = compile_isolated()
    assert [group.reason for group in report.groups] == [Reason.pass_crashed]
    assert len(said) == 1


@pytest.mark.parametrize("pipeline", ["builtin.module(no-such-pass)", "builtin.module(transform-interpreter)"])
def test_a_pass_that_fails_is_the_same_refusal(pipeline):
    details = []
    for isolate in (False, True):
        report, _ = compile_isolated(isolate=isolate, pipeline=pipeline)
        assert [group.reason for group in report.groups] == [Reason.pass_failed]
        detail, _, command = report.groups[0].detail.partition("; to repeat: ")
        assert command.startswith("bridge-opt --run-reproducer ")
        details.append(detail)
    assert details[0] == details[1]
    assert isolation._helper.alive()


FORK = """
import os, sys
import torch
import torch._functorch.config
import torch._inductor.config
from functions import rows, sample
from bridge.affine import isolation
from bridge.backend import bridge as backend
import bridge

torch._inductor.config.fx_graph_cache = False
torch._functorch.config.enable_autograd_cache = False

def fused():
    torch._dynamo.reset()
    with torch.no_grad():
        compiled = torch.compile(rows, backend=backend, options={"isolate": True})
        torch.testing.assert_close(compiled(sample()), rows(sample()))
    return len(bridge.report().fused)

assert fused() == 1
helper = isolation._helper.process.pid
child = os.fork()
if child == 0:
    os._exit(0 if fused() == 1 and isolation._helper.process.pid != helper else 1)
assert os.waitpid(child, 0)[1] == 0
assert fused() == 1 and isolation._helper.process.pid == helper
print(helper)
"""


@pytest.mark.in_turn(3)
def test_a_forked_process_has_a_helper_of_its_own_and_none_outlives_its_process(fork):
    helper = int(fork(FORK, BRIDGE_STRICT="1"))
    # Its pipe is closed: it ends by itself, which takes it a moment.
    assert any(not _runs(helper) or threading.Event().wait(0.1) for _ in range(100)), "the helper is still there"


def _runs(process: int) -> bool:
    """Return True if a process exists and is no zombie, which waits for whoever reaps orphans here."""
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
