"""Bridge's options: one dataclass, validated.

The value of an option comes from `options=` or `bridge.enabled(...)`, else from `bridge.config`, else from the
environment.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib.util
import os
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The passes, as `bridge-opt --pass-pipeline` takes them.
DEFAULT_PIPELINE = "builtin.module(bridge-fuse)"


def default_pipeline(
    simt_target: bool, force: bool, keeps_roundings: bool = False, rows_of_segments: bool = True
) -> str:
    """Return the passes for a code generator.

    simt_target: True for Triton, False for C++, which emits loop nests; force: also draw random numbers again where a
    fusion needs it, and compute transcendental functions, which only C++ has to be told; keeps_roundings: a value that
    is computed again is rounded as the buffer would have rounded it; rows_of_segments: what segments of a row, or its
    lanes, have reduced may be reduced over the row.
    """
    chosen = [] if simt_target else ["unroll-and-jam=true", "simt-target=false"]
    chosen += ["recompute-math=true"] if force and not simt_target else []
    chosen += ["recompute-draws=true"] if force else []
    chosen += ["excess-precision=false"] if keeps_roundings else []
    chosen += ["rows-of-segments=false"] if simt_target and not rows_of_segments else []
    return f"builtin.module(bridge-fuse{{{' '.join(chosen)}}})" if chosen else DEFAULT_PIPELINE


class OptionError(ValueError):
    """Signal an option that is unknown or has a bad value; the message names it and what is valid."""


#: A value of an option of Bridge's.
OptionValue = bool | int | str | tuple[str, ...] | None


def _option(default: OptionValue, meaning: str) -> Any:
    return dataclasses.field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True)
class Options:
    """Hold what a user can choose: attributes of `bridge.config`, and environment variables `BRIDGE_<NAME>`."""

    concatenate_slices: bool = _option(
        True,
        "have one kernel compute slices of a tensor that are written one after the other and fill it, as the halves of "
        "rotary embeddings are",
    )
    contiguous_rows: bool = _option(
        True,
        "save values for the backward with contiguous rows, where eager has them otherwise and kernels reduce the rows",
    )
    dump_dir: str | None = _option(
        None,
        "folder for every stage of every compilation, with a script that replays it; Inductor's caches are "
        "off then, as a cached compilation has no stages",
    )
    force_fusion: bool = _option(
        False,
        "also fuse what is legal and judged not to pay, but for sums of columns; for that, transcendental functions "
        "may be computed again, and random numbers drawn again; memory is not asked, and the graph may need more than "
        "with Inductor",
    )
    isolate: bool = _option(
        False,
        "run the passes in a helper process: if they crash or hang, the kernels stay apart and the compilation goes on",
    )
    max_accesses: int = _option(2048, "leave groups alone that have more loads and stores")
    persistent: bool = _option(True, "let a fused kernel keep its row in registers where that is expected to be faster")
    pipeline: str = _option(DEFAULT_PIPELINE, "the passes, as `bridge-opt --pass-pipeline` takes them")
    plugins: tuple[str, ...] = _option(
        (), "libraries with your own MLIR passes for `pipeline`: a list, in the environment separated by `:`"
    )
    recheck: bool = _option(
        False,
        "prove every fusion a second time, by isl, and leave apart what it cannot prove; needs "
        "`bridge-inductor[recheck]`",
    )
    reduce_pieces: bool = _option(
        True,
        "reduce the pieces of a concatenation one with another, as of stacked tensors, and do not store it, where "
        "nothing else is read of it",
    )
    scatter_by_comparison: bool = _option(
        True,
        "compute a scatter of few elements into each row of a constant, as the gradient of `gather` is, by comparing "
        "with the index",
    )
    share_operands: bool = _option(
        True,
        "let library calls read one buffer of a value, where Inductor would copy it: it pads it, or its sizes are sums",
    )
    shrink_domains: bool = _option(
        True,
        "compute only the part of a value that is read, where that is a slice and the value takes a kernel of its own",
    )
    store_reread: bool = _option(
        True,
        "store a value that several kernels would each compute again from several tensors, such as a sum of residuals",
    )
    strict: bool = _option(
        False, "raise an error where Bridge breaks an invariant of its own, instead of falling back to Inductor"
    )
    training: bool = _option(True, "look at training graphs, too: forward and backward")
    unfused_rows: bool = _option(
        True,
        "with `persistent`: also a kernel that Bridge does not fuse keeps a row in registers that it reads "
        "several times",
    )
    max_nodes: int = _option(64, "leave groups alone that have more scheduler nodes")

    @staticmethod
    def names() -> list[str]:
        """Return the names of all options."""
        return [f.name for f in dataclasses.fields(Options)]

    @staticmethod
    def meanings() -> dict[str, str]:
        """Return what each option is for, in Markdown."""
        return {f.name: f.metadata["meaning"] for f in dataclasses.fields(Options)}

    def deciding(self) -> dict[str, OptionValue]:
        """Return the options that a compilation's result depends on."""
        return {name: getattr(self, name) for name in self.names() if name not in ("dump_dir", "strict")}


DEFAULTS: dict[str, OptionValue] = dataclasses.asdict(Options())

_PREFIX = "bridge."


def split_options(
    options: Mapping[str, object] | None, inductors: Collection[str]
) -> tuple[dict[str, object], dict[str, object]]:
    """Return (Bridge's options, Inductor's); `bridge.x` is Bridge's, as is `x` where Inductor has no such option.

    inductors: the names of Inductor's options.  OptionError for an option that is unknown, of both, or given twice.
    """
    if options and not (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
        raise OptionError(f"options must be a dict like {{'strict': True}}, got {options!r}")
    ours: dict[str, object] = {}
    theirs: dict[str, object] = {}
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
        raise OptionError(f"unknown option {name!r}; {nearest(name, [*Options.names(), *inductors]) or valid}")
    return known


def _valid() -> str:
    return ", ".join(sorted(Options.names()))


def nearest(name: str, valid: Collection[str]) -> str:
    """Return `did you mean 'strict'?` for a name that is much like a valid one, else nothing."""
    close = difflib.get_close_matches(name, valid, n=1)
    return f"did you mean {close[0]!r}?" if close else ""


#: What `bridge.config` sets: nothing as long as nobody has loaded that module, which loads torch.
_configured: Callable[[], Mapping[str, OptionValue]] = dict


def read_configuration(configured: Callable[[], Mapping[str, OptionValue]]) -> None:
    """Have `make_options` ask a function for the options that `bridge.config` sets."""
    global _configured
    _configured = configured


def make_options(given: Mapping[str, object]) -> Options:
    """Return the options: those given, else of `bridge.config`, else of the environment, else the defaults.

    OptionError for an unknown name or a bad value.
    """
    values = {**from_environment(os.environ), **_configured(), **given}
    return Options(**{name: check(name, value) for name, value in values.items()})


def variable(name: str) -> str:
    """Return the environment variable of an option."""
    return f"BRIDGE_{name.upper()}"


#: Variables with that prefix that are no options: folders of what the tests take from elsewhere, and what turns
#: Bridge on in servers.
OTHER_VARIABLES = ("BRIDGE_CORPUS", "BRIDGE_PYTORCH_TESTS", "BRIDGE_SGLANG", "BRIDGE_VLLM")


def from_environment(environment: Mapping[str, str]) -> dict[str, OptionValue]:
    """Return the options that have a variable that is not empty.

    OptionError for one that cannot be read, and for one that is much like an option's.  Of others that begin with
    `BRIDGE_` a warning says that they are no options: they may be another program's.
    """
    _check_variables(environment)
    given = {name: environment.get(variable(name)) for name in DEFAULTS}
    return {name: _value_of_variable(name, text) for name, text in given.items() if text}


def _value_of_variable(name: str, text: str) -> OptionValue:
    """Return the value of an option's variable; OptionError, which names the variable, for a bad one."""
    value = _read(f"environment variable {variable(name)}", name, text)
    try:
        return check(name, value)
    except OptionError as error:
        raise OptionError(f"environment variable {variable(name)}: {error}") from None


@functools.cache
def _say_that_it_is_ignored(name: str) -> None:
    """Warn of a variable that is no option, once: many places read the environment."""
    words = f"bridge ignores the environment variable {name}: it has no option of that name"
    warnings.warn_explicit(words, RuntimeWarning, "environment", 1)


def _check_variables(environment: Mapping[str, str]) -> None:
    ours = [*map(variable, DEFAULTS), *OTHER_VARIABLES]
    for name in (name for name in environment if name.startswith(variable("")) and name not in ours):
        close = difflib.get_close_matches(name.removeprefix(variable("")).lower(), DEFAULTS, n=1)
        if close:
            raise OptionError(f"unknown environment variable {name}; did you mean {variable(close[0])}?")
        _say_that_it_is_ignored(name)


def read_option(name: str, text: str) -> tuple[str, OptionValue]:
    """Return (name, value) of an option that is written as in the environment; OptionError where it cannot be read."""
    name = name.removeprefix(_PREFIX).replace("-", "_")
    return name, check(name, _read(f"bridge option {name!r}", name, text))


def _read(what: str, name: str, text: str) -> OptionValue:
    default = DEFAULTS.get(name)
    if isinstance(default, bool):
        if text not in ("0", "1"):
            raise OptionError(f"{what} must be 0 or 1, got {text!r}")
        return text == "1"
    if isinstance(default, int):
        if not text.isdecimal():
            raise OptionError(f"{what} must be a number, got {text!r}")
        return int(text)
    return tuple(text.split(os.pathsep)) if isinstance(default, tuple) else text


def unknown(name: str) -> str:
    """Return what is wrong with a name that no option has."""
    return f"unknown bridge option {name!r}; {nearest(name, Options.names()) or f'valid: {_valid()}'}"


def check(name: str, value: object) -> Any:
    """Return the value of an option as `Options` has it; OptionError for an unknown name or a bad value."""
    if name not in DEFAULTS:
        raise OptionError(unknown(name))
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
    if name in ("max_accesses", "max_nodes") and isinstance(value, int) and value < 1:
        raise OptionError(f"bridge option {name!r} must be at least 1, got {value!r}")
    return value


def _checked_plugins(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(path, (str, os.PathLike)) for path in value):
        raise OptionError(f"bridge option 'plugins' must be a list of paths, got {value!r}")
    for path in value:
        if not Path(path).is_file():
            raise OptionError(f"bridge option 'plugins': there is no file {os.fspath(path)!r}")
    return tuple(str(Path(path).absolute()) for path in value)
