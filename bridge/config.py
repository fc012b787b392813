"""`bridge.config`: the defaults of all options, made like `torch._inductor.config`.

    bridge.config.max_nodes = 32                        # for compilations to come
    with bridge.config.patch(strict=True, recheck=True): ...
    bridge.config.shallow_copy_dict()

An environment variable `BRIDGE_<NAME>` sets what is not set here, and `options=` goes above both.  The options and
what they mean are in `bridge.Options`, and in docs/configuration.md, which is generated from there.
"""

# No `from __future__` here: what a configuration module names is taken for a setting, but for functions and modules.
import os
import sys
import typing

from torch.utils._config_module import Config, install_config_module

from . import options as _options


def changed() -> dict[str, typing.Any]:
    """Return the options that are set here, by an assignment or by `patch`."""
    config = sys.modules[__name__]
    now = {name: getattr(config, name) for name in _options.DEFAULTS}
    return {name: value for name, value in now.items() if value != config._config[name].default}


def _at_import() -> dict[str, _options.OptionValue]:
    """Return defaults and environment; where a variable cannot be read, the next compilation raises for it."""
    try:
        return {**_options.DEFAULTS, **_options.from_environment(os.environ)}
    except _options.OptionError:
        return dict(_options.DEFAULTS)


if typing.TYPE_CHECKING:

    def __getattr__(name: str) -> typing.Any:
        """Stand for the options, and for what torch adds to a configuration module."""


globals().update((name, Config(default=value)) for name, value in _at_import().items())
install_config_module(sys.modules[__name__])
_options.read_configuration(changed)
