"""Name why a fusion did not happen: one enum for C++ remarks and Python, and the exception that carries it."""

from __future__ import annotations

from dataclasses import dataclass

from ._native._reasons_gen import Reason

__all__ = [
    "TEXTS",
    "TRAINING_HINT",
    "InvariantError",
    "Reason",
    "Refusal",
    "Text",
    "Unsupported",
    "advice",
    "explanation",
    "why_apart",
]


@dataclass(frozen=True)
class Text:
    """Hold what is said of a reason: explanation, with {earlier} and {later} as two kernels; example; what to do."""

    explanation: str
    example: str
    advice: str


#: The one source for reports, for `Reason.x.explanation` and for docs/reasons.md.
TEXTS = {
    Reason.loop_carried_dependence: Text(
        (
            "{later} needs results of {earlier} from other rows, so that all rows of {earlier} have to be finished "
            "before {later} begins with its first"
        ),
        "a row times the sum of the row before it",
        "Reduce along the last dimension, or have the later operation use its own row only.",
    ),
    Reason.cross_lane_dependence: Text(
        (
            "an element of {later} needs what another element of the same row has stored in {earlier}, and inside"
            " of a kernel the elements of a row do not see each other's stores"
        ),
        "the sum of a part of the row that begins at its fourth element, times the row from its first",
        (
            "Where a reduced value is laid out by repeat, broadcast it over the block that it was reduced from by "
            "unsqueeze and expand; else nothing."
        ),
    ),
    Reason.cycle_through_other_node: Text(
        "between {earlier} and {later} stands a kernel that needs the one and is needed by the other",
        "a norm times its product with weights: the matmul stands between the norm and the later kernel",
        "Nothing, if the kernel between them is a matmul; else compute what is between them in both, or later.",
    ),
    Reason.aliasing: Text(
        "{earlier} and {later} reach the same memory under two names, and one of them writes it",
        "IR of your own, given to `bridge import`, with a memref that is a view. No model has it: in what Bridge makes "
        "of Inductor's loops, each buffer is an argument of its own",
        "Write into a new tensor, not into a view of one that is still read.",
    ),
    Reason.side_effect: Text(
        "the loops of {earlier} or {later} do more than load, compute and store, and may not be moved",
        "an assertion on the device",
        "Take the assertion or the print out of the compiled function.",
    ),
    Reason.extents_do_not_agree: Text(
        (
            "the rows of {earlier} and of {later} have different lengths, and neither is made of parts or "
            "multiples of the other"
        ),
        "rows that are longer after padding, by a number that is not known",
        "Use sizes of which one divides the other, or parts that together are the whole row.",
    ),
    Reason.no_common_band: Text(
        (
            "{earlier} and {later} have no outer loop over which both work on the same rows: where the one reduces "
            "over the rows that the other goes through, all rows have to be read before its first result is there"
        ),
        "the sums of the columns of a norm of the rows",
        "Where a transposed copy stands between them, have both go over the same dimension first; else nothing.",
    ),
    Reason.reduction_not_splittable: Text(
        (
            "the reduction in {earlier} or {later} cannot be divided into parts of a row and put together again, or "
            "has to be added up in one order, as a backward compares what depends on it with a saved maximum"
        ),
        "the place of the largest element, in a row that would be padded; a remark of the passes says so",
        "Nothing in the model; the values stay right, in one kernel more.",
    ),
    Reason.subscript_out_of_bounds: Text(
        (
            "it could not be proven that {earlier} and {later} stay inside of their tensors, for all sizes that "
            "are allowed"
        ),
        "a part of a row that begins in its middle, where the length of the row is not known",
        "Make the size known with torch._check, or use views in the place of as_strided.",
    ),
    Reason.unsupported_op: Text(
        "{earlier} or {later} has an operation that has no counterpart in the affine dialect",
        "numbers looked up in sorted steps",
        "Nothing in the model; tell us which operation it is, with `bridge explain --verbose`.",
    ),
    Reason.unsupported_dtype: Text(
        "{earlier} or {later} computes with a type that the passes do not know",
        "an option of Inductor's that has kernels compute in 16 bits, `triton.codegen_upcast_to_fp32=False`",
        "Turn that option on; have real and imaginary parts of complex numbers in tensors of their own.",
    ),
    Reason.non_affine_index: Text(
        (
            "an index of {earlier} or {later} is no sum of loop counters times constants, so that which elements "
            "it reaches is not known"
        ),
        "rows of thirds, transposed, whose length is not known: a step of the loops is a size",
        "Compile with dynamic=False or mark_static where the sizes do not change.",
    ),
    Reason.non_affine_mask: Text(
        ("a condition in {earlier} or {later} decides which elements exist, and it is not linear in the loop counters"),
        "a load of some elements only, by a mask that is computed; torch's decompositions have it",
        "Compile with dynamic=False or mark_static where the sizes do not change.",
    ),
    Reason.indirect_index: Text(
        (
            "{earlier} or {later} writes at positions that a tensor holds, or reads so what the other writes; which "
            "elements those are is not known before it runs"
        ),
        "rows of a norm by their numbers: the lookup may need any row; a lookup in an input is no obstacle",
        "Do the lookup first, in a tensor that nothing else of the kernel computes.",
    ),
    Reason.dynamic_extent: Text(
        "a size of {earlier} or {later} is symbolic, and the transformation is only right for some of its values",
        "half of a row of unknown length: the halves are equal only if it is even",
        "Add torch._check(n % 2 == 0), or mark the size static; the report names the guard that would help.",
    ),
    Reason.atomics: Text(
        "{earlier} or {later} adds into memory atomically, and the order of these additions has to stay",
        "the sums of rows of a norm by their numbers, of which two rows may have the same",
        "Nothing in the model, but for sorting the indices and adding up segments.",
    ),
    Reason.random: Text(
        "{earlier} or {later} draws random numbers as eager does, by the number of threads of the GPU",
        "dropout with Inductor's option `align_random_eager`; without it random numbers are no obstacle",
        "Turn that option off, or draw the numbers outside of the compiled function.",
    ),
    Reason.mutation: Text(
        (
            "{earlier} or {later} overwrites a tensor that it does not own, at places that a tensor holds, in a view "
            "of another one, or a second time"
        ),
        "rows of a cache, overwritten by their numbers: which ones is not known before it runs",
        "Return a new tensor; kernels that only store into a cache can still share a launch.",
    ),
    Reason.extern_kernel: Text(
        "{earlier} or {later} is a call of a library or comes from a template, and its loops are not Inductor's",
        "a matrix product; so are convolutions, attention, and Triton kernels of the user's own",
        "Nothing in the model; with max_autotune a matrix product and what follows it may come from one template.",
    ),
    Reason.node_not_loops: Text(
        "{earlier} or {later} is no kernel of plain loops, but a scan, a sort, or one over rows and columns at once",
        "the sums of a row up to each of its elements, which Inductor computes by a scan",
        "Nothing in the model; what comes before and after it is still fused.",
    ),
    Reason.not_liftable: Text(
        (
            "the loops of {earlier} and {later} can be fused, but Inductor's code generator cannot write the "
            "result as one kernel"
        ),
        "a gate whose row has a length that is not known, after a kernel over the whole batch",
        "Nothing in the model; another target (cpu, GPU) may be able to.",
    ),
    Reason.different_device: Text(
        "{earlier} and {later} run on different devices, or on several CUDA streams",
        "operations that you have put on CUDA streams or into memory pools of your own; kernels of two devices are in "
        "no group together, and nothing is said of them",
        "Nothing, if it has to be so; on one stream, without a pool, all of the graph is looked at.",
    ),
    Reason.training_graph: Text(
        "the graph is compiled for training, and the option training is off, which leaves these to Inductor",
        "a call without torch.no_grad(), after eval(), too: parameters still require gradients",
        "For inference, call it under torch.no_grad(); for training, leave the option training on.",
    ),
    Reason.not_profitable: Text(
        "{earlier} and {later} can be one kernel, and it would not be faster, or would need more memory",
        "a row that is too long for the registers, and would be read a second time",
        "Nothing; force_fusion=True fuses it anyway, to measure, unless it is a sum of columns.",
    ),
    Reason.budget_exceeded: Text(
        "{earlier} and {later} are part of more than is looked at within the limits of one compilation",
        "a group with more loads and stores than max_accesses",
        "Raise max_nodes or max_accesses; the compilation takes longer.",
    ),
    Reason.mlir_missing: Text(
        "MLIR's Python bindings are not installed, without which nothing is looked at",
        "an environment into which the package was copied without what it depends on",
        "Install the package again with pip, which brings them.",
    ),
    Reason.plugin_missing: Text(
        "the native part of this package is not there, without which nothing is looked at",
        "a checkout in which `make build` was not run",
        "Run `make build`, or install a wheel.",
    ),
    Reason.plugin_version_mismatch: Text(
        "the native part of this package was built for another release of MLIR or of this package",
        "an upgrade of the MLIR wheels alone",
        "Run `make build`, or install the package again.",
    ),
    Reason.torch_version: Text(
        "this release of torch is not one that this package knows",
        "a nightly build",
        "Use a release of torch that the README names; code is Inductor's own until then.",
    ),
    Reason.pass_failed: Text(
        "a pass over the loops of {earlier} and {later} ended in an error, and they stay as Inductor had them",
        "a pass of your own that fails, option pipeline with a name that is no pass; a bug of ours",
        "Correct your pass or the option, if the warning is about these; else report the file that it names.",
    ),
    Reason.pass_crashed: Text(
        "the process that ran the passes over {earlier} and {later} died, and they stay as Inductor had them",
        "a crash in a pass, with option isolate",
        "Report the file that the warning names.",
    ),
    Reason.pass_timeout: Text(
        "the passes over {earlier} and {later} took longer than they may, and they stay as Inductor had them",
        "very many accesses in one group, with option isolate",
        "Lower max_nodes or max_accesses, and report it: the limit is two minutes.",
    ),
    Reason.recheck_failed: Text(
        "the second proof, by isl, does not confirm what the passes made of {earlier} and {later}",
        "a bug of ours, seen with option recheck",
        "Report it, with the folder that dump_dir wrote; the code is Inductor's own.",
    ),
    Reason.internal_error: Text(
        "something failed inside of Bridge at {earlier} or {later}, and they stay as Inductor had them",
        "a bug of ours",
        "Report it with what `bridge explain --html` writes; the code is Inductor's own.",
    ),
}


def without_place(words: str) -> str:
    """Return the words of a refusal without MLIR's location at their end, whose path is that of a machine."""
    return words.partition(" at loc(")[0]


def why_apart(reason: Reason, earlier: str, later: str) -> str:
    """Return why two kernels stayed apart, in a sentence with their names."""
    return TEXTS[reason].explanation.format(earlier=earlier, later=later)


def advice(reason: Reason) -> str:
    """Return what would change it."""
    return TEXTS[reason].advice


def explanation(reason: Reason) -> str:
    """Return what a reason means, in a sentence: `Reason.x.explanation`."""
    text = TEXTS[reason].explanation.replace("{earlier} or {later}", "a kernel")
    text = text.replace("{earlier} and {later}", "two kernels").format(
        earlier="the earlier kernel", later="the later kernel"
    )
    return f"{text[0].upper()}{text[1:]}."


# mlir-tblgen writes the enum with its names only.
Reason.explanation = property(explanation)
Reason.advice = property(advice)


#: What to do about a graph for training; said in a report, and once a process in a warning.
TRAINING_HINT = (
    "compiled for training, as gradients are recorded, and the option training is off. For inference call it under "
    "torch.no_grad() (eval() is not enough); to have training fused, too, leave that option on"
)


@dataclass
class Refusal:
    """Hold a kernel or a group that Bridge leaves alone, and why."""

    nodes: list[str]
    reason: Reason
    detail: str


class Unsupported(Exception):
    """Signal a named refusal: the nodes stay exactly as Inductor had them, and the reason is counted."""

    def __init__(self, reason: Reason, detail: str):
        super().__init__(f"[{reason.name}] {detail}")
        self.reason = reason
        self.detail = detail


class InvariantError(AssertionError):
    """Signal that something does not hold that this package guarantees: a bug here, raised in strict mode."""
