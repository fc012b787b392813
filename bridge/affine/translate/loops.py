"""Choose the loops that the nodes of a group are translated with: Inductor flattens those of each node by itself.

A pointwise node over 4096 rows of 32 blocks may have one loop of 131072 iterations beside a reduction over
(4096, 32).  Where the loops of another node are a finer factorisation of a node's own, it gets those.

A row of symbolic length is a number of its parts, if the group has such: a loop of `2*t` iterations beside one of `t`
becomes two, of 2 and of `t`.  Of a length that is a number, the passes find the parts themselves.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import sympy

from .access import ONE, exact_quotient

#: (iteration extents, reduction extents) of a node.
Sizes = tuple[list[sympy.Expr], list[sympy.Expr]]

#: For every loop of a node the extents of the loops that take its place.
Factors = list[list[sympy.Expr]]

#: The iterations of one loop or several in each other, and those of all that are inside of them.
_Place: TypeAlias = tuple[sympy.Expr, sympy.Expr]

#: The most parts that a row of symbolic length is cut into.
MAX_PARTS = 16


@dataclass(frozen=True)
class NodeLoops:
    """Hold the loops of one node.

    iteration / reduction: their extents; kernel: the one that Inductor has put the node into; cuts: for each
    iteration loop what its indices divide it by (`inductor.loop_cuts`); strides: of each access
    (`inductor.loop_strides`); variables, indices: of all loops, of each access (`inductor.loop_indices`); stored: the
    buffers that it stores to; remainders: for each iteration loop the numbers by which a remainder is a value
    (`inductor.loop_remainders`).
    """

    iteration: list[sympy.Expr]
    reduction: list[sympy.Expr]
    kernel: int
    cuts: list[set[sympy.Expr | int]] = field(default_factory=list)
    strides: list[tuple[str, list[sympy.Expr]]] = field(default_factory=list)
    variables: list[sympy.Symbol] = field(default_factory=list)
    indices: list[tuple[str, sympy.Expr]] = field(default_factory=list)
    stored: set[str] = field(default_factory=set)
    remainders: list[set[int]] = field(default_factory=list)


def shared_loops(nodes: list[NodeLoops]) -> list[list[Factors]]:
    """Return choices of each node's loops, those of a reduction last: its own, or those of others that factor them.

    In the last choice loops that no other node has factors of are cut where indices divide them. It is the only one
    where a node steps over elements of blocks that others go over.
    """
    rows = _refined(nodes)
    blocks = _blocks(nodes, rows)
    steps = [_steps_in_blocks(node, blocks) for node in nodes]
    in_steps = any(len(part) > 1 for own in steps for part in own)
    if in_steps:
        cut = [replace(node, iteration=list(itertools.chain(*own))) for node, own in zip(nodes, steps, strict=True)]
        rows = [_regrouped(own, step) for own, step in zip(_refined(cut), steps, strict=True)]
    rows = [_arranged(own, node.cuts) for own, node in zip(rows, nodes, strict=True)]
    rows = [_cut_as_stored(own, node, nodes) for own, node in zip(rows, nodes, strict=True)]
    choices = [_cut_alike(rows, nodes)] if in_steps else [rows, _cut_alike(rows, nodes)]
    return [
        [own + [[extent] for extent in node.reduction] for own, node in zip(choice, nodes, strict=True)]
        for choice in choices
    ]


def _refined(nodes: list[NodeLoops]) -> list[Factors]:
    """Return the finest factors of the iteration loops of each node that the loops of others are.

    Only of a node whose indices divide its loops these are loops that go through memory in another order.
    """
    targets = [target for node in nodes for target in _targets(node)]
    return [
        _cut_by_sizes(node)
        or _finest(
            node,
            _targets_in_order(node, nodes) if _is_in_order(node, nodes) and not any(node.cuts) else targets,
            [other.iteration for other in nodes if other.kernel == node.kernel],
        )
        for node in nodes
    ]


def _cut_by_sizes(node: NodeLoops) -> Factors | None:
    """Return the loops of a node cut where indices divide them; None where they divide them by numbers only.

    By a size no affine expression divides, so no other loops will do.
    """
    if all(isinstance(cut, int) for own in node.cuts for cut in own):
        return None
    return [digits(extent, ascending(own)) for extent, own in zip(node.iteration, node.cuts, strict=True)]


def ascending(cuts: Iterable[sympy.Expr | int]) -> list[sympy.Expr | int]:
    """Return the cuts of a loop in ascending order: numbers, then sizes, each behind those that divide it.

    >>> s = sympy.Symbol("s", integer=True, positive=True)
    >>> ascending({4 * s, 16, s, 2})
    [2, 16, s, 4*s]
    """
    numbers, sizes = [c for c in cuts if isinstance(c, int)], [c for c in cuts if not isinstance(c, int)]
    divisors = {size: sum(exact_quotient(size, other) is not None for other in sizes) for size in sizes}
    return sorted(numbers) + sorted(sizes, key=lambda size: (divisors[size], str(size)))


def _targets_in_order(node: NodeLoops, nodes: list[NodeLoops]) -> list[list[sympy.Expr]]:
    """Return the factorisations of nodes that go in the order of memory through what a node shares with them.

    What they share with others alone says nothing of that: tiles that are copied are in order for the copy only.
    """
    own = {buffer for buffer, _ in node.strides}
    ordered = (
        other
        for other in nodes
        if _goes_in_order(other, own & {buffer for buffer, _ in other.strides}) and _is_in_order(other, nodes)
    )
    return [target for other in ordered for target in _targets(other)]


def _is_in_order(node: NodeLoops, nodes: list[NodeLoops]) -> bool:
    """Return True if a node goes through one of the buffers that it shares with others in the order of memory.

    Extents of loops in another order are factors of other loops by chance.
    """
    return _goes_in_order(node, {buffer for other in nodes if other is not node for buffer, _ in other.strides})


def _goes_in_order(node: NodeLoops, buffers: set[str]) -> bool:
    """Return True if a node goes through one of the buffers in the order of memory, or through none of them."""
    accesses = [strides[: len(node.iteration)] for buffer, strides in node.strides if buffer in buffers]
    moving = [strides for strides in accesses if any(strides)]  # One element has every order.
    return not moving or any(_is_descending(strides) for strides in moving)


def _is_descending(strides: list[sympy.Expr]) -> bool:
    """Return True if no stride is smaller than the next, as far as they are numbers and not 0."""
    numbers = [abs(int(stride)) for stride in strides if stride.is_Integer and stride != 0]
    return numbers == sorted(numbers, reverse=True)


def _blocks(nodes: list[NodeLoops], rows: list[Factors]) -> dict[str, set[int]]:
    """Return for each buffer the elements of the contiguous parts of it that iterations of a node's loops go over.

    rows: the factors of each node's iteration loops.
    """
    blocks: dict[str, set[int]] = {}
    for node, own in zip(nodes, rows, strict=True):
        loops = [*own, *([extent] for extent in node.reduction)]
        for buffer, strides in node.strides:
            parts = itertools.starmap(with_strides, zip(loops, strides, strict=True))
            blocks.setdefault(buffer, set()).update(_contiguous(list(itertools.chain(*parts))))
    return blocks


def with_strides(factors: list[sympy.Expr], stride: sympy.Expr) -> list[tuple[sympy.Expr, sympy.Expr]]:
    """Return (extent, stride) of the factors of a loop."""
    pairs = []
    for extent in reversed(factors):
        pairs.append((extent, stride))
        stride = stride * extent
    return pairs


def _contiguous(loops: list[tuple[sympy.Expr, sympy.Expr]]) -> Iterator[int]:
    """Yield the elements that the innermost loops of an access go over, those of one loop, of two and so on.

    loops: (extent, stride) of each.
    """
    extents = {int(stride): extent for extent, stride in loops if stride.is_Integer}
    size = 1
    while size in extents and extents[size].is_Integer and extents[size] > 1:
        size *= int(extents[size])
        yield size


def _steps_in_blocks(node: NodeLoops, blocks: dict[str, set[int]]) -> Factors:
    """Cut the loops of a node that step over elements where the blocks end that other nodes go over.

    Of pairs in blocks of 16, a loop over 2048 pairs becomes one over 256 blocks and one over the 8 pairs of each.
    """
    loops: Factors = []
    for position, extent in enumerate(node.iteration):
        cuts: set[int] = set()
        for buffer, strides in _linear_strides(node):
            step = _step(strides, position)
            if step > 1:
                cuts |= {block // step for block in blocks.get(buffer, ()) if block % step == 0}
        loops.append(digits(extent, sorted(cuts)))
    return loops


def _linear_strides(node: NodeLoops) -> list[tuple[str, list[sympy.Expr]]]:
    """Return the strides of the accesses whose index no loop's variable is in by a division alone.

    Such a loop has no stride, and goes through the buffer in steps all the same.
    """
    if not node.indices:
        return node.strides
    pairs = zip(node.strides, node.indices, strict=True)
    return [named for named, (_, index) in pairs if not _moves_by_division(node.variables, named[1], index)]


def _moves_by_division(variables: list[sympy.Symbol], strides: list[sympy.Expr], index: sympy.Expr) -> bool:
    """Return True if an index depends on a variable that is no linear term of it."""
    return any(stride == 0 and v in index.free_symbols for v, stride in zip(variables, strides, strict=True))


def _step(strides: list[sympy.Expr], position: int) -> int:
    """Return the stride of the loop at a position if no other goes in smaller steps through the buffer, else 0."""
    numbers = [abs(int(stride)) if stride.is_Integer else 0 for stride in strides]
    return 0 if any(0 < other < numbers[position] for other in numbers) else numbers[position]


def digits(extent: sympy.Expr, cuts: Sequence[sympy.Expr | int]) -> list[sympy.Expr]:
    """Cut a loop where as many innermost iterations end as `cuts` say, ascending; those that do not divide it not.

    >>> digits(sympy.Integer(4096), [8, 24, 64, 4096])
    [64, 8, 8]
    """
    found: list[sympy.Expr] = []
    inner = ONE
    for cut in map(sympy.sympify, cuts):
        part = exact_quotient(cut, inner)
        if part not in (None, 0, 1) and exact_quotient(extent, cut) not in (None, 1):
            found.append(part)
            inner = cut
    return [exact_quotient(extent, inner) or extent, *reversed(found)]


def _regrouped(factors: Factors, steps: Factors) -> Factors:
    """Put the factors of the parts of each loop together."""
    rest = iter(factors)
    return [[factor for _ in part for factor in next(rest)] for part in steps]


def cut_rows(nodes: list[Factors], interleaved: bool = False) -> list[Factors]:
    """Split every symbolic extent but a node's outermost into a number and the smallest extent that divides it.

    interleaved: the parts are every so-manieth element, and not contiguous ones.

    >>> t, n = sympy.symbols("t n", integer=True, positive=True)
    >>> cut_rows([[[n], [2 * t]], [[n, t]]])
    [[[n], [2, t]], [[n, t]]]
    """
    symbolic = {extent for node in nodes for part in node for extent in part if not extent.is_Integer}
    parts = {extent: _parts(extent, symbolic)[:: -1 if interleaved else 1] for extent in symbolic}
    return [[_cut(loops, parts, first=not n) for n, loops in enumerate(node)] for node in nodes]


def cut_in_place(nodes: list[Factors]) -> list[Factors]:
    """Split every symbolic product of loops that another node has in its place, with as many elements inside of them.

    Rows and columns of an image may be one loop of a node beside two of another, whatever is outside of them.

    >>> h, w = sympy.symbols("h w", integer=True, positive=True)
    >>> cut_in_place([[[8], [4], [h * w]], [[32], [h], [w]]])
    [[[8], [4], [h, w]], [[32], [h], [w]]]
    """
    return _cut_by_runs(nodes, lambda place: place)


def cut_anywhere(nodes: list[Factors]) -> list[Factors]:
    """Split every symbolic product of loops that another node has, in whatever place.

    A loop over tokens, with their channels inside, has the pixels of planes that another node has stored.

    >>> h, w = sympy.symbols("h w", integer=True, positive=True)
    >>> cut_anywhere([[[h * w], [32]], [[32], [h], [w]]])
    [[[h, w], [32]], [[32], [h], [w]]]
    """
    return _cut_by_runs(nodes, lambda place: place[0])


def _cut_by_runs(nodes: list[Factors], key: Callable[[_Place], Hashable]) -> list[Factors]:
    """Split every symbolic product of loops that a node has in a place with the same key."""
    runs = ((key(place), loops) for node in nodes for place, loops in _runs(node))
    finest = dict(sorted(runs, key=lambda run: len(run[1])))
    return [
        [
            list(itertools.chain(*(finest.get(key(place), [extent]) for extent, place in zip(part, own, strict=True))))
            for part, own in zip(node, _places(node), strict=True)
        ]
        for node in nodes
    ]


def _runs(node: Factors) -> list[tuple[_Place, list[sympy.Expr]]]:
    """Return the loops of a node that are in each other, two or more of a symbolic number of iterations, by place."""
    loops, runs = list(itertools.chain(*node)), []
    for start, end in itertools.combinations(range(len(loops) + 1), 2):
        place = _place(loops[start:end], loops[end:])
        if end - start > 1 and not place[0].is_Integer:
            runs.append((place, loops[start:end]))
    return runs


def _places(node: Factors) -> list[list[_Place]]:
    """Return the place of each loop of a node."""
    loops = list(itertools.chain(*node))
    places = (_place([extent], loops[number + 1 :]) for number, extent in enumerate(loops))
    return [list(itertools.islice(places, len(part))) for part in node]


def _place(loops: list[sympy.Expr], inside: list[sympy.Expr]) -> _Place:
    return sympy.expand(math.prod(loops)), sympy.expand(math.prod(inside))


def _parts(extent: sympy.Expr, symbolic: set[sympy.Expr]) -> list[sympy.Expr]:
    """Return (number, extent of a part), or the extent alone if none of `symbolic` divides it."""
    quotients = [exact_quotient(extent, part) for part in symbolic]
    number = max([q for q in quotients if q is not None and q.is_Integer and 1 <= q <= MAX_PARTS])
    return [extent] if number == 1 else [number, exact_quotient(extent, number)]


def _cut(loops: list[sympy.Expr], parts: dict[sympy.Expr, list[sympy.Expr]], first: bool) -> list[sympy.Expr]:
    """Replace extents by their parts; first: keep the outermost."""
    kept = loops[:1] if first else []
    return kept + [part for extent in loops[len(kept) :] for part in parts.get(extent, [extent])]


def _targets(node: NodeLoops) -> list[list[sympy.Expr]]:
    """Return the factorisations that other nodes may take over from a node."""
    return [node.iteration, [*node.iteration, *node.reduction]] if node.reduction else [node.iteration]


def _finest(node: NodeLoops, targets: list[list[sympy.Expr]], same_kernel: list[list[sympy.Expr]]) -> Factors:
    """Return the finest factors of a node's iteration loops.

    same_kernel: iteration loops of the nodes in its kernel, which may go over its rows and then what it reduces.
    """
    own = node.iteration
    refined = [factors for target in targets if (factors := refine(own, target)) is not None]
    if node.reduction:
        both = (refine([*own, *node.reduction], target) for target in same_kernel)
        refined += [factors[: len(own)] for factors in both if factors is not None]
    refined += [factors for target in targets if (factors := _symbolic_rows(own, target)) is not None]
    return max(refined, key=lambda factors: sum(map(len, factors)), default=[[extent] for extent in own])


def _symbolic_rows(own: list[sympy.Expr], target: list[sympy.Expr]) -> Factors | None:
    """Return the factors of loops over rows that the outer loops of `target` are; None if none of symbolic length is.

    Rows of a number the passes find by themselves: of tokens, `h*w` for each image, beside `h`, `w` and the channels.
    """
    if all(extent.is_Integer for extent in own):
        return None
    rows = (refine(own, target[:end]) for end in range(len(own) + 1, len(target)))
    found = next((factors for factors in rows if factors is not None), None)
    cut = [] if found is None else [extent for extent, part in zip(own, found, strict=True) if len(part) > 1]
    return found if cut and not any(extent.is_Integer for extent in cut) else None


def _arranged(factors: Factors, cuts: list[set[sympy.Expr | int]]) -> Factors:
    """Order the factors of each loop so that loops end where indices divide it, if there is such an order."""
    pairs = zip(factors, cuts or [set() for _ in factors], strict=True)
    return [(arrange(part, ascending(cut)) if cut else None) or part for part, cut in pairs]


def _cut_as_stored(factors: Factors, node: NodeLoops, nodes: list[NodeLoops]) -> Factors:
    """Cut loops without factors into those in which other nodes have stored what a node reads, and what is left."""
    return _repeated(_interleaved(factors, node, nodes), node, _extents_of_read(node, nodes))


def _interleaved(factors: Factors, node: NodeLoops, nodes: list[NodeLoops]) -> Factors:
    """Cut a loop into what another node goes over and the remainders that decide what an iteration computes.

    A loop over 128 elements, of which the even ones are of another kind than the odd ones, becomes one over the 64
    pairs that another node has stored, or has gone over in what both read, and one over the 2 of each.
    """
    extents = _extents_in_common(node, nodes)
    pairs = zip(factors, node.remainders or [set() for _ in factors], strict=True)
    return [_cut_by_remainder(part, sorted(own), extents) for part, own in pairs]


def _extents_of_read(node: NodeLoops, nodes: list[NodeLoops]) -> set[sympy.Expr]:
    """Return the extents of the loops in which other nodes have stored what a node reads."""
    buffers = {buffer for buffer, _ in node.strides}
    return {extent for other in nodes if other is not node and other.stored & buffers for extent in other.iteration}


def _extents_in_common(node: NodeLoops, nodes: list[NodeLoops]) -> set[sympy.Expr]:
    """Return the extents of the loops in which other nodes access what a node does."""
    buffers = {buffer for buffer, _ in node.strides}
    others = (other for other in nodes if other is not node and buffers.intersection(name for name, _ in other.strides))
    return {extent for other in others for extent in other.iteration}


def _repeated(factors: Factors, node: NodeLoops, extents: set[sympy.Expr]) -> Factors:
    """Cut a loop without factors into what another node has stored and how often it is repeated.

    Of two copies of 16 heads a loop over 32 becomes 16 and 2. The innermost is cut where another is, as in blocks.
    """
    pairs = zip(factors, node.cuts or [set() for _ in factors], strict=True)
    cut = [_cut_by_repetition(part, own, extents) for part, own in pairs]
    return cut if cut[:-1] != factors[:-1] else factors


def _cut_by_repetition(
    loop: list[sympy.Expr], cuts: set[sympy.Expr | int], extents: set[sympy.Expr]
) -> list[sympy.Expr]:
    """Cut a loop without factors by the only cut that it has, where one of both parts is one of `extents`."""
    if len(loop) > 1 or len(cuts) != 1 or not loop[0].is_Integer:
        return loop
    parts = digits(loop[0], list(cuts))
    return parts if not extents.isdisjoint(parts) else loop


def _cut_by_remainder(loop: list[sympy.Expr], divisors: list[int], extents: set[sympy.Expr]) -> list[sympy.Expr]:
    """Cut a loop without factors by the first divisor of which a quotient is one of `extents`."""
    extent = loop[0]
    cut = (divisor for divisor in divisors if exact_quotient(extent, sympy.Integer(divisor)) in extents)
    divisor = next(cut, None) if len(loop) == 1 else None
    return loop if divisor is None else digits(extent, [divisor])


def _cut_alike(rows: list[Factors], nodes: list[NodeLoops]) -> list[Factors]:
    """Cut loops that have no factors where indices divide them, and those of other nodes in their place as well."""
    cuts: dict[tuple[int, sympy.Expr], set[sympy.Expr | int]] = {}
    for own, node in zip(rows, nodes, strict=True):
        for position, (part, cut) in enumerate(zip(own, node.cuts, strict=False)):
            if len(part) == 1:
                cuts.setdefault((position, part[0]), set()).update(cut)
    return [
        [
            digits(part[0], ascending(cuts.get((n, part[0]), ()))) if len(part) == 1 else part
            for n, part in enumerate(own)
        ]
        for own in rows
    ]


def arrange(factors: list[sympy.Expr], cuts: list[sympy.Expr | int]) -> list[sympy.Expr] | None:
    """Order `factors` so that products of innermost ones are the ascending `cuts`; None if there is no such order.

    >>> arrange([sympy.Integer(n) for n in (64, 8, 7, 8, 7)], [49])
    [64, 8, 8, 7, 7]
    """
    if not all(factor.is_Integer for factor in factors) or not all(isinstance(cut, int) for cut in cuts):
        return None
    total = math.prod(factors)
    bounds = [total, *reversed([cut for cut in cuts if cut < total]), 1]
    rest, arranged = list(factors), []
    for outer, inner in itertools.pairwise(bounds):
        part = _take(rest, outer // inner) if outer % inner == 0 else None
        if part is None:
            return None
        arranged += part
    return arranged


def _take(rest: list[sympy.Expr], product: sympy.Expr) -> list[sympy.Expr] | None:
    """Take factors of a product out of `rest`, the first that fit; None if they do not make it."""
    part = []
    for factor in list(rest):
        if product % factor == 0:
            product //= factor
            rest.remove(factor)
            part.append(factor)
    return part if product == 1 else None


def refine(own: list[sympy.Expr], target: list[sympy.Expr]) -> Factors | None:
    """Cut `target` where the loops of `own` end, so that each is the product of its part; None if that cannot be.

    >>> refine([24, 8], [6, 4, 8])
    [[6, 4], [8]]
    """
    found = _refine(tuple(own), tuple(target))
    return None if found is None else [list(part) for part in found]


@functools.lru_cache(maxsize=1 << 12)
def _refine(own: tuple[sympy.Expr, ...], target: tuple[sympy.Expr, ...]) -> Factors | None:
    """Return what `refine` does, once for the same loops: layers of a model have the same."""
    factors: Factors = []
    rest = [extent for extent in target if extent != 1]
    for extent in own:
        part: list[sympy.Expr] = []
        while rest and math.prod(part) != extent:
            part.append(rest.pop(0))
            if exact_quotient(extent, sympy.expand(math.prod(part))) is None:
                return None
        if sympy.expand(math.prod(part) - extent) != 0:
            return None
        factors.append(part or [extent])
    return None if rest else factors
