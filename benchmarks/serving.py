"""Measure vLLM with and without Bridge: tokens a second, launches a step, and time on the GPU by kernel class.

    python benchmarks/serving.py --out serving.json --budget-seconds 420
    python benchmarks/serving.py --tiny --variants a b       # whether it runs, on a machine without a GPU

Llama-3-8B and Qwen3-8B, each with four layers and random weights, in bf16 and fp8, by vLLM's offline engine:

    a: vLLM's defaults      b: those with Bridge
    c: vLLM's fusions off   d: off, with Bridge     (only where the defaults turn some on)
    e: vLLM's hand-written kernels, and the fusions that were made for them

The engines of a model and a dtype are processes that start side by side and then live side by side; one at a time is
asked for a figure, each in turn, and this again for each round.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from serving_engine import CASES, CLASSES, MODELS, TINY_CASES

from bridge.bench.results import geometric_mean

ENGINE = Path(__file__).with_name("serving_engine.py")

#: Models and dtypes, the most wanted first.
GROUPS = [(model, dtype) for dtype in ("bf16", "fp8") for model in MODELS]

#: Seconds that a group takes, until one has been seen.
FIRST_GUESS = 100.0

_CHILD = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    "VLLM_HOST_IP": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
    "NCCL_SOCKET_IFNAME": "lo",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_CPU = {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
    "TORCHINDUCTOR_DEBUG_COMPILE": "1",
}


class Lost(Exception):
    """Signal that an engine ended, or the time did; the text says which."""


class Engine:
    """Hold a process with one engine of vLLM's; `said` is what it said when it was ready."""

    _ports = itertools.count(23000, 100)

    def __init__(self, spec: dict[str, Any], deadline: float):
        """Start the process, and do not wait for it."""
        self.variant, self.deadline = spec["variant"], deadline
        self.said: dict[str, Any] = {}
        folder = Path(spec["folder"], spec["variant"])
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "log.txt"
        settings = _CHILD | {"VLLM_CACHE_ROOT": str(folder / "cache"), "VLLM_PORT": str(next(self._ports))}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(ENGINE), json.dumps(spec)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder,
                env={**os.environ, **(_CPU if spec["tiny"] else {}), **settings},
            )  # fmt: skip
        self.pending = b""

    def ask(self, **question: Any) -> Any:
        """Return the answer to a question; Lost where there is none in time."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Lost(self.last_words()) from None
        return self.answer()

    def answer(self) -> Any:
        """Return the next line that the engine says, read; Lost where it ended, or the time did."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        while b"\n" not in self.pending:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, self.deadline - time.monotonic()))
            if not ready:
                raise Lost("the time is up")
            read = os.read(descriptor, 1 << 16)
            if not read:
                raise Lost(self.last_words())
            self.pending += read
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def last_words(self) -> str:
        """Return the end of the engine's log: the lines from the last error on."""
        lines = self.log.read_text(errors="replace").splitlines()
        errors = [number for number, line in enumerate(lines) if "Error" in line]
        return "\n".join(lines[max(0, (errors[-1] if errors else len(lines)) - 12) :][:25])

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


class Results:
    """Hold what was measured; a file of JSON is written anew with each figure."""

    def __init__(self, path: Path | None):
        """Start with nothing."""
        self.path = path
        self.groups: dict[str, dict[str, Any]] = {}

    def add(self, group: str, kind: str, value: Any) -> None:
        """Put a figure in, and write the file."""
        self.groups.setdefault(group, {}).setdefault(kind, {}).update(value)
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps({"command": sys.argv, "groups": self.groups}, indent=1) + "\n")


def say(*words: object) -> None:
    """Print a line, at once."""
    print(*words, flush=True)


# ---------------------------------------------------------------------------------------------------------
# One model and one dtype
# ---------------------------------------------------------------------------------------------------------


def started(group: str, options: argparse.Namespace, folder: Path, deadline: float) -> Iterator[Engine]:
    """Yield the engines of a group that are ready; --jobs of them start side by side."""
    model, dtype = group.split()
    common = {"model": model, "dtype": dtype, "tiny": options.tiny, "folder": str(folder), "bridge": options.bridge}
    jobs = options.jobs or len(options.variants)
    for first in range(0, len(options.variants), jobs):
        side_by_side = options.variants[first : first + jobs]
        engines = [Engine(common | {"variant": variant}, deadline) for variant in side_by_side]
        for engine in engines:
            if ready(group, engine):
                yield engine
            else:
                engine.end()


def ready(group: str, engine: Engine) -> bool:
    """Wait for an engine, and tell of it; False where it did not start, or is none."""
    try:
        engine.said = engine.answer()
    except Lost as error:
        say(f"{group} ({engine.variant}): no engine\n{error}\n")
        return False
    said = engine.said
    if "same" in said:
        say(f"{group} ({engine.variant}): as ({said['same']}), none of vLLM's fusions is on")
        return False
    say(
        f"{group} ({engine.variant}): vLLM {said['vllm']}, start {said['start_s']:.1f} s, of it compiling "
        f"{said['compile_s']:.1f} s; {said['graphs']}, {said['custom_ops']}, {said['fusions']}, {said['additional']}"
    )
    return True


def measure(group: str, engines: list[Engine], options: argparse.Namespace, results: Results) -> None:
    """Time each case in turns, then ask for errors and kernels."""
    results.add(group, "start", {engine.variant: engine.said for engine in engines})
    cases = TINY_CASES if options.tiny else CASES
    for case in cases:
        rates = in_turns(engines, case, options.rounds)
        results.add(group, "tokens_s", {case: rates})
        say(rate_line(group, case, rates))
    errors = {engine.variant: engine.ask(do="error") for engine in engines}
    results.add(group, "error", errors)
    say(f"{group}: error of the logits {error_words(errors)}")
    for case in cases if not options.tiny else ():
        for engine in engines:
            profile = engine.ask(do="profile", case=case)
            results.add(group, f"profile {case}", {engine.variant: profile})
            say(profile_line(group, case, engine.variant, profile))


def in_turns(engines: list[Engine], case: str, rounds: int) -> dict[str, list[float]]:
    """Return the tokens a second of each engine in each round; the first round only warms up."""
    rates: dict[str, list[float]] = {engine.variant: [] for engine in engines}
    for number in range(rounds + 1):
        turn = number % len(engines)
        for engine in engines[turn:] + engines[:turn]:
            answer = engine.ask(do="time", case=case)
            if number:
                rates[engine.variant].append(answer["tokens"] / answer["seconds"])
    return rates


def rate_line(group: str, case: str, rates: dict[str, list[float]]) -> str:
    """Return the medians, and each over (a)'s: the median of the ratios within a round."""
    cells = []
    for variant, values in rates.items():
        low, high = min(values), max(values)
        ratio = statistics.median(v / a for v, a in zip(values, rates["a"], strict=True)) if "a" in rates else 1.0
        cells.append(f"({variant}) {statistics.median(values):.1f} [{low:.1f} to {high:.1f}] {ratio:.3f}x")
    return f"| {group} | {case} | tokens/s | {' | '.join(cells)} |"


def error_words(errors: dict[str, Any]) -> str:
    """Return each variant's error, over (a)'s, and whether it says the same tokens."""
    first = errors.get("a", next(iter(errors.values())))
    return ", ".join(
        f"({variant}) {value['error']:.3e} = {value['error'] / first['error'] if first['error'] else 1:.3f}x"
        f"{'' if value['tokens'] == first['tokens'] else ', other tokens'}"
        for variant, value in errors.items()
    )


def profile_line(group: str, case: str, variant: str, profile: dict[str, Any]) -> str:
    """Return the launches and the time on the GPU of a step, in all and by class."""
    us, launches = profile["us"], profile["launches"]
    classes = ", ".join(f"{kind} {us[kind]:.1f} in {launches[kind]:.1f}" for kind in [*CLASSES, "other"] if kind in us)
    return (
        f"| {group} | {case} | ({variant}) | {sum(launches.values()):.1f} launches | {sum(us.values()):.1f} us "
        f"| {classes} |"
    )


# ---------------------------------------------------------------------------------------------------------
# All
# ---------------------------------------------------------------------------------------------------------


def run_group(group: str, options: argparse.Namespace, results: Results, deadline: float) -> None:
    """Measure one model and dtype, in a folder of its own that is gone then; an engine that is lost ends it."""
    folder = Path(tempfile.mkdtemp(prefix="bridge-serving-"))
    engines: list[Engine] = []
    try:
        engines += started(group, options, folder, deadline)
        if engines:
            measure(group, engines, options, results)
    except Lost as error:
        say(f"{group}: ended. {error}")
    finally:
        for engine in engines:
            engine.end()
        if options.keep is not None:
            shutil.copytree(folder, options.keep / group.replace(" ", "-"), dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def means(results: Results) -> Iterator[str]:
    """Yield the geometric mean of each variant's tokens a second over (a)'s, for prompts and for decoding."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for case, rates in ((c, r) for group in results.groups.values() for c, r in group.get("tokens_s", {}).items()):
        for variant in rates.keys() - {"a"} if "a" in rates else ():
            pairs = zip(rates[variant], rates["a"], strict=True)
            ratios.setdefault((variant, case.split()[0]), []).append(statistics.median(v / a for v, a in pairs))
    for (variant, kind), values in sorted(ratios.items()):
        yield f"({variant}) over (a), {kind}: {geometric_mean(values):.3f}x of {len(values)}, worst {min(values):.3f}x"


def arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file for JSON, written anew with each figure")
    parser.add_argument("--budget-seconds", type=float, default=3600, help="end by then, and begin nothing longer")
    parser.add_argument("--groups", nargs="+", default=[" ".join(group) for group in GROUPS], metavar="'MODEL DTYPE'")
    parser.add_argument("--variants", nargs="+", default=list("abcde"), choices=list("abcde"))
    parser.add_argument("--rounds", type=int, default=25, help="short ones: a host has pauses (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=0, help="engines that start side by side (default: all of a group)")
    parser.add_argument("--bridge", type=json.loads, default={}, help="Bridge's options, as JSON")
    parser.add_argument("--keep", type=Path, help="folder for the logs and vLLM's caches")
    parser.add_argument("--tiny", action="store_true", help="models for a machine without a GPU")
    return parser.parse_args()


def main() -> None:
    """Measure one group after the other, as long as there is time for one."""
    options, longest = arguments(), 0.0
    results, began = Results(options.out), time.monotonic()
    deadline = began + options.budget_seconds
    for group in options.groups:
        left = deadline - time.monotonic()
        if left < (longest or min(FIRST_GUESS, options.budget_seconds)):
            say(f"{group}: not begun, {left:.0f} s are left")
            continue
        start = time.monotonic()
        run_group(group, options, results, deadline)
        longest = max(longest, time.monotonic() - start)
        say(f"{group}: {time.monotonic() - start:.0f} s")
    for line in means(results):
        say(line)


if __name__ == "__main__":
    main()
