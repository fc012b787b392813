"""Write a file that repeats a failure of a pass pipeline, in the form of MLIR's own reproducers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ..support.os_errors import os_words

_RESOURCES = """
{{-#
  external_resources: {{
    mlir_reproducer: {{
      pipeline: "{pipeline}",
      disable_threading: true,
      verify_each: true
    }}
  }}
#-}}
"""


def write_reproducer(module: str, pipeline: str, folder: Path | None) -> str:
    """Write the module and the pipeline into one file and return the command that runs it.

    module: the text before the passes; folder: where to, None for a temporary file.  Where nothing can be written
    the command says so.
    """
    escaped = pipeline.replace("\\", "\\\\").replace('"', '\\"')
    try:
        path = _new_file(folder)
        path.write_text(module.rstrip("\n") + "\n" + _RESOURCES.format(pipeline=escaped))
    except OSError as error:
        return f"no reproducer could be written: {os_words(error)}"
    return f"bridge-opt --run-reproducer {path}"


def _new_file(folder: Path | None) -> Path:
    """Return a file in the folder, or a temporary one."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "reproducer.mlir"
    handle, name = tempfile.mkstemp(prefix="bridge-reproducer-", suffix=".mlir")
    os.close(handle)
    return Path(name)
