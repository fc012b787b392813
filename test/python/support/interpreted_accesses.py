"""Tell the elements that interpreted kernels touch, by buffer: addresses are replaced by ones that tell whose they are.

Every tensor that a launch is given gets a virtual address, far from all others, and loads and stores translate it back.
So an access outside of its buffer is seen wherever it would have led, and one of a lane that is masked off is none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from unittest import mock

import numpy as np
import torch
from triton.runtime import interpreter

#: Bytes between the virtual addresses of two arguments.
_APART = 1 << 40


@dataclass
class Argument:
    """Hold a tensor that a launch is given, and the offsets of elements that it touches, from the first one."""

    tensor: torch.Tensor
    base: int
    loaded: list[np.ndarray] = field(default_factory=list)
    stored: list[np.ndarray] = field(default_factory=list)

    @property
    def elements(self) -> int:
        """Count the elements from the tensor's first one to the end of its storage."""
        storage = self.tensor.untyped_storage().nbytes() // self.tensor.element_size()
        return storage - self.tensor.storage_offset()

    def outside(self) -> np.ndarray:
        """Return the offsets of touched elements that are outside of the tensor's storage."""
        offsets = np.concatenate([*self.loaded, *self.stored, np.empty(0, np.int64)])
        return offsets[(offsets < 0) | (offsets >= self.elements)]


@dataclass
class Launch:
    """Hold one launch of a kernel, with its arguments by the names of the parameters."""

    kernel: str
    arguments: dict[str, Argument] = field(default_factory=dict)


@dataclass
class Accesses:
    launches: list[Launch] = field(default_factory=list)
    atomics: int = 0

    def outside(self) -> list[str]:
        """Return the parameters through which an element outside of their buffer is touched."""
        return [
            f"{launch.kernel} {name}: element {offset} of {argument.elements}"
            for launch in self.launches
            for name, argument in launch.arguments.items()
            for offset in argument.outside()
        ]

    def touched(self, tensor: torch.Tensor, kind: str) -> np.ndarray:
        """Return offsets, in elements of `tensor`, that are `loaded` or `stored`; each as often as that happens."""
        first = tensor.data_ptr()
        found: list[np.ndarray] = [np.empty(0, np.int64)]
        for argument in (a for launch in self.launches for a in launch.arguments.values()):
            if argument.tensor.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr():
                shift = (argument.tensor.data_ptr() - first) // tensor.element_size()
                found += [offsets + shift for offsets in getattr(argument, kind)]
        return np.concatenate(found)


class _Recorder:
    """Stand in for what the interpreter launches, converts, loads and stores with."""

    def __init__(self):
        self.found, self.builder = Accesses(), interpreter.interpreter_builder
        self.execute, self.convert = interpreter.GridExecutor.__call__, interpreter._implicit_cvt
        self.load, self.store = self.builder.create_masked_load, self.builder.create_masked_store
        self.place = self.builder.set_grid_idx
        self.by_base: dict[int, Argument] = {}

    def launching(self, executor, *arguments, **options):
        self.found.launches.append(Launch(executor.fn.__name__))
        return self.execute(executor, *arguments, **options)

    def virtual(self, tensor):
        value = self.convert(tensor)
        if not isinstance(tensor, torch.Tensor):
            return value
        argument = Argument(tensor, (len(self.by_base) + 1) * _APART)
        self.by_base[argument.base] = argument
        arguments = self.found.launches[-1].arguments
        arguments[f"argument {len(arguments)}"] = argument
        value.handle.data[...] = argument.base
        return value

    def real(self, pointers, mask, kind):
        """Return the pointers for the unmasked lanes, and the mask of those that are inside the argument."""
        lanes = np.broadcast_to(mask.data, pointers.data.shape).astype(bool)
        addresses = pointers.data[lanes]
        if addresses.size == 0:
            return interpreter.TensorHandle(np.zeros_like(pointers.data), pointers.dtype), mask
        base = int(addresses[0] + np.uint64(_APART // 2)) // _APART * _APART
        argument = self.by_base[base]
        offsets = (addresses.astype(np.int64) - base) // argument.tensor.element_size()
        getattr(argument, kind).append(np.unique(offsets) if kind == "loaded" else offsets)
        moved = np.zeros_like(pointers.data)
        moved[lanes] = addresses - np.uint64(base) + np.uint64(argument.tensor.data_ptr())
        kept = lanes.copy()
        kept[lanes] = (offsets >= 0) & (offsets < argument.elements)  # what is outside is recorded, and not touched
        return interpreter.TensorHandle(moved, pointers.dtype), interpreter.TensorHandle(kept, mask.dtype)

    def recording_load(self, pointers, mask, *rest):
        return self.load(*self.real(pointers, mask, "loaded"), *rest)

    def recording_store(self, pointers, value, mask, *rest):
        moved, kept = self.real(pointers, mask, "stored")
        return self.store(moved, value, kept, *rest)

    def recording_update(self, operation, pointers, value, mask, *rest):
        moved, kept = self.real(pointers, mask, "stored")
        # The class's, as it is by now: what is interpreted may have it corrected after the recorder was made.
        return type(self.builder).create_atomic_rmw(self.builder, operation, moved, value, kept, *rest)

    def from_the_end(self, *indices):
        self.place(*(extent - 1 - index for extent, index in zip(self.builder.grid_dim, indices, strict=True)))


def _atomic(*_):
    raise AssertionError("an atomic operation: not recorded")


@contextlib.contextmanager
def recorded_accesses(whole: bool = False) -> Iterator[Accesses]:
    """Record what the kernels that are interpreted within load and store.

    whole: they may add with atomic operations, too, and the programs of a launch run from the last to the first: what
    depends on their order has other results then.
    """
    recorder = _Recorder()
    with (
        mock.patch.object(interpreter, "_implicit_cvt", recorder.virtual),
        # A function, not a bound method: it is to be given the executor.
        mock.patch.object(interpreter.GridExecutor, "__call__", lambda *a, **k: recorder.launching(*a, **k)),
        mock.patch.multiple(
            recorder.builder,
            create_masked_load=recorder.recording_load,
            create_masked_store=recorder.recording_store,
            create_atomic_cas=_atomic,
            create_atomic_rmw=recorder.recording_update if whole else _atomic,
            set_grid_idx=recorder.from_the_end if whole else recorder.place,
        ),
    ):
        yield recorder.found
