"""Processes that tests start."""

from __future__ import annotations

import os
from pathlib import Path

from paths import SUPPORT

import bridge

#: Where the package that is tested is imported from: a source tree, or what is installed.
PACKAGE = Path(bridge.__file__).parents[1]


def environment(**variables: str) -> dict[str, str]:
    """Return an environment whose Python finds that package and what tests share."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(SUPPORT)]), **variables}
