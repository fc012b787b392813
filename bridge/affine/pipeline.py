"""Runs the MLIR passes on a translated group and collects what they say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..diagnostics.dump import Dump
from ..reasons import Reason, Unsupported
from .mlir_runtime import ir, load_pass_plugins, passmanager
from .reproducer import write_reproducer


@dataclass(frozen=True)
class Remark:
    """A refusal of a pass: reason, text, and where; notes: an example of a dependence, as (text, location)."""

    reason: str
    text: str
    location: str
    notes: tuple[tuple[str, str], ...] = ()


_REMARK = re.compile(r"\[(\w+)\] (.*)", re.DOTALL)


def run_pipeline(
    module, pipeline: str, dump: Dump, isolate: bool = False, plugins: tuple[str, ...] = ()
) -> list[Remark]:
    """Transforms `module` in place; Unsupported if a pass fails, or in a helper process (`isolate`) crashes or hangs.

    plugins: libraries with passes of the pipeline.  A failure leaves a file behind that repeats it, `reproducer.py`.
    """
    load_pass_plugins(plugins)
    before = module.operation.clone()
    try:
        with dump.pass_tree() as tree:
            if isolate:
                from .isolation import transform_isolated

                remarks = transform_isolated(module, pipeline, tree, plugins)
            else:
                remarks = transform(module, pipeline, tree)
    except Unsupported as failure:
        repeat = write_reproducer(str(before), pipeline, dump.folder)
        raise Unsupported(failure.reason, f"{failure.detail}; to repeat: {repeat}") from failure
    dump.write("fused.mlir", lambda: str(module))
    return remarks


def transform(module, pipeline: str, tree: Path | None = None) -> list[Remark]:
    """Transforms `module` in place; Unsupported(PASS_FAILED) if a pass fails or the pipeline does not parse.

    tree: folder for MLIR to print the module into after each pass that changes it.
    """
    remarks: list[Remark] = []
    errors: list[str] = []

    def listen(diagnostic) -> bool:
        match = _REMARK.match(diagnostic.message)
        if match and match[1] in Reason.__members__:
            remarks.append(Remark(match[1], match[2], str(diagnostic.location), _example(diagnostic)))
        else:
            errors.append(diagnostic.message)
        return True

    with module.context as context:
        handler = context.attach_diagnostic_handler(listen)
        try:
            _run(module, pipeline, tree)
        except (ir.MLIRError, ValueError) as error:
            said = str(error).split("see current operation")[0].rstrip(" :")  # the module, which the file has
            raise Unsupported(Reason.pass_failed, "; ".join([said, *errors])) from error
        finally:
            handler.detach()
    return remarks


def _example(diagnostic) -> tuple[tuple[str, str], ...]:
    """The two accesses of a dependence, which `describe` of DependenceExample.cpp words; other notes are MLIR's own."""
    notes = [(note.message, str(note.location)) for note in diagnostic.notes]
    return tuple(note for note in notes if note[0].startswith("iteration ("))


def _run(module, pipeline: str, tree: Path | None) -> None:
    manager = passmanager.PassManager.parse(pipeline)
    if tree is not None:
        manager.enable_ir_printing(
            print_before_all=False,
            print_after_all=True,
            print_after_change=True,
            tree_printing_dir_path=str(tree),
        )
    manager.run(module.operation)
