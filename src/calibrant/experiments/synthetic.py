"""Games of 1,000 rounds over many seeds: what the two synthetic experiments share."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from calibrant import Recalibrator
from calibrant.core.arrays import Bits, Reals
from calibrant.experiments.experiment import Setting
from calibrant.experiments.figures import Columns, Curves, Panels, band_of
from calibrant.plot import prepare_over_time
from calibrant.registry import calibrators
from calibrant.report.tables import Table, shown
from calibrant.simulate import Games, play, play_many

ROUNDS: Final = 1_000
MARKS: Final = tuple(range(10, ROUNDS + 1, 10))
SIZE: Final = 8
"""Resolution and number of buckets of the figures; the paper does not say what it used."""
SIZES: Final = (4, 8, 10, 20)
"""Resolutions of the table that shows how much depends on them."""
PRIOR: Final = 1
"""Strength of the identity prior; the paper has none."""
RAW_GAMES: Final = 20
"""Games that are played round by round, for the raw forecasts."""
PAPER: Final = "exponential_regret"
"""RegMin as the paper ran it."""
OURS: Final = "foster_hart"
Scene: TypeAlias = tuple[str, str]
"""Who makes the raw forecasts, and who chooses the outcomes."""
WITHOUT: Final = frozenset({"running_mean"})
"""Methods that are no calibration subroutines: they promise nothing."""


@dataclass(frozen=True, eq=False)
class Player:
    """A subroutine inside Algorithm 1, and the same alone."""

    method: str
    inside: Games
    alone: Games

    def at(self, quantity: str, rounds: int) -> tuple[float, float]:
        """Return a quantity inside and alone after that many rounds, averaged over games."""
        place = MARKS.index(rounds)
        inside, alone = (getattr(games, quantity)[:, place] for games in (self.inside, self.alone))
        return float(inside.mean()), float(alone.mean())


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

    def figures(self, name: str, letters: str, caption: str) -> dict[str, Panels]:
        """Return pairs of panels, squared loss and calibration error, for the paper and for us."""
        made = {}
        for method in (PAPER, OURS):
            drawings = dict(zip(letters, self._curves(method).values(), strict=True))
            made[f"{name}_{method}"] = Panels(f"With {method}", caption, drawings, [letters])
        return made

    def _curves(self, method: str) -> dict[str, Curves]:
        made, player = {}, self.players[method]
        for quantity, title in (("loss", "squared loss"), ("c2", "calibration error C2")):
            inside, alone = (getattr(games, quantity) for games in (player.inside, player.alone))
            series = {"raw": self.raw[quantity], "Algorithm 1": inside, f"{method} alone": alone}
            bands = {name: band_of(rows) for name, rows in series.items()}
            made[quantity] = Curves(title, np.array(MARKS), bands)
        return made

    def columns(self, method: str) -> Columns:
        """Return the numbers behind the panels of a method."""
        table: dict[str, Sequence[float]] = {"rounds": MARKS}
        for quantity, curves in self._curves(method).items():
            for name, band in curves.series.items():
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
    shapes = itertools.product(SIZES, (0, 1))
    sizes = {shape: _player(scene, setting, OURS, *shape) for shape in shapes}
    return Contest(players, _raw(scene, setting), sizes)


def _player(scene: Scene, setting: Setting, method: str, size: int, prior: int) -> Player:
    games = (
        play_many(
            method, *scene, rounds=ROUNDS, seeds=setting.seeds,
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
        record = play(fresh, *scene, ROUNDS, seed=seed)
        found["loss"].append(record.running_loss("raw")[np.array(MARKS) - 1])
        found["c2"].append(_running_c2(record.raw, record.outcomes))
    return {quantity: np.array(rows) for quantity, rows in found.items()}


def _running_c2(forecasts: Reals, outcomes: Bits) -> Reals:
    """Return C2 over exact values after each mark."""
    found = [
        prepare_over_time(forecasts[:mark], outcomes[:mark], buckets=None).series["forecast"][-1]
        for mark in MARKS
    ]
    return np.array(found)
