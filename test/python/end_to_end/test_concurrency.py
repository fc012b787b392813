"""Test threads, processes, and compilations that end in the middle: everything is afterwards as it was before."""

from __future__ import annotations

import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from functions import rows, sample
from paths import ROOT

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.reasons import Reason, Unsupported
from bridge.scheduling import hook


def state():
    """Return what a compilation of Bridge changes and has to restore."""
    from torch._inductor import config
    from torch._inductor.codegen import common, simd, triton

    classes = [vars(owner).copy() for owner in (common.Kernel, simd.SIMDKernel, triton.TritonKernel)]
    entry = config._config["_post_fusion_custom_pass"]
    return config.get_config_copy(), entry.env_value_force, hook.current(), classes, dict(os.environ)


class Interruption(KeyboardInterrupt):
    """Stand for an interruption that no handler of errors catches."""


def raise_in(monkeypatch, stage, error):
    """Make a stage raise in the next compilations."""

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(stage, fail)


STAGES = [
    "bridge.scheduling.hook.fuse_schedule",
    "bridge.affine.translate.group.translate_group",
    "bridge.affine.pipeline.run_pipeline",
    "bridge.lowering.lift.functions.lift_function",
    "bridge.scheduling.commit.rewrite",
    "torch._inductor.graph.GraphLowering.codegen",
]


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.rpartition(".")[2])
def test_interruption_leaves_everything_as_it_was(stage, compiler):
    before = state()
    with pytest.MonkeyPatch.context() as patch:
        raise_in(patch, stage, Interruption())
        with pytest.raises(BaseException) as caught:
            compiler(rows, backend="bridge")(sample())
    chain = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert any(isinstance(error, Interruption) for error in chain)
    assert state() == before
    torch._dynamo.reset()
    assert_fuses(compiler)


def assert_fuses(compiler):
    torch.testing.assert_close(compiler(rows, backend="bridge")(sample()), rows(sample()))
    assert len(bridge.report().fused) == 1


@pytest.mark.expects_internal_error
@pytest.mark.filterwarnings("ignore:bridge leaves the code as Inductor makes it")
@pytest.mark.parametrize("stage", STAGES[1:-1], ids=lambda stage: stage.rpartition(".")[2])
@pytest.mark.parametrize("error", [Unsupported(Reason.not_liftable, "a test"), ValueError("a test")], ids=type)
def test_what_fails_in_the_middle_gives_inductors_code(stage, error, compiler, monkeypatch):
    """Check that a refusal in any stage, and outside of strict mode a bug of Bridge too, gives Inductor's code."""
    before = state()
    monkeypatch.setenv("BRIDGE_STRICT", "0")
    with pytest.MonkeyPatch.context() as patch:
        raise_in(patch, stage, error)
        torch.testing.assert_close(compiler(rows, backend="bridge")(sample()), rows(sample()))
    (group,) = bridge.report().groups
    assert not group.fused and group.reason in (Reason.not_liftable, Reason.internal_error)
    monkeypatch.setenv("BRIDGE_STRICT", before[-1].get("BRIDGE_STRICT", "0"))
    assert state()[1:4] == before[1:4]


def test_threads_compile_and_run_at_once(compiler):
    """Check that threads with a function each may compile and run at once, and end in any order."""
    functions = [lambda x, k=k: tuple(t * k for t in rows(x)) for k in range(1, 4)]
    start = threading.Barrier(len(functions))

    def work(k, function):
        backend = bridge_backend if k != 1 else "inductor"
        start.wait(60)
        with torch.no_grad(), torch._inductor.config.patch(fx_graph_cache=False):
            compiled = torch.compile(function, backend=backend)
            for n in (32, 16):
                torch.testing.assert_close(compiled(sample()[:n]), function(sample()[:n]))

    before = state()
    with ThreadPoolExecutor(len(functions)) as threads:
        for done in [threads.submit(work, *pair) for pair in enumerate(functions)]:
            done.result(240)
    # Two functions of Bridge's, each for the first size and for all; or for all at once, where another thread's second
    # size had come before: to Dynamo they are one code.
    assert 2 <= torch._dynamo.utils.counters["bridge"]["groups_fused"] <= 4
    assert state()[1:4] == before[1:4]


FORK = """
import os, sys, torch
from functions import rows, sample
from bridge.backend import bridge as backend
import bridge

torch.set_num_threads(1)
with torch.no_grad():
    compiled = torch.compile(rows, backend=backend)
    compiled(sample())
    child = os.fork()
    if not child:
        torch.testing.assert_close(compiled(sample()), rows(sample()))
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(lambda x: rows(x + 1), backend=backend)(sample()), rows(sample() + 1))
        os._exit(0 if len(bridge.report().fused) == 1 else 3)
    _, status = os.waitpid(child, 0)
    torch.testing.assert_close(compiled(sample()), rows(sample()))
    print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_after_compile(fork):
    """Check that a forked process runs what is compiled and compiles more, though MLIR was loaded before the fork."""
    assert fork(FORK).strip() == "0"


WORKERS = """
import torch
from bridge.backend import bridge as backend
from functions import rows, sample
import bridge

with torch.no_grad():
    torch.testing.assert_close(torch.compile(rows, backend=backend)(sample()), rows(sample()))
print(len(bridge.report().fused))
"""


@pytest.mark.in_turn(3)
def test_compile_workers(python, tmp_path):
    """Check that Inductor's own processes, which know nothing of Bridge, compile its kernels."""
    variables = {"TORCHINDUCTOR_COMPILE_THREADS": "2", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    assert python(WORKERS, **variables).strip() == "1"


FIRST = """
import threading
import torch

start, failures = threading.Barrier(16), []

def work():
    from torch._dynamo.backends import registry
    start.wait(60)
    try:
        assert registry.lookup_backend("bridge").__module__ == "bridge.backend"
    except BaseException as error:
        failures.append(repr(error))

import torch._dynamo
threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(120)
print(failures)
"""

#: As an installed package is known to torch.
ENTRY_POINT = """
from importlib.metadata import EntryPoint
from torch._dynamo.backends import registry

registry._lazy_import()
registry._BACKENDS["bridge"] = EntryPoint("bridge", TARGET, "torch_dynamo_backends")
"""


@pytest.mark.in_turn(3)
@pytest.mark.one_in(3)
@pytest.mark.parametrize("attempt", range(3))
def test_threads_ask_for_the_backend_at_once(python, attempt):
    """Check the first compilations of a process in sixteen threads at once.

    Torch registers only once what an entry point names.
    """
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (target,) = re.findall(r"torch_dynamo_backends\"?\]\nbridge = \"(.*)\"", text)
    assert python(f"TARGET = {target!r}\n" + ENTRY_POINT + FIRST).strip() == "[]"


RANK = '''
import torch
from torch.nn import functional as F

import bridge
from bridge import offline
from bridge.backend import bridge as backend

bridge.config.strict = True


def periodic(x, y):
    """Return the relative norm of a difference and of its slopes on a torus."""

    def terms(z):
        slopes = [(z.roll(-1, axis) - z.roll(1, axis)) / 2 for axis in (-2, -1)]
        return sum(slope.flatten(-2).pow(2).sum(-1) for slope in [z, *slopes]).sqrt()

    return terms(x - y) / terms(y)


def rotated(x, weight, cos, sin):
    """Return heads whose first half is rotated, and sums of columns."""
    heads = F.rms_norm(x, x.shape[-1:], weight).unflatten(-1, (8, 64))
    first, second, kept = heads.split([16, 16, 32], -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin, kept], -1), x.float().sum(0)


inputs = {periodic: [(64, 7, 6)] * 2, rotated: [(4096, 512), (512,), (1, 16), (1, 16)]}
for function, shapes in inputs.items():
    given = [torch.zeros(shape, requires_grad=True) for shape in shapes]
    compiled = offline.compile_for_gpu(function, given, compile_fx=backend, backward=True)
    print(*(graph.code for graph in compiled.graphs))
'''


@pytest.mark.in_turn(3)
def test_ranks_have_the_same_code(python):
    """Check that ranks, which compile for themselves, emit the same code for any order of sets of strings."""
    codes = [python(RANK, PYTHONHASHSEED=str(seed)) for seed in (1, 2)]
    one, other = (re.sub(r"# kernel path: .*", "", code) for code in codes)
    assert "def triton_" in one and one == other
