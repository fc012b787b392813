"""Test what diagnostics see of Inductor's kernels: names, sources, shapes, lines of the user's."""

from types import SimpleNamespace

import sympy
import torch
from torch._inductor import scheduler as inductor_scheduler
from torch._inductor.utils import Placeholder
from torch._inductor.virtualized import V

from bridge.inductor import inspection

CPU = torch.device("cpu")


def test_loop_nests_of_a_kernel_that_shares_outer_loops_only():
    """Check the numbers of loop nests of kernels: several that share only outer loops, and none of a library call."""
    kernel, shared, library = (Kernel("op", _scheduler(), template) for template in (False, False, True))
    shared.get_outer_nodes = lambda: [kernel, kernel]
    assert [inspection.loop_nests(k) for k in (kernel, shared, library)] == [1, 2, 0]


class Generator:
    """Stand for a code generator of torch's."""

    def define_kernel(self, source, nodes, context):
        return f"kernel_{context}"


class Kernel(inductor_scheduler.SchedulerNode):
    """Stand for a scheduler node that nothing was lowered for."""

    def __init__(self, name, scheduler, template=False):
        self.name, self.scheduler, self.template = name, scheduler, template
        self.read_writes = SimpleNamespace(reads=[])

    def is_template(self):
        return self.template

    def get_name(self):
        return self.name

    def get_device(self):
        return CPU

    def get_nodes(self):
        return [self]


def _scheduler():
    found = SimpleNamespace(backends={CPU: Generator()}, name_to_buf={})
    found.get_backend = lambda device: found.backends[device]
    return found


def test_watched_kernel_is_told_with_its_name_in_the_source():
    """Check that each watcher of a kernel is told, with the kernel's name in the source.

    An explanation had no kernels where somebody else had asked for them, too.
    """
    told, scheduler = [], _scheduler()
    kernel = Kernel("op0", scheduler)
    for _ in range(2):
        inspection.watch_kernels([kernel], lambda *seen: told.append(seen))
    source = f"def {Placeholder.KERNEL_NAME}(): '{Placeholder.DESCRIPTIVE_NAME}'"
    assert scheduler.backends[CPU].define_kernel(source, [kernel, Generator], 3) == "kernel_3"
    assert told == [("kernel_3", ["op0"], "def kernel_3(): 'kernel_3'")] * 2


def test_template_is_not_generated_and_not_watched():
    scheduler = _scheduler()
    assert inspection.is_generated(Kernel("op0", scheduler))
    template = Kernel("op1", scheduler, template=True)
    assert not inspection.is_generated(template)
    inspection.watch_kernels([template], lambda *seen: None)
    assert type(scheduler.backends[CPU]) is Generator


def test_shapes_of_buffers_and_of_constants():
    buffer = SimpleNamespace(get_size=lambda: [sympy.Symbol("s0"), sympy.Integer(4)])
    buffers = {"buf0": buffer}
    graph = SimpleNamespace(
        constants={"weight": torch.empty(2, 3)}, get_buffer=buffers.__getitem__, name_to_buffer=buffers
    )
    with V.set_graph_handler(graph):
        assert inspection.buffer_shape("buf0") == ["s0", "4"]
        assert inspection.buffer_shape("weight") == ["2", "3"]


def node_of(*origins):
    """Return a scheduler node that computes nodes of a graph; each is (target, files and lines of its stack trace)."""
    graph, made = torch.fx.Graph(), []
    for target, *places in origins:
        made.append(graph.call_function(target, ()))
        trace = "".join(f'  File "{file}", line {line}, in f\n    y = x\n' for file, line in places)
        made[-1].meta["stack_trace"] = trace or None
    return SimpleNamespace(node=SimpleNamespace(get_origins=lambda: set(made)))


aten = torch.ops.aten


def test_lines_are_the_last_frames_each_once():
    def origin(*lines):
        return (aten.mul.Tensor, *(("/a/m.py", line) for line in lines))

    several = node_of(origin(1, 4), origin(2, 4), origin(1, 9), origin())
    assert inspection.node_locations(several) == [("/a/m.py", 4), ("/a/m.py", 9)]
    assert inspection.node_location(several) == ("/a/m.py", 4)
    assert inspection.node_location(node_of(origin())) is None


def test_a_line_of_torchs_own_is_not_the_users():
    functional = torch.nn.functional.__file__
    node = node_of((aten.mean.dim, ("/a/m.py", 4), (functional, 2900)), (aten.mul.Tensor, (functional, 1)))
    assert inspection.node_locations(node) == [("/a/m.py", 4), (functional, 1)], "better than none"


def test_a_line_of_bridges_own_is_nobodys():
    """Check that a line of Bridge's own is no user's line.

    A function that was made by exec has no line; the screen had that of Bridge which calls it.
    """
    bridges = inspection.__file__
    node = node_of((aten.mul.Tensor, ("/a/m.py", 4), (bridges, 9)), (aten.mean.dim, (bridges, 9)))
    assert inspection.node_locations(node) == [("/a/m.py", 4)]
    assert inspection.node_name(node_of((aten.mul.Tensor, (bridges, 9)))) == (("mul",), None)


def test_a_kernel_has_the_name_of_its_last_operations():
    nodes = [node_of((f, ("/a/m.py", i))) for i, f in enumerate([aten.abs.default, aten.amax.default, aten.div.Tensor])]
    assert inspection.kernel_name(nodes) == "abs, amax, div (m.py:2)"
    assert inspection.kernel_name([node_of()]) == "a kernel"


def test_operations_have_the_names_that_users_know():
    attention = aten._scaled_dot_product_flash_attention_for_cpu.default
    node = node_of((aten.view.default,), (aten._softmax.default, ("/a/m.py", 4)), (attention, ("/a/m.py", 9)))
    assert inspection.node_name(node) == (("scaled_dot_product_attention",), ("/a/m.py", 9))
    after = node_of((aten.mm.default,), (aten.view.default,), (aten.silu.default, ("/a/m.py", 4)))
    assert inspection.node_name(after) == (("silu",), ("/a/m.py", 4))
    only = node_of((aten.mm.default, ("/a/m.py", 9)), (aten.view.default, ("/a/m.py", 10)))
    assert inspection.node_name(only) == (("matmul",), ("/a/m.py", 9)), "where there is nothing else"
    assert inspection.node_name(SimpleNamespace(node=None)) == ((), None)


def test_what_is_copied_for_a_library_is_called_its_inputs(monkeypatch):
    node = node_of((aten.mul.Tensor,), (aten.mm.default, ("/a/m.py", 9)))
    monkeypatch.setattr(inspection, "_is_computed", lambda node: True)
    assert inspection.node_name(node) == (("inputs of matmul",), ("/a/m.py", 9))


def test_a_copy_of_an_input_in_another_layout_has_a_name():
    """Check that a copy of an input in another layout has a name.

    The screen of a training graph called the inputs of its first convolution op0 and op1.
    """
    origins = {torch.fx.Graph().placeholder("primals_1")}
    node = SimpleNamespace(node=SimpleNamespace(get_origins=lambda: origins))
    assert inspection.node_name(node) == (("copy of an input",), None)


def test_an_operation_that_was_decomposed_keeps_its_name():
    node = node_of((aten.rsqrt.default,))
    (origin,) = node.node.get_origins()
    origin.meta["original_aten"] = aten.native_layer_norm.default
    assert inspection.node_name(node) == (("layer_norm",), None)


def test_a_buffer_that_others_fill_is_no_kernel_and_no_library_call():
    buffer = object.__new__(inductor_scheduler.NopKernelSchedulerNode)
    call = object.__new__(inductor_scheduler.ExternKernelSchedulerNode)
    assert [inspection.is_no_kernel(node) for node in (buffer, call)] == [True, False]
    assert [inspection.is_library_call(node) for node in (buffer, call)] == [False, True]
