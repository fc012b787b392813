"""Compile a program for a target, and run what was emitted only where somebody asks for it.

What a kernel costs is the C++ compiler, or the interpreter: a program of which Bridge changed nothing needs neither.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unittest import mock

import torch
import torch._functorch.config
import torch._inductor.config
import torch._inductor.graph
from emitted import on_cpu
from emitted_claims import loop_nests
from interpreted_accesses import Accesses, recorded_accesses
from torch._dynamo.symbolic_convert import InstructionTranslatorBase
from torch._inductor.codecache import PyCodeCache
from torch._inductor.codegen.cpp import OuterLoopFusedSchedulerNode
from torch._inductor.codegen.triton import TritonOverrides
from torch._inductor.scheduler import Scheduler

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.inductor.cpp import COMPARES_LOOPS, each_row_is_kept
from bridge.inductor.memory import SMALLEST_BLOCK, peak_bytes
from bridge.offline import _stubs
from bridge.offline.arch import resolve_arch
from bridge.support.fresh_code import fresh_entry


class NothingChanged(Exception):
    """Stand for a run of code that is all Inductor's: it is raised instead of running that."""


class Peak(NamedTuple):
    """Hold bytes of a graph that live at once: with what kernels overwrite counted once, and twice, as by Inductor."""

    live: int
    counted: int

    def is_above(self, other: Peak) -> bool:
        """Return True for a peak that is higher in what lives, and in one count by a block of the allocator's."""
        more = self.live - other.live
        return more > 0 and max(more, self.counted - other.counted) >= SMALLEST_BLOCK


@dataclass
class Compilation:
    """Hold what one `torch.compile` gave.

    codes: sources of the wrappers, kernels in them; reports: Bridge's, none where it was not asked; run_anyway: has
    what Bridge did not change run too; peaks: of each graph; outside: elements that interpreted kernels touch outside
    of their buffers.
    """

    codes: list[str] = field(default_factory=list)
    reports: list[bridge.Report] = field(default_factory=list)
    run_anyway: bool = True
    peaks: list[Peak] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Return True if a kernel is not as Inductor makes it, if the reports are right."""
        return any(r.fused or r.choices or r.kernels_after != r.kernels_before for r in self.reports)

    @property
    def kernels(self) -> int:
        """Count the launches of generated kernels in the wrappers."""
        return sum(len(re.findall(_LAUNCH, code, re.MULTILINE)) for code in self.codes)

    @property
    def loop_nests(self) -> int:
        """Count the loops of the C++ in the wrappers that are in no other loop."""
        return sum(map(loop_nests, self.codes))

    def check(self) -> None:
        if not self.changed and not self.run_anyway:
            raise NothingChanged


#: A kernel's launch in a wrapper: Triton's, C++'s.
_LAUNCH = r"^\s+(?:\w+\.run\(|cpp_\w+\()"


class _Waiting:
    """Hold the module of a wrapper, which is loaded, and its kernels compiled, at the first call."""

    runner = None
    __file__ = ""

    def __init__(self, code: str, constants: dict[str, Any], compilation: Compilation, interpreted: bool):
        self._code, self._constants, self._compilation = code, constants, compilation
        self._interpreted = interpreted
        self._module: Any = None

    def call(self, args: Any) -> Any:
        self._compilation.check()
        with offline.interpreter() if self._interpreted else contextlib.nullcontext():
            if self._module is None:
                self._module = PyCodeCache.load_by_key_path(*PyCodeCache.write(self._code), attrs=self._constants)
            return self._module.call(args)


def _capture(graph: Any, compilation: Compilation, emitted: bool) -> _Waiting:
    """Replace GraphLowering.compile_to_module."""
    with _noted_peak(compilation.peaks):
        code = graph.codegen()[0].value
    compilation.codes.append(code)
    graph.cache_key, graph.cache_path, graph.cache_linemap = "", "", []
    constants = {**graph.constants, **getattr(graph, "torchbind_constants", {})}
    return _Waiting(on_cpu(code) if emitted else code, constants, compilation, emitted)


@contextlib.contextmanager
def _noted_peak(peaks: list[Peak]) -> Iterator[None]:
    """Add the peak of a graph that is emitted: counted before, as no result overwrites what has been freed by then."""
    codegen, found = Scheduler.codegen, [Peak(0, 0)]

    def counted(scheduler: Scheduler) -> Any:
        found.append(Peak(*(peak_bytes(scheduler.nodes, in_place) for in_place in (True, False))))
        return codegen(scheduler)

    with mock.patch.object(Scheduler, "codegen", counted):
        yield
    peaks.append(max(found))


def _autograd_options(training: bool) -> dict[str, bool]:
    """Return options without a cache; a backward graph is compiled with its forward graph, if this torch can do so."""
    both = "force_non_lazy_backward_lowering"
    return {"enable_autograd_cache": False} | ({both: training} if hasattr(torch._functorch.config, both) else {})


def _header(self: Any, lineno: int | None = None) -> str:
    """Return where Dynamo is, without the function's name: it would parse all of the database's file for that."""
    return f"{self.f_code.co_filename}:{self.lineno if lineno is None else lineno}"


@contextlib.contextmanager
def _target(target: str, training: bool, compilation: Compilation) -> Iterator[None]:
    """Make Inductor emit code for a target; backward graphs cannot be moved to a GPU that is not there."""
    emitted = target == "triton" and not training
    capture = functools.partialmethod(lambda graph: _capture(graph, compilation, emitted))
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(InstructionTranslatorBase, "get_line_of_code_header", _header))
        stack.enter_context(torch._inductor.config.patch(fx_graph_cache=False, shape_padding=False))
        stack.enter_context(torch._functorch.config.patch(_autograd_options(training)))
        if emitted:
            stack.enter_context(_stubs.scratch_caches())
            stack.enter_context(_stubs.codegen_only(resolve_arch("sm_90"), []))
        elif target == "triton":
            stack.enter_context(offline.interpreter())
        stack.enter_context(mock.patch.object(torch._inductor.graph.GraphLowering, "compile_to_module", capture))
        yield


def _backend(compilation: Compilation, options: dict[str, Any] | None) -> Any:
    """Return the backend: Inductor where there are no options of Bridge's."""
    if options is None:
        return "inductor"

    def compile_graph(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        compiled = bridge_backend(gm, list(example_inputs), options=options)
        report = bridge.report()
        assert report is not None
        compilation.reports.append(report)
        return compiled

    return compile_graph


def run(
    function: Callable[..., Any],
    execute: Callable[[Callable[..., Any]], Any],
    target: str,
    compilation: Compilation,
    options: dict[str, Any] | None,
    training: bool = False,
) -> Any:
    """Return what `execute` returns of the compiled function; raise NothingChanged where Bridge left all to Inductor.

    options: of Bridge; None: Inductor without it.
    """
    torch._dynamo.reset()
    results = None
    own = _rows_kept() if options is None else contextlib.nullcontext()
    with _target(target, training, compilation), _touched(target) as touched, warnings_off(), drawing_alike(), own:
        backend = _backend(compilation, options)
        compiled = torch.compile(fresh_entry(function), backend=backend, dynamic=False, fullgraph=True)
        # An error that leaves Inductor's temporary cache has it kept.
        with contextlib.suppress(NothingChanged):
            results = execute(compiled)
        compilation.outside = touched.outside()
        PyCodeCache.cache_clear()
        PyCodeCache.modules.clear()
    if results is None:
        raise NothingChanged
    return results


def _touched(target: str) -> contextlib.AbstractContextManager[Accesses]:
    """Record, of kernels that are interpreted, what they touch; nothing of others."""
    return recorded_accesses(whole=True) if target == "triton" else contextlib.nullcontext(Accesses())


@contextlib.contextmanager
def drawing_alike() -> Iterator[None]:
    """Make Inductor draw the random numbers that Bridge's graphs have, in kernels of one dimension, too."""
    name = "_can_use_4x_random"
    alike = mock.patch.object(TritonOverrides, name, lambda: False) if hasattr(TritonOverrides, name) else None
    with alike or contextlib.nullcontext():
        yield


def _rows_kept() -> contextlib.AbstractContextManager[object]:
    """Make Inductor's C++ kernels come apart where its own numbers would be wrong, as Bridge does in its graphs."""
    compare = getattr(OuterLoopFusedSchedulerNode, COMPARES_LOOPS)
    method = functools.partialmethod(lambda node, *args: each_row_is_kept(functools.partial(compare, node), *args))
    return mock.patch.object(OuterLoopFusedSchedulerNode, COMPARES_LOOPS, method)


@contextlib.contextmanager
def warnings_off() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def difference(ours: Compilation, theirs: Compilation) -> str | None:
    """Return the first lines in which two compilations' code differs; None where it is the same."""
    lines = [[line for code in c.codes for line in normalized(code).splitlines()] for c in (ours, theirs)]
    pairs = itertools.zip_longest(*lines, fillvalue="")
    return next((f"{their.strip()!r}, not {our.strip()!r}" for our, their in pairs if our != their), None)


def normalized(code: str) -> str:
    """Return a wrapper's source without what differs from one compilation to the next."""
    code = re.sub(r"/\S*?/(\w+\.(?:h|py|cpp))", r"\1", code)
    code = re.sub(r"^ *#.*$", "", code, flags=re.MULTILINE)
    return re.sub(r"'?(?:kernel_name|backend_hash|config_filename|inductor_hash)'?[=:] *'[^']*'", "", code)
