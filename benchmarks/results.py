"""Write what benchmarks/gpu.py measured: as JSON, as a table, as a plot, and in the pages of docs.

python benchmarks/results.py          # the pages and docs/results/*.svg anew from docs/results/*.json
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from bridge.bench.command import plot as plot_models
from bridge.bench.plot import Axis, Bars, write_svg
from bridge.bench.results import describe, geometric_mean
from bridge.bench.results import load as load_models

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "results"

#: The pages with tables of what is in FOLDER.
PAGES = [DOCS / "results.md", FOLDER / "torch_2_11.md"]

#: Bytes from which on a kernel's speed is that of the memory, not that of its launch.
LARGE = 64 << 20


@dataclass
class Row:
    """Hold one line of the table; times in microseconds, floor_us that of the fewest `bytes` as fast as a copy."""

    pattern: str
    shape: str
    dtype: str
    kernels_inductor: int
    kernels_bridge: int
    inductor_us: float
    autotune_us: float | None
    bridge_us: float
    bytes: int
    floor_us: float
    error_inductor: float
    error_bridge: float
    by_hand_us: float | None = None

    @property
    def speedup(self) -> float:
        """Return Inductor's time over Bridge's."""
        return self.inductor_us / self.bridge_us

    @property
    def of_copy(self) -> float:
        """Return the time at the copy's bandwidth over Bridge's."""
        return self.floor_us / self.bridge_us


def table(rows: list[Row]) -> str:
    """Return the table in Markdown."""
    columns = (
        "pattern | shape | dtype | kernels | Inductor us | max-autotune us | by hand us | Bridge us | ratio | MB "
        "| of copy | error, Inductor | error, Bridge"
    )
    return "\n".join([f"| {columns} |", "|---" * (columns.count("|") + 1) + "|", *map(_line, rows)]) + "\n"


def _line(r: Row) -> str:
    autotune, by_hand = (f"{us:.1f}" if us is not None else "-" for us in (r.autotune_us, r.by_hand_us))
    return (
        f"| {r.pattern} | {r.shape} | {r.dtype} | {r.kernels_inductor} -> {r.kernels_bridge} "
        f"| {r.inductor_us:.1f} | {autotune} | {by_hand} | {r.bridge_us:.1f} | {r.speedup:.2f} | {r.bytes / 1e6:.0f} "
        f"| {r.of_copy:.2f} | {r.error_inductor:.2e} | {r.error_bridge:.2e} |"
    )


def summary(rows: list[Row]) -> str:
    """Geometric means over the functions of which Bridge made fewer kernels, and over those of as many."""
    lines = []
    for what, among in (
        ("fewer kernels", [r for r in rows if r.kernels_bridge < r.kernels_inductor]),
        ("as many kernels", [r for r in rows if r.kernels_bridge == r.kernels_inductor]),
    ):
        for dtype in dict.fromkeys(r.dtype for r in among):
            ratios = [r.speedup for r in among if r.dtype == dtype]
            mean, worst = geometric_mean(ratios), min(ratios)
            text = f"{dtype}, {what}: geometric mean {mean:.2f} over {len(ratios)}, worst {worst:.2f}"
            lines.append(text + _large([r for r in among if r.dtype == dtype]) + ".")
    return "\n".join(lines) + "\n"


def _large(rows: list[Row]) -> str:
    fractions = [r.of_copy for r in rows if r.bytes >= LARGE]
    return f"; at 64 MB and more {min(fractions):.2f} to {max(fractions):.2f} of copy" if fractions else ""


def plot(path: Path, rows: list[Row], heading: str) -> None:
    """Write an SVG: bars of the fraction of the copy's speed, at the fewest bytes."""
    cases = [
        Bars(
            f"{r.pattern} {r.shape} {r.dtype if r.dtype != 'bfloat16' else ''}",
            [(r.floor_us / r.inductor_us, 0.0), (r.of_copy, 0.0)],
            f"{r.speedup:.2f}x",
        )
        for r in rows
    ]
    title = f"Fewest bytes at the copy's speed, over the time: {heading}"
    write_svg(path, cases, title, ["Inductor", "Bridge"], Axis(0, 1))


def save(folder: Path, name: str, rows: list[Row], heading: str) -> None:
    """Write NAME.json, NAME.svg and NAME.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(
        json.dumps({"heading": heading, "rows": [asdict(r) for r in rows]}, indent=1) + "\n"
    )
    plot(folder / f"{name}.svg", rows, heading)
    (folder / f"{name}.md").write_text(f"{heading}\n\n{table(rows)}\n{summary(rows)}")


def load(path: Path) -> tuple[str, list[Row]]:
    """(heading, rows) of what `save` wrote."""
    data = json.loads(path.read_text())
    return data["heading"], [Row(**row) for row in data["rows"]]


def rendered(page: Path) -> str:
    """Return the page's text with each part between `<!-- results NAME -->` and `<!-- end -->` made from NAME.json."""
    prefix = FOLDER.relative_to(page.parent)

    def replace(match: re.Match) -> str:
        what, name = match.groups()
        return f"<!-- {what} {name} -->\n{_measured(what, name)}\n![{name}]({prefix / name}.svg)\n<!-- end -->"

    return re.sub(r"<!-- (results|models) (\w+) -->\n.*?<!-- end -->", replace, page.read_text(), flags=re.DOTALL)


def _measured(what: str, name: str) -> str:
    """Return the tables of NAME.json: what `bridge bench` wrote, or what `save` did."""
    path = FOLDER / f"{name}.json"
    if what == "models":
        return describe(load_models(path))
    heading, rows = load(path)
    return f"{heading}\n\n{table(rows)}\n{summary(rows)}"


def main() -> None:
    """Bring the pages and their plots up to date."""
    for path in sorted(set(FOLDER.glob("*.json")) - set(FOLDER.glob("models*.json"))):
        heading, rows = load(path)
        plot(path.with_suffix(".svg"), rows, heading)
    for path in sorted(FOLDER.glob("models*.json")):
        plot_models(load_models(path), path.with_suffix(".svg"))
    for page in PAGES:
        page.write_text(rendered(page))


if __name__ == "__main__":
    main()
