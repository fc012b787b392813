"""What scheduler nodes read and write."""

from __future__ import annotations

from types import SimpleNamespace

import sympy
from torch.utils._sympy.functions import Identity

from bridge.inductor import schedule


def test_step_of_an_index_that_sympy_is_not_to_simplify(monkeypatch):
    """Inductor hides some indices from sympy in `Identity`, of which no size was known."""
    monkeypatch.setattr(schedule, "size_hint", int)
    variable = sympy.Symbol("i0", integer=True)
    assert schedule._innermost_step(SimpleNamespace(var_names=(variable,), index=Identity(variable) * 3)) == 3
