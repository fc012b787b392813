"""Test the data of an explanation, as dictionaries, JSON, text and a file."""

from __future__ import annotations

import json

from bridge.diagnostics.counts import Counts
from bridge.diagnostics.explanation import ExplainedRefusal, Explanation, GroupExplanation, Transformation
from bridge.diagnostics.roofline import Roofline


def explained(graphs: int = 1) -> Explanation:
    group = GroupExplanation(
        name="op0_op1",
        fused=True,
        done="2 kernels merged into 1",
        kernels_before=2,
        kernels_after=1,
        reason=None,
        detail="",
        statements=[],
        buffers={},
        transformations=[Transformation("merge-bands", "one band", Counts(1, 2, 3, 4, 5, 6))],
        refusals=[],
        decisions=[],
        guards=[],
        bytes_before=2048,
        bytes_after=1024,
        bytes_if_one=1024,
        seconds_before=2e-6,
        seconds_after=1e-6,
        kernels=[],
    )
    other = ExplainedRefusal("node_not_loops", "a <library> call", "op7", "")
    return Explanation("f", "cpu", Roofline("this CPU", 1e9, None, 0.0), graphs, 3, 2, [group], [other], ["padded"])


def test_nested_data_becomes_dictionaries():
    data = explained().to_dict()
    assert data["groups"][0]["transformations"][0]["counts"]["loads"] == 3
    assert data["roofline"] == {"device": "this CPU", "bandwidth": 1e9, "rate": None, "launch": 0.0}
    assert data["others"][0]["accesses"] == ()


def test_json_has_what_the_dictionaries_have():
    read = json.loads(explained().to_json())
    assert read["groups"][0]["resources"] == [] and read["groups"][0]["sizes"] == {}
    assert read["others"] == [
        {"reason": "node_not_loops", "text": "a <library> call", "node": "op7", "source": "", "accesses": []}
    ]


def test_lists_of_two_groups_are_not_shared():
    one, other = explained().groups[0], explained().groups[0]
    one.resources.append(None)
    one.stages["affine.mlir"] = ""
    assert other.resources == [] and other.stages == {}


def test_text_of_nothing_compiled():
    assert str(explained(graphs=0)) == "f: nothing was compiled"


def test_a_prompt_shows_one_line():
    assert repr(explained()).startswith(f"<bridge.Explanation of {explained().name} for ")
    assert len(repr(explained())) < 140 and "\n" not in repr(explained())


def test_the_file_is_one_page_with_its_texts_escaped(tmp_path):
    explanation = explained()
    explanation.groups = []
    path = explanation.save_html(str(tmp_path / "report.html"))
    assert path == tmp_path / "report.html"
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert "a &lt;library&gt; call" in page and "<library>" not in page
