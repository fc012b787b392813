"""Read and change the FX graph that Inductor lowers, after its own passes, and what it is to the code generators."""

from __future__ import annotations

import functools
import math
import operator
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import sympy
import torch
from torch.fx import Graph, Node

from .protocols import Graph as LoweredGraph

aten = torch.ops.aten

#: An extent of a tensor, or a number of its elements.
Size: TypeAlias = int | torch.SymInt

#: Other subscripts for the same elements, all of them; `aten.expand` repeats them.
WHOLE_VIEWS = {
    *(aten.view.default, aten.reshape.default, aten._unsafe_view.default, aten.alias.default, aten.detach.default),
    *(aten.unsqueeze.default, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.expand.default),
    *(aten.permute.default, aten.transpose.int, aten.t.default),
}
_OTHER_ORDER = {aten.permute.default, aten.transpose.int, aten.t.default}

#: Reductions that have no tag, by name: Inductor registers them when it is loaded.  They keep their dimensions.
_REDUCTIONS = {"prims.prepare_softmax_online.default"}


def tensor(node: object) -> Any:
    """Return the fake tensor that stands for a node's value; None for several values, and for sizes."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value if isinstance(value, torch.Tensor) else None


def tensor_inputs(node: Node) -> list[Node]:
    """Return what a node reads, each once; the source of a getitem, too."""
    return [a for a in node.all_input_nodes if tensor(a) is not None or node.target is operator.getitem]


def is_pointwise(node: Node) -> bool:
    """Return True if Inductor computes an element of the result from one of each input, wherever it is needed."""
    random = _has_tag(node.target, torch.Tag.nondeterministic_seeded)
    return _has_tag(node.target, torch.Tag.pointwise) and not random and tensor(node) is not None


def is_reduction(node: Node) -> bool:
    """Return True if Inductor makes a node a reduction loop of its own."""
    return (_has_tag(node.target, torch.Tag.reduction) and not is_library_call(node)) or str(node.target) in _REDUCTIONS


#: Reductions that give one of the elements, and whose gradient asks which; that of `max.dim` has an index.
_EXTREMA = {aten.amax.default, aten.amin.default, aten.max.default, aten.min.default}

_EQUALITIES = {aten.eq.Tensor, aten.ne.Tensor}

#: The key of sums that are left in Inductor's order, in their `meta`.
_LEFT = "bridge_left_sum"


def is_extremum(node: Node) -> bool:
    """Return True if a node is the largest or smallest elements of rows."""
    return node.target in _EXTREMA


def is_equality(node: Node) -> bool:
    """Return True if a node tells which elements of two tensors are equal."""
    return node.target in _EQUALITIES


def without_views(node: Node) -> Node:
    """Return the node that makes the memory in which a value lies."""
    while is_view(node):
        node = node.all_input_nodes[0]
    return node


def without_form(node: Node) -> Node:
    """Return what a node has the elements of: the source of views, copies and other dtypes."""
    while node.all_input_nodes and (is_view(node) or node.target in _SAME_ELEMENTS):
        node = node.all_input_nodes[0]
    return node


_SAME_ELEMENTS = {torch.ops.prims.convert_element_type.default, aten.clone.default}


def leave_sum(node: Node) -> None:
    """Have a sum added up in the order in which Inductor does."""
    node.meta[_LEFT] = True


def is_left_sum(node: Node) -> bool:
    """Return True if a sum has to be added up in the order in which Inductor does."""
    return _LEFT in node.meta


#: Scans: each element of a row is computed from those up to it.
_SCANS = {aten.cumsum.default, aten.cumprod.default, aten.logcumsumexp.default}


def is_scan(node: Node) -> bool:
    """Return True if each element is computed from its row up to there, and the rows of a dimension by themselves."""
    return node.target in _SCANS


@functools.cache
def _has_tag(target: object, tag: torch.Tag) -> bool:
    return isinstance(target, torch._ops.OpOverload) and tag in target.tags and not target._schema.is_mutable


def is_view(node: Node) -> bool:
    """Return True if a node has elements of its input under other subscripts."""
    target = node.target
    return target in WHOLE_VIEWS or (isinstance(target, torch._ops.OpOverload) and target.is_view)


#: What has elements of its inputs, or numbers, in other places, and is neither pointwise nor a view by its tags.
_MOVES = {
    *(aten.cat.default, aten.constant_pad_nd.default, aten.flip.default, aten.select_scatter.default),
    *(aten.slice_scatter.default, aten.full.default, torch.ops.prims.iota.default),
}


def only_moves(node: Node) -> bool:
    """Return True if a node only puts elements of its inputs, or numbers, in their places."""
    return node.target in _MOVES


def keeps_order(node: Node) -> bool:
    """Return True if a view of all elements has them in the order of its input."""
    return node.target in WHOLE_VIEWS - _OTHER_ORDER


#: Operators of torch's own that see more of a tensor than its elements.
_SEE_STRIDES = {"aten.as_strided", "aten.sym_stride", "aten.sym_storage_offset", "aten.set_", "aten.resize_"}


def sees_strides(node: Node) -> bool:
    """Return True if other strides of its inputs may give another result: so do the user's operators and kernels."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return target is not operator.getitem
    return target.namespace not in ("aten", "prims") or str(target.overloadpacket) in _SEE_STRIDES


def is_library_call(node: Node) -> bool:
    """Return True if a node is never a part of a kernel of loops: its inputs are in memory, and so is its result."""
    from torch._inductor.lowering import fallbacks, lowerings
    from torch.utils.flop_counter import flop_registry

    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or is_view(node):
        return False
    known = target in lowerings or target.overloadpacket in lowerings
    return not known or target in fallbacks or target in flop_registry or target.overloadpacket in flop_registry


def may_change_tensors(node: Node) -> bool:
    """Return True if a node may change a tensor that others read: the user's kernels may, too."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return bool(target._schema.is_mutable)
    return node.op == "call_function" and isinstance(target, torch._ops.HigherOrderOperator)


def apart_by_user(graph: Graph) -> bool:
    """Return True if the user has nodes of a graph apart, on streams or in pools of memory: new nodes would be in none.

    Torch notes what stands inside of `torch.cuda.stream` from 2.13 on.
    """
    return any(not {"stream", "mempool"}.isdisjoint(node.meta.get("custom") or ()) for node in graph.nodes)


def is_erased(node: Node) -> bool:
    """Return True if a node is in no graph any more."""
    return bool(node._erased)


#: What AOTAutograd's names of a backward's gradients begin with.
TANGENTS = "tangents_"


def is_backward(graph: Graph) -> bool:
    """Return True for the graph of a backward: it is given gradients."""
    return any(node.name.startswith(TANGENTS) for node in graph.find_nodes(op="placeholder"))


def is_input(node: Node) -> bool:
    """Return True if a node's value is there before the graph runs: an input, or a constant."""
    return node.op in ("placeholder", "get_attr")


def filling(node: Node) -> float | None:
    """Return the number that all elements of a node are; None where that is not known."""
    value = node.args[1] if node.target is aten.full.default else None
    return value if isinstance(value, (bool, int, float)) else None


def is_result(node: Node) -> bool:
    """Return True if a node is what the graph returns its values by."""
    return node.op == "output"


def is_made_by_library(node: Node) -> bool:
    """Return True if a node is what a library call gives, or one of several."""
    return is_library_call(node.args[0] if node.target is operator.getitem else node)


def is_convolution(node: Node) -> bool:
    """Return True if a node is a convolution, for whose tensors Inductor may choose another layout."""
    return node.target is aten.convolution.default


def has_convolution(graph: Graph) -> bool:
    """Return True if Inductor may have four-dimensional tensors in another layout than the graph says."""
    return any(is_convolution(node) for node in graph.nodes)


#: What a code generator computes in float32, and rounds when it is stored.
_COMPUTED_WIDER = {torch.float16, torch.bfloat16}

#: Operations that give one of their inputs' elements, or its magnitude, or zero: of numbers in memory that is exact.
_SELECTIONS = {
    *(aten.where.self, aten.maximum.default, aten.minimum.default, aten.relu.default, aten.neg.default),
    *(aten.abs.default, aten.clone.default),
}


def is_computed_wider(node: Node) -> bool:
    """Return True if a kernel that computes a value may have more digits of it than its dtype has."""
    value = tensor(node)
    return value is None or (value.dtype.is_floating_point and (value.dtype in _COMPUTED_WIDER or value.itemsize < 2))


def is_selection(node: Node) -> bool:
    """Return True if a node gives one of its inputs' elements, or its magnitude, or zero."""
    return node.target in _SELECTIONS


#: Integers that torch promotes with no other type, not with a condition's bool.
_PROMOTED_WITH_NONE = {torch.uint16, torch.uint32, torch.uint64}


def may_be_selected(value: torch.Tensor) -> bool:
    """Return True if Inductor generates code that selects between numbers of a tensor's dtype.

    It calls the library for complex ones.  Its C++ has none for dtypes that torch does not promote.
    """
    dtype = value.dtype
    promoted = dtype not in _PROMOTED_WITH_NONE and not (dtype.is_floating_point and dtype.itemsize < 2)
    return not value.is_complex() and (promoted or value.device.type != "cpu")


def is_rounded(node: Node) -> bool:
    """Return True if Inductor rounds each value to its dtype: its option `emulate_precision_casts` asks for it."""
    from torch._inductor import config

    if not config.emulate_precision_casts:
        return False
    converted = node.target is torch.ops.prims.convert_element_type.default
    return converted or bool(node.meta.get("low_precision_pointwise_barrier"))


class StoreLimits(NamedTuple):
    """Above how many tensors read Inductor stores a value: one with several users, and any."""

    reused: int
    any: int


def store_limits(device: torch.device) -> StoreLimits:
    """Return above how many tensors read Inductor stores a value, on a device."""
    from torch._inductor import config

    # From torch 2.12 on there are defaults by device in the place of one.
    names = ["realize_acc_reads_threshold", "_realize_acc_reads_threshold_default"]
    names[1:1] = ["realize_cpu_acc_reads_threshold"] if device.type == "cpu" else []
    given = (getattr(config, name, None) for name in names)
    return StoreLimits(config.realize_reads_threshold, next(limit for limit in given if limit is not None))


#: By which Inductor knows a node whose value is to be stored.
_STORED = "inductor_realize_to_strides"


def store(node: Node) -> None:
    """Have Inductor store a node's value, in the layout that the graph says, in a kernel that needs it."""
    node.meta[_STORED] = True


def is_stored(node: Node) -> bool:
    """Return True if a node's value is to be stored."""
    return bool(node.meta.get(_STORED))


def known(condition: torch.SymBool | sympy.Basic | bool) -> bool:
    """Return True only if a relation of sizes holds for every size that the guards admit; adds no guard."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return bool(statically_known_true(condition))


def same_size(one: Node, other: Node) -> bool:
    """Return True if two tensors have as many elements."""
    return known(_elements(one) == _elements(other))


def _elements(node: Node) -> Size:
    value = tensor(node)
    return value.numel() if value is not None else 0


def _symbolic_sizes(node: Node) -> list[torch.SymInt]:
    """Return the sizes that a node is, or that its tensor has, where they are no numbers."""
    value = node.meta.get("val")
    sizes = [*value.shape, *value.stride()] if isinstance(value, torch.Tensor) else [value]
    return [size for size in sizes if isinstance(size, torch.SymInt)]


def has_composed_sizes(node: Node) -> bool:
    """Return True if a size of a node's tensor is computed from symbols, and is not one of them."""
    return any(not size.node.expr.is_Atom for size in node.meta["val"].shape if isinstance(size, torch.SymInt))


def symbols(nodes: Iterable[Node]) -> set[sympy.Symbol]:
    """Return the symbols of nodes' sizes."""
    return {symbol for node in nodes for size in _symbolic_sizes(node) for symbol in size.node.expr.free_symbols}


def sizes_alone(graph: Graph, wanted: set[sympy.Symbol]) -> dict[sympy.Symbol, torch.SymInt]:
    """Return a size of a graph for each of these symbols, which is nothing but the symbol; without those it lacks."""
    found: dict[sympy.Symbol, torch.SymInt] = {}
    for node in graph.nodes:
        if wanted == found.keys():
            break
        alone = {size.node.expr: size for size in _symbolic_sizes(node) if size.node.expr in wanted}
        found = alone | found
    return found


def has_number_sizes(node: Node) -> bool:
    """Return True for a node whose value is a tensor, with no symbol in its sizes and strides."""
    value = tensor(node)
    return value is not None and all(isinstance(number, int) for number in (*value.shape, *value.stride()))


def is_contiguous(node: Node) -> bool:
    """Return True if a node's tensor is known to be contiguous."""
    from torch._prims_common import is_contiguous_or_false

    value = tensor(node)
    return value is not None and is_contiguous_or_false(value)


def is_padded(node: Node) -> bool:
    """Return True if Inductor would store a node's value with longer strides; not known of symbolic sizes."""
    from torch._inductor import config
    from torch._inductor.ir import Layout

    value = tensor(node)
    if not config.comprehensive_padding or not has_number_sizes(node):
        return False
    return list(Layout._pad_strides(value.stride(), value.shape, value.dtype)) != list(value.stride())


def argument(node: Node, name: str) -> Any:
    """Return an argument of an operator by its name in the schema; None where it has none of that name."""
    assert isinstance(node.target, torch._ops.OpOverload)
    for position, parameter in enumerate(node.target._schema.arguments):
        if parameter.name == name:
            left_out = node.kwargs.get(name, parameter.default_value)
            return node.args[position] if position < len(node.args) else left_out
    return None


def reduced_dimensions(node: Node) -> set[int]:
    """Return the dimensions of its input that a reduction reduces."""
    rank, given = tensor(node.args[0]).dim(), argument(node, "dim")
    if given is None or given == []:
        return set(range(rank))
    return {d % max(rank, 1) for d in (given if isinstance(given, Iterable) else [given])}


def reduces_all_seen(node: Node) -> bool:
    """Return True if Inductor sees that a reduction goes over as many elements as its input has.

    It compares terms: `s*t - t*(s//2)` elements are none of its `s - s//2` rows of `t`.
    """
    reduced, shape = reduced_dimensions(node), list(enumerate(tensor(node.args[0]).shape))
    rows, row, whole = (
        sympy.expand(math.prod(_expression(size) for dim, size in shape if dim in dims))
        for dims in (set(range(len(shape))) - reduced, reduced, range(len(shape)))
    )
    return bool(rows * row == whole)


def _expression(size: Size) -> sympy.Expr:
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.sympify(size)


def difference(one: Size, other: Size) -> int | None:
    """Return by how much a size is larger than another where that is one number for all sizes; else None."""
    found = sympy.expand(_expression(one) - _expression(other))
    return int(found) if found.is_Integer else None


def keeps_dimensions(node: Node) -> bool:
    """Return True if a reduction's result has the dimensions that it reduces, of length 1."""
    return str(node.target) in _REDUCTIONS or bool(argument(node, "keepdim"))


def retrace(node: Node) -> Node:
    """Give a node the fake value that its inputs' have, computed as torch does in tracing."""
    from torch._dispatch.python import enable_python_dispatcher
    from torch._inductor.fx_utils import get_fake_args_kwargs
    from torch._inductor.virtualized import V

    valid, args, kwargs = get_fake_args_kwargs(node)
    assert valid and callable(node.target), f"{node} has inputs of unknown shape"
    with V.fake_mode, enable_python_dispatcher():
        node.meta["val"] = node.target(*args, **kwargs)
    return node


def place(node: Node) -> str:
    """Return a node's name and the user's line that it comes from."""
    frame = users_frame(node.meta.get("stack_trace"))
    return f"{node.name} ({short_place(*frame)})" if frame is not None else node.name


def short_place(file: str, line: int) -> str:
    """Return `model.py:25`; for a notebook, whose cells are files with a number for a name, `cell:25`."""
    path = Path(file)
    return f"cell:{line}" if path.parent.name.startswith("ipykernel_") else f"{path.name}:{line}"


@functools.lru_cache(maxsize=512)  # the layers of a model have the same traces
def users_frame(trace: str | None) -> tuple[str, int] | None:
    """Return (file, line) of the last frame of a trace that is neither torch's nor Bridge's.

    Where the others are all torch's, the last of these; None where all are Bridge's, which calls what it explains.
    """
    frames = [(file, int(line)) for file, line in re.findall(r'File "([^"]+)", line (\d+)', trace or "")]
    known = [frame for frame in frames if not frame[0].startswith(_BRIDGE)]
    users = [frame for frame in known if not frame[0].startswith(_TORCH)]
    return next(reversed(users or known), None)


_TORCH = f"{Path(torch.__file__).parent}{os.sep}"
_BRIDGE = f"{Path(__file__).parents[1]}{os.sep}"


def layers(graph: Graph) -> tuple[str, ...]:
    """Return the layers of the model that a graph computes, in its order: `layers.0` of a list of that name."""
    stacks = (
        node.meta.get("nn_module_stack") or {} for node in graph.nodes if node.op not in ("placeholder", "output")
    )
    paths = (str(path) for stack in stacks for path, *_ in stack.values())
    found = (_LAYER.search(path) for path in paths)
    return tuple(dict.fromkeys(match[0] for match in found if match))


#: The first part of a module's path that is numbered, and its list's name.
_LAYER = re.compile(r"\w+\.\d+(?=\.|$)")


#: The keys of what Bridge's passes note of a graph, in its module's `meta`: before it is scheduled, and after.
_NOTES, _TAKEN = "bridge_graph_passes", "bridge_graph_passes_taken"


def add_note(graph: Graph, note: object) -> None:
    """Note something of a graph, for `take_notes` when it is scheduled."""
    module = graph.owning_module
    if module is not None:
        module.meta.setdefault(_NOTES, []).append(note)


def take_notes() -> list[Any]:
    """Return what was noted of the graph that is being scheduled; once."""
    from torch._inductor.virtualized import V

    notes = V.graph.module.meta.pop(_NOTES, [])
    V.graph.module.meta[_TAKEN] = notes
    return notes


def give_notes_back(lowering: LoweredGraph) -> None:
    """Have them taken once more, where a graph is scheduled again."""
    meta = lowering.module.meta
    meta[_NOTES] = meta.pop(_TAKEN, [])
