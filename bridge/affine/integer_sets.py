"""Read the constraints of an `affine_set` attribute, which MLIR's Python bindings keep to themselves."""

from __future__ import annotations

from .mlir_runtime import ir


def read_integer_set(attribute: ir.Attribute) -> tuple[ir.AffineMap, list[bool]]:
    """Return the expressions of a set as a map, and for each whether it equals zero (else it is at least zero).

    The bindings give no access to the set of an attribute, so MLIR parses a map with the same expressions.
    """
    inputs, _, body = str(attribute).removeprefix("affine_set<").removesuffix(")>").partition(" : (")
    constraints = [text.rsplit(" ", 2) for text in body.split(", ")]
    expressions = ", ".join(expression for expression, _, _ in constraints)
    parsed = ir.AffineMapAttr.parse(f"affine_map<{inputs} -> ({expressions})>")
    return parsed.value, [relation == "==" for _, relation, _ in constraints]
