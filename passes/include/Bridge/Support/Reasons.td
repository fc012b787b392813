//===- Reasons.td - why Bridge refuses ---------------------*- tablegen -*-===//
//
// The one list of refusal reasons. mlir-tblgen makes the C++ enum class
// `bridge::Reason` and Python's `bridge._native._reasons_gen.Reason` from it.
// A reason has one spelling everywhere: in C++, in Python and in a remark's
// text, `[loop_carried_dependence] ...`. Numbers mean nothing outside one build.
//
//===----------------------------------------------------------------------===//

#ifndef BRIDGE_SUPPORT_REASONS
#define BRIDGE_SUPPORT_REASONS

include "mlir/IR/EnumAttr.td"

defvar bridgeReasons = [
  // The IR does not allow the transformation.
  "loop_carried_dependence",
  "cross_lane_dependence",
  "cycle_through_other_node",
  "aliasing",
  "side_effect",
  "extents_do_not_agree",
  "no_common_band",
  "reduction_not_splittable",
  "subscript_out_of_bounds",
  // The translation to affine cannot express the node.
  "unsupported_op",
  "unsupported_dtype",
  "non_affine_index",
  "non_affine_mask",
  "indirect_index",
  "dynamic_extent",
  "atomics",
  "random",
  "mutation",
  "extern_kernel",
  "node_not_loops",
  "not_liftable",
  // The graph or its place rules it out.
  "different_device",
  "training_graph",
  // Possible, and not worth it.
  "not_profitable",
  "budget_exceeded",
  // The environment does not provide what is needed.
  "mlir_missing",
  "plugin_missing",
  "plugin_version_mismatch",
  "torch_version",
  // Bridge itself failed.
  "pass_failed",
  "pass_crashed",
  "pass_timeout",
  "recheck_failed",
  "internal_error",
];

foreach i = !range(!size(bridgeReasons)) in {
  defvar name = bridgeReasons[i];
  def Reason_#name : I32EnumCase<name, i>;
}

def Bridge_Reason
    : I32Enum<"Reason", "Why Bridge left something alone.",
              !foreach(name, bridgeReasons,
                       !cast<I32EnumCase>("Reason_" # name))> {
  let cppNamespace = "::bridge";
}

#endif // BRIDGE_SUPPORT_REASONS
