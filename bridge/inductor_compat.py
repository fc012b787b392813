"""Torch's private API, and every difference between torch 2.11, 2.12 and 2.13.

The package sees nodes, bodies and buffers through these functions. Code generators: inductor_codegen.py.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import re
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import sympy
import torch


def ops_handler_base() -> type:
    """The base class of an ops handler: every `ops.x` that it does not define goes to `_default`."""
    from torch._inductor.ops_handler import DefaultHandler

    return DefaultHandler


def run_loop_body(body: Any, indices: list[list[sympy.Symbol]], handler: Any) -> None:
    """Calls a LoopBody on index variables with `handler` in the place of the code generator."""
    from torch._inductor.virtualized import V

    with V.set_ops_handler(handler):
        body(*indices)


def reduction_outputs(reduction_type: str) -> int:
    """How many values `ops.reduction` returns."""
    from torch._inductor.utils import reduction_num_outputs

    return reduction_num_outputs(reduction_type)


def reduction_identity(reduction_type: str, dtype: torch.dtype) -> tuple:
    """Inductor's initial state of a reduction, one entry a value of the state."""
    from torch._inductor.ir import Reduction

    if reduction_type == "online_softmax_reduce":
        return float("-inf"), 0
    identity = Reduction.default_accumulator(reduction_type, dtype)
    if reduction_type in ("argmax", "argmin"):
        return identity, 0
    return tuple(identity) if isinstance(identity, (tuple, list)) else (identity,)


def statically_known(condition: Any) -> bool:
    """True only if a size relation holds for every size that the graph's guards admit."""
    from torch._inductor.virtualized import V

    return bool(V.graph.sizevars.statically_known_true(condition))


def size_facts() -> tuple[Any, ...]:
    """Relations of sizes that hold whenever the graph runs: its guards, and what its program asserts."""
    from torch._inductor.virtualized import V

    return V.graph.sizevars.shape_env.get_axioms()


def size_expressions(body: Any) -> list[sympy.Expr]:
    """The divisions in a LoopBody's index expressions that are of sizes alone."""
    expressions = getattr(body, "indexing_exprs", {}).values()
    divisions = set().union(*[e.atoms(sympy.Function) for e in map(sympy.sympify, expressions)])
    return [d for d in divisions if not d.free_symbols & body.var_ranges.keys()]


def has_steps(body: Any) -> bool:
    """Whether a LoopBody reads or writes every so-manieth element along one of its loops."""
    expressions = getattr(body, "indexing_exprs", {}).values()
    return any(expr.coeff(v).is_Integer and abs(expr.coeff(v)) > 1 for expr in expressions for v in body.var_ranges)


def size_hint(expr: sympy.Expr) -> int:
    """A typical value of a size expression, for ordering and cost only, never for legality."""
    from torch._inductor.virtualized import V

    sizevars = V.graph.sizevars
    hint = getattr(sizevars, "optimization_hint", None) or sizevars.size_hint
    return int(hint(expr, fallback=4096))


def inductor_ops() -> Any:
    """The `ops` namespace that records into the LoopBody being traced."""
    from torch._inductor.virtualized import ops

    return ops


# ---------------------------------------------------------------------------------------------------------
# Scheduler nodes
# ---------------------------------------------------------------------------------------------------------


def is_loop_kernel(node: Any) -> bool:
    """True for a kernel of pointwise and reduction loops; templates, extern and grouped kernels are none."""
    from torch._inductor import ir, scheduler

    if not isinstance(node, (scheduler.SchedulerNode, scheduler.FusedSchedulerNode)):
        return False
    if type(node).__name__ not in ("SchedulerNode", "FusedSchedulerNode", "OuterLoopFusedSchedulerNode"):
        return False
    if node.is_template() or node.is_extern() or node.is_foreach():
        return False
    return all(
        isinstance(n, scheduler.SchedulerNode)
        and isinstance(n.node, ir.ComputedBuffer)
        and isinstance(n.node.data, (ir.Pointwise, ir.Reduction))
        for n in node.get_nodes()
    )


def loop_nodes(node: Any) -> list[Any]:
    """The single scheduler nodes of a kernel, in the order of its code."""
    return list(node.get_nodes())


def node_body(node: Any) -> Any:
    return node._body


def node_sizes(node: Any) -> tuple[list[sympy.Expr], list[sympy.Expr]]:
    """(iteration extents, reduction extents) of a single scheduler node."""
    sizes = node._sizes
    return list(sizes[0]), list(sizes[1])


def mutates_or_aliases(node: Any) -> bool:
    """Whether a kernel writes into, or is a view of, a buffer that it does not own; a slice of a `cat` is its own."""
    return any(
        output.get_mutations() or (output.get_aliases() and not _slices_cat(output)) for output in node.get_outputs()
    )


def only_overwrites(node: Any) -> bool:
    """Whether all that a kernel does to buffers that it does not own is to store into them: no views, no atomics."""
    if any(o.get_aliases() and not o.get_mutations() and not _slices_cat(o) for o in node.get_outputs()):
        return False
    accesses = (entry for n in loop_nodes(node) for entries in n._body.memory_usage.values() for entry in entries)
    return all(access.mode is None for access in accesses)


def launch_parts(node: Any) -> list[Any]:
    """The kernels that share a launch of Bridge's making; of any other kernel itself."""
    return list(node.snodes) if getattr(node, "bridge_siblings", False) else [node]


def _slices_cat(output: Any) -> bool:
    """Whether a buffer is a part of a larger one that nothing else writes, and nobody reads before all parts are."""
    from torch._inductor import ir

    return isinstance(output.node, ir.ComputedBuffer) and isinstance(output.node.layout, ir.NonOwningLayout)


def storage_of(name: str) -> str | None:
    """The larger buffer that a buffer is a slice of, if it is one."""
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    layout = getattr(V.graph.name_to_buffer.get(name), "layout", None)
    return layout.view.get_name() if isinstance(layout, ir.NonOwningLayout) else None


def has_masked_parts(node: Any) -> bool:
    """Whether a part of the loop body is only for some iterations."""
    return bool(node_body(node).subblocks)


def device_of(node: Any) -> torch.device:
    return node.get_device()


def buffers_read(node: Any) -> set[str]:
    return {dep.name for dep in node.read_writes.reads}


def subscripts_read(node: Any, name: str) -> set[Any]:
    """The linear addresses at which a node's loop body loads from a buffer."""
    return {getattr(dep, "index", None) for dep in node.read_writes.reads if dep.name == name}


def buffers_written(node: Any) -> set[str]:
    return {dep.name for dep in node.read_writes.writes}


def bytes_touched(node: Any, together: set[str] | None = None) -> dict[str, int]:
    """Bytes of each buffer that a kernel reads from memory or writes to it, for typical sizes; for cost only.

    together: names of the operations of the kernel that it would be in, default its own.
    """
    from torch._inductor.dependencies import MemoryDep
    from torch._inductor.virtualized import V

    touched: dict[str, int] = {}
    names = together or node.get_operation_names()
    points = max(size_hint(sympy.prod([size for sizes in node_sizes(n) for size in sizes])) for n in loop_nodes(node))
    real_names = node.scheduler.mutation_real_name  # after a kernel has written into it, a buffer has another name
    for dep in {*node.read_writes.reads, *node.read_writes.writes}:
        if isinstance(dep, MemoryDep) and not _stays_inside(node.scheduler, dep.name, names):
            name = real_names.get(dep.name, dep.name)
            # Inductor takes an indirect index to reach the whole buffer: a cache is written at one position.
            amount = min(V.graph.get_dep_size_hint(dep), points * buffer_dtype(name).itemsize)
            touched[name] = touched.get(name, 0) + amount
    whole = {name: size_hint(buffer_numel(name)) * buffer_dtype(name).itemsize for name in touched}
    return {name: min(amount, whole[name]) for name, amount in touched.items()}


def _stays_inside(scheduler: Any, name: str, operations: set[str]) -> bool:
    """Whether a kernel of the operations makes the buffer, and nothing else uses it."""
    own = name in scheduler.name_to_buf and scheduler.name_to_buf[name].defining_op_name() in operations
    return own and scheduler.can_buffer_be_removed_through_fusion(name, operations)


def buffers_awaited(node: Any) -> set[str]:
    """Buffers of other kernels that have to be there before this one, for whatever reason."""
    return {dep.name for dep in node.unmet_dependencies}


def buffers_made(node: Any) -> set[str]:
    return set(node.get_buffer_names())


def operation_names(node: Any) -> set[str]:
    return set(node.get_operation_names())


def buffer_dtype(name: str) -> torch.dtype:
    from torch._inductor.virtualized import V

    return V.graph.get_dtype(name)


def buffer_numel(name: str) -> sympy.Expr:
    """Elements of a buffer's storage that its layout reaches, from the storage's first."""
    from torch._inductor.virtualized import V

    if name in V.graph.constants:
        value = V.graph.constants[name]
        size, stride, offset = value.size(), value.stride(), value.storage_offset()
    else:
        layout = V.graph.get_buffer(name).get_layout()
        size, stride, offset = layout.size, layout.stride, layout.offset
    reach = sum(((n - 1) * s for n, s in zip(size, stride, strict=True)), sympy.Integer(0))
    return sympy.expand(sympy.sympify(offset + reach + 1))


def is_inference_graph() -> bool:
    from torch._inductor.virtualized import V

    return bool(V.graph.is_inference)


def rounds_at_conversion(device: torch.device) -> bool:
    """Whether the code generator rounds at a conversion to a 16-bit float (C++) or at the store only (Triton)."""
    from torch._inductor import config

    triton = device.type != "cpu" or config.cpu_backend == "triton"
    return not triton


def generates_triton(device: torch.device) -> bool:
    return not rounds_at_conversion(device)


# ---------------------------------------------------------------------------------------------------------
# Rewriting scheduler nodes
# ---------------------------------------------------------------------------------------------------------


def make_loop_body(body: Any, iter_sizes: list[sympy.Expr], reduce_sizes: list[sympy.Expr]) -> Any:
    """Traces `body(iter_indices, reduce_indices)` into a LoopBody."""
    from torch._inductor.dependencies import index_vars_no_squeeze
    from torch._inductor.loop_body import LoopBody

    traced: Any = body
    # Traced over `t` variables, then copied to the `p` ones that later loop transformations expect.
    for prefix in ("t", "p"):
        (iter_vars, reduce_vars), ranges = index_vars_no_squeeze(iter_sizes, reduce_sizes, prefix=prefix)
        traced = LoopBody(traced, (iter_vars, reduce_vars), ranges, iter_vars, reduce_vars)
    return traced


_LOOP_STATE = ("_body", "_sizes", "group", "read_writes", "unmet_dependencies")


def save_loop_state(node: Any) -> dict[str, Any]:
    return {name: getattr(node, name) for name in _LOOP_STATE}


def restore_loop_state(node: Any, state: dict[str, Any]) -> None:
    for name, value in state.items():
        setattr(node, name, value)
    _forget_loop_caches(node)


def set_loop_body(node: Any, body: Any) -> None:
    """Gives a scheduler node other loops; its dependencies follow from them."""
    from torch._inductor import config
    from torch._inductor.utils import is_gpu

    node._body, node._sizes = body, body.sizes
    device = node.get_device()
    node.group = (device, node.scheduler.get_backend(device).group_fn(body.sizes))
    normalize = not config.loop_ordering_after_fusion or not is_gpu(device.type)
    node.refresh_dependencies(normalize=normalize, need_clear_tiling_cache=True)
    _add_to_users(node)


def _add_to_users(node: Any) -> None:
    """Makes the node a user of what it did not read before: a kernel that overwrites an input that it may
    reuse asks the users whether all of them read just the element that is written."""
    from torch._inductor.scheduler import NodeUser

    scheduler = node.scheduler
    for name in buffers_read(node):
        buffer = scheduler.name_to_donated_buffer.get(name) or scheduler.name_to_buf.get(name)
        if buffer is not None and all(user.node is not node for user in buffer.users):
            buffer.users.append(NodeUser(node, can_inplace=False))


def _forget_loop_caches(node: Any) -> None:
    from torch._inductor.codegen.simd import SIMDScheduling

    if hasattr(node, "clear_loop_body_dependent_caches"):
        node.clear_loop_body_dependent_caches(need_clear_tiling_cache=True)
        return
    node.pointwise_read_writes.clear_cache(node)
    SIMDScheduling.candidate_tilings.cache_clear()


# ---------------------------------------------------------------------------------------------------------
# Hooks and configuration
# ---------------------------------------------------------------------------------------------------------

HOOK = "_post_fusion_custom_pass"

#: The first torch that works, and the first that is not known to.
TORCH_VERSIONS = (2, 11), (2, 14)


def torch_supported() -> bool:
    major, minor = re.match(r"(\d+)\.(\d+)", torch.__version__).groups()
    return TORCH_VERSIONS[0] <= (int(major), int(minor)) < TORCH_VERSIONS[1]


def option_names() -> frozenset[str]:
    """What `options=` of `backend="inductor"` may name."""
    from torch._inductor import config

    return frozenset(config._config)


def config_patches(mode: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Inductor's configuration for a mode and options, validated as `backend="inductor"` does."""
    return dict(torch._TorchCompileInductorWrapper(mode, options, None).config)


def compile_plain(gm: Any, example_inputs: list[Any], patches: dict[str, Any]) -> Any:
    """What `backend="inductor"` does."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(gm, example_inputs, config_patches=patches)


def compile_graph(gm: Any, example_inputs: list[Any], patches: dict[str, Any], around: Any) -> Any:
    """compile_fx, within a context that `around()` makes; a backward that is compiled later gets its own."""
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    @functools.wraps(compile_fx_inner)
    def inner_compile(*args: Any, **kwargs: Any) -> Any:
        with around():
            return compile_fx_inner(*args, **kwargs)

    with around():
        return compile_fx(gm, example_inputs, inner_compile=inner_compile, config_patches=patches)


def ends_in_graph_break(gm: Any) -> bool:
    """Whether Dynamo goes on compiling the same function after this graph."""
    return bool(getattr(getattr(gm, "compile_subgraph_reason", None), "graph_break", False))


def reset_compiler() -> None:
    """What `torch._dynamo.reset()` asks of `backend="inductor"`."""
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    if trees is not None:
        trees.reset_cudagraph_trees()


def raised_by_backend(error: Exception) -> Exception:
    """The same error, of a subclass that Dynamo hands to the user as it is and not inside BackendCompilerFailed."""
    return _passed_through(type(error))(*error.args, first_useful_frame=None)


@functools.cache
def _passed_through(kind: type) -> type:
    from torch._dynamo.exc import ShortenTraceback

    return type(kind.__name__, (ShortenTraceback, kind), {"__module__": kind.__module__})


def add_counters(counts: dict[str, int]) -> None:
    from torch._dynamo.utils import counters

    for name, amount in counts.items():
        counters["bridge"][name] += amount


class CacheIdentity:
    """Stands for the hook in the configuration that torch 2.11 pickles into its cache key."""

    def __init__(self, key: Any):
        self.key = key

    def __call__(self, nodes: list[Any]) -> list[Any]:
        return nodes

    def __reduce__(self) -> Any:
        return CacheIdentity, (self.key() if callable(self.key) else self.key,)


def scheduler_pass(implementation: Any) -> Any:
    """Makes what `hooked` takes of an object with `active()`, `key()` and `__call__(nodes)`.

    Where it is not active it is as if it were not there; its key may be None, for no caching.
    """
    return _scheduler_pass_class()(implementation)


@functools.cache
def _scheduler_pass_class() -> type:
    from torch._inductor import codecache, custom_graph_pass

    # A later torch than 2.11 asks this class for uuid(); 2.11 copies and pickles its configuration.
    keyed = getattr(custom_graph_pass, "CustomSchedulerPass", None)

    class BridgeSchedulerPass(keyed or object):  # type: ignore[misc]
        def __init__(self, implementation: Any):
            self.implementation = implementation

        def __call__(self, nodes: list[Any]) -> list[Any]:
            users = users_pass()
            nodes = nodes if users is None else users(nodes)
            return self.implementation(nodes) if self.implementation.active() else nodes

        def uuid(self) -> Any:
            users = users_pass()
            theirs = users.uuid() if hasattr(users, "uuid") else None
            ours = self.implementation.key() if self.implementation.active() else ()
            if ours is None or (users is not None and theirs is None):
                raise codecache.BypassFxGraphCache("bridge dumps or explains, or a pass in its hook has no uuid()")
            return (*ours, theirs) if ours else theirs

        def __deepcopy__(self, memo: Any) -> Any:
            if keyed is None and self.implementation.active():
                return CacheIdentity(self.uuid)
            return copy.deepcopy(users_pass(), memo)

    return BridgeSchedulerPass


@functools.cache
def _hook_entry() -> Any:
    from torch._inductor import config

    return config._config[HOOK]


def _configured() -> Any:
    """The value that the user's code gave the hook: of this context, or of the process in torch 2.11."""
    override = _hook_entry().user_override
    return override.get() if isinstance(override, ContextVar) else override


def _configure(value: Any) -> None:
    entry = _hook_entry()
    if isinstance(entry.user_override, ContextVar):
        entry.user_override.set(value)
    else:
        entry.user_override = value


def users_pass() -> Any:
    """The pass in the hook that is not Bridge's, or None."""
    value = _configured()
    unset = type(value) is object or isinstance(value, _scheduler_pass_class())  # torch marks it by an object()
    return None if unset else value


_held: list[Any] = []
_held_lock = threading.Lock()


@contextlib.contextmanager
def hooked(hook: Any) -> Iterator[None]:
    """Has Inductor call `hook` in every thread meanwhile, without touching what the user put there.

    The value is set where torch keeps those that an environment variable forces: it is above the user's, which
    `users_pass` still reads, and there is one for the process, while the user's is one a thread from 2.12 on.
    """
    before = _configured()
    _hold([hook], [])
    try:
        yield
    finally:
        _hold([], [hook])
        # A config.patch of the hook inside has "restored" the value that it could read, which was ours.
        if _configured() is hook:
            _configure(before)


def _hold(added: list[Any], removed: list[Any]) -> None:
    from torch.utils._config_module import _UNSET_SENTINEL

    with _held_lock:
        _held.extend(added)
        for hook in removed:
            _held.remove(hook)
        _hook_entry().env_value_force = _held[-1] if _held else _UNSET_SENTINEL
