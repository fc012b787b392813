"""Commit a fused band: its nodes get their new loops, and Inductor makes one kernel of them."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import sympy

from ... import inductor
from ...inductor.cache_lines import bytes_across, bytes_out_of_order, holds_columns
from ...inductor.cpp import comes_apart, declares_twice, writes_beyond_its_end
from ...inductor.protocols import Kernel, LoopNode
from ...reasons import Reason, Unsupported
from ..triton import codegen
from ..triton.benchmark_fusion import Timing
from ..triton.combo_kernels import SHORT_ROW
from ..triton.profitability import (
    LAUNCH_BYTES,
    MAX_STAGED_REGISTERS,
    traffic,
    traffic_of_one,
)
from .fewest_loops import in_fewest_loops
from .long_rows import Rows, bytes_of_long_rows, keeps_long_rows, longest_rows, registers_of_thread
from .loop_order import in_memory_order
from .programs import (
    MOST_CODE,
    Executed,
    code_of_thread,
    executed,
    lost_bytes,
    programs_of,
    row_of_block,
    rows_of_block,
)
from .times import computed_again, computes_long, times_apart

if TYPE_CHECKING:
    from .band import LiftedBand

#: Launches whose time kernels that go over rows in loops may take, at most, to be one that saves one launch.
MOST_OF_LOOPS = 10


def rewrite(
    band: LiftedBand,
    nodes: dict[str, LoopNode],
    kernels: list[Kernel],
    check: Callable[[Kernel], None] | None = None,
) -> tuple[Kernel, list[str], contextlib.ExitStack]:
    """Return (one kernel of the band's nodes over their new loops, decisions about it, what undoes it).

    kernels: those that it replaces, and has to be better than; none where that is not asked; check: raises Unsupported
    for a kernel that is not wanted.
    Where it ends in an error, Unsupported or another, nothing is changed.
    """
    names = {n.name for n in band.nodes}
    first = nodes[band.nodes[0].name]
    place = first.scheduler, inductor.device_of(first), names
    timing = Timing(kernels) if kernels and codegen.times_fusions(place[1]) else None
    before = _before(band, nodes, kernels)
    with contextlib.ExitStack() as undo:
        _set_bodies(band, nodes, undo)
        if inductor.generates_triton(inductor.device_of(first)):
            band = _in_memory_order(band, nodes, undo)
            codegen.run_in_lanes(*place[:2])
        judged = [] if timing else kernels
        kernel, decisions = _one_kernel(in_fewest_loops([nodes[n.name] for n in band.nodes]), judged)
        if judged:
            _check_profit(kernel, judged, band, before)
        decisions += _choose_blocks(kernel, band, before.unrolled, undo)
        if timing is not None:
            decisions.append(timing.check(kernel))
        if check is not None:
            check(kernel)
        return kernel, decisions, undo.pop_all()


class _Before(NamedTuple):
    """Hold what is known of kernels before their nodes have other loops.

    loaded: bytes; executed: by each of several; unrolled: lanes reduce by themselves what they reduced in loops; time:
    of several, as the bytes that a GPU moves in it; beside: bytes that those of several without reductions move around
    what they access; stored: by rows of a block, those that several with reductions store around each buffer; rows:
    the longest of several; across, unordered: bytes that C++ code accesses across memory, and in another order.
    """

    loaded: int
    executed: list[Executed]
    unrolled: bool
    time: int = 0
    beside: int = 0
    stored: Mapping[int, Mapping[str, int]] = MappingProxyType({})
    rows: Rows = Rows(1, 0, 0)
    across: int = 0
    unordered: int = 0


def _before(band: LiftedBand, nodes: dict[str, LoopNode], kernels: list[Kernel]) -> _Before:
    done = [executed(kernel) for kernel in kernels] if len(kernels) > 1 else []
    time = times_apart(kernels, done) if done else 0
    several = kernels if len(kernels) > 1 else []
    beside = sum(inductor.bytes_beside_tile(kernel) for kernel in several if not inductor.reduces(kernel))
    unrolled = _unrolled_reductions(band, nodes)
    blocks = {rows_of_block(band, unrolled, side_by_side) for side_by_side in (False, True)}
    stored = {rows: _stored_beside(several, rows) for rows in blocks}
    longest = longest_rows(several)
    cpp = [kernel for kernel in kernels if not inductor.generates_triton(inductor.device_of(kernel))]
    astray = sum(map(bytes_across, cpp)), sum(map(bytes_out_of_order, cpp))
    return _Before(sum(map(_bytes_loaded, kernels)), done, unrolled, time, beside, stored, longest, *astray)


def _stored_beside(kernels: list[Kernel], rows: int) -> dict[str, int]:
    """Return the bytes that Triton kernels with reductions store around each buffer."""
    kernels = [k for k in kernels if inductor.generates_triton(inductor.device_of(k)) and inductor.reduces(k)]
    found = Counter[str]()
    for kernel in kernels:
        found.update(inductor.bytes_beside_stores(kernel, rows))
    return found


def _choose_blocks(kernel: Kernel, band: LiftedBand, unrolled: bool, undo: contextlib.ExitStack) -> list[str]:
    """Have the code generator know what a thread of the kernel has, until `undo` is closed; return what was decided."""
    place = kernel.scheduler, inductor.device_of(kernel), {node.name for node in band.nodes}
    if band.in_registers and band.registers is not None:
        undo.callback(codegen.undo_persistent, *place)
        codegen.make_persistent(*place, row_of_block(band, unrolled))
        return [f"persistent: a row takes {band.registers} registers"]
    if inductor.generates_triton(place[1]) and computes_long(kernel):
        undo.callback(codegen.undo_wide, *place)
        codegen.make_wide(*place)
    return []


def _set_bodies(band: LiftedBand, nodes: dict[str, LoopNode], undo: contextlib.ExitStack) -> None:
    """Give the band's nodes their new loops, until `undo` is closed."""
    names = {lifted.name for lifted in band.nodes}
    columns = next((prod(lifted.reduce_sizes) for lifted in band.nodes if lifted.reduce_sizes), sympy.S.One)
    for lifted in band.nodes:
        node = nodes[lifted.name]
        once = lifted.stored_once if not _stays_inside(node, names) else None
        if once is not None:
            _keep_inputs(node, undo)
        body = inductor.make_loop_body(once or lifted.body, lifted.iter_sizes, lifted.reduce_sizes)
        if inductor.generates_triton(inductor.device_of(node)):
            body = inductor.with_loops_to_split(body, columns)
        inductor.set_loop_body(node, body, undo)
    inductor.keep_pieces([nodes[lifted.name] for lifted in band.nodes], undo)
    if not inductor.generates_triton(inductor.device_of(nodes[band.nodes[0].name])):
        inductor.forget_waiting([nodes[lifted.name] for lifted in band.nodes], undo)


def _in_memory_order(band: LiftedBand, nodes: dict[str, LoopNode], undo: contextlib.ExitStack) -> LiftedBand:
    """Give nodes the order of rows in which memory has most neighbours, until `undo` is closed; return their band."""
    ordered = in_memory_order(band, [nodes[lifted.name] for lifted in band.nodes]) if band.in_registers else None
    if ordered is not None:
        _set_bodies(ordered, nodes, undo)
    return ordered or band


def _stays_inside(node: LoopNode, names: set[str]) -> bool:
    """Return True if a kernel of the named nodes stores nothing that this one of them makes."""
    return all(inductor.stays_inside(node.scheduler, buffer, names) for buffer in inductor.buffers_made(node))


def _keep_inputs(node: LoopNode, undo: contextlib.ExitStack) -> None:
    """Have a node whose first lane stores overwrite nothing; Unsupported where the program has it do so.

    The other lanes load the same elements, and some of them may be in a program that runs later.
    """
    overwritten = sorted(inductor.buffers_overwritten(node).values())
    if overwritten:
        detail = f"the first lane would overwrite what others have to load of {overwritten}"
        raise Unsupported(Reason.not_liftable, f"{node.get_name()}: {detail}")
    inductor.keep_inputs(node, undo)


def _check_profit(kernel: Kernel, kernels: list[Kernel], band: LiftedBand, before: _Before) -> None:
    """Raise Unsupported where a kernel is expected to be slower than those that it replaces."""
    _check_time(kernel, kernels, before)
    if inductor.generates_triton(inductor.device_of(kernel)):
        _check_tile(kernel, kernels, before)
        _check_loops(kernel, kernels, band)
        rows = _rows_of_block(kernel, kernels, band, before)
        _check_rows(kernel, kernels, band, before, rows)
        _check_programs(kernel, kernels, band, before, rows)
        _check_code(kernel, kernels, band, before)
        _check_long_rows(kernel, kernels, band, before)
    else:
        _check_memory_order(kernel, kernels, before)


def _rows_of_block(kernel: Kernel, kernels: list[Kernel], band: LiftedBand, before: _Before) -> int:
    """Return how many rows a block of a kernel is going to have: more where they are side by side in memory.

    Only if all that it accesses is: of what is contiguous along a row, lanes have other elements side by side, and how
    long that takes in larger blocks was not measured.  The code generator is asked last, as that takes its time.
    """
    few, many = (rows_of_block(band, before.unrolled, side_by_side) for side_by_side in (False, True))
    asks = many > few and _beside_rows(kernel, kernels, band, before, few) > 0 and inductor.is_far_along_rows(kernel)
    return many if asks and codegen.has_rows_side_by_side(kernel) else few


def _check_rows(kernel: Kernel, kernels: list[Kernel], band: LiftedBand, before: _Before, rows: int) -> None:
    """Raise Unsupported where a kernel that keeps whole rows moves more bytes beside them than it saves.

    A row along which memory is far apart is for a tile of many rows, as Inductor has it: a block has too few.  In the
    place of one kernel it saves nothing but what is loaded again, and other loops alone only cost it its tiles.  Of
    one of Inductor's stages each has what is in registers in its own shape, and rows that are kept were faster.
    """
    names, alone = sorted(kernel.get_operation_names()), len(kernels) == 1
    if alone and not (band.in_registers and _gains(kernel, kernels[0], band.registers, before.loaded)):
        raise Unsupported(Reason.not_profitable, f"{names}: other loops, and nothing less to load")
    beside = _beside_rows(kernel, kernels, band, before, rows)
    saved = saved_bytes(kernel.get_operation_names(), kernels) if beside else 0
    if beside > max(saved, 0):
        detail = f"one kernel {_saving(saved)}, and moves {beside / 2**20:.1f} MB beside its rows"
        raise Unsupported(Reason.not_profitable, f"{names}: {detail}")


def _beside_rows(kernel: Kernel, kernels: list[Kernel], band: LiftedBand, before: _Before, rows: int) -> int:
    """Return the bytes that a kernel of rows moves beside those that it uses, a block of rows at a time.

    Around what it loads into the rows that it keeps, and around what was stored in tiles, in another order of the rows,
    or, of one kernel that looped over its rows, in blocks of many.
    """
    beside = 0
    if band.in_registers and band.registers is not None:
        beside += inductor.bytes_beside_rows(kernel, 1 if len(kernels) == 1 else rows, _tiled(kernels))
    if len(kernels) == 1 or inductor.reduces(kernel):
        stored, apart = inductor.bytes_beside_stores(kernel, rows), before.stored.get(rows, {})
        beside += sum(max(moved - apart.get(name, 0), 0) for name, moved in stored.items())
    return beside


def _unrolled_reductions(band: LiftedBand, nodes: dict[str, LoopNode]) -> bool:
    """Return True if a node of a band reduced in loops, and each lane now does so by itself."""
    return any(not n.reduce_sizes and prod(inductor.node_sizes(nodes[n.name])[1]) != 1 for n in band.nodes)


def _check_loops(kernel: Kernel, kernels: list[Kernel], band: LiftedBand) -> None:
    """Raise Unsupported where kernels with loops over rows share nothing, and tiles matter more than a launch.

    Inductor chooses tiles by sizes that are numbers: of symbols the same few are for all kernels, and sums of 256 rows
    of 9216 columns took 48 us in one kernel on an H200, and 22 in two. With numbers they took 0.4 to 0.8 of the time
    where few bytes are moved, and up to 1.06 where many are (docs/results.md, "Loops that share nothing").
    """
    if len(kernels) == 1 or band.in_registers or not inductor.reduces(kernel):
        return
    names = kernel.get_operation_names()
    moved = traffic([inductor.bytes_touched(one) for one in kernels])
    known = _has_numbers(kernel)
    if (known and moved <= MOST_OF_LOOPS * LAUNCH_BYTES) or _saved_traffic(names, kernels) > 0:
        return
    sizes = "" if known else ", in loops of symbols"
    detail = f"one kernel {_saving(LAUNCH_BYTES)}, of {moved / 2**20:.1f} MB{sizes}"
    raise Unsupported(Reason.not_profitable, f"{sorted(names)}: {detail}")


def _has_numbers(kernel: Kernel) -> bool:
    """Return True if no size of a kernel's loops is a symbol."""
    sizes = [size for node in inductor.loop_nodes(kernel) for some in inductor.node_sizes(node) for size in some]
    return all(sympy.sympify(size).is_Integer for size in sizes)


def _check_programs(kernel: Kernel, kernels: list[Kernel], band: LiftedBand, before: _Before, rows: int) -> None:
    """Raise Unsupported where a kernel of few rows leaves more of a GPU idle than it saves, in the place of several."""
    if len(kernels) == 1:
        return
    device = inductor.device_of(kernel)
    programs = programs_of(band, rows)
    lost = lost_bytes(kernel, programs, device, before.executed, before.unrolled)
    saved = saved_bytes(kernel.get_operation_names(), kernels) if lost else 0
    if lost > saved:
        detail = f"one kernel {_saving(saved)}, and {programs} programs lose the time of {lost / 2**20:.1f} MB"
        raise Unsupported(Reason.not_profitable, f"{sorted(kernel.get_operation_names())}: {detail}")


def _check_code(kernel: Kernel, kernels: list[Kernel], band: LiftedBand, before: _Before) -> None:
    """Raise Unsupported where lanes reduce by more code than a multiprocessor has at hand, in the place of several."""
    if len(kernels) == 1 or not before.unrolled:
        return
    count = code_of_thread(kernel, band)
    if count > MOST_CODE:
        detail = f"lanes reduce by {count} instructions, of which a multiprocessor has {MOST_CODE} at hand"
        raise Unsupported(Reason.not_profitable, f"{sorted(kernel.get_operation_names())}: {detail}")


def _check_long_rows(kernel: Kernel, kernels: list[Kernel], band: LiftedBand, before: _Before) -> None:
    """Raise Unsupported where a kernel of longer rows than several had takes longer than what it saves."""
    if len(kernels) == 1 or before.unrolled or not keeps_long_rows(band):
        return
    names = sorted(kernel.get_operation_names())
    loaded, room = registers_of_thread(kernel)
    if loaded > room:
        raise Unsupported(Reason.not_profitable, f"{names}: a thread loads {loaded} registers, and has {room}")
    lost = bytes_of_long_rows(kernel, band, before.rows)
    saved = saved_bytes(kernel.get_operation_names(), kernels) if lost else 0
    if lost > saved:
        detail = f"one kernel {_saving(saved)}, and longer rows lose the time of {lost / 2**20:.1f} MB"
        raise Unsupported(Reason.not_profitable, f"{names}: {detail}")


def _check_memory_order(kernel: Kernel, kernels: list[Kernel], before: _Before) -> None:
    """Raise Unsupported where C++ loops would not go along memory, along which they went, and no cache holds that.

    On an EPYC a norm of 2048 columns of 256 to 4096 rows took 1.4 to 1.5 of the time of its parts, of 1000 columns of
    128 rows 0.78; rows of 64 elements in the order of heads, and not of images, took 2.6; sums that are stored, and
    stored transposed, 1.4 to 2.4 in the loops of the second (docs/results.md).
    """
    across, unordered = bytes_across(kernel) - before.across, bytes_out_of_order(kernel) - before.unordered
    if across > 0 and not holds_columns(kernel):
        detail = f"loops would go across {across / 2**20:.1f} MB along which they went, and no cache holds that"
    elif (
        across > 0 and not inductor.reduces(kernel) and across >= _saved_traffic(kernel.get_operation_names(), kernels)
    ):
        detail = f"loops would go across {across / 2**20:.1f} MB along which they went, which is more than is saved"
    elif unordered > 0:
        detail = f"short pieces of {unordered / 2**20:.1f} MB would not follow each other as in memory"
    else:
        return
    raise Unsupported(Reason.not_profitable, f"{sorted(kernel.get_operation_names())}: {detail}")


def _check_tile(kernel: Kernel, kernels: list[Kernel], before: _Before) -> None:
    """Raise Unsupported where one kernel without reductions moves more beside what it accesses than it saves.

    In the place of several, which had tiles of their own: what is contiguous in none of the loops of the one kernel's
    tile may be in theirs.
    """
    if len(kernels) == 1 or inductor.reduces(kernel):
        return
    more = inductor.bytes_beside_tile(kernel) - before.beside
    saved = saved_bytes(kernel.get_operation_names(), kernels) if more > 0 else 0
    if more > max(saved, 0):
        beside = f"moves {more / 2**20:.1f} MB beside what is contiguous in tiles of several"
        detail = f"one kernel {_saving(saved)}, and {beside}"
        raise Unsupported(Reason.not_profitable, f"{sorted(kernel.get_operation_names())}: {detail}")


def _check_time(kernel: Kernel, kernels: list[Kernel], before: _Before) -> None:
    """Raise Unsupported where one kernel computes values again for longer than it saves, in the place of several."""
    longer = computed_again(kernel, len(kernels), before.time) if len(kernels) > 1 else None
    if longer:
        amounts = " and ".join(f"{amount / 2**20:.1f} MB" for amount in longer)
        detail = f"one kernel computes values again: its instructions and those apart take the time of {amounts}"
        raise Unsupported(Reason.not_profitable, f"{sorted(kernel.get_operation_names())}: {detail}")


def _gains(kernel: Kernel, replaced: Kernel, registers: int | None, loaded: int) -> bool:
    """Return True if it pays to keep rows of so many registers in the place of a kernel that loaded so many bytes."""
    if inductor.has_stages(replaced):
        return registers is not None and registers <= MAX_STAGED_REGISTERS
    return inductor.bytes_loaded(kernel) < loaded


def _tiled(kernels: list[Kernel]) -> set[str]:
    """Return the operations of kernels without reductions: their tiles have what is near in memory."""
    return set().union(*(inductor.operation_names(kernel) for kernel in kernels if not inductor.reduces(kernel)))


def _bytes_loaded(kernel: Kernel) -> int:
    """Return the bytes that a kernel of Inductor's loads, which goes over long rows in a loop."""
    lengths = [prod(reduced) for _, reduced in map(inductor.node_sizes, inductor.loop_nodes(kernel))]
    is_looped = max(map(inductor.size_hint, lengths)) > SHORT_ROW
    return inductor.bytes_loaded_in_passes(kernel) if is_looped else inductor.bytes_loaded(kernel)


def saved_bytes(names: set[str], kernels: list[Kernel]) -> int:
    """Return the bytes that one kernel of the named operations saves in the place of others, a launch among them."""
    return _saved_traffic(names, kernels) + (len(kernels) - 1) * LAUNCH_BYTES


def _saved_traffic(names: set[str], kernels: list[Kernel]) -> int:
    apart, together = ([inductor.bytes_touched(k, own) for k in kernels] for own in (None, names))
    return traffic(apart) - traffic_of_one(together)


def _saving(saved: int) -> str:
    """Return what one kernel saves, in words."""
    return f"saves {saved / 2**20:.1f} MB, a launch counted as {LAUNCH_BYTES >> 20}"


def _check_stores(kernel: Kernel) -> None:
    """Raise Unsupported for a C++ kernel that would store more than there is, or that would not compile."""
    if inductor.generates_triton(inductor.device_of(kernel)):
        return
    detail = ""
    if writes_beyond_its_end(kernel):
        detail = "Inductor's C++ code would store whole vectors along a loop around another"
    elif declares_twice(kernel):
        detail = "Inductor's C++ code would not compile, as two of them store the same vector of 16 bits"
    if detail:
        raise Unsupported(Reason.not_liftable, f"{sorted(kernel.get_operation_names())}: {detail}")


def _one_kernel(nodes: Sequence[LoopNode], kernels: list[Kernel]) -> tuple[Kernel, list[str]]:
    """Return (a kernel of the nodes, what was decided about it).

    Unsupported where Inductor has none, or one that is worse.
    """
    names = {node.get_name() for node in nodes}
    kernel = codegen.fuse_nodes(nodes)
    if kernel is not None and comes_apart(kernel):
        raise Unsupported(Reason.not_liftable, f"{sorted(names)}: Inductor's codegen gives each of them its own loops")
    if kernel is not None:
        _check_stores(kernel)
        return kernel, []
    kernel = codegen.fuse_nodes(nodes, tiles=False)
    if kernel is None:
        raise Unsupported(Reason.not_liftable, f"{sorted(names)}: Inductor's codegen cannot run them together")
    if not kernels:
        return kernel, ["no tiles"]
    saved, beside = saved_bytes(kernel.get_operation_names(), kernels), inductor.bytes_beside(kernel)
    detail = f"{_saving(saved)}, and without tiles moves {beside / 2**20:.1f} MB beside what it uses"
    if beside >= saved:
        raise Unsupported(Reason.not_profitable, f"{sorted(names)}: one kernel {detail}")
    return kernel, [f"no tiles: {detail}"]
