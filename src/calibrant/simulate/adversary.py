"""Adversaries: who chooses outcomes, looking at the announcement or not.

Those that see nothing fix their outcomes before the round begins, so they may tell them
beforehand: the round's feature *is* the outcome to come (blurred, for ``noisy``), and how
much of it reaches the raw forecast is up to the forecaster.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.core import check
from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels import games
from calibrant.kernels.layout import Words
from calibrant.kernels.portable import sigmoid
from calibrant.registry import Registry
from calibrant.simulate.board import (
    Announcement,
    Coins,
    Player,
    Setting,
    announce,
    new_board,
    put,
    tables,
    views,
)


class Adversary(ABC):
    """Nature in the paper's protocol: it reveals features and chooses outcomes.

    A subclass is a frozen dataclass of parameters.  Its methods are pure: whatever
    they remember of earlier rounds is in the announcement's history, and their
    randomness is the round's coins.

    Notes
    -----
    The guarantees allow an adversary to see everything but the draw of the present
    round.  An :class:`~calibrant.simulate.Announcement` holds exactly that.

    Examples
    --------
    >>> class Stubborn(Adversary):
    ...     def choose(self, announcement, coins):
    ...         return 1
    >>> from calibrant import Recalibrator
    >>> from calibrant.simulate import play
    >>> recalibrator = Recalibrator(resolution=10, buckets=1, prior=0, seed=1)
    >>> float(play(recalibrator, "constant", Stubborn(), 50).forecast[-1])
    1.0
    """

    name: ClassVar[str] = "custom"
    sees: ClassVar[str] = "the announcement"

    def reveal(self, coins: Coins) -> tuple[float, ...]:
        """Return the round's features (step 1); none by default."""
        return ()

    @abstractmethod
    def choose(self, announcement: Announcement, coins: Coins) -> int:
        """Return the outcome, 0 or 1 (step 4)."""


class BuiltInAdversary(Player, Adversary):
    """An adversary that is a kernel: the same function decides alone and in batches."""

    def reveal(self, coins: Coins) -> tuple[float, ...]:
        """Return what the kernel reveals: one number or none."""
        board = new_board()
        self.sit_down(board, coins)
        feature = games.reveal(*views(board))
        return () if math.isnan(feature) else (feature,)

    def choose(self, announcement: Announcement, coins: Coins) -> int:
        """Return the outcome on which the kernel decides."""
        history = announcement.history
        board = new_board(history.grid)
        tables(board, games.COUNT)[:] = history.counts
        tables(board, games.ONES)[:] = history.ones
        announce(board, announcement.mixture)
        board.view(np.float64)[games.RAW] = announcement.raw
        self.sit_down(board, coins)
        return games.choose(*views(board))

    def sit_down(self, board: Words, coins: Coins) -> None:
        """Write the adversary, its settings and its coins on the board."""
        board[games.ADVERSARY] = self.code
        board[games.NATURE_KEY], board[games.ROUND] = coins.key, coins.round
        put(board, games.RULES, self.settings)


adversaries: Registry[type[BuiltInAdversary] | type[Adversary]] = Registry("adversary")
"""Every ready-made adversary by name."""


def get_adversary(adversary: Adversary | str) -> Adversary:
    """Return an adversary, given itself or the name of one with its default parameters."""
    if isinstance(adversary, Adversary):
        return adversary
    if isinstance(adversary, str):
        return adversaries.get(adversary)()
    raise InvalidType(f"adversary must be an Adversary or the name of one, got {adversary!r}")


@dataclass(frozen=True)
class Threshold(BuiltInAdversary):
    """Outcome 0 if the announced mean is above ``level``, else 1: the paper's adversary.

    The paper writes the rule with the forecast itself.  Against an adversary that sees
    the draw no forecaster has C1 below 1/2, so it has to be the mean.

    References
    ----------
    Kuleshov and Ermon (2017), "Prediction against an adversary"; Oakes (1985) and
    Dawid (1985) for the form that sees the forecast.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> from calibrant.simulate import play
    >>> record = play(Recalibrator(resolution=10, buckets=10, seed=1), "noise", Threshold(), 1000)
    >>> record.c1 < 0.03, 0.4 < record.raw_loss < 0.6
    (True, True)
    """

    level: float = 0.5

    name = "threshold"
    sees = "the announced mean"
    code = games.THRESHOLD


@dataclass(frozen=True)
class GreedyAccuracy(BuiltInAdversary):
    """The outcome that costs the draw most compared with the raw forecast.

    Parameters
    ----------
    aim
        ``"regret"``: the expected squared loss of the draw less that of the raw forecast,
        the second half of the paper's definition of recalibration.  ``"loss"``: the
        former alone.

    Notes
    -----
    Outcome 1 rather than 0 adds ``1 - 2 mean`` to the loss of the draw and ``1 - 2 raw``
    to that of the raw forecast.  So the regret is largest for the outcome on the raw
    forecast's side of the mean, and the loss for the one far from the mean, which is
    ``Threshold(0.5)``.
    """

    aim: str = "regret"

    name = "greedy_accuracy"
    sees = "the announced mean and the raw forecast"
    code = games.ACCURACY

    def _checked(self, name: str, value: Any) -> Any:
        return check.choice(value, name, ("regret", "loss"))

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Whether the raw forecast counts."""
        return (int(self.aim == "regret"),)


@dataclass(frozen=True)
class GreedyCalibration(BuiltInAdversary):
    """The outcome under which the calibration error is expected to grow most.

    Parameters
    ----------
    power
        1: the sum of ``|S_i|`` over grid values; 2: the sum of ``S_i**2 / n_i``.  The
        expectation is over the announced mixture; a tie goes to outcome 1.
    """

    power: int = 1

    name = "greedy_calibration"
    sees = "the mixture and all gaps"
    code = games.CALIBRATION

    def _checked(self, name: str, value: Any) -> Any:
        return check.whole(value, name, low=1, high=2)


@dataclass(frozen=True)
class SignPreserving(BuiltInAdversary):
    """A probability between the values that were too low and those that were too high.

    A value that was too low is repaired only by announcing it when outcome 1 is less
    likely than it says, one that was too high only when it is more likely.  This
    adversary keeps its probability where neither happens, so that every gap grows on
    average whatever is announced.  Where the signs are mixed it gives up the smaller
    total.

    Notes
    -----
    The idea behind the sign-preservation game, from which the best lower bounds for
    calibration were derived; here without the epochs of those proofs, which need
    horizons out of reach of a simulation.

    References
    ----------
    Qiao and Valiant (2021), "Stronger calibration lower bounds via sidestepping"; Dagan and
    others (2024), "Breaking the T^(2/3) barrier for sequential calibration".
    """

    name = "sign_preserving"
    sees = "all gaps"
    code = games.SIGNS


MAX_PATTERN = 62
MAX_LENGTH = 1 << 62


@dataclass(frozen=True)
class Bernoulli(BuiltInAdversary):
    """Independent outcomes with one probability: the paper's first experiment.

    Examples
    --------
    >>> from calibrant import Recalibrator
    >>> from calibrant.simulate import Informed, play
    >>> alone = Recalibrator(resolution=10, buckets=10, seed=1)
    >>> record = play(alone, Informed(low=0.3, high=0.7), Bernoulli(0.5), 300)
    >>> round(record.raw_loss, 3), record.loss < 0.005
    (0.09, True)
    """

    probability: float = 0.5

    name = "bernoulli"
    sees = "nothing"
    code = games.BERNOULLI


@dataclass(frozen=True)
class Periodic(BuiltInAdversary):
    """The same few outcomes over and over, 001001... unless told otherwise.

    The paper's example of a stream on which no calibrated forecaster matches a constant
    one under the absolute loss.
    """

    pattern: tuple[int, ...] = (0, 0, 1)

    name = "periodic"
    sees = "nothing"
    code = games.PERIODIC

    def _checked(self, name: str, value: Any) -> Any:
        outcomes = tuple(check.outcome(y, name) for y in value)
        if not 1 <= len(outcomes) <= MAX_PATTERN:
            raise InvalidInput(f"{name} must be from 1 to {MAX_PATTERN} outcomes, got {value!r}")
        return outcomes

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The length of the pattern, and its outcomes as bits."""
        return len(self.pattern), sum(y << k for k, y in enumerate(self.pattern))


@dataclass(frozen=True)
class _Moving(BuiltInAdversary):
    low: float = 0.2
    high: float = 0.8
    length: int = 1000

    def _checked(self, name: str, value: Any) -> Any:
        if name == "length":
            return check.whole(value, name, low=1, high=MAX_LENGTH)
        return super()._checked(name, value)


@dataclass(frozen=True)
class Drifting(_Moving):
    """A probability that rises from ``low`` to ``high`` and falls back in ``length`` rounds."""

    name = "drifting"
    sees = "nothing"
    code = games.DRIFTING


@dataclass(frozen=True)
class Switching(_Moving):
    """A probability that jumps between ``low`` and ``high`` every ``length`` rounds."""

    name = "switching"
    sees = "nothing"
    code = games.SWITCHING


@dataclass(frozen=True)
class Noisy(BuiltInAdversary):
    """A new probability each round, revealed with uniform noise: noisy raw forecasts.

    The probability is uniform on [0, 1]; the feature is the probability plus or minus
    up to ``noise``, cut off at 0 and 1.  A forecaster that passes the feature on
    (``Informed(0, 1)``) is over-confident near the ends.
    """

    noise: float = 0.3

    name = "noisy"
    sees = "nothing"
    code = games.NOISY


@dataclass(frozen=True)
class Linear(Player, Adversary):
    """Features uniform on [-1, 1], outcomes by a logistic model of them: a stream to learn."""

    weights: tuple[float, ...] = (3.0, -2.0)
    bias: float = 0.0

    name = "linear"
    sees = "its own features"

    def _checked(self, name: str, value: Any) -> Any:
        if name == "bias":
            return check.real(value, name)
        weights = tuple(check.real(w, name) for w in value)
        if len(weights) >= games.COINS:
            raise InvalidInput(f"weights must be fewer than {games.COINS}, got {len(weights)}")
        return weights

    def reveal(self, coins: Coins) -> tuple[float, ...]:
        """Return one number for each weight."""
        return tuple(2.0 * coins[k + 1] - 1.0 for k in range(len(self.weights)))

    def choose(self, announcement: Announcement, coins: Coins) -> int:
        """Return 1 with the logistic model's probability."""
        score = self.bias
        for weight, feature in zip(self.weights, announcement.features, strict=True):
            score += weight * feature
        return int(coins[0] < sigmoid(score))


for _kind in (
    *(Threshold, GreedyAccuracy, GreedyCalibration, SignPreserving),
    *(Bernoulli, Periodic, Drifting, Switching, Noisy, Linear),
):
    adversaries.add(_kind.name)(_kind)
