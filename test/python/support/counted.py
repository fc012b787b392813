"""Make compilations, and tell what they add to Bridge's counters."""

from __future__ import annotations

import torch
from functions import rows, sample


def compile_and_run(backend="inductor", function=rows):
    """Compile anew, from the graph on, and return the counters of Bridge that this adds."""
    from torch._dynamo.utils import counters

    before = counters["bridge"].copy()
    torch._dynamo.reset()
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(function, backend=backend)(sample()), function(sample()))
    return dict(counters["bridge"] - before)


FUSED = {"groups_seen": 1, "groups_fused": 1}


class UsersPass:
    """Stand for a pass that a user has put into the hook."""

    def __init__(self, error=None):
        self.calls = 0
        self.error = error

    def __call__(self, nodes):
        self.calls += 1
        if self.error is not None:
            raise self.error
        return nodes
