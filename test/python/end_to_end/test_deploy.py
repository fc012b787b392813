"""Test ways to ship what was compiled.

AOTInductor packages, the C++ wrapper, cache artifacts; with the fusion in them.
"""

from __future__ import annotations

import json

import pytest
import torch
from functions import rows, sample

import bridge


class Rows(torch.nn.Module):
    """Hold a weight that the package carries, and compute rows whose number the caller chooses."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, 64))

    def forward(self, x):
        return rows(x * self.weight)


@pytest.fixture(scope="module")
def package(inductor_cache, tmp_path_factory):
    """Return (module, path of its package, report) for any number of rows."""
    module = Rows().eval()
    dimensions = {0: torch.export.Dim("rows", min=2, max=4096)}
    exported = torch.export.export(module, (sample(),), dynamic_shapes=(dimensions,))
    path = str(tmp_path_factory.mktemp("package") / "rows.pt2")
    # A precompiled header takes longer than the one package that would use it.
    without_header = torch._inductor.config.patch({"aot_inductor.precompile_headers": False})
    with bridge.enabled(strict=True) as report, without_header:
        torch._inductor.aoti_compile_and_package(exported, package_path=path)
    return module, path, report


@pytest.mark.in_turn(3)
class TestPackage:
    def test_fusion_is_in_it(self, package):
        assert package[2].fused and package[2].graphs == 1

    @pytest.mark.parametrize("number", [2, 32, 70])
    def test_results_for_any_number_of_rows(self, package, number):
        module, path, _ = package
        x = torch.randn(number, 64)
        torch.testing.assert_close(tuple(torch._inductor.aoti_load_package(path)(x)), module(x))

    def test_process_without_bridge_runs_it(self, package, fork):
        code = f"""
        import sys, torch
        x = torch.linspace(-1, 1, 7 * 64).reshape(7, 64)
        (result,) = torch._inductor.aoti_load_package({package[1]!r})(x)
        print("bridge" in sys.modules, float(result.double().sum()))
        """
        loaded, total = fork(code).split()
        (expected,) = package[0](torch.linspace(-1, 1, 7 * 64).reshape(7, 64))
        assert loaded == "False"
        assert float(total) == pytest.approx(float(expected.double().sum()), rel=1e-4)


def test_exported_width_that_is_even(compiler):
    """Check that a dynamic width is fused where the exported program asserts what a split needs."""

    class Halves(torch.nn.Module):
        def forward(self, x):
            return rows(x)[0]

    width = 2 * torch.export.Dim("half", min=2, max=2048)
    exported = torch.export.export(Halves(), (sample(),), dynamic_shapes=({1: width},))
    compiled = compiler(exported.module(), backend="bridge", dynamic=True)
    for columns in (64, 96):
        x = torch.randn(32, columns)
        torch.testing.assert_close(compiled(x), rows(x)[0])
    assert bridge.report().fused


@pytest.mark.in_turn(3)
def test_cpp_wrapper(compiler):
    compiled = compiler(rows, backend="bridge", options={"cpp_wrapper": True}, dynamic=True)
    for number in (32, 5):
        torch.testing.assert_close(compiled(sample()[:number]), rows(sample()[:number]))
    assert bridge.report().fused


SAVE = """
import json, sys, torch
from functions import rows, sample
from bridge.backend import bridge as backend
import bridge
from torch._dynamo.utils import counters

if {load!r}:
    torch.compiler.load_cache_artifacts(open({path!r}, "rb").read())
with torch.no_grad():
    torch.testing.assert_close(torch.compile(rows, backend=backend)(sample()), rows(sample()))
if not {load!r}:
    open({path!r}, "wb").write(torch.compiler.save_cache_artifacts()[0])
hits = counters["inductor"]["fxgraph_cache_hit"] + counters["aot_autograd"]["autograd_cache_hit"]
print(json.dumps([hits > 0, bridge.report().graphs, len(bridge.report().fused), "mlir" in sys.modules]))
"""


@pytest.mark.in_turn(2)
def test_cache_artifacts(fork, tmp_path):
    """Check that a second machine loads what the first has compiled: it does not compile again, nor load MLIR."""
    path = str(tmp_path / "artifacts")
    caches = [str(tmp_path / name) for name in ("first", "second")]
    first = fork(SAVE.format(load=False, path=path), TORCHINDUCTOR_CACHE_DIR=caches[0])
    assert json.loads(first) == [False, 1, 1, True]
    second = fork(SAVE.format(load=True, path=path), TORCHINDUCTOR_CACHE_DIR=caches[1])
    assert json.loads(second) == [True, 0, 0, False]
