"""List the operators of PyTorch's own database, with sample inputs: what op_db.py puts into contexts."""

from __future__ import annotations

import functools
import hashlib
import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

#: Types by their short names, in the order of the table's letters.
DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "b8": torch.bool,
    "c64": torch.complex64,
}

#: No loops: Inductor calls a library for them, their shapes depend on data, or they return no tensor.
_NOT_LOOPS = re.compile(
    r"fft\.(?!.*shift)|linalg\.(?!cross|diagonal|vecdot|norm|matrix_norm|vector_norm|vander)|sparse|jiterator|"
    r"(cholesky|lu|svd|qr|geqrf|ormqr|pinverse|logdet|matrix_exp|triangular_solve)(_.*)?$|(pca|svd)_lowrank|"
    r"unique|nonzero|argwhere|masked_select|item$|equal$|allclose|bincount|hist|to_sparse|stft|istft|empty|new_empty|"
    r"multinomial|unravel_index|combinations|resize|.*segment_reduce|nn\.functional\.(ctc_loss|embedding_bag|fractional)|"
    r"norm nuc|broadcast_shapes|torch\.|bmm triton|nn\.functional\.(linear_cross|multi_head|scaled_dot|.*unpool)|"
    r"signal\.|cauchy|geometric|hash_tensor"
)

#: Not of the database: conversions to eight bits and back.
_EIGHT_BITS = {"float8_e4m3fn": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2}

#: Samples of an operator that are looked at, and those that have a name.
_SAMPLES_MADE, SAMPLES = 24, 6


@dataclass(frozen=True)
class Sample:
    """Hold one call of an operator.

    leaves: arguments and keywords, flat; place: of the one that contexts compute; call: the operator, given all leaves.
    """

    leaves: list[Any]
    place: int
    call: Callable[[list[Any]], list[torch.Tensor]]
    grad: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def tensors(self) -> list[int]:
        """Return the places of the tensors."""
        return [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]


def number(*words: object) -> int:
    """Return a number that depends on nothing but the words."""
    return int.from_bytes(hashlib.blake2b("/".join(map(str, words)).encode(), digest_size=8).digest(), "big")


@functools.cache
def operators() -> dict[str, Any]:
    """Return {name/variant: OpInfo} of what Inductor may lower to loops; None for what the database does not have."""
    from torch.testing._internal import common_methods_invocations as database
    from torch.testing._internal.common_methods_invocations import op_db

    # What sets a seed around a random operator, and what Dynamo does not take: the seed is set before the program.
    vars(database)["wrapper_set_seed"] = lambda op, *args, **keywords: op(*args, **keywords)
    found = {f"{op.name}/{op.variant_test_name or '-'}": op for op in op_db if op.dtypes}
    loops = {name: op for name, op in found.items() if not _NOT_LOOPS.match(name.replace("/", " ").removesuffix(" -"))}
    return {**loops, **{f"to_{name}/cast": None for name in _EIGHT_BITS}}


def dtypes(name: str) -> list[str]:
    """Return short names of the types that an operator takes."""
    op = operators()[name]
    if op is None:
        return ["f32", "f16", "bf16"]
    return [short for short, dtype in DTYPES.items() if dtype in op.dtypes]


def sample(name: str, dtype: str, which: int) -> Sample:
    """Return one of the database's samples, the same at each call; raise ValueError where it has none."""
    torch.manual_seed(number(name, dtype) % 2**31)
    random.seed(0)
    np.random.seed(0)
    op = operators()[name]
    if op is None:
        return _cast(_EIGHT_BITS[name.removeprefix("to_").removesuffix("/cast")], DTYPES[dtype])
    made = list(itertools.islice(op.sample_inputs("cpu", DTYPES[dtype], requires_grad=False), _SAMPLES_MADE))
    usable = [s for s in made if isinstance(s.input, torch.Tensor) or pytree.tree_leaves(s.input)]
    if not usable:
        raise ValueError("the database has no sample")
    return _flat(op, usable[number(name, which) % len(usable)], DTYPES[dtype])


def _flat(op: Any, found: Any, dtype: torch.dtype) -> Sample:
    leaves, structure = pytree.tree_flatten((found.input, found.args, found.kwargs))
    place = next((i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)), 0)
    function = op.op

    def call(flat: list[Any]) -> list[torch.Tensor]:
        first, args, keywords = pytree.tree_unflatten(flat, structure)
        return _tensors(function(first, *args, **keywords))

    return Sample(leaves, place, call, bool(op.supports_autograd and dtype.is_floating_point))


def _tensors(result: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def _cast(eight_bits: torch.dtype, dtype: torch.dtype) -> Sample:
    def call(flat: list[Any]) -> list[torch.Tensor]:
        narrow = flat[0].to(eight_bits)
        return [narrow.to(flat[0].dtype), narrow]

    return Sample([torch.randn(6, 34).to(dtype)], 0, call)
