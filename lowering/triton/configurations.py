"""Choose the configurations to try for a launch that several kernels share: no more than is worth compiling.

A configuration of the launch has block sizes for each kernel, but one number of warps. The code of a kernel is unrolled
over the elements that a thread has, and that is what compiling it takes time for.  `benchmarks/compile_models.py`
measures it: RoPE in blocks of 4096 elements (DeepSeek-V3's keys) takes 0.7 s with the 8 warps of Inductor's choice, and
20 s, with 1454 spilled words, with the one warp that suits the norm beside it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

#: Threads of a warp.
WARP = 32

#: What all may take to compile, over the parts alone: a part that has fewer configurations is compiled again for those
#: of the others.  With it, no model of `bridge bench` takes Triton longer than without a shared launch.
MOST_WORK = 1.125


#: Elements of a row in registers that a thread may have.  With 64, the pairs of gemma3's heads spill 288 words in 255
#: registers, and take three times as long to compile as with 16.
MOST_ELEMENTS = 32


#: Elements that a thread has at least where there are blocks enough with as many: 8 bytes of 16-bit numbers, which one
#: instruction loads.  With one element of a row of 64, norms of q and k take three times as long (102 us, not 33, on an
#: H100), and a measurement of a first launch does not always show it.
FEWEST_ELEMENTS = 4

#: Blocks that are enough: several for each multiprocessor of any GPU of today.
ENOUGH_BLOCKS = 512

#: Elements that are tried first for a thread, where it has as many alone, and there are many more blocks.  A norm of
#: 12,808 rows of 1024 has one warp a row alone, and takes 15 us; beside one of 512 rows, which has eight, a thread had
#: four elements, and it took 23 (an H200).
USUAL_ELEMENTS, MANY_BLOCKS = 16, 2048


class Configuration(Protocol):
    """Name what is asked of triton.Config."""

    kwargs: dict[str, int]
    num_warps: int
    num_stages: int


@dataclass
class Grown:
    """Hold a configuration with a larger block than the one that it was made of."""

    kwargs: dict[str, int]
    num_warps: int
    num_stages: int


class Joint(NamedTuple):
    """Hold a configuration of the launch; blocks: by name, each with the number of its kernel."""

    blocks: dict[str, int]
    warps: int
    stages: int


@dataclass(frozen=True)
class Part:
    """Hold a kernel of the launch.

    configs: what it would try alone; sizes: elements of its dimensions by prefix ("x",
    "r0_"), rounded up to powers of 2; lines: of its code.
    """

    configs: Sequence[Configuration]
    sizes: dict[str, int]
    lines: int

    @functools.cached_property
    def tried(self) -> Sequence[Configuration]:
        """Return the configurations without those whose rows do not fit in registers; the first where none does.

        Of a reduction, without those of threads that have too little to do, where others give each enough, and are
        blocks enough.
        """
        fitting = [c for c in self.configs if not self._rows(c) or self.each(c, c.num_warps) <= MOST_ELEMENTS]
        busy = [c for c in fitting if self.each(c, c.num_warps) >= FEWEST_ELEMENTS]
        reduces = any(prefix[0] == "r" for prefix in self.sizes)
        enough = reduces and any(self._programs(c) >= ENOUGH_BLOCKS for c in busy)
        return (busy if enough else fitting) or self.configs[:1]

    def _programs(self, config: Configuration) -> float:
        """Return the number of blocks: programs of the part."""
        blocks = _blocks(config)
        return math.prod(size / blocks.get(prefix, size) for prefix, size in self.sizes.items() if prefix[0] != "r")

    def _rows(self, config: Configuration) -> list[int]:
        """Return the length of a persistent reduction's row, whose size is in no configuration."""
        blocks = _blocks(config)
        return [size for prefix, size in self.sizes.items() if prefix.startswith("r") and prefix not in blocks]

    def each(self, config: Configuration, warps: int) -> float:
        """Return the number of elements of a thread."""
        return math.prod([*_blocks(config).values(), *self._rows(config)]) / (WARP * warps)

    def work(self, config: Configuration, warps: int) -> float:
        """Return what compiling takes, in lines for one element: a part of it does not depend on the elements."""
        return self.lines * (1 + max(1.0, self.each(config, warps)))

    def grown(self, config: Configuration, warps: int, elements: float, blocks: int) -> Configuration:
        """Return a configuration for so many warps, with more rows where their threads would have too little to do.

        elements: of a thread, as many as are wanted, if so many blocks are left.

        A part that keeps short rows has one warp and two rows alone, and 16 warps beside a part that loops: norms of
        12 heads took twice as long in them (391 us by Inductor's launches, 762 in one, on an H100).
        """
        reduces = any(prefix[0] == "r" for prefix in self.sizes)
        if not reduces or "XBLOCK" not in config.kwargs:
            return config
        while self.each(config, warps) < elements and self._programs(config) >= 2 * blocks:
            doubled = {**config.kwargs, "XBLOCK": 2 * config.kwargs["XBLOCK"]}
            config = Grown(doubled, config.num_warps, config.num_stages)
        return config

    @property
    def most(self) -> float:
        """Return the number of elements of a thread in the configuration that has the most of them."""
        return max(self.each(config, config.num_warps) for config in self.tried)


def _blocks(config: Configuration) -> dict[str, int]:
    """Return block sizes by prefix."""
    return {k.removesuffix("BLOCK").lower(): size for k, size in config.kwargs.items() if k.endswith("BLOCK")}


def joint_configurations(parts: list[Part]) -> list[Joint]:
    """Return the n-th configuration of every part, with the most warps of them; then, while it lasts, with fewer.

    And then these once more, with no more elements of a thread than it needs.

    All together take not much more work to compile than the parts alone would in theirs, and a thread never has more
    elements of a part than it might alone.  The first is always among them.
    """
    left = MOST_WORK * sum(part.work(config, config.num_warps) for part in parts for config in part.tried)
    joint: list[Joint] = []
    tried = itertools.chain(_with_most_warps(parts), _with_fewer_warps(parts))
    for usual, (own, warps) in itertools.product((True, False), tried):
        chosen = [_grown(part, config, warps, usual) for part, config in zip(parts, own, strict=True)]
        work = sum(part.work(config, warps) for part, config in zip(parts, chosen, strict=True))
        candidate = _joint(chosen, warps)
        if work <= left and candidate not in joint:
            joint.append(candidate)
            left -= work
    return joint


def _grown(part: Part, config: Configuration, warps: int, usual: bool) -> Configuration:
    """Return a part's configuration for so many warps; usual: if more rows are wanted than threads need.

    A thread has no more than it has alone.
    """
    alone = part.each(config, config.num_warps)
    enough = part.grown(config, warps, min(FEWEST_ELEMENTS, alone), ENOUGH_BLOCKS)
    return part.grown(enough, warps, min(USUAL_ELEMENTS, alone), MANY_BLOCKS) if usual else enough


def _rows(parts: list[Part]) -> list[list[Configuration]]:
    """Return the n-th configuration of every part; its last, for a part that has fewer."""
    longest = max(len(part.tried) for part in parts)
    return [[part.tried[min(n, len(part.tried) - 1)] for part in parts] for n in range(longest)]


def _with_most_warps(parts: list[Part]) -> Iterator[tuple[list[Configuration], int]]:
    for chosen in _rows(parts):
        yield chosen, max(config.num_warps for config in chosen)


def _with_fewer_warps(parts: list[Part]) -> Iterator[tuple[list[Configuration], int]]:
    """Yield those in which no thread has more elements than it might alone."""
    for chosen in _rows(parts):
        for warps in sorted({config.num_warps for config in chosen}, reverse=True)[1:]:
            if all(part.each(config, warps) <= part.most for part, config in zip(parts, chosen, strict=True)):
                yield chosen, warps


def _joint(chosen: list[Configuration], warps: int) -> Joint:
    blocks = {f"{key}_{i}": size for i, config in enumerate(chosen) for key, size in config.kwargs.items()}
    return Joint(blocks, warps, max(config.num_stages for config in chosen))
