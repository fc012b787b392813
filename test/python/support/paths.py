"""Name the folders of the repository, for tests that read its files."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

#: What tests share, and what programs that tests start find in their PYTHONPATH.
SUPPORT = ROOT / "test" / "python" / "support"
