"""Put several kernels into one launch: Inductor's combo kernel, with blocks of each part's own."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import sympy
import torch

from ...inductor.derived import code_generator
from ...inductor.numerics import is_deterministic
from ...inductor.protocols import KernelFeatures, Scheduler, Scores, TritonCodeGenerator
from ...inductor.sizes import spelled_out
from .configurations import ENOUGH_BLOCKS, Part, joint_configurations

if TYPE_CHECKING:
    from torch._inductor.codegen.triton import TritonKernel


def tiling_and_scores(
    scheduling: TritonCodeGenerator, features: KernelFeatures
) -> tuple[Mapping[str, sympy.Expr], Scores]:
    """Return (extents of the tile's dimensions, their scores), as codegen_node_schedule asks for them, of two at most.

    A partition of program ids has no third dimension; Inductor chooses three where it has analysed what coalesces.
    """
    from torch._inductor import config

    schedule, numel, reduction_numel = features.node_schedule, features.numel, features.reduction_numel
    with config.patch({"triton.max_tiles": min(config.triton.max_tiles or 2, 2)}):
        return scheduling.get_tiling_and_scores(schedule, numel, reduction_numel, features.coalesce_analysis)


def has_third_dimension(scheduling: TritonCodeGenerator, features: KernelFeatures) -> bool:
    """Return True if the tile of a kernel has three dimensions alone, of which it would lose one in a shared launch.

    Inductor has them where what is contiguous in one load is not in another: two gradients of T5's softmax, each with a
    bias whose heads are side by side, took 8 and 11 us, and 34 in a launch (an H200). Not of rows that Bridge keeps:
    what lies across memory was counted then.
    """
    if _has_kept_rows(scheduling, features):
        return False
    own = scheduling.get_tiling_and_scores(
        features.node_schedule, features.numel, features.reduction_numel, features.coalesce_analysis
    )[0]
    return len(own) > len(tiling_and_scores(scheduling, features)[0])


def _has_kept_rows(scheduling: TritonCodeGenerator, features: KernelFeatures) -> bool:
    """Return True if Bridge keeps the rows of a kernel in registers."""
    return bool({node.get_name() for node in features.scheduler_nodes()} & scheduling.bridge_persistent_nodes.keys())


def is_persistent(scheduling: TritonCodeGenerator, features: KernelFeatures, scores: Scores) -> bool:
    """Return True if the kernel would be persistent alone, and may be in a shared launch: no symbolic length."""
    if _has_kept_rows(scheduling, features):
        return True
    if not features.is_reduction() or not has_static_rows(features):
        return False
    return is_chosen_persistent(features, scores)


def is_chosen_persistent(features: KernelFeatures, scores: Scores) -> bool:
    """Return True if Inductor, where nobody tells it, makes a reduction persistent."""
    from torch._inductor.virtualized import V

    if hasattr(features, "with_tiling_scores"):  # from torch 2.14 on they decide, too
        features = features.with_tiling_scores(scores)
    return V.choices.should_use_persistent_reduction(features, False)


#: Elements of a row up to which Inductor makes a reduction over contiguous elements persistent.
SHORT_ROW = 1024

#: Parts that share a body which each of them has for itself, at most: it is compiled as often.
MOST_INLINED = 2


def has_static_rows(features: KernelFeatures) -> bool:
    """Return True if the length of a kernel's rows is a number."""
    return isinstance(features.reduction_numel, (int, sympy.Integer))


def is_short_inner_reduction(features: KernelFeatures, tiling_scores: Scores) -> bool:
    """Return True if Inductor would make a kernel persistent, asked for the hint with the scores as for the blocks."""
    if not features.is_reduction() or not has_static_rows(features):
        return False
    return features.reduction_numel <= SHORT_ROW and is_inner(features, tiling_scores)


def is_inner(features: KernelFeatures, tiling_scores: Scores) -> bool:
    """Return True if Inductor takes a reduction for one over contiguous elements."""
    from torch._inductor.runtime.hints import ReductionHint

    return features.get_reduction_hint(tiling_scores) is ReductionHint.INNER


@contextlib.contextmanager
def own_blocks() -> Iterator[dict[str, bool]]:
    """Generate code in which every part of a kernel has block sizes of its own; yields arguments that say so.

    torch 2.11 has a configuration for it, later ones an argument of each class.
    """
    from torch._inductor import config
    from torch._inductor.codegen.triton_combo_kernel import ComboKernel

    if _takes(ComboKernel.__init__, "per_subkernel_blocks"):
        yield {"per_subkernel_blocks": True}
        return
    with config.patch(combo_kernel_per_subkernel_blocks=True):
        yield {}


def _takes(function: Callable[..., object], parameter: str) -> bool:
    return parameter in inspect.signature(function).parameters


@functools.cache
def shared_launch_kernel() -> type:
    """Return Inductor's combo kernel with several configurations to try, each of blocks for all of its parts.

    Inductor's tries one (torch 2.11), or the blocks of one part after the other (from 2.13 on) while those of the rest
    are the least: what the rest costs then hides what is better for the part.
    """
    from torch._inductor.codegen.triton_combo_kernel import ComboKernel

    class SharedLaunchKernel(ComboKernel):
        def codegen_kernel(self, name: str | None = None) -> str:
            """Return the source, in which bodies that few parts share are no functions that are called."""
            return with_inlined(super().codegen_kernel(name))

        def jit_line(self, *args: object, **kwargs: Any) -> str:
            """Return the lines before the kernel, which have its configurations."""
            kwargs["signature"] = [_as_alone(argument) for argument in kwargs["signature"]]
            line = super().jit_line(*args, **kwargs)  # it also decides on the dispatch and fills in the two metas
            if self.inductor_meta["combo_grid_meta"]["default_config"] is not None:  # chosen as the graph is compiled
                return line
            joint = joint_configurations([self._configured(part) for part in self.sub_kernels])
            options = [f"{c.blocks!r}, num_warps={c.warps}, num_stages={c.stages}" for c in joint]
            # Inductor names the kernel for what it finds in the source: the comment keeps the name.
            return f"""
                # In the place of {line.split("(")[0].strip()}, which tries the parts one after the other.
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

        def _configured(self, part: TritonKernel) -> Part:
            """Return a part with what would be tried for it alone: the block of Bridge's, or those of Inductor's."""
            code = (part.body, part.loads, part.compute, part.stores, part.post_loop_combine, part.post_loop_store)
            heuristics, sizes = self.select_heuristics(part)
            configs = _own_block(part, sizes) or self._tried(part, heuristics, sizes)
            return Part(configs, sizes, sum(len(lines._lines) for lines in code))

        def _tried(self, part: TritonKernel, heuristics: str, sizes: dict[str, int]) -> list[Any]:
            """Return the configurations that Inductor would try."""
            from torch._inductor.runtime import triton_heuristics

            meta = {**part.inductor_meta_common(), **_said_of(part)}
            arguments = {"triton_meta": self.triton_meta, "inductor_meta": meta, "return_configs": True}
            if part.inside_reduction:
                arguments["reduction_hint"] = part.features.get_reduction_hint(part.tiling_scores)
            # It takes the sizes over, and a part's R blocks out of what it gives where the part's code has them.
            return getattr(triton_heuristics, heuristics)(dict(sizes), **arguments)

    return SharedLaunchKernel


def with_inlined(source: str) -> str:
    """Return the source of a kernel whose parts are functions (torch 2.15), with those inlined that few parts share.

    The kernel may have a name that is to be replaced by its own. A function has registers that it keeps for whoever
    calls it: EDM's losses had 37 a thread, and not 32, with which a multiprocessor has three blocks of 16 warps and not
    four (76 us, and 70 inlined, on an H200).
    """

    def marked(function: re.Match[str]) -> str:
        calls = source.count(f"{function[1]}(") - 1  # it is defined, too
        return function[0].replace("(noinline=True)", "") if calls <= MOST_INLINED else function[0]

    return re.sub(r"@triton\.jit\(noinline=True\)\ndef ([^(]+)\(", marked, source)


def _as_alone(argument: Any) -> Any:
    """Return an argument as a kernel of its own has it: of a size, what it is computed from.

    Triton is told which sizes are multiples of 16, and of 128 * s0 under the name ps0 nobody knows it: each element
    was then loaded alone, after a division of 64 bits (decoding of Llama 3 with symbolic sizes: 51 us for 8).
    """
    from torch._inductor.codegen.common import SizeArg

    if not isinstance(argument, SizeArg):
        return argument
    return dataclasses.replace(argument, expr=spelled_out(argument.expr))


def _said_of(part: TritonKernel) -> dict[str, Any]:
    """Return what Inductor's runtime is told of a kernel, such as the least blocks of its tensor descriptors.

    Before torch 2.13 there is no function for it.
    """
    if hasattr(part, "inductor_meta_per_kernel"):
        return part.inductor_meta_per_kernel()
    counts = {"num_load": part.num_load, "num_store": part.num_store, "num_reduction": part.num_reduction}
    return {**counts, "tiling_scores": part.tiling_scores}


def _own_block(part: TritonKernel, sizes: dict[str, int]) -> list[Any]:
    """Return the one configuration that Bridge has chosen for a part; none where it has not.

    Nor where its programs are few, as in decoding: then the launch is timed with the smaller blocks of Inductor's, too.
    Nor where a tensor descriptor needs more rows: its innermost dimension has 16 bytes at least.
    """
    from torch._inductor.runtime import triton_heuristics

    if part.bridge_block is None:
        return []
    rows, warps = part.bridge_block
    if sizes["x"] < rows * ENOUGH_BLOCKS or rows < _said_of(part).get("tma_min_block_sizes", {}).get("XBLOCK", 1):
        return []
    return [triton_heuristics.Config({"XBLOCK": rows}, num_warps=warps, num_stages=1)]


def cannot_share_launch(scheduler: Scheduler, device: torch.device) -> str | None:
    """Return why this code generator, as it is configured, cannot have several kernels share a launch.

    None if it can.
    """
    from torch._inductor import config
    from torch._inductor.codegen.triton import TritonScheduling

    triton = config.triton
    backend = scheduler.get_backend(device)
    if not isinstance(code_generator(scheduler, device), TritonScheduling):
        return f"{type(backend).__name__} has no partition of program ids"
    if is_deterministic():
        return "deterministic: its warps would be chosen by timing, and sums are in an order by warps"
    if triton.cooperative_reductions or triton.force_cooperative_reductions or triton.multi_kernel:
        return "cooperative reductions and multi_kernel need launches of their own"
    if triton.tile_reductions or triton.prefer_nd_tiling or (triton.max_tiles or 2) > 2:
        return "three-dimensional tiles cannot be partitioned"
    return None
