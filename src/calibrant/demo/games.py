"""The paper's two synthetic games, with what the paper says about them.

Kuleshov and Ermon (2017), section "Experiments", with grid and buckets of ten and
without a prior, as there; the calibrator is Foster and Hart's instead of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from calibrant import metrics
from calibrant.recalibrate import Recalibrator
from calibrant.simulate import Record, play

MARKS: Final = (300, 1000)
"""Rounds after which to measure."""
SIZE: Final = 10


@dataclass(frozen=True)
class Game:
    """Who plays, and what the paper saw.

    Attributes
    ----------
    title
        The rules in one line.
    forecaster, adversary
        Names that :func:`calibrant.simulate.play` knows.
    claims
        For each player what the paper says, a part beside each of the marks.
    """

    title: str
    forecaster: str
    adversary: str
    claims: dict[str, tuple[str, str]]


GAMES: Final = (
    Game(
        "Coin tosses: raw is 0.3 before a 0 and 0.7 before a 1",
        *("informed", "bernoulli"),
        {
            "raw forecast": ("knows all, is not calibrated", ""),
            "calibrator alone": ("calibrated, but says 0.5:", "a large loss"),
            "Algorithm 1": ("calibrated by now,", "and knows all"),
        },
    ),
    Game(
        "Adversary: 0 if the announced mean is above 0.5, else 1; raw is noise",
        *("noise", "threshold"),
        {
            "raw forecast": ("mere noise", ""),
            "calibrator alone": ("calibrated, not accurate", ""),
            "Algorithm 1": ("soon ignores the noise:", "as the calibrator alone"),
        },
    ),
)


@dataclass(frozen=True)
class Row:
    """How a player stood after that many rounds: squared loss and calibration errors."""

    player: str
    rounds: int
    loss: float
    c1: float
    c2: float
    claim: str


def results(game: Game, games: int = 5) -> list[Row]:
    """Play a game several times; return how everybody did on average.

    Examples
    --------
    >>> rows = results(GAMES[0], games=1)
    >>> [(row.player, row.rounds) for row in rows[-2:]]
    [('Algorithm 1', 300), ('Algorithm 1', 1000)]
    >>> rows[-1].loss < 0.001
    True
    """
    within = [_played(game, SIZE, seed) for seed in range(games)]
    alone = [_played(game, 1, seed) for seed in range(games)]
    return [
        *_rows(game, "raw forecast", within, lambda record: record.raw),
        *_rows(game, "calibrator alone", alone, lambda record: record.forecast),
        *_rows(game, "Algorithm 1", within, lambda record: record.forecast),
    ]


def _played(game: Game, buckets: int, seed: int) -> Record:
    fresh = Recalibrator("foster_hart", resolution=SIZE, buckets=buckets, prior=0, seed=seed)
    return play(fresh, game.forecaster, game.adversary, MARKS[-1], seed=seed)


def _rows(game: Game, player: str, records: list[Record], series: Callable[..., Any]) -> list[Row]:
    rows = []
    for rounds, claim in zip(MARKS, game.claims[player], strict=True):
        measured = [_measured(series(record), record.outcomes, rounds) for record in records]
        loss, c1, c2 = np.mean(measured, axis=0).tolist()
        rows.append(Row(player, rounds, loss, c1, c2, claim))
    return rows


def _measured(forecasts: Any, outcomes: Any, rounds: int) -> tuple[float, float, float]:
    known = forecasts[:rounds], outcomes[:rounds]
    c1, c2 = (metrics.calibration_error(*known, power=power) for power in (1.0, 2.0))
    return metrics.brier(*known), c1, c2
