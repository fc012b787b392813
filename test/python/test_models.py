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
LAUNCHES: dict[str, tuple[int, int]] = {}

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
    inductor, ours = LAUNCHES[case.name]
    assert sum(len(parse_wrapper(code).launches) for code in codes) <= ours < inductor
