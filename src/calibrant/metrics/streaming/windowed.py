"""Running means of losses, and the worst block of a stream."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import check
from calibrant.core.arrays import Reals
from calibrant.core.place import bucket, buckets_of
from calibrant.errors import CorruptState, InvalidInput
from calibrant.losses import LossLike, get_loss
from calibrant.metrics import tally
from calibrant.metrics.buckets import tally_cells
from calibrant.metrics.calibration import calibration_error, checked_power
from calibrant.metrics.cells import checked_rounds
from calibrant.metrics.regret import loss_given
from calibrant.metrics.tally import Kept, Tally, open_state, restored, seal_state, whole_numbers


class MeanLoss(Kept):
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
        return self._sum / (self._rounds * tally.SCALE) if self._rounds else math.nan

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
        made = cls._of_name(name, loss)
        made._rounds, made._infinite = whole_numbers(counts, "rounds", 2)
        [size] = whole_numbers([str(total).removeprefix("-")], "sum", 1)
        made._sum = -size if str(total).startswith("-") else size
        return made

    @classmethod
    def _of_name(cls, name: Any, loss: LossLike | None) -> MeanLoss:
        made = restored(cls, name if loss is None else loss)
        if made._loss.name != name:
            raise CorruptState(f"loss must be {name!r}, got {made._loss.name!r}")
        return made

    def __repr__(self) -> str:
        return f"MeanLoss({self._loss.name!r})"

    def _losses_of_one(self, forecast: float, outcome: int) -> Reals:
        value = check.probability(forecast, "forecast")
        return loss_given(self._loss, check.outcome(outcome), np.array([value]))

    def _book(self, losses: Reals, sign: int) -> None:
        finite = np.isfinite(losses)
        self._rounds += sign * len(losses)
        self._infinite += sign * int(len(losses) - finite.sum())
        self._sum += sign * tally.fixed_sum(losses[finite])


@dataclass(frozen=True)
class WorstBlock:
    """What a windowed metric has seen.

    Parameters
    ----------
    blocks : int
        Complete blocks.
    worst : float
        The largest error of a complete block; nan if there is none.
    worst_block : int or None
        The first block with that error, counted from 0.
    partial : float
        The error of the block under way; nan if it is empty or complete.
    """

    blocks: int
    worst: float
    worst_block: int | None
    partial: float


class Windowed(Kept):
    """Follow the binned calibration error of each block of ``window`` rounds.

    Remembers the block under way and the worst one before it.

    Parameters
    ----------
    window : int
        Rounds per block.
    buckets : int
        How many buckets of equal width.
    power : float
        As in :func:`~calibrant.metrics.windowed_calibration_error`.

    Notes
    -----
    A block closes when the first round after it arrives, and stays closed if that round
    is taken back.  Only rounds of the block under way can be taken back.  ``merge``
    appends a later part of the same stream, so this object must be at a border between
    blocks.

    Examples
    --------
    >>> following = Windowed(window=4)
    >>> following.update_many([0.5] * 8, [0, 1, 0, 1, 1, 1, 1, 1])
    >>> following.result()
    WorstBlock(blocks=2, worst=0.25, worst_block=1, partial=nan)
    """

    def __init__(self, window: int = 5000, *, buckets: int = 20, power: float = 2.0) -> None:
        self._window = check.whole(window, "window", low=1)
        self._buckets = check.whole(buckets, "buckets", low=1, high=1 << 20)
        self._power = checked_power(power)
        self._closed = 0
        self._worst: tuple[float, int] | None = None
        self._count = 0
        self._tally = Tally(self._buckets, 1)

    @property
    def rounds(self) -> int:
        """The number of rounds so far."""
        return self._closed * self._window + self._count

    def update(self, forecast: float, outcome: int) -> None:
        """Add one round."""
        value, event = check.probability(forecast, "forecast"), check.outcome(outcome)
        self._close_if_full()
        self._tally.add(bucket(value, self._buckets), value, event)
        self._count += 1

    def revert(self, forecast: float, outcome: int) -> None:
        """Take back one round of the block under way, as if it had never been."""
        value = check.probability(forecast, "forecast")
        self._tally.remove(bucket(value, self._buckets), value, check.outcome(outcome))
        self._count -= 1

    def update_many(self, forecasts: ArrayLike, outcomes: ArrayLike) -> None:
        """Add many rounds in order; exactly the same as one :meth:`update` for each."""
        values, binary = checked_rounds(forecasts, outcomes)
        index = buckets_of(values, self._buckets)
        start = 0
        while start < len(values):
            self._close_if_full()
            part = slice(start, start + self._window - self._count)
            self._tally.add_many(index[part], values[part], binary[part])
            self._count += len(values[part])
            start = part.stop

    def merge(self, other: Windowed) -> None:
        """Append the rounds of ``other``, a later part of the stream with the same settings."""
        if not isinstance(other, Windowed) or other._settings() != self._settings():
            raise InvalidInput(f"other must be like {self!r}, got {other!r}")
        if self._count % self._window:
            told = f"{self._count} rounds of {self._window}"
            raise InvalidInput(f"block under way must be complete before a merge, got {told}")
        self._close_if_full()
        if other._worst is not None:
            error, block = other._worst
            self._keep_worst(error, self._closed + block)
        self._closed += other._closed
        self._count = other._count
        self._tally.merge(other._tally)

    def result(self) -> WorstBlock:
        """Return the worst complete block and the error of the one under way."""
        partial, full = self._error(), self._count == self._window
        worst = _worse(self._worst, (partial, self._closed)) if full else self._worst
        error, block = worst or (math.nan, None)
        return WorstBlock(self._closed + full, error, block, math.nan if full else partial)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON types."""
        settings = dict(zip(("window", "buckets", "power"), self._settings(), strict=True))
        worst = list(self._worst) if self._worst else None
        content = {**settings, "closed": self._closed, "worst": worst}
        return seal_state("Windowed", **content, **self._tally.to_dict())

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Windowed:
        """Return an object that goes on exactly where :meth:`to_dict` was called."""
        names = ("window", "buckets", "power", "closed", "worst", "counts", "sums")
        window, buckets, power, closed, worst, *sums = open_state(state, "Windowed", *names)
        made = restored(cls, window, buckets=buckets, power=power)
        made._tally.load(*sums)
        made._count = made._tally.rounds
        [made._closed] = whole_numbers([closed], "closed", 1)
        made._worst = _checked_worst(worst, made._closed)
        if made._count > made._window:
            raise CorruptState(f"counts must be at most {window} in all, got {made._count}")
        return made

    def __repr__(self) -> str:
        window, buckets, power = self._settings()
        return f"Windowed(window={window}, buckets={buckets}, power={power})"

    def _settings(self) -> tuple[int, int, float]:
        return self._window, self._buckets, self._power

    def _close_if_full(self) -> None:
        if self._count == self._window:
            self._keep_worst(self._error(), self._closed)
            self._closed += 1
            self._count = 0
            self._tally = Tally(self._buckets, 1)

    def _error(self) -> float:
        return calibration_error(tally_cells(self._tally), power=self._power)

    def _keep_worst(self, error: float, block: int) -> None:
        self._worst = _worse(self._worst, (error, block))


def _worse(first: tuple[float, int] | None, second: tuple[float, int]) -> tuple[float, int]:
    return second if first is None or second[0] > first[0] else first


def _checked_worst(worst: Any, closed: int) -> tuple[float, int] | None:
    if closed == 0 and worst is None:
        return None
    try:
        error, block = worst
        return (
            check.probability(error, "worst error"),
            check.whole(block, "worst block", low=0, high=closed - 1),
        )
    except (TypeError, ValueError) as problem:
        raise CorruptState(f"worst must be an error and a block, got {worst!r}") from problem
