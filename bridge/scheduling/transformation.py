"""Transformation of one group: the passes, the second proof, and the lift back to loop bodies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from .. import inductor
from ..affine.ops_table import ROWS_OF_SEGMENTS, UNROLLED_REDUCTIONS
from ..lowering.triton.profitability import fits_in_registers
from ..options import Options
from ..reasons import InvariantError, Reason, Unsupported
from ..reports import Counterexample
from ..support.error_boundary import Note
from ..support.recorder import NO_STAGES, Stages
from .grouping import Group
from .results import Transformed
from .translation import pipeline_of

if TYPE_CHECKING:
    from ..affine.translate.group import Translation
    from ..lowering.lift.band import FunctionTables, LiftedBand

#: Measures the time of a stage.
Clock = Callable[[str], AbstractContextManager[None]]


def transform(translation: Translation, pipeline: str, options: Options, stages: Stages, clock: Clock) -> Transformed:
    """Run the passes on a translated group, in place; with option recheck, have isl prove what they made.

    Unsupported(recheck_failed) for what isl does not prove, and for what the passes refuse.
    """
    from ..affine.pipeline import run_pipeline

    certificate: list[str] = []
    with _rechecked(translation, options, certificate, clock), clock("passes"):
        remarks = run_pipeline(translation.module, pipeline, stages, options.isolate, options.plugins)
    if options.recheck:
        stages.write("certificate.txt", "\n".join(certificate) + "\n")
    marks = translation.module.body.operations[0].attributes
    return Transformed(
        tuple((r.reason, r.text, r.location) for r in remarks),
        tuple(Counterexample(r.reason, r.text, r.location, r.notes) for r in remarks if r.notes),
        tuple(certificate),
        ROWS_OF_SEGMENTS in marks or UNROLLED_REDUCTIONS in marks,
    )


@contextlib.contextmanager
def _rechecked(translation: Translation, options: Options, certificate: list[str], clock: Clock) -> Iterator[None]:
    """Have isl prove what the block makes of a module; its certificate is added to the list."""
    if not options.recheck:
        yield
        return
    from ..affine.isl_verifier import Recheck

    module = translation.module
    with _refusing(options), clock("recheck"), module.context:
        recheck = Recheck(module)
    yield
    with _refusing(options), clock("recheck"), module.context:
        certificate += recheck.verify(module)


@contextlib.contextmanager
def _refusing(options: Options) -> Iterator[None]:
    try:
        yield
    except InvariantError as broken:
        if options.strict:
            raise
        raise Unsupported(Reason.recheck_failed, str(broken)) from broken


def lift(
    translation: Translation, options: Options, group: Group, refuse: Note | None = None
) -> tuple[FunctionTables, list[LiftedBand]]:
    """Return (what the lift knows of the function's arguments, the bands), within the module's context.

    refuse: is told of a band that has no lift; Unsupported without it.
    """
    from ..lowering.lift.functions import lift_function

    tables, stores = _tables(translation, options, group)
    return tables, lift_function(translation.module.body.operations[0].operation, tables, stores, refuse)


def transform_unseen(translation: Translation, options: Options, group: Group) -> list[LiftedBand]:
    """Return what the passes make of a translated group, for nobody to see."""
    from ..affine.pipeline import run_pipeline

    pipeline = pipeline_of(options, group, translation)
    run_pipeline(translation.module, pipeline, NO_STAGES, options.isolate, options.plugins)
    with translation.module.context:
        return lift(translation, options, group)[1]


def _tables(translation: Translation, options: Options, group: Group) -> tuple[FunctionTables, dict[str, set[str]]]:
    """Return (what the lift knows of the function's arguments, the buffers that each node writes)."""
    from ..lowering.lift.band import FunctionTables

    buffers = [(name, m.view.strides) for name, m in translation.memrefs.items()]
    stores = {t.name: {a.buffer for a in t.accesses if a.is_write} for t in translation.traces}
    loads = {t.name: {a.buffer for a in t.accesses if not a.is_write} for t in translation.traces}
    triton = inductor.generates_triton(group.device)
    keeps, same = _keeps_row(options), translation.multiples.same
    # C++ has no lanes: a node there may have any loops of its kernel.
    elementwise = frozenset(t.name for t in translation.traces if triton and not t.reduce_vars)
    shifts = {name: m.shifted for name, m in translation.memrefs.items()}
    names = translation.new_contents, translation.seeds, elementwise, translation.read_again, shifts, loads
    tables = FunctionTables(buffers, translation.symbols, triton, keeps, same, *names)
    return tables, stores


def _keeps_row(options: Options) -> Callable[[int | None], bool]:
    return lambda registers: options.persistent and fits_in_registers(registers)
