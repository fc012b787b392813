"""What of Bridge's extends Inductor's code generators: the second file, and the last, that knows torch's private API.

A scheduler object gets a class derived from its own; no class of torch's is changed, and no other compilation sees it.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sympy
import torch

from . import inductor_compat as inductor
from . import ops_table
from .configurations import Part, joint_configurations
from .pairs import WIDE_LANE, LaneVariable, Pair, find_pair
from .profitability import rows_and_warps


def keep_fused_rows(scheduler: Any, device: torch.device, names: set[str], registers: int) -> None:
    """Makes the fused kernel of the named scheduler nodes a persistent reduction: a row is loaded once and kept.

    Only this scheduler's code generator is changed.  registers: of 32 bits, that a row takes.
    """
    _bridge_backend(scheduler, device).bridge_persistent_nodes.update(dict.fromkeys(names, registers))


def forget_fused_rows(scheduler: Any, device: torch.device, names: set[str]) -> None:
    """Undoes `keep_fused_rows`."""
    kept = _bridge_backend(scheduler, device).bridge_persistent_nodes
    for name in names:
        kept.pop(name, None)


def keep_inner_rows(scheduler: Any, device: torch.device, names: set[str]) -> None:
    """Makes a kernel of Inductor's a persistent reduction, where a row's elements are neighbours in memory."""
    _bridge_backend(scheduler, device).bridge_inner_nodes.update(names)


def run_in_lanes(scheduler: Any, device: torch.device) -> None:
    """Has kernels of this scheduler know `ops_table.GUARDED` and `ops_table.SEGMENTED`."""
    _bridge_backend(scheduler, device)


@functools.cache
def _lane_kernel(base: type) -> type:
    """Inductor's Triton kernel, in which some lanes of a row may store alone and reductions may be over segments."""
    from torch._inductor.codegen.triton import get_triton_reduction_function

    class LaneKernel(_pair_kernel(base)):  # type: ignore[misc]
        def codegen_kernel(self, name: str | None = None) -> str:
            """The source; Inductor names a kernel for the heuristic that it finds there, be it in a comment."""
            chosen, usual = "@triton_heuristics.fixed_config(", "@triton_heuristics.persistent_reduction"
            return super().codegen_kernel(name).replace(chosen, f"# In the place of {usual}\n{chosen}", 1)

        def reduction(self, dtype: Any, src_dtype: Any, reduction_type: Any, value: Any) -> Any:
            kind, _, rest = reduction_type.partition(":")
            if kind == ops_table.GUARDED:
                self.num_reduction -= 1  # whoever called has counted it
                return self._guarded(*value)
            if kind == ops_table.SEGMENTED:
                return self._segmented(*rest.split(":"), value)
            return super().reduction(dtype, src_dtype, reduction_type, value)

        def _guarded(self, value: Any, mask: Any) -> Any:
            """The same variable, with the mask for the store that it is made for; other uses do not see it."""
            guarded = copy.copy(value)
            guarded.bridge_mask = mask
            return guarded

        def _segmented(self, kind: str, lanes: str, value: Any) -> Any:
            """Every lane's value is the reduction of its segment: consecutive lanes of the innermost dimension."""
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

        def store(self, name: str, index: Any, value: Any, mode: Any = None) -> None:
            mask = getattr(value, "bridge_mask", None)
            if mask is None:
                return super().store(name, index, value, mode)
            with self.mask_loads(mask, None):
                return super().store(name, index, value, mode)

    return LaneKernel


# ---------------------------------------------------------------------------------------------------------
# Every other element
# ---------------------------------------------------------------------------------------------------------


@dataclass
class _Half:
    """A store of every other element, which waits for that of its neighbours."""

    name: str
    index: Any
    value: Any
    pair: Pair


@functools.cache
def _pair_kernel(base: type) -> type:
    """Inductor's Triton kernel, in which persistent rows of Bridge's are loaded and stored by pairs of elements."""
    from torch._inductor import config
    from torch._inductor.codegen.common import DeferredLine

    class PairKernel(base):  # type: ignore[misc, valid-type]
        #: Whether it is a kernel that Bridge fused: others stay as they are.
        bridge_fused = False

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.bridge_wide_lanes = ""
            self.bridge_split: dict[Any, tuple[Any, Any]] = {}
            self.bridge_halves: dict[Any, _Half] = {}

        def load(self, name: str, index: Any) -> Any:
            pair = self._pair(name, index)
            if pair is None or not _is_even(_storage_size(name)):
                return super().load(name, index)
            return self._load_pair(name, index, pair)[pair.half]

        def store(self, name: str, index: Any, value: Any, mode: Any = None) -> None:
            pair = self._pair(name, index) if mode is None else None
            if pair is None:
                return super().store(name, index, value, mode)
            key = (inductor.storage_of(name) or name, pair.address, pair.half)
            mine = _Half(name, index, value, pair)
            other = self.bridge_halves.pop((*key[:2], 1 - pair.half), None)
            if other is not None and other.value.dtype == value.dtype:
                return self._store_pair(*sorted([mine, other], key=lambda half: half.pair.half))
            self._store_alone([half for half in (other, self.bridge_halves.get(key)) if half is not None])
            self.bridge_halves[key] = mine
            return None

        def codegen_body(self) -> None:
            self._store_alone(self.bridge_halves.values())
            self.bridge_halves.clear()
            super().codegen_body()

        def _store_alone(self, halves: Iterable[_Half]) -> None:
            for half in halves:
                super().store(half.name, half.index, half.value)

        def _pair(self, name: str, index: Any) -> Pair | None:
            """The access to a buffer's storage that has this one to every other element as a half."""
            if not (self.bridge_fused and self.persistent_reduction and self.inside_reduction):
                return None
            rows = [tree for tree in self.range_trees if tree.is_reduction]
            if len(rows) != 1 or self._load_mask is not None or self.is_indirect_indexing(index):
                return None
            if name in self.args.inplace_buffers or not _has_pairs(inductor.buffer_dtype(name)):
                return None
            nodes = [self.range_tree_nodes[v] for v in rows[0].var_list]
            variables = [LaneVariable(n.symbol(), n.divisor, n.length, rows[0].numel) for n in nodes]
            return find_pair(index + _offset_in_storage(name), variables, _is_even)

        def _load_pair(self, name: str, index: Any, pair: Pair) -> tuple[Any, Any]:
            """Variables of both halves."""
            indexing = self.indexing(index)
            address, mask, shape = self._wide_access(name, pair, indexing)
            other = ", other=0.0" if mask != "None" else ""
            line = f"tl.load({self.args.input(name)} + ({address}), {mask}{other})"
            dtype = inductor.buffer_dtype(name)
            if dtype in (torch.float16, torch.bfloat16) and config.triton.codegen_upcast_to_fp32:
                line, dtype = f"{line}.to(tl.float32)", torch.float32
            lines = self.get_load_buffer(indexing)
            wide = self.cse.generate(lines, line, dtype=dtype, shape=(*shape[:-1], f"2 * {shape[-1]}"))
            if wide not in self.bridge_split:
                halves = tuple(self.cse.newvar(dtype=dtype, shape=shape) for _ in range(2))
                lines.writeline(f"{halves[0]}, {halves[1]} = tl.split(tl.reshape({wide}, [{', '.join(shape)}, 2]))")
                self.bridge_split[wide] = halves
            return self.bridge_split[wide]

        def _store_pair(self, first: _Half, second: _Half) -> None:
            address, mask, _ = self._wide_access(first.name, first.pair, self.indexing(first.index, dense_indexing=True))
            *outer, lanes = self.dense_size_list()
            dense = [f"tl.broadcast_to({half.value}, {self.dense_size_str()})" for half in (first, second)]
            both = f"tl.reshape(tl.join({', '.join(dense)}), [{', '.join([*outer, f'2 * {lanes}'])}])"
            line = f"tl.store({self.args.output(first.name)} + ({address}), {both}, {mask})"
            self.stores.writeline(DeferredLine(first.name, line))

        def _wide_access(self, name: str, pair: Pair, indexing: Any) -> tuple[str, str, tuple[str, ...]]:
            """(address from the buffer's pointer, mask, shape of a half) of the wide access.

            indexing: Inductor's, of one half; its masks of other dimensions hold for both halves.
            """
            row = next(tree for tree in self.range_trees if tree.is_reduction)
            lanes_mask, masks = f"{row.prefix}mask", sorted(map(str, indexing.mask_vars))
            if lanes_mask in masks:
                masks[masks.index(lanes_mask)] = f"({self._wide_lanes(row)} < 2 * {row.prefix}numel)"
            self._wide_lanes(row)
            address = self.prepare_indexing(pair.address - _offset_in_storage(name))
            trees = {tree.tensor_dim: tree for tree in self.active_range_trees() if tree.tensor_dim is not None}
            used = {d for d, t in trees.items() if set(t.var_list) & address.free_symbols or f"{t.prefix}mask" in masks}
            sizes = enumerate(self.dense_size_list())
            shape = tuple(size if dim in used | {row.tensor_dim} else "1" for dim, size in sizes)
            return self.index_to_str(address), " & ".join(masks) or "None", shape

        def _wide_lanes(self, row: Any) -> str:
            """The variable that counts the elements of a row by pairs, defined on first use."""
            if not self.bridge_wide_lanes:
                self.bridge_wide_lanes = str(WIDE_LANE)
                size = self.indexing_size_str(row.tensor_dim)
                self.body.writeline(f"{WIDE_LANE} = tl.arange(0, 2 * {row.prefix.upper()}BLOCK){size}")
            return self.bridge_wide_lanes

    return PairKernel


def _has_pairs(dtype: torch.dtype) -> bool:
    """Whether Triton loads and stores elements as they are: bool and float8 may be of other types in memory."""
    return dtype != torch.bool and (dtype.itemsize > 1 or not dtype.is_floating_point)


def _is_even(expression: Any) -> bool:
    from torch._inductor.virtualized import V

    return V.graph.sizevars.statically_known_multiple_of(expression, 2)


def _offset_in_storage(name: str) -> Any:
    """Elements from the start of a buffer's storage to its own start: not 0 for a slice of a larger buffer."""
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    layout = getattr(V.graph.name_to_buffer.get(name), "layout", None)
    return layout.view.get_layout().offset if isinstance(layout, ir.NonOwningLayout) else sympy.S.Zero


def _storage_size(name: str) -> Any:
    """Elements of a buffer's storage, up to its last that is used."""
    from torch._inductor.virtualized import V

    return V.graph.get_buffer(inductor.storage_of(name) or name).get_layout().storage_size()


def _bridge_backend(scheduler: Any, device: torch.device) -> Any:
    """The scheduler's Triton code generator, of Bridge's class from now on."""
    backend = scheduler.get_backend(device)
    backend = getattr(backend, "_triton_scheduling", backend)  # CUDA's delegates to several
    if not hasattr(backend, "bridge_persistent_nodes"):
        backend.__class__ = _band_scheduling(type(backend))
        backend.bridge_persistent_nodes = {}
        backend.bridge_inner_nodes = set()
        backend.bridge_collected = None
        backend.kernel_type = _lane_kernel(backend.kernel_type)
    return backend


@functools.cache
def _band_scheduling(base: type) -> type:
    """Inductor's Triton scheduling with what Bridge decided for its kernels: persistent rows, shared launches."""

    class BandScheduling(base):  # type: ignore[misc, valid-type]
        def create_kernel_choices(self, kernel_features: Any, kernel_args: Any, kernel_kwargs: Any) -> Any:
            names = {node.get_name() for node in kernel_features.scheduler_nodes()}
            inner = names & self.bridge_inner_nodes and _is_inner(kernel_features, kernel_kwargs.get("tiling_scores"))
            fused = names & self.bridge_persistent_nodes.keys()
            if fused or inner:
                kernel_kwargs = {**kernel_kwargs, "override_persistent_reduction": True}
            if fused and _has_free_blocks(kernel_args, kernel_kwargs):
                block = rows_and_warps(max(self.bridge_persistent_nodes[name] for name in fused))
                kernel_kwargs |= {"fixed_config": _fixed_block(*block)} if block else {}
            kernels = super().create_kernel_choices(kernel_features, kernel_args, kernel_kwargs)
            for kernel in kernels:
                kernel.bridge_fused = bool(fused)
            return kernels

        def generate_kernel_code_from_nodes(self, nodes: Any, *args: Any, **kwargs: Any) -> str:
            """What Inductor times; it makes a kernel without asking for the choices that are made for it."""
            plain = self.kernel_type

            def chosen(tiling: Any, features: Any) -> Any:
                self.kernel_type = plain
                return self.create_kernel_choices(features, [tiling], {"features": features})[0]

            self.kernel_type = chosen
            try:
                return super().generate_kernel_code_from_nodes(nodes, *args, **kwargs)
            finally:
                self.kernel_type = plain

        def codegen_node_schedule(self, kernel_features: Any) -> Any:
            if self.bridge_collected is None:
                return super().codegen_node_schedule(kernel_features)
            self.bridge_collected.append(kernel_features)
            return None

        def codegen_combo_kernel(self, combo_kernel_node: Any) -> None:
            if not getattr(combo_kernel_node, "bridge_siblings", False):
                return super().codegen_combo_kernel(combo_kernel_node)
            with _own_blocks() as arguments:
                kernel = _shared_launch_kernel()(self.kernel_type, enable_autotune=True, mixed_sizes=True, **arguments)
                for features, options in self._parts(combo_kernel_node.snodes):
                    part = kernel.create_sub_kernel(self._part(features, {**options, **arguments}))
                    self.process_kernel(part, features.node_schedule)
                source = kernel.codegen_kernel()
            name = self.define_kernel(source, [combo_kernel_node], kernel)
            self.codegen_comment(combo_kernel_node.snodes, name)
            kernel.call_kernel(name)
            self.free_buffers_in_scheduler()
            return None

        def _features(self, kernels: list[Any]) -> list[Any]:
            """What the kernels would be generated from alone: codegen_node comes to codegen_node_schedule above."""
            self.bridge_collected = []
            try:
                for kernel in kernels:
                    self.codegen_node(kernel)
                return self.bridge_collected
            finally:
                self.bridge_collected = None

        def _parts(self, kernels: list[Any]) -> list[tuple[Any, dict[str, Any]]]:
            """Features and options of each part; where one keeps its rows in registers, all do that can.

            A looped reduction has the registers of its neighbours, and fewer warps at a time, without using them.
            """
            scored = [(features, _tiling(self, features)) for features in self._features(kernels)]
            kept = any(_keeps_rows(self, features) for features, _ in scored)
            parts = []
            for features, (tiling, scores) in scored:
                options = {"tiling": tiling, "tiling_scores": scores}
                if kept and _is_short_inner_reduction(features, scores):
                    options["override_persistent_reduction"] = True
                parts.append((features, options))
            return parts

        def _part(self, features: Any, options: dict[str, Any]) -> Any:
            """The kernel that would stand alone, over its share of the program ids."""
            tiling = options.pop("tiling")
            options |= {"features": features, "is_combo_kernel": True, "override_cooperative_reduction": False}
            options["pid_cache"] = {"tl.program_id(0)": "x_pid_offset", "tl.program_id(1)": "y_pid_offset"}
            (kernel,) = self.create_kernel_choices(features, [tiling], options)
            return kernel

    return BandScheduling


def _has_free_blocks(kernel_args: list[Any], kernel_kwargs: dict[str, Any]) -> bool:
    """Whether a kernel alone over rows takes the block that it is given: nobody has asked to try several."""
    from torch._inductor import config

    triton = config.triton
    tuned = config.max_autotune or config.max_autotune_pointwise or config.coordinate_descent_tuning
    special = triton.cooperative_reductions or triton.force_cooperative_reductions or triton.multi_kernel
    alone = not kernel_kwargs.get("is_combo_kernel") and "y" not in kernel_args[0]
    return alone and not tuned and not special and torch.version.hip is None


def _fixed_block(rows: int, warps: int) -> Any:
    from torch._inductor.codegen.triton import FixedTritonConfig

    return FixedTritonConfig({"XBLOCK": rows, "num_warps": warps, "num_stages": 1})


# ---------------------------------------------------------------------------------------------------------
# One launch for several kernels
# ---------------------------------------------------------------------------------------------------------


def _tiling(scheduling: Any, features: Any) -> tuple[Any, Any]:
    """(extents of the tile's dimensions, their scores), as codegen_node_schedule asks for them."""
    schedule, numel, reduction_numel = features.node_schedule, features.numel, features.reduction_numel
    return scheduling.get_tiling_and_scores(schedule, numel, reduction_numel, features.coalesce_analysis)


def _keeps_rows(scheduling: Any, features: Any) -> bool:
    """Whether the kernel would be persistent if it stood alone."""
    from torch._inductor.virtualized import V

    if {node.get_name() for node in features.scheduler_nodes()} & scheduling.bridge_persistent_nodes.keys():
        return True
    return features.is_reduction() and V.choices.should_use_persistent_reduction(features, False)


#: Elements of a row up to which Inductor makes a reduction over contiguous elements persistent.
SHORT_ROW = 1024


def _is_short_inner_reduction(features: Any, tiling_scores: Any) -> bool:
    """What Inductor would make persistent if it asked for the hint with the scores, as it does for the blocks."""
    if not features.is_reduction() or not isinstance(features.reduction_numel, (int, sympy.Integer)):
        return False
    return features.reduction_numel <= SHORT_ROW and _is_inner(features, tiling_scores)


def _is_inner(features: Any, tiling_scores: Any) -> bool:
    from torch._inductor.runtime.hints import ReductionHint

    return features.get_reduction_hint(tiling_scores) is ReductionHint.INNER


@contextlib.contextmanager
def _own_blocks() -> Iterator[dict[str, Any]]:
    """Code generation in which every part of a kernel has block sizes of its own; yields arguments that say so.

    torch 2.11 has a configuration for it, later ones an argument of each class.
    """
    from torch._inductor import config
    from torch._inductor.codegen.triton_combo_kernel import ComboKernel

    if _takes(ComboKernel.__init__, "per_subkernel_blocks"):
        yield {"per_subkernel_blocks": True}
        return
    with config.patch(combo_kernel_per_subkernel_blocks=True):
        yield {}


def _takes(function: Any, parameter: str) -> bool:
    return parameter in inspect.signature(function).parameters


@functools.cache
def _shared_launch_kernel() -> type:
    """Inductor's combo kernel; where its runtime tries one configuration only, with several to try."""
    from torch._inductor.codegen.triton_combo_kernel import ComboKernel
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    if hasattr(CachingAutotuner, "_combo_sequential_autotune"):
        return ComboKernel

    class SharedLaunchKernel(ComboKernel):
        def jit_line(self, *args: Any, **kwargs: Any) -> str:
            line = super().jit_line(*args, **kwargs)  # it also decides on the dispatch and fills in the two metas
            joint = joint_configurations([self._configured(part) for part in self.sub_kernels])
            options = [f"{c.blocks!r}, num_warps={c.warps}, num_stages={c.stages}" for c in joint]
            # Inductor names the kernel for what it finds in the source: the comment keeps the name.
            return f"""
                # In the place of {line.split("(")[0].strip()}, which tries one configuration of each part.
                @triton_heuristics.cached_autotune(
                    None,
                    configs=[{", ".join(f"triton_heuristics.Config({o})" for o in options)}],
                    triton_meta={self.triton_meta!r},
                    inductor_meta={self.inductor_meta!r},
                    heuristic_type=triton_heuristics.HeuristicType.POINTWISE,
                    filename=__file__,
                )
                @triton.jit
            """

        def _configured(self, part: Any) -> Part:
            """A part with what Inductor would try for it if it stood alone."""
            from torch._inductor.runtime import triton_heuristics

            heuristics, sizes = self.select_heuristics(part)
            counts = {"num_load": part.num_load, "num_store": part.num_store, "num_reduction": part.num_reduction}
            meta = {**part.inductor_meta_common(), **counts, "tiling_scores": part.tiling_scores}
            arguments = {"triton_meta": self.triton_meta, "inductor_meta": meta, "return_configs": True}
            if part.inside_reduction:
                arguments["reduction_hint"] = part.features.get_reduction_hint(part.tiling_scores)
            # It takes the sizes over, and a part's R blocks out of what it gives where the part's code has them.
            configs = getattr(triton_heuristics, heuristics)(dict(sizes), **arguments)
            code = (part.body, part.loads, part.compute, part.stores, part.post_loop_combine, part.post_loop_store)
            return Part(configs, sizes, sum(len(lines._lines) for lines in code))

    return SharedLaunchKernel


def cannot_share_launch(scheduler: Any, device: torch.device) -> str | None:
    """Why this code generator, as it is configured, cannot have several kernels share a launch; None if it can."""
    from torch._inductor import config
    from torch._inductor.codegen.triton import TritonScheduling

    triton = config.triton
    backend = scheduler.get_backend(device)
    if not isinstance(getattr(backend, "_triton_scheduling", backend), TritonScheduling):
        return f"{type(backend).__name__} has no partition of program ids"
    if triton.cooperative_reductions or triton.force_cooperative_reductions or triton.multi_kernel:
        return "cooperative reductions and multi_kernel need launches of their own"
    if triton.tile_reductions or triton.prefer_nd_tiling or (triton.max_tiles or 2) > 2:
        return "three-dimensional tiles cannot be partitioned"
    if getattr(scheduler, "_multi_stream_nodes", False):
        return "the graph runs on several streams"
    return None


def share_launch(kernels: list[Any]) -> Any:
    """One scheduler node for independent kernels: one launch, whose program ids are divided among them."""
    from torch._inductor.scheduler import ForeachKernelSchedulerNode

    scheduler = kernels[0].scheduler
    _bridge_backend(scheduler, kernels[0].get_device())
    node = ForeachKernelSchedulerNode(scheduler, kernels, use_custom_partition_algo=True, enable_autotune=True)
    node.bridge_siblings = True
    return node


# ---------------------------------------------------------------------------------------------------------
# Kernels in the schedule
# ---------------------------------------------------------------------------------------------------------


def fuse_nodes(nodes: list[Any]) -> Any | None:
    """One kernel of single scheduler nodes, if Inductor's code generator can run them together; else None."""
    backend = nodes[0].scheduler.get_backend(nodes[0].get_device())
    fused = nodes[0]
    for node in nodes[1:]:
        feeds = bool(inductor.buffers_written(fused) & inductor.buffers_read(node))
        can_fuse = backend.can_fuse_vertical if feeds else backend.can_fuse_horizontal
        if not can_fuse(fused, node):
            return None
        fused = backend.fuse(fused, node)
    return fused


def times_fusions(device: torch.device) -> bool:
    """Whether Inductor is told to decide on fusions by timing them, and can."""
    from torch._inductor import config

    return config.benchmark_fusion and inductor.generates_triton(device)


def milliseconds(kernel: Any) -> float:
    """Time of one kernel on random inputs; infinite where registers spill or it cannot be compiled."""
    return kernel.scheduler.benchmark_fused_nodes(kernel.get_nodes())[0]


def replace_kernels(scheduler: Any, nodes: list[Any], fused: dict[int, Any], removed: set[int]) -> list[Any]:
    """The schedule with fused kernels in the place of those they replace.

    fused: position of the first kernel replaced -> the new one; removed: positions of all replaced.
    """
    for kernel in fused.values():
        scheduler.name_to_fused_node.update({n.get_name(): kernel for n in kernel.get_nodes()})
        scheduler.name_to_fused_node[kernel.get_name()] = kernel
    kept = [fused.get(i, node) for i, node in enumerate(nodes) if i in fused or i not in removed]
    return scheduler.topological_sort_schedule(kept)
