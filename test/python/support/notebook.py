"""Run the cells of examples/*.ipynb without Jupyter, for their test and for whoever changes one.

python test/python/support/notebook.py FILE...    writes what the cells print into the notebook
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path


def run_cells(notebook: dict) -> Iterator[tuple[dict, str]]:
    """Run the cells of code in their order, and give each with what it prints."""
    module = types.ModuleType("cells_of_a_notebook")
    sys.modules[module.__name__] = module  # Dynamo looks for the globals of a function there
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), vars(module))  # noqa: S102
        yield cell, shown.getvalue()


def shown_by(cell: dict) -> str:
    """Return what the notebook says that a cell printed."""
    return "".join("".join(output["text"]) for output in cell["outputs"])


def execute(path: Path) -> None:
    """Run a notebook's cells and write what they print into it."""
    notebook = json.loads(path.read_text())
    for count, (cell, text) in enumerate(run_cells(notebook), 1):
        stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
        cell |= {"execution_count": count, "outputs": [stream] if text else []}
    path.write_text(json.dumps(notebook, indent=1) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        execute(Path(name))
