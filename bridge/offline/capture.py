"""For `bridge.explain`, `bridge bench --findings` and tests: run Inductor for an absent GPU and keep the code."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from unittest import mock

import torch
from torch.utils import _pytree as pytree

from ..support.fresh_code import fresh_entry
from ..support.gradients import NO_GRADIENT, NoGradient, leaves, tensors_in
from . import _stubs
from .arch import GpuArch, resolve_arch
from .wrapper import TritonKernelSource, WrapperCode, parse_wrapper

#: Stands for each number that depends on data: no data is there, and torch compiles 0 and 1 as special cases.
_UNKNOWN = 2

# Inductor would time candidate paddings on the device.
_NO_BENCHMARKS = {"shape_padding": False}


@dataclasses.dataclass(frozen=True)
class OfflineResult:
    """Hold what Inductor generated for one call of a function."""

    graphs: tuple[WrapperCode, ...]

    @property
    def code(self) -> str:
        """Return the wrapper source, that of all graphs where Dynamo made several."""
        return "\n".join(graph.code for graph in self.graphs)

    @property
    def kernels(self) -> list[TritonKernelSource]:
        """Return the distinct Triton kernels, in order of definition."""
        return [kernel for graph in self.graphs for kernel in graph.kernels]

    @property
    def launches(self) -> list[str]:
        """Return the names of the kernels in the order in which they are launched."""
        return [name for graph in self.graphs for name in graph.launches]

    @property
    def extern_calls(self) -> list[str]:
        """Return the calls of library kernels (``extern_kernels.mm``, ``torch.ops...``)."""
        return [name for graph in self.graphs for name in graph.extern_calls]

    @property
    def n_kernels(self) -> int:
        """Return the number of Triton launches; library calls are not counted."""
        return len(self.launches)


def _number(size: int | torch.SymInt) -> int:
    """Return a size as a number, also of what depends on data."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    return int(expression.subs(dict.fromkeys(expression.free_symbols, _UNKNOWN)))


def _materialize(value: object) -> object:
    """Return a CPU tensor of zeros in place of a fake one; only what is touched takes memory."""
    if not isinstance(value, torch.Tensor):
        return value
    size, stride = tuple(map(_number, value.size())), tuple(map(_number, value.stride()))
    elements = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if all(size) else 0
    if not elements:
        return torch.empty_strided(size, stride, dtype=value.dtype, requires_grad=value.requires_grad)
    zeros = torch.frombuffer(mmap.mmap(-1, elements * value.dtype.itemsize), dtype=torch.uint8)
    return zeros.view(value.dtype).as_strided(size, stride).requires_grad_(value.requires_grad)


def _shape_only(gm: torch.fx.GraphModule) -> Callable:
    """Return a function that has the outputs' shapes of ``gm`` and computes nothing."""

    def run(*args: object) -> object:
        return pytree.tree_map(_materialize, _stubs.run_fake(gm, args))

    return run


def _offline_backend(compile_fx: Callable) -> Callable:
    """Return a Dynamo backend that compiles with ``compile_fx`` but runs nothing."""

    def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[object]) -> Callable:
        # compile_fx takes ownership of its argument.
        runnable = copy.deepcopy(gm)
        compile_fx(gm, example_inputs)
        return _shape_only(runnable)

    return backend


def _generate(
    fn: Callable,
    example_inputs: Sequence[object],
    compile_fx: Callable,
    dynamic: bool | None,
    backward: bool,
) -> None:
    """Have Dynamo trace ``fn`` and hand each graph to ``compile_fx``."""
    compiled = torch.compile(fresh_entry(fn), backend=_offline_backend(compile_fx), dynamic=dynamic)
    with torch.set_grad_enabled(backward):
        results = compiled(*(leaves(example_inputs) if backward else example_inputs))
    if backward and not any(result.requires_grad for result in tensors_in(results)):
        raise NoGradient(NO_GRADIENT)


#: Is entered around the compilation of a backward, and gives what is called when the program runs that backward.
AroundBackward = Callable[[], AbstractContextManager[Callable[[], None]]]


@contextlib.contextmanager
def compiling_for_gpu(
    arch: int | str | GpuArch = "sm_90",
    config_patches: Mapping[str, object] | None = None,
    around_backward: AroundBackward | None = None,
) -> Iterator[list[str]]:
    """Have Inductor, wherever a program calls it inside the block, generate code for a GPU of ``arch``.

    The program itself goes on as in eager mode, which runs no backward of
    Inductor's: that is compiled with its forward. Gives the list of wrapper
    sources, one a graph (``parse_wrapper`` reads them).
    """
    codes: list[str] = []
    ran: list[Callable[[], None]] = []
    module = torch._inductor.compile_fx
    generate = module.compile_fx

    @functools.wraps(generate)
    def compile_fx(
        gm: torch.fx.GraphModule, example_inputs: Sequence[object], *args: object, **kwargs: object
    ) -> Callable:
        runnable = copy.deepcopy(gm)
        ran.clear()
        generate(gm, example_inputs, *args, **kwargs)
        return _watched(runnable.forward, ran[:])

    with (
        _stubs.scratch_caches(),
        torch._functorch.config.patch(force_non_lazy_backward_lowering=True),
        torch._inductor.config.patch({**_NO_BENCHMARKS, **(config_patches or {})}),
        _stubs.codegen_only(resolve_arch(arch), codes),
        mock.patch.object(module, "compile_fx", compile_fx),
        mock.patch.object(module, "compile_fx_backward", _noted(module, around_backward, ran)),
    ):
        yield codes


def _noted(module: ModuleType, around: AroundBackward | None, ran: list[Callable[[], None]]) -> Callable:
    """Return ``module.compile_fx_backward``, with what ``around`` gives added to ``ran``."""
    compile_backward = module.compile_fx_backward
    if around is None:
        return compile_backward

    @functools.wraps(compile_backward)
    def noted(*args: object, **kwargs: object) -> object:
        with around() as note:
            ran.append(note)
            return compile_backward(*args, **kwargs)

    return noted


def _watched(forward: Callable, notes: list[Callable[[], None]]) -> Callable:
    """Return a function that does what ``forward`` does, and calls the notes once, when its backward runs."""

    def tell(_: torch.Tensor) -> None:
        while notes:
            notes.pop()()

    def run(*args: object) -> object:
        outputs = forward(*args)
        for output in pytree.tree_leaves(outputs):
            if notes and isinstance(output, torch.Tensor) and output.grad_fn is not None:
                output.register_hook(tell)
        return outputs

    return run


def compile_for_gpu(  # noqa: PLR0913 - one for each of torch.compile's
    fn: Callable,
    example_inputs: Sequence[object],
    *,
    compile_fx: Callable | None = None,
    arch: int | str | GpuArch = "sm_90",
    dynamic: bool | None = False,
    config_patches: Mapping[str, object] | None = None,
    options: Mapping[str, object] | None = None,
    context: AbstractContextManager | None = None,
    backward: bool = False,
) -> OfflineResult:
    """Generate the code that ``torch.compile(fn)`` would on a GPU of ``arch``.

    Args:
        fn: function or module, compiled for inference (under ``no_grad``), or
            with its backward.
        example_inputs: CPU tensors and other arguments. They are traced, never
            computed with: between graph breaks ``fn`` sees zeros.
        compile_fx: entry used instead of ``torch._inductor.compile_fx.compile_fx``,
            called as a Dynamo backend ``compile_fx(gm, example_inputs)``. It may
            wrap the original one with patches of its own.
        arch: ``"sm_90"`` (H100), ``"sm_80"`` (A100) or a ``GpuArch``.
        dynamic: as in ``torch.compile``; pass None for inputs that went through
            ``torch._dynamo.mark_dynamic``.
        config_patches: values for ``torch._inductor.config``.
        options: the same, spelled as ``torch.compile``'s (dashes allowed).
        context: entered around the whole compilation.
        backward: each graph with its backward; inputs want gradients as
            ``bridge.support.gradients.leaves`` says. NoGradient if no result
            has one.
    """
    gpu = resolve_arch(arch)
    codes: list[str] = []
    patches: dict[str, object] = dict(_NO_BENCHMARKS)
    patches.update({k.replace("-", "_"): v for k, v in (options or {}).items()})
    patches.update(config_patches or {})
    with (
        _stubs.scratch_caches(),
        torch._inductor.config.patch(patches),
        context or contextlib.nullcontext(),
        _stubs.codegen_only(gpu, codes),
        torch._functorch.config.patch(force_non_lazy_backward_lowering=backward),
    ):
        entry = compile_fx or torch._inductor.compile_fx.compile_fx
        _generate(fn, example_inputs, entry, dynamic, backward)
    return OfflineResult(tuple(parse_wrapper(code) for code in codes))
