"""Test what makes a process look like one with a GPU: what is said of it, and that nothing is left behind."""

from __future__ import annotations

import functools
import importlib
import inspect
import types
from pathlib import Path

import pytest
import torch
from torch._dynamo import device_interface
from torch._inductor import config as inductor_config
from torch._inductor import utils as inductor_utils
from triton.runtime.driver import driver

from bridge import offline
from bridge.offline import _stubs
from bridge.offline.arch import resolve_arch

A100 = resolve_arch(80)


def test_driver_has_the_target_and_the_limits_of_the_architecture():
    stub = _stubs.StubDriver(A100)
    target = stub.get_current_target()
    assert (target.backend, target.arch, target.warp_size) == ("cuda", 80, 32)
    assert stub.get_device_capability() == (8, 0)
    assert stub.utils.get_device_properties(0)["max_shared_mem"] == 163 * 1024


def test_gpu_is_there_within_the_block_only_and_after_an_error_too():
    functions = [vars(torch.cuda)[name] for name in ("is_available", "device_count", "get_device_capability")]
    interface = dict(vars(device_interface.CudaInterface))
    active = driver._active
    with pytest.raises(ZeroDivisionError), _stubs.gpu_stubs(A100):
        assert torch.cuda.is_available()
        assert torch.cuda.get_device_name() == A100.name
        assert torch.cuda.get_device_properties(0).multi_processor_count == 108
        assert isinstance(driver.active, _stubs.StubDriver)
        1 / 0  # noqa: B018
    assert functions == [vars(torch.cuda)[n] for n in ("is_available", "device_count", "get_device_capability")]
    assert dict(vars(device_interface.CudaInterface)) == interface
    assert driver._active is active


@pytest.mark.parametrize("there", [False, True])
def test_advice_about_tensor_cores_is_given_where_torch_gives_it_about_a_gpu_that_is_there(monkeypatch, recwarn, there):
    """Check that advice about tensor cores is given as for a real GPU; torch 2.15 has it only in its log."""
    advise = torch._inductor.compile_fx._warn_tf32_disabled.__wrapped__
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (8, 0))
    advise()
    without_stubs = len(recwarn)
    recwarn.clear()
    with _stubs.gpu_stubs(A100):
        advise()
    assert len(recwarn) == without_stubs <= there


def test_what_was_cached_of_one_gpu_is_not_said_of_the_next():
    found = []
    for arch in (A100, resolve_arch(90)):
        with _stubs.gpu_stubs(arch):
            found += [inductor_utils.get_max_num_sms(), inductor_utils.get_max_num_sms()]
    assert found == [108, 108, 132, 132]
    assert inductor_utils.get_max_num_sms.cache_info().currsize == 0


def test_inductor_knows_the_peak_rate_of_a_gpu_that_is_not_there():
    """Check that Inductor knows the peak rate of a GPU that is not there; 2.15 asks `torch.accelerator`."""
    with _stubs.gpu_stubs(resolve_arch(90)):
        rates = [inductor_utils.get_device_tflops(dtype) for dtype in (torch.bfloat16, torch.float32)]
    assert rates[0] > rates[1] > 0


@pytest.mark.parametrize("numbers", [[2.0], [0.2, 0.7, 0.1]])
def test_constant_that_a_program_makes_does_not_ask_for_the_gpu(numbers):
    def function(x):
        return torch.where(x > 0.5, x, torch.tensor(numbers).to(x))

    assert offline.compile_for_gpu(function, [torch.rand(4, 3)]).kernels


def test_constants_name_is_its_own_for_a_gpu_that_is_not_there():
    graph = torch._inductor.graph.GraphLowering(torch.fx.symbolic_trace(lambda x: x.relu()))
    name = graph.allocate_non_dup_const_name("numbers", torch.ones(3))
    with _stubs.gpu_stubs(A100):
        assert graph.constant_name(name, torch.device("cuda", 0)) == name


#: What a function calls that asks which GPU there is.
QUERIES = {
    "device_count", "get_current_target", "get_device_capability", "get_device_name", "get_device_properties",
    "get_interface_for_device",
}  # fmt: skip


def called(function) -> set[str]:
    """Return the names that a function's code has, with those of the functions in it."""
    codes = [inspect.unwrap(function).__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return {name for code in codes for name in code.co_names}


def asks_for_the_gpu(function, seen: set) -> bool:
    """Return True if a function asks which GPU there is, by itself or by functions of its file."""
    function = inspect.unwrap(function)
    if function in seen or not inspect.isfunction(function):
        return False
    seen.add(function)
    names, scope = called(function), function.__globals__
    own = [scope[name] for name in names if getattr(scope.get(name), "__module__", None) == function.__module__]
    return not names.isdisjoint(QUERIES) or any(asks_for_the_gpu(other, seen) for other in own)


def test_all_that_torch_caches_of_a_gpu_is_cleared():
    modules = {path.partition(":")[0] for path in _stubs._DEVICE_CACHES}
    found = set()
    for name in modules:
        module = importlib.import_module(name)
        caches = [v for v in vars(module).values() if isinstance(v, functools._lru_cache_wrapper)]
        own = [cache for cache in caches if cache.__module__ == name]
        found |= {f"{name}:{cache.__name__}" for cache in own if asks_for_the_gpu(cache, set())}
    assert {"torch._inductor.utils:get_max_num_sms", "torch.utils._triton:triton_hash_with_backend"} <= found
    assert sorted(found - set(_stubs._DEVICE_CACHES)) == []


def test_caches_are_in_a_folder_that_is_gone_afterwards():
    before = inductor_config.force_disable_caches, inductor_config.compile_threads
    with _stubs.scratch_caches() as folder:
        assert Path(folder).is_dir()
        assert (inductor_config.force_disable_caches, inductor_config.compile_threads) == (True, 1)
    assert not Path(folder).exists()
    assert (inductor_config.force_disable_caches, inductor_config.compile_threads) == before


def test_outputs_are_fake_and_of_concrete_size():
    gm = torch.fx.symbolic_trace(lambda x: x.sum(-1, keepdim=True))
    result = _stubs.run_fake(gm, (torch.ones(3, 5),))
    assert type(result).__name__ == "FakeTensor"
    assert (tuple(result.shape), result.device.type) == ((3, 1), "cpu")
