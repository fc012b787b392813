"""How `bridge bench` times kernels."""

from __future__ import annotations

from types import SimpleNamespace

from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from bridge import inductor


def tuned_kernel(folder, name, body, launcher):
    """What torch's runtime has for a kernel that was called."""
    path = folder / f"{name}.py"
    path.write_text(f"def {name}(x):\n    {body}\n")
    kernel = object.__new__(CachingAutotuner)
    kernel.filename, kernel.inductor_meta, kernel.launchers = str(path), {"kernel_name": name}, [launcher]
    return kernel


def test_a_kernel_of_both_has_one_configuration(monkeypatch, tmp_path):
    """Whatever number it has in its name; what only one of them has keeps its own."""

    def loaded(*kernels):
        modules = [SimpleNamespace(kernel=kernel, other=0) for kernel in kernels]
        monkeypatch.setattr(PyCodeCache, "modules", modules)
        return inductor.tuned_kernels()

    theirs = loaded(tuned_kernel(tmp_path, "triton_0", "pass", "slow"), tuned_kernel(tmp_path, "triton_1", "2", "a"))
    same, own = tuned_kernel(tmp_path, "triton_5", "pass", "fast"), tuned_kernel(tmp_path, "triton_6", "3", "b")
    assert inductor.share_choices(loaded(same, own), theirs) == 1
    assert (same.launchers, own.launchers) == (["slow"], ["b"])
