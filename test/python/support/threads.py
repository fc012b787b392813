"""Run compilations in other threads."""

from __future__ import annotations

import threading

import torch
from torch._functorch import config as functorch_config


def in_thread(function):
    """Return the function's result in a new thread; raise its error.

    Without graph caches there, too: from torch 2.12 on a patch of the configuration is one thread's.
    """
    result = []

    def call():
        try:
            with (
                torch._inductor.config.patch(fx_graph_cache=False),
                functorch_config.patch(enable_autograd_cache=False),
            ):
                result.append(function())
        except Exception as error:  # noqa: BLE001 (it is raised again in the test)
            result.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(120)
    if isinstance(result[0], Exception):
        raise result[0]
    return result[0]
