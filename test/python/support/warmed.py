"""Compile once in the process that `forked` forks, so that no process pays for Inductor's first compilation.

That is 2.5 s: the patterns that it looks for in graphs, and modules that it imports when it needs them.
"""

from __future__ import annotations

import torch
import uncompiled

with uncompiled.without_cpp(), torch.no_grad():
    torch.compile(lambda x: torch.softmax(x + 1, -1))(torch.ones(4, 4))
torch._dynamo.reset()
torch._dynamo.utils.counters.clear()
