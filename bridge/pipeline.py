"""Runs the MLIR passes on a translated group and collects what they say."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .dump import Dump
from .mlir_runtime import ir, passmanager
from .reasons import Reason, Unsupported


@dataclass(frozen=True)
class Remark:
    """A refusal of a pass: reason, text, and where."""

    reason: str
    text: str
    location: str


_REMARK = re.compile(r"\[(\w+)\] (.*)", re.DOTALL)


def run_pipeline(module, pipeline: str, dump: Dump) -> list[Remark]:
    """Transforms `module` in place; Unsupported(PASS_FAILED) if a pass fails or the pipeline does not parse."""
    remarks: list[Remark] = []
    errors: list[str] = []

    def listen(diagnostic) -> bool:
        match = _REMARK.match(diagnostic.message)
        if match and match[1] in Reason.__members__:
            remarks.append(Remark(match[1], match[2], str(diagnostic.location)))
        else:
            errors.append(diagnostic.message)
        return True

    with module.context as context:
        handler = context.attach_diagnostic_handler(listen)
        try:
            _run(module, pipeline, dump)
        except (ir.MLIRError, ValueError) as error:
            raise Unsupported(Reason.pass_failed, "; ".join([str(error), *errors])) from error
        finally:
            handler.detach()
    return remarks


def _run(module, pipeline: str, dump: Dump) -> None:
    manager = passmanager.PassManager.parse(pipeline)
    with dump.pass_tree() as tree:
        if tree is not None:
            manager.enable_ir_printing(
                print_before_all=False,
                print_after_all=True,
                print_after_change=True,
                tree_printing_dir_path=str(tree),
            )
        manager.run(module.operation)
    dump.write("fused.mlir", lambda: str(module))
