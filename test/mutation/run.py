"""Mutation test of the checks: each fault of mutants.py, put into a copy of Bridge, has to turn the suite red.

    python test/mutation/run.py --work /tmp/mutation --build-python PYTHON
    python test/mutation/run.py --work /tmp/mutation --suites op_db models      # the generators of others alone

A mutant of the passes takes a build, so this is no part of `make test`; docs/results.md has the last outcome, and
test_mutants.py what can be had without a build.  Exits with 1 if a mutant survives.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from mutants import MUTANTS, PROGRAMS, Mutant

ROOT = Path(__file__).parents[2]

#: Patterns with pieces, guards, segments, several nodes of a kernel, and every kind of reduction.
_PATTERNS = (
    "swiglu_4096 or chunk_geglu or head_tail or two_rmsnorms or interleaved_rope or fp8_blocks or swiglu_int8"
    " or softmax_chunk or mla_indexer_192 or residual_rmsnorm_rope or roll_windows or token_mean"
)

#: The parts of the suite, each an independent way to see a fault, as arguments of pytest; `lit` is lit's.
SUITES = {
    "controls": ["validation/test_mutants.py", "-k", "nothing_is_broken"],
    "execution": ["validation/test_validate.py", "-k", f"test_patterns and not 16_bits and ({_PATTERNS})"],
    "isl": ["validation/test_isl.py", "-k", f"static and ({_PATTERNS})"],
    "index maps": ["validation/test_index_maps.py", "-k", f"test_patterns and ({_PATTERNS})"],
    "numerics": ["end_to_end/test_patterns.py", "-k", f"gpu_numerics and float32 and ({_PATTERNS})"],
    "roundtrip": ["unit/lift/test_band.py"],
    "shared launches": ["unit/horizontal/test_shared_launch.py"],
    "subscripts": ["unit/affine/translate/test_access.py"],
    "padded rows": ["end_to_end/test_sketches.py", "-k", "padded"],
    "fuzz": ["validation/test_fuzz.py", "-k", "gpu"],
    "lit": None,
}

#: Generators of others (see torture/), as its arguments; each ends at the first program that fails. Of a mutant in
#: PROGRAMS op_db runs that program alone.
GENERATORS = {
    "op_db": ["op_db", "--target", "triton", "--sample", "400", "--seed", "1"],
    "models": ["models", "--target", "triton", "--sample", "24", "--seed", "1"],
}


def _programs(generator: str, mutant: str) -> list[str]:
    if generator == "op_db" and mutant in PROGRAMS:
        return ["op_db", "--target", "triton", "--only", PROGRAMS[mutant]]
    return [*GENERATORS[generator], "--until-failure"]


class Copy:
    """A copy of the sources, with a build of its own."""

    def __init__(self, folder: Path, build_python: str):
        self.folder = folder
        if not folder.exists():
            ignored = shutil.ignore_patterns("build", ".git", "__pycache__", "_native", ".venv")
            shutil.copytree(ROOT, folder, ignore=ignored, symlinks=True)
        # The sources of the passes keep their times, by which ninja knows what a mutant has left.
        for part in ("benchmarks", "bridge", "lowering", "test"):
            ignored = shutil.ignore_patterns("_native", "__pycache__", *(["lowering"] if part == "bridge" else []))
            shutil.copytree(ROOT / part, folder / part, ignore=ignored, dirs_exist_ok=True)
        for mutant in MUTANTS:  # of a run that broke off
            self.restore(mutant)
        self.build_python = build_python
        self.build()

    def build(self) -> None:
        command = ["make", "-s", "build", f"PYTHON={self.build_python}"]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def build_plugin(self) -> None:
        """Without bridge-opt, which takes longer to link."""
        command = ["cmake", "--build", "build", "--target", "BridgePasses"]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def is_red(self, suite: str, mutant: str) -> bool:
        """Whether a part of the suite fails; mutant: its name."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "BRIDGE_STRICT": "1",
        }
        tests = self.folder / "test" / "python"
        arguments = SUITES.get(suite)
        if suite in GENERATORS:
            folders = [environment["PYTHONPATH"], str(tests / "validation"), str(tests / "support")]
            environment["PYTHONPATH"] = os.pathsep.join(folders)
            results = self.folder.parent / f"{self.folder.name}-torture"
            shutil.rmtree(results, ignore_errors=True)
            command = [sys.executable, "-m", "torture", *_programs(suite, mutant), f"--results={results}"]
        elif arguments is None:
            command = [sys.executable, "-m", "lit.main", "-q", str(self.folder / "test" / "lit")]
            command += [f"--param=bridge_opt={self.folder / 'build' / '_native' / 'bin' / 'bridge-opt'}"]
        else:
            command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", str(tests / arguments[0])]
            command += arguments[1:]
        done = subprocess.run(
            command, cwd=self.folder.parent, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1):  # pytest's others are errors of usage
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
        return done.returncode == 1

    def apply(self, mutant: Mutant, with_opt: bool) -> None:
        path = self.folder / mutant.file
        text = (ROOT / mutant.file).read_text()
        if text.count(mutant.old) != 1:
            raise RuntimeError(f"{mutant.name}: {mutant.file} has changed")
        path.write_text(text.replace(mutant.old, mutant.new))
        if mutant.native:
            self.build() if with_opt else self.build_plugin()

    def restore(self, mutant: Mutant) -> None:
        if (self.folder / mutant.file).read_bytes() != (ROOT / mutant.file).read_bytes():
            shutil.copyfile(ROOT / mutant.file, self.folder / mutant.file)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for the copy; one that exists is used again")
    parser.add_argument("--build-python", default=sys.executable, help="a Python with what the build needs")
    parser.add_argument("--only", nargs="*", help="names of mutants")
    every = [*SUITES, *GENERATORS]
    parser.add_argument("--suites", nargs="*", default=list(SUITES), choices=every, help="in this order")
    parser.add_argument("--all", action="store_true", help="every suite, not only up to the first that is red")
    options = parser.parse_args()
    copy, survivors = Copy(options.work, options.build_python), []
    for mutant in (m for m in MUTANTS if not options.only or m.name in options.only):
        start = time.perf_counter()
        copy.apply(mutant, "lit" in options.suites)
        try:
            found = (suite for suite in options.suites if copy.is_red(suite, mutant.name))
            red = list(itertools.islice(found, None if options.all else 1))
        finally:
            copy.restore(mutant)
        survivors += [] if red else [mutant.name]
        verdict = ", ".join(red) or "SURVIVES"
        print(f"| {mutant.what} | {mutant.name} | {verdict} | {time.perf_counter() - start:.0f} s", flush=True)
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
