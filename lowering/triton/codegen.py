"""Extend Inductor's Triton scheduling by what Bridge decided for its kernels.

In a scheduler, one of a derived class takes the place of its Triton code generator; no other compilation sees it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sympy
import torch

from ... import inductor
from ...inductor.derived import code_generator, derive_code_generator, derived_class
from ...inductor.patches import before_removals, generating_nothing
from ...inductor.protocols import Kernel, KernelFeatures, LaunchNode, LoopNode, Schedule, Scheduler, TritonCodeGenerator
from ...inductor.schedule import SharedLaunch
from ...inductor.sizes import Extent, size_hint
from ...inductor.tiles import splits_into
from .columns import ColumnScheduling, looped_sum_block, sum_block
from .combo_kernels import (
    has_static_rows,
    has_third_dimension,
    is_chosen_persistent,
    is_inner,
    is_persistent,
    is_short_inner_reduction,
    own_blocks,
    shared_launch_kernel,
    tiling_and_scores,
)
from .fixed_blocks import fixed_block, has_free_blocks
from .kernels import lane_kernel, persistent_kernel
from .profitability import ELEMENTS_OF_THREAD, KeptRow, Row, block_of_kept_rows, block_of_long_row

if TYPE_CHECKING:  # Importing this loads no Inductor: `derive_code_generator` finds the class.
    from torch._inductor.codegen.triton import TritonKernel


def make_persistent(scheduler: Scheduler, device: torch.device, names: set[str], row: Row) -> None:
    """Make the fused kernel of the named scheduler nodes a persistent reduction: a row is loaded once and kept.

    Only this scheduler's code generator is changed.  row: what one takes.
    """
    _bridge_backend(scheduler, device).bridge_persistent_nodes.update(dict.fromkeys(names, row))


def undo_persistent(scheduler: Scheduler, device: torch.device, names: set[str]) -> None:
    """Undo `make_persistent`."""
    kept = _bridge_backend(scheduler, device).bridge_persistent_nodes
    for name in names:
        kept.pop(name, None)


def make_wide(scheduler: Scheduler, device: torch.device, names: set[str]) -> None:
    """Give each thread of the kernel of the named scheduler nodes as many elements as one instruction loads.

    What it computes of a place alone, such as masks, it then computes once for them.  Of Inductor's two configurations
    one has two elements a thread, which a measurement of a first launch may take for the faster one: 55 us, not 36.
    """
    _bridge_backend(scheduler, device).bridge_wide_nodes.update(names)


def undo_wide(scheduler: Scheduler, device: torch.device, names: set[str]) -> None:
    """Undo `make_wide`."""
    _bridge_backend(scheduler, device).bridge_wide_nodes.difference_update(names)


def keeps_rows(kernel: Kernel) -> bool:
    """Return True for a kernel of nodes of which `make_persistent` knows."""
    kept = _bridge_backend(kernel.scheduler, kernel.get_device()).bridge_persistent_nodes
    return any(node.get_name() in kept for node in kernel.get_nodes())


def stored_between_passes(kernel: Kernel) -> set[str]:
    """Return the buffers that a kernel stores in one pass of its loops over a row and loads in a later one."""
    from torch._inductor.virtualized import V

    device = inductor.device_of(kernel)
    backend: Any = code_generator(kernel.scheduler, device)
    with before_removals(kernel.scheduler), V.graph.set_current_device(device):
        with generating_nothing(backend) as collected:
            backend.codegen_node(kernel)
        loops = [features for features in collected if features.is_reduction() and not _keeps_rows(backend, features)]
    return set().union(*map(_loaded_in_later_passes, loops))


def _loaded_in_later_passes(features: KernelFeatures) -> set[str]:
    """Return the buffers that a loop has to store: between two passes over a row, a mark ends a loop, and one begins.

    What is computed between loops, and what a reduction gives, stays in registers.
    """
    number, made, loaded = 0, dict[str, int](), set[str]()
    for entry in features.node_schedule:
        if isinstance(entry, type):
            number += 1
            continue
        loaded |= {name for name in inductor.buffers_read(entry) if made.get(name, number) < number}
        if number % 2 == 0 and not entry.is_reduction():
            made |= dict.fromkeys(inductor.buffers_made(entry), number)
    return loaded


def _keeps_rows(backend: Any, features: KernelFeatures) -> bool:
    """Return True if a code generator, of Bridge's class or of Inductor's, makes a persistent kernel of features."""
    names = {node.get_name() for node in features.scheduler_nodes()}
    persistent, inner, sums = (getattr(backend, f"bridge_{kind}_nodes", {}) for kind in ("persistent", "inner", "sum"))
    if names & sums.keys():
        return all(isinstance(sums[name], int) for name in names & sums.keys())
    scores = tiling_and_scores(backend, features)[1]
    if names & persistent.keys() or (names & {*inner} and is_inner(features, scores)):
        return True
    return is_chosen_persistent(features, scores)


def make_inner_persistent(scheduler: Scheduler, device: torch.device, kernel: Kernel, row: KeptRow) -> bool:
    """Make a kernel of Inductor's a persistent reduction; return False where it is none over contiguous elements.

    row: what one takes.
    """
    backend = _bridge_backend(scheduler, device)
    inner = backend.bridge_takes_for_inner(kernel)
    if inner:
        backend.bridge_inner_nodes.update(dict.fromkeys(inductor.operation_names(kernel), row))
    return inner


def has_rows_side_by_side(kernel: Kernel) -> bool:
    """Return True if rows of a kernel of reductions, not their elements, are contiguous: a block has more of them."""
    from torch._inductor.virtualized import V

    device = inductor.device_of(kernel)
    with V.graph.set_current_device(device):
        return not _bridge_backend(kernel.scheduler, device).bridge_takes_for_inner(kernel)


def fits_in_two_dimensions(kernel: Kernel) -> bool:
    """Return True if the tiles of a kernel, or of all parts of a launch, are in a shared launch what they are alone."""
    from torch._inductor.virtualized import V

    parts = inductor.launch_parts(kernel)
    device = inductor.device_of(parts[0])
    with V.graph.set_current_device(device):
        return _bridge_backend(kernel.scheduler, device).bridge_has_its_tiles(parts)


def run_in_lanes(scheduler: Scheduler, device: torch.device) -> None:
    """Have kernels of this scheduler know `ops_table.GUARDED` and `ops_table.SEGMENTED`, and draw alike."""
    _bridge_backend(scheduler, device)


def draw_alike(schedule: Schedule) -> None:
    """Have a random number be that of its seed and offset in all kernels of a schedule (see random_numbers.py)."""
    for kernel in filter(inductor.is_loop_kernel, schedule):
        if inductor.generates_triton(inductor.device_of(kernel)) and inductor.draws(kernel):
            run_in_lanes(kernel.scheduler, inductor.device_of(kernel))


def _bridge_backend(scheduler: Scheduler, device: torch.device) -> TritonCodeGenerator:
    """Return the scheduler's Triton code generator, of Bridge's class from now on."""
    return derive_code_generator(scheduler, device, BandMixin)


class BandMixin(ColumnScheduling):
    """Add to a code generator what Bridge decided: persistent rows, blocks, shared launches, sums of columns."""

    #: What the kernels of a shared launch would be generated from, while that is asked for.
    bridge_collected: list[KernelFeatures] | None = None

    @functools.cached_property
    def bridge_persistent_nodes(self) -> dict[str, Row]:
        """Return the nodes of persistent reductions of Bridge's, with what a row takes."""
        return {}

    @functools.cached_property
    def bridge_wide_nodes(self) -> set[str]:
        """Return the nodes of kernels of Bridge's whose threads have many elements."""
        return set()

    @functools.cached_property
    def bridge_inner_nodes(self) -> dict[str, KeptRow]:
        """Return the nodes of reductions of Inductor's, which are persistent where a row is contiguous."""
        return {}

    @functools.cached_property
    def kernel_type(self) -> Any:
        """Return the class of the kernels, with what Bridge adds to it."""
        return lane_kernel(super().kernel_type)

    def create_kernel_choices(
        self, kernel_features: KernelFeatures, kernel_args: Sequence[Any], kernel_kwargs: dict[str, Any]
    ) -> list[TritonKernel]:
        """Return Inductor's kernels for the features, with the blocks and persistence that Bridge decided on."""
        if kernel_kwargs.get("mix_order_reduction"):  # it has a loop over its rows, and a block of its own
            return super().create_kernel_choices(kernel_features, kernel_args, kernel_kwargs)
        names = {node.get_name() for node in kernel_features.scheduler_nodes()}
        added = [self.bridge_sum_nodes[name] for name in names & self.bridge_sum_nodes.keys()]
        parts: Extent = max(added, key=size_hint, default=0)
        looped = not isinstance(parts, int)
        inner = names & self.bridge_inner_nodes.keys()
        inner = inner if inner and is_inner(kernel_features, kernel_kwargs.get("tiling_scores")) else set()
        fused = names & self.bridge_persistent_nodes.keys()
        if fused or inner or parts:
            kernel_kwargs = {**kernel_kwargs, "override_persistent_reduction": not looped}
        if fused or parts:  # pairs and segments are of a row that one block has whole
            kernel_kwargs["override_cooperative_reduction"] = False
        block, at_once = None, None
        if has_free_blocks(kernel_args[0]) and (parts or fused or inner):
            side_by_side = not is_inner(kernel_features, kernel_kwargs.get("tiling_scores"))
            block, at_once = self._block(parts, fused, inner, kernel_args[0], side_by_side)
        if block and not kernel_kwargs.get("is_combo_kernel"):
            kernel_kwargs["fixed_config"] = fixed_block(kernel_args[0], *block, at_once)
        kernels = super().create_kernel_choices(kernel_features, kernel_args, kernel_kwargs)
        fewest = ELEMENTS_OF_THREAD * bool(names & self.bridge_wide_nodes)
        for kernel in kernels:
            kernel.bridge_fused, kernel.bridge_block = bool(fused), None if looped else block
            kernel.min_elem_per_thread = max(kernel.min_elem_per_thread, fewest)
        return kernels

    def _block(
        self, parts: Extent, fused: set[str], inner: set[str], tiling: Mapping[str, sympy.Expr], side_by_side: bool
    ) -> tuple[tuple[int, int] | None, int | None]:
        """Return ((rows, warps) of a block, elements of a row at a time, None for all) of a kernel.

        parts: that it adds up; 0 for others, and then `fused` are nodes whose rows it keeps, if Bridge has fused it,
        `inner` those of one of Inductor's; side_by_side: rows, not their elements, are contiguous.
        """
        there = size_hint(tiling["x"])
        if not isinstance(parts, int):
            return looped_sum_block(size_hint(parts))
        if parts:
            return sum_block(parts, there), None
        lengths = [int(size) for prefix, size in tiling.items() if prefix.startswith("r")]
        if fused:
            row = max(self.bridge_persistent_nodes[name] for name in fused)
            return block_of_kept_rows(row, lengths, there, side_by_side), None
        kept = max(self.bridge_inner_nodes[name] for name in inner)
        return block_of_long_row(kept, lengths, there), None

    def generate_kernel_code_from_nodes(self, nodes: Sequence[LoopNode], *args: object, **kwargs: object) -> str:
        """Generate what Inductor times; it makes a kernel without asking for the choices that are made for it."""
        plain = self.kernel_type
        self.kernel_type = _ChosenKernel(self, plain)
        try:
            return super().generate_kernel_code_from_nodes(nodes, *args, **kwargs)
        finally:
            self.kernel_type = plain

    def generate_combo_kernel_code(self, *args: object, **kwargs: object) -> Any:
        """Generate Inductor's own launch of several; it makes their kernels without asking for the choices, too."""
        plain = self.kernel_type
        self.kernel_type = persistent_kernel(plain, self.bridge_persistent_nodes)
        try:
            return super().generate_combo_kernel_code(*args, **kwargs)
        finally:
            self.kernel_type = plain

    def codegen_node_schedule(self, kernel_features: KernelFeatures) -> Any:
        """Generate a kernel; where the features are asked for, collect them instead."""
        if self.bridge_collected is None:
            return super().codegen_node_schedule(kernel_features)
        self.bridge_collected.append(kernel_features)
        return None

    def codegen_combo_kernel(self, combo_kernel_node: LaunchNode) -> None:
        """Generate a launch of several kernels: of Bridge's, with blocks of each part's own."""
        if not isinstance(combo_kernel_node, SharedLaunch):
            return super().codegen_combo_kernel(combo_kernel_node)
        with own_blocks() as arguments:
            kernel = shared_launch_kernel()(self.kernel_type, enable_autotune=True, mixed_sizes=True, **arguments)
            for features, options in self._parts(combo_kernel_node.snodes):
                part = kernel.create_sub_kernel(self._part(features, {**options, **arguments}))
                self.process_kernel(part, features.node_schedule)
            source = kernel.codegen_kernel()
        name = self.define_kernel(source, [combo_kernel_node], kernel)
        self.codegen_comment(combo_kernel_node.snodes, name)
        kernel.call_kernel(name)
        self.free_buffers_in_scheduler()
        return None

    def _features(self, kernels: Sequence[Kernel]) -> list[KernelFeatures]:
        """Return what the kernels would be generated from alone: codegen_node comes to codegen_node_schedule above."""
        collected: list[KernelFeatures] = []
        self.bridge_collected = collected
        try:
            for kernel in kernels:
                self.codegen_node(kernel)
            return collected
        finally:
            self.bridge_collected = None

    def bridge_takes_for_inner(self, kernel: Kernel) -> bool:
        """Return True if Inductor takes a kernel for a reduction over contiguous elements, by all that is in it."""
        with before_removals(kernel.scheduler):
            (features,) = self._features([kernel])
        return is_inner(features, tiling_and_scores(self, features)[1])

    def bridge_has_its_tiles(self, kernels: Sequence[Kernel]) -> bool:
        """Return True if kernels have in a shared launch the tiles that they have alone."""
        with before_removals(kernels[0].scheduler):
            return not any(has_third_dimension(self, features) for features in self._features(kernels))

    def _parts(self, kernels: Sequence[Kernel]) -> list[tuple[KernelFeatures, dict[str, Any]]]:
        """Return features and options of each part; where one keeps its rows in registers, all do that can.

        A looped reduction has the registers of the parts beside it, and fewer warps at a time, without using them.
        """
        scored = [(features, tiling_and_scores(self, features)) for features in self._features(kernels)]
        kept = any(is_persistent(self, features, scores) for features, (_, scores) in scored)
        parts = []
        for features, (tiling, scores) in scored:
            options: dict[str, Any] = {"tiling": tiling, "tiling_scores": scores}
            if kept and is_short_inner_reduction(features, scores):
                options["override_persistent_reduction"] = True
            elif not has_static_rows(features):  # alone it may be persistent, if its rows are bounded
                options["override_persistent_reduction"] = False
            parts.append((features, options))
        return parts

    def _part(self, features: KernelFeatures, options: dict[str, Any]) -> TritonKernel:
        """Return the kernel that would stand alone, over its share of the program ids."""
        tiling = options.pop("tiling")
        options |= {"features": features, "is_combo_kernel": True, "override_cooperative_reduction": False}
        options["pid_cache"] = {"tl.program_id(0)": "x_pid_offset", "tl.program_id(1)": "y_pid_offset"}
        (kernel,) = self.create_kernel_choices(features, [tiling], options)
        return kernel


class _ChosenKernel:
    """Stand for the class of a code generator's kernels: for a new one, the choices are asked, once."""

    def __init__(self, scheduling: TritonCodeGenerator, plain: type) -> None:
        self._scheduling, self._plain = scheduling, plain

    def __getattr__(self, name: str) -> Any:
        """Return what the class has: from torch 2.14 on its method is asked for what the features need."""
        return getattr(self._plain, name)

    def __call__(self, tiling: Mapping[str, sympy.Expr], **options: Any) -> TritonKernel:
        """Return the kernel that the choices are for the features among the options."""
        self._scheduling.kernel_type = self._plain
        return self._scheduling.create_kernel_choices(options["features"], [tiling], options)[0]


def share_launch(kernels: Schedule) -> LaunchNode:
    """Make one scheduler node for independent kernels: one launch, whose program ids are divided among them."""
    from torch._inductor.scheduler import ForeachKernelSchedulerNode

    scheduler = kernels[0].scheduler
    _bridge_backend(scheduler, kernels[0].get_device())
    launch: Any = derived_class(ForeachKernelSchedulerNode, SharedLaunch)
    return launch(scheduler, kernels, use_custom_partition_algo=True, enable_autotune=True)


def fuse_in_lanes(nodes: Sequence[LoopNode]) -> Kernel | None:
    """Make one kernel of nodes over a tile, some of which add up its columns; None where Inductor cannot run them."""
    fused = fuse_nodes(nodes)
    if fused is not None:
        run_in_lanes(fused.scheduler, fused.get_device())
    return fused


def add_up_parts(scheduler: Scheduler, device: torch.device, parts: Mapping[str, Extent]) -> None:
    """Have kernels of the named nodes hold all parts of some columns at once, which they add up.

    parts: of each column, by node; where a symbol says how many there are, a kernel goes over them in a loop.
    """
    _bridge_backend(scheduler, device).bridge_sum_nodes.update(parts)


def undo_add_up_parts(scheduler: Scheduler, device: torch.device, names: Iterable[str]) -> None:
    """Undo `add_up_parts`."""
    kept = _bridge_backend(scheduler, device).bridge_sum_nodes
    for name in names:
        kept.pop(name, None)


# ---------------------------------------------------------------------------------------------------------
# Kernels in the schedule
# ---------------------------------------------------------------------------------------------------------


def fuse_nodes(nodes: Sequence[LoopNode], tiles: bool = True) -> Kernel | None:
    """Make one kernel of single scheduler nodes, if Inductor's code generator can run them together; else None.

    tiles: nodes that would have tiles of two dimensions alone are not put beside a reduction, which has none.
    """
    from torch._inductor import config

    # Nor does Inductor make stages of them, whose kernels have a code generator of their own.
    stages = {"triton.nested_reduction": False} if hasattr(config.triton, "nested_reduction") else {}
    with config.patch({"triton.tiling_prevents_reduction_fusion": tiles, **stages}):
        fused = _fuse_all(_by_loops(nodes)) or _fuse_all(nodes) or _fuse_all(_reductions_first(nodes))
    return fused if fused is not None and all(_fits(fused, node) for node in nodes) else None


def _by_loops(nodes: Sequence[Kernel]) -> Sequence[Kernel]:
    """Return the nodes, of which C++ gets those that follow each other and have the same loops as one.

    A node that it puts beside others with which it shares only outer loops has inner loops of its own: it would read
    from memory, rounded, what a node of the same loops hands on as it was computed.
    """
    if inductor.generates_triton(nodes[0].get_device()):
        return nodes
    parts = [nodes[0]]
    for node in nodes[1:]:
        fused = _fuse_two(parts[-1], node) if _share_loops(parts[-1], node) else None
        if fused is None or hasattr(fused, "get_outer_nodes"):  # loops of their own, below common ones
            parts.append(node)
        else:
            parts[-1] = fused
    return parts


def _reductions_first(nodes: Sequence[LoopNode]) -> Sequence[LoopNode]:
    """Return the nodes with those first that reduce, and what these need; as they are where some overwrite memory.

    Inductor puts values of each row and elements of rows in one kernel where it reduces rows, but not these two alone.
    """
    if any(map(inductor.mutates_or_aliases, nodes)):
        return nodes
    first: list[LoopNode] = []
    needed = set[str]()
    for node in reversed(nodes):
        if inductor.node_sizes(node)[1] or needed & inductor.operation_names(node):
            first.insert(0, node)
            needed.update(node.ancestors)
    return [*first, *(node for node in nodes if not any(node is one for one in first))]


def _share_loops(one: Kernel, other: Kernel) -> bool:
    """Return True if both go over the same elements, in the same order, before `other` has reduced any."""
    (mine, my_reduced), (others, other_reduced) = one.group[1], other.group[1]
    return (mine, my_reduced) == (others, other_reduced) or (not my_reduced and mine == (*others, *other_reduced))


def _fuse_all(nodes: Sequence[Kernel]) -> Kernel | None:
    fused = nodes[0]
    for node in nodes[1:]:
        both = _fuse_two(fused, node)
        if both is None:
            return None
        fused = both
    return fused


def _fuse_two(one: Kernel, other: Kernel) -> Kernel | None:
    """Return a kernel of two, `one` first; None where Inductor's code generator has none."""
    backend = one.scheduler.get_backend(one.get_device())
    feeds = bool(inductor.buffers_written(one) & inductor.buffers_read(other))
    can_fuse = backend.can_fuse_vertical if feeds else backend.can_fuse_horizontal
    return backend.fuse(one, other) if all(map(inductor.can_be_asked, (one, other))) and can_fuse(one, other) else None


def _fits(kernel: Kernel, node: LoopNode) -> bool:
    """Return True if a kernel of Triton's can go over a node's loops, which is not sure for symbolic ones."""
    if not inductor.generates_triton(node.get_device()) or not any(size.free_symbols for size in kernel.group[1]):
        return True
    return splits_into(inductor.node_body(node), kernel.group[1])


def times_fusions(device: torch.device) -> bool:
    """Return True if Inductor is told to decide on fusions by timing them, and can."""
    from torch._inductor import config

    return config.benchmark_fusion and inductor.generates_triton(device) and not inductor.is_deterministic()


def milliseconds(kernel: Kernel) -> float:
    """Return the time of one kernel on random inputs; infinite where registers spill or it cannot be compiled."""
    return kernel.scheduler.benchmark_fused_nodes(kernel.get_nodes())[0]


def replace_kernels(scheduler: Scheduler, nodes: Schedule, fused: Mapping[int, Kernel], removed: set[int]) -> Schedule:
    """Return the schedule with fused kernels in the place of those they replace.

    fused: position of the first kernel replaced -> the new one; removed: positions of all replaced.
    """
    start, stop = min(removed, default=0), max(removed, default=-1) + 1  # outside of this, all is in order
    kept = [fused.get(i, nodes[i]) for i in range(start, stop) if i in fused or i not in removed]
    changed = [*nodes[:start], *scheduler.topological_sort_schedule(kept), *nodes[stop:]]
    for kernel in fused.values():  # after all that an error may end
        names = [*(node.get_name() for node in kernel.get_nodes()), kernel.get_name()]
        scheduler.name_to_fused_node.update(dict.fromkeys(names, kernel))
    return changed


def put_back(kernels: Iterable[Kernel]) -> None:
    """Undo `replace_kernels`, whose schedule is not used, for the kernels that were replaced."""
    for kernel in kernels:
        kernel.scheduler.name_to_fused_node.update({n.get_name(): kernel for n in kernel.get_nodes()})
        kernel.scheduler.name_to_fused_node[kernel.get_name()] = kernel
