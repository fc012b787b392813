"""Make schedules of small functions, to look at, with nothing compiled."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch._inductor import config
from torch._inductor.debug import DebugContext
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from bridge import inductor, offline
from bridge.inductor import columns


@contextlib.contextmanager
def scheduled(function, *shapes):
    """Lower a function of tensors and schedule it, with nothing compiled; give its graph."""
    with FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True) as mode:
        inputs = [torch.empty(shape) for shape in shapes]
        module = make_fx(function)(*inputs)
    with V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
        lowering = GraphLowering(module, inputs, mode.shape_env, is_inference=True)
        with V.set_graph_handler(lowering), V.set_extern_kernel_nodes([]):
            lowering.run(*inputs)
            lowering.init_wrapper_code()
            lowering._update_scheduler()
            yield lowering


def products(x):
    """Compute two products; each tensor of 32 by 32 has 4096 bytes."""
    return (x @ x) @ x


class Seen(Exception):
    """End a compilation when its schedule has been looked at."""


def look_at_schedule(function, inputs, look, dynamic=None):
    """Call `look` with the schedule that Bridge's hook gets for a function, and compile it no further."""

    def look_and_end(schedule):
        look(schedule)
        raise Seen

    torch._dynamo.reset()
    patches = {inductor.HOOK: look_and_end, "fx_graph_cache": False}
    with config.patch(patches), torch.no_grad(), pytest.raises(Exception, match="Seen"):
        torch.compile(function, dynamic=dynamic)(*inputs)


def look_at_gpu_schedule(function, inputs, look):
    """Call `look` with the schedule for a GPU that Inductor makes of a function."""

    def look_at(schedule):
        look(schedule)
        return schedule

    torch._dynamo.reset()
    offline.compile_for_gpu(function, inputs, config_patches={inductor.HOOK: look_at, "fx_graph_cache": False})


def look_at_column_part(function, inputs, check):
    """Call `check` with (the first stage of a function's only sum of columns, the other nodes)."""
    seen = []

    def find(schedule):
        nodes = [node for kernel in schedule for node in inductor.loop_nodes(kernel)]
        (part,) = filter(columns.is_column_part, nodes)
        seen.append(part)
        check(part, [node for node in nodes if node is not part])

    look_at_gpu_schedule(function, inputs, find)
    assert seen
