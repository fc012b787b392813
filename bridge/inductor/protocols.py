"""Declare what Bridge asks of Inductor's objects: names for them, as protocols.

Inductor's own classes differ between versions of torch and are heavy to import. A `Kernel` is an entry of the schedule:
a scheduler node that was not fused, or a fused one. A `LoopNode` is one loop nest in it. Private members stand here,
too: only bridge/inductor and the classes of lowering/triton use them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import sympy
    import torch
    from torch.fx import Graph as FxGraph
    from torch.fx import GraphModule

#: The extents of the iteration loops and of the reduction loops.
Sizes: TypeAlias = "tuple[Sequence[sympy.Expr], Sequence[sympy.Expr]]"

#: What Inductor scores the dimensions of a tile with.
Scores: TypeAlias = "Mapping[str, sympy.Expr] | None"


class Dependency(Protocol):
    """Describe an access to a buffer: Inductor's MemoryDep. Its other dependencies have a name only."""

    name: str
    index: sympy.Expr
    var_names: Sequence[sympy.Symbol]
    size: Sequence[sympy.Expr]

    def normalize(self) -> Dependency: ...


class ReadWrites(Protocol):
    """Describe the accesses of a kernel."""

    reads: Collection[Dependency]
    writes: Collection[Dependency]


class LoopBody(Protocol):
    """Describe the loops of one loop node: extents, index expressions, and the ops that a call of it runs."""

    sizes: Sizes
    iter_vars: Sequence[sympy.Symbol]
    reduce_vars: Sequence[sympy.Symbol]
    indirect_vars: Sequence[sympy.Symbol]
    var_ranges: Mapping[sympy.Symbol, sympy.Expr]
    indexing_exprs: Mapping[str, sympy.Expr]
    memory_usage: Mapping[Any, Sequence[Any]]
    root_block: LoopBlock
    subblocks: Mapping[str, LoopBlock]
    has_partial_accumulate: bool

    def __call__(self, *indices: Sequence[sympy.Symbol]) -> Any: ...

    def merge_loops(self) -> LoopBody: ...

    def has_op(self, name: str) -> bool: ...


class LoopBlock(Protocol):
    """Describe a part of a loop body; graph: its ops."""

    graph: FxGraph


class MemorySize(Protocol):
    """Describe bytes of a buffer, as Inductor's estimate of memory counts them."""

    size_alloc: int
    size_free: int


class User(Protocol):
    """Describe a use of a buffer."""

    node: Named
    is_weak: bool
    can_inplace: bool


class Buffer(Protocol):
    """Describe a buffer of the schedule: Inductor's SchedulerBuffer. node: its IR."""

    node: Any
    users: list[User]
    defining_op: LoopNode | None
    mpi_buffer: MemorySize

    def get_name(self) -> str: ...

    def get_mutations(self) -> Sequence[str]: ...

    def get_aliases(self) -> Sequence[str]: ...

    def defining_op_name(self) -> str: ...


class Named(Protocol):
    """Describe an entry of the schedule, or a part of one."""

    def get_name(self) -> str: ...

    def get_device(self) -> torch.device: ...


class Kernel(Named, Protocol):
    """Name what becomes one kernel: Inductor's BaseSchedulerNode. group: its device and the extents of its loops."""

    scheduler: Scheduler
    read_writes: ReadWrites
    ancestors: Collection[str]
    unmet_dependencies: Collection[Dependency]
    group: tuple[torch.device, Sequence[sympy.Expr]]

    def get_nodes(self) -> Sequence[LoopNode]: ...

    def get_outputs(self) -> Sequence[Buffer]: ...

    def get_operation_names(self) -> set[str]: ...

    def get_buffer_names(self) -> set[str]: ...

    def is_template(self) -> bool: ...

    def is_extern(self) -> bool: ...

    def is_foreach(self) -> bool: ...

    def is_reduction(self) -> bool: ...


class LoopNode(Kernel, Protocol):
    """Describe one loop nest: Inductor's SchedulerNode. node: its IR."""

    node: Any
    _body: LoopBody
    _sizes: Sizes
    _loop_state_gen: int

    def refresh_dependencies(self, normalize: bool, need_clear_tiling_cache: bool) -> None: ...


class LaunchNode(Kernel, Protocol):
    """Describe several kernels in one launch: Inductor's ForeachKernelSchedulerNode."""

    snodes: list[Kernel]


Schedule: TypeAlias = list[Kernel]


class CodeGenerator(Protocol):
    """Name what generates a device's code: Inductor's BaseScheduling."""

    def group_fn(self, sizes: Sizes) -> Sequence[sympy.Expr]: ...

    def can_fuse_vertical(self, one: Kernel, other: Kernel) -> bool: ...

    def can_fuse_horizontal(self, one: Kernel, other: Kernel) -> bool: ...

    def fuse(self, one: Kernel, other: Kernel) -> Kernel: ...

    def codegen_node(self, kernel: Kernel) -> None: ...


class TritonCodeGenerator(CodeGenerator, Protocol):
    """Describe Inductor's TritonScheduling, of Bridge's class (lowering/triton/codegen.py)."""

    bridge_persistent_nodes: dict[str, Any]
    bridge_inner_nodes: dict[str, Any]
    bridge_wide_nodes: set[str]
    bridge_sum_nodes: dict[str, int]
    bridge_collected: list[KernelFeatures] | None
    kernel_type: Any

    def bridge_takes_for_inner(self, kernel: Kernel) -> bool: ...

    def bridge_has_its_tiles(self, kernels: Sequence[Kernel]) -> bool: ...

    def create_kernel_choices(
        self, kernel_features: KernelFeatures, kernel_args: Sequence[Any], kernel_kwargs: dict[str, Any]
    ) -> list[Any]: ...

    def get_tiling_and_scores(self, *features: object) -> tuple[Mapping[str, sympy.Expr], Scores]: ...


class KernelFeatures(Protocol):
    """Name what a Triton kernel is generated from: Inductor's SIMDKernelFeatures."""

    node_schedule: Sequence[Any]
    numel: sympy.Expr
    reduction_numel: sympy.Expr
    coalesce_analysis: Any

    def scheduler_nodes(self) -> Sequence[LoopNode]: ...

    def is_reduction(self) -> bool: ...

    def get_reduction_hint(self, tiling_scores: Scores) -> Any: ...

    def with_tiling_scores(self, tiling_scores: Scores) -> KernelFeatures: ...


class Scheduler(Protocol):
    """Describe Inductor's scheduler of one graph."""

    nodes: Schedule
    current_node: Kernel | None
    backends: dict[torch.device, CodeGenerator]
    name_to_fused_node: dict[str, Kernel]
    name_to_buf: dict[str, Buffer]
    name_to_donated_buffer: dict[str, Buffer]
    mutation_real_name: dict[str, str]
    codegen: Callable[[], None]

    def get_backend(self, device: torch.device) -> CodeGenerator: ...

    def can_buffer_be_removed_through_fusion(self, name: str, operations: set[str]) -> bool: ...

    def topological_sort_schedule(self, kernels: Schedule) -> Schedule: ...

    def benchmark_fused_nodes(self, nodes: Sequence[LoopNode]) -> tuple[float, str]: ...


class CppProxy(Protocol):
    """Describe the loops of a C++ kernel, as they are split for vectors: Inductor's CppKernelProxy."""

    loop_nest: Any


class Wrapper(Protocol):
    """Describe the code around a graph's kernels: Inductor's PythonWrapperCodegen."""

    lines: list[Any]

    def can_reuse(self, input_buffer: Any, output_buffer: Any) -> bool: ...

    def push_codegened_graph(self, graph: Graph) -> None: ...


class Graph(Protocol):
    """Describe a graph that is being lowered: Inductor's GraphLowering."""

    module: GraphModule
    scheduler: Scheduler
    wrapper_code: Wrapper
    sizevars: Any
    removed_buffers: set[str]
    removed_operations: set[str]
    inplaced_to_remove: set[str]

    def init_wrapper_code(self) -> None: ...

    def _update_scheduler(self) -> None: ...
