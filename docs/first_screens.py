"""Write the first screens in docs/tools.md for `make docs`: of a language model, a vision model and a training step.

PYTHONPATH=. python docs/first_screens.py

Code is generated for an H100, which need not be there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F

import bridge
from bridge import offline
from bridge.backend import bridge as bridge_backend
from bridge.bench import zoo
from bridge.bench.cases import SMALL, make_case
from bridge.diagnostics.explaining import compiling
from bridge.diagnostics.first_screen import describe

PAGE = Path(__file__).with_name("tools.md")


def _model(name: str) -> list[bridge.Report | None]:
    architecture = next(known for known in zoo.ZOO if known.name == name)
    module = architecture.build(torch.float32, "cpu", small=True)
    case = make_case(architecture, module, architecture.modes[0], 2, SMALL)
    offline.compile_for_gpu(case.call, case.inputs, compile_fx=bridge_backend)
    return [bridge.report()]


def _step(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    gate, value = F.rms_norm(x + residual, x.shape[-1:], weight).chunk(2, -1)
    return F.mse_loss((F.silu(gate) * value) @ down, x)


def _training() -> list[bridge.Report | None]:
    """Compile forward and backward of a step."""
    shapes = (8192, 1024), (8192, 1024), (1024,), (512, 1024)
    inputs = [torch.zeros(shape, dtype=torch.bfloat16).requires_grad_() for shape in shapes]
    with compiling("cuda:sm_90", {}) as recording:
        torch.compile(_step, dynamic=False)(*inputs).backward()
    return [*recording.reports]


PROGRAMS: dict[str, Callable[[], list[bridge.Report | None]]] = {
    "tiny Llama": lambda: _model("llama3-8b"),
    "tiny Swin": lambda: _model("swin-tiny"),
    "training step": _training,
}


def screen(name: str) -> str:
    """Compile a program anew, and return its first screen."""
    torch._dynamo.reset()
    reports = [report for report in PROGRAMS[name]() if report is not None]
    return str(describe(reports, name))


def without_times(text: str) -> str:
    """Return a screen without what is another in each run or on each machine: times, and where lines end."""
    return re.sub(r"\d+(?:\.\d+)?(?= s\b| us\b| ms\b|%)", "0", " ".join(text.split()))


def written(page: str) -> dict[str, str]:
    """Return the screens that a page has."""
    return dict(re.findall(r"<!-- first screen: ([\w ]+) -->\n```text\n(.*?)\n```\n", page, re.DOTALL))


def _replaced(page: str) -> Iterator[str]:
    for name in PROGRAMS:
        head = f"<!-- first screen: {name} -->\n```text\n"
        before, _, rest = page.partition(head)
        yield f"{before}{head}{screen(name)}\n```\n"
        page = rest.partition("\n```\n")[2]
    yield page


if __name__ == "__main__":
    PAGE.write_text("".join(_replaced(PAGE.read_text())))
