"""What the last outcomes tell of the next one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from calibrant.core import check
from calibrant.kernels.portable import logit
from calibrant.kernels.transforms import history
from calibrant.registry import transforms
from calibrant.transforms.base import State, Transform, rules
from calibrant.transforms.online_platt import clipping, positive


@transforms.add("history")
@dataclass(frozen=True)
class History(Transform):
    """Learn how far the next outcome follows the last ones, beside slope and intercept.

    The forecast is sigmoid(a logit(raw) + b + d c + e l), from a = 1 and b = d = e = 0 on: at first
    the raw forecast itself.  Here l is 1 or -1 with the last outcome, and c the running mean of
    2 or -2 with each of the recent ones.  Right where outcomes come in runs, where labels repeat,
    and where the base rate jumps faster than any other correction can learn.

    Parameters
    ----------
    gamma, rho
        As in :class:`~calibrant.transforms.OnlinePlatt`.
    memory
        Over how many outcomes the running mean goes.
    clip
        Raw forecasts are moved into [clip, 1 - clip] first.

    Notes
    -----
    Pseudo-code of a round, with A = rho at first::

        x = (logit(raw), 1, c, l);  p = sigmoid(theta . x)
        g = (p - y) x;  A += g g';  theta -= A^-1 g / gamma
        c += (2 (2 y - 1) - c) / memory;  l = 2 y - 1

    No promise of its own: the steps are online Newton steps without a ball.  As an expert of a
    mixture whose outcomes come late, c and l are 0: a ticket does not keep what had come by then.

    References
    ----------
    Hazan, Agarwal and Kale (2007), "Logarithmic regret algorithms for online convex optimization";
    Kaufmann (1987), "Regression models for nonstationary categorical time series", has the
    logistic autoregression.

    Examples
    --------
    >>> online = History().online()
    >>> _ = online.replay([0.5] * 400, ([1] * 10 + [0] * 10) * 20)
    >>> online.learn_one(0.5, 1)
    >>> 0.8 < online.predict_one(0.5) < 1.0
    True
    """

    kernel = history.KERNEL
    checks = rules(
        gamma=positive,
        rho=positive,
        memory=partial(check.real, low=1.0, rule="a finite number of at least 1"),
        clip=clipping,
    )
    fixed = history.STEP, history.REACH, history.FORGOTTEN
    reference = "Hazan, Agarwal and Kale 2007; Kaufmann 1987"

    gamma: float = 0.5
    rho: float = 3.0
    memory: float = 10.0
    clip: float = 1e-3

    def note_positions(self) -> list[int]:
        """Return where the log-odds of the last prediction are noted."""
        return [history.FEATURE]

    def limits(self) -> dict[int, tuple[float, float]]:
        """Return the limits of what is remembered of outcomes."""
        return {history.RECENT: (-2.0, 2.0), history.LAST: (-1.0, 1.0)}

    def fresh(self) -> State:
        """Return the parameters of the raw forecast, and no history."""
        start, none = 1.0 / self.rho, 0.0
        head = [1.0 / self.gamma, -logit(self.clip), 1.0 / self.memory, none, none, none]
        inverse = [start, none, none, none, start, none, none, start, none, start]
        return [*head, *history.PARAMETERS, *inverse]
