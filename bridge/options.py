"""Bridge's options: one dataclass, validated.

Their values come from `options=` or `bridge.enabled(...)`, else from `bridge.config`, else from the environment.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The passes, as `bridge-opt --pass-pipeline` takes them.
DEFAULT_PIPELINE = "builtin.module(bridge-fuse)"


def default_pipeline(knows_lanes: bool, force: bool, keeps_roundings: bool = False) -> str:
    """The passes for a code generator: one that knows lanes (Triton), or one that emits loop nests (C++).

    force: compute transcendental functions again where a fusion needs it, which only C++ has to be told;
    keeps_roundings: what is computed again is rounded as the buffer would have rounded it.
    """
    chosen = [] if knows_lanes else ["unroll-and-jam=true", "simt-target=false"]
    chosen += ["recompute-math=true"] if force and not knows_lanes else []
    chosen += ["excess-precision=false"] if keeps_roundings else []
    return f"builtin.module(bridge-fuse{{{' '.join(chosen)}}})" if chosen else DEFAULT_PIPELINE


class OptionError(ValueError):
    """An option that is unknown or has a bad value; the message names it and what is valid."""


def _option(default: Any, meaning: str) -> Any:
    return dataclasses.field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True)
class Options:
    """What a user can choose.  Each is an attribute of `bridge.config` and an environment variable `BRIDGE_<NAME>`."""

    dump_dir: str | None = _option(
        None,
        "folder for every stage of every compilation, each one replayable; Inductor's caches are not used then, as a "
        "compilation that they answer has no stages",
    )
    force_fusion: bool = _option(
        False, "also fuse what is legal and judged not to pay, and compute transcendental functions again for it"
    )
    isolate: bool = _option(
        False, "run the passes in a helper process: a crash or a hang of theirs leaves the kernels apart, and no more"
    )
    max_accesses: int = _option(2048, "groups with more loads and stores are left alone")
    persistent: bool = _option(True, "let a fused kernel keep its row in registers where that is expected to be faster")
    pipeline: str = _option(DEFAULT_PIPELINE, "the passes, as `bridge-opt --pass-pipeline` takes them")
    plugins: tuple[str, ...] = _option(
        (), "libraries with MLIR passes of your own, for `pipeline`; a list, in the environment separated by `:`"
    )
    recheck: bool = _option(
        False, "have isl prove every fusion again, and leave apart what it does not; needs `bridge-inductor[recheck]`"
    )
    share_operands: bool = _option(
        True,
        "have library calls that read the same value read one buffer, where Inductor would pad it and make several",
    )
    shrink_domains: bool = _option(
        True, "compute of a value only the part that is read of it, where that is a slice and a whole kernel's work"
    )
    store_reread: bool = _option(
        True, "store a value that several kernels would compute again from several tensors, as sums of residuals"
    )
    strict: bool = _option(False, "raise where Bridge breaks an invariant of its own instead of falling back")
    training: bool = _option(False, "also look at training graphs")
    unfused_rows: bool = _option(
        True, "with `persistent`, also a kernel that Bridge does not fuse keeps a row that it reads several times"
    )
    max_nodes: int = _option(64, "groups with more scheduler nodes are left alone")

    @staticmethod
    def names() -> list[str]:
        return [f.name for f in dataclasses.fields(Options)]

    @staticmethod
    def meanings() -> dict[str, str]:
        """What each option is for, in Markdown."""
        return {f.name: f.metadata["meaning"] for f in dataclasses.fields(Options)}

    def deciding(self) -> dict[str, Any]:
        """The options that a compilation's result depends on."""
        return {name: getattr(self, name) for name in self.names() if name not in ("dump_dir", "strict")}


DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(Options)}

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
    """Options over `bridge.config` over the environment over the defaults.

    OptionError for an unknown name or a bad value.
    """
    from . import config

    values = {**from_environment(os.environ), **config.changed(), **given}
    return Options(**{name: _checked(name, value) for name, value in values.items()})


def variable(name: str) -> str:
    """The environment variable of an option."""
    return f"BRIDGE_{name.upper()}"


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """The options that have a variable that is not empty; OptionError for one that cannot be read."""
    given = {name: environment.get(variable(name)) for name in DEFAULTS}
    return {name: _read(name, text) for name, text in given.items() if text}


def _read(name: str, text: str) -> Any:
    default = DEFAULTS[name]
    if isinstance(default, bool):
        if text not in ("0", "1"):
            raise OptionError(f"environment variable {variable(name)} must be 0 or 1, got {text!r}")
        return text == "1"
    if isinstance(default, int):
        if not text.isdecimal():
            raise OptionError(f"environment variable {variable(name)} must be a number, got {text!r}")
        return int(text)
    return tuple(text.split(os.pathsep)) if isinstance(default, tuple) else text


def _checked(name: str, value: Any) -> Any:
    if name not in DEFAULTS:
        raise OptionError(f"unknown bridge option {name!r}; valid: {_valid()}")
    if name == "dump_dir" and isinstance(value, os.PathLike):
        return os.fspath(value)
    if name == "plugins":
        return _checked_plugins(value)
    expected = (str, type(None)) if name == "dump_dir" else (type(DEFAULTS[name]),)
    if type(value) not in expected:
        kinds = " or ".join("None" if t is type(None) else t.__name__ for t in expected)
        raise OptionError(f"bridge option {name!r} must be {kinds}, got {value!r}")
    if name == "recheck" and value and importlib.util.find_spec("islpy") is None:
        raise OptionError("bridge option 'recheck' needs islpy: pip install 'bridge-inductor[recheck]'")
    if name in ("max_accesses", "max_nodes") and value < 1:
        raise OptionError(f"bridge option {name!r} must be at least 1, got {value!r}")
    return value


def _checked_plugins(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(path, (str, os.PathLike)) for path in value):
        raise OptionError(f"bridge option 'plugins' must be a list of paths, got {value!r}")
    for path in value:
        if not Path(path).is_file():
            raise OptionError(f"bridge option 'plugins': there is no file {os.fspath(path)!r}")
    return tuple(str(Path(path).absolute()) for path in value)
