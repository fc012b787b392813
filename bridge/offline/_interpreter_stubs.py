"""For `interpret`: access to the internals of Triton's interpreter and of Inductor's helpers.

The companion of ``_stubs``, split off to keep both files short.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import dataclasses
import functools
import inspect
import itertools
import os
import textwrap
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
import triton.language as tl
from torch._inductor.runtime import triton_helpers
from triton import _utils as triton_names
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction

LIBDEVICE = triton_helpers.libdevice

# Modules with device functions that were decorated at import, as code for a GPU.
_DEVICE_FUNCTION_OWNERS = (
    tl,
    tl.core,
    tl.standard,
    tl.random,
    tl.math,
    tl.tensor,
    triton_helpers,
)
# What the interpreter patches while it runs. It restores the outermost scope
# only: what it patches on behalf of device functions called by a kernel stays.
_PATCHED_BY_INTERPRETER = (
    *_DEVICE_FUNCTION_OWNERS,
    tl.dtype,
    tl.core.tensor_descriptor_base,
)


@contextlib.contextmanager
def _restored_attributes(owners: tuple[object, ...]) -> Iterator[None]:
    """Undo every change to the attributes of some modules and classes."""
    saved = [(owner, dict(vars(owner))) for owner in owners]
    try:
        yield
    finally:
        for owner, before in saved:
            _restore(owner, before)


def _restore(owner: object, before: dict[str, object]) -> None:
    for name in vars(owner).keys() - before.keys():
        delattr(owner, name)
    for name, value in before.items():
        if vars(owner).get(name) is not value:
            setattr(owner, name, value)


def _interpreted(function: JITFunction) -> interpreter.InterpretedFunction:
    return interpreter.InterpretedFunction(function.fn)


def _interpret_device_functions() -> None:
    """Replace device functions by interpreted ones, one for each.

    The same one wherever a function appears: the interpreter recognises sums
    and the like by the identity of their combine function.
    """
    # By id: hashing a JITFunction would have Triton analyse its source.
    replaced: dict[int, interpreter.InterpretedFunction] = {}
    for owner in _DEVICE_FUNCTION_OWNERS:
        functions = [(name, member) for name, member in vars(owner).items() if isinstance(member, JITFunction)]
        for name, member in functions:
            if id(member) not in replaced:
                replaced[id(member)] = _interpreted(member)
            setattr(owner, name, replaced[id(member)])


# Floating types by their Triton name: torch's type, the integer as wide, and
# the largest value, which conversions to eight bits saturate to.
_FLOATS = {
    tl.float8e4nv: (torch.float8_e4m3fn, torch.uint8, 448.0),
    tl.float8e5: (torch.float8_e5m2, torch.uint8, 57344.0),
    tl.bfloat16: (torch.bfloat16, torch.int16, None),
    tl.float16: (torch.float16, torch.int16, None),
    tl.float32: (torch.float32, torch.int32, None),
    tl.float64: (torch.float64, torch.int64, None),
}


def _round_to(values: torch.Tensor, output_dtype: tl.dtype) -> np.ndarray:
    """Return the bits of ``values`` rounded to nearest, ties to even, as on the device."""
    dtype, integer, largest = _FLOATS[output_dtype]
    if largest is not None:
        values = values.clamp(-largest, largest)
    bits = values.to(dtype).view(integer).numpy()
    return bits.view(f"u{bits.dtype.itemsize}")


def _exact_convert_float(original: Callable) -> Callable:
    """Replace the interpreter's float conversion, which is not the device's.

    It truncates to bfloat16, and to eight bits loses the carry into the exponent.
    """

    def convert(data: np.ndarray, source: tl.dtype, target: tl.dtype, rounding_mode: object) -> np.ndarray:
        toward_zero = rounding_mode == interpreter._ir.ROUNDING_MODE.RTZ
        if toward_zero or source not in _FLOATS or target not in _FLOATS:
            return original(data, source, target, rounding_mode)
        dtype, _, _ = _FLOATS[source]
        bits = np.array(data).reshape(-1)
        bits = bits.view(f"i{bits.itemsize}" if bits.itemsize > 1 else "u1")
        values = torch.from_numpy(bits).view(dtype)
        return _round_to(values, target).reshape(np.shape(data))

    return convert


def _patch_tensor_class(original: Callable) -> Callable:
    """Wrap the interpreter's patching of ``tl.tensor`` to correct one method.

    NumPy 2.4 refuses ``int(array)`` for the one-element arrays that the
    interpreter has in place of scalars, as in loop bounds.
    """

    def patch(tensor: type, *args: object) -> None:
        original(tensor, *args)
        patched: Any = tensor
        patched.__index__ = lambda self: int(self.handle.data.item())

    return patch


def _patch_once(original: Callable) -> Callable:
    """Wrap the interpreter's patching of Triton's language, which looks at all of it for each call in a kernel.

    What is patched stays so until `interpreted_triton` ends, which restores it.
    """
    patched: set[int] = set()

    def patch(function: Callable) -> SimpleNamespace:
        modules = {id(value) for value in function.__globals__.values() if value is tl or value is tl.core}
        if not modules <= patched:
            original(function)
            patched.update(modules)
        return SimpleNamespace(restore=lambda: None)

    return patch


def _cached_np_dtype(original: Callable) -> Callable:
    """Wrap the interpreter's choice of NumPy's type, which makes a table of all of them for each array."""
    of_scalar = functools.cache(original)

    def np_dtype(dtype: tl.dtype) -> np.dtype:
        return original(dtype) if dtype.is_ptr() or dtype.scalar.is_ptr() else of_scalar(dtype.scalar)

    return np_dtype


def _cached_tuple_type(original: Callable) -> Callable:
    """Wrap the choice of a tuple's type, which spells out the types of all sizes for the shape of each tensor."""
    of_sizes = functools.cache(lambda *sizes: original([tl.constexpr(size) for size in sizes]))

    def tuple_type(values: list[Any], fields: object = None) -> Any:
        sizes = [value.value for value in values if isinstance(value, tl.constexpr) and type(value.value) is int]
        return original(values, fields) if fields or len(sizes) < len(values) else of_sizes(*sizes)

    return tuple_type


def _options() -> interpreter.InterpreterOptions:
    """Return the interpreter's options, less the checks for overflows that it computes and ignores."""
    options = interpreter.interpreter_builder.options
    return dataclasses.replace(options, sanitize_overflow=options.sanitize_overflow and options.debug)


def _exact_cast(original: Callable) -> Callable:
    """Replace the interpreter's casts, which take bfloat16, but to and from float32, for the integer of its bits."""

    def cast(self: interpreter.InterpreterBuilder, source: tl.tensor, target: tl.dtype) -> interpreter.TensorHandle:
        kinds = {source.dtype.scalar, target.scalar}
        if tl.bfloat16 in kinds and not kinds <= {tl.bfloat16, tl.float32}:
            source = original(self, source, tl.float32)
        return original(self, source, target)

    return cast


def _contiguous_atomic(original: Callable) -> Callable:
    """Replace the interpreter's atomic operation, which reads a broadcast value as if each element were stored."""

    def atomic(self: interpreter.InterpreterBuilder, kind: object, *rest: Any) -> interpreter.TensorHandle:
        operands, scopes = rest[:3], rest[3:]
        whole = [interpreter.TensorHandle(np.asarray(o.data, order="C"), o.dtype) for o in operands]
        if kind == interpreter._ir.ATOMIC_OP.FADD and operands[1].dtype.scalar == tl.bfloat16:
            return _add_bfloat16(*whole)
        return original(self, kind, *whole, *scopes)

    return atomic


def _add_bfloat16(
    pointers: interpreter.TensorHandle, values: interpreter.TensorHandle, mask: interpreter.TensorHandle
) -> interpreter.TensorHandle:
    """Add lane by lane, each sum rounded, for the interpreter's atomic operations, which know no bfloat16.

    Returns what was there before each addition, as bits.
    """
    addresses, kept = pointers.data.reshape(-1), np.broadcast_to(mask.data, pointers.data.shape).reshape(-1)
    addends = torch.from_numpy(np.array(values.data).reshape(-1).view(np.int16)).view(torch.bfloat16)
    before = np.zeros(addresses.size, np.uint16)
    for lane in np.flatnonzero(kept):
        memory = torch.from_numpy(np.ctypeslib.as_array((ctypes.c_int16 * 1).from_address(int(addresses[lane]))))
        before[lane] = memory.numpy().view(np.uint16)[0]
        memory.view(torch.bfloat16).add_(addends[lane])
    return interpreter.TensorHandle(before.reshape(pointers.data.shape), tl.bfloat16)


def _along(data: np.ndarray, axis: int, part: slice) -> np.ndarray:
    return data[(slice(None),) * axis + (part,)]


def _combined(
    operation: interpreter.ReduceScanOpInterface,
    first: list[np.ndarray],
    second: list[np.ndarray],
    dtypes: list[tl.dtype],
) -> list[np.ndarray]:
    """Apply the combine function to arrays, which are whole parts of blocks; keep the arrays' types."""
    tensors = [operation.to_tensor(data, dtype) for data, dtype in zip(first + second, dtypes + dtypes, strict=True)]
    results = operation.combine_fn.fn(*tensors)
    results = results if isinstance(results, tuple) else (results,)
    handles = [r.handle.data if isinstance(r, tl.core.tensor) else r for r in results]
    return [np.broadcast_to(h, d.shape).astype(d.dtype) for h, d in zip(handles, first, strict=True)]


@functools.cache
def _takes_blocks(combine: Callable) -> bool:
    """Return True if a combine function also works on blocks: `not` and `and` are Python's, and ask for one truth."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(combine)))
    return not any(isinstance(node, (ast.Not, ast.BoolOp)) for node in ast.walk(tree))


_reduce_by_elements = interpreter.ReduceOps.generic_reduce
_scan_by_elements = interpreter.ScanOps.generic_scan


def _reduce_by_halves(self: interpreter.ReduceOps, values: tuple[tl.tensor, ...]) -> list[tl.tensor]:
    """Replace the interpreter's reduction, which calls the combine function for each element.

    Neighbours are combined, then those of the results, as on the device: the order of a sum is a tree's.
    """
    if not _takes_blocks(self.combine_fn.fn):
        return _reduce_by_elements(self, values)
    whole = self.axis is None
    values, axis = self.unravel(values, self.axis)
    data, dtypes = [value.handle.data for value in values], [value.dtype for value in values]
    while (length := data[0].shape[axis]) > 1:
        even, odd = ([_along(d, axis, slice(first, length // 2 * 2, 2)) for d in data] for first in (0, 1))
        last = [_along(d, axis, slice(length // 2 * 2, None)) for d in data]
        pairs = _combined(self, even, odd, dtypes)
        data = [np.concatenate(parts, axis) for parts in zip(pairs, last, strict=True)]
    if not self.keep_dims:
        data = [d.item() if whole else d.squeeze(axis) for d in data]
    return [self.to_tensor(d, dtype) for d, dtype in zip(data, dtypes, strict=True)]


def _scan_by_slices(self: interpreter.ScanOps, values: tuple[tl.tensor, ...]) -> list[tl.tensor]:
    """Replace the interpreter's scan, which calls the combine function for each element, by one for each index."""
    if not _takes_blocks(self.combine_fn.fn):
        return _scan_by_elements(self, values)
    dtypes = [value.dtype for value in values]
    data = [value.handle.data for value in values]
    slices = [[_along(d, self.axis, slice(i, i + 1)) for d in data] for i in range(data[0].shape[self.axis])]
    scanned = itertools.accumulate(slices, lambda first, second: _combined(self, first, second, dtypes))
    columns = zip(*scanned, strict=True)
    return [self.to_tensor(np.concatenate(c, self.axis), dtype) for c, dtype in zip(columns, dtypes, strict=True)]


@contextlib.contextmanager
def interpreted_triton() -> Iterator[None]:
    """Have Triton interpret what is decorated within, and its own functions."""
    rewritten, builder = interpreter.InterpretedFunction.rewritten_fn, interpreter.InterpreterBuilder
    replacements: dict[str, Any] = {
        "_get_np_dtype": _cached_np_dtype(interpreter._get_np_dtype),
        "_patch_lang": _patch_once(interpreter._patch_lang),
        "_patch_lang_tensor": _patch_tensor_class(interpreter._patch_lang_tensor),
        "_convert_float": _exact_convert_float(interpreter._convert_float),
    }
    with (
        mock.patch.dict(os.environ, TRITON_INTERPRET="1"),
        mock.patch.dict(rewritten),
        # As Inductor does for its kernels; Triton has no name for such arguments.
        mock.patch.dict(triton_names.type_canonicalisation_dict, float8_e8m0fnu="u8"),
        mock.patch.multiple(interpreter, **replacements),
        mock.patch.object(interpreter.ReduceOps, "generic_reduce", _reduce_by_halves),
        mock.patch.object(interpreter.ScanOps, "generic_scan", _scan_by_slices),
        mock.patch.object(tl.core, "_type_for_tuple_values", _cached_tuple_type(tl.core._type_for_tuple_values)),
        mock.patch.object(interpreter.interpreter_builder, "options", _options()),
        mock.patch.object(builder, "cast_impl", _exact_cast(builder.cast_impl)),
        mock.patch.object(builder, "create_atomic_rmw", _contiguous_atomic(builder.create_atomic_rmw)),
        _restored_attributes(_PATCHED_BY_INTERPRETER),
    ):
        _interpret_device_functions()
        yield


def _handle_to_torch(value: tl.tensor) -> torch.Tensor:
    data = np.ascontiguousarray(value.handle.data)
    if value.dtype.scalar == tl.bfloat16:
        # The interpreter keeps bfloat16 as its bits.
        return torch.from_numpy(data.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(data)


def to_torch(args: tuple[object, ...]) -> list[torch.Tensor]:
    """Convert the interpreter's tensors, and numbers among them, to torch tensors."""
    args = tuple(a.value if isinstance(a, tl.constexpr) else a for a in args)
    tensors = [_handle_to_torch(a) for a in args if isinstance(a, tl.tensor)]
    dtype = tensors[0].dtype if tensors else torch.float32
    converted = iter(tensors)
    return [next(converted) if isinstance(a, tl.tensor) else torch.tensor(a, dtype=dtype) for a in args]


_TRITON_DTYPES = {
    torch.float16: tl.float16,
    torch.float32: tl.float32,
    torch.float64: tl.float64,
    torch.int32: tl.int32,
    torch.int64: tl.int64,
}


def from_torch(result: torch.Tensor) -> tl.tensor:
    """Convert a torch tensor to one of the interpreter's."""
    scalar = _TRITON_DTYPES[result.dtype]
    handle = interpreter.TensorHandle(result.numpy(), scalar)
    shape = list(result.shape)
    return tl.tensor(handle, tl.block_type(scalar, shape) if shape else scalar)
