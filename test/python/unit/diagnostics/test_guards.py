"""Test which values of symbolic sizes let the passes make one kernel."""

from __future__ import annotations

from bridge.diagnostics.guards import find_guards
from bridge.options import DEFAULT_PIPELINE


def two_loops(first: str, second: str, arguments: str) -> str:
    """Return two loops over rows, of which the second reads what the first writes."""
    return f"""
    func.func @f(%in: memref<?x16xf32>, %t: memref<?x16xf32>, %out: memref<?x16xf32>, {arguments}) {{
      affine.for %i = 0 to {first} {{
        affine.for %j = 0 to 16 {{
          %x = affine.load %in[%i, %j] : memref<?x16xf32>
          affine.store %x, %t[%i, %j] : memref<?x16xf32>
        }}
      }}
      affine.for %i = 0 to {second} {{
        affine.for %j = 0 to 16 {{
          %x = affine.load %t[%i, %j] : memref<?x16xf32>
          affine.store %x, %out[%i, %j] : memref<?x16xf32>
        }}
      }}
      return
    }}
    """


def test_a_size_that_has_to_equal_a_constant():
    module = two_loops("%n", "64", '%n: index {bridge.size = "n"}')
    assert find_guards(module, {"n": 64}, DEFAULT_PIPELINE) == ["n == 64"]


def test_a_value_that_keeps_the_loops_apart_is_no_guard():
    # The second loop reads the rows in the opposite order.
    module = two_loops("%n", "64", '%n: index {bridge.size = "n"}').replace(
        "affine.load %t[%i, %j]", "affine.load %t[-%i + 63, %j]"
    )
    assert find_guards(module, {"n": 64}, DEFAULT_PIPELINE) == []


def test_two_sizes_that_have_to_agree_are_one_condition():
    module = two_loops("%m", "%n", '%m: index {bridge.size = "m"}, %n: index {bridge.size = "n"}')
    assert find_guards(module, {"m": 64, "n": 64}, DEFAULT_PIPELINE) == ["m == 64 and n == 64"]


def test_a_product_is_fixed_by_its_symbol():
    module = two_loops("%n", "64", '%n: index {bridge.size = "2*n"}, %m: index {bridge.size = "n"}')
    assert find_guards(module, {"2*n": 64, "n": 32}, DEFAULT_PIPELINE) == ["n == 32"]
    # Where no argument is the symbol itself, the condition is about the product.
    alone = two_loops("%n", "64", '%n: index {bridge.size = "2*n"}')
    assert find_guards(alone, {"2*n": 64}, DEFAULT_PIPELINE) == ["2*n == 64"]


def test_what_the_passes_fuse_for_all_sizes_needs_no_guard():
    """Check that a fusion for all sizes needs no guard.

    A group whose one kernel Triton could not have was said to fuse with a size, at which it did not.
    """
    module = two_loops("%n", "%n", '%n: index {bridge.size = "n"}')
    assert find_guards(module, {"n": 64}, DEFAULT_PIPELINE) == []


def test_a_loop_of_one_iteration_is_no_kernel():
    """Check that a loop of one iteration counts as no kernel.

    A scale of a whole tensor was said to fuse with one row: in one program, which no lowering makes.
    """
    module = two_loops("%n", "64", '%n: index {bridge.size = "n"}')
    assert find_guards(module, {"n": 64}, DEFAULT_PIPELINE) == ["n == 64"]
    once = module.replace("affine.for %i = 0 to 64", "affine.for %i = 0 to 1")
    assert find_guards(once, {"n": 1}, DEFAULT_PIPELINE) == []


def test_no_sizes_have_no_guards():
    assert find_guards("not parsed", {}, DEFAULT_PIPELINE) == []
