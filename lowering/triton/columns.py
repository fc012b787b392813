"""Kernels of rows that add up columns as well: each program has a block of rows, and leaves a sum of each column of it.

Inductor's Triton kernel has the loop over a block's rows and the stores of the partial sums, for its mix-order
reductions. Those are reductions of equal inputs, and PyTorch adds up what they leave. Here the columns may be of what
the kernel itself computes, and another kernel of Inductor's adds up, with what follows.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy
import torch

from ...inductor.hardware import multiprocessors, shared_memory
from ...inductor.layouts import buffer_dtype
from ...inductor.mixed import rows_ahead
from ...inductor.protocols import Kernel, LoopNode
from ...inductor.sizes import Extent, divided_up, size_hint
from .column_loads import (
    Loaded,
    all_stay,
    lanes_differ,
    loads_parameters_once,
    mostly_rows,
    programs_at_once,
    rows_of_step,
    staged_bytes,
    stages_of_loop,
    too_few_loads,
    warps_of_step,
)
from .fixed_blocks import fixed_step
from .kept_rows import KeptRowsMixin
from .profitability import power_of_2

if TYPE_CHECKING:  # Importing this loads no Inductor: the classes are found where one is derived from them.
    from torch._inductor.codegen.simd_kernel_features import SIMDKernelFeatures
    from torch._inductor.codegen.triton import TritonScheduling
else:
    TritonScheduling = object

#: Elements of a block that adds up parts, all of its columns at once; the columns, of which 8 are a sector of memory.
SUM_ELEMENTS = 16384
SUM_COLUMNS = (16, 8)
MOST_SUM_WARPS = 8

#: Columns that are few, and parts that are many: programs of the fewest columns, with the most warps, then take less
#: time, as more multiprocessors load. 784 parts of three sums of 768 columns (an H200) take 7.2 us in programs of 16
#: columns, and 5.2 of 8; 392 parts of one sum 1.8 and 1.7, of 1536 columns 1.9 and 2.2.
FEW_SUM_COLUMNS, MANY_PARTS = 1024, 256

#: Elements of such a block, at least: of fewer parts than 16, which sums of small groups have, it has more columns.
FEWEST_SUM_ELEMENTS = 256

#: Elements of a block that goes over parts in a loop, where a symbol says how many there are: 16 for each thread of
#: `MOST_SUM_WARPS`, which each of several sums keeps in registers.
LOOP_ELEMENTS = 4096

#: What the rows that a block does not have add to its columns.
NEUTRAL = {"sum": "0.0", "max": 'float("-inf")', "min": 'float("inf")'}

#: What makes one row of two, of types for which Inductor's kernel of rows and columns may refuse to: 2.15 does.
COMBINED = {"max": "triton_helpers.maximum({}, {})", "min": "triton_helpers.minimum({}, {})"}

#: The same of sums that programs store by themselves.
ADDED = "{} + {}"

#: Parts of one column, at most, so that a block can have them.
MOST_PARTS = SUM_ELEMENTS // SUM_COLUMNS[-1]


class Extents(NamedTuple):
    """Describe what the programs of a kernel have of a tile of rows and columns.

    block: rows of a program; group: rows that follow each other, whose last block has fewer rows than others, so that
    no program has rows of two groups; None where that is so anyway; slices: of `columns` that a row has: each block has
    one program for each of them, one after the other; own_step: rows that a program computes at a time, where these are
    not as many as Inductor's runtime chooses.
    """

    rows: Extent
    columns: int
    block: int
    group: Extent | None = None
    slices: int = 1
    own_step: int | None = None

    @property
    def step(self) -> int:
        """Return how many rows a program computes at a time."""
        return self.own_step or rows_of_step(self.columns, self.block)

    @property
    def programs(self) -> Extent:
        """Return how many programs there are, each with a partial sum of its columns."""
        return divided_up(self.rows, self.block, self.group) * self.slices

    @property
    def numel(self) -> Extent:
        """Return how many rows the kernel's loops go over: of each slice those of whole blocks."""
        return self.rows if self.slices == 1 else self.programs * self.block

    @property
    def are_uneven(self) -> bool:
        """Return True if other programs than the last may have fewer rows than a block."""
        in_blocks = isinstance(self.rows, int) and self.rows % self.block == 0
        return self.group is not None or (self.slices > 1 and not in_blocks)


class ColumnBand:
    """Mark a kernel of rows with partial sums of columns.

    parts: buffers of partial sums, by node; ended: nodes that add up no parts, as each program stores its sums; by each
    of them the buffer that would have had the parts.
    """

    extents: Extents
    parts: dict[str, str]
    ended: dict[Any, str]


def column_band(kernel: Kernel, extents: Extents, parts: dict[str, str], ended: dict[LoopNode, str]) -> Kernel:
    """Return a kernel of the same nodes that adds up columns, and has the nodes that it ends; see `ColumnBand`."""
    from torch._inductor.scheduler import FusedSchedulerNode

    kind: Any = type("ColumnBandNode", (ColumnBand, FusedSchedulerNode), {})
    band = kind(kernel.scheduler, [*kernel.get_nodes(), *ended])
    band.extents, band.parts, band.ended = extents, parts, ended
    return band


def sum_block(parts: int, there: int) -> tuple[int, int]:
    """Return (columns, warps) of a block of a kernel that adds up so many parts of each column that is there."""
    if parts >= MANY_PARTS and there <= FEW_SUM_COLUMNS:
        return SUM_COLUMNS[-1], MOST_SUM_WARPS
    columns = _columns_of_sum(parts)
    warps = 1 << max(columns * parts // 512 - 1, 0).bit_length()  # 16 elements for each thread
    return columns, min(warps, MOST_SUM_WARPS)


def _columns_of_sum(parts: int) -> int:
    """Return how many columns with so many parts each a block has, where they are not few."""
    columns = next((columns for columns in SUM_COLUMNS if columns * parts <= SUM_ELEMENTS), SUM_COLUMNS[-1])
    return max(columns, FEWEST_SUM_ELEMENTS // power_of_2(parts))


def looped_sum_block(parts: int) -> tuple[tuple[int, int], int]:
    """Return ((columns, warps), parts at a time) of a block that adds up parts in a loop.

    parts: how many of each column there are typically.
    """
    columns = SUM_COLUMNS[0]
    at_once = min(power_of_2(parts), LOOP_ELEMENTS // columns)
    return (columns, max(columns * at_once // 512, 1)), at_once


@functools.cache
def column_kernel(base: Any) -> type:
    """Return a class of kernels whose partial sums have nothing of what is not in the tile."""
    return type("ColumnKernel", (ColumnMixin, base), {})


class Accumulator(NamedTuple):
    """Describe an accumulator of Bridge's for each column: its variable, and the buffer of its parts.

    result: the argument with the results, where a program stores those of its rows and there are no parts; else empty.
    """

    variable: str
    buffer: str
    neutral: str
    result: str


class ColumnMixin(KeptRowsMixin):
    """Add up whole tiles, and only rows that there are."""

    #: What programs have of the tile; set as soon as the kernel is made.
    bridge_extents: Extents | None = None

    @functools.cached_property
    def bridge_accumulators(self) -> list[Accumulator]:
        """Return the accumulators of Bridge's, whose parts stand in the workspace after those of Inductor's sums."""
        return []

    @functools.cached_property
    def bridge_results(self) -> dict[str, str]:
        """Return the buffers of results that programs store, by the buffer that would have had the parts."""
        return {}

    @property
    def bridge_extremes(self) -> list[Accumulator]:
        """Return the accumulators of which there are parts: extremes."""
        return [one for one in self.bridge_accumulators if not one.result]

    @property
    def bridge_buffers(self) -> list[str]:
        """Return the buffers of what is accumulated, in the order in which the workspace has them."""
        summed = [part.buffer_name for part in self.saved_partial_accumulate]
        return [*summed, *(extreme.buffer for extreme in self.bridge_extremes)]

    @functools.cached_property
    def bridge_loaded(self) -> dict[str, Loaded]:
        """Return each variable that is loaded for each lane of a row."""
        return {}

    @functools.cached_property
    def bridge_parameters(self) -> list[Any]:
        """Return the lines that load what is the same for all rows."""
        return []

    def load(self, name: str, index: sympy.Expr) -> Any:
        """Return the variable of an element that is loaded."""
        before = len(self.loads._lines)
        loaded = super().load(name, index)
        of = {tree.is_reduction for tree in self.range_trees if set(tree.var_list) & index.free_symbols}
        masks = getattr(loaded, "mask_vars", ["xmask"])
        if False not in of and not self.is_indirect_indexing(index) and "xmask" not in masks:
            self.bridge_parameters.extend(self.loads._lines[before:])
        # Under a mask of all lanes, each of them loads the element of its row.
        if True in of or list(getattr(loaded, "shape", None) or ()) == self.dense_size_list():
            size = buffer_dtype(name).itemsize
            self.bridge_loaded[str(loaded)] = Loaded(size, False in of, True in of, self._repeats(index))
        return loaded

    def _repeats(self, index: sympy.Expr) -> bool:
        """Return True if an index is the same for rows that follow each other, but for some of them."""
        rows = next(tree for tree in self.range_trees if not tree.is_reduction)
        divisors = [self.range_tree_nodes[symbol].divisor for symbol in set(rows.var_list) & index.free_symbols]
        return bool(divisors) and all(divisor != 1 for divisor in divisors)

    def bridge_rows_of_tile(self) -> int:
        """Return how many rows a program computes at a time."""
        extents = self.bridge_extents
        return super().bridge_rows_of_tile() if extents is None else extents.step

    def _load_parameters_once(self) -> None:
        """Have parameters loaded before the loop over rows, where a program keeps them.

        Triton moves what is computed of them alone there as well; it moves no load out of a loop that stores.
        """
        extents, loads = self.bridge_extents, list(self.bridge_loaded.values())
        if extents is None or not loads_parameters_once(loads, extents.columns, extents.step):
            return
        moved = set(map(id, self.bridge_parameters))
        self.body.writelines(self.bridge_parameters)
        self.loads._lines = [line for line in self.loads._lines if id(line) not in moved]

    def codegen_kernel(self, name: str | None = None) -> str:
        """Return the source; where 32 bits do not count its elements, nor may they count its partial sums.

        Those of numbers of rows are few; Inductor's stores of them have the program's number in 32 bits.
        """
        source, program = super().codegen_kernel(name), "(tl.program_id(0) + "
        if self.index_dtype == "tl.int32" or isinstance(self.numels["x"], sympy.Integer):
            return source
        return source.replace(program, "(tl.program_id(0).to(tl.int64) + ")

    def partial_accumulate(self, name: str, reduction_type: str, val: Any, extra_meta: dict[str, Any]) -> None:
        """Add up the columns of a value: of a whole tile, be it the same in each row; without rows beyond the last."""
        shape = tuple(self.dense_size_list())
        tile = f"tl.broadcast_to({val}, [{', '.join(shape)}])"
        if not self._has_constant_xmask():
            tile = f"tl.where(xmask, {tile}, {NEUTRAL[reduction_type]})"
        whole = self.cse.generate(self.compute, tile, dtype=torch.float32, shape=shape)
        # What this node alone reads beside the others of the kernel, nobody has to store.
        self.store_buffer_names.add(name)
        if name in self.bridge_results or reduction_type in COMBINED:
            self._accumulate(name, reduction_type, whole)
        else:
            super().partial_accumulate(name, reduction_type, whole, extra_meta)

    def _accumulate(self, name: str, reduction_type: str, whole: object) -> None:
        """Keep the sum, or the largest or smallest element, of each column in the loop over the rows."""
        from torch._inductor.codegen.triton import get_triton_reduction_function

        variable = f"column{len(self.bridge_accumulators)}"
        result = self.args.output(self.bridge_results[name]) if name in self.bridge_results else ""
        self.bridge_accumulators.append(Accumulator(variable, name, NEUTRAL[reduction_type], result))
        row = f"{get_triton_reduction_function(reduction_type)}({whole}, 0)[None, :]"
        self.compute.writeline(f"{variable} = {COMBINED.get(reduction_type, ADDED).format(variable, row)}")

    def codegen_body(self) -> None:
        """Write the body; accumulators begin before its loop, and are stored after it, as Inductor's sums are.

        It is asked for again when it is written, and nothing is left to compute.
        """
        if self.compute:
            self._begin_in_group()
            self._load_parameters_once()
            for one in self.bridge_accumulators:
                self.body.writeline(f"{one.variable} = tl.full([1, R0_BLOCK], {one.neutral}, tl.float32)")
            for place, one in enumerate(self.bridge_extremes, len(self.saved_partial_accumulate)):
                self._store_accumulator(one, "ws_ptr", f"(tl.program_id(0) + {place} * tl.num_programs(0))")
            for one in self.bridge_accumulators:
                if one.result:
                    self._store_accumulator(one, one.result, self._program())
        super().codegen_body()

    def _program(self) -> str:
        return "tl.program_id(0)" if self.index_dtype == "tl.int32" else "tl.program_id(0).to(tl.int64)"

    def _begin_in_group(self) -> None:
        """Have a program begin with the rows of its block of its group, and end with those of the group at the latest.

        Or of its slice. Inductor's code has it begin as if all blocks before it were whole, and ends its loop, and its
        mask, at `xnumel`.
        """
        extents = self.bridge_extents
        if extents is None or not extents.are_uneven:
            return
        if extents.group is None:
            row = f"{self._program()} // {extents.slices} * RSPLIT_SIZE"
            self.body.writeline(f"xnumel = xoffset + {self._rows(extents.rows)} - {row}")
            return
        self.body.writelines(
            [
                f"group_rows = {self._rows(extents.group)}",
                "group_blocks = (group_rows + RSPLIT_SIZE - 1) // RSPLIT_SIZE",
                f"group = {self._program()} // group_blocks",
                "rows_before = group * (group_blocks * RSPLIT_SIZE - group_rows)",
                "xoffset -= rows_before",
                "xindex -= rows_before",
                "xnumel = (group + 1) * group_rows",
            ]
        )

    def _rows(self, extent: Extent) -> str:
        """Return a number of rows in Triton, with as many bits as indices: sizes may have 64 where these have 32."""
        text = self.index_to_str(sympy.sympify(extent))
        return text if isinstance(extent, int) else f"tl.cast({text}, {self.index_dtype})"

    def _has_constant_mask(self, tree: Any) -> bool:
        """Return True if a loop needs no mask: that over rows does where programs have fewer of them than a block."""
        uneven = self.bridge_extents is not None and self.bridge_extents.are_uneven
        return not (uneven and tree.prefix == "x") and super()._has_constant_mask(tree)

    def add_numel_to_call_args(self, name: str, call_args: list[Any], arg_types: list[Any]) -> None:
        """Append the numbers of rows and columns, by which a launch has its programs: blocks count as whole ones."""
        extents, rows = self.bridge_extents, self.range_trees[0]
        if extents is None or extents.group is None:
            return super().add_numel_to_call_args(name, call_args, arg_types)
        there_are, rows.numel = rows.numel, sympy.sympify(extents.programs * extents.block)
        try:
            return super().add_numel_to_call_args(name, call_args, arg_types)
        finally:
            rows.numel = there_are

    def _store_accumulator(self, one: Accumulator, pointer: str, row: str) -> None:
        line = f"tl.store({pointer} + {row} * r0_numel + r0_index, {one.variable}, r0_mask)"
        self.post_loop_combine.writeline(line)


class ColumnScheduling(TritonScheduling):
    """Generate kernels of rows that add up columns."""

    @functools.cached_property
    def bridge_sum_nodes(self) -> dict[str, Extent]:
        """Return the nodes that add up what such kernels leave, with the parts of each column."""
        return {}

    def codegen_node(self, node: Kernel) -> None:
        """Generate a kernel, and its call."""
        if not isinstance(node, ColumnBand):
            return super().codegen_node(node)
        from torch._inductor.virtualized import V

        features = self._column_features(node)
        kernel, workspace, source = self._column_source(node, features)
        kernel.kernel_name = self.define_kernel(source, features.node_schedule, kernel)
        kernel.code_hash = _code_hash(source)
        with V.set_kernel_handler(kernel):
            for member in features.scheduler_nodes():
                if member.get_name() not in node.parts:
                    member.mark_run()
            for member in node.ended:
                member.mark_run()
        self.codegen_comment(features.node_schedule, None)
        kernel.call_kernel(kernel.kernel_name, deallocate_ws=False)
        V.graph.removed_buffers.update(kernel.removed_buffers)
        V.graph.removed_buffers.update(node.ended.values())
        V.graph.inplaced_to_remove.update(kernel.inplaced_to_remove)
        _name_parts(node, kernel.bridge_buffers, workspace)
        self.free_buffers_in_scheduler()
        return None

    def _column_features(self, node: Any) -> SIMDKernelFeatures:
        from torch._inductor.codegen.simd_kernel_features import SIMDKernelFeatures

        rows, columns = sympy.sympify(node.extents.numel), sympy.Integer(node.extents.columns)
        nodes = [member for member in node.get_nodes() if member not in node.ended]
        return SIMDKernelFeatures(self.generate_node_schedule(nodes, rows, columns), rows, columns)

    def _column_source(self, node: Any, features: SIMDKernelFeatures) -> tuple[Any, str, str]:
        """Return (the kernel, the name of the workspace with the partial sums, empty without any, the source)."""
        from torch._inductor.virtualized import V

        options: dict[str, Any] = {"features": features, "tiling_scores": None, "mix_order_reduction": True}
        options |= {"override_persistent_reduction": True, "override_cooperative_reduction": False}
        tiling = {"x": features.numel, "r0_": features.reduction_numel}
        with _making_columns(self):
            kernel = self.create_kernel_choices(features, [tiling], options)[0]
        extents: Extents = node.extents
        kernel.rsplit_size, kernel.bridge_extents = extents.block, extents
        kernel.bridge_results = {parts: _only_output(total) for total, parts in node.ended.items()}
        self.codegen_node_schedule_with_kernel(features.node_schedule, kernel)
        elements, workspace = sympy.sympify(len(kernel.bridge_buffers) * extents.programs * extents.columns), ""
        if elements != 0:
            _, workspace, _ = kernel.args.workspace(elements, False, dtype=torch.float32)
        with kernel:
            kernel.codegen_body()
        ahead = _loads_rows_ahead(extents, list(kernel.bridge_loaded.values()), node.get_device())
        if extents.own_step is not None:
            stages = stages_of_loop(extents.block, extents.step) if ahead else 1
            kernel.fixed_config = fixed_step(
                kernel.numels, extents.block, extents.step, stages, warps_of_step(extents.columns, extents.step)
            )
        with V.set_kernel_handler(kernel), rows_ahead(ahead):
            return kernel, workspace, kernel.codegen_kernel()


def _loads_rows_ahead(extents: Extents, loads: Sequence[Loaded], device: torch.device) -> bool:
    """Return True if a program is faster with rows on their way while it computes others."""
    at_once = programs_at_once(extents.columns, size_hint(extents.programs), multiprocessors(device))
    fits = all_stay(at_once, staged_bytes(extents.columns, loads), shared_memory(device))
    idle = too_few_loads(at_once, loads, extents.step, extents.block)
    return fits and idle and mostly_rows(loads, extents.step) and lanes_differ(loads)


@contextlib.contextmanager
def _making_columns(scheduling: Any) -> Iterator[None]:
    """Have the kernels that are made in the block be of the class that adds up columns."""
    plain = scheduling.kernel_type
    scheduling.kernel_type = column_kernel(plain)
    try:
        yield
    finally:
        scheduling.kernel_type = plain


def _code_hash(source: str) -> str:
    from torch._inductor.codecache import code_hash

    return code_hash(source)


def _only_output(node: Any) -> str:
    (output,) = node.get_outputs()
    return str(output.get_name())


def _name_parts(node: Any, buffers: Sequence[str], workspace: str) -> None:
    """Have the buffers of partial sums be parts of the workspace, which lives as long as the last of them.

    The wrapper is not told that the workspace is free: it would give it to others, whose buffers it knows.
    """
    from torch._inductor.virtualized import V

    assert sorted([*buffers, *node.ended.values()]) == sorted(node.parts.values()), "a sum was lost"
    if not workspace:
        return
    wrapper = V.graph.wrapper_code
    for place, name in enumerate(buffers):
        layout = V.graph.get_buffer(name).get_layout()
        size, stride = map(wrapper.codegen_python_shape_tuple, (layout.size, layout.stride))
        offset = wrapper.codegen_python_sizevar(sympy.sympify(place * node.extents.programs * node.extents.columns))
        wrapper.writeline(f"{name} = reinterpret_tensor({workspace}, {size}, {stride}, {offset})")
        wrapper.allocated.add(name)
    wrapper.writeline(f"del {workspace}")
