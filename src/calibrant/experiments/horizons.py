"""How many rounds a guarantee needs by the theorem, and how many it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from calibrant.bounds import Shape, best_shape, foster_hart, horizon
from calibrant.core.arrays import Reals, Words
from calibrant.experiments.experiment import Result, Setting, at_most
from calibrant.report.tables import Table
from calibrant.simulate import Games, play_many

SCENES: Final = (("uniform", "greedy_accuracy"), ("noise", "threshold"), ("informed", "bernoulli"))
EPSILONS: Final = (0.2, 0.1, 0.05)
ERRORS: Final = (0.1, 0.05, 0.02)
"""Of C2, with N and M of :data:`SIZE`, against the adversary that is out to spoil it."""
SIZE: Final = 10
SPOILER: Final = ("uniform", "greedy_calibration")
MARKS: Final = 80
GAMES: Final = 10


@dataclass(frozen=True)
class Horizon:
    """Rounds until a quantity stays at epsilon, promised and measured in one scene."""

    quantity: str
    epsilon: float
    scene: str
    shape: Shape
    measured: int


def check_horizons(setting: Setting) -> Result:
    """Compare predicted with measured horizons."""
    setting.tell("horizons")
    games = 3 if setting.quick else GAMES
    found = [_extra_loss(epsilon, scene, games) for epsilon in EPSILONS for scene in SCENES]
    found += [_error(epsilon, games) for epsilon in ERRORS]
    share = max(each.measured / each.shape.rounds for each in found)
    said = "The horizon that a theorem predicts is enough: largest share of it that was needed"
    return Result(
        (at_most("horizon_share", said, share, 1.0, "ours"),),
        tables=(_table(found),),
        columns={"theory_horizons": _columns(found)},
    )


def _extra_loss(epsilon: float, scene: tuple[str, str], games: int) -> Horizon:
    """Play as long as the theorem asks for, and see when the extra loss was small for good."""
    shape = best_shape(epsilon, "squared", "foster_hart")
    marks, played = _play(shape, scene, games)
    regret = (played.loss - played.raw_loss).mean(axis=0)
    measured = _settled(marks, regret, epsilon)
    return Horizon("extra loss", epsilon, ", ".join(scene), shape, measured)


def _error(epsilon: float, games: int) -> Horizon:
    """Do the same for the calibration error."""
    cells, half = SIZE + 1, 1.0 / (2 * SIZE)
    rounds = horizon(epsilon, lambda T: foster_hart(T, cells, half, buckets=SIZE))
    shape = Shape(SIZE, SIZE, rounds)
    marks, played = _play(shape, SPOILER, games)
    measured = _settled(marks, played.c2.mean(axis=0), epsilon)
    return Horizon("C2", epsilon, ", ".join(SPOILER), shape, measured)


def _play(shape: Shape, scene: tuple[str, str], games: int) -> tuple[Words, Games]:
    marks = np.unique(np.geomspace(1, shape.rounds, MARKS).astype(np.int64))
    return marks, play_many(
        "foster_hart", *scene, rounds=shape.rounds, seeds=games, checkpoints=marks.tolist(),
        resolution=shape.resolution, buckets=shape.buckets, prior=0,
    )  # fmt: skip


def _settled(marks: Words, values: Reals, epsilon: float) -> int:
    """Return the first mark from which on the values stay at or below epsilon.

    >>> _settled(np.array([1, 2, 4]), np.array([0.3, 0.1, 0.05]), 0.2)
    2
    """
    above = np.flatnonzero(values > epsilon)
    if not len(above):
        return int(marks[0])
    return int(marks[min(above[-1] + 1, len(marks) - 1)])


def _table(found: list[Horizon]) -> Table:
    rows = tuple(
        (
            f"{each.quantity} ≤ {each.epsilon:g}, {each.scene}",
            f"{each.shape.resolution}, {each.shape.buckets}",
            f"{each.shape.rounds:,}",
            f"{each.measured:,}",
        )
        for each in found
    )
    header = ("", "N, M", "rounds predicted", "rounds measured")
    note = (
        "Extra loss: rounds after which the squared loss exceeds that of the raw forecast by no "
        "more, with the N and M that need fewest by the theorem. Predictions hold against any "
        "adversary; these games are far from the worst, some by orders of magnitude."
    )
    return Table("Horizons", header, rows, notes=(note,))


def _columns(found: list[Horizon]) -> dict[str, list[float | str]]:
    return {
        "quantity": [each.quantity for each in found],
        "epsilon": [each.epsilon for each in found],
        "game": [each.scene for each in found],
        "resolution": [each.shape.resolution for each in found],
        "buckets": [each.shape.buckets for each in found],
        "predicted": [each.shape.rounds for each in found],
        "measured": [each.measured for each in found],
    }
