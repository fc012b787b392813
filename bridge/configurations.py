"""Which configurations to try for a launch that several kernels share: no more than is worth compiling.

A configuration of the launch has block sizes for each kernel, but one number of warps.  The code of a kernel is unrolled
over the elements that a thread has, and that is what compiling it takes time for.  `benchmarks/compile_models.py`
measures it: RoPE in blocks of 4096 elements takes Triton 0.7 s and ptxas no spill with the 8 warps of Inductor's choice,
20 s and 1454 spilled words with the one warp that suits a norm beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

#: Threads of a warp.
WARP = 32


class Joint(NamedTuple):
    """A configuration of the launch; blocks: by name, each with the number of its kernel."""

    blocks: dict[str, int]
    warps: int
    stages: int


@dataclass(frozen=True)
class Part:
    """A kernel of the launch.

    configs: what it would try alone (of triton.Config's attributes); sizes: elements of its dimensions by prefix ("x",
    "r0_"), rounded up to powers of 2; lines: of its code.
    """

    configs: Sequence[Any]
    sizes: dict[str, int]
    lines: int

    def of(self, n: int) -> Any:
        """Its n-th configuration, or its last."""
        return self.configs[min(n, len(self.configs) - 1)]

    def each(self, config: Any, warps: int) -> float:
        """Elements of a thread.  A persistent reduction has a whole row, whose size is in no configuration."""
        blocks = {k.removesuffix("BLOCK").lower(): size for k, size in config.kwargs.items() if k.endswith("BLOCK")}
        rows = [size for prefix, size in self.sizes.items() if prefix.startswith("r") and prefix not in blocks]
        return math.prod([*blocks.values(), *rows]) / (WARP * warps)

    def work(self, config: Any, warps: int) -> float:
        """What compiling takes, in lines for one element: a part of it does not depend on the elements."""
        return self.lines * (1 + max(1.0, self.each(config, warps)))

    @property
    def most(self) -> float:
        """Elements of a thread in the configuration that has the most of them."""
        return max(self.each(config, config.num_warps) for config in self.configs)


def joint_configurations(parts: list[Part]) -> list[Joint]:
    """The n-th configuration of every part, with the most warps of them; then, while it lasts, with fewer.

    All together take no more work to compile than the parts alone would in theirs, and a thread never has more elements
    of a part than it might alone.  The first is always among them.
    """
    left = sum(part.work(config, config.num_warps) for part in parts for config in part.configs)
    joint: list[Joint] = []
    for n, warps in _candidates(parts):
        chosen = [part.of(n) for part in parts]
        blocks = {f"{key}_{i}": size for i, config in enumerate(chosen) for key, size in config.kwargs.items()}
        candidate = Joint(blocks, warps, max(config.num_stages for config in chosen))
        work = sum(part.work(config, warps) for part, config in zip(parts, chosen, strict=True))
        if work <= left and candidate not in joint:
            joint.append(candidate)
            left -= work
    return joint


def _candidates(parts: list[Part]) -> Iterator[tuple[int, int]]:
    """(which of the configurations, warps), in the order in which they are worth trying."""
    numbers = range(max(len(part.configs) for part in parts))
    warps = [sorted({part.of(n).num_warps for part in parts}, reverse=True) for n in numbers]
    yield from ((n, warps[n][0]) for n in numbers)
    for n in numbers:
        few = (w for w in warps[n][1:] if all(part.each(part.of(n), w) <= part.most for part in parts))
        yield from ((n, w) for w in few)
