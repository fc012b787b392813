"""Undo of what Bridge replaces in torch (bridge/inductor/patches.py), and classes that stay as they are."""

import ast
from pathlib import Path

import pytest
import torch
from torch._inductor import sizevars

import bridge
from bridge.inductor import derived, patches

PACKAGE = Path(bridge.__file__).parent


class Wrapper:
    """Stands for an object of torch's."""

    def __init__(self):
        self.allocated = []

    def codegen_allocation(self, buffer):
        self.allocated.append(buffer)

    def codegen_inplace_reuse(self, one, other):
        self.allocated.append((one, other))


def test_joining_is_inductors_own_after_the_block():
    before = sizevars.join_dimensions
    with pytest.raises(RuntimeError, match="stop"), patches.joining_less():
        assert sizevars.join_dimensions is not before
        raise RuntimeError("stop")
    assert sizevars.join_dimensions is before


def test_wrapper_allocates_again_after_the_block():
    wrapper = Wrapper()
    with pytest.raises(RuntimeError, match="stop"), patches.allocating_nothing(wrapper):
        wrapper.codegen_allocation("a")
        wrapper.codegen_inplace_reuse("a", "b")
        raise RuntimeError("stop")
    assert wrapper.allocated == [] and vars(wrapper).keys() == {"allocated"}
    wrapper.codegen_allocation("a")
    assert wrapper.allocated == ["a"]


class TestNextCall:
    def test_only_the_next_call_is_replaced(self):
        wrapper, seen = Wrapper(), []
        patches.replace_next_call(
            wrapper, "codegen_allocation", lambda method, buffer: (seen.append(buffer), method(buffer))
        )
        wrapper.codegen_allocation("a")
        wrapper.codegen_allocation("b")
        assert seen == ["a"] and wrapper.allocated == ["a", "b"]

    def test_it_is_undone_where_the_replacement_fails(self):
        def fail(method):
            raise RuntimeError("stop")

        wrapper = Wrapper()
        patches.replace_next_call(wrapper, "codegen_allocation", fail)
        with pytest.raises(RuntimeError, match="stop"):
            wrapper.codegen_allocation()
        assert vars(wrapper).keys() == {"allocated"}

    def test_the_first_replacement_stays(self):
        wrapper, seen = Wrapper(), []
        for number in (1, 2):
            patches.replace_next_call(wrapper, "codegen_allocation", lambda _, number=number: seen.append(number))
        wrapper.codegen_allocation()
        assert seen == [1]


def test_compiled_graph_leaves_no_patch(monkeypatch):
    """Its wrapper and its scheduler, which are patched for one call each, have had that call."""
    owners, replace = [], patches.replace_next_call

    def watched(owner, name, replacement):
        owners.append((owner, name))
        replace(owner, name, replacement)

    monkeypatch.setattr("bridge.inductor.reuse.replace_next_call", watched)
    monkeypatch.setattr("bridge.scheduling.regeneration.replace_next_call", watched)
    before = sizevars.join_dimensions

    def norm_twice(x):
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    with bridge.config.patch(strict=False), torch.no_grad():
        torch.compile(norm_twice, backend="bridge")(torch.randn(4, 32))
    assert bridge.report().fused
    assert {name for _, name in owners} == {"codegen", "memory_plan_reuse"}
    assert not any(name in vars(owner) for owner, name in owners)
    assert sizevars.join_dimensions is before


class Backend:
    name = "own"


class Scheduler:
    """Has the code generator of a device in another one, as that of CUDA is, or not."""

    def __init__(self, delegates):
        self.own = Backend()
        around = Backend()
        around._triton_scheduling = self.own
        self.backends = {"device": around if delegates else self.own}

    def get_backend(self, device):
        return self.backends[device]


class Mixin:
    name = "Bridge's"


@pytest.mark.parametrize("delegates", [False, True])
def test_code_generator_keeps_its_class(delegates):
    """Another object takes its place, with what it has; no class changes, and that only once."""
    scheduler = Scheduler(delegates)
    scheduler.own.state = ["kept"]
    backend = derived.derive_code_generator(scheduler, "device", Mixin)
    assert type(scheduler.own) is Backend and Backend.name == "own"
    assert backend.name == "Bridge's" and backend.state is scheduler.own.state
    assert derived.code_generator(scheduler, "device") is backend
    assert derived.derive_code_generator(scheduler, "device", Mixin) is backend


def test_no_class_of_an_instance_is_swapped():
    files = [f for f in (*PACKAGE.rglob("*.py"), *(PACKAGE / "lowering").rglob("*.py")) if "_native" not in f.parts]
    swaps = [
        f"{file}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "__class__" and isinstance(node.ctx, ast.Store)
    ]
    assert files and swaps == []
