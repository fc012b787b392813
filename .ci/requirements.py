"""Print the requirements that pyproject.toml lists, one a line; for the Makefile.

python .ci/requirements.py build | run | EXTRA ...
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; its pip has the same parser
    from pip._vendor import tomli as tomllib

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
ITSELF = PROJECT["project"]["name"]


def requirements(name: str) -> list[str]:
    """Return what builds Bridge ("build"), what it runs on ("run"), or an extra, with the extras that it names."""
    if name == "build":
        return PROJECT["build-system"]["requires"]
    if name == "run":
        return PROJECT["project"]["dependencies"]
    found = []
    for requirement in PROJECT["project"]["optional-dependencies"][name]:
        extra = re.fullmatch(rf"{ITSELF}\[(\w+)\]", requirement)
        found += requirements(extra[1]) if extra else [requirement]
    return found


if __name__ == "__main__":
    print("\n".join(line for name in sys.argv[1:] for line in requirements(name)))
