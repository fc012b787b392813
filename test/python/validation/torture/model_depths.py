"""Give fewer blocks for architectures of timm, by rules on the names of what their constructors take.

As in `model_configs`, a value is known by its name alone, at any depth of dictionaries and dataclasses. What cannot be
built with fewer blocks is built with all of them: see `model_zoo`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

#: Blocks of a stage that are kept: two, as what follows a block is often fused with its last kernel.
BLOCKS = 2

#: Numbers of blocks: of all, or of each stage.
_COUNTS = re.compile(
    r"(?:\w+_)?(?:depths?|layers|stages|num_blocks|modules|block_per_stage)"
    r"|depth_list|num_blocks_list|block_config|levels|k_sec|d"
)

#: Lists of the blocks themselves, one for each stage.
_STAGES = re.compile(r"block_args|cfgs")

#: Positions of blocks of another kind, or the first of them.
_POSITIONS = re.compile(r"local_up_to_layer|global_attn_indexes")


@contextlib.contextmanager
def fewer_blocks(kind: type) -> Iterator[None]:
    """Make modules of exactly that class with fewer blocks than their constructor is asked for."""
    original = kind.__init__  # type: ignore[misc]
    signature = inspect.signature(original)

    def construct(module: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(module, *args, **kwargs)
        if type(module) is kind:
            given.apply_defaults()
            given.arguments.update(shallow(given.arguments))
        original(*given.args, **given.kwargs)

    with mock.patch.object(kind, "__init__", construct):
        yield


def shallow(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same values with at most BLOCKS blocks in each stage; nothing given is changed."""
    return {name: _value(str(name), value) for name, value in values.items()}


def _value(name: str, value: Any) -> Any:
    if _STAGES.fullmatch(name) and isinstance(value, (list, tuple)):
        return type(value)(stage[:BLOCKS] for stage in value)
    if _COUNTS.fullmatch(name) and _are_numbers(value):
        return _at_most(value, BLOCKS)
    if _POSITIONS.fullmatch(name) and _are_numbers(value):
        return _at_most(value, BLOCKS - 1)
    if isinstance(value, dict):
        return shallow(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        return dataclasses.replace(value, **shallow(fields))
    if isinstance(value, (list, tuple)) and any(map(dataclasses.is_dataclass, value)):
        return type(value)(_value("", part) for part in value)
    return value


def _are_numbers(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_are_numbers, value))
    return isinstance(value, int) and not isinstance(value, bool)


def _at_most(value: Any, most: int) -> Any:
    """Limit a number, or each of the numbers of lists; one that is not positive stays."""
    return type(value)(_at_most(v, most) for v in value) if isinstance(value, (list, tuple)) else min(value, most)
