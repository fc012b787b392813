"""Test how `bridge bench` times kernels."""

from __future__ import annotations

from types import SimpleNamespace

from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from bridge import inductor
from bridge.bench import gpu_measurements


def tuned_kernel(folder, name, body, launcher):
    """Return what torch's runtime holds for a kernel that was called."""
    path = folder / f"{name}.py"
    path.write_text(f"def {name}(x):\n    {body}\n")
    kernel = object.__new__(CachingAutotuner)
    kernel.filename, kernel.inductor_meta, kernel.launchers = str(path), {"kernel_name": name}, [launcher]
    return kernel


def test_a_kernel_of_both_has_one_configuration(monkeypatch, tmp_path):
    """Check that a kernel of both compilers gets one configuration, whatever its name's number; others keep theirs."""

    def loaded(*kernels):
        modules = [SimpleNamespace(kernel=kernel, other=0) for kernel in kernels]
        monkeypatch.setattr(PyCodeCache, "modules", modules)
        return inductor.tuned_kernels()

    theirs = loaded(tuned_kernel(tmp_path, "triton_0", "pass", "slow"), tuned_kernel(tmp_path, "triton_1", "2", "a"))
    same, own = tuned_kernel(tmp_path, "triton_5", "pass", "fast"), tuned_kernel(tmp_path, "triton_6", "3", "b")
    assert inductor.share_choices(loaded(same, own), theirs) == 1
    assert (same.launchers, own.launchers) == (["slow"], ["b"])


def test_replays_alternate(monkeypatch):
    """Check that replays alternate, so that none is always last, and that medians of one call are reported."""
    order = []

    def event_times(replay, count):
        order.append(replay)
        return [{"a": 30.0, "b": 10.0}[replay] if len(order) > 2 * gpu_measurements.WARM_UP else 1e6]

    monkeypatch.setattr(gpu_measurements, "event_times", event_times)
    graphs = [gpu_measurements.Replayed(SimpleNamespace(replay=name), None, 2) for name in "ab"]
    assert gpu_measurements.replay_times(graphs, 3) == [15.0, 5.0]
    assert "".join(order[-6:]) in ("abbaab", "baabba")
