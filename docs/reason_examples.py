"""Hold functions that stay apart, for docs/reasons.py, one for each reason that a model can have.

They are compiled for an H100, which need not be there; test/python/end_to_end/test_reasons.py does it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bridge.reasons import Reason


def rows_before(x: Tensor) -> Tensor:
    sums = x.sum(-1, keepdim=True)
    return x * (sums + sums.roll(1, 0))


def shifted_block(x: Tensor) -> Tensor:
    y = F.rms_norm(x, x.shape[-1:])
    block = y.as_strided((64, 512), (1024, 1), 3)
    return block.sum(-1, keepdim=True) * y[:, :512]


def around_a_matmul(x: Tensor, w: Tensor) -> Tensor:
    h = F.rms_norm(x, x.shape[-1:])
    return (h @ w) * h


def asserted(x: Tensor) -> Tensor:
    torch._assert_async((x > -100).all(), "out of range")
    return F.rms_norm(x, x.shape[-1:])


def padded(x: Tensor) -> Tensor:
    return F.pad(F.rms_norm(x, x.shape[-1:]), (0, x.shape[0])) * 2


def padded_best(x: Tensor) -> Tensor:
    return F.pad(x, (0, 24)) * x.argmax(-1, keepdim=True)


def columns_of_rows(x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:]).sum(0)


def shifted(x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:])[:, 1 : x.shape[-1] // 2] * 2


def projected(x: Tensor, w: Tensor) -> Tensor:
    return F.silu(F.rms_norm(x, x.shape[-1:]) @ w)


def looked_up(x: Tensor) -> Tensor:
    steps = torch.linspace(-1, 1, 64, device=x.device)
    return torch.searchsorted(steps, F.rms_norm(x, x.shape[-1:]))


def gated(x: Tensor) -> Tensor:
    gate, value = F.rms_norm(x, x.shape[-1:]).chunk(2, -1)
    return F.silu(gate) * value


def thirds(x: Tensor) -> Tensor:
    rows = x.view(-1, 3, x.shape[1] // 3).transpose(1, 2)
    return F.rms_norm(rows.reshape(x.shape), x.shape[-1:])


def some(x: Tensor, table: Tensor, ids: Tensor) -> Tensor:
    gate, value = F.rms_norm(x, x.shape[-1:]).chunk(2, -1)
    return torch.ops.aten._unsafe_masked_index(table, gate > 0, [ids.expand_as(gate)], 0.0) * value


def rows_by_number(x: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    h = F.rms_norm(x, x.shape[-1:])
    return h[ids] * 2, h


def half(x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:])[:, : x.shape[-1] // 2] * 2


def added_up(x: Tensor, sums: Tensor, ids: Tensor) -> Tensor:
    return sums.index_add(0, ids, F.rms_norm(x, x.shape[-1:]))


def dropped(x: Tensor) -> Tensor:
    gate, value = F.rms_norm(F.dropout(x, 0.5), x.shape[-1:]).chunk(2, -1)
    return F.silu(gate) * value


def cached(x: Tensor, cache: Tensor, ids: Tensor) -> Tensor:
    y = F.rms_norm(x, x.shape[-1:])
    cache.index_copy_(0, ids, y)
    return y


def counted(x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:]).cumsum(-1)


def batches(x: Tensor) -> Tensor:
    torch._check(x.shape[-1] % 8 == 0)
    x = x - torch.logsumexp(x, -1, keepdim=True)
    gate, value = F.rms_norm(x, x.shape[-1:]).chunk(2, -1)
    return F.silu(gate - 0.5 * value)


@dataclass(frozen=True)
class Example:
    """Hold a function, and what it is compiled with; shapes: of random numbers, or a number of indices.

    options: of Bridge's; inductor: of Inductor's; dynamic: as of torch.compile; training: with gradients, on the CPU.
    """

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...] | int, ...] = ((64, 1024),)
    options: dict[str, Any] = field(default_factory=dict)
    inductor: dict[str, Any] = field(default_factory=dict)
    dynamic: bool = False
    training: bool = False
    dtype: torch.dtype = torch.float32

    def inputs(self) -> list[Tensor]:
        """Return arguments for the function."""
        numbers = torch.Generator().manual_seed(0)
        return [
            torch.randint(64, (shape,), generator=numbers)
            if isinstance(shape, int)
            else torch.randn(shape, generator=numbers).to(self.dtype).requires_grad_(self.training)
            for shape in self.shapes
        ]


EXAMPLES = {
    Reason.loop_carried_dependence: Example(rows_before),
    Reason.cross_lane_dependence: Example(shifted_block),
    Reason.cycle_through_other_node: Example(around_a_matmul, ((64, 1024), (1024, 1024))),
    Reason.side_effect: Example(asserted),
    Reason.extents_do_not_agree: Example(padded, dynamic=True),
    Reason.no_common_band: Example(columns_of_rows),
    Reason.reduction_not_splittable: Example(padded_best, ((64, 1000),)),
    Reason.subscript_out_of_bounds: Example(shifted, dynamic=True),
    Reason.unsupported_op: Example(looked_up),
    Reason.unsupported_dtype: Example(gated, inductor={"triton.codegen_upcast_to_fp32": False}, dtype=torch.bfloat16),
    Reason.non_affine_index: Example(thirds, ((60, 1023),), dynamic=True),
    Reason.non_affine_mask: Example(some, ((64, 1024), (64,), 512)),
    Reason.indirect_index: Example(rows_by_number, ((64, 1024), 64)),
    Reason.dynamic_extent: Example(half, dynamic=True),
    Reason.atomics: Example(added_up, ((64, 1024), (64, 1024), 64)),
    Reason.random: Example(dropped, inductor={"align_random_eager": True}),
    Reason.mutation: Example(cached, ((64, 1024), (64, 1024), 64)),
    Reason.extern_kernel: Example(projected, ((64, 1024), (1024, 1024))),
    Reason.node_not_loops: Example(counted),
    Reason.not_liftable: Example(batches, ((2, 8, 104),), dynamic=True),
    Reason.training_graph: Example(gated, options={"training": False}, training=True),
    Reason.not_profitable: Example(gated, ((4, 262144),)),
    Reason.budget_exceeded: Example(gated, options={"max_accesses": 1}),
}
