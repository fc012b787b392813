"""What Bridge asks of Inductor's scheduler: names for its objects, as protocols.

Inductor's own classes differ between versions of torch and are heavy to import. A `Kernel` is an entry of the schedule:
a scheduler node that was not fused, or a fused one. A `LoopNode` is one loop nest in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias


class Named(Protocol):
    """An entry of the schedule, or a part of one."""

    def get_name(self) -> str: ...

    def get_device(self) -> Any: ...


class LoopNode(Named, Protocol):
    """One loop nest: Inductor's SchedulerNode."""

    node: Any
    scheduler: Any


class Kernel(Named, Protocol):
    """What becomes one kernel: Inductor's BaseSchedulerNode."""

    scheduler: Any

    def get_operation_names(self) -> set[str]: ...

    def get_nodes(self) -> Sequence[LoopNode]: ...


Schedule: TypeAlias = list[Kernel]
