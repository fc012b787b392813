"""Test the names of torch that Bridge uses: all are in the inventory, and torch has them as it says."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import ROOT

from bridge.inductor import inventory, protocols
from bridge.inductor.compiling import torch_release
from bridge.inductor.inspection import _WatchedMixin
from bridge.lowering.triton.codegen import BandMixin
from bridge.lowering.triton.columns import ColumnMixin, ColumnScheduling
from bridge.lowering.triton.kernels import LaneMixin, StridedAccessMixin

#: What stands at the beginning of a name that the package uses -> whose name it is.
OWNERS = {
    "torch._inductor.virtualized.V.graph.sizevars.shape_env": "torch.fx.experimental.symbolic_shapes.ShapeEnv",
    "torch._inductor.virtualized.V.graph.sizevars": "torch._inductor.sizevars.SizeVarAllocator",
    "torch._inductor.virtualized.V.graph.scheduler": "torch._inductor.scheduler.Scheduler",
    "torch._inductor.virtualized.V.graph": "torch._inductor.graph.GraphLowering",
    "torch._inductor.virtualized.V.choices": "torch._inductor.choices.InductorChoices",
    "torch._dynamo.config": "torch._inductor.config",  # both are modules of configuration, which have the same class
    "torch._functorch.config": "torch._inductor.config",
}

#: Of a parameter that is called as a module is, which another function of its file imports.
NOT_OF_TORCH = {f"torch._inductor.scheduler.{member}" for member in vars(protocols.Scheduler)} | {
    f"torch._inductor.scheduler.{member}" for member in inspect.get_annotations(protocols.Scheduler)
}

#: Protocols of Inductor's objects -> their classes.
CLASSES = {
    protocols.Dependency: ["torch._inductor.dependencies.MemoryDep"],
    protocols.ReadWrites: ["torch._inductor.dependencies.ReadWrites"],
    protocols.LoopBody: ["torch._inductor.loop_body.LoopBody"],
    protocols.LoopBlock: ["torch._inductor.loop_body.LoopBodyBlock"],
    protocols.MemorySize: ["torch._inductor.memory.MemoryPlanningInfoForBuffer"],
    protocols.User: ["torch._inductor.scheduler.NodeUser"],
    protocols.Buffer: ["torch._inductor.scheduler.SchedulerBuffer"],
    protocols.Named: ["torch._inductor.scheduler.BaseSchedulerNode"],
    protocols.Kernel: ["torch._inductor.scheduler.BaseSchedulerNode", "torch._inductor.scheduler.SchedulerNode"],
    protocols.LoopNode: ["torch._inductor.scheduler.SchedulerNode"],
    protocols.LaunchNode: ["torch._inductor.scheduler.ForeachKernelSchedulerNode"],
    protocols.CodeGenerator: ["torch._inductor.scheduler.BaseScheduling"],
    protocols.TritonCodeGenerator: ["torch._inductor.codegen.triton.TritonScheduling"],
    protocols.KernelFeatures: ["torch._inductor.codegen.simd_kernel_features.SIMDKernelFeatures"],
    protocols.Scheduler: ["torch._inductor.scheduler.Scheduler"],
    protocols.CppProxy: ["torch._inductor.codegen.cpp.CppKernelProxy"],
    protocols.Wrapper: ["torch._inductor.codegen.wrapper.PythonWrapperCodegen"],
    protocols.Graph: ["torch._inductor.graph.GraphLowering"],
}

#: Classes that Bridge puts before one of Inductor's.
MIXINS = {
    BandMixin: "torch._inductor.codegen.triton.TritonScheduling",
    _WatchedMixin: "torch._inductor.codegen.triton.TritonScheduling",
    ColumnMixin: "torch._inductor.codegen.triton.TritonKernel",
    ColumnScheduling: "torch._inductor.codegen.triton.TritonScheduling",
    LaneMixin: "torch._inductor.codegen.triton.TritonKernel",
    StridedAccessMixin: "torch._inductor.codegen.triton.TritonKernel",
}

LISTED = {str(name) for name in inventory.names(tools=True)}


def sources() -> list[Path]:
    files = [*(ROOT / "bridge").rglob("*.py"), *(ROOT / "lowering").rglob("*.py")]
    links = [ROOT / "bridge" / name for name in ("_native", "lowering")]
    return [file for file in files if not any(link in file.parents for link in links)]


def imported(tree: ast.Module) -> dict[str, str]:
    """Return names in a file -> what of torch they are."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "torch":
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname or "torch": a.name if a.asname else "torch" for a in node.names if "torch" in a.name}
    return found


def used(tree: ast.Module) -> Iterator[str]:
    """Yield dotted names of torch that a file uses, each as far as it is written."""
    names = imported(tree)
    yield from names.values()
    for node in ast.walk(tree):
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name) and node.id in names:
            yield ".".join([names[node.id], *parts])


def is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def is_module(name: str) -> bool:
    try:
        return bool(importlib.import_module(name))
    except ImportError:
        return False


def is_listed(name: str) -> bool:
    """Return True if the inventory has a name, or the beginning of it that is no module, or members of it."""
    parts = name.split(".")
    beginnings = {".".join(parts[:end]) for end in range(2, len(parts) + 1)}
    return bool(beginnings & LISTED) or any(other.startswith(f"{name}.") for other in LISTED)


def test_torch_has_what_the_inventory_says():
    assert inventory.moved(torch_release(), tools=True) == []


def test_every_private_name_that_is_used_is_in_the_inventory():
    names = {name for file in sources() for name in used(ast.parse(file.read_text()))}
    assert "torch._inductor.memory.estimate_peak_memory" in names
    for beginning, owner in OWNERS.items():
        names = {owner + n.removeprefix(beginning) if n.startswith(beginning + ".") else n for n in names}
    missing = [
        name for name in names - NOT_OF_TORCH if is_private(name) and not is_listed(name) and not is_module(name)
    ]
    assert sorted(missing) == []


#: What `getattr` and `hasattr` are asked about that is documented.
DOCUMENTED = {"__name__", "get_device_properties", "shared_memory_per_multiprocessor"}


def asked_about(tree: ast.Module) -> Iterator[str]:
    """Yield names that a file asks an object for that may not have them; without Bridge's own."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    asking = (call.args[1] for call in calls if call.func.id in {"getattr", "hasattr"})
    names = (str(name.value) for name in asking if isinstance(name, ast.Constant))
    yield from (name for name in names if not name.startswith("bridge_"))


def test_every_name_that_may_be_missing_is_in_the_inventory():
    """Check that every name that may be missing is in the inventory.

    Where a newer torch has another name for it, `getattr` and `hasattr` give no error.
    """
    rooms = [ROOT / "bridge" / "inductor", ROOT / "lowering" / "triton", ROOT / "bridge/diagnostics/torch_logging.py"]
    files = [file for file in sources() if any(room == file or room in file.parents for room in rooms)]
    names = {name for file in files for name in asked_about(ast.parse(file.read_text()))}
    assert {"get_outer_nodes", "_path", "_handle_pdl_after_load"} <= names
    assert sorted(names - DOCUMENTED - {part for name in LISTED for part in name.split(".")}) == []


@pytest.mark.parametrize("protocol", CLASSES, ids=lambda protocol: protocol.__name__)
def test_every_member_of_a_protocol_is_in_the_inventory(protocol):
    members = {*inspect.get_annotations(protocol), *vars(protocol)}
    own = {name for name in members if not name.startswith(("__", "bridge_", "_abc_", "_is_", "_non_"))}
    assert own
    assert [m for m in sorted(own) if not any(f"{kind}.{m}" in LISTED for kind in CLASSES[protocol])] == []


def test_every_protocol_has_a_class():
    assert {p for p in vars(protocols).values() if getattr(p, "_is_protocol", False)} - {protocols.Protocol} == {
        *CLASSES
    }


@pytest.mark.parametrize(("mixin", "base"), MIXINS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_every_method_in_the_place_of_one_of_torchs_is_in_the_inventory(mixin, base):
    module, _, name = base.rpartition(".")
    theirs = getattr(importlib.import_module(module), name)
    replaced = [method for method in vars(mixin) if hasattr(theirs, method) and not method.startswith("__")]
    assert replaced
    assert [method for method in replaced if f"{base}.{method}" not in LISTED] == []


@pytest.fixture
def table(monkeypatch):
    """Return a function that replaces the names of the inventory."""
    return lambda text: monkeypatch.setattr(inventory, "COMPILING", text)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("textwrap\n    indent(text, prefix, predicate=)", []),
        ("textwrap\n    indent(text, prefix)", ["textwrap.indent(text, prefix, predicate=) had (text, prefix)"]),
        ("textwrap\n    TextWrapper: wrap width\n    dedent", []),
        ("textwrap\n    TextWrapper: wrap height", ["textwrap.TextWrapper.height is gone"]),
        ("no_such_module\n    name", ["no_such_module.name is gone"]),
        ("textwrap\n    -2.13: gone\n    3.0-: gone\n    2.14-2.14: gone", []),
        ("textwrap\n    2.15-: gone", ["textwrap.gone is gone"]),
        ("textwrap\n    TextWrapper.fill(self,\n        text)", []),
    ],
)
def test_what_moved_is_told(table, line, said):
    table(f"\n{line}\n")
    assert inventory.moved((2, 15)) == said


def test_what_stands_after_the_newest_release_is_expected_of_all_later_ones(table):
    table("textwrap\n    -2.14: wrap(text)\n    2.15-: wrap(text, width=, **kwargs)")
    assert inventory.moved((2, 16)) == [] == inventory.moved((3, 0))
    assert inventory.moved((2, 14)) != []
