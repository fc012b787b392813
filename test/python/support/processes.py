"""Processes that tests start."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from paths import SUPPORT

import bridge

#: Where the package that is tested is imported from: a source tree, or what is installed.
PACKAGE = Path(bridge.__file__).parents[1]


def environment(**variables: str) -> dict[str, str]:
    """Return an environment whose Python finds that package and what tests share."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(SUPPORT)]), **variables}


_RANK = """
import sys
import torch
import torch.distributed as dist

store = dist.FileStore(sys.argv[1], 2)
dist.init_process_group("gloo", store=store, rank=int(sys.argv[2]), world_size=2)
{code}
dist.barrier()
dist.destroy_process_group()
"""


def _start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_ranks(code: str, seconds: float = 300) -> list[str]:
    """Run code in two processes with a group of gloo's, and return what each prints; one that fails is an error."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _RANK.format(code=textwrap.dedent(code)), str(Path(folder) / "store")]
        ranks = [_start([*command, str(rank)]) for rank in range(2)]
        printed = [rank.communicate(timeout=seconds) for rank in ranks]
    assert not any(rank.returncode for rank in ranks), "\n".join(errors[-4000:] for _, errors in printed)
    return [out for out, _ in printed]
