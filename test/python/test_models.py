"""Small configurations of the measured models: the code for a GPU, run by Triton's interpreter, and its launches."""

from __future__ import annotations

import pytest
import torch
from emitted import run_emitted

import bridge
from bridge.backend import bridge as bridge_backend
from bridge.bench import zoo
from bridge.bench.cases import make_case
from bridge.bench.timing import relative_error
from bridge.offline import parse_wrapper
from bridge.reasons import Reason

#: Triton launches of each case, (Inductor's, Bridge's): with the pinned torch and transformers.  Fewer are progress, to
#: be written down here, and more a regression.
LAUNCHES = {
    "llama3-8b prefill": (8, 6),
    "llama3-8b decode b2": (11, 6),
    "qwen3-8b prefill": (8, 8),
    "qwen3-8b decode b2": (11, 6),
    "gemma3-4b prefill": (15, 14),
    "gemma3-4b decode b2": (21, 12),
    "phi3-mini prefill": (8, 6),
    "phi3-mini decode b2": (11, 6),
    "olmo2-7b prefill": (9, 7),
    "olmo2-7b decode b2": (11, 6),
    "deepseek-v3 prefill": (13, 9),
    "deepseek-v3 decode b2": (13, 9),
    "glm4-9b prefill": (9, 7),
    "glm4-9b decode b2": (11, 6),
    "gpt-neox-7b prefill": (6, 5),
    "gpt-neox-7b decode b2": (7, 5),
    "bert-large prefill": (5, 5),
    "t5-large prefill": (5, 5),
}

CASES = [(architecture, mode) for architecture in zoo.ZOO for mode in architecture.modes]


def case_id(value) -> str:
    return value if isinstance(value, str) else value.name


@pytest.mark.parametrize(("architecture", "mode"), CASES, ids=case_id)
def test_model(architecture, mode, compiler):
    """In float32, errors are those of the order of summation; a wrong element would be a thousand times more."""
    pytest.importorskip(architecture.library)
    module = architecture.build(torch.float32, "cpu", small=True)
    case = make_case(architecture, module, mode, 2, small=True)
    with torch.no_grad():
        expected = case.run().clone()
    case.rewind()
    result, codes = run_emitted(case.call, case.inputs, bridge_backend)
    assert relative_error(result, expected) < 1e-5
    report = bridge.report()
    assert not [entry for entry in [*report.groups, *report.refusals] if entry.reason is Reason.internal_error]
    assert sum(len(parse_wrapper(code).launches) for code in codes) <= LAUNCHES[case.name][1]
