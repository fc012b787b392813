"""Let torchvision, which timm and parts of transformers import, be one that was built for another torch.

Of its operators in C++ no model here needs one; it only has to find their names when it is imported.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import torch

_NEEDED = ("nms", "qnms")
_kept: list[Any] = []


def declare_operators() -> None:
    """Declare the operators that torchvision gives shapes for, before anything imports torchvision.

    Does nothing without torchvision, or where it has declared them itself.
    """
    if _kept or importlib.util.find_spec("torchvision") is None or _declared():
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in _NEEDED:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _kept.append(library)


def _declared() -> bool:
    """Return whether its own library loads: one of that name until torchvision 0.28, of another since."""
    spec = importlib.util.find_spec("torchvision")
    folder = Path((spec.submodule_search_locations or [""])[0] if spec else "")
    return any(map(_loads, folder.glob("_C*.so")))


def _loads(library: Path) -> bool:
    try:
        torch.ops.load_library(library)
    except OSError:
        return False
    return True
