"""Test Inductor's graph caches with Bridge: nothing is served to the wrong compilation, and the right one hits."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from pathlib import Path

import pytest
import torch
from functions import rows, sample
from threads import in_thread
from torch._inductor import custom_graph_pass

import bridge
from bridge.affine import mlir_runtime
from bridge.options import Options
from bridge.scheduling import hook

#: A pass as the torch that runs wants it.
PassBase: type = getattr(custom_graph_pass, "CustomSchedulerPass", custom_graph_pass.CustomGraphPass)


class IdentifiedPass(PassBase):
    def __init__(self, identity):
        self.identity = identity

    def __call__(self, nodes):
        return nodes

    def uuid(self):
        return self.identity


@pytest.fixture
def cached(compiler, inductor_cache):
    """Return a function that compiles `rows` with the FX graph cache, at first empty: "hit", "miss" or "bypass"."""
    from torch._dynamo.utils import counters

    _empty(inductor_cache)

    def compile_and_run(backend="bridge", **options):
        torch._dynamo.reset()
        counters.clear()
        with torch._inductor.config.patch(fx_graph_cache=True):
            compiled = torch.compile(rows, backend=backend, options=options)
            torch.testing.assert_close(compiled(sample()), rows(sample()))
        outcomes = [o for o in ("hit", "miss", "bypass") if counters["inductor"][f"fxgraph_cache_{o}"]]
        assert len(outcomes) == 1
        return outcomes[0]

    yield compile_and_run
    _empty(inductor_cache)


def _empty(folder: Path) -> None:
    for cache in ("fxgraph", "aotautograd"):
        shutil.rmtree(folder / cache, ignore_errors=True)


class TestKey:
    def test_backends_do_not_share(self, cached):
        assert cached("inductor") == "miss"
        assert cached() == "miss"
        assert bridge.report().fused
        assert cached("inductor") == "hit"
        assert cached() == "hit"
        assert bridge.report().graphs == 0
        with bridge.enabled():
            assert cached("inductor") == "hit", "of what backend='bridge' has put there"
        assert cached("inductor") == "hit"

    def test_options_that_decide(self, cached):
        assert cached() == "miss"
        assert cached(max_nodes=1) == "miss"
        assert not bridge.report().fused
        assert cached(strict=True) == "hit"
        assert cached(**{"bridge.max_nodes": 64}) == "hit"

    def test_another_implementation(self, cached, monkeypatch):
        assert cached() == "miss"
        monkeypatch.setattr(hook, "implementation_hash", lambda: "another")
        assert cached() == "miss"
        assert cached() == "hit"
        monkeypatch.setattr(hook, "mlir_version", lambda: None)
        assert cached() == "miss"

    def test_users_pass_without_an_identity(self, cached):
        def users(nodes):
            return nodes

        for _ in range(2):
            assert cached(_post_fusion_custom_pass=users) == "bypass"
        assert cached() == "miss"

    def test_users_pass_with_an_identity(self, cached):
        first, second = IdentifiedPass("1"), IdentifiedPass("2")
        assert cached(_post_fusion_custom_pass=first) == "miss"
        assert cached(_post_fusion_custom_pass=first) == "hit"
        assert cached(_post_fusion_custom_pass=second) == "miss"
        assert cached() == "miss"

    def test_a_dump_is_always_written(self, cached, tmp_path):
        assert cached() == "miss"
        for number in (1, 2):
            assert cached(dump_dir=str(tmp_path)) == "bypass"
            assert len(list(tmp_path.iterdir())) == number
        assert cached() == "hit"

    def test_scope_of_another_thread_does_not_change_the_key(self, cached):
        def in_other():
            with torch.no_grad():
                return cached("inductor")

        # Both in a thread: the configuration of this one has what torch itself leaves in it.
        assert in_thread(in_other) == "miss"
        with hook.active(Options(), bridge.Report()):
            assert in_thread(in_other) == "hit"


class TestAutogradCache:
    def test_backends_do_not_share(self, cached):
        from torch._dynamo.utils import counters

        with torch._functorch.config.patch(enable_autograd_cache=True):
            for backend in ("inductor", "bridge"):
                cached(backend)
                assert dict(counters["aot_autograd"]).get("autograd_cache_hit", 0) == 0
            for backend in ("inductor", "bridge"):
                cached(backend)
                assert counters["aot_autograd"]["autograd_cache_hit"] == 1

    def test_a_dump_is_always_written(self, cached, tmp_path):
        with torch._functorch.config.patch(enable_autograd_cache=True):
            for number in (1, 2):
                cached(dump_dir=str(tmp_path))
                assert len(list(tmp_path.iterdir())) == number


SCRIPT = """
import json, sys
import torch
import torch._dynamo
from functions import rows, sample
from bridge.backend import bridge as backend
import bridge
from torch._dynamo.utils import counters

with torch.no_grad():
    torch.testing.assert_close(torch.compile(rows, backend=backend)(sample()), rows(sample()))
hits = counters["inductor"]["fxgraph_cache_hit"], counters["aot_autograd"]["autograd_cache_hit"]
print(json.dumps([hits, bridge.report().graphs, "mlir" in sys.modules]))
"""


def test_another_process_hits_and_does_not_load_mlir(fork, inductor_cache):
    _empty(inductor_cache)
    assert json.loads(fork(SCRIPT)) == [[0, 0], 1, True]
    assert json.loads(fork(SCRIPT)) == [[1, 1], 0, False]
    _empty(inductor_cache)


class TestImplementationHash:
    def test_has_every_file_that_decides(self):
        root = Path(bridge.__file__).parent
        files = {str(path.relative_to(root)) for path in hook.implementation_files()}
        assert {
            "scheduling/fuse.py",
            "affine/translate/group.py",
            "lowering/lift/band.py",
            "_native/libBridgePasses.so",
        } <= files
        assert not any(name.startswith(("offline", "_native/bin")) or "__pycache__" in name for name in files)

    def test_follows_the_content(self, tmp_path, monkeypatch):
        file = tmp_path / "plug-in.so"
        monkeypatch.setattr(hook, "implementation_files", lambda: [file])
        hashes = []
        for content in (b"one", b"two", b"one"):
            file.write_bytes(content)
            hashes.append(hook.implementation_hash.__wrapped__())
        assert hashes[0] == hashes[2] != hashes[1]

    def test_mlirs_version_is_the_installed_wheels(self):
        assert mlir_runtime.mlir_version() == importlib.metadata.version("xtc-mlir-python-bindings")
