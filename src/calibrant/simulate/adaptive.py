"""Adversaries that look at the announced mixture and the past before they choose."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.core import check
from calibrant.kernels import games
from calibrant.simulate.adversary import BuiltInAdversary, adversaries
from calibrant.simulate.board import Setting


@adversaries.add("threshold")
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", check.probability(self.level, "level"))

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The level."""
        return (self.level,)


@adversaries.add("greedy_accuracy")
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

    def __post_init__(self) -> None:
        check.choice(self.aim, "aim", ("regret", "loss"))

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Whether the raw forecast counts."""
        return (int(self.aim == "regret"),)


@adversaries.add("greedy_calibration")
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", check.whole(self.power, "power", low=1, high=2))

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The power."""
        return (self.power,)


@adversaries.add("sign_preserving")
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

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Nothing to set."""
        return ()
