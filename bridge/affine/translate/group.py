"""Translate a group of scheduler nodes to one `func.func` of affine nests, in program order."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
import torch

from ... import inductor
from ...reasons import InvariantError, Reason, Unsupported
from .. import dtypes
from ..equalities import compared_loads, mark_compared_roundings, mark_stored_roundings
from ..mlir_runtime import context, ir
from .access import ONE, ZERO, LinearAccess, Prover, View, delinearise, exact_quotient, expand, terms
from .affine_expr import SymbolTable, check_divisors
from .cyclic_shifts import Shifts, shifted_subscripts, take_out_shifts
from .divisions import DIVISIONS, drop_divisions
from .elementwise import Elementwise
from .emit import Memref, NestEmitter
from .loops import Factors, NodeLoops, cut_anywhere, cut_in_place, cut_rows, shared_loops
from .multiples import Multiples, find_multiples
from .pieces import loops_in_pieces
from .row_orders import OrderedLoops, loops_in_one_order
from .tiles import loops_of_tiles
from .trace import NestTrace, iteration_variable, trace_node

#: The outermost loop of every nest of a group in which a node has no iteration variables.
UNIT_LOOP = (sympy.Symbol("bridge_iv_unit", integer=True, nonnegative=True), sympy.Integer(1))


@dataclass(frozen=True)
class NodeSource:
    """Hold what translation needs to know of one scheduler node.

    name: Inductor's name of the node; kernel: which of the group's kernels Inductor put it into;
    location: user's (file, line), or None; loops: those to translate it with, default its own;
    order: of the iteration's loops, outermost first, by their places among `loops`, default as they are;
    multiples: variables of the sizes in which `loops` are; overwrites: see NestTrace.
    """

    name: str
    body: Any
    sizes: tuple[list[sympy.Expr], list[sympy.Expr]]
    kernel: int
    location: tuple[str, int] | None = None
    loops: Factors | None = None
    order: list[int] | None = None
    unrolled: int | None = None
    multiples: Multiples = field(default_factory=Multiples)
    overwrites: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Translation:
    """Hold the affine module of a group and the tables that the lift reads it back with.

    keeps_roundings: it has roundings that the program, or an option of torch's, asks for, or an equality or another
        kernel that depends on them: none may be left out;
    read_again: see GroupTarget;
    new_contents: Inductor's name for the new contents of each buffer that is overwritten;
    seeds: the buffers of seeds of random numbers.
    """

    module: ir.Module
    traces: list[NestTrace]
    memrefs: dict[str, Memref]
    symbols: list[sympy.Expr]
    multiples: Multiples
    keeps_roundings: bool = False
    new_contents: dict[str, str] = field(default_factory=dict)
    seeds: frozenset[str] = frozenset()
    read_again: Mapping[str, frozenset[int]] = field(default_factory=dict)


def trace_group(sources: list[NodeSource]) -> list[NestTrace]:
    """Trace every node; Unsupported for what Bridge refuses."""
    traces = [trace_node(s.name, s.body, s.sizes, s.loops, s.multiples, s.overwrites) for s in sources]
    for source, trace in zip(sources, traces, strict=True):
        if source.order is not None:
            trace.iter_vars = [trace.iter_vars[place] for place in source.order]
        if source.unrolled is not None:
            trace.unrolled = trace.iter_vars.pop(source.unrolled)
    return traces


def with_shared_loops(sources: list[NodeSource], assume: bool = False) -> list[list[NodeSource]]:
    """Return the nodes with loops as fine as those of the others, in each way that may be worth a try.

    assume: take a size for a multiple of what it is divided by, proven or not.
    """
    multiples = sizes_as_multiples(sources, assume)
    nodes = _loops_of_nodes(sources, multiples, make_prover().over(multiples.restore))
    factors, *divided = shared_loops(nodes)
    choices = [cut_rows(factors), factors, *divided]
    choices += [cut_in_place(choices[0]), cut_anywhere(choices[0])]
    if any(inductor.has_steps(s.body) for s in sources):
        choices.insert(1, cut_rows(factors, interleaved=True))
    different = [choice for n, choice in enumerate(choices) if choice not in choices[:n]]
    in_order = loops_in_one_order(nodes, different[0])
    ordered = [[OrderedLoops(own) for own in choice] for choice in different]
    return [
        [_with_loops(s, own, multiples) for s, own in zip(sources, choice, strict=True)]
        for choice in ([] if in_order is None else [in_order]) + ordered
    ]


def _with_loops(source: NodeSource, loops: OrderedLoops, multiples: Multiples) -> NodeSource:
    """Return a node with other loops, in the new variables of the sizes."""
    return replace(source, loops=loops.factors, order=loops.order, multiples=multiples)


def in_tiles(sources: list[NodeSource]) -> list[NodeSource] | None:
    """Return the nodes with loops over the blocks of a tile, and over the elements of each; None where it has none."""
    multiples = sizes_as_multiples(sources)
    prover = make_prover().over(multiples.restore)
    loops = loops_of_tiles(_loops_of_nodes(sources, multiples, prover), prover)
    if loops is None:
        return None
    pairs = zip(sources, loops, strict=True)
    return [replace(s, loops=own.factors, order=own.order, multiples=multiples) for s, own in pairs]


def in_pieces(sources: list[NodeSource]) -> list[NodeSource] | None:
    """Return the nodes with loops in which one iteration has what one of another node reads; None if all have it."""
    multiples = sizes_as_multiples(sources)
    nodes = _loops_of_nodes(sources, multiples, make_prover().over(multiples.restore))
    # What reads the result of each block of its row has a loop over the blocks, in the last choice.
    loops = loops_in_pieces(nodes, shared_loops(nodes)[-1])
    if loops is None:
        return None
    pairs = zip(sources, loops, strict=True)
    return [replace(s, loops=own, unrolled=unrolled, multiples=multiples) for s, (own, unrolled) in pairs]


def sizes_as_multiples(sources: list[NodeSource], assume: bool = False) -> Multiples:
    """Return the sizes that are multiples of numbers by which others divide them; assume: proven or not."""
    expressions = [e for s in sources for e in [*s.sizes[0], *s.sizes[1], *inductor.size_expressions(s.body)]]
    equal = inductor.equal_sizes(set().union(*(sympy.sympify(e).free_symbols for e in expressions)))
    there = _sizes_without_which_nothing_runs(sources, equal)
    return find_multiples(expressions, inductor.size_facts(), inductor.statically_known, assume, equal, there)


def _sizes_without_which_nothing_runs(
    sources: list[NodeSource], equal: Mapping[sympy.Symbol, sympy.Expr]
) -> list[sympy.Expr]:
    """Return the sizes in strides (`Max(1, s)`) that, as 0, leave no node that has such a stride an iteration."""
    shapes: dict[sympy.Expr, list[list[sympy.Expr]]] = {}
    for source in sources:
        shape = [sympy.sympify(extent).xreplace(equal) for extent in source.sizes[0]]
        for size in inductor.sizes_in_maxima(source.body):
            shapes.setdefault(size.xreplace(equal), []).append(shape)
    return [size for size, own in shapes.items() if all(_are_none_without(size, shape) for shape in own)]


def _are_none_without(size: sympy.Expr, shape: list[sympy.Expr]) -> bool:
    """Return True if loops have no iteration where a size, which is never below 0, is 0."""
    return inductor.statically_known(size >= 0) and exact_quotient(sympy.Mul(*shape), size) is not None


def _loops_of_nodes(sources: list[NodeSource], multiples: Multiples, prover: Prover) -> list[NodeLoops]:
    """Return the loops of each node, in the new variables of the sizes, in which the prover is asked, too."""
    return [_node_loops(source, multiples, _simplifier(source.body, multiples, prover)) for source in sources]


def _node_loops(source: NodeSource, multiples: Multiples, simplify: Callable[[sympy.Expr], sympy.Expr]) -> NodeLoops:
    """Return the loops of a node, in the new variables of the sizes; simplify: an index."""
    iteration, reduction = ([multiples.rewrite(sympy.sympify(e)) for e in part] for part in source.sizes)
    body = source.body
    cuts, strides = inductor.loop_cuts(body, simplify), inductor.loop_strides(body, simplify)
    accesses = *inductor.loop_indices(body, simplify), inductor.buffers_stored(body)
    remainders = inductor.loop_remainders(body, simplify)
    return NodeLoops(iteration, reduction, source.kernel, cuts, strides, *accesses, remainders)


def _simplifier(body: Any, multiples: Multiples, prover: Prover) -> Callable[[sympy.Expr], sympy.Expr]:
    """Return what writes a LoopBody's index in the new variables, without divisions that do nothing in its loops.

    Of numbers there are none: Inductor leaves a remainder by `4096*s` where it does not know `s` to be a multiple.
    """
    extents = {variable: multiples.rewrite(extent) for variable, extent in body.var_ranges.items()}
    names = {variable: iteration_variable(n) for n, variable in enumerate(extents)}
    ranges = {names[variable]: (ZERO, extent - 1) for variable, extent in extents.items()}
    sizes = set().union(*(extent.free_symbols for extent in extents.values()))

    @functools.cache
    def simplify(index: sympy.Expr) -> sympy.Expr:
        """Return an index as it is traced; as it is where it depends on data, or has no symbol of a size."""
        if not index.free_symbols - extents.keys():
            return index
        index = multiples.rewrite(index)
        if index.has(*DIVISIONS) and index.free_symbols <= extents.keys() | sizes:
            with contextlib.suppress(Unsupported):
                simplified = drop_divisions(expand(index.xreplace(names)), ranges, prover.known)
                return simplified.xreplace({name: variable for variable, name in names.items()})
        return index

    return simplify


def _share_unit_loop(traces: list[NestTrace]) -> None:
    """Put a loop of extent 1 around every nest if one of them has no loop that it could share as a band."""
    if all(t.iter_vars for t in traces):
        return
    for trace in traces:
        trace.iter_vars.insert(0, UNIT_LOOP)


def translate_group(
    name: str,
    sources: list[NodeSource],
    traces: list[NestTrace],
    target: GroupTarget,
    blame: Callable[[int], None] = lambda kernel: None,
) -> Translation:
    """Build the module; raises Unsupported with the first reason that rules the group out.

    blame: is called before with the number of the kernel that alone has no translation, if there is one.
    """
    new_contents = _new_contents(traces)
    _share_unit_loop(traces)
    multiples = sources[0].multiples
    target = replace(target, shifts=_shifts(traces, target, multiples))
    _check_divisors(sources, traces, blame)
    make_memref = functools.partial(_memref, target, multiples, target.prover.over(multiples.restore))
    memrefs = _memrefs(_accesses(sources, traces), make_memref, blame)
    at_fault = functools.partial(_with_symbolic_strides, sources, traces, make_memref)
    with context(), ir.Location.name(name):
        module = ir.Module.create()
        function = _function(module, name, memrefs)
        symbols = SymbolTable(function.regions[0].blocks[0])
        ops = Elementwise(target.rounds, target.emulates)
        for source, trace in zip(sources, traces, strict=True):
            with _blamed(blame, source.kernel, at_fault):
                _emit_nest(source, trace, NestEmitter(trace, memrefs, symbols, ops))
        sizes = [multiples.restore(symbol) for symbol in symbols.values]
        _finish(function, _argument_labels(memrefs, sizes, target))
        if target.rounds:
            mark_compared_roundings(function.operation)
            for buffer in target.read_again.keys() & memrefs.keys():
                mark_stored_roundings(memrefs[buffer].value)
        _verify(module)
        needed = bool(target.read_again or compared_loads(function.operation))
    _restore(memrefs, multiples)
    seeds, keeps = frozenset().union(*(trace.seeds for trace in traces)), ops.keeps_roundings or needed
    return Translation(module, traces, memrefs, sizes, multiples, keeps, new_contents, seeds, target.read_again)


def _restore(memrefs: dict[str, Memref], multiples: Multiples) -> None:
    """Write the strides and shifts of memrefs in the variables that the graph has."""
    for memref in memrefs.values():
        memref.view.strides = [multiples.restore(stride) for stride in memref.view.strides]
        memref.shifted = tuple(one.restored(multiples.restore) for one in memref.shifted)


@contextlib.contextmanager
def _blamed(
    blame: Callable[[int], None], kernel: int, at_fault: Callable[[int], int] = lambda kernel: kernel
) -> Iterator[None]:
    """Call `blame` with the number of a kernel where something refuses it, or of the one at fault for that."""
    try:
        yield
    except Unsupported:
        blame(at_fault(kernel))
        raise


def _check_divisors(sources: list[NodeSource], traces: list[NestTrace], blame: Callable[[int], None]) -> None:
    """Raise Unsupported, with the kernel blamed, for an index that divides by a symbol: no memref has it.

    Such indices would leave buffers fewer dimensions, in which other kernels have symbolic strides.
    """
    for source, trace in zip(sources, traces, strict=True):
        with _blamed(blame, source.kernel):
            for index in (access.index for access in trace.accesses if not access.is_dead):
                check_divisors(index)


def _new_contents(traces: list[NestTrace]) -> dict[str, str]:
    """Return the name of the new contents of each buffer that is overwritten.

    Unsupported(mutation) where two nests overwrite one, or one nest makes it and another overwrites it: its contents
    would have three names, or a nest would store under the other's.
    """
    pairs = [(buffer, name) for trace in traces for name, buffer in trace.overwrites.items()]
    made = set().union(*map(_made, traces))
    for buffer, name in pairs:
        if any(buffer == other and name != new for other, new in pairs):
            raise Unsupported(Reason.mutation, f"{buffer} is overwritten twice")
        if buffer in made:
            raise Unsupported(Reason.mutation, f"{buffer} is overwritten where it is made")
    return dict(pairs)


def _made(trace: NestTrace) -> set[str]:
    """Return the buffers that a nest stores to and does not overwrite."""
    return {a.buffer for a in trace.accesses if a.is_write} - set(trace.overwrites.values())


def _verify(module: ir.Module) -> None:
    """Raise InvariantError if MLIR does not accept the module."""
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        raise InvariantError(f"the translation is not valid: {error}") from error


@dataclass(frozen=True)
class GroupTarget:
    """Hold facts about the graph: buffer dtypes and storage sizes (elements), provable size relations, rounding.

    rounds: whether the code generator rounds at a conversion to a 16-bit float (C++ does, Triton keeps float32 until
    the store); emulates: what a store rounds is read rounded everywhere, as in eager;
    storage_of: the larger buffer that a buffer is a part of, or None;
    read_again: buffers that kernels read with what others made of them, and the numbers of these kernels in the group:
    one that is not fused with the others must find what they had;
    shifts: of buffers that are seen in a shifted order.
    """

    dtype_of: Callable[[str], torch.dtype]
    numel_of: Callable[[str], sympy.Expr]
    prover: Prover
    rounds: bool
    storage_of: Callable[[str], str | None] = lambda name: None
    emulates: bool = False
    read_again: Mapping[str, frozenset[int]] = field(default_factory=dict)
    shifts: Shifts = field(default_factory=Shifts)


def _shifts(traces: list[NestTrace], target: GroupTarget, multiples: Multiples) -> Shifts:
    """Take cyclic shifts by symbolic sizes out of indices, and return those of each buffer.

    None of a part of a larger buffer: its elements have places among those of others.
    """
    if any(map(target.storage_of, {access.buffer for trace in traces for access in trace.accesses})):
        return Shifts()
    return take_out_shifts(traces, target.prover.over(multiples.restore).known)


def _memrefs(
    accesses: dict[str, dict[int, list[LinearAccess]]],
    memref: Callable[[str, list[LinearAccess]], Memref],
    blame: Callable[[int], None],
) -> dict[str, Memref]:
    """Return the memref of each buffer that is accessed; blame: see `translate_group`."""
    memrefs = {}
    for name, by_kernel in accesses.items():
        try:
            memrefs[name] = memref(name, list(itertools.chain(*by_kernel.values())))
        except Unsupported:
            kernel = _refused_alone(functools.partial(memref, name), by_kernel)
            if kernel is not None:
                blame(kernel)
            raise
    return memrefs


def _accesses(sources: list[NodeSource], traces: list[NestTrace]) -> dict[str, dict[int, list[LinearAccess]]]:
    """Return the affine accesses of each buffer by kernel; none of one that is only looked up."""
    found: dict[str, dict[int, list[LinearAccess]]] = {}
    for source, trace in zip(sources, traces, strict=True):
        for access in trace.accesses:
            found.setdefault(access.buffer, {}).setdefault(source.kernel, []).append(access)
    for gather in (gather for trace in traces for gather in trace.gathers):
        found.setdefault(gather.buffer, {})
    return found


def _refused_alone(
    memref: Callable[[list[LinearAccess]], object], by_kernel: Mapping[int, list[LinearAccess]]
) -> int | None:
    """Return the first kernel of whose accesses alone a buffer has no memref; None where each has one."""
    for kernel, accesses in by_kernel.items():
        try:
            memref(accesses)
        except Unsupported:
            return kernel
    return None


def _with_symbolic_strides(
    sources: list[NodeSource],
    traces: list[NestTrace],
    memref: Callable[[str, list[LinearAccess]], Memref],
    kernel: int,
) -> int:
    """Return the first kernel that steps by a symbol in a buffer even as the only one there; else the given one.

    Where it does so, the buffer has fewer dimensions, and another kernel may be the first to have a symbolic stride.
    """
    for name, by_kernel in _accesses(sources, traces).items():
        found = _refused_alone(functools.partial(_check_strides, memref, name), by_kernel)
        if found is not None:
            return found
    return kernel


def _check_strides(
    memref: Callable[[str, list[LinearAccess]], Memref], name: str, accesses: list[LinearAccess]
) -> None:
    """Raise Unsupported(non_affine_index) if a subscript multiplies an iteration variable by a size."""
    subscripts = itertools.chain(*memref(name, accesses).view.subscripts.values())
    if any(atom != ONE and not factor.is_Integer for one in subscripts for factor, atom in terms(one)):
        raise Unsupported(Reason.non_affine_index, f"{name}: symbolic stride")


def _memref(
    target: GroupTarget, multiples: Multiples, prover: Prover, name: str, accesses: list[LinearAccess]
) -> Memref:
    """Return the memref of one buffer; Unsupported for a dtype or an access that Bridge refuses."""
    dtype = target.dtype_of(name)
    dtypes.type_name(dtype)
    view = delinearise(name, accesses, multiples.rewrite(target.numel_of(name)), prover)
    shifted = shifted_subscripts(view, target.shifts)
    if shifted is None:
        raise Unsupported(Reason.non_affine_index, f"{name}: no subscripts are what a cyclic shift is of")
    return Memref(view, dtype, shifted=shifted)


def memref_type(view: View, dtype: torch.dtype) -> ir.Type:
    """Return a type such as `memref<?x8192xbf16>`: a static extent where the size is a number."""
    extents = [str(s) if s.is_Integer else "?" for s in view.sizes]
    return ir.Type.parse(f"memref<{'x'.join([*extents, dtypes.type_name(dtype)])}>")


def _function(module: ir.Module, name: str, memrefs: dict[str, Memref]) -> ir.Operation:
    """Append the function with one argument a buffer; arguments for sizes follow as they are met."""
    types = [memref_type(m.view, m.dtype) for m in memrefs.values()]
    attributes = {"sym_name": ir.StringAttr.get(name), "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, []))}
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create("func.func", attributes=attributes, regions=1)
    entry = function.regions[0].blocks.append(*types)
    for memref, argument in zip(memrefs.values(), entry.arguments, strict=True):
        memref.value = argument
    return function


def _argument_labels(memrefs: dict[str, Memref], sizes: list[sympy.Expr], target: GroupTarget) -> list[dict[str, str]]:
    """Return the attributes of each argument."""
    storages = {name: target.storage_of(name) for name in memrefs}
    labels = [{"bridge.buffer": n, **({"bridge.storage": whole} if whole else {})} for n, whole in storages.items()]
    return labels + [{"bridge.size": str(size)} for size in sizes]


def _finish(function: ir.Operation, labels: list[dict[str, str]]) -> None:
    """Give the function its terminator, its type, and the names of its arguments."""
    entry = function.regions[0].blocks[0]
    names = [ir.DictAttr.get({key: ir.StringAttr.get(text) for key, text in label.items()}) for label in labels]
    types = [a.type for a in entry.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(names)
    with ir.InsertionPoint(entry):
        ir.Operation.create("func.return")


def _emit_nest(source: NodeSource, trace: NestTrace, emitter: NestEmitter) -> None:
    """Append the nest of one node, with its names for the passes and for messages."""
    if trace.reduce_vars and not any(s.op == "reduction" for s in trace.steps):
        raise Unsupported(Reason.unsupported_op, f"{trace.name}: reduction loops without a reduction")
    i64 = ir.IntegerType.get_signless(64)
    location = ir.Location.name(source.name, childLoc=_file_location(source.location))
    attributes = {
        "bridge.nodes": ir.ArrayAttr.get([ir.StringAttr.get(source.name)]),
        "bridge.kernels": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, source.kernel)]),
    }
    with location:
        emitter.emit(ir.InsertionPoint(emitter.symbols.entry), attributes)


def _file_location(location: tuple[str, int] | None) -> ir.Location:
    """Return a (file, line) of the user's as a location."""
    if location is None:
        return ir.Location.unknown()
    return ir.Location.file(location[0], location[1], 0)


def make_prover() -> Prover:
    """Return the prover of the graph that is compiled."""
    return Prover(inductor.statically_known, inductor.size_hint)
