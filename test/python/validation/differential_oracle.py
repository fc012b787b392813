"""Translate functions to the affine dialect with torch-mlir, as a differential oracle of Bridge's translation.

It shares no code with Inductor or Bridge: torch.export, torch-mlir's importer and its lowering to linalg,
upstream's bufferization and loops. torch-mlir brings an LLVM of its own, of another age than Bridge's, so it works in a
process of its own; text comes back, for `executed.execute`.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import validate
from executed import execute
from programs import Program

from bridge.affine import dtypes

#: From linalg on tensors to linalg on memrefs, results as arguments.
_TO_MEMREFS = """builtin.module(
  eliminate-empty-tensors, empty-tensor-to-alloc-tensor,
  one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},
  buffer-results-to-out-params{modify-public-functions}
)"""

#: LLVM's powi wants an exponent of 32 bits, torch-mlir gives it 64.
_TO_AFFINE = """builtin.module(
  linalg-generalize-named-ops, convert-linalg-to-affine-loops, func.func(math-expand-ops{ops=fpowi}), canonicalize
)"""

#: Lowered to a call of a library where the layouts are not simple, and to loops as one of linalg's operations.
_COPY = re.compile(r"memref\.copy (%\S+), (%\S+) : (.*) to (.*)")


class _Module(torch.nn.Module):
    """Wrap a function, as torch.export takes modules."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def _translate(function: Callable, inputs: list[torch.Tensor]) -> str:
    from torch_mlir import fx, ir, passmanager

    module = fx.export_and_import(_Module(function), *inputs, output_type="linalg-on-tensors", func_name="oracle")
    with module.context:
        passmanager.PassManager.parse(_TO_MEMREFS).run(module.operation)
        module = ir.Module.parse(_COPY.sub(r"linalg.copy ins(\1 : \3) outs(\2 : \4)", str(module)))
        passmanager.PassManager.parse(_TO_AFFINE).run(module.operation)
        return str(module)


def float32(case: Program | Any) -> tuple[Callable, list[torch.Tensor]]:
    """Return the function and the inputs of a program, or of a pattern of the benchmarks at its small size.

    In float32: torch-mlir's sums of 16-bit numbers have 16 bits, where torch's have 32. All sizes are numbers.
    """
    if isinstance(case, Program):
        case = replace(case, dtype=torch.float32, dynamic=False, other_shapes={})
        return case.function, case.inputs()
    return case.function, case.make(None, torch.float32, "cpu", small=True)


def _serve() -> None:
    """Answer each line of the input, a pickled case, with a line of JSON: its IR, or the error."""
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # where others may print
    with open(answers, "w", encoding="utf-8") as out:
        for line in sys.stdin:
            try:
                answer = {"text": _translate(*float32(pickle.loads(base64.b64decode(line))))}
            except Exception as problem:  # noqa: BLE001 - it is for who asked
                answer = {"problem": f"{type(problem).__name__}: {problem}"}
            print(json.dumps(answer), file=out, flush=True)


@functools.cache
def _process() -> subprocess.Popen:
    command = [sys.executable, "-W", "ignore", __file__]
    path = os.pathsep.join(filter(None, sys.path))
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, "PYTHONPATH": path})


class NotTranslated(RuntimeError):
    """Say that torch-mlir cannot translate a function, or that its process ended."""


def affine_ir(case: Program | Any) -> str:
    """Return torch-mlir's IR of a case, in float32: a memref for each input, then one for each output.

    Raises NotTranslated.
    """
    process = _process()
    process.stdin.write(base64.b64encode(pickle.dumps(case)).decode() + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        _process.cache_clear()
        raise NotTranslated(f"exit status {process.wait()}")
    answer = json.loads(line)
    if "problem" in answer:
        raise NotTranslated(answer["problem"])
    return answer["text"]


def disagreements(recorded: validate.Recorded, text: str, inputs: list[torch.Tensor]) -> list[str]:
    """Return a line for each output that differs between torch-mlir's IR and Bridge's, before and after the passes."""
    lines = []
    expected = outputs_of(text, inputs)
    for stage in ("before", "after"):
        results = validate.outputs_of(recorded, stage)
        for position, (result, other) in enumerate(zip(results, expected, strict=True)):
            assert (result.shape, result.dtype) == (other.shape, other.dtype)
            problem = validate.far(result, other)
            lines += [f"output {position}, {stage} the passes: {problem}"] if problem else []
    return lines


def outputs_of(text: str, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the outputs of torch-mlir's IR for these inputs."""
    (signature,) = re.findall(r"func\.func @oracle\((.*)\)", text)
    types = re.findall(r"memref<([^>]*)>", signature)[len(inputs) :]
    outputs = [_empty(*text.split("x")) for text in types]
    execute(text, [*(t.contiguous() for t in inputs), *outputs], [])
    return outputs


def _empty(*words: str) -> torch.Tensor:
    *shape, element = words
    return torch.empty([int(size) for size in shape], dtype=dtypes.signed_dtype(element))


if __name__ == "__main__":
    _serve()
