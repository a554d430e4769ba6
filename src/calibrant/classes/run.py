"""What came of batches over classes: a row for each round."""

from __future__ import annotations

from dataclasses import dataclass, field

from calibrant.core.arrays import Mask, Reals, Words
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.run import Numbered


@dataclass(frozen=True, eq=False)
class ClassRun(Numbered):
    """The forecasts of a batch, a row for each round and a column for each class.

    Attributes
    ----------
    forecast, mean
        The drawn and the expected forecasts.
    first, pending
        As in :class:`calibrant.recalibrate.run.Run`.
    """

    forecast: Reals
    mean: Reals
    first: int
    pending: Pending = field(default_factory=Pending, kw_only=True)

    def __len__(self) -> int:
        return len(self.forecast)


@dataclass(frozen=True, eq=False)
class OneVsRestRun(ClassRun):
    """The same, with the numbers before anything made them sum to 1.

    Attributes
    ----------
    classwise, classwise_mean
        As drawn, which carries the guarantee, and as expected.
    """

    classwise: Reals
    classwise_mean: Reals


@dataclass(frozen=True, eq=False)
class TopRun(ClassRun):
    """The same, with the probability of the first class on its own.

    Attributes
    ----------
    top
        The class that each raw forecast puts first.
    confidence, confidence_mean
        Its probability, as drawn, which carries the guarantee, and as expected.
    leads
        Whether no other class has more in ``forecast``.
    """

    top: Words
    confidence: Reals
    confidence_mean: Reals
    leads: Mask
