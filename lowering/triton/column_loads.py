"""Say what the loop over a block's rows loads, and when: with each row, before the rows that it computes, or once.

A program of a kernel of rows and columns has a block of rows. Inductor's runtime chooses how many of them it computes
at a time, and how many it has on their way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .profitability import power_of_2

#: Rows that Inductor's kernel has on their way at most, the one that it computes with among them: torch 2.13 and later.
STAGES = 3

#: Shared memory that the hardware keeps of each program's.
RESERVED_BYTES = 1 << 10

#: Warps that run at a time on a multiprocessor, each thread with 64 registers.
RESIDENT_WARPS = 32

#: Bytes of a column that the programs of a multiprocessor have on their way without rows ahead, where more do not help:
#: `benchmarks/column_blocks.py` has 9 to 21% less time with rows ahead for 31 to 48 bytes (DiT, ConvNeXt, EVA02's wide
#: rows), and 8 to 22% more for 58 to 93 (ConvNeXt, EVA02); a pattern of the corpus, 18% less for 52.
BYTES_ON_THEIR_WAY = 54

#: The same of programs that compute several rows at a time, where more than a third of them is not of rows: rows ahead
#: take 26 to 44% less time for 125 to 404 bytes (five kernels of the corpus, an H200), and 31% more for 619. They go
#: past the cache in which the multiprocessor would find what it has loaded before. Programs of few steps begin and end
#: them for little: of twelve with 16 steps patterns took 5 and 45% more, with 64 and 256 as many 10% less.
SHARED_BYTES_ON_THEIR_WAY, FEW_PROGRAMS, MANY_STEPS = 512, 8, 32

#: Lanes of a row of which Inductor's runtime computes too few at a time: 1605632 rows of 16 (a SiLU's gradient with its
#: sum, an H200, rows ahead) take 62 us of 16 rows at a time and one warp, 44 of `STEP_ELEMENTS` and two.
SHORT_ROW, STEP_ELEMENTS, ELEMENTS_OF_WARP = 32, 1024, 512

#: Registers of a thread for parameters that are loaded before the loop over rows.
PARAMETER_REGISTERS = 64


class Loaded(NamedTuple):
    """Describe what is loaded for each lane: the bytes of an element; whether another row, or column, has another.

    repeats: whether rows that follow each other mostly have the same, as those of one picture have.
    """

    size: int
    of_row: bool
    of_column: bool
    repeats: bool = False


def warps_of_row(columns: int) -> int:
    """Return the warps of a program, as Inductor's runtime chooses them for a row of so many columns."""
    return min(max(power_of_2(columns) // 256, 1), 8)


def columns_of_thread(columns: int) -> float:
    """Return how many elements of a row a thread of its program has."""
    return power_of_2(columns) / (32 * warps_of_row(columns))


def rows_of_step(columns: int, block: int) -> int:
    """Return how many rows of its block a program computes at a time, as Inductor's runtime chooses it."""
    return min(max(block // 32, 4 if power_of_2(columns) <= 512 else 1), 16)


def rows_of_long_step(columns: int) -> int | None:
    """Return how many rows a program computes at a time of so few columns; None where they are not few."""
    lanes = power_of_2(columns)
    return STEP_ELEMENTS // lanes if lanes <= SHORT_ROW else None


def warps_of_step(columns: int, step: int) -> int:
    """Return the warps of a program that computes so many rows at a time."""
    lanes = power_of_2(columns)
    return warps_of_row(columns) if lanes > SHORT_ROW else max(step * lanes // ELEMENTS_OF_WARP, 1)


def stages_of_loop(block: int, step: int) -> int:
    """Return how many rows of its block a program has on their way at most, as Inductor's runtime chooses it.

    step: rows that it computes at a time. Of rows of more than 8192 elements, it has one fewer than this.
    """
    return min(max(block // step // 4, 1), STAGES)


def staged_bytes(columns: int, loads: Iterable[Loaded]) -> int:
    """Return the shared memory of a program with rows on their way: Triton keeps all that is loaded in their loop."""
    return (STAGES - 1) * power_of_2(columns) * sum(load.size for load in loads)


def programs_at_once(columns: int, blocks: int, processors: int) -> float:
    """Return how many programs a multiprocessor runs at a time, at most: no more than there are."""
    return min(RESIDENT_WARPS // warps_of_row(columns), blocks / processors)


def all_stay(at_once: float, staged: int, shared: int) -> bool:
    """Return True if as many programs run at once although each takes `staged` bytes of shared memory.

    Rows on their way hide what a load takes, and so do other programs.  Those that have to wait for the first to end
    take as long again.
    """
    return at_once <= shared // (staged + RESERVED_BYTES)


def too_few_loads(at_once: float, loads: Sequence[Loaded], rows: int, block: int) -> bool:
    """Return True if what programs load for the rows that each computes at a time does not keep memory busy.

    rows: that it computes at a time, of a block of so many.

    Not for short rows, of which a program computes several at a time: those of 96 to 192 columns (ConvNeXt) take 2 to
    10% less with rows ahead for up to 119 bytes of each row, the norms of q and k 6 to 12%. Unless much of what they
    load is in a cache.
    """
    if rows == 1:
        return at_once * sum(load.size for load in loads) <= BYTES_ON_THEIR_WAY
    own, shared = bytes_of_step(loads, rows)
    if 2 * shared <= own:
        return True
    few = at_once * (own + shared) <= SHARED_BYTES_ON_THEIR_WAY
    return few and (at_once <= FEW_PROGRAMS or block >= rows * MANY_STEPS)


def bytes_of_step(loads: Iterable[Loaded], rows: int) -> tuple[int, int]:
    """Return the bytes that are loaded for a column of so many rows: (of these rows alone, of others as well).

    What rows repeat is loaded for each of them; parameters of the columns are loaded once.
    """
    own = shared = 0
    for load in loads:
        if load.of_row and not load.repeats:
            own += rows * load.size
        else:
            shared += (rows if load.of_row else 1) * load.size
    return own, shared


def mostly_rows(loads: Iterable[Loaded], rows: int = 1) -> bool:
    """Return True if no more than two thirds of what is loaded for so many rows is of other rows, too.

    Parameters of the columns are loaded once where no row is on its way and nothing is stored, and else with each step
    of rows.  On an H100, a kernel with 16 bytes of parameters to 4 of each row took 34.2 us with rows on their way and
    16.6 without; a kernel with 4 bytes to 3 took 16.3 us and 23.6.  On an H200, kernels of four rows at a time with 76
    bytes to 20 took 37.0 us and 17.2, with 16 to 16 35.7 and 55.3; with 64 to 24, patterns took 10% more with them.
    """
    own, shared = bytes_of_step(loads, rows)
    return shared <= 2 * own


def loads_parameters_once(loads: Sequence[Loaded], columns: int, step: int) -> bool:
    """Return True if a program keeps parameters that it would load with each of its steps of so many rows.

    Where they are most of what a step loads, and registers have room for them: on an H100, 32 bytes to 8 took 363 us
    and 279 where loaded once, and 12 to 4 195 and 191.  Loaded once, 24 bytes to 16 took 199 us and 274, 2 to 6 117
    and 138: registers that hold them are not there for rows.
    """
    parameters = [load.size for load in loads if not load.of_row]
    of_rows = step * sum(load.size for load in loads if load.of_row)
    registers = int(len(parameters) * columns_of_thread(columns))
    return 2 * sum(parameters) > 3 * of_rows and registers <= PARAMETER_REGISTERS


def lanes_differ(loads: Iterable[Loaded]) -> bool:
    """Return True if nothing is loaded that is the same for all lanes of a row.

    Copied ahead to shared memory, it is a transaction for each lane: a kernel of EVA02 with five such loads took 301 us
    with rows on their way, and 30 without.
    """
    return all(load.of_column for load in loads)
