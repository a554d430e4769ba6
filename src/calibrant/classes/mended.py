"""Tickets and runs of forecasts whose vectors were mended before they were calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np

from calibrant._renamed import former
from calibrant.classes.run import TopRun
from calibrant.classes.ticket import ClassIssuer, Head, SureTicket, revived_parts
from calibrant.classes.vectors import shared_out, vector
from calibrant.core import check
from calibrant.core.arrays import Reals, frozen
from calibrant.core.ticket import Ticket, seen
from calibrant.errors import InvalidInput

CONFIDENCES: Final = 2
"""The last parts of a ticket: of all first classes together, and of the first class."""


@dataclass(frozen=True, eq=False)
class MendedRun(TopRun):
    """Forecasts of a batch, whole and class by class.

    Attributes
    ----------
    classwise, classwise_mean
        The number of each class, as drawn, which carries the guarantee of that class, and as
        expected; without columns if there are too many classes.
    """

    classwise: Reals
    classwise_mean: Reals


class MendedTicket(SureTicket):
    """A forecast whose vector was mended; its first class and each class were calibrated.

    Attributes
    ----------
    top
        The class that the mended vector puts first.
    mean
        The mended vector: what Brier score and log loss are best for; it has no guarantee.
    confidence, confidence_mean
        The probability of the first class, as drawn and as expected.  ``confidence`` carries the
        guarantee; in ``value`` it stands at ``top``, and the others share the rest.
    classwise, classwise_mean
        The number of each class as drawn, which carries the guarantee of that class, and as
        expected.  They need not sum to 1, and there are none if there are too many classes.
    leads
        Whether no other class has more in ``value``.
    parts
        The binary forecasts: of each class, of all first classes together, of the first class.
    """

    __slots__ = ("_mean", "_said", "_top")

    kind: ClassVar = "mended ticket"
    top: int = seen("top", "The class that the mended vector puts first.")

    def __init__(
        self,
        head: Head,
        parts: tuple[Any, ...],
        top: int,
        raw: Reals,
        mean: Reals,
        said: tuple[int, ...] = (),
    ) -> None:
        super().__init__(head, parts, raw)
        self._top, self._mean, self._said = top, frozen(mean), said

    @classmethod
    def _from_words(cls, head: Head, issuer: ClassIssuer, words: list[Any]) -> Self:
        top, *rest = words
        classes, kept = issuer.option
        raw, mean = np.array(rest[:classes]), np.array(rest[classes : 2 * classes])
        said, parts = rest[2 * classes : 2 * classes + kept], rest[2 * classes + kept :]
        return cls(head, revived_parts(issuer.shared, parts), top, raw, mean, tuple(said))

    def _vectors(self) -> tuple[Any, ...]:
        return self.top, *self.raw.tolist(), *self._mean.tolist(), *self._said

    def _words(self) -> tuple[Any, ...]:
        return *self._vectors(), *super()._words()

    def agrees(self, fields: tuple[Any, ...]) -> bool:
        """Say whether the desk kept the same of this ticket; a stored one may lack its clock."""
        own = self._vectors()
        return own == fields[1 : 1 + len(own)] and super().agrees(fields[len(own) :])

    @property
    def mixed(self) -> Reals:
        """The number of each class before the recalibrator of that class; all, if none has one."""
        own = self.parts[:-CONFIDENCES]
        return np.array([part.raw for part in own]) if own else np.array(self._mean)

    front = former("MendedTicket.front", "mixed")

    @property
    def said(self) -> tuple[int, ...]:
        """What experts said of the classes, packed; nothing in states of earlier versions."""
        return self._said

    @property
    def classwise(self) -> Reals:
        """The number of each class, as drawn."""
        return np.array([part.value for part in self.parts[:-CONFIDENCES]])

    @property
    def classwise_mean(self) -> Reals:
        """The number of each class, as expected."""
        return np.array([part.mean for part in self.parts[:-CONFIDENCES]])

    def _announced(self, name: str) -> Reals:
        if name == "mean":
            return np.array(self._mean)
        sure = np.array([self.confidence])
        return np.asarray(shared_out(self._mean[None], np.array([self.top]), sure)[0])

    def _told(self) -> str:
        return f"{super()._told()}, top={self.top}, confidence={self.confidence:.3g}"

    def _own(self) -> dict[str, Any]:
        vectors = {"raw": self.raw.tolist(), "mean": self._mean.tolist()}
        return {"top": self.top} | super()._own() | vectors | {"said": list(self._said)}

    @classmethod
    def _from_own(cls, head: Head, data: dict[str, Any]) -> Self:
        parts, size = tuple(map(Ticket.from_dict, data["parts"])), len(data["raw"])
        raw, mean = vector(data["raw"], size, "raw"), vector(data["mean"], size, "mean")
        if len(parts) not in (CONFIDENCES, size + CONFIDENCES):
            raise InvalidInput(f"parts must be 2 or {size + 2}, got {len(parts)}")
        said = tuple(check.whole(word, "said") for word in data.get("said", ()))
        return cls(head, parts, check.whole(data["top"], "top", high=size - 1), raw, mean, said)
