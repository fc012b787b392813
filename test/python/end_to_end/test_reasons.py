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


def test_every_other_reason_has_a_test():
    assert set(EXAMPLES) | set(ELSEWHERE) == set(Reason)
    assert not set(EXAMPLES) & set(ELSEWHERE)
    for reason, path in ELSEWHERE.items():
        assert reason.name in (ROOT / "test" / path).read_text(), reason
