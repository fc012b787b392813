"""Adapt torch's private API: only this folder knows the differences between the versions of torch.

The package sees schedules, nodes, bodies and buffers through the functions that are listed here. Beside them:
`protocols`, types of Inductor's objects; `graphs`, the graph before Inductor lowers it; `trial`, what Inductor would
make of one; `inspection`, what diagnostics ask; `derived` and `patches`, how Inductor's objects are given more to do.
lowering/triton extends Inductor's Triton code generator. bridge/diagnostics/torch_logging.py, which `import bridge`
needs, stands outside.
"""

from .compiling import (
    TORCH_VERSIONS,
    add_counters,
    codegen_error,
    compilation,
    compile_graph,
    compile_plain,
    config_patches,
    ends_in_graph_break,
    is_dynamos_own,
    option_names,
    raised_by_backend,
    register_once,
    reset_compiler,
    tested_versions,
    torch_obstacle,
)
from .equalities import compares
from .hardware import memory_bandwidth, multiprocessors
from .hooks import (
    GRAPH_HOOK,
    HOOK,
    CacheIdentity,
    graph_pass,
    hooked,
    kept_graph_pass,
    kept_pass,
    scheduler_pass,
    users_pass,
)
from .instructions import (
    BESIDE,
    buffers_loaded,
    bytes_asked_for,
    bytes_of_element,
    bytes_of_own_element,
    instructions,
    instructions_of,
    serial_instructions,
)
from .layouts import buffer_bytes, buffer_dtype, buffer_numel
from .loads import buffers_loaded_again, bytes_loaded, bytes_loaded_in_passes, bytes_read_back
from .loops import (
    forget_waiting,
    inductor_ops,
    keep_inputs,
    keep_pieces,
    make_loop_body,
    merges_softmax_states,
    ops_handler_base,
    reduction_identity,
    reduction_outputs,
    run_loop_body,
    set_loop_body,
)
from .loops_to_split import with_loops_to_split
from .mixed import can_be_asked
from .numerics import computes_in_16_bits, emulates_eager_rounding, is_deterministic, unkept_promise
from .scattered import instructions_along_rows, rows_are_together, skips_elements
from .schedule import (
    adds_atomically,
    apart_by_user,
    buffers_awaited,
    buffers_made,
    buffers_overwritten,
    buffers_read,
    buffers_written,
    bytes_beside,
    bytes_beside_rows,
    bytes_beside_stores,
    bytes_touched,
    device_of,
    draws,
    elements,
    generates_triton,
    has_left_sums,
    has_masked_parts,
    has_stages,
    inputs_read,
    is_inference_graph,
    is_loop_kernel,
    launch_parts,
    loop_nodes,
    mutates_or_aliases,
    node_body,
    node_sizes,
    only_overwrites,
    operation_names,
    overwrites_in_place,
    readers,
    reduces,
    result_name,
    rounds_at_conversion,
    stays_inside,
    storage_of,
    subscripts_read,
)
from .sectors import RowAccess, accesses_far_apart, bytes_beside_tile, is_far_along_rows, reduces_across_rows
from .sizes import (
    buffers_stored,
    coefficient,
    contiguous_run,
    equal_sizes,
    has_steps,
    linear_step,
    loop_cuts,
    loop_indices,
    loop_remainders,
    loop_strides,
    number_of_digits,
    size_expressions,
    size_facts,
    size_hint,
    sizes_in_maxima,
    statically_known,
)
from .strides import kept_buffers
from .tuning import share_choices, tuned_kernels
