"""List the private names of torch that the tools beside compiling need; `inventory` says how to read them."""

#: What the tools beside it need: `bridge.offline`, `bridge bench`, logs.  No compilation fails without these.
TOOLS = """
torch._dynamo
    lookup_backend(compiler_fn)
    reset()
torch._dynamo.device_interface
    CpuInterface CudaInterface caching_worker_current_devices caching_worker_device_properties
torch._dynamo.utils
    dynamo_timed(key, phase_name=, log_pt2_compile_event=, metadata=, dynamo_compile_column_us=, compile_id=,
        is_backward=, log_waitcounter=, waitcounter_name_override=)
torch._functorch.config
    enable_autograd_cache force_non_lazy_backward_lowering
torch._guards
    TracingContext.report_output_strides()
torch._inductor.async_compile
    AsyncCompile
torch._inductor.codecache
    PyCodeCache.cache_clear(cls, purge=)
    -2.11: PyCodeCache.load(cls, source_code, extra=)
    2.13-: PyCodeCache.load(cls, source_code, extra=, *, set_sys_modules=)
    PyCodeCache.write(cls, source_code, extra=)
torch._inductor.compile_fx
    compile_fx_backward(gm, example_inputs, compiler_config_extra, inner_compile=)
    compile_fx_forward(gm, example_inputs, num_orig_model_outputs, num_example_inputs, compiler_config_extra,
        inner_compile=, is_inference=)
torch._inductor.config
    compile_threads force_disable_caches use_static_cuda_launcher
torch._inductor.debug
    DebugContext._path
torch._inductor.fx_passes.fuse_attention
    _scaled_dot_product_attention
torch._inductor.fx_passes.joint_graph
    UniformValueConstantFolder._deduce_value(self, node)
    lazy_init(input_device=)
torch._inductor.graph
    GraphLowering.codegen(self)
    GraphLowering.compile_to_module(self)
    GraphLowering.is_unspec_arg(self, name)
torch._inductor.runtime
    triton_helpers.libdevice
torch._inductor.runtime.triton_heuristics
    -2.13: CachingAutotuner._precompile_config(self, cfg)
    2.14-: CachingAutotuner._precompile_config(self, cfg, *, cc_override=)
    CachingAutotuner.benchmark_all_configs(self, *args, **kwargs)
torch._inductor.utils
    fresh_cache(cache_entries=, dir=, delete=)
torch._logging
    getArtifactLogger(module_qname, artifact_name)
    trace_structured(name, metadata_fn=, *, payload_fn=, suppress_context=, expect_trace_id=,
        record_logging_overhead=, compile_id=)
torch._logging._internal
    trace_log
torch._prims
    TensorMeta(tensorlike=, *, shape=, strides=, dtype=, device=)
torch._subclasses.fake_tensor
    FakeTensor
    FakeTensorMode(*, allow_fallback_kernels=, allow_non_fake_inputs=, shape_env=, static_shapes=, export=)
    init_gpu_context(device)
torch.utils._python_dispatch
    TorchDispatchMode
torch.utils._pytree
    tree_leaves(tree, is_leaf=)
    tree_map(func, tree, *rests, is_leaf=)
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf=)
"""
