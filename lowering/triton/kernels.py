"""Extend Inductor's Triton kernel by what fused rows need: guarded stores, segments, pairs of elements."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy
import torch

from ...affine import dtypes, ops_table
from ...inductor.compiling import torch_release
from ...inductor.layouts import buffer_dtype, buffer_numel
from ...inductor.schedule import offset_in_storage, storage_of, written_storage
from .access_widths import AccessWidthMixin
from .index_values import masking_values
from .kept_rows import KeptRowsMixin
from .loop_indices import LoopIndexMixin
from .random_numbers import drawing_alike
from .reused_loads import noting_conjunctions
from .row_masks import RowMaskMixin, noting_bounds
from .row_tails import RowTailMixin
from .strided_access import WIDE_LANE, LaneVariable, StridedPair, find_strided_pair

if TYPE_CHECKING:  # Importing this loads no Inductor: `lane_kernel` is given the class.
    from torch._inductor.codegen.common import CSEVariable, IndentedBuffer
    from torch._inductor.codegen.simd import IterationRangesRoot
    from torch._inductor.codegen.triton import IndexingOptions, TritonKernel
else:
    TritonKernel = object


@functools.cache
def lane_kernel(base: Any) -> type:
    """Return Inductor's Triton kernel (`base`) with guarded stores, segments and pairs of elements.

    The random number of a seed and an offset is the same in all of them.
    """
    mixins = LoopIndexMixin, RowMaskMixin, RowTailMixin, LaneMixin, StridedAccessMixin, AccessWidthMixin
    overrides = noting_bounds(masking_values(noting_conjunctions(drawing_alike(base.overrides))))
    return type("LaneKernel", (*mixins, base), {"overrides": overrides})


def persistent_kernel(kernel: type, names: Iterable[str]) -> type:
    """Return a kernel of `lane_kernel` that keeps the rows of the named scheduler nodes."""
    return type(kernel.__name__, (kernel,), {"bridge_kept": frozenset(names)})


@dataclass(frozen=True, eq=False)
class _Guard:
    """Hold a mask for the store of a value by a scheduler node; guarded: the copy that the node stores."""

    guarded: CSEVariable
    value: CSEVariable
    mask: CSEVariable
    node: object


class LaneMixin(KeptRowsMixin):
    """Let some lanes of a row store alone, and reductions be over segments."""

    #: Scheduler nodes whose rows are kept whole, for kernels that are made without asking for the choices.
    bridge_kept: frozenset[str] = frozenset()

    inside_reduction: bool
    current_node: object

    def __init__(self, tiling: dict[str, sympy.Expr], *args: Any, **kwargs: Any) -> None:
        if self.bridge_kept & {node.get_name() for node in kwargs["features"].scheduler_nodes()}:
            kwargs["override_persistent_reduction"] = True
        super().__init__(tiling, *args, **kwargs)
        #: By the identity of the copies: their own equality is that of their names.
        self.bridge_guards: dict[int, _Guard] = {}

    def codegen_kernel(self, name: str | None = None) -> str:
        """Return the source; Inductor names a kernel for the heuristic that it finds there, be it in a comment."""
        chosen = "@triton_heuristics.fixed_config("
        usual = f"@triton_heuristics.{'persistent_reduction' if self.persistent_reduction else 'reduction'}"
        return super().codegen_kernel(name).replace(chosen, f"# In the place of {usual}\n{chosen}", 1)

    def codegen_body(self) -> None:
        """Generate the body.

        Inductor asks the current kernel, which is none while it puts kernels of several parts together.
        """
        from torch._inductor.virtualized import V

        with V.set_kernel_handler(self):
            super().codegen_body()

    def want_no_x_dim(self) -> bool | None:
        """Return what is wanted.

        Before torch 2.13 a kernel that has one row, and no dimension for it, cannot load a value of its row.
        """
        wanted = super().want_no_x_dim()  # None where nobody asked: what is said of the kernel stays as it was
        return wanted if torch_release() >= (2, 13) else wanted and False

    def reduction(self, dtype: torch.dtype, src_dtype: torch.dtype, reduction_type: str, value: Any) -> Any:
        """Return the value of a reduction, of Bridge's three types or of Inductor's."""
        kind, _, rest = reduction_type.partition(":")
        if kind == ops_table.GUARDED:
            self.num_reduction -= 1  # whoever called has counted it
            return self._guarded(*value)
        if kind == ops_table.SEGMENTED:
            operation, lanes = rest.split(":")
            return self._segmented(operation, lanes, value)
        if kind == ops_table.BROADCAST:
            segment, lanes = rest.split(":")
            return self._broadcast(dtype, segment, lanes, value)
        return super().reduction(dtype, src_dtype, reduction_type, value)

    def _guarded(self, value: CSEVariable, mask: CSEVariable) -> CSEVariable:
        """Return a copy of a variable, with the mask for the store that it is made for; other uses do not see it."""
        value = self.bridge_stored(value)
        guarded = copy.copy(value)
        self.bridge_guards[id(guarded)] = _Guard(guarded, value, mask, self.current_node)
        return guarded

    def bridge_stored(self, value: CSEVariable) -> CSEVariable:
        """Return what the current node stores: of a copy that another node has stored under a mask, the value itself.

        Inductor hands on what was stored to those that load it, and they may store it in all lanes.
        """
        guard = self.bridge_guards.get(id(value))
        return value if guard is None or guard.node is self.current_node else guard.value

    def _segmented(self, kind: str, lanes: str, value: CSEVariable) -> CSEVariable:
        """Reduce by segments: every lane's value is the reduction of its segment.

        Consecutive lanes of the innermost dimension.
        """
        from torch._inductor.codegen.triton import get_triton_reduction_function

        *outer, row = self.dense_size_list()
        tile, segments = f"[{', '.join([*outer, row])}]", ", ".join([*outer, f"{row} // {lanes}", lanes])
        function = get_triton_reduction_function(kind)
        dense = f"tl.reshape(tl.broadcast_to({value}, {tile}), [{segments}])"
        shape = (*outer, f"{row} // {lanes}")
        line = f"{function}({dense}, {len(shape)})"
        reduced = self.cse.generate(self.compute, line, dtype=value.dtype, shape=shape)
        kept = f"tl.broadcast_to(tl.expand_dims({reduced}, {len(shape)}), [{segments}])"
        return self.cse.generate(
            self.compute, f"tl.reshape({kept}, {tile})", dtype=value.dtype, shape=tuple(self.dense_size_list())
        )

    def _broadcast(self, dtype: torch.dtype, segment: str, lanes: str, value: CSEVariable) -> CSEVariable:
        """Return what the lanes of one segment of a row have, to all of them and to what is outside of the row.

        The extremum of what they have and the least number: it is one of them, whatever they have.
        """
        is_inside, self.inside_reduction = self.inside_reduction, True
        try:
            row = next(tree for tree in self.range_trees if tree.is_reduction)
            mask = f"{row.prefix}index // {lanes} == {segment}"
            chosen = f"tl.where({mask}, {value}, {_least(dtype)})"
            kept = self.cse.generate(self.compute, chosen, dtype=value.dtype, shape=tuple(self.dense_size_list()))
            return super().reduction(dtype, dtype, "any" if dtype == torch.bool else "max", kept)
        finally:
            self.inside_reduction = is_inside

    def store(self, name: str, index: sympy.Expr, value: CSEVariable, mode: str | None = None) -> None:
        """Store a value; a guarded one under the mask that it was given.

        The mask has the tile's shape. Inductor gives a place that is a number the value's, so that has to be the same.
        """
        value = self.bridge_stored(value)
        if id(value) not in self.bridge_guards:
            return super().store(name, index, value, mode)
        tile = copy.copy(value)
        tile.shape = tuple(self.dense_size_list())
        with self.mask_loads(self.bridge_guards[id(value)].mask, None):
            return super().store(name, index, tile, mode)


def _least(dtype: torch.dtype) -> str:
    """Return the least number of a dtype in Triton."""
    number = dtypes.least(dtype)
    return 'float("-inf")' if isinstance(number, float) else str(number)


# ---------------------------------------------------------------------------------------------------------
# Every other element
# ---------------------------------------------------------------------------------------------------------


@dataclass
class _Half:
    """Hold a store of every other element; line: its own among the kernel's stores, while the other half is missing."""

    name: str
    index: sympy.Expr
    value: CSEVariable
    pair: StridedPair
    line: object = None


@dataclass(frozen=True)
class _WideAccess:
    """Hold an access to pairs of elements: address from the buffer's pointer, mask, sizes of the tile of one half."""

    address: str
    mask: str
    shape: tuple[str, ...]


class StridedAccessMixin(KeptRowsMixin):
    """Load and store persistent rows of Bridge's by pairs of elements."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.bridge_wide_lanes = ""
        self.bridge_split: dict[CSEVariable, tuple[CSEVariable, CSEVariable]] = {}
        self.bridge_halves: dict[tuple[str, sympy.Expr, int], _Half] = {}

    def load(self, name: str, index: sympy.Expr) -> CSEVariable:
        """Return the variable of an element that is loaded; of every other one, together with the one beside it."""
        pair = self._pair(name, index)
        if pair is None or not _is_even(buffer_numel(storage_of(name) or name)):
            return super().load(name, index)
        return self._load_pair(name, index, pair)[pair.half]

    def store(self, name: str, index: sympy.Expr, value: CSEVariable, mode: str | None = None) -> None:
        """Store a value; every other element together with the one beside it, if that is stored, too."""
        pair = self._pair(name, index) if mode is None else None
        memory = written_storage(name)
        self._await_readers(name, memory)
        if pair is None:
            self._keep_in_order(memory)
            return super().store(name, index, value, mode)
        mine = _Half(name, index, value, pair)
        other = self.bridge_halves.pop((memory, pair.address, 1 - pair.half), None)
        if other is not None and self._take_back(other):
            return self._store_pair(*sorted([mine, other], key=lambda half: half.pair.half))
        super().store(name, index, value)
        # Emitted as if it were alone: what the kernel takes is known before anyone can know that it stays so.
        mine.line = self.stores._lines[-1]
        self.bridge_halves[memory, pair.address, pair.half] = mine
        return None

    def _await_readers(self, name: str, memory: str) -> None:
        """Have all threads of a block read a buffer before one of them overwrites it: a lane is in several of them."""
        from torch._inductor.codegen.common import DeferredLine

        if self.bridge_fused and memory in self.args.input_buffers:
            self.stores.writeline(DeferredLine(name, "tl.debug_barrier()"))

    def _keep_in_order(self, memory: str) -> None:
        """Have halves that were stored to a buffer stay before what is stored to it now."""
        self.bridge_halves = {key: half for key, half in self.bridge_halves.items() if key[0] != memory}

    def _take_back(self, half: _Half) -> bool:
        """Remove a half's own store; False where code that may load what it stored comes after it already."""
        lines = self.stores._lines
        place = next((i for i, line in enumerate(lines) if line is half.line), None)
        if place is not None:
            del lines[place]
        return place is not None

    def _pair(self, name: str, index: sympy.Expr) -> StridedPair | None:
        """Return the access to a buffer's storage that has this one to every other element as a half."""
        if not self.bridge_keeps_rows():
            return None
        row = self.bridge_row()
        if row is None or self._load_mask is not None or self.is_indirect_indexing(index):
            return None
        if name in self.args.inplace_buffers or not _has_pairs(buffer_dtype(name)):
            return None
        variables = [LaneVariable(n.symbol(), n.divisor, n.length, row.numel) for n in self.bridge_loops(row)]
        return find_strided_pair(index + offset_in_storage(name), variables, _is_even)

    def _load_pair(self, name: str, index: sympy.Expr, pair: StridedPair) -> tuple[CSEVariable, CSEVariable]:
        """Load a pair; return the variables of both halves."""
        from torch._inductor import config

        indexing = self.indexing(index)
        wide = self._wide_access(name, pair, indexing)
        other = ", other=0.0" if wide.mask != "None" else ""
        line = f"tl.load({self.args.input(name)} + ({wide.address}), {wide.mask}{other})"
        dtype = buffer_dtype(name)
        if dtype in (torch.float16, torch.bfloat16) and config.triton.codegen_upcast_to_fp32:
            line, dtype = f"{line}.to(tl.float32)", torch.float32
        lines = self.get_load_buffer(indexing)
        self._launch_after(lines, name, consider_reads=False)
        both = self.cse.generate(lines, line, dtype=dtype, shape=_doubled(wide.shape))
        self._launch_next(lines, both)
        if both not in self.bridge_split:
            halves = tuple(self.cse.newvar(dtype=dtype, shape=wide.shape) for _ in range(2))
            lines.writeline(f"{halves[0]}, {halves[1]} = tl.split(tl.reshape({both}, [{', '.join(wide.shape)}, 2]))")
            self.bridge_split[both] = halves
        return self.bridge_split[both]

    def _store_pair(self, first: _Half, second: _Half) -> None:
        from torch._inductor.codegen.common import DeferredLine
        from torch._inductor.codegen.triton import triton_store_type

        dense, kind = self.dense_size_str(), triton_store_type(buffer_dtype(first.name))
        wide = self._wide_access(first.name, first.pair, self.indexing(first.index, dense_indexing=True), dense=True)
        # A store converts by itself; halves are joined before, and may be computed in different types.
        halves = [f"tl.broadcast_to({half.value}, {dense}).to({kind})" for half in (first, second)]
        both = f"tl.reshape(tl.join({', '.join(halves)}), [{', '.join(_doubled(wide.shape))}])"
        pointer = self.args.output(first.name)
        self._launch_after(self.stores, first.name, consider_reads=True)
        self.stores.writeline(DeferredLine(first.name, f"tl.store({pointer} + ({wide.address}), {both}, {wide.mask})"))

    def _wide_access(self, name: str, pair: StridedPair, indexing: IndexingOptions, dense: bool = False) -> _WideAccess:
        """Return the access to both halves.

        indexing: Inductor's, of one half; its masks of other dimensions hold for both halves.
        dense: over all dimensions of the kernel, also those that the address does not depend on, as what is stored is.
        """
        row = next(tree for tree in self.range_trees if tree.is_reduction)
        lanes_mask, masks = f"{row.prefix}mask", sorted(map(str, indexing.mask_vars))
        if lanes_mask in masks:
            masks[masks.index(lanes_mask)] = f"({self._wide_lanes(row)} < 2 * {row.prefix}numel)"
        self._wide_lanes(row)
        address = self.prepare_indexing(pair.address - offset_in_storage(name))
        trees = {tree.tensor_dim: tree for tree in self.active_range_trees() if tree.tensor_dim is not None}
        reached = {d for d, t in trees.items() if set(t.var_list) & address.free_symbols} | {row.tensor_dim}
        masked = {d for d, t in trees.items() if f"{t.prefix}mask" in masks}
        used = trees.keys() if dense else reached | masked
        shape = tuple(size if d in used else "1" for d, size in enumerate(self.dense_size_list()))
        text = self.index_to_str(address)
        if used != reached:  # Triton makes masks and values as large as pointers are, and not the reverse
            text = f"tl.broadcast_to({text}, [{', '.join(_doubled(shape))}])"
        return _WideAccess(text, " & ".join(masks) or "None", shape)

    def _launch_after(self, lines: IndentedBuffer, name: str, consider_reads: bool) -> None:
        """Have an access wait for the kernel before, as Inductor does where kernels overlap (`triton.enable_pdl`)."""
        if hasattr(self, "_handle_pdl_before_access"):
            self._handle_pdl_before_access(lines, name, consider_reads=consider_reads)

    def _launch_next(self, lines: IndentedBuffer, loaded: CSEVariable) -> None:
        """Let the next kernel start, in the same case."""
        if hasattr(self, "_handle_pdl_after_load"):
            self._handle_pdl_after_load(lines, loaded)

    def _wide_lanes(self, row: IterationRangesRoot) -> str:
        """Return the variable that counts the elements of a row by pairs, defined on first use."""
        if not self.bridge_wide_lanes:
            self.bridge_wide_lanes = str(WIDE_LANE)
            size = self.indexing_size_str(row.tensor_dim)
            self.body.writeline(f"{WIDE_LANE} = tl.arange(0, 2 * {row.prefix.upper()}BLOCK){size}")
        return self.bridge_wide_lanes


def _doubled(shape: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sizes of a tile of pairs; the row is its last dimension."""
    return (*shape[:-1], f"2 * {shape[-1]}")


def _has_pairs(dtype: torch.dtype) -> bool:
    """Return True if Triton loads and stores elements as they are: bool and float8 may be of other types in memory."""
    return dtype != torch.bool and (dtype.itemsize > 1 or not dtype.is_floating_point)


def _is_even(expression: sympy.Expr) -> bool:
    from torch._inductor.virtualized import V

    return V.graph.sizevars.statically_known_multiple_of(expression, 2)
