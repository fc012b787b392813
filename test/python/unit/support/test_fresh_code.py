"""Test functions that Dynamo has never seen: what they call, and what they share."""

from __future__ import annotations

from bridge.support.fresh_code import fresh_entry


def test_calls_the_function_with_its_arguments():
    def function(*args, **kwargs):
        return args, kwargs

    assert fresh_entry(function)(1, 2, scale=3) == ((1, 2), {"scale": 3})


def test_two_entries_of_a_function_share_neither_code_nor_name_nor_globals():
    one, other = fresh_entry(abs), fresh_entry(abs)
    assert one.__code__ is not other.__code__ and one.__code__ != other.__code__
    assert one.__code__.co_name == one.__name__ != other.__name__ == other.__code__.co_name
    one.__globals__["planted"] = 1
    assert "planted" not in other.__globals__ and "planted" not in fresh_entry.__globals__
    assert one(-2) == other(-2) == 2


def test_a_qualified_name_is_new_too():
    code = fresh_entry(abs).__code__
    assert getattr(code, "co_qualname", code.co_name) == code.co_name
