"""Games of 1,000 rounds over many seeds: what the two synthetic experiments share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from calibrant import Recalibrator
from calibrant.core.arrays import Bits, Reals, Words
from calibrant.experiments.experiment import Band, Columns, Curves, Panels, Setting, band_of
from calibrant.plot import prepare_over_time
from calibrant.registry import calibrators
from calibrant.report.tables import Table, shown
from calibrant.simulate import Games, play, play_many

ROUNDS: Final = 1_000
MARKS: Final = tuple(range(10, ROUNDS + 1, 10))
SIZE: Final = 8
"""Resolution and number of buckets of the figures; the paper does not say what it used."""
SIZES: Final = (4, 8, 10, 20)
"""Those of the table that shows how much depends on them."""
PRIOR: Final = 1
"""Strength of the identity prior; the paper has none."""
RAW_GAMES: Final = 20
"""Games that are played round by round, for the raw forecasts."""
PAPER: Final = "exponential_regret"
"""RegMin as the paper ran it."""
OURS: Final = "foster_hart"
WITHOUT: Final = frozenset({"running_mean"})
"""Methods that are no calibration subroutines: they promise nothing."""


@dataclass(frozen=True)
class Scene:
    """Who makes the raw forecasts, and who chooses the outcomes."""

    forecaster: str
    adversary: str


@dataclass(frozen=True, eq=False)
class Player:
    """A subroutine inside Algorithm 1, and the same alone."""

    method: str
    inside: Games
    alone: Games

    def at(self, quantity: str, rounds: int) -> tuple[float, float]:
        """Return a quantity inside and alone after so many rounds, averaged over games."""
        place = MARKS.index(rounds)
        pair = (getattr(games, quantity)[:, place] for games in (self.inside, self.alone))
        inside, alone = (float(values.mean()) for values in pair)
        return inside, alone


@dataclass(frozen=True, eq=False)
class Contest:
    """All games of a scene.

    Attributes
    ----------
    players
        By method.
    raw
        Squared loss and C2 of the raw forecasts over time, a row for each game.
    sizes
        C2 of :data:`OURS` inside and alone, by size and strength of the prior.
    """

    players: Mapping[str, Player]
    raw: Mapping[str, Reals]
    sizes: Mapping[tuple[int, int], Player]

    def panels(self, letters: str, method: str, title: str, caption: str) -> Panels:
        """Return the paper's pair of panels: squared loss, and calibration error."""
        loss, error = (self._curves(quantity, method) for quantity in ("loss", "c2"))
        drawings = dict(zip(letters, (loss, error), strict=True))
        return Panels(title, caption, drawings, [letters])

    def _curves(self, quantity: str, method: str) -> Curves:
        titles = {"loss": "squared loss", "c2": "calibration error C2"}
        player = self.players[method]
        series: dict[str, Band] = {
            "raw": band_of(self.raw[quantity]),
            "Algorithm 1": band_of(getattr(player.inside, quantity)),
            f"{method} alone": band_of(getattr(player.alone, quantity)),
        }
        return Curves(titles[quantity], np.array(MARKS), series)

    def columns(self, method: str) -> Columns:
        """Return the numbers behind the panels of a method."""
        table: dict[str, Sequence[float]] = {"rounds": MARKS}
        for quantity in ("loss", "c2"):
            for name, band in self._curves(quantity, method).series.items():
                stem = f"{quantity}_{name.replace(' ', '_').lower()}"
                parts = {"": band.mean, "_low": band.low, "_high": band.high}
                table |= {f"{stem}{end}": values.tolist() for end, values in parts.items()}
        return table

    def methods_table(self, early: int) -> Table:
        """Return every subroutine beside the paper's own."""
        rows = tuple(_row(player, early) for player in self.players.values())
        header = (
            "subroutine", f"C2 at {early}", "alone", f"C2 at {ROUNDS:,}", "alone",
            "loss of the draw", "alone", "loss of the mean", "alone",
        )  # fmt: skip
        caption = f"Every subroutine in Algorithm 1 and alone, N = M = {SIZE}"
        note = (
            f"Means over {len(self.players[OURS].inside)} games. {PAPER} is the paper's own and "
            f"has no prior; the others start with the identity prior of strength {PRIOR}. Losses "
            f"are squared losses after {ROUNDS:,} rounds. anchored, and fading and growing, which "
            "are built on it, are pulled towards the raw forecast: alone they are not blind."
        )
        return Table(caption, header, rows, notes=(note,))

    def sizes_table(self, rounds: int) -> Table:
        """Return how much depends on the size and on the prior."""
        rows = tuple(
            (f"N = M = {size}, prior {prior}", *map(shown, player.at("c2", rounds)))
            for (size, prior), player in self.sizes.items()
        )
        caption = f"C2 of {OURS} after {rounds:,} rounds, by size"
        return Table(caption, ("", "Algorithm 1", "alone"), rows)


def _row(player: Player, early: int) -> tuple[str, ...]:
    quantities = (("c2", early), ("c2", ROUNDS), ("loss", ROUNDS), ("mean_loss", ROUNDS))
    found = [value for quantity, rounds in quantities for value in player.at(quantity, rounds)]
    return (player.method, *map(shown, found))


def play_scene(scene: Scene, setting: Setting, methods: Sequence[str] | None = None) -> Contest:
    """Play all games of a scene: every subroutine, inside Algorithm 1 and alone."""
    players = {}
    for method in methods or [name for name in calibrators.names() if name not in WITHOUT]:
        setting.tell(f"{setting.seeds} games with {method}")
        prior = 0 if method == PAPER else PRIOR
        players[method] = _player(scene, setting, method, SIZE, prior)
    sizes = {
        (size, prior): _player(scene, setting, OURS, size, prior)
        for size in SIZES
        for prior in (0, 1)
    }
    return Contest(players, _raw(scene, setting), sizes)


def _player(scene: Scene, setting: Setting, method: str, size: int, prior: int) -> Player:
    games = (
        play_many(
            method, scene.forecaster, scene.adversary, rounds=ROUNDS, seeds=setting.seeds,
            checkpoints=MARKS, buckets=buckets, prior=prior, resolution=size,
        )
        for buckets in (size, 1)
    )  # fmt: skip
    return Player(method, *games)


def _raw(scene: Scene, setting: Setting) -> dict[str, Reals]:
    """Return loss and C2 of the raw forecasts in games against Algorithm 1."""
    found: dict[str, list[Reals]] = {"loss": [], "c2": []}
    for seed in range(min(RAW_GAMES, setting.seeds)):
        fresh = Recalibrator(OURS, resolution=SIZE, buckets=SIZE, prior=PRIOR, seed=seed)
        record = play(fresh, scene.forecaster, scene.adversary, ROUNDS, seed=seed)
        found["loss"].append(record.running_loss("raw")[_places()])
        found["c2"].append(_running_c2(record.raw, record.outcomes))
    return {quantity: np.array(rows) for quantity, rows in found.items()}


def _running_c2(forecasts: Reals, outcomes: Bits) -> Reals:
    """Return C2 over exact values after each mark."""
    found = [
        prepare_over_time(forecasts[:mark], outcomes[:mark], buckets=None).series["forecast"][-1]
        for mark in MARKS
    ]
    return np.array(found)


def _places() -> Words:
    return np.array(MARKS) - 1
