"""Test protocols of Inductor's objects: torch's classes have what Bridge names in them."""

import dis
import inspect

import pytest
from torch._inductor import dependencies, loop_body, memory, scheduler
from torch._inductor.codegen.cpp import CppKernelProxy
from torch._inductor.codegen.simd_kernel_features import SIMDKernelFeatures
from torch._inductor.codegen.triton import TritonScheduling
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.graph import GraphLowering

from bridge.inductor import protocols
from bridge.inductor.compiling import torch_release

CLASSES = {
    protocols.Dependency: dependencies.MemoryDep,
    protocols.ReadWrites: dependencies.ReadWrites,
    protocols.LoopBody: loop_body.LoopBody,
    protocols.LoopBlock: loop_body.LoopBodyBlock,
    protocols.MemorySize: memory.MemoryPlanningInfoForBuffer,
    protocols.User: scheduler.NodeUser,
    protocols.Buffer: scheduler.SchedulerBuffer,
    protocols.Kernel: scheduler.BaseSchedulerNode,
    protocols.LoopNode: scheduler.SchedulerNode,
    protocols.LaunchNode: scheduler.ForeachKernelSchedulerNode,
    protocols.CodeGenerator: scheduler.BaseScheduling,
    protocols.TritonCodeGenerator: TritonScheduling,
    protocols.KernelFeatures: SIMDKernelFeatures,
    protocols.Scheduler: scheduler.Scheduler,
    protocols.CppProxy: CppKernelProxy,
    protocols.Wrapper: PythonWrapperCodegen,
    protocols.Graph: GraphLowering,
}


#: What only later releases have: who uses it asks for it first.
SINCE = {"_loop_state_gen": (2, 14), "with_tiling_scores": (2, 14)}


def _named(protocol):
    """Return what a protocol itself names and this torch has, without what Bridge's own classes add."""
    methods = {name for name, value in vars(protocol).items() if inspect.isfunction(value) and name != "__init__"}
    names = methods | set(vars(protocol).get("__annotations__", {}))
    names -= {name for name, first in SINCE.items() if torch_release() < first}
    return {name for name in names if not name.startswith(("bridge_", "_no_init", "__subclass"))}


def _attributes(cls):
    """Return the names that a class has, declares, or sets in its objects."""
    names = set(dir(cls))
    for base in cls.__mro__[:-1]:
        names |= set(vars(base).get("__annotations__", {})) | _set_in_objects(base)
    return names


def _set_in_objects(cls):
    """Return the names that the methods of a class set in objects."""
    methods = filter(inspect.isfunction, map(inspect.unwrap, vars(cls).values()))
    return {op.argval for method in methods for op in dis.get_instructions(method) if op.opname == "STORE_ATTR"}


@pytest.mark.parametrize("protocol", CLASSES, ids=lambda protocol: protocol.__name__)
def test_class_of_torch_has_what_the_protocol_names(protocol):
    named = _named(protocol)
    assert named, "a protocol names something"
    assert named <= _attributes(CLASSES[protocol]), named - _attributes(CLASSES[protocol])


def test_every_protocol_has_a_class():
    found = {value for value in vars(protocols).values() if getattr(value, "_is_protocol", False)}
    assert found - {protocols.Protocol, protocols.Named} == set(CLASSES)
