"""Test the first screen: figures before and after, groups by gain, and pairs that stayed apart in the user's words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.diagnostics.first_screen import (
    amount,
    arrow,
    as_html,
    describe,
    kernel_words,
    microseconds,
    report_text,
    seconds_of,
)
from bridge.diagnostics.roofline import Roofline
from bridge.reasons import Reason, Refusal
from bridge.reports import Done, GroupReport, KernelReport, NodeName, Report

MB = 1 << 20
HERE = ("/nowhere/model.py", 7)


def kernel(node: str, *buffers: str, launch: str = "") -> KernelReport:
    return KernelReport([node], dict.fromkeys(buffers, MB), set(), launch or node)


def merged(name: str, megabytes: int) -> GroupReport:
    """Return two kernels that became one, which saves so many megabytes."""
    before, after = [kernel("op0", "a", "b"), kernel("op1", "b", "c")], [kernel("op0", "a", "c")]
    figures = {"bytes_before": (2 + megabytes) * MB, "bytes_after": 2 * MB, "done": Done(2, 1)}
    return GroupReport(name, ["op0", "op1"], 2, 1, True, kernels=before, kernels_now=after, **figures)


def apart(name: str, *nodes: str) -> GroupReport:
    kernels = [kernel(node, "a", f"of {node}") for node in nodes]
    remarks = [("no_common_band", "x", f'loc("{node}"("/nowhere/model.py":7:0))') for node in nodes[1:]]
    figures = {"bytes_before": 4 * MB, "bytes_after": 4 * MB, "kernels": kernels, "kernels_now": kernels}
    reason = Reason.dynamic_extent
    return GroupReport(name, list(nodes), 2, 2, False, reason, "other", remarks=remarks, **figures)


NAMES = {
    (0, "op0"): NodeName(("embedding", "pow", "mean", "rsqrt"), HERE),
    (0, "op1"): NodeName(("mul",), HERE),
    (0, "op2"): NodeName(("cumsum",), None),
}


def text_of(given: Report) -> str:
    """Return the first screen as one line."""
    return " ".join(report_text(given).split())


def report(*groups: GroupReport, **figures) -> Report:
    given = {"graphs": 1, "device": "sm_90", "kernels_before": 3, "kernels_after": 2, "names": NAMES}
    return Report(groups=list(groups), **{**given, "bytes_after": 20 * MB, **figures})


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (1536, "1.5 KB"), (5 << 19, "2.5 MB")]
)
def test_amounts(count, text):
    assert amount(count) == text


def test_what_stays_is_said_once():
    assert arrow("3", "2") == "3 -> 2" and arrow("3", "3") == "3"
    assert microseconds(2.5e-6) == "2.5 us" and microseconds(2.5e-3) == "2.50 ms"


def test_the_opening_has_every_figure():
    moved = {"bytes_before": 335 * MB, "bytes_after": 268 * MB}
    given = report(
        refusals=[Refusal(["op3"], Reason.atomics, "")],
        peak_before=3 * MB,
        peak_after=2 * MB,
        compile_seconds=4.0,
        seconds={"other": 0.5},
        library_calls=2,
        **moved,
    )
    assert text_of(given) == (
        "bridge: 3 -> 2 kernels; 335.0 MB -> 268.0 MB moved; 110.9 us -> 87.9 us expected at best on NVIDIA H100 "
        "(21% less); peak memory 3.0 MB -> 2.0 MB; compiled in 4.0 s, 0.5 s of it Bridge. "
        "2 library calls are not counted. left alone, 1: [atomics] A kernel adds into memory atomically, and the order "
        "of these additions has to stay."
    )


def test_memory_that_is_not_known_is_not_said():
    assert "memory" not in report_text(report())


def test_lines_are_not_longer_than_a_screen():
    place = (__file__, 3)
    names = {(0, f"op{i}"): NodeName(("multiply",) * 9, place) for i in range(2)}
    lines = report_text(report(merged("group0", 1), apart("group1", "op0", "op1"), names=names)).splitlines()
    assert max(map(len, lines)) <= 118 and any("..." in line for line in lines)


def test_measured_times_take_the_place_of_expected_ones():
    given = report(bytes_before=335 * MB)
    line = Roofline("GPU", 1e12, None, 1e-6)
    assert seconds_of([given], None) is None
    expected = seconds_of([given], line)
    assert expected is not None and expected[0] == pytest.approx(335 * MB / 1e12 + 3e-6)
    assert "2.0 us -> 1.0 us measured (50% less)" in " ".join(str(describe([given], measured=(2e-6, 1e-6))).split())


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ((4e-6, 3e-6), "4.0 us -> 3.0 us measured (25% less)"),
        ((4e-6, 5e-6), "4.0 us -> 5.0 us measured (25% more)"),
        ((4e-6, 4e-6), "4.0 us measured (the same without Bridge)"),
        ((4e-3, 4.01e-3), "4.00 ms -> 4.01 ms measured (a change of less than 1%)"),
    ],
)
def test_a_time_is_said_with_its_change(times, words):
    """Check that a time is reported with its change: a slower one was called "nothing gained"."""
    assert words in " ".join(str(describe([report()], measured=times)).split())


def test_a_gain_that_the_figures_do_not_have_is_not_denied():
    """Check that a gain without fewer bytes or launches is not denied.

    On a CPU a kernel with other loops had "nothing gained" beside a time that was measured to be less.
    """
    entry = replace(merged("group0", 1), kernels_before=1, bytes_before=MB, bytes_after=MB, done=Done(restructured=1))
    given = report(entry, device="cpu", kernels_before=1, kernels_after=1, bytes_before=20 * MB)
    said = text_of(given)
    assert "on this CPU (the same without Bridge)" in said and "nothing" not in said
    assert "1.0 MB, what it saves is not in bytes or launches: `bridge time` measures it" in said


def test_a_device_that_is_not_known_has_no_times():
    given = report(merged("group0", 3), device="sm_12", bytes_before=23 * MB)
    assert text_of(given).endswith("5.0 MB -> 2.0 MB") and "bridge time" not in text_of(given)
    assert "us" not in text_of(report(device="sm_12")).partition(";")[2].partition("Bridge took")[0]


def test_groups_come_by_gain():
    screen = describe([report(merged("small", 1), merged("large", 9))])
    assert ["large" in gain.words for gain in screen.gains] == [True, False]
    assert "2 kernels merged into 1 (large): pow, mean, rsqrt (model.py:7), mul (model.py:7)" in screen.gains[0].words
    assert "11.0 MB -> 2.0 MB, saves 4.8 us" in screen.gains[0].words


def test_a_kernel_is_called_by_its_last_operations_and_line():
    given = report()
    assert kernel_words(given, 0, kernel("op0")) == "pow, mean, rsqrt (model.py:7)"
    assert kernel_words(given, 0, kernel("op2")) == "cumsum"
    assert kernel_words(given, 0, kernel("op9")) == "op9"


def test_a_pair_is_said_once_with_the_reason_that_is_nearest():
    twenty = [apart(f"group{i}", "op0", "op1") for i in range(20)]
    screen = describe([report(*twenty)])
    assert len(screen.apart) == 1
    (pair,) = screen.apart
    assert pair.words.startswith("pow, mean, rsqrt (model.py:7) and mul (model.py:7) (20 times): 20.0 MB")
    assert pair.reason == "no_common_band" and "`mul`" in pair.why and "op1" not in str(screen)


def refused(detail: str, *nodes: str) -> GroupReport:
    """Return kernels of a node each, which stayed apart for the reason in a detail."""
    kernels = [kernel(node, "a", f"of {node}") for node in nodes]
    said = [(Reason.not_profitable, detail)]
    return GroupReport(
        "g", list(nodes), 2, 2, False, *said[0], kernels=kernels, kernels_now=kernels, apart=said, **FIGURES
    )


FIGURES = {"bytes_before": 4 * MB, "bytes_after": 4 * MB}


@pytest.mark.parametrize(
    ("detail", "reason"),
    [
        ("['op0', 'op1']: no kernel less", "not_profitable"),
        ("op0_op1: other loops", "not_profitable"),
        ("op1: no kernel of the same rows", "not_profitable"),
        ("the graph would need 8 bytes more", "not_profitable"),
        ("['op1', 'op2']: other loops, and nothing less to load", "no_common_band"),
        ("op1_op2, op3: 3 launches become 2", "no_common_band"),
    ],
)
def test_what_is_said_of_a_kernel_or_of_others_is_not_the_reason_of_a_pair(detail, reason):
    """Check that a refusal of one kernel, or of others, is not given as the reason of a pair.

    Of two kernels with a dependence through all rows the screen said that they could be one.
    """
    (pair,) = describe([report(refused(detail, "op0", "op1"))]).apart
    assert pair.reason == reason


def test_what_cannot_be_generated_is_said_with_its_detail():
    """Check that what cannot be generated is shown with its detail.

    That another target may be able to generate it does not say what is wrong here.
    """
    entry = replace(refused("", "op0", "op1"), reason=Reason.not_liftable, detail="['op1']: only a part of a kernel")
    (pair,) = describe([report(replace(entry, apart=[]))]).apart
    assert pair.reason == "not_liftable" and pair.why.endswith("(`mul`: only a part of a kernel)")


def test_what_waits_for_the_one_and_is_awaited_by_the_other_is_the_reason():
    """Check that a kernel between two others is the reason why they are apart.

    The rows before and after a scale of the whole tensor were said to have different lengths.
    """
    sizes = dict.fromkeys("axys", MB)
    chain = [("op0", {"a", "x"}, "x"), ("op1", {"x", "s"}, "s"), ("op2", {"a", "s", "y"}, "y")]
    kernels = [KernelReport([node], {b: sizes[b] for b in used}, {own}, node) for node, used, own in chain]
    entry = replace(apart("g", "op0", "op1", "op2"), kernels=kernels, kernels_now=kernels)
    reasons = {pair.reason: pair.words for pair in describe([report(entry)]).apart}
    assert reasons.keys() == {"cycle_through_other_node", "no_common_band"}
    assert reasons["cycle_through_other_node"].startswith("pow, mean, rsqrt (model.py:7) and cumsum")


def test_a_launch_that_is_not_shared_is_the_reason_where_there_is_no_other():
    entry = apart("g", "op0", "op1")
    entry.own_launches.append((Reason.not_profitable, "op0, op1: a launch saved is less than is lost"))
    assert describe([report(entry)]).apart[0].reason == "no_common_band"
    assert describe([report(replace(entry, remarks=[], reason=None))]).apart[0].reason == "not_profitable"


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ("['op0', 'op1', 'op0']: one kernel saves 1 MB", "(`rsqrt, mul`: one kernel saves 1 MB)"),
        ("op0_op1 (reduces) 0.1 MB: less", "(`rsqrt, mul` (reduces) 0.1 MB: less)"),
        ("op0_op1, op7: 3 launches", "(`rsqrt, mul`, a kernel: 3 launches)"),
        ("op0, op1_parts: no block", "(`rsqrt`, `mul`: no block)"),
        ("['op1']: only a part of a kernel of Inductor's", "(`mul`: only a part of a kernel of Inductor's)"),
    ],
)
def test_no_screen_has_names_of_the_scheduler(detail, words):
    (pair,) = describe([report(refused(detail, "op0", "op1"))]).apart
    assert words in pair.why


def test_without_kernels_there_are_no_expected_times():
    """Check that a graph without kernels has no expected times.

    One with only library calls was `0 kernels; 0 B moved; 0.0 us expected at best on this CPU`.
    """
    nothing = Report(graphs=1, device="", library_calls=2)
    assert text_of(nothing) == "bridge: no kernel is generated; Bridge took 0.0 s. 2 library calls are not counted."
    assert "no kernel is generated; 2.0 us measured" in str(describe([nothing], measured=(2e-6, 2e-6)))


@pytest.mark.parametrize("kernels", [1, 2])
def test_kernels_that_have_no_neighbour_are_said_to_have_none(kernels):
    alone = Report(graphs=1, kernels_before=kernels, kernels_after=kernels)
    alone.refusals.append(Refusal(["op3"], Reason.extern_kernel, ""))
    assert ("no two neighbouring kernels use the same tensor" in text_of(alone)) == (kernels == 2)
    alone.groups.append(apart("group0", "op0", "op1"))
    assert "no two neighbouring" not in text_of(alone)


def test_five_pairs_are_shown_and_the_most_expensive_first():
    names = {(0, f"op{i}"): NodeName((f"f{i}",), None) for i in range(9)}
    screen = describe([report(apart("group0", *(f"op{i}" for i in range(9))), names=names)])
    assert len(screen.apart) == 5


def test_a_pair_that_costs_next_to_nothing_is_left_out():
    assert describe([report(apart("group0", "op0", "op1"), bytes_after=200 * MB)]).apart == ()


def test_kernels_of_one_launch_are_not_apart():
    kernels = [kernel("op0", "a", launch="op0_op1"), kernel("op1", "a", launch="op0_op1")]
    entry = GroupReport("group0", ["op0", "op1"], 2, 1, True, kernels=kernels, kernels_now=kernels)
    assert describe([report(entry)]).apart == ()


def test_what_was_not_looked_at_has_one_hint():
    refusals = [Refusal(["op0"], Reason.training_graph, "x"), Refusal(["op0"], Reason.training_graph, "x")]
    text = text_of(report(refusals=[*refusals, Refusal(["op1"], Reason.atomics, "y")]))
    assert text.count("no_grad") == 1 and "2 graphs not looked at" in text
    assert "left alone, 1: [atomics]" in text


def test_what_went_wrong_in_a_group_is_said_where_it_has_no_pair():
    entry = GroupReport("group0", ["op0"], 1, 1, reason=Reason.mlir_missing, kernels=[kernel("op0", "a")])
    assert "left alone, 1: [mlir_missing] MLIR's Python bindings are not installed" in text_of(report(entry))


def test_details_have_figures_and_the_users_names():
    entry = apart("group0", "op0", "op1")
    entry.apart.append((Reason.not_profitable, "['op0', 'op1']: a row takes 40000 registers"))
    assert "(`rsqrt, mul`: a row takes 40000 registers)" in describe([report(entry)]).apart[0].why


def test_the_page_escapes_what_is_the_users():
    names = {(0, "op0"): NodeName(("<b>",), None), (0, "op1"): NodeName(("mul",), None)}
    page = as_html(describe([report(merged("group0", 1), apart("group1", "op0", "op1"), names=names)]))
    assert "&lt;b&gt;" in page and "<b>," not in page and "<h3>Still apart" in page


def test_the_page_begins_with_the_largest_gain_and_collapses_what_has_no_name():
    refused = [Refusal(["op1"], Reason.atomics, "y")]
    page = as_html(describe([report(merged("small", 1), merged("large", 9), refusals=refused)]))
    assert page.index("(large)") < page.index("(small)") < page.index("<details>") < page.index("[atomics]")
    assert "<details open" not in page
