"""Adversaries that decide without looking at the forecasts.

Their outcomes are fixed before the round begins, so they may tell them beforehand: the
round's feature *is* the outcome to come (blurred, for ``noisy``), and how much of it
reaches the raw forecast is up to the forecaster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrant.core import check
from calibrant.errors import InvalidInput
from calibrant.kernels import games
from calibrant.kernels.games import COINS
from calibrant.kernels.portable import sigmoid
from calibrant.simulate.adversary import Adversary, BuiltInAdversary, adversaries
from calibrant.simulate.announcement import Announcement
from calibrant.simulate.board import Setting
from calibrant.simulate.coins import Coins

MAX_PATTERN = 62
MAX_LENGTH = 1 << 62


class _Checked:
    """Dataclasses that check their fields and keep what the check returns."""

    def _keep(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)


@adversaries.add("bernoulli")
@dataclass(frozen=True)
class Bernoulli(_Checked, BuiltInAdversary):
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

    def __post_init__(self) -> None:
        self._keep(probability=check.probability(self.probability, "probability"))

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The probability."""
        return (self.probability,)


@adversaries.add("periodic")
@dataclass(frozen=True)
class Periodic(_Checked, BuiltInAdversary):
    """The same few outcomes over and over, 001001... unless told otherwise.

    The paper's example of a stream on which no calibrated forecaster matches a constant
    one under the absolute loss.
    """

    pattern: tuple[int, ...] = (0, 0, 1)

    name = "periodic"
    sees = "nothing"
    code = games.PERIODIC

    def __post_init__(self) -> None:
        outcomes = tuple(check.outcome(y, "pattern") for y in self.pattern)
        if not 1 <= len(outcomes) <= MAX_PATTERN:
            raise InvalidInput(
                f"pattern must be from 1 to {MAX_PATTERN} outcomes, got {self.pattern!r}"
            )
        self._keep(pattern=outcomes)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The length of the pattern, and its outcomes as bits."""
        return len(self.pattern), sum(y << k for k, y in enumerate(self.pattern))


@dataclass(frozen=True)
class _Moving(_Checked, BuiltInAdversary):
    low: float = 0.2
    high: float = 0.8
    length: int = 1000

    def __post_init__(self) -> None:
        self._keep(
            low=check.probability(self.low, "low"),
            high=check.probability(self.high, "high"),
            length=check.whole(self.length, "length", low=1, high=MAX_LENGTH),
        )

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The two probabilities, and the length."""
        return self.low, self.high, self.length


@adversaries.add("drifting")
@dataclass(frozen=True)
class Drifting(_Moving):
    """A probability that rises from ``low`` to ``high`` and falls back in ``length`` rounds."""

    name = "drifting"
    sees = "nothing"
    code = games.DRIFTING


@adversaries.add("switching")
@dataclass(frozen=True)
class Switching(_Moving):
    """A probability that jumps between ``low`` and ``high`` every ``length`` rounds."""

    name = "switching"
    sees = "nothing"
    code = games.SWITCHING


@adversaries.add("noisy")
@dataclass(frozen=True)
class Noisy(_Checked, BuiltInAdversary):
    """A new probability each round, revealed with uniform noise: noisy raw forecasts.

    The probability is uniform on [0, 1]; the feature is the probability plus or minus
    up to ``noise``, cut off at 0 and 1.  A forecaster that passes the feature on
    (``Informed(0, 1)``) is over-confident near the ends.
    """

    noise: float = 0.3

    name = "noisy"
    sees = "nothing"
    code = games.NOISY

    def __post_init__(self) -> None:
        self._keep(noise=check.probability(self.noise, "noise"))

    @property
    def settings(self) -> tuple[Setting, ...]:
        """How far the feature may be off."""
        return (self.noise,)


@adversaries.add("linear")
@dataclass(frozen=True)
class Linear(_Checked, Adversary):
    """Features uniform on [-1, 1], outcomes by a logistic model of them: a stream to learn."""

    weights: tuple[float, ...] = (3.0, -2.0)
    bias: float = 0.0

    name = "linear"
    sees = "its own features"

    def __post_init__(self) -> None:
        weights = tuple(check.real(w, "weights") for w in self.weights)
        if len(weights) >= COINS:
            raise InvalidInput(f"weights must be fewer than {COINS}, got {len(weights)}")
        self._keep(weights=weights, bias=check.real(self.bias, "bias"))

    def reveal(self, coins: Coins) -> tuple[float, ...]:
        """Return one number for each weight."""
        return tuple(2.0 * coins[k + 1] - 1.0 for k in range(len(self.weights)))

    def choose(self, announcement: Announcement, coins: Coins) -> int:
        """Return 1 with the logistic model's probability."""
        parts = zip(self.weights, announcement.features, strict=True)
        score = self.bias
        for weight, feature in parts:
            score += weight * feature
        return int(coins[0] < sigmoid(score))
