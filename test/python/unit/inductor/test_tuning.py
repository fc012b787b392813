"""Check that what torch's runtime chose is found in loaded modules, and given to kernels of the same source."""

from types import SimpleNamespace

import pytest
from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from bridge.inductor import tuning


@pytest.fixture
def kernel(tmp_path):
    """Return a function that makes what launches a kernel, of a source that is in a file."""

    def make(name, body, launchers):
        path = tmp_path / f"{name}.py"
        path.write_text(f"def {name}(): {body}\n", encoding="utf-8")
        found = object.__new__(CachingAutotuner)
        found.filename, found.inductor_meta, found.launchers = str(path), {"kernel_name": name}, launchers
        return found

    return make


def test_kernels_that_were_tuned_are_found_by_source_without_their_names(kernel, monkeypatch):
    tuned, untuned = kernel("triton_poi_0", "a", ["best"]), kernel("triton_poi_1", "b", ["one", "other"])
    module = SimpleNamespace(triton_poi_0=tuned, triton_poi_1=untuned, number=3)
    monkeypatch.setattr(PyCodeCache, "modules", [module])
    assert tuning.tuned_kernels() == {"def kernel(): a\n": tuned}


def test_a_template_whose_file_is_not_noted_is_left_out(kernel, monkeypatch):
    """Check that a template whose file is not recorded is left out.

    `bridge bench --max-autotune` failed for every model: a file of None was read.
    """
    template = kernel("triton_tem_0", "a", ["only"])
    template.filename = None
    monkeypatch.setattr(PyCodeCache, "modules", [SimpleNamespace(triton_tem_0=template)])
    assert tuning.tuned_kernels() == {}


def test_choices_are_shared_by_source():
    kernels = {"same": SimpleNamespace(launchers=["slow"]), "own": SimpleNamespace(launchers=["kept"])}
    tuned = {"same": SimpleNamespace(launchers=["fast"]), "other": SimpleNamespace(launchers=["unused"])}
    assert tuning.share_choices(kernels, tuned) == 1
    assert [each.launchers for each in kernels.values()] == [["fast"], ["kept"]]


def test_a_kernel_that_was_called_has_the_choice_of_the_other():
    """Check that a kernel that was called gets the other's choice.

    From torch 2.13 on a kernel keeps the launcher of its first call, and did not run those that it was given.
    """
    called = SimpleNamespace(launchers=["slow"], _cached_launcher="slow")
    tuning.share_choices({"same": called}, {"same": SimpleNamespace(launchers=["fast"], _cached_launcher="fast")})
    assert called.launchers == ["fast"]
    assert called._cached_launcher is None


def test_nothing_is_shared_between_different_sources():
    kernels = {"one": SimpleNamespace(launchers=["kept"])}
    assert tuning.share_choices(kernels, {"other": SimpleNamespace(launchers=["fast"])}) == 0
    assert kernels["one"].launchers == ["kept"]
