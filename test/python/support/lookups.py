"""Hold functions with lookups in inputs, between kernels that become one: embeddings, angles of positions, a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from functions import weighted_norm as rms


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def numbers(count, below, seed=0):
    return torch.randint(-below, below, (count,), generator=torch.Generator().manual_seed(seed))


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def embedded(ids, table, weight):
    """Normalise a row of the table, whose halves gate each other."""
    first, second = rms(table[ids], weight).chunk(2, -1)
    return F.silu(first) * second


def turned(x, positions, cos, sin, weight):
    """Normalise the heads of q and k, and rotate them by the angles of a position (RoPE)."""
    heads = x.unflatten(-1, (-1, weight.shape[0])).split((3, 1), 1)
    return tuple(rotate(rms(t, weight), cos[positions][:, None], sin[positions][:, None]) for t in heads)


def log_likelihood(x, target):
    """Compute the loss of each row, and the halves of the probabilities beside it."""
    logs = torch.log_softmax(x, -1)
    kept = target != -3
    loss = -torch.where(kept, logs.gather(1, torch.where(kept, target, 0)[:, None])[:, 0], 0.0)
    first, second = logs.chunk(2, -1)
    return loss, first.exp() * second


def head_with_bias(x, ids, table, weight):
    """Add what the table has to the first lanes of a row, which are fewer than the others."""
    y = rms(x, weight)
    head, tail = y.split((24, 40), -1)
    return head + table[ids], tail * 2


def by_rows_and_columns(x, rows, columns, weight):
    """Add a load with two positions, of rows and of columns."""
    first, second = rms(x, weight).chunk(2, -1)
    return first * second + x[rows[:, None], columns]


@dataclass(frozen=True)
class Lookup:
    """Hold a function, its inputs at a small size, and its launches with Inductor and with Bridge."""

    function: Any
    inputs: list[torch.Tensor]
    inductor: int = 2
    bridge: int = 1


LOOKUPS = [
    Lookup(embedded, [numbers(7, 20), draw(20, 64), draw(64)]),
    Lookup(turned, [draw(7, 64), numbers(7, 9), draw(9, 16), draw(9, 16), draw(16)]),
    Lookup(log_likelihood, [draw(7, 64), torch.tensor([5, -3, 63, 0, -3, 17, 40])]),
    Lookup(head_with_bias, [draw(7, 64), numbers(7, 9), draw(9, 24), draw(64)], inductor=3),
    Lookup(by_rows_and_columns, [draw(7, 64), numbers(7, 7), numbers(32, 64), draw(64)]),
]


def double(inputs):
    return [t.double() if t.is_floating_point() else t for t in inputs]


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)
