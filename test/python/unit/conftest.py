"""Inductor's configuration, for tests of what Bridge puts into it."""

from __future__ import annotations

import pytest

import bridge


@pytest.fixture
def config():
    from torch._inductor import config

    yield config
    bridge.uninstall()
    assert config._post_fusion_custom_pass is None, "a test or Bridge left something in the hook"
