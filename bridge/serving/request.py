"""Read what a server's configuration, or an environment variable, asks of Bridge."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from ..options import OptionError, Options, make_options


def requested(variable: str, configured: object = None) -> Options | None:
    """Return the options that were asked for; None where Bridge was not asked for.

    configured: what the server's configuration says: options, True, False, or None for nothing;
    variable: the environment variable that counts then: 1, 0, or options as JSON.
    OptionError for anything else.
    """
    given = _read(variable) if configured is None else configured
    if isinstance(given, bool):
        return make_options({}) if given else None
    if not isinstance(given, Mapping):
        raise OptionError(f"bridge is asked for by options in braces, true or false, not by {given!r}")
    return make_options(given)


def _read(variable: str) -> object:
    text = os.environ.get(variable, "").strip()
    if text in ("", "0", "1"):
        return text == "1"
    try:
        return json.loads(text)
    except ValueError:
        raise OptionError(f"environment variable {variable} must be 1, 0 or options as JSON, got {text!r}") from None
