"""Tell how much memory an emitted wrapper has allocated at a time: its source says what it makes, keeps and frees."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

_SIZES = r"(\(.*?\)), (\(.*?\))"
_ALLOCATION = re.compile(rf"\s*(\w+) = empty_strided_\w+\({_SIZES}, torch\.(\w+)\)")
_RESULT = re.compile(rf"\s*assert_size_stride\((buf\d+), {_SIZES}")
_ALIAS = re.compile(r"\s*(buf\d+) = (?:reinterpret_tensor\()?(buf\d+)\b")
_CALL = re.compile(r"\s*(buf\d+) = (?:torch\.ops|extern_kernels)\.")


@dataclass
class _Memory:
    """Hold what a wrapper has allocated.

    storages: by name, the first name of its storage; sizes: bytes by that first name; results: of library calls whose
    sizes no line has given yet.
    """

    storages: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    results: set[str] = field(default_factory=set)
    peak: int = 0

    def define(self, line: str, dtype_of: Callable[[str], torch.dtype]) -> None:
        """Record what a line gives a name to."""
        made, checked, alias = _ALLOCATION.match(line), _RESULT.match(line), _ALIAS.match(line)
        if made:
            self.allocate(made[1], _bytes(made[2], made[3], getattr(torch, made[4])))
        elif checked and checked[1] in self.results:
            self.results.remove(checked[1])
            self.allocate(checked[1], _bytes(checked[2], checked[3], dtype_of(checked[1])))
        elif alias and alias[2] not in self.results:
            self.alias(alias[1], alias[2])
        elif alias or _CALL.match(line):
            self.results.add(line.split()[0])

    def allocate(self, name: str, amount: int) -> None:
        self.storages[name], self.sizes[name] = name, amount
        self.peak = max(self.peak, sum(self.sizes.values()))

    def alias(self, name: str, other: str) -> None:
        if other in self.storages:
            self.storages[name] = self.storages[other]

    def free(self, name: str) -> None:
        storage = self.storages.pop(name, None)
        if storage is not None and storage not in self.storages.values():
            del self.sizes[storage]


def allocated(code: str, dtype_of: Callable[[str], torch.dtype]) -> int:
    """Return the bytes at the peak of a wrapper's call, without the graph's inputs.

    dtype_of: gives the dtype of a library call's result.
    """
    memory = _Memory()
    for line in code[code.index("def call(") :].splitlines():
        memory.define(line, dtype_of)
        for names in re.findall(r"\bdel ([\w, ]+)", line):
            for name in names.split(", "):
                memory.free(name.strip())
    return memory.peak


def _bytes(size: str, stride: str, dtype: torch.dtype) -> int:
    numbers = [[int(number) for number in re.findall(r"\d+", text)] for text in (size, stride)]
    reach = sum((n - 1) * s for n, s in zip(*numbers, strict=True)) + 1
    return reach * dtype.itemsize if all(numbers[0]) else 0
