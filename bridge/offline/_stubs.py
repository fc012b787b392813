"""For `bridge.offline`: everything that reaches into the internals of PyTorch or Triton.

The stubs make a process without a GPU look, to Inductor only, like one that
holds a given GPU. Each is a context manager that restores what it replaced, on
exceptions too. Supported: torch 2.11 to 2.15, CPU and CUDA builds.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import tempfile
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from unittest import mock

import torch
import torch._dynamo.config
import torch._dynamo.pgo
import torch._functorch.config
import torch._inductor.async_compile

# Imported before any stub is active: these modules look at the device when
# they are loaded, and what they then see would outlive the stubs.
import torch._inductor.codegen.common
import torch._inductor.codegen.cuda_combined_scheduling
import torch._inductor.codegen.triton
import torch._inductor.compile_fx as inductor_compile_fx
import torch._inductor.config as inductor_config
import torch._inductor.fx_passes.fuse_attention
import torch._inductor.fx_passes.joint_graph
import torch._inductor.fx_passes.pad_mm
import torch._inductor.fx_passes.post_grad
import torch._inductor.graph
import torch._inductor.runtime.triton_heuristics
import torch._inductor.select_algorithm
import triton
from torch._dynamo import device_interface
from torch._inductor.codecache import PyCodeCache
from torch._inductor.utils import fresh_cache
from torch._subclasses import fake_tensor
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.driver import CudaDriver
from triton.runtime.driver import driver as triton_driver

from ._relocate import attention_on_gpu, convolution_format, relocate
from .arch import GpuArch, device_properties

if TYPE_CHECKING:
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    from triton.compiler import CompiledKernel

# functools caches whose values depend on the device, as "module:attribute".
# Cleared when the stubs go up and when they come down. One-time registrations
# (lazy_init and the like) must not be listed: they would run twice.
_DEVICE_CACHES = (
    "torch.utils._triton:_device_supports_tensor_descriptor",
    "torch.utils._triton:_device_supports_tma",
    "torch.utils._triton:has_triton",
    "torch.utils._triton:has_triton_tma",
    "torch.utils._triton:has_triton_tma_device",
    "torch.utils._triton:has_triton_experimental_host_tma",
    "torch.utils._triton:has_triton_tensor_descriptor_host_tma",
    "torch.utils._triton:has_datacenter_blackwell_tma_device",
    "torch.utils._triton:has_triton_cuda_tma_device",
    "torch.utils._triton:has_triton_stable_tma_api",
    "torch.utils._triton:triton_backend",
    "torch.utils._triton:triton_hash_with_backend",
    "torch._inductor.runtime.hints:DeviceProperties.create",
    "torch._inductor.utils:_get_device_dram_gbps",
    "torch._inductor.utils:_get_device_tflops",
    "torch._inductor.utils:_prefers_swizzle_32_8_cached",
    "torch._inductor.utils:_rocm_native_device_arch_name",
    "torch._inductor.utils:get_gpu_type",
    "torch._inductor.utils:is_big_gpu",
    "torch._inductor.utils:get_max_num_sms",
    "torch._inductor.utils:get_num_sms",
    "torch._inductor.utils:rocm_gfx_arch",
    "torch._inductor.utils:using_rocm_rdna3",
    "torch._inductor.utils:using_b200",
    "torch._inductor.utils:get_backend_num_stages",
    "torch._inductor.utils:get_device_tflops",
    "torch._inductor.utils:get_gpu_dram_gbps",
    "torch._inductor.utils:get_gpu_shared_memory",
    "torch._inductor.utils:get_max_numwarps",
    "torch._inductor.codecache:CacheBase.get_system",
    "torch._inductor.codecache:CacheBase.get_local_cache_path",
    "torch._inductor.codegen.cuda.cuda_env:get_cuda_arch",
    "torch._inductor.codegen.cuda.cuda_env:is_datacenter_blackwell_arch",
    "torch._inductor.codegen.cuda.cuda_env:get_cuda_version",
    "torch._inductor.comm_analysis:_has_nvlink",
    "torch._inductor.comm_analysis:get_gpu_type",
    "torch._inductor.kernel.mm:_is_sm7x_or_older_gpu",
    "torch._subclasses.fake_tensor:init_gpu_context",
)

# The static launcher would want to load the cubin.
_NO_STATIC_LAUNCHER = {"use_static_cuda_launcher": False}


def _resolve(path: str) -> object:
    """Return the object at ``module:attr.attr``, or None where this version lacks it."""
    module_name, _, attributes = path.partition(":")
    try:
        target: object = importlib.import_module(module_name)
    except ImportError:
        return None
    for attribute in attributes.split("."):
        target = getattr(target, attribute, None)
    return target


def _clear_device_caches() -> None:
    for path in _DEVICE_CACHES:
        clear = getattr(_resolve(path), "cache_clear", None)
        if clear is not None:
            clear()


@contextlib.contextmanager
def _cleared_device_caches() -> Iterator[None]:
    _clear_device_caches()
    try:
        yield
    finally:
        _clear_device_caches()


class StubDriver(CudaDriver):
    """Stand for a Triton driver that knows its target and cannot launch.

    It derives from ``CudaDriver`` because Inductor's ``set_driver_to_gpu``
    replaces an active driver of any other class by a real one.
    """

    def __init__(self, arch: GpuArch) -> None:
        # No super().__init__(): it builds a C extension against libcuda.
        self._arch = arch
        limits = {
            "max_shared_mem": arch.shared_memory_per_block_optin,
            "multiprocessor_count": arch.multi_processor_count,
            "warpSize": arch.warp_size,
        }
        self.utils = types.SimpleNamespace(get_device_properties=lambda device: dict(limits))

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._arch.capability, self._arch.warp_size)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return self._arch.major, self._arch.minor


class _OnCpu(TorchDispatchMode):
    """Make new tensors for the absent GPU on the CPU."""

    def __torch_dispatch__(
        self, func: torch._ops.OpOverload, types: Sequence[type], args: tuple = (), kwargs: dict | None = None
    ) -> object:
        # A copy to a device has it as an argument without a name.
        args, kwargs = pytree.tree_map_only(torch.device, _cpu_for_gpu, (args, kwargs or {}))
        return func(*args, **kwargs)


def _cpu_for_gpu(device: torch.device) -> torch.device:
    return torch.device("cpu") if device.type == "cuda" else device


def _on_cpu(method: Callable) -> Callable:
    """Wrap constant folding's step, which computes one element of each constant on its device."""

    @functools.wraps(method)
    def run(*args: object) -> object:
        with _OnCpu():
            return method(*args)

    return run


def _constant_name(graph: torch._inductor.graph.GraphLowering, name: str, device: torch.device | None) -> str:
    """Return a constant's own name: a kernel's copy of it would need the GPU."""
    return name


def _lookup_seed(seeds: torch.Tensor, index: int) -> object:
    """Return the shape of one random seed; subscripting would ask for the device."""
    return torch._prims.TensorMeta(seeds.select(0, index).clone())


def _nothing(*args: object, **kwargs: object) -> None:
    return None


def _constant(value: object) -> Callable:
    return lambda *args, **kwargs: value


def _cuda_functions(arch: GpuArch) -> dict[str, Callable]:
    """Return stand-ins for functions of ``torch.cuda``."""
    return {
        "is_available": _constant(True),
        "is_initialized": _constant(True),
        "device_count": _constant(1),
        "current_device": _constant(0),
        "get_device_name": _constant(arch.name),
        "get_device_properties": _constant(device_properties(arch)),
        "get_device_capability": _constant((arch.major, arch.minor)),
        "get_arch_list": _constant([f"sm_{arch.capability}"]),
        "is_bf16_supported": _constant(True),
        "is_tf32_supported": _constant(True),
        "mem_get_info": _constant((arch.total_memory, arch.total_memory)),
        "memory_allocated": _constant(0),
        "synchronize": _nothing,
        "set_device": _nothing,
        "set_rng_state": _nothing,
        "get_rng_state": _constant(torch.empty(16, dtype=torch.uint8)),
        "_lazy_init": _nothing,
        "_exchange_device": _constant(-1),
        "_maybe_exchange_device": _constant(-1),
    }


def _interface_functions(arch: GpuArch) -> dict[str, object]:
    """Return stand-ins for ``CudaInterface``, which bound torch.cuda's at import."""
    cuda = _cuda_functions(arch)
    names = (
        "current_device set_device device_count synchronize memory_allocated get_device_properties is_bf16_supported"
    )
    replaced: dict[str, object] = {name: staticmethod(cuda[name]) for name in names.split()}
    replaced["exchange_device"] = staticmethod(_constant(-1))
    replaced["maybe_exchange_device"] = staticmethod(_constant(-1))
    replaced["get_raw_stream"] = staticmethod(_constant(0))
    return replaced


def _patch_all(stack: contextlib.ExitStack, target: object, new: Mapping[str, object]) -> None:
    for name, value in new.items():
        if hasattr(target, name):
            stack.enter_context(mock.patch.object(target, name, value))


def _tensor_methods() -> dict[str, Callable]:
    """Return methods of fake tensors that Inductor calls, as operators.

    Python's bindings of the methods set the device first, for which a CPU build has no guard; operators do not.
    """
    aten = torch.ops.aten
    return {
        "__invert__": lambda self: aten.bitwise_not.default(self),
        "nonzero": lambda self: aten.nonzero.default(self),
        "copy_": lambda self, source, non_blocking=False: aten.copy_.default(self, source, non_blocking),
        "contiguous": lambda self, memory_format=torch.contiguous_format: aten.contiguous.default(
            self, memory_format=memory_format
        ),
    }


def _pattern_init() -> dict[str, Callable]:
    """Return a stand-in for the registration of the joint graph's patterns.

    It traces them on fake tensors of the graph's device. A CPU build cannot
    index fake GPU tensors in Python (it has no device guard at all), so there
    the patterns are traced on the CPU; they are matched on any device.
    """
    if torch.backends.cuda.is_built():
        return {}
    original = torch._inductor.fx_passes.joint_graph.lazy_init
    return {"lazy_init": lambda *args, **kwargs: original(torch.device("cpu"))}


@contextlib.contextmanager
def _without_advice() -> Iterator[None]:
    """Hide torch's advice to use TensorFloat32, where it is about a GPU that is not there."""
    with warnings.catch_warnings():
        if not torch.cuda.is_available():
            warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
        yield


@contextlib.contextmanager
def gpu_stubs(arch: GpuArch) -> Iterator[None]:
    """Make this process look like one that holds a GPU of ``arch``."""
    worker_state = (
        device_interface.caching_worker_device_properties,
        device_interface.caching_worker_current_devices,
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(_cleared_device_caches())
        for state in worker_state:
            stack.enter_context(mock.patch.dict(state, clear=True))
        stack.enter_context(_without_advice())
        stack.enter_context(active_triton_driver(StubDriver(arch)))
        _patch_all(stack, torch.cuda, _cuda_functions(arch))
        _patch_all(stack, torch.accelerator, {"current_device_index": _constant(0), "synchronize": _nothing})
        _patch_all(stack, device_interface.CudaInterface, _interface_functions(arch))
        joint_graph = torch._inductor.fx_passes.joint_graph
        _patch_all(stack, joint_graph, _pattern_init())
        folder = joint_graph.UniformValueConstantFolder
        _patch_all(stack, folder, {"_deduce_value": _on_cpu(folder._deduce_value)})
        _patch_all(stack, torch._inductor.graph.GraphLowering, {"constant_name": _constant_name})
        lookup_seed = torch.ops.prims.inductor_lookup_seed.default
        _patch_all(stack, lookup_seed, {"prim_meta_impl": _lookup_seed})
        attention = {"_scaled_dot_product_attention": attention_on_gpu}
        _patch_all(stack, torch._inductor.fx_passes.fuse_attention, attention)
        _patch_all(stack, torch._C, {"_conv_determine_backend_memory_format": convolution_format})
        _patch_all(stack, fake_tensor, {"init_gpu_context": _nothing})
        _patch_all(stack, fake_tensor.FakeTensor, _tensor_methods())
        # Fake tensors alone must know that there is no GPU: they would allocate
        # on it to initialise it, and would lack the no-op device guard.
        no_gpu = {"avoid_device_init": property(_constant(True))}
        _patch_all(stack, fake_tensor.FakeTensorMode, no_gpu)
        yield


@contextlib.contextmanager
def active_triton_driver(stub: StubDriver) -> Iterator[None]:
    """Make ``stub`` Triton's active driver."""
    with (
        mock.patch.object(triton_driver, "_active", stub),
        mock.patch.object(triton_driver, "_default", stub),
    ):
        yield


@contextlib.contextmanager
def cpu_triton_stubs(arch: GpuArch) -> Iterator[None]:
    """Let Inductor believe that Triton can run on the CPU."""
    cpu = {
        "is_triton_capable": staticmethod(_constant(True)),
        "raise_if_triton_unavailable": staticmethod(_nothing),
    }
    helpers = torch._inductor.runtime.triton_heuristics.triton_helpers
    with contextlib.ExitStack() as stack:
        stack.enter_context(_cleared_device_caches())
        stack.enter_context(active_triton_driver(StubDriver(arch)))
        _patch_all(stack, device_interface.CpuInterface, cpu)
        # It looks for a triton-cpu backend and warns that there is none.
        _patch_all(stack, helpers, {"set_driver_to_cpu": _nothing})
        # To a kernel for a GPU a number from the CPU goes by its value; here all are from the CPU, and go by address.
        _patch_all(stack, torch._inductor.graph.GraphLowering, {"is_unspec_arg": lambda graph, name: False})
        yield


@contextlib.contextmanager
def scratch_caches() -> Iterator[str]:
    """Keep every cache of Inductor and Triton out of the user's directories."""
    patches = {"force_disable_caches": True, "compile_threads": 1}
    with (
        tempfile.TemporaryDirectory(prefix="bridge_offline_") as directory,
        fresh_cache(dir=directory, delete=False),
        inductor_config.patch(patches),
        torch._functorch.config.patch(enable_autograd_cache=False),
        torch._dynamo.config.patch(automatic_dynamic_local_pgo=False),
        warnings.catch_warnings(),
    ):
        # It says that the caches are disabled, which is what we asked for.
        warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")
        yield directory


def run_fake(gm: torch.fx.GraphModule, args: tuple[object, ...]) -> object:
    """Return the outputs of ``gm`` as fake tensors of concrete size."""
    # With a shape environment, ``item()`` yields a symbol instead of an error:
    # Dynamo passes floats that may change as tensors.
    mode = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(allow_scalar_outputs=True))
    to_fake = functools.partial(mode.from_tensor, static_shapes=True)
    fake_args = pytree.tree_map_only(torch.Tensor, to_fake, args)
    with mode:
        return gm(*fake_args)


class _NeverLaunched:
    """Take the place of the module that holds the generated wrapper."""

    runner = None
    __file__ = ""

    @staticmethod
    def call(args: object) -> None:
        raise RuntimeError("bridge.offline: generated code for an absent GPU was run")


def _capture_module(codes: list[str], graph: torch._inductor.graph.GraphLowering) -> _NeverLaunched:
    """Stand for ``GraphLowering.compile_to_module``: generate the code, but do not import it."""
    wrapper_code, _ = graph.codegen()
    codes.append(wrapper_code.value)
    graph.cache_key, graph.cache_path = PyCodeCache.write(wrapper_code.value)
    graph.cache_linemap = []
    return _NeverLaunched()


def _graph_on_gpu(arch: GpuArch, original: Callable) -> Callable:
    """Wrap ``compile_fx_forward`` or ``compile_fx_backward``, the first step after AOTAutograd's tracing."""

    @functools.wraps(original)
    def compile_graph(
        gm: torch.fx.GraphModule, example_inputs: Iterable[object], *args: object, **kwargs: object
    ) -> object:
        with gpu_stubs(arch):
            gm, inputs = relocate(gm, list(example_inputs))
            return original(gm, inputs, *args, **kwargs)

    return compile_graph


@contextlib.contextmanager
def codegen_only(arch: GpuArch, codes: list[str]) -> Iterator[None]:
    """Divert Inductor to ``arch`` and collect wrapper sources into ``codes``."""
    forward = _graph_on_gpu(arch, inductor_compile_fx.compile_fx_forward)
    backward = _graph_on_gpu(arch, inductor_compile_fx.compile_fx_backward)
    with (
        mock.patch.object(inductor_compile_fx, "compile_fx_forward", forward),
        mock.patch.object(inductor_compile_fx, "compile_fx_backward", backward),
        mock.patch.object(
            torch._inductor.graph.GraphLowering,
            "compile_to_module",
            functools.partialmethod(lambda graph: _capture_module(codes, graph)),
        ),
    ):
        yield


class _SetDevice(ast.NodeTransformer):
    """Replace the device recorded in a kernel's source."""

    def __init__(self, arch: GpuArch) -> None:
        self._values = {
            "multi_processor_count": arch.multi_processor_count,
            "cc": arch.capability,
            "major": arch.major,
            "regs_per_multiprocessor": arch.regs_per_multiprocessor,
            "max_threads_per_multi_processor": arch.max_threads_per_multi_processor,
            "warp_size": arch.warp_size,
        }

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "DeviceProperties":
            for keyword in node.keywords:
                if keyword.arg in self._values:
                    keyword.value = ast.Constant(self._values[keyword.arg])
        return node


def load_autotuner(name: str, source: str, arch: GpuArch) -> CachingAutotuner:
    """Import a kernel's module; its heuristic then decides on configs."""
    tree = _SetDevice(arch).visit(ast.parse(source))
    module = PyCodeCache.load(ast.unparse(ast.fix_missing_locations(tree)))
    return getattr(module, name)


def compile_config(autotuner: CachingAutotuner, config: triton.Config) -> CompiledKernel:
    """Compile one config the way Inductor does; nothing is loaded."""
    with inductor_config.patch(_NO_STATIC_LAUNCHER):
        return autotuner._precompile_config(config).kernel


def triton_config(kwargs: dict[str, int], num_warps: int, num_stages: int) -> triton.Config:
    """Return a ``triton.Config``."""
    return triton.Config(kwargs, num_warps=num_warps, num_stages=num_stages)


def cuobjdump_path() -> str:
    """Return the path of the ``cuobjdump`` that comes with Triton."""
    return triton.knobs.nvidia.cuobjdump.path
