"""Objects of torch's with more to them: copies of classes derived from their own, which take their place.

The class of the object itself stays as it is, and so do all objects that other compilations have.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from .protocols import CodeGenerator, Scheduler


def code_generator(scheduler: Scheduler, device: torch.device) -> CodeGenerator:
    """Return the scheduler's code generator of a device; CUDA's delegates to several, of which it is Triton's."""
    backend = scheduler.get_backend(device)
    return getattr(backend, "_triton_scheduling", backend)


def derive_code_generator(scheduler: Scheduler, device: torch.device, mixin: type) -> Any:
    """Put a copy of a scheduler's code generator in its place, of a class that has the mixin; return it.

    One that has it already stays.
    """
    backend = code_generator(scheduler, device)
    if isinstance(backend, mixin):
        return backend
    derived = _copied(backend, derived_class(type(backend), mixin))
    around: Any = scheduler.get_backend(device)
    if around is backend:
        scheduler.backends[device] = derived
    else:
        around._triton_scheduling = derived
    return derived


@functools.cache
def derived_class(base: type, mixin: type) -> type:
    """Return a class of the base's name that has the mixin before it."""
    return type(base.__name__, (mixin, base), {})


def _copied(original: object, kind: type) -> Any:
    """Return an object of another class with the attributes of the original."""
    copy: Any = object.__new__(kind)
    vars(copy).update(vars(original))
    return copy
