"""Runs MLIR's pass manager on a module and collects what the passes say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..reasons import Reason, Unsupported
from .mlir_runtime import ir, passmanager


@dataclass(frozen=True)
class Remark:
    """Hold a refusal of a pass: reason, text, and where; notes: an example of a dependence, as (text, location)."""

    reason: str
    text: str
    location: str
    notes: tuple[tuple[str, str], ...] = ()


_REMARK = re.compile(r"\[(\w+)\] (.*)", re.DOTALL)


def transform(module: ir.Module, pipeline: str, tree: Path | None = None) -> list[Remark]:
    """Transform `module` in place; Unsupported(PASS_FAILED) if a pass fails or the pipeline does not parse.

    tree: folder for MLIR to print the module into after each pass that changes it.
    """
    remarks: list[Remark] = []
    errors: list[str] = []

    def listen(diagnostic: ir.Diagnostic) -> bool:
        """Keep what a pass says, as a remark or as an error."""
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
            raise Unsupported(Reason.pass_failed, "; ".join([_said(error), *errors])) from error
        finally:
            handler.detach()
    return remarks


def _said(error: Exception) -> str:
    """Return what an error says: without the module, which the file has, and the caret below a pipeline's text."""
    text = str(error).split("see current operation")[0].rstrip(" :")
    return text.partition("\n")[0] if isinstance(error, ValueError) else text


def _example(diagnostic: ir.Diagnostic) -> tuple[tuple[str, str], ...]:
    """Return the two accesses of a dependence, as the legality check words them; other notes are MLIR's own."""
    notes = [(note.message, str(note.location)) for note in diagnostic.notes]
    return tuple(note for note in notes if note[0].startswith("iteration ("))


def _run(module: ir.Module, pipeline: str, tree: Path | None) -> None:
    """Run a pipeline; with a folder `tree` MLIR prints the module into it after each pass that changes it."""
    manager = passmanager.PassManager.parse(pipeline)
    if tree is not None:
        manager.enable_ir_printing(
            print_before_all=False,
            print_after_all=True,
            print_after_change=True,
            tree_printing_dir_path=str(tree),
        )
    manager.run(module.operation)
