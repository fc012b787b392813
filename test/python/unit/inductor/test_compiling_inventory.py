"""Test that all names that compiling needs are asked for, whether the tools are in use or not."""

from __future__ import annotations

from bridge.inductor import inventory
from bridge.inductor.compiling_inventory import COMPILING


def test_the_table_is_that_of_compiling():
    needed = set(inventory.names())
    assert needed == set(inventory._parsed(COMPILING)) and len(needed) > 200
    assert needed < set(inventory.names(tools=True))
