"""Test undo of what Bridge replaces in torch (bridge/inductor/patches.py), and classes that stay as they are."""

import ast
import types
from pathlib import Path

import pytest
import sympy
import torch
from emitted import run_emitted
from torch._inductor import sizevars
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.inductor import derived, patches

PACKAGE = Path(bridge.__file__).parent


class Wrapper:
    """Stand for an object of torch's."""

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

    def test_an_attribute_of_the_object_is_what_is_replaced(self):
        seen: list[str] = []
        wrapper, own = Wrapper(), seen.append
        vars(wrapper)["codegen_allocation"] = own
        patches.replace_next_call(wrapper, "codegen_allocation", lambda method, buffer: method(buffer * 2))
        wrapper.codegen_allocation("a")
        assert seen == ["aa"] and wrapper.codegen_allocation is own

    def test_the_first_replacement_stays(self):
        wrapper, seen = Wrapper(), []
        for number in (1, 2):
            patches.replace_next_call(wrapper, "codegen_allocation", lambda _, number=number: seen.append(number))
        wrapper.codegen_allocation()
        assert seen == [1]


def test_compiled_graph_leaves_no_patch(monkeypatch):
    """Check that a compiled graph leaves no patch: those of its wrapper and scheduler are for one call each."""
    owners, replace = [], patches.replace_next_call

    def watched(owner, name, replacement):
        owners.append((owner, name))
        replace(owner, name, replacement)

    monkeypatch.setattr("bridge.inductor.memory.replace_next_call", watched)
    monkeypatch.setattr("bridge.inductor.reuse.replace_next_call", watched)
    monkeypatch.setattr("bridge.scheduling.regeneration.replace_next_call", watched)
    before = sizevars.join_dimensions

    def rotated(x):
        z = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return torch.stack([-z[..., 1::2], z[..., ::2]], -1).flatten(-2)

    with bridge.config.patch(strict=False):
        run_emitted(rotated, [torch.randn(4, 34)], bridge_backend)
    assert bridge.report().fused
    assert {name for _, name in owners} == {"codegen", "memory_plan_reuse", "process_grouped_nodes"}
    assert not any(name in vars(owner) for owner, name in owners)
    assert sizevars.join_dimensions is before


class Backend:
    name = "own"


class Scheduler:
    """Hold a device's code generator, or one that delegates to it, as that of CUDA does."""

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
    """Check that a code generator keeps its class: an object of a derived class, with its state, replaces it once."""
    scheduler = Scheduler(delegates)
    scheduler.own.state = ["kept"]
    backend = derived.derive_code_generator(scheduler, "device", Mixin)
    assert type(scheduler.own) is Backend and Backend.name == "own"
    assert backend.name == "Bridge's" and backend.state is scheduler.own.state
    assert derived.code_generator(scheduler, "device") is backend
    assert derived.derive_code_generator(scheduler, "device", Mixin) is backend


FILES = [
    file
    for folder in (PACKAGE, PACKAGE / "lowering")  # the second is a link in a source tree
    for file in folder.rglob("*.py")
    if "_native" not in file.parts
]


def assigned(tree):
    """Return the attributes that a file assigns, and those that it has mock or setattr assign."""
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load))
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args):
        if ast.unparse(call.func) in ("setattr", "mock.patch.object", "mock.patch.multiple"):
            yield ast.Attribute(call.args[0], "...", lineno=call.lineno)


def torchs_names(tree):
    """Return the names under which a file has torch's modules, classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "torch":
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((a.asname or "torch") for a in node.names if a.name.split(".")[0] == "torch")


def replaced_in_torch(source):
    """Return lines of a program in which an attribute of what it imports from torch is assigned."""
    tree = ast.parse(source)
    names = set(torchs_names(tree))
    roots = ((node.lineno, ast.unparse(node.value).split(".")[0]) for node in assigned(tree))
    return [line for line, root in roots if root in names]


@pytest.mark.parametrize(
    "line",
    [
        "import torch\ntorch._inductor.sizevars.join = f",
        "from torch._inductor import sizevars as s\ns.join = f",
        "from torch._inductor import sizevars\nsetattr(sizevars, 'join', f)",
        "from torch._inductor import sizevars\nwith mock.patch.object(sizevars, 'join', f): pass",
    ],
)
def test_replacements_are_found(line):
    assert replaced_in_torch(line) == [2]


def test_nothing_else_is_replaced():
    """Check that nothing else is replaced in torch.

    The offline tools, which stand for a GPU, and the benchmarks have mocks of their own, for one call each.
    """
    files = [f for f in FILES if not {"offline", "bench"} & {*f.relative_to(PACKAGE).parts}]
    found = {str(f): replaced_in_torch(f.read_text(encoding="utf-8")) for f in files}
    assert len(files) > 50 and {f for f, lines in found.items() if lines} == set()


def test_no_class_of_an_instance_is_swapped():
    attributes = (n for f in FILES for n in ast.walk(ast.parse(f.read_text(encoding="utf-8"))))
    stores = (n for n in attributes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    assert "__class__" not in {n.attr for n in stores}


X, Y = sympy.symbols("x y", integer=True, nonnegative=True)


JOINED = (
    ModularIndexing(X + 3, 1, 7) + 7 * ModularIndexing(X + 3, 7, 8) + 56 * Y,
    3 * ModularIndexing(X, 2, 4) + 12 * FloorDiv(X, 8),
)


APART = (
    X + 7 * Y,
    ModularIndexing(X + 3, 1, 7) + 96 * ModularIndexing(FloorDiv(X + 3, 7) + Y, 1, 8),
    ModularIndexing(X, 1, 7) + 7 * ModularIndexing(Y, 7, 8),
)


@pytest.mark.parametrize("expr", [*JOINED, *APART], ids=str)
def test_terms_are_joined_as_by_inductor(expr):
    """Check that terms are joined as by Inductor, whose slow patterns are asked only where two divide the same."""
    asked = []

    def join(e):
        asked.append(e)
        return sizevars.join_dimensions(e)

    assert patches.join(join, expr) == sizevars.join_dimensions(expr)
    assert bool(asked) == (expr in JOINED) == (sizevars.join_dimensions(expr) != expr)


def test_two_threads_at_once_leave_inductors_function():
    """Check that two threads at once leave Inductor's function: the second would have restored the first's patch."""
    before = sizevars.join_dimensions
    first, second = patches.joining_less(), patches.joining_less()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sizevars.join_dimensions is not before
    second.__exit__(None, None, None)
    assert sizevars.join_dimensions is before


def test_an_attribute_that_a_scheduler_has_only_later_is_there_meanwhile():
    scheduler = types.SimpleNamespace()
    with patches.before_removals(scheduler):
        assert scheduler.removed_ops == set()
    assert not hasattr(scheduler, "removed_ops")
    scheduler.removed_ops = {"op0"}
    with patches.before_removals(scheduler):
        assert scheduler.removed_ops == {"op0"}
    assert scheduler.removed_ops == {"op0"}


class Generator:
    def codegen_node_schedule(self, features):
        raise AssertionError("a kernel was generated")

    def codegen_node(self, features):
        return self.codegen_node_schedule(features)


def test_a_code_generator_that_is_asked_generates_nothing_and_is_as_before():
    generator = Generator()
    with patches.generating_nothing(generator) as collected:
        generator.codegen_node("features")
    assert collected == ["features"]
    assert vars(generator) == {}
    with pytest.raises(AssertionError, match="was generated"):
        generator.codegen_node("features")
