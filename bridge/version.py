"""The package's version, as pyproject.toml states it."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("bridge-inductor")
except PackageNotFoundError:  # A source tree that was not installed.
    __version__ = "0.1.0"
