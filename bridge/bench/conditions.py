"""For `bridge bench`: how the cases of a run are made and compiled."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from . import measure
from .cases import FULL, SMALL, Case, Sizes
from .results import Result


@dataclass(frozen=True)
class Conditions:
    """Say how all cases of a run are made and compiled.

    dtype: of the weights; small: of the small configurations; sizes: of the inputs; dynamic, mode: as of torch.compile;
    compiles: compilations of each case by each compiler.
    """

    dtype: torch.dtype = torch.bfloat16
    small: bool = False
    sizes: Sizes = FULL
    dynamic: bool = False
    mode: str | None = None
    compiles: int = 1

    @classmethod
    def asked_for(cls, options: argparse.Namespace) -> Conditions:
        """Return what the command line asks for."""
        return cls(
            dtype=getattr(torch, options.dtype),
            small=options.small,
            sizes=_sizes(options),
            dynamic=options.dynamic,
            mode="max-autotune-no-cudagraphs" if options.max_autotune else None,
            compiles=options.compiles,
        )

    def measured(self, number: int, **plan: Any) -> Callable[[Case], Result]:
        """Return what measures the case that has this number in its run."""
        planned = measure.Plan(dynamic=self.dynamic, mode=self.mode, **plan)
        return partial(measure.measure, number=number, compiles=self.compiles, plan=planned)


def _sizes(options: argparse.Namespace) -> Sizes:
    if options.small:
        return SMALL
    # What is not a prompt has several sequences, with as many tokens together.
    encoded = max(1, options.tokens // FULL.sequences)
    return replace(FULL, images=options.images, prompt=options.tokens, encoded=encoded)
