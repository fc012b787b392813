"""Test that names that only the tools need are not asked for where a graph is compiled."""

from __future__ import annotations

from bridge.inductor import inventory
from bridge.inductor.tools_inventory import TOOLS


def test_the_table_is_that_of_the_tools():
    of_tools = set(inventory.names(tools=True)) - set(inventory.names())
    assert of_tools == set(inventory._parsed(TOOLS)) - set(inventory.names()) and len(of_tools) > 20
