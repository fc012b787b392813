"""`bridge.config`: the defaults of all options, made like `torch._inductor.config`.

    bridge.config.max_nodes = 32                        # for compilations to come
    with bridge.config.patch(strict=True, recheck=True): ...
    bridge.config.shallow_copy_dict()

A value that no option can have is an error at once.  An environment variable `BRIDGE_<NAME>` sets what is not set
here, and `options=` goes above both.  The options and what they mean are in `bridge.Options`, and in
docs/configuration.md, which is generated from there.
"""

# No `from __future__` here: what a configuration module names is taken for a setting, but for functions and modules.
import os
import sys
import types
import typing

from torch.utils._config_module import Config, install_config_module

from . import options as _options


def changed() -> dict[str, typing.Any]:
    """Return the options that are set here, by an assignment or by `patch`."""
    config = sys.modules[__name__]
    now = {name: getattr(config, name) for name in _options.DEFAULTS}
    return {name: value for name, value in now.items() if value != config._config[name].default}


def _checked(base: type) -> type:
    """Return torch's class of a configuration module, with a check of what is set: an error comes at once."""

    class CheckedConfiguration(base):
        def __setattr__(self, name: str, value: object) -> None:
            """Set an option; OptionError for a bad value, AttributeError for what is no option."""
            super().__setattr__(name, _value(self, name, value))

        def patch(self, arg1: typing.Any = None, arg2: typing.Any = None, **kwargs: typing.Any) -> typing.Any:
            """Return torch's context manager; errors as of an assignment."""
            changes = arg1 if isinstance(arg1, dict) else kwargs if arg1 is None else {arg1: arg2}
            return super().patch({name: _value(self, name, value) for name, value in changes.items()})

    return CheckedConfiguration


def _value(config: typing.Any, name: str, value: object) -> object:
    """Return a value to set: what torch keeps for itself as it is, an option checked."""
    if name in config._bypass_keys:
        return value
    if name not in config._config:
        raise AttributeError(_options.unknown(name))
    return _options.check(name, value)


if typing.TYPE_CHECKING:

    def __getattr__(name: str) -> typing.Any:
        """Stand for the options, and for what torch adds to a configuration module."""


globals().update(
    (name, Config(default=value))
    for name, value in {**_options.DEFAULTS, **_options.from_environment(os.environ)}.items()
)
install_config_module(sys.modules[__name__])
# torch's class takes an assignment for that of an option.
types.ModuleType.__setattr__(sys.modules[__name__], "__class__", _checked(type(sys.modules[__name__])))
_options.read_configuration(changed)
