"""Binary recalibrators by number, each made when it is first touched."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.errors import CorruptState
from calibrant.recalibrate import Calibrant, Recalibrator, recalibrator
from calibrant.recalibrate.secret import secret_of

__all__ = ["ENGINES", "Engines"]

ENGINES: Final[dict[str, type[Recalibrator]]] = {
    "calibrant": Calibrant,
    "recalibrator": Recalibrator,
}


class Engines:
    """Recalibrators that differ in their coins alone.

    A template fixes all settings; the recalibrator of a number is the template with a secret
    of its own, so nothing needs to be kept of those that were never used.

    Examples
    --------
    >>> engines = Engines.of("recalibrator", {"buckets": 5}, b"secret")
    >>> engines[700].buckets, engines[700] == engines[701], list(engines.made)
    (5, False, [700, 701])
    """

    def __init__(self, template: Document, secret: bytes) -> None:
        self._template, self._secret = template, secret
        self._made_by = ENGINES[template.kind]
        self.made: dict[int, Recalibrator] = {}

    @classmethod
    def of(cls, engine: Any, options: dict[str, Any], secret: bytes) -> Engines:
        """Return engines of a kind, with ``options`` as its class takes them."""
        made_by = ENGINES[check.choice(engine, "engine", tuple(ENGINES))]
        template = made_by(seed=0, **options).to_bytes()
        return cls(Document.from_bytes(template, made_by.kind), secret)

    @property
    def engine(self) -> str:
        """Which kind of recalibrator they are."""
        return self._template.kind

    @functools.cached_property
    def template(self) -> Recalibrator:
        """A recalibrator as all of them begin; it belongs to no number."""
        return self._made_by._from_document(self._template)

    def __getitem__(self, number: int) -> Recalibrator:
        if number not in self.made:
            self.made[number] = self._fresh(number)
        return self.made[number]

    def used(self) -> Iterator[tuple[int, Recalibrator]]:
        """Yield number and recalibrator of those that made a forecast, in order."""
        for number in sorted(self.made):
            if self.made[number].issued:
                yield number, self.made[number]

    def prepare(self, number: int, rounds: int) -> None:
        """Have batches compiled if ``rounds`` in all are worth it, though each is short."""
        if rounds > recalibrator.SHORT:
            # The compiled program is shared by all recalibrators with these settings.
            self[number]._batch_program(rounds)

    def forget(self, number: int, ticket: int) -> None:
        """Let a recalibrator drop an open ticket whose outcome will not come."""
        ledger, issued = self[number]._ledger, self[number].issued
        # A ticket that expired inside as well is swept there.
        if issued - ticket <= ledger.max_open:
            ledger.close(ledger.find(ticket, issued))

    def to_arrays(self) -> dict[str, NDArray[np.int64]]:
        """Return the template, and the state of every recalibrator that was used, as words."""
        states = {f"engine {number}": made.to_bytes() for number, made in self.used()}
        states["template"] = self._template.to_bytes()
        return {name: _words(data) for name, data in states.items()}

    @classmethod
    def from_arrays(cls, engine: str, arrays: dict[str, Any], secret: bytes) -> Engines:
        """Read back what :meth:`to_arrays` gave."""
        made_by = ENGINES[check.choice(engine, "engine", tuple(ENGINES))]
        made = cls(Document.from_bytes(_bytes(arrays["template"]), made_by.kind), secret)
        for name, words in arrays.items():
            if name.startswith("engine "):
                number = int(name.removeprefix("engine "))
                made.made[number] = made._read(number, _bytes(words))
        return made

    def _fresh(self, number: int) -> Recalibrator:
        return self._made_by._from_document(self._document(number))

    def _read(self, number: int, data: bytes) -> Recalibrator:
        found = Document.from_bytes(data, self._template.kind)
        if found.settings["secret"] != self._secret_of(number):
            raise CorruptState(f"state must hold engines of its own, got another's at {number}")
        return self._made_by.from_bytes(data)

    def _document(self, number: int) -> Document:
        settings = self._template.settings | {"secret": self._secret_of(number)}
        return Document(self._template.kind, settings, self._template.arrays)

    def _secret_of(self, number: int) -> str:
        seed = int.from_bytes(self._secret, "little", signed=True)
        return secret_of(seed, number).hex()


def _words(data: bytes) -> NDArray[np.int64]:
    """Return bytes as words: their number first, zeros at the end."""
    padded = len(data).to_bytes(8, "little") + data + bytes(-len(data) % 8)
    return np.frombuffer(padded, "<i8").astype(np.int64)


def _bytes(words: NDArray[np.int64]) -> bytes:
    return words[1:].astype("<i8").tobytes()[: int(words[0])]
