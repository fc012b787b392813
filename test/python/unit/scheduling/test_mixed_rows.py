"""Test rows of Inductor's mix-order kernels in kernels with others; where they are not, the kernels are put back."""

from __future__ import annotations

import functools
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from emitted import run_emitted
from emitted_claims import contradictions
from functions import norm
from torch._inductor.choices import InductorChoices
from training import graphs, several

import bridge
from bridge import inductor, offline
from bridge.backend import bridge as backend
from bridge.diagnostics.recording import recorded
from bridge.offline.wrapper import parse_wrapper
from bridge.reasons import Reason, Unsupported
from bridge.scheduling import mixed_rows as step

pytestmark = pytest.mark.skipif(
    not hasattr(torch._inductor.config.triton, "mix_order_reduction"), reason="this torch has no mix-order kernels"
)


def gradients(x, g, w, scale):
    """Compute the backward of a norm of products of halves of rows: gradients of the rows, and of the weights."""
    first, second = x.chunk(2, -1)
    h = (first * second).float()
    weights = (g * h * scale).sum(0)
    dh = g * w * scale
    dh = dh - h * (dh * h * scale * scale).mean(-1, keepdim=True)
    return torch.cat([dh * second, dh * first], -1), weights


def gated_norm(x, w):
    gate, value = x.chunk(2, -1)
    return F.rms_norm(F.silu(gate) * value, (value.shape[-1],), w)


def inputs(rows, columns, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(0)
    shapes = [(rows, 2 * columns), (rows, columns), (columns,), (rows, 1)]
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def full():
    shapes = [(8192, 8192), (8192, 4096), (4096,), (8192, 1)]
    return [torch.empty(shape, dtype=torch.bfloat16) for shape in shapes[:2]] + [torch.empty(s) for s in shapes[2:]]


def compiled(function=gradients, given=None, **options):
    torch._dynamo.reset()
    given = given or full()
    compile_fx = functools.partial(backend, options={"strict": True, **options})
    return offline.compile_for_gpu(function, given, compile_fx=compile_fx)


def test_rows_and_halves_and_columns_are_one_kernel():
    """Check that rows, halves and columns are one kernel, and a second one adds up what its blocks leave."""
    result = compiled()
    report = bridge.report()
    assert report.kernels_after == result.n_kernels == 2
    assert contradictions(report) == []
    assert report.bytes_after < 0.7 * report.bytes_before
    assert any("partial sums" in line for group in report.groups for line in group.decisions)


def test_inductor_has_mixed_them():
    torch._dynamo.reset()
    result = offline.compile_for_gpu(gradients, full())
    assert "workspace_0" in result.code and result.n_kernels == 2 and ".sum(dim=0)" in result.code


def test_rows_of_which_a_multiprocessor_has_one_stay_with_their_columns():
    """Check that rows with one program a multiprocessor stay with their columns.

    A row of 5632 pairs took 8192 lanes of 172 registers: 260 us with the columns apart, where Inductor takes 223.
    """
    with recorded() as recording:
        graphs(gated_norm, several((4096, 2 * 5632), (5632,)), functools.partial(backend, options={"training": True}))
    groups = [group for report in recording.reports for group in report.groups]
    assert groups and not any(group.done.divided for group in groups)


@pytest.fixture
def few_processors(monkeypatch):
    """Set up a GPU for which a hundred rows are enough to mix, and to take apart what is mixed."""
    monkeypatch.setattr(inductor, "multiprocessors", lambda device: 4)
    split = staticmethod(lambda device, rows, columns, inner_reduction: 1 if inner_reduction else 9)
    monkeypatch.setattr(InductorChoices, "reduction_split_factor", split)
    monkeypatch.setattr(step, "LAUNCH_BYTES", 0)


@pytest.mark.parametrize(("rows", "columns"), [(75, 32), (96, 64)])
def test_numerics(few_processors, rows, columns):
    """Check numbers, also where the blocks of rows are not full."""
    given = inputs(rows, columns, torch.float32)
    ours = functools.partial(backend, options={"strict": True, "force_fusion": True})
    found, codes = run_emitted(gradients, given, ours, **{"triton.mix_order_reduction_non_strict_mode": True})
    report = bridge.report()
    assert any(group.done.divided for group in report.groups), report.details()
    assert len(parse_wrapper(codes[0]).launches) == 2
    for one, other in zip(found, gradients(*(t.double() for t in given)), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


def rows_alone(x, g, w):
    """Compute a norm and sums of columns, all in the loops of the tile."""
    h = norm(x, w)
    return h, (x * g).sum(0)


def test_rows_that_nothing_else_wants_are_not_taken_apart(monkeypatch):
    taken = []
    monkeypatch.setattr(step, "_together", lambda *arguments: taken.append(arguments))
    given = [torch.empty(8192, 4096), torch.empty(8192, 4096), torch.empty(4096)]
    result = compiled(rows_alone, given)
    assert taken == [] and result.n_kernels <= 2


def test_what_is_refused_is_inductors_again(monkeypatch):
    plain = compiled(max_nodes=1).n_kernels

    def refuse(*_):
        raise Unsupported(Reason.not_profitable, "for the test")

    monkeypatch.setattr("bridge.scheduling.commit.check_worthwhile", refuse)
    result = compiled()
    assert result.n_kernels == plain == bridge.report().kernels_after == bridge.report().kernels_before
    assert any("for the test" in detail for group in bridge.report().groups for _, detail in group.apart)


def test_parts_that_inductor_cannot_run_alone_stay_together(monkeypatch):
    monkeypatch.setattr(step.codegen, "fuse_nodes", lambda nodes: None)
    result = compiled()
    assert result.n_kernels == compiled(max_nodes=1).n_kernels
    assert any("part of a mix-order kernel alone" in refusal.detail for refusal in bridge.report().refusals)


class TestCheck:
    """Test what a kernel with the rows of a mix-order kernel has to save."""

    @pytest.fixture(autouse=True)
    def _bytes(self, monkeypatch):
        class Whole(str):
            def get_name(self):
                return str(self)

        touched = {"rows": {"x": 100 << 20, "h": 50 << 20}, "columns": {"x": 100 << 20}}
        monkeypatch.setattr(step.inductor, "bytes_touched", touched.get)
        self.parts = step.Parts(Whole("whole"), "rows", "columns")

    @pytest.mark.parametrize("saved, pays", [(105, False), (123, False), (124, True)])
    def test_what_is_read_again_and_a_launch_and_an_eighth(self, saved, pays):
        if pays:
            step.check_worthwhile([self.parts], ["rows", "other"], saved << 20)
            return
        with pytest.raises(Unsupported, match="105.0 MB are read again"):
            step.check_worthwhile([self.parts], ["rows", "other"], saved << 20)

    def test_what_others_save_without_the_rows_is_not_counted(self, monkeypatch):
        others = {"one": {"y": 60 << 20}, "other": {"y": 60 << 20}}
        touched = step.inductor.bytes_touched
        monkeypatch.setattr(
            step.inductor, "bytes_touched", lambda kernel, own=None: others.get(kernel) or touched(kernel)
        )
        monkeypatch.setattr(step.inductor, "operation_names", lambda kernel: {kernel})
        for saved, pays in [(124 + 65, True), (123 + 65, False)]:
            with nullcontext() if pays else pytest.raises(Unsupported):
                step.check_worthwhile([self.parts], ["rows", "one", "other"], saved << 20)

    def test_other_kernels_may_save_nothing(self):
        step.check_worthwhile([self.parts], ["other"], 0)
