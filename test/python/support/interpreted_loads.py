"""Tell which elements interpreted kernels load, program by program: a count of `tl.load` in the source cannot tell."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from unittest import mock

import numpy as np
import torch
from triton.runtime import interpreter


@dataclass
class Loads:
    """Hold the addresses that each program loads, (launch, program) -> one array for each load that it executes."""

    programs: dict[tuple, list[np.ndarray]] = field(default_factory=dict)

    def record(self, program: tuple, addresses: np.ndarray) -> None:
        # Lanes of one load that share an address are one access to memory.
        self.programs.setdefault(program, []).append(np.unique(addresses))

    def most_often(self, tensor: torch.Tensor) -> int:
        """Return how often one program loads the element of a tensor that it loads most often."""
        return max((int(counts.max()) for counts in self._counts(tensor) if counts.size), default=0)

    def elements(self, tensor: torch.Tensor) -> int:
        """Count the loads of a tensor's elements; an element counts each time that it is loaded."""
        return sum(int(counts.sum()) for counts in self._counts(tensor))

    def _counts(self, tensor: torch.Tensor) -> Iterator[np.ndarray]:
        """Yield, for each program, how often it loads each element of the tensor that it loads at all."""
        first = tensor.data_ptr()
        last = first + tensor.untyped_storage().nbytes()
        for loads in self.programs.values():
            addresses, counts = np.unique(np.concatenate(loads), return_counts=True)
            yield counts[(first <= addresses) & (addresses < last)]


@contextlib.contextmanager
def recorded_loads() -> Iterator[Loads]:
    """Record every load of the kernels that are interpreted within."""
    loads, builder, launches = Loads(), interpreter.interpreter_builder, [0]
    load, launch = builder.create_masked_load, builder.set_grid_dim

    def recording_load(pointers, mask, *rest):
        lanes = np.broadcast_to(mask.data, pointers.data.shape).astype(bool)
        loads.record((launches[0], *builder.grid_idx), pointers.data[lanes])
        return load(pointers, mask, *rest)

    def counting_launch(*grid):
        launches[0] += 1
        launch(*grid)

    with mock.patch.multiple(builder, create_masked_load=recording_load, set_grid_dim=counting_launch):
        yield loads
