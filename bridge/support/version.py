"""Tell the package's version, as pyproject.toml states it."""

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def _version() -> str:
    """Return the version of the installed package, or of the source tree where it is not installed."""
    try:
        return version("bridge-inductor")
    except PackageNotFoundError:
        text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
        return re.findall(r'^version = "(.+)"$', text, re.MULTILINE)[0]


__version__ = _version()
