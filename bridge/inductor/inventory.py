"""List every private name of torch that Bridge touches: the parameters that it expects, and the versions that have it.
`test_inventory.py` compares the tables with torch and with the package; `compiling` asks about a torch not tested yet.

Below its module stands a name with its parameters (`=`: has a default), where Bridge calls it or puts something in its
place; or names alone, those of a class after the class. Before it stand the versions that have it so; without any, all
that were tested have. What a version lacks is asked for by `hasattr` or `getattr` where it is used.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from .compiling_inventory import COMPILING
from .tools_inventory import TOOLS

Release: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Name:
    """Hold a name of torch's; parameters: "" where only the name matters; first, last: the releases that have it so.

    first: None for the oldest that works; last: None for the newest that was tested and, it is hoped, all after it.
    """

    module: str
    path: str
    parameters: str = ""
    first: Release | None = None
    last: Release | None = None

    def __str__(self) -> str:
        return f"{self.module}.{self.path}"

    def is_of(self, release: Release) -> bool:
        """Return True if a release has the name in this form."""
        return (self.first is None or self.first <= release) and (self.last is None or release <= self.last)


def names(tools: bool = False) -> list[Name]:
    """Return what the tables say; tools: those of the tools beside compiling, too."""
    return [*_parsed(COMPILING), *(_parsed(TOOLS) if tools else [])]


def moved(release: Release, tools: bool = False) -> list[str]:
    """Return what the installed torch, which is of that release, has in another form than expected; a line for each."""
    expected = [name for name in names(tools) if name.is_of(release)]
    return [_difference(name, there) for name in expected if not _is_as_expected(name, there := found(name))]


def _is_as_expected(name: Name, there: str | None) -> bool:
    return there is not None and name.parameters in ("", there)


def _difference(name: Name, there: str | None) -> str:
    return f"{name} is gone" if there is None else f"{name}{there} had {name.parameters}"


#: Versions, and what has them: a name with parameters, or names, perhaps of a class.
_LINE = re.compile(r"(?:(?P<first>[\d.]+)?-(?P<last>[\d.]+)?: )?(?P<rest>.*)")
_NAMES = re.compile(r"(?P<path>[\w.]+)(?P<parameters>\(.*\))|(?:(?P<owner>[\w.]+): )?(?P<members>.*)")


@functools.cache
def _parsed(table: str) -> tuple[Name, ...]:
    return tuple(_parse(table))


def _parse(table: str) -> Iterator[Name]:
    module = ""
    for line in re.sub(r"\n {8}", " ", table.strip()).splitlines():
        if not line.startswith(" "):
            module = line
            continue
        versions = _match(_LINE, line.strip())
        releases = [_release(versions["first"]), _release(versions["last"])]
        named = _match(_NAMES, versions["rest"])
        if named["path"]:
            yield Name(module, named["path"], named["parameters"], *releases)
        owner = f"{named['owner']}." if named["owner"] else ""
        for member in (named["members"] or "").split():
            yield Name(module, owner + member, "", *releases)


def _match(pattern: re.Pattern[str], text: str) -> dict[str, str]:
    match = pattern.fullmatch(text)
    assert match is not None, f"no line of the inventory: {text}"
    return match.groupdict()


def _release(version: str | None) -> Release | None:
    if not version:
        return None
    major, minor = version.split(".")
    return int(major), int(minor)


def found(name: Name) -> str | None:
    """Return what the installed torch has by a name: its parameters, "" where it has none, None for no such name."""
    try:
        owner: object = importlib.import_module(name.module)
    except ImportError:
        return None
    *outer, last = name.path.split(".")
    for part in outer:
        owner = getattr(owner, part, None)
    value = inspect.getattr_static(owner, last, None)
    return _parameters(value) if value is not None else "" if _has(owner, last) else None


def _has(owner: object, attribute: str) -> bool:
    """Return True if an object has an attribute, or if the methods of a class give one to its objects, or read it."""
    kinds = inspect.getmro(owner) if isinstance(owner, type) else ()
    methods = (inspect.unwrap(value) for kind in kinds for value in vars(kind).values() if inspect.isfunction(value))
    return hasattr(owner, attribute) or any(attribute in method.__code__.co_names for method in methods)


#: How a parameter begins that takes all that are left.
_STARS: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def _parameters(value: object) -> str:
    """Return the names of a function's parameters; "" for what is no function."""
    function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    try:
        parameters = list(inspect.signature(function).parameters.values()) if callable(function) else None
    except (TypeError, ValueError):  # a function of C++
        parameters = None
    if parameters is None:
        return ""
    shown = [_STARS.get(p.kind, "") + p.name + ("=" if p.default is not p.empty else "") for p in parameters]
    named = next((i for i, p in enumerate(parameters) if p.kind is inspect.Parameter.KEYWORD_ONLY), None)
    if named is not None and not any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        shown.insert(named, "*")
    return f"({', '.join(shown)})"
