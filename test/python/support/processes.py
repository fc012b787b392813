"""Start processes for tests."""

from __future__ import annotations

import os
import tempfile
import textwrap
from pathlib import Path

import forked
from paths import SUPPORT

import bridge

#: Where the package that is tested is imported from: a source tree, or what is installed.
PACKAGE = Path(bridge.__file__).parents[1]


def environment(**variables: str) -> dict[str, str]:
    """Return an environment whose Python finds that package and what tests share."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(SUPPORT)]), **variables}


_RANK = """
import torch
import torch.distributed as dist

store = dist.FileStore({store!r}, 2)
dist.init_process_group("gloo", store=store, rank={rank}, world_size=2)
{code}
dist.barrier()
dist.destroy_process_group()
"""


def run_ranks(code: str, seconds: float = 300) -> list[str]:
    """Run code in two processes with a group of gloo's, and return what each prints; one that fails is an error."""
    with tempfile.TemporaryDirectory() as folder:
        store, code = str(Path(folder) / "store"), textwrap.dedent(code)
        ranks = [forked.start(_RANK.format(store=store, rank=n, code=code), environment()) for n in range(2)]
        ended = [rank.ended(seconds) for rank in ranks]
    assert not any(status for status, _, _ in ended), "\n".join(errors[-4000:] for _, _, errors in ended)
    return [out for _, out, _ in ended]
