"""Loops of which an iteration computes several elements, as bridge-unroll-and-jam makes them, for the second opinion.

The loop over 0 .. p * n became one over 0 .. n, with p copies of its body: the copy of piece k is what the iterations
from k * n on did.  Which copy an access is in is read off what the copies store: they store to one buffer, each n
iterations further than the one before.  A load is in the copies whose stores its value goes into.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

#: Two accesses and a number of iterations -> whether the second is as the first is that many iterations later.
IsShifted = Callable[[Any, Any, int], bool]


def extent(loop: Any) -> int | None:
    """The constant extent of a loop from 0."""
    found = re.fullmatch(r"affine_map<\(\) -> \((\d+)\)>", str(loop.attributes["upperBoundMap"]))
    return int(found[1]) if found else None


def find_pieces(found: list[Any], is_shifted: IsShifted) -> None:
    """Notes of the accesses in such loops the loop, its number of pieces, and the pieces that they are in.

    Where that is not known of one, it is taken to be in each: what is asked has to hold for all of them.
    """
    stores: list[list[Any]] = []
    for store in (access for access in found if access.writes and access.loops):
        home = next((others for others in stores if others[0].loops[-1] == store.loops[-1]), None)
        if home is None:
            stores.append([store])
        else:
            home.append(store)
    for own in stores:
        _find_in_loop(own[0].loops[-1], own, found, is_shifted)


def _find_in_loop(loop: Any, stores: list[Any], found: list[Any], is_shifted: IsShifted) -> None:
    size = extent(loop)
    if size is None:
        return
    copies = [_copies(store, stores, size, is_shifted) for store in stores]
    count = max(map(len, copies))
    if count < 2:
        return
    numbers = [
        next(k for k, copy in enumerate(own) if copy is store) for store, own in zip(stores, copies, strict=True)
    ]
    piece_of = [(s, k) for s, own, k in zip(stores, copies, numbers, strict=True) if len(own) == count]
    for access in (access for access in found if loop in access.loops):
        ends = [access.operation] if access.writes else _stores_fed(access.operation)
        pieces = [next((k for store, k in piece_of if store.operation == end), None) for end in ends]
        access.split, access.count = loop, count
        access.pieces = tuple(sorted(set(pieces))) if pieces and None not in pieces else tuple(range(count))


def _copies(store: Any, stores: Iterable[Any], size: int, is_shifted: IsShifted) -> list[Any]:
    """The stores that are one in several pieces, in their order."""
    rest = [other for other in stores if other.memref == store.memref and other is not store]
    copies = [store]
    # Each is taken once: a store may be to where it was some iterations before.
    while (later := next((other for other in rest if is_shifted(copies[-1], other, size)), None)) is not None:
        copies.append(rest.pop(next(k for k, other in enumerate(rest) if other is later)))
    while (sooner := next((other for other in rest if is_shifted(other, copies[0], size)), None)) is not None:
        copies.insert(0, rest.pop(next(k for k, other in enumerate(rest) if other is sooner)))
    return copies


def _stores_fed(load: Any) -> list[Any]:
    """The stores that the value of a load goes into."""
    stores: list[Any] = []
    waiting, seen = [load], [load]
    while waiting:
        for user in _users(waiting.pop()):
            if user.name == "affine.store":
                stores.append(user)
            elif user not in seen:
                seen.append(user)
                waiting.append(user)
    return stores


def _users(operation: Any) -> Iterator[Any]:
    """What uses an operation's results; of what a loop or a branch yields, the loop or the branch."""
    for result in operation.results:
        for use in result.uses:
            user = use.owner.operation
            yield user.parent.operation if user.name == "affine.yield" else user
