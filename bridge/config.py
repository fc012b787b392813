"""Bridge's options: one dataclass, validated, from `options=`, `bridge.enabled(...)` or the environment."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

#: The passes, as `bridge-opt --pass-pipeline` takes them.
DEFAULT_PIPELINE = "builtin.module(bridge-fuse)"

#: What the default becomes for a code generator that emits loop nests (C++): see `bridge-share-row-values`.
LOOP_NEST_PIPELINE = "builtin.module(bridge-fuse{share-row-values=true lane-guards=false})"


class OptionError(ValueError):
    """An option that is unknown or has a bad value; the message names it and what is valid."""


@dataclass(frozen=True)
class Options:
    """What a user can choose.

    dump_dir: folder for the numbered stages of every compilation, or None (env BRIDGE_DUMP_DIR).  Inductor's
        caches are not used then: a compilation that they answer has no stages.
    isolate: run the passes in a helper process, so that not even a crash or a hang of theirs is the user's.
    max_accesses: groups with more loads and stores than this are left alone.
    persistent: let a fused kernel keep its row in registers where that is expected to be faster.
    pipeline: the MLIR pass pipeline.
    recheck: have isl prove every fusion again, and leave apart what it does not; needs islpy.
    strict: raise where an invariant of Bridge is broken instead of falling back (env BRIDGE_STRICT).
    training: also look at training graphs.
    unfused_rows: with `persistent`, also kernels that Bridge does not fuse keep a row that they read several times.
    max_nodes: groups with more scheduler nodes than this are left alone.
    """

    dump_dir: str | None = None
    isolate: bool = False
    max_accesses: int = 2048
    persistent: bool = True
    pipeline: str = DEFAULT_PIPELINE
    recheck: bool = False
    strict: bool = False
    training: bool = False
    unfused_rows: bool = True
    max_nodes: int = 64

    @staticmethod
    def names() -> list[str]:
        return [f.name for f in dataclasses.fields(Options)]

    def deciding(self) -> dict[str, Any]:
        """The options that a compilation's result depends on."""
        return {name: getattr(self, name) for name in self.names() if name not in ("dump_dir", "strict")}


_ENVIRONMENT = {"dump_dir": "BRIDGE_DUMP_DIR", "strict": "BRIDGE_STRICT"}
_PREFIX = "bridge."


def split_options(
    options: Mapping[str, Any] | None, inductors: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(ours, Inductor's); `bridge.x` is always ours, a bare `x` is where Inductor (`inductors`) has no such option.

    OptionError for an option that is neither's, both's, or given twice.
    """
    ours: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    for key, value in (options or {}).items():
        name = key.replace("-", "_")
        if not _is_ours(name, inductors):
            theirs[key] = value
            continue
        name = name.removeprefix(_PREFIX)
        if name in ours:
            raise OptionError(f"option {name!r} is given twice, with and without {_PREFIX!r}")
        ours[name] = value
    return ours, theirs


def _is_ours(name: str, inductors: Collection[str]) -> bool:
    if name.startswith(_PREFIX):
        return True
    known = name in Options.names()
    if known and name in inductors:
        raise OptionError(f"option {name!r} is one of Inductor's too; write '{_PREFIX}{name}' for Bridge's")
    if not known and name not in inductors:
        valid = f"those of Bridge are {_valid()}; torch._inductor.list_options() has Inductor's"
        raise OptionError(f"unknown option {name!r}; {valid}")
    return known


def _valid() -> str:
    return ", ".join(sorted(Options.names()))


def make_options(given: Mapping[str, Any]) -> Options:
    """Options over the environment over the defaults; OptionError for an unknown name or a bad value."""
    values = _from_environment()
    for name, value in given.items():
        values[name] = _checked(name, value)
    return Options(**values)


def _checked(name: str, value: Any) -> Any:
    defaults = {f.name: f.default for f in dataclasses.fields(Options)}
    if name not in defaults:
        raise OptionError(f"unknown bridge option {name!r}; valid: {_valid()}")
    if name == "dump_dir" and isinstance(value, os.PathLike):
        return os.fspath(value)
    expected = (str, type(None)) if name == "dump_dir" else (type(defaults[name]),)
    if type(value) not in expected:
        kinds = " or ".join("None" if t is type(None) else t.__name__ for t in expected)
        raise OptionError(f"bridge option {name!r} must be {kinds}, got {value!r}")
    if name == "recheck" and value and importlib.util.find_spec("islpy") is None:
        raise OptionError("bridge option 'recheck' needs islpy: pip install 'bridge-inductor[recheck]'")
    if name in ("max_accesses", "max_nodes") and value < 1:
        raise OptionError(f"bridge option {name!r} must be at least 1, got {value!r}")
    return value


def _from_environment() -> dict[str, Any]:
    values: dict[str, Any] = {}
    if os.environ.get(_ENVIRONMENT["dump_dir"]):
        values["dump_dir"] = os.environ[_ENVIRONMENT["dump_dir"]]
    flag = os.environ.get(_ENVIRONMENT["strict"])
    if flag:
        values["strict"] = _flag(_ENVIRONMENT["strict"], flag)
    return values


def _flag(variable: str, text: str) -> bool:
    if text not in ("0", "1"):
        raise OptionError(f"environment variable {variable} must be 0 or 1, got {text!r}")
    return text == "1"
