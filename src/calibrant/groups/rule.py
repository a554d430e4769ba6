"""The rule of a group recalibrator: scores that are summed over the groups of a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from calibrant.calibrators.base import Calibrator
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.kernels.groups import AVERAGE, EXPONENTIAL, LIST, RATE, ROOM, GroupProgram
from calibrant.kernels.layout import SCALE

FORMS: Final = ("l2", "exponential")


@dataclass(frozen=True, kw_only=True)
class GroupRule(Calibrator):
    """The blocks of a calibrator with room for the list of a round's groups.

    Parameters
    ----------
    form
        ``"l2"`` adds up average gaps, ``"exponential"`` exponentials of gaps.
    rate
        The rate of the exponential form.
    """

    name = "groups"
    kernels = AVERAGE.rule

    form: str = "l2"
    rate: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice(self.form, "form", FORMS)
        object.__setattr__(self, "kernels", self.batch.rule)

    @property
    def batch(self) -> GroupProgram:
        """The batch of the form."""
        return AVERAGE if self.form == "l2" else EXPONENTIAL

    def scratch(self, cells: int) -> int:
        """Return how many words the list of a round's groups takes."""
        return LIST + ROOM

    def set_parameters(self, words: Words, reals: Reals, buckets: int) -> None:
        """Write the rate, over the scale of gaps, into the header."""
        reals[RATE] = self.rate / int(words[SCALE])
