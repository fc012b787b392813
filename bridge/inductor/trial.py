"""What Inductor would make of a graph: it is lowered and scheduled for that, and the result thrown away."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from torch.fx import Graph, GraphModule

from .memory import peak_bytes

#: Whether what is scheduled in this context is a trial: no pass of a hook takes part.
running: ContextVar[bool] = ContextVar("bridge_trial", default=False)

#: A trial is to take no time on the device.
_NO_MEASUREMENTS = {
    "benchmark_fusion": False,
    "benchmark_epilogue_fusion": False,
    "max_autotune": False,
    "max_autotune_gemm": False,
    "max_autotune_pointwise": False,
    "trace.enabled": False,
}


def copied(graph: Graph) -> Graph:
    """A graph with the same nodes, of a module of its own, in the place of which it can be put."""
    owner = graph.owning_module
    assert owner is not None, "a graph that Inductor compiles has a module"
    module = GraphModule(owner, copy.deepcopy(graph))
    module.meta = dict(owner.meta)
    return module.graph


def estimated_peak(graph: Graph, inference: bool) -> int:
    """Inductor's estimate of the most that is live at a time, in the order that it gives the kernels of a graph."""
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V

    module = copied(graph).owning_module
    inputs = [node.meta.get("val") for node in graph.nodes if node.op == "placeholder"]
    with apart(V.fake_mode.shape_env):
        lowering = GraphLowering(module, inputs, V.fake_mode.shape_env, is_inference=inference)
        with V.set_graph_handler(lowering), V.set_extern_kernel_nodes([]):
            lowering.run(*inputs)
            lowering.init_wrapper_code()
            lowering._update_scheduler()
            return peak_bytes(lowering.scheduler.nodes)


@contextlib.contextmanager
def apart(shape_env: Any) -> Iterator[None]:
    """Leaves no trace of what is compiled in the block: no guards, no counts."""
    from torch._inductor import config

    restore = counts_restored()
    token = running.set(True)
    try:
        with config.patch(_NO_MEASUREMENTS), shape_env.suppress_guards() if shape_env else contextlib.nullcontext():
            yield
    finally:
        running.reset(token)
        restore()


def counts_restored() -> Callable[[], None]:
    """Notes what Inductor has counted until now; what is given has it count from there again."""
    from torch._dynamo.utils import counters
    from torch._inductor import metrics

    counted = counters["inductor"].copy()
    measured = {name: copy.copy(value) for name, value in vars(metrics).items() if type(value) in (int, list)}

    def restore() -> None:
        vars(metrics).update(measured)
        counters["inductor"].clear()
        counters["inductor"].update(counted)

    return restore
