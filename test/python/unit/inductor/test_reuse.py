"""Test peak that decides what the wrapper keeps: without what has no memory of its own."""

from types import SimpleNamespace

from schedules import products, scheduled
from torch._inductor import ir
from torch._inductor.virtualized import V

from bridge.inductor import memory, reuse


class Wrapper:
    """Stand for the wrapper's code; it plans with the estimate that it has then."""

    def __init__(self, estimate):
        self.lines, self.planned = [], []
        if estimate is not None:
            self.estimate_peak = estimate

    def memory_plan_reuse(self):
        self.planned.append(getattr(getattr(self, "estimate_peak", None), "overall_peak_memory", None))


def test_peak_is_corrected_before_the_wrapper_plans(monkeypatch):
    monkeypatch.setattr(reuse, "WORKSPACE", 0)
    with scheduled(products, (32, 32)) as graph:
        wrapper = graph.wrapper_code = Wrapper(SimpleNamespace(overall_peak_memory=10**6))
        reuse.keep_below_peak()
        wrapper.memory_plan_reuse()
        tree = wrapper.estimate_peak.segmented_tree
        assert wrapper.planned == [12288]
        assert [tree.summarize_range(step, step) for step in (0, 1)] == [8192, 12288]


def test_removed_buffer_counts_nothing_while_its_kernel_runs():
    with scheduled(products, (32, 32)) as graph:
        wrapper = graph.wrapper_code = Wrapper(SimpleNamespace(overall_peak_memory=10**6))
        graph.removed_buffers.add(graph.scheduler.nodes[1].get_outputs()[0].get_name())
        reuse.keep_below_peak()
        wrapper.memory_plan_reuse()
        assert wrapper.planned == [8192]


def test_wrapper_without_an_estimate_plans_as_it_is():
    wrapper = Wrapper(None)
    with V.set_graph_handler(SimpleNamespace(wrapper_code=wrapper)):
        reuse.keep_below_peak()
        wrapper.memory_plan_reuse()
    assert wrapper.planned == [None]
    assert "memory_plan_reuse" not in vars(wrapper), "only the next call is replaced"


def test_operator_that_allocates_is_taken_to_be_at_the_peak():
    """Check that an operator that allocates counts as being at the peak.

    The estimate does not have the memory that an operator of PyTorch needs for itself.
    """

    def then_products(x, y):
        return x.cumsum(0), products(y)

    with scheduled(then_products, (2, 2), (32, 32)) as graph:
        nodes = graph.scheduler.nodes
        (step,) = (step for step, node in enumerate(nodes) if isinstance(node.node, ir.ExternKernelAlloc))
        levels = [level for level, _ in memory.live_bytes(nodes)]
        assert levels[step] < max(levels)
        wrapper = graph.wrapper_code = Wrapper(SimpleNamespace(overall_peak_memory=10**6))
        reuse.keep_below_peak()
        wrapper.memory_plan_reuse()
        tree = wrapper.estimate_peak.segmented_tree
        assert [tree.summarize_range(step, step)] == wrapper.planned == [max(levels)]


def test_nothing_is_kept_in_the_workspace_of_a_matrix_product():
    """Check that nothing is kept in the workspace of a matrix product, which torch 2.15 allocates for each.

    DeepSeek-V3's prefill needed 16 MB more than with Inductor.
    """

    def then_large(x, y):
        return (x @ x).sin(), y.exp() @ y

    with scheduled(then_large, (32, 32), (1024, 1024)) as graph:
        nodes = graph.scheduler.nodes
        products_at = [step for step, node in enumerate(nodes) if isinstance(node.node, ir.ExternKernelOut)]
        levels = [level for level, _ in memory.live_bytes(nodes)]
        wrapper = graph.wrapper_code = Wrapper(SimpleNamespace(overall_peak_memory=10**9))
        reuse.keep_below_peak()
        wrapper.memory_plan_reuse()
        tree = wrapper.estimate_peak.segmented_tree
        assert wrapper.planned == [max(levels)], "the peak is that without the workspace"
        first, *_ = products_at
        assert levels[first] < max(levels) < levels[first] + reuse.WORKSPACE
        assert tree.summarize_range(first, first) == max(levels)
