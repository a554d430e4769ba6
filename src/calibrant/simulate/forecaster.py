"""Where raw forecasts come from, and the ready-made forecasters by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels import games
from calibrant.kernels.layout import Words
from calibrant.kernels.portable import sigmoid
from calibrant.registry import Registry
from calibrant.simulate.board import Coins, Player, new_board, put, views


class Forecaster(ABC):
    """The forecaster F of the paper's protocol: features in, a raw forecast out.

    A subclass is a frozen dataclass of parameters with pure methods; what it learns is
    the state that they pass on.
    """

    name: ClassVar[str] = "custom"

    def start(self) -> Any:
        """Return the state before the first round; None for one that does not learn."""
        return None

    @abstractmethod
    def forecast(self, state: Any, features: tuple[float, ...], coins: Coins) -> float:
        """Return the raw forecast, in [0, 1] (step 2)."""

    def learn(self, state: Any, features: tuple[float, ...], outcome: int) -> Any:
        """Return the state after the outcome (step 5)."""
        return state


forecasters: Registry[type[Forecaster]] = Registry("forecaster")
"""Every ready-made forecaster by name."""


class BuiltInForecaster(Player, Forecaster):
    """A forecaster that is a kernel: the same function answers alone and in batches."""

    def forecast(self, state: Any, features: tuple[float, ...], coins: Coins) -> float:
        """Return the kernel's answer to the first feature."""
        board = new_board()
        board[games.ROUND] = coins.round
        board.view(np.float64)[games.FEATURE] = features[0] if features else np.nan
        self.sit_down(board, coins)
        return games.answer(*views(board))

    def sit_down(self, board: Words, coins: Coins) -> None:
        """Write the forecaster, its settings and its coins on the board."""
        board[games.FORECASTER] = self.code
        board[games.FORECASTER_KEY] = coins.key
        put(board, games.HABITS, self.settings)


@dataclass(frozen=True)
class Constant(BuiltInForecaster):
    """The same raw forecast in every round."""

    value: float = 0.5

    name = "constant"
    code = games.CONSTANT


@dataclass(frozen=True)
class Uniform(BuiltInForecaster):
    """Uniform on [0, 1], whatever happens: every bucket gets its share of noise."""

    name = "uniform"
    code = games.UNIFORM


@dataclass(frozen=True)
class Noise(BuiltInForecaster):
    """0 or 1 by the toss of a coin: the raw forecasts of the paper's second experiment."""

    probability: float = 0.5

    name = "noise"
    code = games.NOISE


@dataclass(frozen=True)
class Informed(BuiltInForecaster):
    """Pass the feature on, shrunk to [``low``, ``high``]: the paper's first experiment.

    Where the feature is the outcome to come, this is a perfect forecaster that is not
    calibrated: 0.3 before each 0 and 0.7 before each 1.
    """

    low: float = 0.3
    high: float = 0.7

    name = "informed"
    code = games.INFORMED

    def forecast(self, state: Any, features: tuple[float, ...], coins: Coins) -> float:
        """Return the first feature, shrunk."""
        if not features:
            told = "features must hold what the informed forecaster passes on"
            raise InvalidInput(f"{told}, got (): this adversary reveals nothing")
        return super().forecast(state, features, coins)


@dataclass(frozen=True)
class Logistic(Player, Forecaster):
    """Logistic regression on the features, learned by online gradient descent.

    Parameters
    ----------
    step
        The learning rate; the state is the vector of weights, the bias first.

    Examples
    --------
    >>> rule = Logistic(step=0.5)
    >>> state = rule.learn(rule.start(), (1.0, -1.0), 1)
    >>> state
    array([ 0.25,  0.25, -0.25])
    """

    step: float = 0.1

    name = "logistic"

    def _checked(self, name: str, value: Any) -> Any:
        return check.real(value, name, low=1e-12, rule="a finite number above 0")

    def start(self) -> Reals:
        """Return no weights; the first features say how many there are."""
        return np.zeros(0)

    def forecast(self, state: Reals, features: tuple[float, ...], coins: Coins) -> float:
        """Return the probability under the present weights."""
        return self._probability(*self._aligned(state, features))

    def learn(self, state: Reals, features: tuple[float, ...], outcome: int) -> Reals:
        """Take one gradient step on the log loss."""
        weights, inputs = self._aligned(state, features)
        return weights + self.step * (outcome - self._probability(weights, inputs)) * inputs

    def _probability(self, weights: Reals, inputs: Reals) -> float:
        return sigmoid(float(weights @ inputs))

    def _aligned(self, state: Reals, features: tuple[float, ...]) -> tuple[Reals, Reals]:
        inputs = np.array((1.0, *features))
        weights = state if len(state) else np.zeros(len(inputs))
        if len(weights) != len(inputs):
            raise InvalidInput(f"features must be {len(weights) - 1} numbers, got {features!r}")
        return weights, inputs


def get_forecaster(forecaster: Forecaster | str) -> Forecaster:
    """Return a forecaster, given itself or the name of one with its default parameters."""
    if isinstance(forecaster, Forecaster):
        return forecaster
    if isinstance(forecaster, str):
        return forecasters.get(forecaster)()
    raise InvalidType(f"forecaster must be a Forecaster or the name of one, got {forecaster!r}")


for _kind in (Constant, Uniform, Noise, Informed, Logistic):
    forecasters.add(_kind.name)(_kind)
