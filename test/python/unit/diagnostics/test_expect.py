"""Test bridge.expect_fused and bridge.fuse_or_explain."""

from __future__ import annotations

import sys

import pytest
import torch
import torch.nn.functional as F
from explained import example_inputs, gated, next_row

import bridge
from bridge.diagnostics import recording
from bridge.diagnostics.expect import FusionError
from bridge.scheduling import hook

GPU = {"backend_target": "cuda:sm_90"}


def shared(x, y):
    """Compute what one launch may legally share; beside a large reduction Bridge judges that it does not pay."""
    return F.layer_norm(x, x.shape[-1:]), y * 2 + x[:1, :1]


class TestExpectFused:
    def test_a_region_that_fuses(self, compiler):
        (x,) = example_inputs()
        with bridge.expect_fused(1, **GPU):
            result = compiler(gated)(x)
        torch.testing.assert_close(result, gated(x))

    def test_backend_bridge_counts_too(self, compiler):
        with bridge.expect_fused(1, **GPU):
            compiler(gated, backend="bridge")(*example_inputs())

    def test_error_explains(self, compiler):
        with pytest.raises(FusionError, match="2 kernels where at most 1") as raised, bridge.expect_fused(1, **GPU):
            compiler(next_row)(*example_inputs())
        assert "loop_carried_dependence" in str(raised.value)
        assert "for example" in str(raised.value)
        assert raised.value.explanation.kernels_after == 2

    def test_kernels_of_all_graphs_count(self, compiler):
        with pytest.raises(FusionError, match="2 kernels"), bridge.expect_fused(1, **GPU):
            compiler(gated)(*example_inputs())
            compiler(torch.relu)(*example_inputs())

    def test_nothing_compiled_is_an_error(self, compiler):
        with pytest.raises(FusionError, match="nothing was compiled"), bridge.expect_fused(1):
            gated(*example_inputs())

    def test_an_error_inside_is_not_hidden(self, compiler):
        with pytest.raises(ZeroDivisionError), bridge.expect_fused(1):
            raise ZeroDivisionError

    def test_a_block_that_ends_the_process_is_checked_first(self, compiler):
        with pytest.raises(FusionError, match="nothing was compiled"), bridge.expect_fused(1):
            sys.exit(0)
        with pytest.raises(SystemExit), bridge.expect_fused(1, **GPU):
            compiler(gated)(*example_inputs())
            sys.exit(0)

    def test_as_a_decorator(self, compiler):
        @bridge.expect_fused(1, **GPU)
        def region():
            return compiler(gated)(*example_inputs())

        torch.testing.assert_close(region(), gated(*example_inputs()))

    def test_forces_what_is_judged_not_to_pay(self, compiler):
        # 48 MB without a reduction beside a reduction: cost.MIXED_BYTES leaves it apart.
        inputs = torch.zeros(1024, 1024), torch.zeros(6 * 1024, 1024)
        with pytest.raises(FusionError, match="not_profitable"), bridge.expect_fused(1, force=False, **GPU):
            compiler(shared)(*inputs)
        torch._dynamo.reset()
        with bridge.expect_fused(1, **GPU):
            compiler(shared)(*inputs)

    def test_leaves_no_trace(self, compiler):
        with bridge.expect_fused(1, **GPU):
            compiler(gated)(*example_inputs())
        assert not bridge.config.force_fusion
        assert hook.current() is None and recording.current() is None

    def test_negative_count(self):
        with pytest.raises(ValueError, match="-1"), bridge.expect_fused(-1):
            pass


class TestFuseOrExplain:
    def test_result_is_the_functions(self, compiler):
        (x,) = example_inputs()
        function = bridge.fuse_or_explain(gated)
        torch.testing.assert_close(function(x), gated(x))
        torch.testing.assert_close(function(2 * x), gated(2 * x))
        assert function.__name__ == "gated"

    def test_explains(self, compiler):
        function = bridge.fuse_or_explain(n_kernels=1, **GPU)(next_row)
        with pytest.raises(FusionError, match="loop_carried_dependence"):
            function(*example_inputs())

    def test_nothing_compiled_is_an_error(self, compiler):
        function = bridge.fuse_or_explain(gated, **GPU)
        with torch.compiler.set_stance("force_eager"), pytest.raises(FusionError, match="nothing was compiled"):
            function(*example_inputs())
        function(*example_inputs())
        function(*example_inputs())
