"""SGLang's way in: a plug-in of its entry point group `sglang.srt.plugins`, which it calls in each of its processes.

SGLang compiles by `torch.compile` with Inductor, so `bridge.install` is all that it takes.
"""

from __future__ import annotations

from ..install import install
from ..support.error_boundary import BUGS, describe
from . import reporting
from .request import requested

#: The environment variable that asks for Bridge: SGLang has no option for what it does not know.
VARIABLE = "BRIDGE_SGLANG"


def register() -> None:
    """Install Bridge if the environment asks for it; a failure is a warning, and leaves plain Inductor.

    Called again, it installs Bridge with the options that hold then.
    """
    try:
        options = requested(VARIABLE)
        if options is not None:
            install(**vars(options))
    except BUGS as error:
        reporting.warn_off(describe(error))
