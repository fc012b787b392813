"""Test an explanation as text: its paragraphs, and what is left out of them."""

from __future__ import annotations

import dataclasses

from bridge.diagnostics.explanation import ExampleAccess, ExplainedRefusal, Explanation, GroupExplanation, Resources
from bridge.diagnostics.recording import Buffer, Statement
from bridge.diagnostics.roofline import Roofline
from bridge.diagnostics.text import as_text, space

SUM = Statement("op0", 0, [], ["2048"], ["8192"], ["arg0_1"], ["buf0"])
SCALE = Statement("op1", 1, [("/nowhere/a.py", 7)], ["2048", "8192"], [], ["arg0_1", "buf0"], ["buf1"])

APART = GroupExplanation(
    name="op0_op1",
    fused=False,
    done="2 kernels merged into 1",
    kernels_before=2,
    kernels_after=2,
    reason="dynamic_extent",
    detail='the rows differ at loc("op1")',
    statements=[SUM, SCALE],
    buffers={"buf0": Buffer("float32", ["2048"], 8192, temporary=True)},
    transformations=[],
    refusals=[
        ExplainedRefusal(
            "loop_carried_dependence",
            "a later row",
            "op1",
            "a.py:7",
            (
                ExampleAccess("op0", "iteration (1) writes element [1] of buf0", ""),
                ExampleAccess("op1", "reads it", ""),
            ),
        )
    ],
    decisions=[],
    guards=["s0 == 64"],
    bytes_before=3 << 20,
    bytes_after=3 << 20,
    bytes_if_one=2048,
    seconds_before=2e-6,
    seconds_after=2e-6,
    kernels=[],
)


def explained(*groups: GroupExplanation) -> Explanation:
    return Explanation("f", "cpu", Roofline("this CPU", 5e9, None, 0.0), 1, 4, 3, list(groups), [], [])


def test_spaces():
    assert space(SUM) == "[2048] reduces [8192]"
    assert space(SCALE) == "[2048, 8192]"
    assert space(dataclasses.replace(SCALE, iterations=[])) == "[]"


def test_a_group_left_apart():
    lines = as_text(explained(APART)).splitlines()
    assert lines == [
        "f for cpu: 4 kernels with Inductor, 3 with Bridge; 0 of 1 groups fused",
        "  roofline of this CPU: 5 GB/s, 0 us a launch",
        "",
        "op0_op1: not fused [dynamic_extent] the rows differ",
        "  what Inductor left apart:",
        "    kernel 0  op0    [2048] reduces [8192]  (no source line)",
        "    kernel 1  op1    [2048, 8192]           a.py:7",
        "  between them:",
        "    buf0: float32[2048], 8.0 KB, written by op0, read by op1; used by nothing else",
        "  refused:",
        "    [loop_carried_dependence] op1: a later row  (a.py:7)",
        "      for example op0 iteration (1) writes element [1] of buf0",
        "              and op1 reads it",
        "  would fuse with:",
        "    s0 == 64",
        "  numbers:",
        "    moves 3.0 MB -> 3.0 MB (one kernel would move 2.0 KB); 2.0 us -> 2.0 us expected at best",
    ]


def test_statements_of_one_kernel_were_not_left_apart():
    together = dataclasses.replace(APART, statements=[SUM, dataclasses.replace(SCALE, kernel=0)])
    assert as_text(explained(together)).splitlines()[4] == "  what Inductor has in one kernel:"


def test_a_fused_group_has_its_resources_and_no_empty_section():
    used = Resources("triton_0", 32, 0, 512, {"XBLOCK": 1, "num_warps": 4})
    fused = dataclasses.replace(APART, fused=True, kernels_after=1, refusals=[], guards=[], resources=[used])
    text = as_text(explained(fused))
    assert "1 of 1 groups fused" in text and "\nop0_op1: 2 -> 1 kernels: 2 kernels merged into 1\n" in text
    assert "refused" not in text and "would fuse with" not in text
    assert text.endswith("\n    triton_0: 32 registers, 0 spills, 512 bytes shared (XBLOCK=1, num_warps=4)")


def test_kernels_that_could_not_take_part_come_last():
    explanation = explained()
    explanation.others = [ExplainedRefusal("mlir_missing", "no bindings", "", "")]
    explanation.choices = ["op4 keeps its row"]
    assert as_text(explanation).splitlines()[2:] == [
        "",
        "everything: left alone [mlir_missing] no bindings",
        "op4 keeps its row",
    ]
