"""The paper's Table 1 as measured: time, memory and calibration error as epsilon shrinks."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from calibrant import Recalibrator
from calibrant.bounds import half_cell
from calibrant.core.arrays import Reals
from calibrant.experiments.claims import Claim, at_most, below, near
from calibrant.experiments.experiment import Result, Setting
from calibrant.experiments.figures import Columns, Panels, Slopes
from calibrant.report.tables import Table, shown
from calibrant.simulate import play_many

SUBROUTINES: Final = {
    "exponential_regret": "regret minimisation, all pairs (the paper's)",
    "regret_matching": "regret minimisation, adjacent swaps",
    "blackwell": "Blackwell approachability",
}
SIZES: Final = (5, 10, 20, 40)
"""1/epsilon: resolution and number of buckets."""
ROUNDS: Final = (1_000, 4_000, 16_000)
LONG: Final = 20
"""The size at which the number of rounds varies."""
LARGE: Final = (40, 80, 160, 320)
"""Sizes at which memory is counted: there, what a state holds besides its cells is little."""
GAMES: Final = 5
TIMED: Final = {"exponential_regret": 500, "regret_matching": 20_000, "blackwell": 20_000}
"""Rounds of a stretch that is timed."""
WARM: Final = 20_001
"""Rounds before: as many as a batch needs to be compiled, and they fill caches."""
STRETCHES: Final = 5
"""The quickest of this many counts: the others were disturbed."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One subroutine: an entry for each size, and for each number of rounds.

    Attributes
    ----------
    seconds
        Processor time of a round of Algorithm 1.
    bytes
        Its whole state, at each of :data:`LARGE`.
    error, bound
        C1 after the last of :data:`ROUNDS`, and what the theorem says.
    over_time
        C1 after each of :data:`ROUNDS` at size :data:`LONG`.
    """

    seconds: tuple[float, ...]
    bytes: tuple[int, ...]
    error: tuple[float, ...]
    bound: tuple[float, ...]
    over_time: tuple[float, ...]

    @property
    def powers(self) -> tuple[float, float, float, float]:
        """The powers of 1/epsilon in time, space and C1, and of the rounds in C1."""
        time, error = (slope(SIZES, values) for values in (self.seconds, self.error))
        return time, slope(LARGE, self.bytes), error, slope(ROUNDS, self.over_time)


def measure(setting: Setting) -> Result:
    """Measure Table 1."""
    found = {}
    for method in SUBROUTINES:
        setting.tell(f"Table 1: {method}")
        found[method] = _measure(method, range(2 if setting.quick else GAMES))
    return Result(
        claims(found),
        {"theory_table": _panels(found)},
        (_table(found), _slopes_table(found)),
        {"theory_table": _columns(found)},
    )


def _measure(method: str, seeds: Sequence[int]) -> Measured:
    played = [_play(method, size, seeds) for size in SIZES]
    return Measured(
        tuple(_seconds(method, size) for size in SIZES),
        tuple(_bytes(method, size) for size in LARGE),
        tuple(float(errors[-1]) for errors in played),
        tuple(_bound(method, size) for size in SIZES),
        tuple(map(float, played[SIZES.index(LONG)])),
    )


def _made(method: str, size: int, **options: Any) -> Recalibrator:
    return Recalibrator(method, resolution=size, buckets=size, prior=0, seed=1, **options)


def _play(method: str, size: int, seeds: Sequence[int]) -> Reals:
    """Return C1 of the draws against the greedy adversary, averaged over games."""
    games = play_many(
        method, "uniform", "greedy_calibration", rounds=ROUNDS[-1], checkpoints=ROUNDS,
        seeds=seeds, resolution=size, buckets=size, prior=0,
    )  # fmt: skip
    return np.asarray(games.c1.mean(axis=0))


def _bound(method: str, size: int) -> float:
    """Return the theorem's bound on C1 of the draws; infinite where it says nothing."""
    made = _made(method, size)
    found = made.calibrator.bound(ROUNDS[-1], buckets=size, prior=0)
    return math.inf if found is None else float(found.as_c1().value)


def _bytes(method: str, size: int) -> int:
    """Return the size of the state of Algorithm 1."""
    centres = [Fraction(2 * j + 1, 2 * size) for j in range(size)]
    flat = _made(method, size).calibrator.flat(size, prior=0, centres=centres)
    return int(flat.nbytes)


def _seconds(method: str, size: int) -> float:
    """Return the processor time of a round, in the quickest of several stretches."""
    rng, rounds, made = np.random.default_rng(3), TIMED[method], _made(method, size)
    raw = rng.random(max(WARM, rounds))
    outcomes = (rng.random(len(raw)) < raw).astype(np.uint8)
    made.replay(raw, outcomes)
    part = raw[:rounds], outcomes[:rounds]
    return min(_timed(made, *part) for _ in range(STRETCHES)) / rounds


def _timed(made: Recalibrator, raw: Any, outcomes: Any) -> float:
    began = time.process_time()
    made.replay(raw, outcomes)
    return time.process_time() - began


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the power with which values grow: the least-squares slope of their logarithms.

    >>> round(slope([1, 2, 4], [3, 12, 48]), 9)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def claims(found: dict[str, Measured]) -> tuple[Claim, ...]:
    """Return what Table 1 says, and the powers that were measured."""
    pairs, adjacent, blackwell = (found[name].powers for name in SUBROUTINES)
    spaces = [each.powers[1] for each in found.values()]
    order = "Calibration error of order 1/(ε √T) at best"
    worst = max(
        error / bound
        for each in list(found.values())[1:]
        for error, bound in zip(each.error, each.bound, strict=True)
    )
    time_ = "Time per step of regret minimisation is O(1/ε): power of 1/ε"
    most = "… at most (1/ε)^1.5 for regret minimisation: power of 1/ε"
    return (
        at_most("time_pairs", f"{time_}, all pairs", pairs[0], 1.0),
        at_most("time_adjacent", f"{time_}, adjacent swaps", adjacent[0], 1.0),
        below("time_blackwell", BLACKWELL_TIME, blackwell[0], 0.5),
        near("space_least", "Space is O(1/ε²): least power of 1/ε", min(spaces), 2.0, 0.2),
        near("space_most", "Space is O(1/ε²): largest power of 1/ε", max(spaces), 2.0, 0.2),
        at_most("rate_adjacent", f"{order}: power of T, adjacent swaps", adjacent[3], -0.35),
        at_most("rate_blackwell", f"{order}: power of T, Blackwell", blackwell[3], -0.35),
        at_most("size_adjacent", most, adjacent[2], 1.5),
        at_most("size_blackwell", "… at most 1/ε for Blackwell: power of 1/ε", blackwell[2], 1.0),
        at_most("worst_share", "C1 stays below the theorems' bounds: largest share", worst, 1.0),
    )


def _lines(found: dict[str, Measured]) -> list[tuple[str, int, float, int, float, float]]:
    """Return subroutine, size, microseconds, bytes, C1 and its bound."""
    return [
        (name, size, 1e6 * cost, _bytes(name, size), error, top)
        for name, each in found.items()
        for size, cost, error, top in zip(SIZES, each.seconds, each.error, each.bound, strict=True)
    ]


def _table(found: dict[str, Measured]) -> Table:
    rows = tuple(
        (f"{SUBROUTINES[name]}, 1/ε = {n}", shown(cost, 2), f"{size:,}", shown(c1), shown(bound))
        for name, n, cost, size, c1, bound in _lines(found)
    )
    header = ("", "µs a round", "bytes", "C1", "bound on C1")
    note = (
        f"Algorithm 1 with N = M = 1/ε. C1 of the draws after {ROUNDS[-1]:,} rounds of uniform raw "
        "forecasts against the greedy adversary; for all pairs the bound is about mixtures, not "
        "draws. Processor time depends on the machine and on whether the compiler is installed."
    )
    return Table("Table 1, measured", header, rows, notes=(note,))


def _slopes_table(found: dict[str, Measured]) -> Table:
    rows = tuple(
        (SUBROUTINES[method], *(f"{power:.2f}" for power in each.powers))
        for method, each in found.items()
    )
    claimed = (
        ("claimed: regret minimisation", "1", "2", "1.5", "-0.5"),
        ("claimed: Blackwell", "0 (log)", "2", "1", "-0.5"),
    )
    header = ("", "time by 1/ε", "space by 1/ε", "C1 by 1/ε", "C1 by T")
    return Table("Powers, fitted and claimed", header, rows + claimed)


def _panels(found: dict[str, Measured]) -> Panels:
    sizes = np.array(SIZES, dtype=np.float64)
    time_ = {name: 1e6 * np.array(each.seconds) for name, each in found.items()}
    error = {name: np.array(each.error) for name, each in found.items()}
    floor = {"half a cell": np.array([half_cell(np.linspace(0, 1, n + 1)) for n in SIZES])}
    drawings = {
        "a": Slopes(("1/ε", "µs a round"), sizes, time_),
        "b": Slopes(("1/ε", f"C1 after {ROUNDS[-1]:,} rounds"), sizes, error | floor),
    }
    caption = "Time of a round and calibration error of Algorithm 1 as the grid gets finer."
    return Panels("Table 1, measured", caption, drawings, ["ab"])


def _columns(found: dict[str, Measured]) -> Columns:
    names = ("subroutine", "size", "microseconds", "bytes", "c1", "bound_c1")
    return dict(zip(names, map(list, zip(*_lines(found), strict=True)), strict=True))


BLACKWELL_TIME: Final = "Time per step of approachability is O(log 1/ε): power of 1/ε"
