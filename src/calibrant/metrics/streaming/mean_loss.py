"""The average loss, followed exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.errors import CalibrantError, CorruptState, InvalidInput
from calibrant.losses import LossLike, get_loss
from calibrant.metrics.cells import checked_rounds
from calibrant.metrics.fixed import SCALE, fixed_sum
from calibrant.metrics.regret import loss_given
from calibrant.metrics.state import open_state, seal_state, whole_numbers


class MeanLoss:
    """Follow the average of any loss.

    Parameters
    ----------
    loss : str, Loss or callable
        A name, a loss, or a function ``loss(outcome, forecast)``.

    Notes
    -----
    Losses are added in units of ``2**-60``, so order does not matter and ``revert``
    leaves no trace.  Infinite losses (log loss of a sure mistake) are counted apart:
    the average is infinite as long as one of them is in.

    Examples
    --------
    >>> following = MeanLoss("squared")
    >>> following.update_many([0.5, 1.0], [0, 1])
    >>> following.result()
    0.125
    """

    def __init__(self, loss: LossLike = "squared") -> None:
        self._loss = get_loss(loss)
        self._rounds = self._infinite = self._sum = 0

    @property
    def rounds(self) -> int:
        """The number of rounds so far."""
        return self._rounds

    def update(self, forecast: float, outcome: int) -> None:
        """Add one round."""
        self._book(self._losses_of_one(forecast, outcome), 1)

    def revert(self, forecast: float, outcome: int) -> None:
        """Take back one earlier round, as if it had never been.

        Only a round that surely was not added is refused: one more than there were, or
        one with an infinite loss where there was none.
        """
        losses = self._losses_of_one(forecast, outcome)
        if self._rounds == 0 or (np.isinf(losses).any() and self._infinite == 0):
            told = f"forecast {forecast!r}, outcome {outcome!r}"
            raise InvalidInput(f"round must be one that was added before, got {told}")
        self._book(losses, -1)

    def update_many(self, forecasts: ArrayLike, outcomes: ArrayLike) -> None:
        """Add many rounds at once; exactly the same as one :meth:`update` for each."""
        values, binary = checked_rounds(forecasts, outcomes)
        parts = [loss_given(self._loss, y, values[binary == y]) for y in (0, 1)]
        for losses in parts:
            self._book(losses, 1)

    def merge(self, other: MeanLoss) -> None:
        """Add all rounds of ``other``, of the same loss; ``other`` stays as it is."""
        if not isinstance(other, MeanLoss) or other._loss != self._loss:
            raise InvalidInput(f"other must be like {self!r}, got {other!r}")
        self._rounds += other._rounds
        self._infinite += other._infinite
        self._sum += other._sum

    def result(self) -> float:
        """Return the average loss; nan without rounds."""
        if self._infinite:
            return math.inf
        return self._sum / (self._rounds * SCALE) if self._rounds else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON types; of the loss, its name."""
        counts = {"rounds": self._rounds, "infinite": self._infinite}
        return seal_state("MeanLoss", loss=self._loss.name, **counts, sum=str(self._sum))

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], loss: LossLike | None = None) -> MeanLoss:
        """Return an object that goes on exactly where :meth:`to_dict` was called.

        Parameters
        ----------
        state : dict
            What ``to_dict`` returned.
        loss : str, Loss or callable, optional
            The loss again, if the registry of losses does not know its name.
        """
        name, *counts, total = open_state(state, "MeanLoss", "loss", "rounds", "infinite", "sum")
        restored = cls._of_name(name, loss)
        restored._rounds, restored._infinite = whole_numbers(counts, "rounds", 2)
        [size] = whole_numbers([str(total).removeprefix("-")], "sum", 1)
        restored._sum = -size if str(total).startswith("-") else size
        return restored

    @classmethod
    def _of_name(cls, name: Any, loss: LossLike | None) -> MeanLoss:
        try:
            restored = cls(name if loss is None else loss)
        except CalibrantError as error:
            raise CorruptState(str(error)) from None
        if restored._loss.name != name:
            raise CorruptState(f"loss must be {name!r}, got {restored._loss.name!r}")
        return restored

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeanLoss) and self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        return f"MeanLoss({self._loss.name!r})"

    def _losses_of_one(self, forecast: float, outcome: int) -> Reals:
        value = check.probability(forecast, "forecast")
        return loss_given(self._loss, check.outcome(outcome), np.array([value]))

    def _book(self, losses: Reals, sign: int) -> None:
        finite = np.isfinite(losses)
        self._rounds += sign * len(losses)
        self._infinite += sign * int(len(losses) - finite.sum())
        self._sum += sign * fixed_sum(losses[finite])
