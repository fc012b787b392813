"""Hold what Bridge replaces in torch: nothing else in the package puts a function in the place of one of torch's.

Each has its reason, and is undone where the call that needs it ends; test_patches.py checks that.

- `joining_less`: `sizevars.join_dimensions`, a function of a module, which has no hook. Tracing a loop body calls it
  for each index, and it compares every two terms by patterns, which takes milliseconds. All threads see the
  replacement as long as one of them traces; it gives what the original gives.
- `allocating_nothing`: two methods of one wrapper, which is made for a trial. They ask the schedule for the place of
  the kernel, and a trial's kernel has none. Inductor chooses the class of a wrapper by device, for the whole process.
- `replace_next_call`: a method of one object, for its next call. The wrapper plans the reuse of memory
  (`memory_plan_reuse`) from an estimate that it makes itself just before; the scheduler generates code (`codegen`) with
  nothing around it, and looks for groups (`process_grouped_nodes`) when it has ordered its kernels by an estimate of
  memory; a C++ kernel writes one loop nest where `check_outer_fusion_loop_level_attr` lets it, also where a buffer of
  one row is for several; a graph's `process_inputs` is the first that its lowering calls. None has a hook. All are
  objects of one compilation, and are referred to from everywhere in it: none of a derived class can take their place.
- `before_removals`: no function, but an attribute of one scheduler, that it has only after fusion. A code generator
  that is asked earlier whether it takes a kernel for a reduction over contiguous elements reads it.
- `generating_nothing`: one method of a code generator, which is asked what it would generate a kernel from. It has no
  hook, and a derived class would have other kernels of the graph draw other random numbers.

No function is replaced for longer. What is set while Bridge is installed are two values of Inductor's configuration, in
`hooks`; offline tools stand for a GPU that is not there by mocks of their own (bridge/offline/_stubs.py).
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import sympy
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

#: For all that is replaced: held while it is put in place or taken back, not in between.
_lock = threading.RLock()


@contextlib.contextmanager
def _replaced(owner: object, **functions: Callable[..., object]) -> Iterator[None]:
    """Have attributes of an object of torch's be these functions in the block."""
    with _lock:
        own = {name: value for name, value in vars(owner).items() if name in functions}
        vars(owner).update(functions)
    try:
        yield
    finally:
        with _lock:  # never without the attribute, where it is the owner's own: other threads may ask for it
            vars(owner).update(own)
            for name in functions.keys() - own.keys():
                del vars(owner)[name]


@dataclass(frozen=True, eq=False)
class _NextCall:
    """Stand in an object for its method; own: the object's own attribute of that name, if it has one."""

    owner: object
    name: str
    replacement: Callable[..., object]
    own: dict[str, object]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        with _lock:
            del vars(self.owner)[self.name]
            vars(self.owner).update(self.own)
        return self.replacement(getattr(self.owner, self.name), *args, **kwargs)


def replace_next_call(owner: object, name: str, replacement: Callable[..., object]) -> None:
    """Have the next call of an object's method go to the replacement, which is given the method and its arguments.

    The method is the object's own again before the replacement runs. Does nothing where the next call is replaced.
    """
    with _lock:
        own = {key: value for key, value in vars(owner).items() if key == name}
        if not isinstance(own.get(name), _NextCall):
            vars(owner)[name] = _NextCall(owner, name, replacement, own)


@contextlib.contextmanager
def allocating_nothing(wrapper: object) -> Iterator[None]:
    """Have a wrapper write no allocations in the block: for the code of a kernel that is not in its schedule."""

    def nothing(*_: object) -> None:
        return None

    with _replaced(wrapper, codegen_allocation=nothing, codegen_inplace_reuse=nothing):
        yield


_joining = 0
_joining_undone = contextlib.ExitStack()


@contextlib.contextmanager
def joining_less() -> Iterator[None]:
    """Have Inductor join dimensions by `join`; the last of the threads that are in here at once undoes it."""
    _count_joining(1)
    try:
        yield
    finally:
        _count_joining(-1)


def _count_joining(more: int) -> None:
    from torch._inductor import sizevars

    global _joining
    with _lock:
        before, _joining = _joining, _joining + more
        if before == 0:
            replacement = functools.partial(join, sizevars.join_dimensions)
            _joining_undone.enter_context(_replaced(sizevars, join_dimensions=replacement))
        elif _joining == 0:
            _joining_undone.close()


def join(join_dimensions: Callable[[sympy.Expr], sympy.Expr], expr: sympy.Expr) -> sympy.Expr:
    """Return what Inductor's function gives, which is asked only where two terms may be joined.

    They may where they divide the same, as `x // 7 % 8` and `x % 7`.
    """
    factors = [factor for term in sympy.Add.make_args(expr) for factor in sympy.Mul.make_args(term)]
    dividends = {factor.args[:2] for factor in factors if isinstance(factor, (ModularIndexing, FloorDiv))}
    upper = {(f.args[0], f.args[1] * f.args[2]) for f in factors if isinstance(f, ModularIndexing)}
    return expr if dividends.isdisjoint(upper) else join_dimensions(expr)


@contextlib.contextmanager
def before_removals(scheduler: Any) -> Iterator[None]:
    """Let a code generator be asked about a kernel while kernels are fused: no operation has been removed by then.

    Inductor sets the attribute when that is over.
    """
    if hasattr(scheduler, "removed_ops"):
        yield
        return
    scheduler.removed_ops = set()
    try:
        yield
    finally:
        del scheduler.removed_ops


@contextlib.contextmanager
def generating_nothing(code_generator: object) -> Iterator[list[Any]]:
    """Have a Triton code generator collect what it would generate kernels from, in place of generating them."""
    collected: list[Any] = []
    with _replaced(code_generator, codegen_node_schedule=collected.append):
        yield collected
