"""Test what the system refused, in words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridge.support.os_errors import os_words


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file or directory", "a.mlir"), "a.mlir: no such file or directory"),
        (IsADirectoryError(21, "Is a directory", Path("b")), "b: is a directory"),
        (OSError(18, "Invalid cross-device link", "a", None, "b"), "a -> b: invalid cross-device link"),
        (OSError(28, "No space left on device"), "no space left on device"),
        (OSError("torch's own words"), "torch's own words"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_words(error, words):
    assert os_words(error) == words


def test_of_the_system_itself(tmp_path):
    with pytest.raises(OSError) as refused:
        os.rename(tmp_path / "a", tmp_path / "b")
    assert os_words(refused.value) == f"{tmp_path / 'a'} -> {tmp_path / 'b'}: no such file or directory"
