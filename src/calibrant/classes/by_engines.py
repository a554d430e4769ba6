"""Recalibrators over classes that are made of binary ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.classes.base import ClassRecalibrator, RunT, TicketT
from calibrant.classes.certificate import ClassCertificate
from calibrant.classes.engines import Engines
from calibrant.core.gate import passing
from calibrant.recalibrate import Recalibrator

__all__ = ["ByEngines"]


class ByEngines(ClassRecalibrator[TicketT, RunT]):
    """What :class:`OneVsRest` and :class:`TopLabel` share: engines, and a record of each."""

    def __init__(
        self,
        classes: int,
        engine: str,
        seed: int | None,
        key: str | int | None,
        max_open: int,
        options: dict[str, Any],
    ) -> None:
        super().__init__(classes, seed, key, max_open)
        self._engines = Engines.of(engine, options | {"max_open": max_open}, self._secret)

    @property
    def engine(self) -> str:
        """Which kind of recalibrator is inside."""
        return self._engines.engine

    @property
    def template(self) -> Recalibrator:
        """A binary recalibrator with the settings of those inside, before its first round."""
        return self._engines.template.copy()

    def certificate(self) -> ClassCertificate:
        """Return what was measured by each recalibrator inside, and its bounds beside it."""
        waiting = self.open
        with passing(self._gate):
            parts = {number: made.certificate() for number, made in self._engines.used()}
            expired = self.issued - self.rounds - waiting
            return ClassCertificate(self.rounds, waiting, expired, parts)

    def _settings(self) -> dict[str, Any]:
        return {"engine": self.engine}

    def _arrays(self) -> dict[str, NDArray[np.int64]]:
        return self._engines.to_arrays()

    def _load(self, settings: dict[str, Any], arrays: dict[str, NDArray[np.int64]]) -> None:
        self._engines = Engines.from_arrays(settings["engine"], arrays, self._secret)
