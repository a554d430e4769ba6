"""The paper's adversary, against anything that announces a mean."""

from __future__ import annotations

import numpy as np

from calibrant.compare.player import Player
from calibrant.core.arrays import Bits, Reals
from calibrant.simulate import Coins, Noise, Threshold
from calibrant.simulate.coins import key_for


def duel(player: Player, rounds: int, seed: int) -> tuple[Reals, Bits]:
    """Return the forecasts and outcomes of a game against the threshold adversary.

    The raw forecasts are 0 or 1 by a coin.  The adversary sees the mean that is announced
    and makes the event happen exactly when it is at most one half.  Against a method without
    a coin the mean is the forecast, so nothing is hidden from it.

    Notes
    -----
    For a recalibrator this is, forecast by forecast, the game that
    ``play(recalibrator, "noise", "threshold", rounds, seed=seed)`` plays.

    References
    ----------
    Kuleshov and Ermon (2017), "Prediction against an adversary".

    Examples
    --------
    >>> from calibrant.compare.own import Passing
    >>> forecasts, outcomes = duel(Passing(), 100, seed=0)
    >>> bool((forecasts + outcomes == 1.0).all())
    True
    """
    forecasts, outcomes = np.empty(rounds), np.empty(rounds, np.uint8)
    noise, level, key = Noise(), Threshold().level, key_for(seed, "forecaster")
    for t in range(rounds):
        raw = noise.forecast(None, (), Coins(key, t))
        announced = player.announce(raw)
        outcome = int(announced.mean <= level)
        player.learn(raw, outcome)
        forecasts[t], outcomes[t] = announced.forecast, outcome
    return forecasts, outcomes
