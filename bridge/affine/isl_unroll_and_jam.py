"""Loops that were unrolled and jammed, as bridge-unroll-and-jam makes them: what the verifier has to know of them.

The loop over 0 .. p * n became one over 0 .. n, with p copies of its body: copy k does what the iterations from k * n
on did.  Which copy an access is in is read off what the copies store: they store to one buffer, each n iterations
further than the one before.  A load is in the copies whose stores its value goes into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .isl_accesses import AccessRelation
from .mlir_runtime import ir

#: Two accesses and a number of iterations -> whether the second touches what the first does that many iterations later.
IsShifted = Callable[[AccessRelation, AccessRelation, int], bool]


def constant_extent(loop: ir.Operation) -> int | None:
    """Return the constant extent of a loop from 0; None where it is not constant."""
    upper = list(loop.attributes["upperBoundMap"].value.results)
    return upper[0].value if len(upper) == 1 and isinstance(upper[0], ir.AffineConstantExpr) else None


def find_unrolled_copies(found: list[AccessRelation], is_shifted: IsShifted) -> None:
    """Note for the accesses in unrolled loops the loop, its unroll factor, and the copies that they are in.

    Where the copies of one are not known, it is taken to be in each: what is asked has to hold for all of them.
    """
    stores: list[list[AccessRelation]] = []
    for store in (access for access in found if access.writes and access.loops):
        same_loop = next((others for others in stores if others[0].loops[-1] == store.loops[-1]), None)
        if same_loop is None:
            stores.append([store])
        else:
            same_loop.append(store)
    for own in stores:
        _find_in_loop(own[0].loops[-1], own, found, is_shifted)


def _find_in_loop(
    loop: ir.Operation, stores: list[AccessRelation], found: list[AccessRelation], is_shifted: IsShifted
) -> None:
    """Note the copies of the accesses in one loop, whose stores are `stores`."""
    extent = constant_extent(loop)
    if extent is None:
        return
    copies = [_copies(store, stores, extent, is_shifted) for store in stores]
    factor = max(map(len, copies))
    if factor < 2:
        return
    numbers = [
        next(k for k, copy in enumerate(own) if copy is store) for store, own in zip(stores, copies, strict=True)
    ]
    copy_of = [(s, k) for s, own, k in zip(stores, copies, numbers, strict=True) if len(own) == factor]
    for access in (access for access in found if loop in access.loops):
        ends = [access.operation] if access.writes else _stores_fed(access.operation)
        own_copies = [next((k for store, k in copy_of if store.operation == end), None) for end in ends]
        known = {k for k in own_copies if k is not None}
        access.unrolled, access.factor = loop, factor
        access.copies = tuple(sorted(known)) if known and None not in own_copies else tuple(range(factor))


def _copies(
    store: AccessRelation, stores: Iterable[AccessRelation], extent: int, is_shifted: IsShifted
) -> list[AccessRelation]:
    """Return the stores that one store became, in the order of the copies."""
    rest = [other for other in stores if other.memref == store.memref and other is not store]
    copies = [store]
    # Each is taken once: a store may be to where it was some iterations before.
    while (later := next((other for other in rest if is_shifted(copies[-1], other, extent)), None)) is not None:
        copies.append(rest.pop(next(k for k, other in enumerate(rest) if other is later)))
    while (sooner := next((other for other in rest if is_shifted(other, copies[0], extent)), None)) is not None:
        copies.insert(0, rest.pop(next(k for k, other in enumerate(rest) if other is sooner)))
    return copies


def _stores_fed(load: ir.Operation) -> list[ir.Operation]:
    """Return the stores that the value of a load goes into."""
    stores: list[ir.Operation] = []
    waiting, seen = [load], [load]
    while waiting:
        for user in _users(waiting.pop()):
            if user.name == "affine.store":
                stores.append(user)
            elif user not in seen:
                seen.append(user)
                waiting.append(user)
    return stores


def _users(operation: ir.Operation) -> Iterator[ir.Operation]:
    """Yield what uses an operation's results; of what a loop or a branch yields, the loop or the branch."""
    for result in operation.results:
        for use in result.uses:
            user = use.owner.operation
            yield user.parent.operation if user.name == "affine.yield" else user
