"""Loop bodies: running them under a handler, and giving a scheduler node new ones."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import sympy
import torch

from .compiling import torch_release
from .patches import joining_less
from .protocols import LoopBody, LoopNode
from .schedule import buffers_read, written_storage

_Made = TypeVar("_Made")


def ops_handler_base() -> type:
    """Return the base class of an ops handler: every `ops.x` that it does not define goes to `_default`."""
    from torch._inductor.ops_handler import DefaultHandler

    return DefaultHandler


def run_loop_body(body: LoopBody, indices: Sequence[Sequence[sympy.Symbol]], handler: object) -> None:
    """Call a LoopBody on index variables with `handler` in the place of the code generator."""
    from torch._inductor.virtualized import V

    with V.set_ops_handler(handler):
        body(*indices)


def reduction_outputs(reduction_type: str) -> int:
    """Return how many values `ops.reduction` returns."""
    from torch._inductor.utils import reduction_num_outputs

    return reduction_num_outputs(reduction_type)


def reduction_identity(reduction_type: str, dtype: torch.dtype) -> tuple[Any, ...]:
    """Return Inductor's initial state of a reduction, one entry a value of the state."""
    from torch._inductor.ir import Reduction

    if reduction_type == "online_softmax_reduce":
        return float("-inf"), 0
    identity = Reduction.default_accumulator(reduction_type, dtype)
    if reduction_type in ("argmax", "argmin"):
        return identity, 0
    return tuple(identity) if isinstance(identity, (tuple, list)) else (identity,)


def inductor_ops() -> Any:
    """Return the `ops` namespace that records into the LoopBody being traced."""
    from torch._inductor.virtualized import ops

    return ops


def make_loop_body(
    body: Callable[..., object], iter_sizes: Sequence[sympy.Expr], reduce_sizes: Sequence[sympy.Expr], prefix: str = "p"
) -> LoopBody:
    """Trace `body(iter_indices, reduce_indices)` into a LoopBody; prefix: of the names of its variables."""
    from torch._inductor.dependencies import index_vars_no_squeeze
    from torch._inductor.loop_body import LoopBody

    # Over the variables that later loop transformations expect.  Inductor goes through others where the body is one
    # of its own, whose variables would be mistaken for these; and each pass simplifies every index anew.
    (iter_vars, reduce_vars), ranges = index_vars_no_squeeze(iter_sizes, reduce_sizes, prefix=prefix)
    with joining_less():
        return LoopBody(body, (iter_vars, reduce_vars), ranges, iter_vars, reduce_vars)


def remake_loop_body(
    body: Callable[..., object], iter_sizes: Sequence[sympy.Expr], reduce_sizes: Sequence[sympy.Expr]
) -> LoopBody:
    """Trace what calls a LoopBody into another one: variables of the same names would be mistaken for each other."""
    return make_loop_body(make_loop_body(body, iter_sizes, reduce_sizes, "t"), iter_sizes, reduce_sizes)


def made_once(owner: object, key: Hashable, make: Callable[[], _Made]) -> _Made:
    """Return what `make` makes of Inductor's loops or of a node, which keeps it for the next who asks with that key.

    It may depend on nothing else that changes while the owner is there.
    """
    kept: dict[Hashable, _Made] = vars(owner).setdefault("bridge_made", {})
    if key not in kept:
        kept[key] = make()
    return kept[key]


def merges_softmax_states() -> bool:
    """Return True if a kernel that keeps its rows takes (maximum, sum) pairs for `online_softmax_reduce`.

    Before torch 2.13 only a looped kernel takes them.
    """
    return torch_release() >= (2, 13)


_LOOP_STATE = ("_body", "_sizes", "group", "read_writes", "unmet_dependencies", "_loop_state_gen")

#: Numbers of the loops that nodes are given: from torch 2.15 on Inductor keeps what it found out by a node's number.
#: Never one that it counts to itself, nor one that other loops had which were taken back.
_generations = itertools.count(1 << 32)


def set_loop_body(node: LoopNode, body: LoopBody, undo: contextlib.ExitStack) -> None:
    """Give a scheduler node other loops, from which its dependencies follow, until `undo` is closed.

    They are found once for a node and a body: trials give a node the same loops again.
    """
    undo.callback(_restore_loop_state, node, {n: getattr(node, n) for n in _LOOP_STATE if hasattr(node, n)})
    if hasattr(node, "_loop_state_gen"):
        node._loop_state_gen = next(_generations)
    # The IR stays a reduction where the loops reduce nothing any more, of a constant say: this is how Inductor itself
    # says that its own loops have become pointwise.
    if node.is_reduction() and not body.sizes[1]:
        body.has_partial_accumulate = True
    read_before = buffers_read(node)
    state = made_once(body, ("loop state", node.get_name()), partial(_loop_state_with, node, body))
    _restore_loop_state(node, state)
    _add_to_users(node, undo)
    _remove_from_users(node, read_before, undo)


def _loop_state_with(node: LoopNode, body: LoopBody) -> dict[str, object]:
    """Give a scheduler node other loops, and return its state with them, but for the number of its loops."""
    from torch._inductor import config
    from torch._inductor.utils import is_gpu

    node._body, node._sizes = body, body.sizes
    device = node.get_device()
    node.group = (device, _factored(node.scheduler.get_backend(device).group_fn(body.sizes)))
    normalize = not config.loop_ordering_after_fusion or not is_gpu(device.type)
    node.refresh_dependencies(normalize=normalize, need_clear_tiling_cache=True)
    return {name: getattr(node, name) for name in _LOOP_STATE if name != "_loop_state_gen"}


def _factored(group: Sequence[sympy.Expr]) -> tuple[sympy.Expr, ...]:
    """Return the iterations of a node's loops, and those of what it reduces, as products.

    Inductor multiplies the two of a reduction and compares: `(s - 1) * t * n` is not `(s*t - t) * n` for it.
    """
    return tuple(sympy.factor(size) if isinstance(size, sympy.Add) else size for size in group)


def _restore_loop_state(node: LoopNode, state: dict[str, object]) -> None:
    for name, value in state.items():
        setattr(node, name, value)
    _forget_loop_caches(node)


def _add_to_users(node: LoopNode, undo: contextlib.ExitStack) -> None:
    """Make the node a user of what it did not read before, until `undo` is closed.

    A kernel that overwrites an input that it may reuse asks the users whether all of them read just the element that is
    written; one that makes a buffer stores it for users in other kernels.
    """
    from torch._inductor.scheduler import NodeUser

    scheduler = node.scheduler
    for name in buffers_read(node):
        buffer = scheduler.name_to_donated_buffer.get(name) or scheduler.name_to_buf.get(name)
        if buffer is not None and all(user.node is not node for user in buffer.users):
            user = NodeUser(node, can_inplace=False)
            buffer.users.append(user)
            undo.callback(buffer.users.remove, user)


def _remove_from_users(node: LoopNode, read_before: Iterable[str], undo: contextlib.ExitStack) -> None:
    """Make the node no user of what it does not read any more, until `undo` is closed.

    Inductor's C++ asks the loops of every user where they read a buffer.  A user that only has to come later stays.
    """
    for name in sorted(set(read_before) - set(buffers_read(node))):
        buffer = node.scheduler.name_to_donated_buffer.get(name) or node.scheduler.name_to_buf.get(name)
        if buffer is not None:
            undo.callback(setattr, buffer, "users", buffer.users)
            buffer.users = [user for user in buffer.users if user.node is not node or user.is_weak]


def keep_inputs(node: LoopNode, undo: contextlib.ExitStack) -> None:
    """Have a node's results overwrite nothing that it reads, until `undo` is closed."""
    _keep(node, buffers_read(node), undo)


def keep_pieces(nodes: Sequence[LoopNode], undo: contextlib.ExitStack) -> None:
    """Have the nodes of a kernel overwrite no memory that they read by several names, until `undo` is closed.

    A piece of a concatenation is overwritten where all nodes of the kernel read the same element; of those Inductor
    sees the ones that read it by the piece's name, and not those that read the whole or another piece.
    """
    read = {name for node in nodes for name in buffers_read(node)}
    names = Counter(map(_memory_of, read))
    for node in nodes:
        _keep(node, [name for name in buffers_read(node) if names[_memory_of(name)] > 1], undo)


def _memory_of(name: str) -> str:
    """Return the buffer whose memory a buffer is, or is a slice of."""
    larger = written_storage(name)
    return name if larger == name else _memory_of(larger)


def _keep(node: LoopNode, names: Iterable[str], undo: contextlib.ExitStack) -> None:
    scheduler = node.scheduler
    for name in names:
        buffer = scheduler.name_to_donated_buffer.get(name) or scheduler.name_to_buf.get(name)
        for user in [user for user in buffer.users if user.node is node] if buffer is not None else []:
            undo.callback(setattr, user, "can_inplace", user.can_inplace)
            user.can_inplace = False


def forget_waiting(nodes: Sequence[LoopNode], undo: contextlib.ExitStack) -> None:
    """Make no node of a kernel a user of what it only has to come after in that kernel, until `undo` is closed.

    One that overwrites an input comes after all that read it, and after what these make.  The kernel has its nodes in
    order; Inductor's C++ asks the loops of each user where they read a buffer, and has none where they do not.
    """
    for buffer in (buffer for node in nodes for buffer in node.get_outputs()):
        undo.callback(setattr, buffer, "users", buffer.users)
        buffer.users = [user for user in buffer.users if not (user.is_weak and user.node in nodes)]


def _forget_loop_caches(node: Any) -> None:
    from torch._inductor.codegen.simd import SIMDScheduling

    if hasattr(node, "clear_loop_body_dependent_caches"):
        node.clear_loop_body_dependent_caches(need_clear_tiling_cache=True)
        return
    node.pointwise_read_writes.clear_cache(node)
    SIMDScheduling.candidate_tilings.cache_clear()
