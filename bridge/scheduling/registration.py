"""What the entry point of the backend names: loading it registers the backend, once.

Threads that ask at once for a backend that Dynamo knows by its entry point each load it, and each register what they
got; torch raises at the second.  So it is registered here, under a lock, and torch gets None, of which it registers
nothing.
"""

from __future__ import annotations

from .. import inductor


def __getattr__(name: str) -> None:
    """`registered`: None, after the backend is."""
    if name != "registered":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ..backend import bridge

    inductor.register_once("bridge", bridge)
