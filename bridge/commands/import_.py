"""Lift an affine module into kernels, and run them.

bridge import norm.mlir --pipeline 'builtin.module(bridge-fuse)' --show kernels
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..diagnostics.recording import recorded
from ..options import check
from ..reasons import Unsupported
from . import _program
from ._output import counted, show
from ._progress import Progress
from ._user_code import users_code

if TYPE_CHECKING:
    from torch import Tensor

    from ..diagnostics.recording import Kernel
    from ..lowering.affine_import.importing import AffineProgram
    from ..lowering.affine_import.standalone import Argument

NAME = "import"


def register(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("module", help="a file with an MLIR module")
    parser.add_argument("--function", help="which function of it, if there are several")
    parser.add_argument("--pipeline", help="passes to run first, as bridge-opt --pass-pipeline takes them")
    parser.add_argument("--plugin", action="append", default=[], metavar="LIBRARY", help="a library with passes")
    parser.add_argument("--target", default="cpu", help="cpu (default), which runs it on random numbers; or cuda:sm_90")
    parser.add_argument("--show", choices=["module", "kernels"], help="print the lifted module, or the kernels")
    parser.add_argument("--check", metavar="FILE.py:FUNCTION", help="compare the outputs with this function's")


def run(arguments: argparse.Namespace) -> int:
    """Lift, run and show the module; return 1 if the outputs are not those of --check's function."""
    text = Path(arguments.module).read_text()
    plugins = check("plugins", arguments.plugin)
    from ..lowering.affine_import.importing import compile_affine  # weight: torch; what is wrong so far is said at once

    try:
        program = compile_affine(text, function=arguments.function, pipeline=arguments.pipeline, plugins=plugins)
    except Unsupported as error:
        raise Unsupported(error.reason, _placed(error.detail, arguments.module)) from error
    except ValueError as error:
        raise ValueError(_placed(str(error), arguments.module)) from error
    if arguments.show == "module":
        show(program.module)
    inputs = [_program.make_tensor(_spelled(argument)) for argument in program.inputs]
    with Progress() as progress:
        progress("compiling")
        kernels, outputs = _compile(program, inputs, arguments.target)
    if arguments.show == "kernels":
        show("\n".join(kernel.source for kernel in kernels))
    nests, made = counted(len(program.function.nests), "nest"), counted(len(kernels), "generated kernel")
    show(f"{nests} in {made} for {arguments.target}")
    for argument, output in zip(program.outputs, outputs, strict=True):
        show(f"output {argument.name}: {output.dtype} {tuple(output.shape)}")
    return _check(arguments.check, inputs, outputs) if arguments.check else 0


def _placed(words: str, file: str) -> str:
    """Return what is wrong with the file's name in it: MLIR calls the text "-"."""
    return re.sub(r'loc\("-":(\d+:\d+)\)', rf"{file}:\1", words).replace('"-":', f"{file}:")


def _spelled(argument: Argument) -> str:
    return f"{'x'.join(map(str, argument.shape)) or '1'}:{str(argument.dtype).removeprefix('torch.')}"


def _compile(program: AffineProgram, inputs: list[Tensor], target: str) -> tuple[list[Kernel], list[Tensor]]:
    """Return the kernels and the outputs; without a GPU the outputs of a GPU target have no values."""
    import torch  # weight: `bridge --help` is quick without it

    from ..diagnostics.explaining import architecture_of  # weight: torch

    with recorded() as recording:
        if architecture_of(target) is None:
            outputs = list(program(*inputs))
        else:
            from ..offline import compile_for_gpu  # weight: Triton, which may not be installed

            architecture = architecture_of(target)
            compile_for_gpu(program.run, inputs, compile_fx=program.backend, arch=architecture)
            outputs = [torch.empty(a.shape, dtype=a.dtype, device="meta") for a in program.outputs]
    return recording.kernels, outputs


def _check(program: str, inputs: list[Tensor], outputs: list[Tensor]) -> int:
    """Return 1 if the outputs are not those of the function `FILE.py:FUNCTION`."""
    import torch  # weight: `bridge --help` is quick without it

    if any(output.is_meta for output in outputs):
        show("not checked: without its GPU a target's outputs have no values")
        return 1
    with users_code(_program.split(program)[0], []):
        expected = _program.call(program, inputs)
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    if [output.numel() for output in outputs] != [other.numel() for other in expected]:
        show(f"different: the function has {len(expected)} outputs of {[tuple(t.shape) for t in expected]}")
        return 1
    for one, other in zip(outputs, expected, strict=True):
        difference = (one.double() - other.reshape(one.shape).double()).abs()
        error = difference.max().item() if difference.numel() else 0.0
        show(f"largest difference {error:.2e}")
        if not torch.allclose(one.double(), other.reshape(one.shape).double(), rtol=1e-2, atol=1e-3):
            return 1
    return 0
