"""Find what Inductor would make of a graph: it is lowered and scheduled for that, and the result thrown away."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.fx import Graph, GraphModule

from .inspection import loop_nests
from .memory import peak_bytes
from .patches import joining_less, replace_next_call

if TYPE_CHECKING:
    from torch._inductor.sizevars import SizeVarAllocator
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

#: Whether what is scheduled in this context is a trial: no pass of a hook takes part.
running: ContextVar[bool] = ContextVar("bridge_trial", default=False)

#: A trial is to take no time on the device.  Those of them that a torch has: one has another name from 2.15 on.
_NO_MEASUREMENTS = (
    "benchmark_fusion",
    "benchmark_template_fusion",
    "max_autotune",
    "max_autotune_gemm",
    "max_autotune_pointwise",
    "trace.enabled",
)
_OLDER_NAMES = {"benchmark_template_fusion": "benchmark_epilogue_fusion"}

#: Functions of an allocator of size variables that keep what they found.
_SIMPLIFYING = ("simplify_with_ranges", "_simplify_loops")


def copied(graph: Graph) -> Graph:
    """Return a copy of a graph, of a module of its own; it can be put in the graph's place."""
    return in_own_module(copy.deepcopy(graph), graph)


def in_own_module(copy_of: Graph, graph: Graph) -> Graph:
    """Return a copy that was made of a graph, in a module of its own: it can be put in the graph's place."""
    owner = graph.owning_module
    assert owner is not None, "a graph that Inductor compiles has a module"
    module = GraphModule(owner, copy_of)
    module.meta = dict(owner.meta)
    return module.graph


class Estimate(NamedTuple):
    """Hold what Inductor alone makes of a graph.  peak: the most bytes live at a time; kernels: those it generates."""

    peak: int
    kernels: int


class Trials:
    """Hold trials of a graph of one compilation, each after other changes."""

    def __init__(self, inference: bool) -> None:
        self._inference = inference
        #: What Inductor calls for each index, by name, which takes half of a trial: the results serve who comes next.
        self._simplified: dict[str, Callable[..., object]] = {}

    def estimate(self, graph: Graph) -> Estimate:
        """Return what Inductor makes of a graph, by its own estimate and in the order that it gives the kernels."""
        from torch._inductor.graph import GraphLowering
        from torch._inductor.virtualized import V

        inputs = [node.meta.get("val") for node in graph.nodes if node.op == "placeholder"]
        with apart(V.fake_mode.shape_env), joining_less():
            module = _with_mutations(copied(graph)).owning_module
            lowering = GraphLowering(module, inputs, V.fake_mode.shape_env, is_inference=self._inference)
            self._share_simplified(graph, lowering.sizevars)
            with V.set_graph_handler(lowering), V.set_extern_kernel_nodes([]):
                lowering.run(*inputs)
                lowering.init_wrapper_code()
                lowering._update_scheduler()
                schedule = lowering.scheduler.nodes
                return Estimate(peak_bytes(schedule), sum(map(loop_nests, schedule)))

    def _share_simplified(self, graph: Graph, sizes: SizeVarAllocator) -> None:
        """Have a lowering know what an earlier one has simplified; of symbols each knows something else."""
        if all(_is_static(node.meta.get("val")) for node in graph.nodes):
            vars(sizes).update(self._simplified)
            self._simplified = {name: getattr(sizes, name) for name in _SIMPLIFYING}

    def serve(self, graph: Graph) -> None:
        """Have Inductor's own lowering of a graph that was tried know what the trials have simplified."""
        if self._simplified:
            replace_next_call(graph, "process_inputs", partial(_know, graph, self._simplified))


def _with_mutations(graph: Graph) -> Graph:
    """Return a graph with the user's operators and kernels that change tensors as Inductor lowers them, in its place.

    They are functional until the last of Inductor's passes, which come after Bridge's and decide what is copied.
    """
    from torch._dispatch.python import enable_python_dispatcher
    from torch._inductor.fx_passes.post_grad import (
        decompose_auto_functionalized,
        decompose_triton_kernel_wrapper_functional,
    )
    from torch._inductor.fx_passes.reinplace import reinplace_inplaceable_ops_core

    if any(isinstance(node.target, torch._ops.HigherOrderOperator) for node in graph.nodes):
        with enable_python_dispatcher():
            reinplace_inplaceable_ops_core(graph)
        decompose_triton_kernel_wrapper_functional(graph)
        decompose_auto_functionalized(graph)
    return graph


def _know(graph: Graph, simplified: dict[str, Callable[..., object]], process: Callable, *inputs: object) -> Any:
    """Have the lowering that runs a graph know what was simplified; process: the graph's method, where a run begins."""
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V

    if isinstance(V.graph, GraphLowering) and V.graph.module.graph is graph:
        vars(V.graph.sizevars).update(simplified)
    else:  # a pass of Inductor's runs it before that
        replace_next_call(graph, "process_inputs", partial(_know, graph, simplified))
    return process(*inputs)


def _is_static(value: object) -> bool:
    """Return True for a value that has no symbol in its sizes; one that is no tensor is looked at itself."""
    if isinstance(value, torch.Tensor):
        return all(isinstance(number, int) for number in (*value.shape, *value.stride()))
    return not isinstance(value, torch.SymInt)


@contextlib.contextmanager
def apart(shape_env: ShapeEnv | None) -> Iterator[None]:
    """Leave no trace of what is compiled in the block: no guards, no counts."""
    from torch._inductor import config

    restore = counts_restored()
    token = running.set(True)
    try:
        # The operator of `outside` has no lowering of its own.
        options = {**no_measurements(), "implicit_fallbacks": True}
        with config.patch(options), shape_env.suppress_guards() if shape_env else contextlib.nullcontext():
            yield
    finally:
        running.reset(token)
        restore()


def no_measurements() -> dict[str, bool]:
    """Return the options of Inductor that have it measure nothing; it warns of one that is named as it was before."""
    from torch._inductor import config

    return {name if name in config._config else _OLDER_NAMES[name]: False for name in _NO_MEASUREMENTS}


def counts_restored() -> Callable[[], None]:
    """Return what puts Inductor's counts back to what they are now."""
    from torch._dynamo.utils import counters
    from torch._inductor import metrics

    counted = counters["inductor"].copy()
    measured = {name: copy.copy(value) for name, value in vars(metrics).items() if type(value) in (int, list)}

    def restore() -> None:
        vars(metrics).update(measured)
        counters["inductor"].clear()
        counters["inductor"].update(counted)

    return restore
