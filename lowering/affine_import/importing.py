"""`bridge.lowering.compile_affine`: affine IR as a function of tensors, through Inductor's code generators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ... import inductor
from ...affine.mlir_runtime import load_pass_plugins
from ...support.fresh_code import fresh_entry
from . import functions
from .standalone import AffineFunction, Argument, read_function

if TYPE_CHECKING:
    from torch.fx import GraphModule


class AffineProgram:
    """Hold a compiled affine function: call it with tensors for its inputs, in the order of the arguments.

    The tensors have the memrefs' dtypes and as many elements (contiguous ones are not copied); the outputs have the
    memrefs' shapes, a tuple of them also where there is one.  It is compiled at the first call, for the device of
    the tensors.
    """

    def __init__(self, function: AffineFunction):
        """Make the function known to its operator; nothing is compiled yet."""
        self.function = function
        self._key = functions.register(function)
        self._compiled = torch.compile(fresh_entry(self.run), backend=self.backend, dynamic=False, fullgraph=True)

    @property
    def inputs(self) -> list[Argument]:
        """Return the arguments to give: each has a name, a shape and a dtype."""
        return [self.function.arguments[i] for i in self.function.inputs]

    @property
    def outputs(self) -> list[Argument]:
        """Return the arguments that are returned."""
        return [self.function.arguments[i] for i in self.function.outputs]

    @property
    def module(self) -> str:
        """Return the affine IR that is lifted."""
        return str(self.function.module)

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Compute the outputs.

        ValueError for tensors that are not the function's inputs; Unsupported for what only the lift can tell.
        """
        given = self._checked(tensors)
        with torch.no_grad(), functions.raising_refusals():
            return self._compiled(*given)

    def run(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Call the operator.

        This is what is compiled, for `bridge.offline.compile_for_gpu(program.run, ..., compile_fx=program.backend)`.
        """
        return tuple(torch.ops.bridge.affine(list(tensors), self._key))

    def backend(self, gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        """Compile the graph of `run`, as a Dynamo backend."""
        patches = inductor.config_patches(None, functions.PATCHES)
        return inductor.compile_graph(gm, example_inputs, patches, functions.filled)

    def _checked(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the tensors in the shapes of the inputs; ValueError for others than the function takes."""
        if len(tensors) != len(self.inputs):
            names = ", ".join(argument.name for argument in self.inputs)
            raise ValueError(f"{len(self.inputs)} tensors are needed ({names}), got {len(tensors)}")
        checked = []
        for tensor, argument in zip(tensors, self.inputs, strict=True):
            wanted = torch.Size(argument.shape)
            if tensor.dtype != argument.dtype or tensor.numel() != wanted.numel():
                got = f"{tensor.dtype} {tuple(tensor.shape)}"
                raise ValueError(f"{argument.name} is {argument.dtype} {argument.shape}, got {got}")
            checked.append(tensor.contiguous().view(wanted))
        return checked


def compile_affine(
    text: str,
    *,
    function: str | None = None,
    pipeline: str | None = None,
    plugins: Sequence[str] = (),
    outputs: list[str] | None = None,
) -> AffineProgram:
    """Lift a function of affine nests, each of which becomes a kernel, and return it as a function of tensors.

    text: an MLIR module, as `bridge export` writes it or of any other origin: functions whose arguments are memrefs
    of constant shape; function: its name, None for the only one; pipeline, plugins: passes to run first, such as
    `builtin.module(bridge-fuse)`; outputs: names of the arguments to return (`bridge.buffer`, or arg0, arg1, ...),
    default those labelled `bridge.output`, or all that are stored to.

    Every subscript is proven inside of its dimension first, and every loop that is to be a kernel's grid parallel.
    ValueError for text that MLIR does not take, Unsupported for what cannot be proven or lifted, with the reason; what
    is not proven is named with an iteration.
    """
    load_pass_plugins(tuple(plugins))
    return AffineProgram(read_function(text, function, pipeline, outputs))
