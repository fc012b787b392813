"""Test kernels that stay apart after the affine fusion and are independent: one launch for them, without a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from functions import weighted_norm as rms

import bridge
from bridge import inductor, offline
from bridge.backend import bridge as bridge_backend
from bridge.horizontal import cost, independence, shared_launch
from bridge.inductor.compiling import torch_release
from bridge.reasons import Reason, Unsupported

#: A pipeline that fuses nothing, so that all kernels of a group are left for a common launch.
NO_FUSION = "builtin.module()"


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


def rope_qk(q, k, cos, sin):
    return rotate(q, cos, sin), rotate(k, cos, sin)


def norm_rope_qk(q, k, wq, wk, cos, sin):
    return rotate(rms(q, wq), cos, sin), rotate(rms(k, wk), cos, sin)


def three_ropes(q, k, other, cos, sin):
    return *rope_qk(q, k, cos, sin), rotate(other, cos, sin)


def make_split(latent, rank, positions):
    """Return a function of two norms and a copy of the parts of one row."""

    def split(x, w1, w2):
        q, kv = x.split([latent, rank + positions], -1)
        c, pe = kv.split([rank, positions], -1)
        return rms(q, w1), rms(c, w2), pe.contiguous()

    return split


def make_qkv(heads, kv_heads, width):
    def qkv(x, wq, wk, cos, sin):
        parts = x.split([heads * width, kv_heads * width, kv_heads * width], -1)
        q, k, v = (part.view(x.shape[0], -1, width) for part in parts)
        return rotate(rms(q, wq), cos, sin), rotate(rms(k, wk), cos, sin), v.contiguous()

    return qkv


def tensors(*shapes, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def pattern(name, rows=4096, heads=32, kv_heads=8, width=128, split=(1536, 512, 64), dtype=torch.bfloat16):
    """Return (function, inputs) of a pattern."""
    table, weight = (rows, 1, width), (width,)
    q, k = (rows, heads, width), (rows, kv_heads, width)
    if name == "rope_qk":
        return rope_qk, tensors(q, k, table, table, dtype=dtype)
    if name == "norm_rope_qk":
        return norm_rope_qk, tensors(q, k, weight, weight, table, table, dtype=dtype)
    if name == "three_ropes":
        return three_ropes, tensors(q, k, (rows, 3, width), table, table, dtype=dtype)
    if name == "split":
        return make_split(*split), tensors((rows, sum(split)), split[0], split[1], dtype=dtype)
    shape = (rows, (heads + 2 * kv_heads) * width)
    return make_qkv(heads, kv_heads, width), tensors(shape, weight, weight, table, table, dtype=dtype)


def shared_launches(gm, inputs):
    """Compile with the backend, without its fusion of loops."""
    return bridge_backend(gm, inputs, options={"pipeline": NO_FUSION})


def forced_launches(gm, inputs):
    """Return what `shared_launches` does, where a launch does not pay, or needs more memory, too."""
    return bridge_backend(gm, inputs, options={"pipeline": NO_FUSION, "force_fusion": True})


def generate(fn, inputs, *, backend=shared_launches, **arguments):
    """Compile for a GPU, with Inductor's backend if that is None."""
    return offline.compile_for_gpu(fn, inputs, compile_fx=backend, **arguments)


def everything(schedule, names):
    """Stand for a proof that all kernels of the graph are independent, which may be wrong."""
    return [list(range(len(schedule)))]


def decisions():
    return [line for group in bridge.report().groups for line in group.decisions]


BEFORE = {"rope_qk": 2, "norm_rope_qk": 2, "three_ropes": 3, "split": 3, "qkv": 3}
VARIANTS = [
    *[(name, {}) for name in BEFORE],
    *[(name, {"heads": 12, "kv_heads": 5}) for name in BEFORE if name != "split"],
    *[(name, {"heads": 28, "kv_heads": 4}) for name in BEFORE if name != "split"],
    *[(name, {"rows": 300, "width": 64}) for name in ("rope_qk", "norm_rope_qk", "qkv")],
    *[("split", {"split": widths}) for widths in [(1024, 256, 32), (1536, 512, 192)]],
    ("rope_qk", {"dtype": torch.float32}),
    ("split", {"dtype": torch.float16, "rows": 77}),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "sizes"), VARIANTS, ids=str)
def test_one_launch_where_inductor_has_several(name, sizes):
    result = generate(*pattern(name, **sizes))
    assert result.n_kernels == 1, bridge.report()
    (group,) = bridge.report().groups
    assert group.fused and (group.kernels_before, group.kernels_after) == (BEFORE[name], 1)
    assert any("one launch for" in line and "MB" in line for line in group.decisions)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", BEFORE)
def test_fusion_of_loops_goes_first(name):
    """Check that loops are fused first, and that kernels left apart share a launch."""
    assert generate(*pattern(name), backend=None).n_kernels == BEFORE[name]
    assert generate(*pattern(name), backend=bridge_backend).n_kernels == 1, bridge.report()


def test_fused_kernels_and_a_copy():
    """Check that two fused norms with rotations and a copy, which shares no element with them, are one launch."""
    (kernel,) = generate(*pattern("qkv"), backend=bridge_backend).kernels
    assert any("one launch for 3 kernels, 2 saved" in line for line in decisions())
    assert kernel.source.count("elif pid <") == 2


def test_norms_of_different_inputs():
    """Check that norms without a common buffer, which are in no group together, share a launch."""

    def norms(q, k, wq, wk):
        return rms(q, wq), rms(k, wk)

    q, k, wq, wk, *_ = pattern("norm_rope_qk")[1]
    assert generate(norms, [q, k, wq, wk], backend=None).n_kernels == 2
    assert generate(norms, [q, k, wq, wk], backend=bridge_backend).n_kernels == 1
    assert bridge.report().groups[-1].kernels_before == 2


def test_kernels_without_buffers_stay_apart():
    """Check that two checks of computed indices, which have no buffer, are called with their sizes."""

    def one_hot(x):
        return x * torch.nn.functional.one_hot(torch.arange(84) % 4, 4)

    code = generate(one_hot, tensors((84, 4)), backend=bridge_backend).code
    assert code.count(".run(1, 84, stream=") == 2
    compile(code, "wrapper", "exec")


@pytest.mark.parametrize("width", [64, 256])
def test_norms_of_other_rows_stay_apart(width):
    """Check that norms of other rows stay apart, as another reduction needs another configuration."""

    def norms(q, k, wq, wk):
        return rms(q, wq), rms(k, wk)

    q, _, wq, *_ = pattern("norm_rope_qk")[1]
    inputs = [q, *tensors((4096, 8, width)), wq, *tensors((width,))]
    assert generate(norms, inputs, backend=bridge_backend).n_kernels == 2


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", BEFORE)
def test_dynamic_rows(name):
    fn, inputs = pattern(name, rows=300)
    for tensor in inputs:
        if tensor.shape[0] == 300:
            torch._dynamo.mark_dynamic(tensor, 0)
    result = generate(fn, inputs, dynamic=None)
    assert result.n_kernels == 1, bridge.report()
    assert "xnumel_1" in result.kernels[0].source


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", BEFORE)
def test_cubins_without_spills(name):
    """Check that the first configuration does not spill, and that each part has a block size of its own."""
    (kernel,) = generate(*pattern(name)).kernels
    cubins = offline.compile_kernel(kernel)
    assert cubins[0].spills == 0
    assert cubins[0].registers <= 128
    assert {"XBLOCK_0", "XBLOCK_1"} <= cubins[0].config.keys()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["norm_rope_qk", "rope_qk", "three_ropes"])
def test_as_many_registers_as_alone(name, monkeypatch):
    """Check that a shared kernel takes the registers of its largest part and a few for the dispatch."""
    fn, inputs = pattern(name)
    (joined,) = generate(fn, inputs).kernels
    monkeypatch.setattr("bridge.scheduling.launches.sets_of_group", lambda schedule, names: [])
    monkeypatch.setattr("bridge.scheduling.launches.sets_of_equal_reductions", lambda schedule: [])
    monkeypatch.setattr("bridge.scheduling.launches.sets_of_small_kernels", lambda schedule: [])
    alone = generate(fn, inputs).kernels
    assert len(alone) == BEFORE[name]
    shared = offline.compile_kernel(joined)[0]
    own = [
        offline.compile_kernel(kernel, config={"XBLOCK": shared.config[f"XBLOCK_{i}"], **warps(shared)})
        for i, kernel in enumerate(alone)
    ]
    assert shared.registers <= max(cubin.registers for cubin in own) + 8


def warps(cubin):
    return {"num_warps": cubin.config["num_warps"]}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["norm_rope_qk", "split"])
def test_parts_keep_their_choice_of_a_persistent_reduction(name):
    """Check that parts keep Inductor's choice, a row in registers or in a loop; Bridge's own choice is off."""
    fn, inputs = pattern(name)
    alone = generate(fn, inputs, backend=None).kernels
    with bridge.config.patch(unfused_rows=False):
        (joined,) = generate(fn, inputs).kernels
    persistent = [kernel.heuristic == "persistent_reduction" for kernel in alone]
    assert [keeps_its_row(joined.source, i) for i in range(len(alone))] == persistent


def keeps_its_row(source: str, part: int) -> bool:
    """Return True if a part of a launch has a constant for its row; from torch 2.14 on it is a function of its own."""
    own = source.partition(f"_body_{part}(")[2].partition("@triton.jit")[0]
    return "R0_BLOCK: tl.constexpr =" in own or f"R0_BLOCK_{part}: tl.constexpr =" in source


def test_looped_part_becomes_persistent_beside_one_that_is():
    """Check that a looped part becomes persistent beside one that is, as it has the registers of the other.

    On an H100 it took 58 us looped, and 40 us persistent.
    """
    split, inputs = pattern("qkv")

    def fn(x, wq, *rest):
        q, k, _ = split(x, wq, *rest)
        return q, k, rms(x.view(-1, 128), wq)

    looped = [kernel.heuristic == "reduction" for kernel in generate(fn, inputs, backend=None).kernels]
    assert any(looped) or torch_release() >= (2, 14)  # which keeps short rows
    assert not all(looped)
    assert "for r0_offset" not in generate(fn, inputs).kernels[0].source


@pytest.mark.parametrize(("columns", "loops"), [(5000, 0), (20000, 4)])
def test_long_rows_are_kept_as_in_a_kernel_alone(columns, loops):
    """Check that long rows are kept in registers, as in a kernel alone, though Inductor would not keep them.

    With two norms, ln 4096 and 2048 x 1280, 25 us became 16 us on an H100.
    """

    def norms(x, y, w):
        return rms(x, w), rms(y, w)

    (kernel,) = generate(norms, tensors((2048, columns), (1024, columns), columns)).kernels
    assert kernel.source.count("for r0_offset") == loops
    assert offline.compile_kernel(kernel)[0].spills == 0


def test_shared_input_is_one_argument():
    (kernel,) = generate(*pattern("rope_qk")).kernels
    pointers = [name for name, kind in kernel.signature.items() if kind.startswith("*")]
    assert len(pointers) == 6  # q, k, cos, sin and the two results


def errors(outputs, fn, inputs):
    reference = fn(*(tensor.double() for tensor in inputs))
    return [float((o.double() - r).norm() / r.norm()) for o, r in zip(outputs, reference, strict=True)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("name", BEFORE)
def test_computes_the_function(name, dtype):
    """Check every output of the generated kernel, in Triton's interpreter."""
    fn, inputs = pattern(name, rows=6, heads=3, kv_heads=2, width=16, split=(96, 32, 4), dtype=dtype)
    ours = offline.run_interpreted(fn, inputs, backend=forced_launches)
    assert any("one launch for" in line for line in decisions())
    theirs = offline.run_interpreted(fn, inputs)
    for error, bound in zip(errors(ours, fn, inputs), errors(theirs, fn, inputs), strict=True):
        assert error <= 1.05 * bound + 1e-12


def turned(a, b, c, other):
    return a + b.permute(0, 2, 1) + c.permute(2, 1, 0), torch.relu(other) + a[0]


def of_three_dimensions():
    return tensors((32, 64, 32), (32, 32, 64), (32, 64, 32), (64, 32), dtype=torch.float32)


def test_a_tile_of_three_dimensions_is_one_of_two_in_a_launch():
    """Check that a tile of three dimensions, as Inductor has it alone, is one of two in a launch that is asked for.

    A partition of program ids has no third dimension.
    """
    inputs = of_three_dimensions()
    assert [("ZBLOCK" in kernel.source) for kernel in generate(turned, inputs, backend=None).kernels] == [True, False]
    (kernel,) = generate(turned, inputs, backend=forced_launches).kernels
    assert "ZBLOCK" not in kernel.source and "YBLOCK" in kernel.source
    assert max(errors(offline.run_interpreted(turned, inputs, backend=forced_launches), turned, inputs)) < 1e-6


def test_plain_inductor_is_as_before():
    fn, inputs = pattern("norm_rope_qk")
    before = generate(fn, inputs, backend=None)
    assert generate(fn, inputs).n_kernels == 1
    after = generate(fn, inputs, backend=None)
    assert [k.source for k in after.kernels] == [k.source for k in before.kernels]
    assert after.launches == before.launches
    assert not torch._inductor.config.combo_kernels


# ---------------------------------------------------------------------------------------------------------
# What stays apart
# ---------------------------------------------------------------------------------------------------------


def launches_and_refused(fn, inputs, *, reason, **arguments):
    """Return how many kernels there are, and whether the report has the reason why some stay apart."""
    kernels = generate(fn, inputs, **arguments).n_kernels
    return kernels, any(f"own launches [{reason.name}]" in line for line in decisions())


def test_a_kernel_keeps_the_tile_of_three_dimensions_that_it_has_alone():
    """Two gradients of T5's softmax, whose heads are side by side in memory, took 19 us apart and 34 in a launch."""
    apart = launches_and_refused(turned, of_three_dimensions(), reason=Reason.not_profitable)
    assert apart == (2, True), bridge.report()


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "option", ["triton.cooperative_reductions", "triton.tile_reductions", "triton.prefer_nd_tiling"]
)
def test_configurations_that_a_partition_cannot_have(option):
    assert launches_and_refused(*pattern("rope_qk"), reason=Reason.not_liftable, config_patches={option: True}) == (
        2,
        True,
    ), bridge.report()


def test_kernels_that_wait_for_each_other(monkeypatch):
    """Check that a wrong proof is noticed: sets are checked against what each kernel waits for."""

    def chain(x, w):
        return rms(x, w).view(64, 32, 128).transpose(0, 1).contiguous() * 2, rms(x * 2, w).sum(0)

    monkeypatch.setattr("bridge.scheduling.launches.sets_of_group", everything)
    fn, inputs = chain, tensors((2048, 128), 128)
    kernels = generate(fn, inputs, backend=None).n_kernels
    result = generate(fn, inputs)
    assert result.n_kernels <= kernels
    assert any("cycle_through_other_node" in line for line in decisions()), bridge.report()


def test_overwriting_kernel_that_waits_stays_apart(monkeypatch):
    """Check that an overwriting kernel that waits for another stays apart.

    The copy into an input needs the rotation before it; test_launches.py has those that do not.
    """

    def update(q, k, cos, sin):
        q.copy_(rotate(q, cos, sin))
        return rotate(k, cos, sin)

    _, inputs = pattern("rope_qk", rows=64)
    assert generate(update, inputs, backend=None).n_kernels == 3
    source = "".join(kernel.source for kernel in generate(update, inputs).kernels if "copy_" in kernel.name)
    assert source and "num_blocks_1" not in source
    monkeypatch.setattr("bridge.scheduling.launches.sets_of_group", everything)
    monkeypatch.setattr("bridge.scheduling.launches.sets_of_small_kernels", lambda schedule: [])
    monkeypatch.setattr("bridge.scheduling.launches.sets_with_common_reader", lambda schedule: [])
    assert launches_and_refused(update, inputs, reason=Reason.cycle_through_other_node) == (3, True), bridge.report()


def test_cpp_loops_stay_apart():
    """Check that C++ loops stay apart: only Triton kernels have program ids."""
    torch._dynamo.reset()
    fn, inputs = pattern("rope_qk", rows=8)
    with torch.no_grad():
        torch.compile(fn, backend=shared_launches)(*inputs)
    assert not any("one launch" in line for line in decisions())


def test_distance(monkeypatch):
    monkeypatch.setattr(shared_launch, "MAX_DISTANCE", -1)
    assert launches_and_refused(*pattern("rope_qk"), reason=Reason.budget_exceeded) == (2, True), bridge.report()


def test_more_kernels_than_one_launch_may_have(monkeypatch):
    monkeypatch.setattr(shared_launch, "MAX_KERNELS", 2)
    assert generate(*pattern("three_ropes")).n_kernels == 2


def fake(name, reads, megabytes, reduces=False):
    reads = [SimpleNamespace(name=read) for read in reads]
    kernel = SimpleNamespace(get_name=lambda: name, read_writes=SimpleNamespace(reads=reads, writes=[]))
    kernel.get_nodes = list
    return cost.Part(kernel, {name: megabytes << 20}, reduces)


def test_launch_is_noise_beside_large_kernels_without_a_common_input(only_tensors):
    with pytest.raises(Unsupported) as refusal:
        cost.choose_worthwhile([fake("a", ["x"], 300), fake("b", ["y"], 20)])
    assert refusal.value.reason is Reason.not_profitable
    assert "a 300.0 MB, b 20.0 MB" in refusal.value.detail


@pytest.mark.parametrize("launch_set", [[("a", ["x"], 100), ("b", ["x"], 20)], [("a", ["x"], 60), ("b", ["y"], 20)]])
def test_worthwhile(only_tensors, launch_set):
    assert len(cost.choose_worthwhile([fake(*member) for member in launch_set])) == 2


def test_large_one_is_left_out(only_tensors):
    launch_set = [fake("a", ["x"], 300), fake("b", ["y"], 20), fake("c", ["z"], 20)]
    assert [s.name for s in cost.choose_worthwhile(launch_set)] == ["b", "c"]


def norm_one_rope_other(q, k, weight, cos, sin):
    return rotate(q, cos, sin), rotate(rms(k, weight), cos, sin)


@pytest.mark.parametrize(("rows", "kernels"), [(4096, 2), (1024, 1)])
def test_large_pointwise_kernel_beside_a_reduction(rows, kernels):
    """Check that a large pointwise kernel stays apart from a reduction, whose registers it would have."""
    _, (q, k, cos, sin) = pattern("rope_qk", rows=rows)
    assert generate(norm_one_rope_other, [q, k, *tensors(128), cos, sin]).n_kernels == kernels
    assert any("not_profitable" in line for line in decisions()) == (kernels == 2)


def test_too_many_buffers(only_tensors, monkeypatch):
    monkeypatch.setattr(cost, "MAX_BUFFERS", 1)
    with pytest.raises(Unsupported) as refusal:
        cost.choose_worthwhile([fake("a", ["x"], 1), fake("b", ["x"], 1)])
    assert refusal.value.reason is Reason.budget_exceeded


def test_reach_goes_through_fused_kernels(monkeypatch):
    """Check that reach goes through fused kernels, which wait for what any of their operations needs."""
    waits = [set(), {"a"}, {"b1"}]
    made = [{"a"}, {"b0", "b1"}, {"c"}]
    monkeypatch.setattr(inductor, "buffers_awaited", lambda kernel: waits[kernel])
    monkeypatch.setattr(inductor, "buffers_made", lambda kernel: made[kernel])
    assert independence.reachable([0, 1, 2], [0, 2]) == {0: 0b0, 1: 0b1, 2: 0b11}


def test_the_warps_of_a_norm_are_not_those_of_rope_beside_it():
    """Check that RoPE does not get the one warp of a norm beside it: in blocks of 4096 it took 20 s, and spilled."""

    def norm_beside_rope(x, weight, cos, sin):
        latent, positions = x.split([512, 64], -1)
        return rms(latent, weight), rotate(positions, cos.t(), sin.t())

    inputs = tensors((2048, 576), (512,), (64, 2048), (64, 2048))
    (kernel,) = offline.compile_for_gpu(norm_beside_rope, inputs, compile_fx=bridge_backend).kernels
    cubins = offline.compile_kernel(kernel)
    assert all(cubin.config["num_warps"] >= 4 for cubin in cubins)
    assert all(cubin.spills == 0 for cubin in cubins)
