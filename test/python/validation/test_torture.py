"""Test a sample of what `make torture` runs: programs that the project did not design, on both targets.

A failure names the programs; TORTURE_SEED=N in the environment chooses others.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torture import compiling, contexts, judging, op_db, table
from torture.__main__ import chosen
from torture.outcome import Outcome, Verdict
from torture.pool import run_all

from bridge import inductor
from bridge.affine.translate import access
from bridge.lowering.lift import reductions
from bridge.lowering.triton import kernels

#: Programs by generator and target.
SAMPLES = {("op_db", "triton"): 8, ("op_db", "cpp"): 12}

SEED = int(os.environ.get("TORTURE_SEED", "15"))

NAME = "abs/-/f32/norm-chunk/wide/0"


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("generator, target", SAMPLES)
def test_no_worse_than_inductor(generator, target):
    names = chosen(generator, target, SAMPLES[generator, target], SEED)
    outcomes = list(run_all(generator, names, target, workers=1))
    failed = [outcome for outcome in outcomes if outcome.failed]
    again = (
        f"PYTHONPATH=test/python/validation:test/python/support python -m torture {generator} --target {target} --only"
    )
    assert not failed, "\n".join(f"{o.verdict.name}: {o.detail}\n  {again} '{o.case}'" for o in failed)
    assert any(outcome.verdict is Verdict.fused for outcome in outcomes)


def test_names_of_operators_are_many_and_none_twice():
    names = op_db.names("cpp")
    assert len(set(names)) == len(names) > 25_000
    assert NAME.split("/")[0] in {name.split("/")[0] for name in names[:20_000]}


def test_an_operator_between_a_norm_and_its_halves_is_fused(compiler):
    assert op_db.run(NAME, "triton").verdict is Verdict.fused


@pytest.mark.in_turn(3)
def test_a_store_outside_of_its_buffer_is_found(monkeypatch, compiler):
    """Check that a store outside of its buffer is found.

    Without its guard a lane stores where there is nothing: no result is wrong, and a GPU need not notice.
    """
    name = "deg2rad/-/i64/live-out/prime/2"
    assert op_db.run(name, "triton").verdict is Verdict.fused
    monkeypatch.setattr(kernels.LaneMixin, "_guarded", lambda self, value, mask: value)
    outcome = op_db.run(name, "triton")
    assert outcome.verdict is Verdict.wrong and "outside of its buffer" in outcome.detail


@pytest.mark.in_turn(3)
def test_a_product_that_its_gradient_overwrites_is_counted_once():
    """Check that a product that its gradient overwrites counts once.

    Both gradients of InfoNCE in one launch were counted as 4 KB more than Inductor allocates, and are not.
    """

    def loss(a, b):
        logits, labels = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T, torch.arange(a.shape[0])
        return F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)

    def execute(function):
        inputs = [torch.randn(16, 64, requires_grad=True) for _ in range(2)]
        return [t.detach() for t in torch.autograd.grad(function(*inputs), inputs)]

    ours, theirs = compiling.Compilation(), compiling.Compilation()
    compiling.run(loss, execute, "triton", ours, {"training": True}, training=True)
    compiling.run(loss, execute, "triton", theirs, None, training=True)
    assert ours.kernels < theirs.kernels
    assert [peak.live for peak in ours.peaks] == [peak.live for peak in theirs.peaks] and len(ours.peaks) == 2


@pytest.mark.parametrize(
    "ours, theirs, above",
    [((9, 600), (9, 10), False), ((10, 20), (9, 20), False), ((10, 21), (9, 20), False), ((521, 20), (9, 20), True)],
)
def test_a_higher_peak_is_one_by_a_block(ours, theirs, above):
    assert compiling.Peak(*ours).is_above(compiling.Peak(*theirs)) is above


def test_kernels_that_a_library_call_parts_are_no_more_kernels():
    """Check that kernels that a library call separates do not count as more kernels.

    A lower peak had a focal loss's gradient go between two products: 5 C++ functions, and fewer loops in them.
    """
    loop = "    for(int i=0; i<4; i++)\n    {\n        for(int j=0; j<4; j++)\n        {\n        }\n    }\n"
    apart = compiling.Compilation(codes=[2 * (loop + "    cpp_fused_add_0(x)\n    mm(x)\n")])
    together = compiling.Compilation(codes=[2 * loop + "    cpp_fused_add_0(x)\n    mm(x)\n"])
    assert (apart.kernels, together.kernels, apart.loop_nests) == (2, 1, 2)
    assert op_db._worse("cpp", apart, together) is None
    apart.codes.append(loop)
    assert op_db._worse("cpp", apart, together) == "2 kernels, Inductor's 1"


@pytest.mark.in_turn(3)
def test_wrong_moments_of_the_pieces_of_a_row_are_found(monkeypatch, compiler):
    """Check that wrong moments of the pieces of a row are found.

    They are merged where registers do not keep the row, which a program may say after its context.
    """
    name = "neg/-/f32/chunk+looped/wide/0"
    assert op_db.run(name, "triton").verdict is Verdict.fused
    monkeypatch.setattr(reductions, "_merge_moments", lambda ops, a, b: (a[0], a[1], ops.add(a[2], b[2])))
    assert op_db.run(name, "triton").verdict is Verdict.wrong


@pytest.mark.in_turn(3)
def test_a_row_more_than_padded_strides_have_is_found(monkeypatch, compiler):
    """Check that one row too many in padded strides is found: of the last image it is beyond the buffer's end.

    Nothing guards it then.
    """
    name = "flip/-/f32/windows/prime+gaps/0"
    assert op_db.run(name, "triton").verdict is Verdict.fused
    exact = access.exact_quotient
    monkeypatch.setattr(access, "_padded_quotient", lambda a, b: -(-a // b) if a.is_Integer else exact(a, b))
    monkeypatch.setattr(access, "_sizes_of_last", lambda numel, chain, sizes, prover: sizes)
    outcome = op_db.run(name, "triton")
    assert outcome.verdict is Verdict.wrong and "outside of its buffer" in outcome.detail


@pytest.mark.in_turn(3)
def test_rows_that_read_the_next_one_unproven_are_found(monkeypatch, compiler):
    """Check that rows that read the next one unproven are found.

    Frames of two rows: a subscript that passes a row's end is an element of another band iteration.
    """
    name = "where/-/f32/frames/wide/0"
    assert op_db.run(name, "triton").verdict is Verdict.refused
    monkeypatch.setattr(access, "_is_inside", lambda *_: True)
    assert op_db.run(name, "triton").verdict is Verdict.wrong


@pytest.mark.in_turn(3)
def test_a_first_dimension_may_be_a_symbol(compiler):
    """Check that a first dimension may be a symbol: kernels of a `symbolic` layout have sizes as arguments.

    The program is the same in all else.
    """
    for layout, symbols in (("wide", False), ("wide+symbolic", True)):
        case, compilation = op_db._build(f"where/-/f32/turned/{layout}/0", "triton"), compiling.Compilation()
        replace(case, program=replace(case.program, training=False)).compiled(compilation, {})
        assert any("ks0" in code for code in compilation.codes) is symbols


@pytest.mark.parametrize("context", sorted(set(contexts.MORE_CONTEXTS) - set(contexts.CONTEXTS)))
def test_contexts_outside_of_the_table(context, compiler):
    assert not op_db.run(f"abs/-/i32/{context}/wide/0", "triton").failed


#: Programs that failed once, by what was wrong.
FOUND = {
    "one row in a block of several": ("trapz/-/f32/pad/one-row/3", Verdict.fused),
    "one row in a block of several, in training": ("std/-/f32/strided/expanded/0", Verdict.fused),
    "an extremum of values that bring their indices": ("argmin/-/f32/stack/wide+expanded-last/4", Verdict.refused),
    "users left by loops taken back": ("nn.functional.max_pool3d/-/bf16/pad/prime/3", Verdict.refused),
    "judging: a sum that is zero for all inputs": ("softmax/-/bf16/consumers/one-row/1", Verdict.fused),
    "judging: a mean is rounded, and equal numbers are not": (
        "nn.functional.cross_entropy/-/f16/chunk/expanded/4",
        Verdict.fused,
    ),
    "judging: Inductor's is far from eager's": ("bfloat16/-/f32/strided/every-other/2", Verdict.fused),
}


@pytest.mark.parametrize("name, verdict", FOUND.values(), ids=FOUND)
def test_found(name, verdict, compiler):
    assert op_db.run(name, "triton").verdict is verdict


def test_found_before_torch_2_13(monkeypatch, compiler):
    """Check a fault of torch before 2.13: kernels that keep rows had no code for a sum of weighted exponentials."""
    monkeypatch.setattr(inductor, "merges_softmax_states", lambda: False)
    case = op_db._build("fill/-/f16/pad/every-other/2", "triton")
    compilation = compiling.Compilation()
    replace(case, program=replace(case.program, training=False)).compiled(compilation, {})
    (report,) = compilation.reports
    assert "a sum of weighted exponentials in a row that is not kept" in report.details()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "spoil, verdict",
    [
        (lambda t: t * 1.001, Verdict.wrong),
        (lambda t: torch.where(t == t.max(), torch.nan, t), Verdict.wrong),
        (lambda t: t.double(), Verdict.wrong),
        (lambda t: t.t().contiguous().t(), Verdict.wrong),
        (lambda t: 1 / 0, Verdict.crash),
    ],
    ids=["number", "nan", "dtype", "strides", "exception"],
)
def test_a_spoiled_result_is_found(spoil, verdict, compiler, monkeypatch):
    """Check that a spoiled result is found.

    Strides and types are compared with Inductor's in a part of the programs; here in all.
    """
    original = compiling.run

    def run(function, execute, target, compilation, options, training=False):
        results = original(function, execute, target, compilation, options, training)
        return [spoil(t) for t in results] if options is not None else results

    monkeypatch.setattr(compiling, "run", run)
    monkeypatch.setattr(op_db, "_BESIDE", 1)
    assert op_db.run(NAME, "triton").verdict is verdict


def test_integers_that_are_not_inductors_are_found():
    theirs = torch.arange(5)
    ours = theirs.clone()
    ours[3] = 7
    assert judging.problem([ours], [theirs], [theirs], list, torch.float32) is not None
    assert judging.problem([theirs], [theirs], [ours], list, torch.float32) is None


def added_in_a_row(t):
    """Return a sum as a thread makes it that has all terms: each addition rounds in the same direction."""
    total = t.new_zeros(t.shape[:-1])
    for term in t.unbind(-1):
        total = total + term
    return total.unsqueeze(-1)


@pytest.mark.parametrize(
    "name, scale",
    [("nn.functional.celu/-/f32/chunk/wide+expanded-last/5", 1e-5**-0.5), ("atan/-/i8/consumers/expanded-last/5", 1)],
)
def test_roundings_that_are_all_that_is_left_are_excused(name, scale, monkeypatch):
    """Check that results of which only roundings are left are excused: rows of equal numbers, less their mean.

    A GPU's mean is that of a sum one by one, Inductor's another or exact.
    """
    case = op_db._build(name, "triton")
    monkeypatch.setattr(contexts, "_NORMS", [lambda t: (t - added_in_a_row(t) / t.shape[-1]) * scale])
    with torch.no_grad():
        ours = case.program.function(*case.program.inputs)
    theirs = [torch.zeros_like(t) for t in ours]

    def judged(results):
        expected = case.reference[: len(ours)]
        return judging.problem(results, theirs, expected, case.nudged, case.program.dtype, case.terms)

    monkeypatch.undo()
    assert judged(ours) is None
    assert judged([t + 1 for t in ours]) is not None


def test_running_means_are_never_shorter_than_the_channels():
    """Check that running means are as long as there are channels: eager writes past shorter ones.

    That ends the process that other programs run in.
    """
    x, *means = op_db._build("_batch_norm_with_update/-/f64/norm-chunk/wide/5", "cpp").program.inputs
    assert all(t.shape == (x.shape[1],) for t in means)


def test_an_index_among_equal_numbers_is_excused():
    theirs = torch.tensor([3, 5, 7, 9])
    ours = torch.tensor([4, 6, 7, 9])
    moved = [[torch.tensor([4, 5, 7, 9])], [torch.tensor([3, 6, 7, 9])]]
    assert judging.problem([ours], [theirs], [theirs], lambda: moved[:0], torch.float64) is not None
    assert judging.problem([ours], [theirs], [theirs], lambda: moved, torch.float64) is None


def test_table_has_no_blank_cell():
    outcome = Outcome(NAME, Verdict.refused, reasons=("not_liftable",))
    wrong = replace(outcome, case=NAME.replace("f32", "bf16"), verdict=Verdict.wrong)
    names = {o.case.rsplit("/", 2)[0]: o for o in (outcome, wrong)}
    outcomes = {n: names[n.rsplit("/", 2)[0]] for n in op_db.names("cpp") if n.rsplit("/", 2)[0] in names}
    lines = table.table(outcomes, "cpp").splitlines()
    cells = next(line for line in lines if line.startswith("abs/-\t")).split("\t")
    assert cells[5] == ".a.W.....-." and all(len(cell) == 11 and " " not in cell for cell in cells[1:])


def test_a_table_stands_for_what_it_was_made_of():
    verdicts = [Verdict.fused, Verdict.same, Verdict.crash, Verdict.refused]
    names = op_db.names("triton")[:40]
    given = {n: Outcome(n, verdicts[i % 4], reasons=("not_liftable",) * (i % 4 == 3)) for i, n in enumerate(names)}
    text = table.table(given, "cuda, cpp")
    found, targets = table.outcomes_of(text)
    assert targets == "cuda, cpp"
    assert {n: o.verdict for n, o in found.items()} == {n: o.verdict for n, o in given.items()}
    assert table.table(found, targets) == text


def test_results_that_differ_from_run_to_run_are_nobodys_fault():
    nan, one = torch.tensor([float("nan"), 1.0]), torch.tensor([1, 2])
    assert not op_db._differ([nan, one], [nan.clone(), one.clone()])
    assert op_db._differ([nan, one], [nan, one + 1])
    assert op_db._differ([nan], [nan.nan_to_num()])
