"""The parameters of a group recalibrator, and its flat state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.base import Calibrator
from calibrant.core import check
from calibrant.kernels.groups import AVERAGE, EXPONENTIAL, FIRST, LOGS, RATE, ROOM, GroupProgram
from calibrant.kernels.layout import SCALE

__all__ = ["FORMS", "GroupRule"]

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
    real_parameters = (RATE, LOGS)

    form: str = "l2"
    rate: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check.choice(self.form, "form", FORMS)

    @property
    def score(self) -> GroupProgram:
        """The kernels of the form."""
        return AVERAGE if self.form == "l2" else EXPONENTIAL

    def _scratch(self, cells: int) -> int:
        return FIRST + ROOM

    def _set_parameters(
        self, words: NDArray[np.int64], reals: NDArray[np.float64], buckets: Any
    ) -> None:
        reals[RATE] = self.rate / int(words[SCALE])
