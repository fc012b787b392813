"""Test that the functions of docs/reasons.md have the page's reasons, and every other one is provoked elsewhere."""

from __future__ import annotations

import pytest
import torch
import torch._inductor.config
from paths import ROOT
from reason_examples import EXAMPLES, Example

import bridge
from bridge import offline
from bridge.reasons import Reason

#: Tests of reasons that no model has, or not by its code.
ELSEWHERE = {
    Reason.aliasing: "python/unit/affine_import/test_importing.py",
    Reason.different_device: "python/unit/scheduling/test_hook.py",
    Reason.mlir_missing: "python/end_to_end/test_faults.py",
    Reason.plugin_missing: "python/end_to_end/test_faults.py",
    Reason.plugin_version_mismatch: "python/end_to_end/test_faults.py",
    Reason.torch_version: "python/end_to_end/test_faults.py",
    Reason.pass_failed: "python/end_to_end/test_faults.py",
    Reason.pass_crashed: "python/unit/affine/test_isolation.py",
    Reason.pass_timeout: "python/unit/affine/test_isolation.py",
    Reason.recheck_failed: "python/unit/affine/test_isl_verifier.py",
    Reason.internal_error: "python/end_to_end/test_faults.py",
}


def compile_example(example: Example) -> None:
    if example.training:
        with torch.enable_grad(), bridge.enabled(**example.options):
            torch.compile(example.function)(*example.inputs())
        return
    with torch._inductor.config.patch(example.inductor):
        context = bridge.enabled(**example.options)
        offline.compile_for_gpu(example.function, example.inputs(), context=context, dynamic=example.dynamic)


@pytest.mark.filterwarnings("ignore:bridge leaves a graph")
@pytest.mark.parametrize("reason", EXAMPLES, ids=lambda reason: reason.name)
def test_the_example_has_the_reason(reason, compiler):
    """Check that the report names the reason for its example, for a kernel, a group, or the passes that tried it."""
    compile_example(EXAMPLES[reason])
    report = bridge.report()
    tried = {remark[0] for group in report.groups for remark in group.remarks}
    assert reason.name in tried | {found.name for found, _ in report.reasons()}, report.details()


def scaled_gates(x, weight):
    """Divide rows by their largest element, and gate halves by each other; the weight's gradient is sums of columns."""
    left, right = (x / (x.abs().amax(-1, keepdim=True) + 1e-4) * weight).chunk(2, -1)
    return torch.cat([left * torch.tanh(right), right * torch.sigmoid(left)], -1)


def test_force_fusion_was_named_for_sums_of_columns_which_it_leaves_apart():
    """Check that the remedy for sums of columns that do not pay is not an option that is on already."""
    inputs = [torch.zeros(288, 64, requires_grad=True), torch.zeros(64, requires_grad=True)]
    context = bridge.enabled(force_fusion=True)
    offline.compile_for_gpu(scaled_gates, inputs, context=context, backward=True)
    report = bridge.report()
    apart = [detail for group in report.groups for reason, detail in group.apart if reason is Reason.not_profitable]
    assert any("too few for 132 multiprocessors" in detail for detail in apart), report.details()
    assert "force_fusion=True fuses it anyway, to measure, unless it is a sum of columns." in str(report)


def test_every_other_reason_has_a_test():
    assert set(EXAMPLES) | set(ELSEWHERE) == set(Reason)
    assert not set(EXAMPLES) & set(ELSEWHERE)
    for reason, path in ELSEWHERE.items():
        assert reason.name in (ROOT / "test" / path).read_text(), reason
