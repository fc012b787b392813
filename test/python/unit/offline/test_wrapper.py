"""Test what is read from a wrapper: its kernels, launches and library calls."""

from __future__ import annotations

import ast

import pytest

from bridge.offline.wrapper import dotted_name, kernel_function, parse_kernel, parse_wrapper

KERNEL = """
import triton

@triton.jit
def combine(a, b):
    return a + b

@triton_heuristics.pointwise(
    size_hints={'x': 1024, 'y': 16},
    triton_meta={'signature': {'in_ptr0': '*fp32', 'xnumel': 'i32'}, 'constants': {'ynumel': 1, 'z': f(2)}},
)
@triton.jit
def triton_(in_ptr0, xnumel):
    pass
"""

WRAPPER = f"""
triton_poi_0 = async_compile.triton('triton_', '''{KERNEL}''', device_str='cuda')
cpp_1 = async_compile.cpp_pybinding(['float*'], 'void kernel() {{}}')

def partition_0(args):
    triton_poi_0.run(args)

class Runner:
    def call(self, args):
        extern_kernels.mm(args[0], args[1])
        torch.ops.aten.sort.stable(args[0])
        other.run(args)
        triton_poi_0.run(args, grid(1))

def benchmark_compiled_module():
    triton_poi_0.run(extern_kernels.mm(0, 1))
"""


def test_kernel_is_read_with_what_its_decorator_says():
    kernel = parse_kernel("triton_", KERNEL)
    assert kernel.heuristic == "pointwise"
    assert kernel.size_hints == {"x": 1024, "y": 16}
    assert kernel.signature == {"in_ptr0": "*fp32", "xnumel": "i32"}
    assert kernel.constants == {"ynumel": 1, "z": "f(2)"}, "what is no literal is kept as its source"


def test_launches_and_library_calls_are_those_of_the_compiled_graph_in_order():
    wrapper = parse_wrapper(WRAPPER)
    assert wrapper.launches == ("triton_poi_0", "triton_poi_0")
    assert wrapper.extern_calls == ("extern_kernels.mm", "torch.ops.aten.sort.stable")
    assert [kernel.name for kernel in wrapper.kernels] == ["triton_"], "C++ is no Triton kernel"
    assert wrapper.code == WRAPPER


def test_kernel_without_heuristic_is_refused():
    with pytest.raises(ValueError, match="triton_ has no decorator from triton_heuristics"):
        parse_kernel("triton_", "@triton.jit\ndef triton_():\n    pass\n")


def test_kernel_is_the_function_with_a_heuristic():
    assert kernel_function(ast.parse(KERNEL)).name == "triton_"


def test_what_a_kernel_calls_may_come_after_it():
    """Check that what a kernel calls may come after it, as in the template of flex attention.

    The kernel was taken for the last function.
    """
    source = KERNEL + "\n@triton.jit\ndef forward_inner(q):\n    return q\n"
    assert kernel_function(ast.parse(source)).name == "triton_"
    assert parse_kernel("triton_", source).heuristic == "pointwise"


def test_without_a_heuristic_the_kernel_is_the_last_function():
    assert kernel_function(ast.parse(KERNEL.replace("triton_heuristics", "other"))).name == "triton_"


@pytest.mark.parametrize(("text", "name"), [("a", "a"), ("a.b.c", "a.b.c"), ("f().b", ""), ("a[0]", "")])
def test_only_names_and_their_attributes_have_a_dotted_name(text, name):
    assert dotted_name(ast.parse(text, mode="eval").body) == name
