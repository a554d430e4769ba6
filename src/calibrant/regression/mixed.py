"""Experts on the axis of values first, calibrators of levels last."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import numpy as np

from calibrant.core.arrays import Mask, Reals, Words
from calibrant.kernels import shifts
from calibrant.kernels.crowd import crowd_then, same_of
from calibrant.kernels.layout import ISSUED, LONGEST_LAG, MOST_OUTSTANDING, ROUNDS, SAME, Section
from calibrant.regression.curves import ask, machine_for
from calibrant.regression.distribution import Distributions, knots
from calibrant.regression.level_method import Played, quantile_methods
from calibrant.regression.method import Ties
from calibrant.regression.pit import Pit
from calibrant.regression.ticket import QuantileTicket

MIDDLES: Final = (np.arange(shifts.GRID)[None] + 0.5) / shifts.GRID
STRENGTH: Final = 1.0
"""With a weaker pull coverage is right sooner, and the CRPS a thousandth higher."""
SMALLEST: Final = 5e-324
"""A standard deviation is above 0, however far it is scaled down."""


@quantile_methods.add("mixed")
class Mixed(Pit):
    """Shift and scale the raw distribution as experts advise, and calibrate the result.

    Nine experts say where the centre of the distribution should be and how wide it should be: the
    raw forecast, six who follow the moments of past errors, with three memories, with a slope
    and with a spread of their own, and two who descend along the CRPS.  Weights that fall with
    the CRPS of each mix them; the mixture has the shape of the raw distribution.  What it
    says is the input of ``"pit"``, which comes last because mixing destroys calibration and
    calibrating restores it.

    In a round::

        c, d         centre and spread of the raw distribution
        m, s         mean of the experts' centres and spreads, by their weights
        mixed        the raw distribution, its values x moved to m + (x - c) s/d
        announce     what "pit" makes of the levels of mixed
        learn        "pit": which of its quantiles of mixed cover the outcome
                     experts: weights by exp(-CRPS / mean CRPS) of what each one said, 8 nats
                     apart at most, then moments and descents; less of an outcome that is one of
                     many that wait

    Quantiles are finite, for the ends of the mixture go on beyond the outermost level that is
    learned.  Where outcomes lie on atoms of the raw distributions, which must not move, the raw
    forecast is taken as it is: one outcome in 20 is enough.

    Parameters
    ----------
    calibrator, **more
        The last stage: name of a calibrator and its own parameters.  By default ``"anchored"``,
        which is pulled towards the mixture for as long as hedging does not beat it, with
        ``strength=1``.
    prior, resolution
        As in :class:`Pit`.
    """

    guarantee = "of the calibrator, for each level of the mixture: E C2 of the chances drawn there"
    reference = "Kuleshov and Ermon (2017); V'yugin and Trunov (2019) on mixing under the CRPS"

    def __init__(
        self,
        levels: Reals,
        *,
        calibrator: str = "anchored",
        prior: int = 1,
        resolution: int = 50,
        **more: Any,
    ) -> None:
        more = {"strength": STRENGTH} | more if calibrator == "anchored" else more
        super().__init__(levels, calibrator=calibrator, prior=prior, resolution=resolution, **more)
        self.follow(True)

    def follow(self, alike: bool, even: bool = True, capped: bool = True) -> None:
        """Let late outcomes count as some of many, and as all before; or not, as in the past.

        And let one outcome move weights by no more than some.
        """
        self._follows, self._even, self._capped = alike, even, capped
        self._specs = [dataclasses.replace(spec, doubts=alike) for spec in self._specs]
        # Where outcomes are late, tickets keep what was announced beside what experts said.
        self.advice = shifts.GRID + shifts.SAID + (2 if alike else 0)

    def _expert_words(self) -> tuple[Section, list[float]]:
        return shifts.section(self._follows), shifts.fresh(self._follows)

    @property
    def _experts_at(self) -> int:
        """Where the words of the experts start."""
        return self._seat.at + len(self.levels)

    @property
    def weights(self) -> Reals:
        """The weights of the experts, of which the raw forecast is the first."""
        first = len(self.levels)
        return np.array(self._seat.part()[first : first + shifts.EXPERTS])

    # ------------------------------------------------------------------- a round

    def mixed(self, raw: Distributions) -> tuple[Distributions, tuple[float, ...]]:
        """Return a raw forecast as the mixture moves it, its quantiles, and what experts say."""
        numbers = _numbers(raw)[0].tolist()
        said, told, room = [0.0] * shifts.SAID, [0.0] * shifts.TOLD, [0.0] * shifts.ROOM
        marks = self._seat.reals()
        shifts.announce(marks, self._experts_at, numbers, 0, room, said, told, 0)
        more = told[2:] if self._follows else ()
        return shifted(raw, np.array([told])), (*numbers, *said, *more)

    @property
    def experts(self) -> tuple[int, int]:
        """Where the words of the experts start and end."""
        first = self._experts_at
        return first, first + len(self._expert_words()[0])

    def heed(self, ticket: QuantileTicket, outcome: float) -> None:
        """Let the experts learn an outcome."""
        numbers, said = ticket.advice[: shifts.GRID], ticket.advice[shifts.GRID :]
        (words, marks), row, room = self._seat.state(), self._seat.row, [0.0] * shifts.ROOM
        crowd = float(crowd_then(words, row, ticket.number)) if self._follows else 1.0
        marks[SAME], room[shifts.EVEN] = 1.0, float(self._even)
        room[shifts.CAPPED] = float(self._capped)
        if crowd > 1.0:
            # The last stage has a theorem, which reckons with lags that were seen.
            lag = max(words[row + LONGEST_LAG], words[row + ISSUED] - ticket.number - 1)
            others = min(crowd - 1.0, float(lag))
            marks[SAME] = same_of(marks, self._experts_at + shifts.FOLLOWED, others)
        shifts.learn(marks, self._experts_at, numbers, 0, room, said, outcome, crowd)

    @property
    def in_turn(self) -> bool:
        """Whether outcomes count as some of many, because others were missing."""
        words, row = self._seat.counts(), self._seat.row
        missing = words[row + ISSUED] - words[row + ROUNDS]
        return self._follows and bool(words[row + MOST_OUTSTANDING] or missing)

    def sound(self, words: Words, reals: Reals) -> Mask:
        """Say which tickets could have been issued; experts say numbers."""
        numbers = ~np.isnan(reals[:, -self.advice :]).any(axis=1)
        return super().sound(words, reals) & numbers

    # ------------------------------------------------------------------- batches

    def play(self, raw: Distributions, outcomes: Reals, ties: Ties) -> Played:
        """Play a batch: experts first, then the mixture level by level."""
        numbers, told = _numbers(raw), np.empty((len(outcomes), shifts.TOLD))
        rooms = np.empty(shifts.ROOM), np.empty(shifts.SAID)
        rooms[0][shifts.CAPPED] = float(self._capped)
        work = len(outcomes) * shifts.GRID * shifts.EXPERTS
        if (machine := machine_for(shifts.replay, "shifts", work)) is not None:
            given = self._seat.flat(), self._experts_at, numbers.ravel(), outcomes
            machine(*given, *rooms, told.ravel())
        else:
            asked, y, *lists = (array.ravel().tolist() for array in (numbers, outcomes, *rooms))
            marks = self._seat.reals()
            shifts.replay(marks, self._experts_at, asked, y, lists[0], lists[1], told.ravel())
        return super().play(shifted(raw, told), outcomes, ties)


def _numbers(raw: Distributions) -> Reals:
    """Return quantiles of raw forecasts, infinite where the forecast cannot be reckoned with."""
    numbers = ask(raw.values, raw.levels, MIDDLES)[0]
    numbers[~(np.abs(raw.values) <= shifts.LARGEST).all(axis=1)] = np.inf
    return numbers


def shifted(raw: Distributions, told: Reals) -> Distributions:
    """Return distributions moved from centre and spread to others, the four of a round a row.

    >>> two = Distributions.normal([0.0, 1.0], [1.0, 1.0])
    >>> shifted(two, np.array([[0.0, 0.5, 3.0, 1.0], [1.0, 0.5, 1.0, 0.5]])).values.tolist()
    [[3.0, 2.0], [1.0, 1.0]]
    """
    centre, spread, new, wide = told.T
    moved = (centre != new) | (spread != wide)
    values, (c, d, m, s) = raw.values.copy(), told[moved].T[:, :, None]
    ratio = np.where(d > 0.0, s / np.where(d > 0.0, d, 1.0), 1.0)
    rows = values[moved]
    made = m + ratio * (rows - c)
    if raw.is_normal:
        made[:, 1:] = np.maximum(ratio * rows[:, 1:], SMALLEST)
    values[moved] = made
    return knots(values, raw.levels)
