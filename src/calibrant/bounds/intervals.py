"""Coverage for any sequence: the quantile tracker and conformal intervals.

A level p is a forecast of its own: that the outcome will be covered with probability p.  C1 of
that one forecast is the distance of coverage from p, which all but the last of these bound.
"""

from __future__ import annotations

import math
from typing import Any, Final

from calibrant.bounds.game import Bound
from calibrant.core import check

ALWAYS: Final = "for any sequence, every time"
STRONG: Final = 15.0
"""The constant of Bhatnagar et al. (2023), Proposition 4.1."""


def quantile_tracker(rounds: int, step: float, *, delay: int = 0) -> Bound:
    """Bound the distance of a tracked level's coverage from the level.

    Parameters
    ----------
    rounds
        Outcomes learned, T.
    step
        How far a position moves, eta.
    delay
        How many outcomes may be outstanding when a forecast is made, d.

    Notes
    -----
    ``|coverage - p| <= (1 + (1 + d) eta)/(eta T)``.  Proof.  A position changes by
    ``eta (p - covered)`` a round, so that it moves by ``eta T (p - coverage)`` in all.  It rises
    only if an outcome was not covered, which cannot happen above 1, and falls only if one was,
    which cannot happen below 0; the outcomes that were outstanding when it left [0, 1] may move
    it further, d at most.  So it stays in ``[-(1 + d) eta, 1 + (1 + d) eta]``, and starts in
    [0, 1].

    References
    ----------
    Deshpande, Marx and Kuleshov (2024), Online calibrated and conformal prediction improves
    Bayesian optimization; the delay is ours.

    Examples
    --------
    >>> round(quantile_tracker(10_000, 0.02).value, 6)
    0.0051
    """
    eta, late = check.above(step, "step"), 1 + check.whole(delay, "delay")
    value = (1.0 + late * eta) / (eta * _rounds(rounds))
    return Bound(value, "C1", ALWAYS, "quantile tracker", "sharper" if delay else "cited")


def aci(rounds: int, span: float, step: float, *, delay: int = 0) -> Bound:
    """Bound the distance of coverage from its target for a radius that moves by a fixed step.

    Parameters
    ----------
    rounds, delay
        As in ``quantile_tracker``.
    span
        The largest score less the smallest, 0 included, D.
    step
        How far the radius moves, in units of the score, eta.

    Notes
    -----
    ``(D + (1 + d) eta)/(eta T)``, by the proof of ``quantile_tracker`` with [0, D] for [0, 1].

    References
    ----------
    Gibbs and Candes (2021), Adaptive conformal inference under distribution shift.

    Examples
    --------
    >>> round(aci(10_000, span=4.0, step=0.05).value, 6)
    0.0081
    """
    eta = check.above(step, "step")
    found = step_sizes(rounds, span, eta, 1.0 / eta, delay=delay)
    return Bound(found.value, "C1", ALWAYS, "adaptive conformal inference", found.source)


def step_sizes(
    rounds: int, span: float, moves: float, variation: float, *, idle: int = 0, delay: int = 0
) -> Bound:
    """Bound the distance of coverage from its target for a radius that moves by any steps.

    Parameters
    ----------
    rounds, span, delay
        As in ``aci``.
    moves
        The largest rise of the radius and the largest fall, added up.
    variation
        Half of what one over the step was at first, is at last, and changed in between.
    idle
        Rounds without a step.

    Notes
    -----
    With steps ``w_t`` and ``V = (1/w_1 + sum |1/w_t - 1/w_{t-1}| + 1/w_T)/2`` it is
    ``((D + (1 + d) moves) V + idle)/T``.  Proof.  The error of a round less its target is the
    move of the radius over ``w_t``.  Summed by parts, this is the radius at the end over ``w_T``,
    less that at the start over ``w_1``, and radii times the changes of ``1/w``, all measured from
    the middle of the range where the radius can be, half of ``D + (1 + d) moves`` away.

    References
    ----------
    Angelopoulos, Barber and Bates (2024), Online conformal prediction with decaying step sizes.

    Examples
    --------
    >>> round(step_sizes(10_000, 4.0, 0.05, 1 / 0.05).value, 6)
    0.0081
    """
    room = check.real(span, "span", low=0.0, rule="a finite number of at least 0")
    wide = room + (1 + check.whole(delay, "delay")) * check.above(moves, "moves")
    total = wide * check.above(variation, "variation") + check.whole(idle, "idle")
    source: Any = "sharper" if delay else "cited"
    return Bound(total / _rounds(rounds), "C1", ALWAYS, "varying steps", source)


def sf_ogd(rounds: int, span: float, scale: float, coverage: float, *, delay: int = 0) -> Bound:
    """Bound the distance of coverage from its target under scale-free gradient descent.

    Parameters
    ----------
    rounds, span, delay
        As in ``aci``.
    scale
        What the largest score was taken to be; the steps are ``scale/sqrt(3 G)``.
    coverage
        The target, 1 - alpha.

    Notes
    -----
    Steps never grow, so that ``step_sizes`` has the last one alone.  G adds up the squares of
    error less alpha, at most ``T max(alpha, 1 - alpha)**2``, and no move is larger than
    ``scale/sqrt(3)``.  This falls as ``1/sqrt(T)``; the original analysis has ``T**(-1/4)``.

    References
    ----------
    Bhatnagar, Wang, Xiong and Bai (2023), Improved online conformal prediction via strongly
    adaptive online learning, for the algorithm.

    Examples
    --------
    >>> round(sf_ogd(10_000, span=1.0, scale=1.0, coverage=0.9).value, 4)
    0.0336
    """
    width = check.above(scale, "scale") / math.sqrt(3.0)
    target = check.inside(coverage, "coverage")
    last = width / (max(target, 1.0 - target) * math.sqrt(_rounds(rounds)))
    found = step_sizes(rounds, span, 2.0 * width, 1.0 / last, delay=delay)
    return Bound(found.value, "C1", ALWAYS, "scale-free gradient descent", "sharper")


def conformal_pid(rounds: int, saturation: float, *, delay: int = 0) -> Bound:
    """Bound the distance of coverage from its target under an integrator that saturates.

    Parameters
    ----------
    rounds, delay
        As in ``quantile_tracker``.
    saturation
        The constant C in ``tan(x ln(t + 1)/(C (t + 1)))``, x being errors less their target.

    Notes
    -----
    ``(C (pi/2) h + 1 + d)/T`` with h the larger of ``(T + 1)/ln(T + 1)`` and its value at 1.
    Proof.  Once x reaches ``C (pi/2) (t + 1)/ln(t + 1)`` the tangent is infinite, everything is
    covered, and x falls; d outstanding outcomes may raise it before, and one error takes it
    there.  Likewise below.  Nothing is asked of scores, gains or the other parts.

    References
    ----------
    Angelopoulos, Candes and Tibshirani (2023), Conformal PID control for time series prediction.

    Examples
    --------
    >>> round(conformal_pid(10_000, 0.1).value, 4)
    0.0172
    """
    T, C = _rounds(rounds), check.above(saturation, "saturation")
    reach = max((T + 1) / math.log(T + 1), 2.0 / math.log(2.0))
    total = C * math.pi / 2.0 * reach + 1 + check.whole(delay, "delay")
    return Bound(total / T, "C1", ALWAYS, "conformal PID", "sharper" if delay else "cited")


def saocp(rounds: int, scale: float, *, length: int | None = None) -> Bound:
    """Bound the regret in pinball loss to the best fixed radius on every interval of time.

    Parameters
    ----------
    rounds
        Outcomes learned, T.
    scale
        The largest score, D; scores lie in [0, D].
    length
        Rounds of the interval, k; by default all of them.

    Notes
    -----
    ``15 D sqrt(k (ln T + 1))``, here per round of the interval.  It says how close the radius is
    to the best one at all times; coverage itself has no bound with known constants.

    References
    ----------
    Bhatnagar, Wang, Xiong and Bai (2023), Proposition 4.1.

    Examples
    --------
    >>> round(saocp(10_000, 1.0).value, 4), round(saocp(10_000, 1.0, length=1_000).value, 4)
    (0.4793, 1.5157)
    """
    T = _rounds(rounds)
    k = T if length is None else check.whole(length, "length", low=1, high=T)
    value = STRONG * check.above(scale, "scale") * math.sqrt((math.log(T) + 1.0) / k)
    return Bound(value, "regret", ALWAYS, "strongly adaptive conformal prediction", "cited")


def _rounds(rounds: Any) -> int:
    return check.whole(rounds, "rounds", low=1)
