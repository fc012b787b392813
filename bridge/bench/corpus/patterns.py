"""For `bridge bench --corpus`: read the patterns; each is a folder with `repro.py` and its inputs, `shapes.json`."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

#: Names of dtypes in `shapes.json`.
_DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "b8": torch.bool,
    "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "c64": torch.complex64,
}  # fmt: skip


#: A set of inputs, as `shapes.json` has it.
Point = dict[str, Any]


class Corpus:
    """Hold the corpus in a folder; ValueError where there is none."""

    def __init__(self, folder: Path):
        self.folder = folder.resolve()
        self._patterns = self.folder / "repros" / "canonical"
        if not self._patterns.is_dir():
            raise ValueError(f"{folder} is no checkout of the corpus: it has no repros/canonical")

    def names(self) -> list[str]:
        """Return all patterns by the hash that their names end with: any beginning is a sample of all kinds."""
        return sorted(
            (path.parent.name for path in self._patterns.glob("*/repro.py")), key=lambda n: n.split("_")[::-1]
        )

    def points(self, name: str) -> list[Point]:
        """Return the sets of inputs that the pattern was met with."""
        return json.loads((self._patterns / name / "shapes.json").read_text())["points"]

    def module(self, name: str, file: str = "repro") -> ModuleType:
        """Load a pattern's module, which has a class `Repro`, or with file="oracle" its hand-written kernel."""
        path = self._patterns / name / f"{file}.py"
        if str(self.folder) not in sys.path:
            sys.path.insert(0, str(self.folder))
        title = f"corpus_{file}_{name}"
        spec = importlib.util.spec_from_file_location(title, path)
        if spec is None or spec.loader is None:
            raise ValueError(f"{path} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        # Dynamo looks for the module of a function by its name.
        sys.modules[title] = module
        spec.loader.exec_module(module)
        return module

    def outline(self, name: str, point: int = 0) -> tuple[torch.nn.Module, list[object]]:
        """Return the pattern on the CPU, and inputs of its sizes, whose values are not set."""
        module = self.module(name)
        # The patterns name the GPU that they were captured on.
        module.__dict__["device"] = _cpu
        return module.Repro(), outline_inputs(self.points(name)[point])


def _cpu(*args: object, **kwargs: object) -> torch.device:
    return torch.device("cpu")


def outline_inputs(point: Point) -> list[object]:
    """Return the inputs of a point: tensors without values, and numbers and sizes as they stand."""
    storages = [torch.empty(size, dtype=torch.uint8) for size in point.get("alias_group_nbytes") or []]
    return [_outline(entry, storages) for entry in point["inputs"]]


def _outline(entry: list, storages: list[torch.Tensor]) -> object:
    """Return one input; an entry is [shape, dtype, options], or [a letter for the kind, the value]."""
    if isinstance(entry[0], str):
        return entry[1]
    shape, name, *rest = entry
    options = rest[0] if rest else {}
    stride = options.get("st") or _contiguous(shape)
    if "alias" in options:
        return storages[options["alias"]].view(_DTYPES[name]).as_strided(shape, stride, options.get("off", 0))
    return torch.empty_strided(shape, stride, dtype=_DTYPES[name])


def _contiguous(shape: list[int]) -> list[int]:
    return [math.prod(max(size, 1) for size in shape[axis + 1 :]) for axis in range(len(shape))]
