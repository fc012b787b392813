"""List the private names of torch that compiling with Bridge needs; `inventory` says how to read them."""

#: What compiling with Bridge needs.
COMPILING = """
torch
    -2.11: _TorchCompileInductorWrapper(mode, options, dynamic)
    2.13-: _TorchCompileInductorWrapper(mode, options, dynamic, name=)
torch._dispatch.python
    enable_python_dispatcher
torch._dynamo.backends.registry
    _COMPILER_FNS
    register_backend(compiler_fn=, name=, tags=)
torch._dynamo.exc
    ShortenTraceback TorchDynamoException
torch._dynamo.output_graph
    GraphCompileReason.graph_break
    OutputGraph.compile_subgraph_reason
torch._dynamo.utils
    counters
torch._functorch._aot_autograd.schemas
    -2.11: ViewAndMutationMeta.is_train
    ViewAndMutationMeta: num_symints_saved_for_bw tensors_saved_for_backwards_slice
torch._guards
    CompileContext.current_compile_id()
    TracingContext.fw_metadata
    TracingContext.try_get()
torch._inductor.choices
    InductorChoices.should_use_persistent_reduction(features, cooperative_reduction)
torch._inductor.codecache
    BypassFxGraphCache
    code_hash(code, extra=)
    PyCodeCache.modules
torch._inductor.codegen.common
    CSE.generate(self, buffer, expr, *, bounds=, write=, assignment=, dtype=, shape=)
    CSE.newvar(self, bounds=, dtype=, shape=)
    CSE.try_get(self, cache_key)
    CSEVariable: dtype shape
    DeferredLine(name, line)
    IndentedBuffer._lines
    IndentedBuffer.writeline(self, line)
    KernelArgs.inplace_buffers
    KernelArgs.input(self, name)
    KernelArgs.output(self, name)
    KernelArgs.workspace(self, nelem, zero_fill, dtype=)
    Kernel.store_buffer_names
    SizeArg(name, expr)
torch._inductor.codegen.cpp
    CppKernelProxy.loop_nest
    CppScheduling: kernel_group
    KernelGroup: loops_code
    LoopLevel.steps
    LoopNest.loops
    OuterLoopFusedSchedulerNode.check_outer_fusion_loop_level_attr(self, cpp_kernel_proxy_list, outer_loop_fusion_depth)
    OuterLoopFusedSchedulerNode.get_outer_nodes(self)
torch._inductor.codegen.cpp_utils
    LocalBufferContext: local_buffers
torch._inductor.codegen.cuda_combined_scheduling
    CUDACombinedScheduling._triton_scheduling
torch._inductor.codegen.segmented_tree
    SegmentedTree(values, update_op, summary_op, identity_element)
torch._inductor.codegen.simd
    IterationRangesEntry: divisor length
    IterationRangesEntry.symbol(self)
    IterationRangesRoot: is_reduction numel prefix tensor_dim var_list
    PartialAccumulate: buffer_name
    SIMDKernel: code_hash inplaced_to_remove kernel_name removed_buffers rsplit_size saved_partial_accumulate
    SIMDKernel.is_compatible(cls, groups, lengths, reduction_numel=)
    SIMDScheduling.candidate_tilings(cls, node, numel, reduction_numel)
    SIMDScheduling.codegen_node_schedule_with_kernel(self, node_schedule, kernel)
    -2.14: SIMDScheduling.generate_node_schedule(self, nodes, numel, rnumel)
    2.15-: SIMDScheduling.generate_node_schedule(self, nodes, numel, rnumel, *, required_post_reduction_index=)
torch._inductor.codegen.simd_kernel_features
    -2.13: SIMDKernelFeatures(node_schedule, numel, reduction_numel=, coalesce_analysis=)
    2.14-2.14: SIMDKernelFeatures(node_schedule, numel, reduction_numel=, coalesce_analysis=, tiling_scores=)
    2.15-: SIMDKernelFeatures(node_schedule, numel, reduction_numel=, coalesce_analysis=, tiling_scores=, *,
        indexing_node_schedule=)
    SIMDKernelFeatures: coalesce_analysis node_schedule numel reduction_numel
    SIMDKernelFeatures.get_reduction_hint(self, tiling_scores=)
    SIMDKernelFeatures.is_reduction(self)
    SIMDKernelFeatures.scheduler_nodes(self)
    2.14-: SIMDKernelFeatures.with_tiling_scores(self, tiling_scores)
torch._inductor.codegen.triton
    FixedTritonConfig(config)
    IndexingOptions: index index_str mask_vars
    TritonCSEVariable: bounds mask_vars update_on_args
    TritonKernel: _load_mask _load_other args body compute cse features inside_reduction is_combo_kernel loads
        min_elem_per_thread num_load num_reduction num_store persistent_reduction post_loop_combine post_loop_store
        range_tree_nodes range_trees stores tiling_scores
    -2.11: TritonKernel(tiling, min_elem_per_thread=, optimize_mask=, fixed_config=, hint_override=,
        is_combo_kernel=, **kwargs)
    2.13-: TritonKernel(tiling, min_elem_per_thread=, optimize_mask=, fixed_config=, hint_override=,
        is_combo_kernel=, per_subkernel_blocks=, **kwargs)
    TritonKernel._handle_pdl_after_load(self, launch_buffer, result_var)
    TritonKernel._handle_pdl_before_access(self, wait_buffer, *dependencies, consider_reads=)
    TritonKernel._has_constant_mask(self, tree)
    TritonKernel._has_constant_xmask(self)
    TritonKernel.active_range_trees(self)
    TritonKernel.add_numel_to_call_args(self, name, call_args, arg_types)
    TritonKernel.call_kernel(self, name, node=, deallocate_ws=)
    TritonKernel.codegen_body(self)
    TritonKernel.codegen_kernel(self, name=)
    TritonKernel.dense_size_list(self)
    TritonKernel._get_persistent_RBLOCK(rnumel)
    TritonKernel.dense_size_str(self)
    TritonKernel.filter_masks(self, mask_vars)
    TritonKernel.get_load_buffer(self, indexing)
    TritonKernel.index_to_str(self, index)
    -2.11: TritonKernel.indexing(self, index, *, copy_shape=, dense_indexing=, override_mask=, block_ptr=,
        tma_compatibility_checker=)
    2.13-2.14: TritonKernel.indexing(self, index, *, copy_shape=, dense_indexing=, override_mask=, block_ptr=,
        tma_compatibility_checker=, mask_constant_index=)
    2.15-: TritonKernel.indexing(self, index, *, copy_shape=, dense_indexing=, override_mask=, block_ptr=,
        tma_compatibility_checker=, mask_constant_index=, allow_reduction_invariant_indexing=)
    TritonKernel.indexing_size_str(self, i)
    TritonKernel.inductor_meta_common(cls)
    2.13-: TritonKernel.inductor_meta_per_kernel(self)
    TritonKernel.is_indirect_indexing(self, index)
    TritonKernel.load(self, name, index)
    TritonKernel.mask_loads(self, mask, value)
    TritonKernel.partial_accumulate(self, name, reduction_type, val, extra_meta)
    TritonKernel.prepare_indexing(self, index)
    TritonKernel.reduction(self, dtype, src_dtype, reduction_type, value)
    TritonKernel.store(self, name, index, value, mode=)
    TritonKernel.want_no_x_dim(self)
    TritonScheduling.kernel_type
    TritonScheduling.can_fuse_horizontal(self, node1, node2)
    TritonScheduling.can_fuse_vertical(self, node1, node2)
    TritonScheduling.codegen_combo_kernel(self, combo_kernel_node)
    TritonScheduling.codegen_comment(self, node_schedule, kernel_name=)
    TritonScheduling.codegen_node(self, node)
    TritonScheduling.codegen_node_schedule(self, kernel_features)
    TritonScheduling.create_kernel_choices(self, kernel_features, kernel_args, kernel_kwargs)
    TritonScheduling.define_kernel(self, src_code, node_schedule, kernel)
    TritonScheduling.free_buffers_in_scheduler(self)
    TritonScheduling.fuse(self, node1, node2)
    -2.11: TritonScheduling.generate_combo_kernel_code(self, subkernel_nodes, custom_part_algorithm,
        enable_autotune, mixed_sizes, only_gen_src_code=)
    2.13-: TritonScheduling.generate_combo_kernel_code(self, subkernel_nodes, custom_part_algorithm,
        enable_autotune, mixed_sizes, only_gen_src_code=, per_subkernel_blocks=)
    -2.13: TritonScheduling.generate_kernel_code_from_nodes(self, nodes, benchmark_kernel=, hint_override=)
    2.14-: TritonScheduling.generate_kernel_code_from_nodes(self, nodes, benchmark_kernel=, hint_override=,
        coalesce_analysis=)
    TritonScheduling.get_tiling_and_scores(cls, node_schedule, numel, reduction_numel=, coalesce_analysis=)
    TritonScheduling.group_fn(self, sizes)
    TritonScheduling.process_kernel(self, kernel, node_schedule, only_gen_src_code=)
    get_triton_reduction_function(reduction_type)
    triton_store_type(dtype)
torch._inductor.codegen.triton_combo_kernel
    ComboKernel: inductor_meta sub_kernels triton_meta
    -2.11: ComboKernel(triton_kernel_cls, enable_autotune=, mixed_sizes=)
    2.13-: ComboKernel(triton_kernel_cls, enable_autotune=, mixed_sizes=, per_subkernel_blocks=)
    ComboKernel.call_kernel(self, name)
    ComboKernel.codegen_kernel(self, name=)
    ComboKernel.create_sub_kernel(self, triton_kernel)
    ComboKernel.jit_line(self, heuristics, size_hints, selected_kernel, signature, argdefs, size_hints_list,
        pointwise_with_reduce=)
    ComboKernel.select_heuristics(self, sub_kernel)
torch._inductor.codegen.wrapper
    EfficientPeakEstimate: overall_peak_memory segmented_tree
    PythonWrapperCodegen: allocated estimate_peak lines
    PythonWrapperCodegen.can_reuse(self, input_buffer, output_buffer=)
    PythonWrapperCodegen.codegen_allocation(self, buffer)
    PythonWrapperCodegen.codegen_inplace_reuse(self, input_buffer, output_buffer)
    PythonWrapperCodegen.memory_plan_reuse(self)
    PythonWrapperCodegen.push_codegened_graph(self, graph)
    PythonWrapperCodegen.writeline(self, line)
    ReuseLine.reused_as
torch._inductor.compile_fx
    -2.11: compile_fx(model_, example_inputs_, inner_compile=, config_patches=, decompositions=, ignore_shape_env=)
    2.13-: compile_fx(model_, example_inputs_, inner_compile=, config_patches=, decompositions=, ignore_shape_env=,
        compile_region_name=)
    -2.11: compile_fx_inner(gm, example_inputs, **kwargs)
    2.13-: compile_fx_inner(gm, example_inputs, compile_region_name=, **kwargs)
torch._inductor.config
    _config _post_fusion_custom_pass benchmark_fusion combo_kernel_per_subkernel_blocks comprehensive_padding
        coordinate_descent_tuning cpu_backend deterministic emulate_precision_casts inplace_buffers
        loop_ordering_after_fusion max_autotune max_autotune_gemm max_autotune_pointwise memory_planning patch
        post_grad_custom_post_pass realize_acc_reads_threshold realize_reads_threshold reorder_for_peak_memory
    -2.14: benchmark_epilogue_fusion
    2.13-: _realize_acc_reads_threshold_default batch_invariant realize_cpu_acc_reads_threshold
    2.14-: numerics
    2.15-: benchmark_template_fusion strict_signed_zero
    trace.enabled
    triton: codegen_upcast_to_fp32 cooperative_reductions force_cooperative_reductions max_tiles
        mix_order_reduction mix_order_reduction_split_size multi_kernel prefer_nd_tiling tile_reductions
        tiling_prevents_reduction_fusion use_block_ptr use_tensor_descriptor
    2.13-: triton.nested_reduction
torch._inductor.custom_graph_pass
    CustomGraphPass.uuid(self)
    2.13-: CustomInferenceAwareGraphPass.uuid(self)
    2.13-: CustomSchedulerPass.uuid(self)
torch._inductor.dependencies
    MemoryDep: index name size var_names
    MemoryDep.normalize(self)
    ReadWrites: reads writes
    index_vars_no_squeeze(*argsizes, prefix)
torch._inductor.exc
    InductorError
torch._inductor.fx_passes.post_grad
    decompose_auto_functionalized(graph)
    decompose_triton_kernel_wrapper_functional(graph)
torch._inductor.fx_passes.reinplace
    reinplace_inplaceable_ops_core(graph)
torch._inductor.fx_utils
    -2.11: get_fake_args_kwargs(x)
    2.13-: get_fake_args_kwargs(x, gm=)
torch._inductor.graph
    GraphLowering
    GraphLowering: constants cpp_wrapper device_ops device_type fx_wrapper graph_inputs graph_outputs inplaced_to_remove
        is_inference module name_to_buffer removed_buffers removed_operations scheduler sizevars wrapper_code
    GraphLowering._update_scheduler(self)
    GraphLowering.get_buffer(self, buffer_name)
    GraphLowering.get_dep_size_hint(self, dep, count_bytes=)
    GraphLowering.get_dtype(self, buffer_name)
    GraphLowering.get_output_names(self)
    GraphLowering.init_wrapper_code(self, is_subgraph=, subgraph_name=, parent_wrapper_code=, partition_signatures=)
    GraphLowering.register_buffer(self, buffer, *, set_name=)
    GraphLowering.register_operation(self, op)
    GraphLowering.run(self, *args)
    GraphLowering.set_current_device(self, device)
    SubgraphLowering.parent
torch._inductor.ir
    ExternKernelAlloc ExternKernelOut FallbackKernel Layout MultiOutput MultiOutputLayout NonOwningLayout
        NoneLayout Pointwise Reduction Scatter StorageBox TensorBox
    Buffer.get_inputs_that_alias_output(self)
    Buffer.get_mutation_names(self)
    Buffer.get_output_spec(self)
    Buffer.should_allocate(self)
    ComputedBuffer(*, name, layout, data, _split_size=, _original_inner_fn=, _original_ranges=,
        _original_reduction_ranges=)
    ComputedBuffer: _original_ranges _original_reduction_ranges _split_size layout
    ComputedBuffer.get_default_sizes_body(self)
    ComputedBuffer.simplify_and_reorder(self, extra_indexing_constraints=, recompute_sizes_body_func=)
    ComputedBuffer.with_original_inner_fn(self)
    ExternKernel.require_contiguous(cls, x)
    FixedLayout(device, dtype, size, stride=, offset=, is_pinned=)
    FlexibleLayout.contiguous_strides(sizes)
    IRNode.current_origins(origins)
    Layout: offset size stride
    Layout._pad_strides(in_strides, size, dtype)
    MutationLayoutSHOULDREMOVE.real_layout(self)
    NonOwningLayout.view
    Operation.operation_name
    Operation.get_origins(self)
    Reduction: reduction_type src_dtype
    Reduction.default_accumulator(reduction_type, dtype)
    ReductionHint.DEFAULT
torch._inductor.loop_body
    LoopBody(fn, args, var_ranges, iter_vars, reduce_vars, allow_same_symbol_in_index=)
    LoopBody: has_partial_accumulate indexing_exprs indirect_vars iter_vars memory_usage reduce_vars root_block sizes
        subblocks var_ranges
    LoopBody.has_op(self, name)
    LoopBody.merge_loops(self)
    LoopBodyBlock.graph
    MemoryUsageType: BUCKETIZE LOAD LOAD_SEED STORE STORE_REDUCTION
    MemoryEntry: buffer_name index_name mode
torch._inductor.lowering
    constrain_to_fx_strides fallbacks lowerings
    maybe_layout_constraints(fn)
    register_lowering(aten_fn, broadcast=, type_promotion_kind=, convert_input_to_bool=, lowering_dict=)
torch._inductor.memory
    MemoryPlanningInfoForBuffer: size_alloc size_free
    compute_memory_timeline(nodes, name_to_freeable_input_buf, graph_outputs)
    estimate_peak_memory(nodes, name_to_freeable_input_buf, graph_outputs)
    get_freeable_input_buf(nodes, graph_inputs)
    2.13-: peak_memory_from_buf_info_list
    prepare_planning_info(nodes, name_to_buf, name_to_fused_node, graph_inputs, graph_outputs)
    reorder_for_peak_memory(nodes, name_to_buf, name_to_fused_node, graph_inputs, graph_outputs, methods=)
torch._inductor.metrics
    cpp_outer_loop_fused_inner_counts
torch._inductor.ops_handler
    DefaultHandler._default(self, name, args, kwargs)
    OpsHandler.partial_accumulate(self, name, reduction_type, value, extra_meta)
torch._inductor.runtime.hints
    DeviceProperties: cc create multi_processor_count
    ReductionHint.INNER
torch._inductor.runtime.triton_heuristics
    triton_helpers
    CachingAutotuner: filename inductor_meta launchers
    2.13-: CachingAutotuner._cached_launcher
    Config HeuristicType.POINTWISE
    cached_autotune(size_hints, configs, triton_meta, heuristic_type, filename=, inductor_meta=, custom_kernel=,
        caching_autotuner_cls=, debug_autotuner_cls=)
    persistent_reduction(size_hints, reduction_hint=, triton_meta=, filename=, inductor_meta=, return_configs=)
    pointwise(size_hints, triton_meta, tile_hint=, filename=, min_elem_per_thread=, inductor_meta=, return_configs=)
    reduction(size_hints, reduction_hint=, triton_meta=, filename=, inductor_meta=, return_configs=)
torch._inductor.scheduler
    2.15-: FusedStagedReduction
    FusedSchedulerNode(scheduler, snodes)
    NopKernelSchedulerNode
    BaseSchedulerNode: ancestors read_writes scheduler unmet_dependencies
    BaseSchedulerNode.get_buffer_names(self)
    BaseSchedulerNode.get_device(self)
    BaseSchedulerNode.get_name(self)
    BaseSchedulerNode.get_nodes(self)
    BaseSchedulerNode.get_operation_names(self)
    BaseSchedulerNode.get_outputs(self)
    BaseSchedulerNode.is_extern(self)
    BaseSchedulerNode.is_foreach(self)
    BaseSchedulerNode.is_reduction(self)
    BaseSchedulerNode.is_template(self)
    BaseScheduling.can_fuse_horizontal(self, node1, node2)
    BaseScheduling.can_fuse_vertical(self, node1, node2)
    BaseScheduling.codegen_node(self, node)
    BaseScheduling.fuse(self, node1, node2)
    BaseScheduling.group_fn(self, sizes)
    ForeachKernelSchedulerNode: max_order min_order snodes
    -2.11: ForeachKernelSchedulerNode(scheduler, snodes, use_custom_partition_algo, prev_node_1=, prev_node_2=,
        enable_autotune=)
    2.13-: ForeachKernelSchedulerNode(scheduler, snodes, use_custom_partition_algo, prev_node_1=, prev_node_2=,
        enable_autotune=, per_subkernel_blocks=)
    FusedMixOrderReductions: node1 node2
    NodeUser(node, can_inplace=, is_weak=)
    NodeUser: can_inplace is_weak node
    Scheduler: backends current_node mutation_real_name name_to_buf name_to_donated_buffer name_to_fused_node
        name_to_node nodes removed_ops
    2.13-: Scheduler._multi_stream_nodes
    2.14-: Scheduler._mempool_nodes
    Scheduler.benchmark_fused_nodes(self, nodes)
    Scheduler.can_buffer_be_removed_through_fusion(self, name, fused_node_names)
    Scheduler.codegen(self)
    Scheduler.get_backend(self, device)
    Scheduler.process_grouped_nodes(self)
    Scheduler.topological_sort_schedule(self, nodes)
    SchedulerBuffer: defining_op mpi_buffer node users
    SchedulerBuffer.defining_op_name(self)
    SchedulerBuffer.get_aliases(self)
    SchedulerBuffer.get_mutations(self)
    SchedulerBuffer.get_name(self)
    SchedulerNode(scheduler, node)
    SchedulerNode: _body _sizes group node pointwise_read_writes
    SchedulerNode.mark_run(self)
    2.14-: SchedulerNode._loop_state_gen
    2.13-: SchedulerNode.clear_loop_body_dependent_caches(self, need_clear_tiling_cache)
    SchedulerNode.refresh_dependencies(self, normalize, need_clear_tiling_cache)
torch._inductor.sizevars
    SizeVarAllocator: _simplify_loops inv_precomputed_replacements precomputed_replacements
    SizeVarAllocator: shape_env simplify_with_ranges
    SizeVarAllocator.optimization_hint(self, expr, fallback=)
    SizeVarAllocator.simplify(self, expr)
    -2.11: SizeVarAllocator.size_hint(self, expr, *, fallback=)
    SizeVarAllocator.statically_known_multiple_of(self, numerator, denominator)
    SizeVarAllocator.statically_known_true(self, expr)
    join_dimensions(expr)
torch._inductor.utils
    DeferredLineBase: line
    Placeholder: DESCRIPTIVE_NAME KERNEL_NAME
    is_collective(node, op=)
    is_gpu(device)
    reduction_num_outputs(reduction_type)
torch._inductor.virtualized
    ops
    V: choices debug fake_mode get_ops_handler graph kernel local_buffer_context set_extern_kernel_nodes
        set_graph_handler set_kernel_handler set_ops_handler
torch._ops
    HigherOrderOperator
    OpOverload._opname
torch._prims_common
    is_contiguous_or_false(a)
    is_non_overlapping_and_dense_or_false(a)
torch.fx.experimental.symbolic_shapes
    ShapeEnv.get_axioms(self, symbols=, compute_hint=)
    ShapeEnv.suppress_guards(self)
    statically_known_true(x)
torch.utils._config_module
    _UNSET_SENTINEL
    -2.11: Config(default=, justknob=, env_name_default=, env_name_force=, value_type=, alias=)
    2.13-2.14: Config(default=, justknob=, env_name_default=, env_name_force=, value_type=, alias=, deprecated=,
        deprecation_message=)
    2.15-: Config(default=, justknob=, env_name_default=, env_name_force=, value_type=, alias=, deprecated=,
        deprecation_message=, *, implies=)
    _ConfigEntry: env_value_force user_override
    install_config_module(module)
torch.utils._ordered_set
    OrderedSet
torch.utils._sympy.functions
    CeilDiv FloatPow FloatTrueDiv FloorDiv Identity IntTrueDiv Max Min Mod ModularIndexing OpaqueUnaryFn_sqrt PythonMod
    ToFloat
torch.utils._sympy.symbol
    SymT symbol_is_type
torch.utils.flop_counter
    flop_registry
"""
