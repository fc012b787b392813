"""Hold what the tests of bridge.offline share."""

from __future__ import annotations

import pytest
from offline_functions import norm_inputs
from rfc import swiglu_norm

from bridge import offline


@pytest.fixture(scope="module")
def plain():
    return offline.compile_for_gpu(swiglu_norm, norm_inputs())
