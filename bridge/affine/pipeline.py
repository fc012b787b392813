"""Runs the passes on the affine IR of a group: in this process or in a helper process, with a reproducer on failure."""

from __future__ import annotations

from ..reasons import Unsupported
from ..support.recorder import Stages
from .isolation import transform_isolated
from .mlir_runtime import ir, load_pass_plugins
from .pass_manager import Remark, transform
from .reproducer import write_reproducer


def run_pipeline(
    module: ir.Module, pipeline: str, dump: Stages, isolate: bool = False, plugins: tuple[str, ...] = ()
) -> list[Remark]:
    """Transform `module` in place; Unsupported if a pass fails, or in a helper process (`isolate`) crashes or hangs.

    plugins: libraries with passes of the pipeline.  A failure leaves a file behind that repeats it, `reproducer.py`.
    """
    load_pass_plugins(plugins)
    before = module.operation.clone()
    try:
        with dump.pass_tree() as tree:
            if isolate:
                remarks = transform_isolated(module, pipeline, tree, plugins)
            else:
                remarks = transform(module, pipeline, tree)
    except Unsupported as failure:
        repeat = write_reproducer(str(before), pipeline, dump.folder)
        raise Unsupported(failure.reason, f"{failure.detail}; to repeat: {repeat}") from failure
    dump.write("fused.mlir", lambda: str(module))
    return remarks
