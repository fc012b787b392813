"""Tell what a shared launch costs and saves, in bytes.

Each kernel keeps its loops, its block sizes and its choice of a persistent reduction; only, a short reduction that
looped becomes persistent beside one that is. A shared launch saves the time of a launch, and the tail of a kernel that
leaves multiprocessors idle; it costs that all share one number of warps and the registers of the largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from .. import inductor
from ..inductor.protocols import Kernel
from ..reasons import Reason, Unsupported

if TYPE_CHECKING:
    import sympy

#: Kernels in one launch; Inductor's own limit for its combo kernels.
MAX_KERNELS = 8

#: Buffers of one launch: a kernel's parameters are limited to 4 KB, and sizes take some of them.
MAX_BUFFERS = 250

#: Bytes that a kernel moves in many times what a launch takes (2 us in a graph on an H100, where 256 MB take 100).
LARGE_BYTES = 256 << 20

#: Bytes that kernels without reductions, and without a common group, may move in one launch: their inputs were written
#: just before, and are all in the L2 cache still (50 MB on an H100).
FRESH_BYTES = 32 << 20

#: Bytes that a kernel without reductions may move in a launch with some.  It runs with their registers, so fewer of
#: its warps at a time: on an H100, RoPE of 16 MB beside a norm gained 1 us, of 66 MB lost 0.6 us, of 260 MB 8 us.
MIXED_BYTES = 32 << 20

#: Bytes that a reduction of rows as long as a symbol says may move in a launch with others: Inductor tries several
#: blocks for it alone, and a common launch has one.  On an H200 norms of heads with RoPE of 66 MB took 405 us with a
#: copy, and 230 without (docs/results.md).
TRIED_BYTES = 8 << 20

#: Bytes that memory moves while a GPU begins and ends one warp of a program: on an H100 131,072 programs of 1024
#: elements, in the 16 warps of a longer row beside them and not in 4, took 183 us longer, and two times 12,288 programs
#: of eight heads in 8 warps and not in 2 took 26 us longer (docs/results.md).
WARP_BYTES = 360

#: How many times as long a kernel may take beside others, and by how much longer, in bytes: a launch less spares less
#: than half of that, and the estimate decides only where it is clear.
MOST_SLOWED, LEAST_SLOWED = 1.5, 16 << 20

#: Elements of a row for each warp, up to the most warps of a program, as Inductor has it alone; elements of a program.
ROW_OF_WARP, MOST_WARPS, PROGRAM = 256, 16, 1024


@dataclass(frozen=True)
class Part:
    """Hold a kernel, or an earlier launch of several, that may become a part of a launch.

    moved: bytes by buffer; reduces: whether it reduces; rows: how many it reduces; row: their elements; symbolic: if a
    symbol says how many these are.
    """

    kernel: Kernel
    moved: dict[str, int]
    reduces: bool
    rows: int = 1
    row: int = 1
    symbolic: bool = False

    @property
    def total(self) -> int:
        """Return the bytes that it moves."""
        return sum(self.moved.values())

    @property
    def name(self) -> str:
        """Name of the kernel in the schedule."""
        return self.kernel.get_name()

    @property
    def warps(self) -> int:
        """Return the warps that a program of it has alone, about."""
        return min(max(1, self.row // ROW_OF_WARP), MOST_WARPS)

    def cost(self, warps: int) -> int:
        """Return the bytes that take as long as it does in programs of so many warps."""
        programs = self.rows * self.row // max(self.row, PROGRAM)
        return self.total + programs * warps * WARP_BYTES


def measure(kernel: Kernel) -> Part:
    """Return a kernel with the bytes that it moves, and its rows."""
    nodes = [node for part in inductor.launch_parts(kernel) for node in inductor.loop_nodes(part)]
    reduced = [sizes for sizes in map(inductor.node_sizes, nodes) if sizes[1]]
    rows, row = max(((_product(outer), _product(inner)) for outer, inner in reduced), default=(1, 1))
    symbolic = any(getattr(size, "free_symbols", None) for _, inner in reduced for size in inner)
    return Part(kernel, inductor.bytes_touched(kernel), inductor.reduces(kernel), rows, row, symbolic)


def _product(sizes: list[sympy.Expr]) -> int:
    return prod(map(inductor.size_hint, sizes))


def choose_worthwhile(parts: list[Part]) -> list[Part]:
    """Return the parts that gain by a common launch; Unsupported, with the numbers, if there are no two."""
    near = [p for p in parts if not (p.reduces and (_is_tried_alone(p) or _needs_many_rows(p.kernel)))]
    reduces = any(part.reduces for part in near)
    chosen = [p for p in near if p.reduces or not reduces or p.total <= MIXED_BYTES]
    chosen = [p for p in chosen if p.total <= LARGE_BYTES or any(_share_much(p, o) for o in chosen if o is not p)]
    warps = max((part.warps for part in chosen if part.reduces), default=1)
    chosen = [part for part in chosen if not (part.reduces and _is_slowed(part, warps))]
    if len(chosen) < 2:
        raise Unsupported(Reason.not_profitable, f"{_list(parts)}: a launch saved is less than is lost")
    check_buffers(chosen)
    return chosen


def _is_slowed(part: Part, warps: int) -> bool:
    """Return True if many programs of short rows would have so many warps that they take several times as long."""
    alone, together = part.cost(part.warps), part.cost(warps)
    return together > MOST_SLOWED * alone and together - alone > LEAST_SLOWED


def _is_tried_alone(part: Part) -> bool:
    """Return True if a reduction needs the best of several blocks, of which a common launch has one."""
    return part.symbolic and part.total > TRIED_BYTES


def _needs_many_rows(kernel: Kernel) -> bool:
    """Return True if a reduction needs blocks of many rows, which it has alone, as memory is far apart along its rows.

    In common launches such took up to three times as long (docs/results.md, "A public corpus").
    """
    return inductor.bytes_beside_rows(kernel, 1) > 0 or inductor.reduces_across_rows(kernel)


def check_buffers(parts: list[Part]) -> None:
    """Raise Unsupported where a launch would have more buffers than a kernel may have parameters."""
    buffers = {name for part in parts for name in part.moved}
    if len(buffers) > MAX_BUFFERS:
        raise Unsupported(Reason.budget_exceeded, f"{len(buffers)} buffers, at most {MAX_BUFFERS}")


def describe_launch(parts: list[Part]) -> str:
    """Return one line about a launch, for the report."""
    return f"one launch for {len(parts)} kernels, {len(parts) - 1} saved: {_list(parts)}"


def share_input(one: Kernel, other: Kernel) -> bool:
    """Return True if both read a common buffer."""
    return bool(inductor.inputs_read(one) & inductor.inputs_read(other))


def _share_much(one: Part, other: Part) -> bool:
    """Return True if a fourth of what a kernel moves, at least, is read by another one, too: a scalar is not."""
    common = inductor.inputs_read(one.kernel) & inductor.inputs_read(other.kernel)
    return sum(one.moved.get(name, 0) for name in common) * 4 >= one.total


def _list(parts: list[Part]) -> str:
    return ", ".join(f"{p.name}{' (reduces)' if p.reduces else ''} {p.total / 2**20:.1f} MB" for p in parts)
