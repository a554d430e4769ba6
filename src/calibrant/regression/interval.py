"""Intervals around point forecasts that hold as many outcomes as they should."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from calibrant.classes.waiting import Entry
from calibrant.core import check
from calibrant.core.gate import passing
from calibrant.core.ledger import MAX_OPEN
from calibrant.errors import InvalidInput, InvalidType
from calibrant.recalibrate.secret import secret_of
from calibrant.regression.base import Arrays, NumberForecaster
from calibrant.regression.certificate import IntervalCertificate
from calibrant.regression.interval_method import IntervalMethod, Record
from calibrant.regression.registry import interval_methods
from calibrant.regression.run import IntervalRun
from calibrant.regression.tables import Reals, finite
from calibrant.regression.ticket import IntervalTicket

__all__ = ["SCORES", "ConformalInterval"]

SCORES: Final = ("residual", "given")


class ConformalInterval(NumberForecaster[IntervalTicket]):
    """Find intervals that cover the wanted part of outcomes, whatever the outcomes.

    Parameters
    ----------
    method
        ``"aci_quantile"``, ``"aci"``, ``"sf_ogd"``, ``"pid"`` or ``"saocp"``; see
        ``calibrant.regression.interval_methods``.
    coverage
        Which part of outcomes should be inside.
    score
        ``"residual"``: a point forecast comes in, and the score is its distance to the outcome.
        ``"given"``: any score of yours; outcomes are scores, and the radius is announced.
    seed, key
        What tells tickets of several objects apart; nothing here is random.
    max_open
        A ticket expires once this many newer forecasts have been made.
    **options
        Those of the method: ``step``, ``scale``...

    Notes
    -----
    Coverage is right in the long run for any sequence, not given what is known in a round.
    Safe to call from several threads: every call holds the object's gate.

    Examples
    --------
    >>> band = ConformalInterval("aci", coverage=0.9, step=0.1, scale=10.0)
    >>> ticket = band.forecast(20.0)
    >>> ticket.low, ticket.high
    (20.0, 20.0)
    >>> band.observe(ticket, 23.0)
    >>> print(band.forecast(21.0))
    IntervalTicket(id=1, [20.1, 21.9], open)
    """

    kind: ClassVar = "conformal interval"

    def __init__(
        self,
        method: str = "aci_quantile",
        *,
        coverage: float = 0.9,
        score: str = "residual",
        seed: int | None = None,
        key: str | int | None = None,
        max_open: int = 1_000_000,
        **options: Any,
    ) -> None:
        made = interval_methods.get(method)
        cap = check.whole(max_open, "max_open", low=1, high=MAX_OPEN)
        self._begin(made, coverage, score, options, secret_of(seed, key), cap)

    def _begin(
        self,
        made: type[IntervalMethod],
        coverage: Any,
        score: str,
        options: dict[str, Any],
        secret: bytes,
        max_open: int,
    ) -> None:
        self._target = check.real(coverage, "coverage")
        if not 0.0 < self._target < 1.0:
            raise InvalidInput(f"coverage must be between 0 and 1, got {coverage!r}")
        self._score = check.choice(score, "score", SCORES)
        self._method = _made(made, self._target, options)
        self._set_up(secret, max_open, (made.name, self._target, score))

    # ------------------------------------------------------------------ facts

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._method.name

    @property
    def coverage(self) -> float:
        """The target: which part of outcomes should be inside."""
        return self._target

    # -------------------------------------------------------------- one by one

    def forecast(
        self,
        centre: float | None = None,
        *,
        scorecast: float = 0.0,
        id: str | None = None,
        time: float | None = None,
    ) -> IntervalTicket:
        """Announce an interval, and keep a ticket for its outcome.

        Parameters
        ----------
        centre
            The point forecast; none where scores are given.
        scorecast
            What you expect of the score (the part D of PID control); the radius is that much
            larger, and the method learns the rest.
        id
            A name for the ticket; by default its number.
        time
            When the forecast is made, in the caller's units.
        """
        point, cast = self._point(centre), check.real(scorecast, "scorecast")
        with passing(self._gate):
            id, time = self._named(id, time)
            ticket = IntervalTicket(self._issuer, self._issued, id, time)
            ticket.centre, ticket.scorecast = point, cast
            ticket.radius = self._method.radius + cast
            kept = [0.0 if point is None else point, self._method.radius, cast]
            return self._keep(ticket, kept)

    def predict_one(
        self, centre: float | None = None, *, scorecast: float = 0.0
    ) -> tuple[float, float]:
        """Return the ends of the interval that the next round would announce; change nothing."""
        point, cast = self._point(centre), check.real(scorecast, "scorecast")
        with passing(self._gate):
            self._note()
            radius = self._method.radius + cast
        middle = 0.0 if point is None else point
        return middle - radius, middle + radius

    def learn_one(self, centre: float | None, outcome: float, *, scorecast: float = 0.0) -> None:
        """Make a round of the last :meth:`predict_one`; without one, of a forecast made now."""
        told = check.real(outcome, "outcome")
        self._point(centre)
        with passing(self._gate):
            self._check_fresh()
        self.observe(self.forecast(centre, scorecast=scorecast), told)

    def _point(self, centre: Any) -> float | None:
        if self._score == "residual":
            return check.real(centre, "centre")
        if centre is not None:
            raise InvalidInput(f"centre must be None where scores are given, got {centre!r}")
        return None

    def _settle(self, entry: Entry, kept: list[float], outcome: float) -> None:
        centre, radius, cast = kept
        score = abs(outcome - centre) if self._score == "residual" else outcome
        self._method.learn(radius, score - cast)

    # ---------------------------------------------------------------- batches

    def replay(self, centres: Any, outcomes: Any, *, scorecasts: Any = None) -> IntervalRun:
        """Play a whole batch of rounds, exactly as the calls one by one would.

        Parameters
        ----------
        centres
            The point forecasts; None where scores are given.
        outcomes
            What came, or the scores.
        scorecasts
            What was expected of each score; nothing by default.
        """
        told = finite(outcomes, "outcomes")
        points = self._points(centres, told)
        casts = np.zeros(len(told)) if scorecasts is None else finite(scorecasts, "scorecasts")
        check.same_length(centres=points, outcomes=told, scorecasts=casts)
        scores = (np.abs(told - points) if self._score == "residual" else told) - casts
        with passing(self._gate):
            first, found = self._issued, self._method.play(scores)
            self._count(len(told))
        radius = found + casts
        low, high = (points - radius, points + radius) if centres is not None else (radius[:0],) * 2
        return IntervalRun(radius, low, high, scores <= found, first)

    def _points(self, centres: Any, told: Reals) -> Reals:
        if self._score == "residual":
            return finite(centres, "centres")
        self._point(centres)
        return np.zeros(len(told))

    # ------------------------------------------------------------------ state

    def certificate(self) -> IntervalCertificate:
        """Return what was measured, and the bound beside it."""
        waiting = self.open
        with passing(self._gate):
            expired = self._issued - self._learned - waiting
            nothing = Record("C1", None, None)
            record = self._method.record(self.delay) if self._learned else nothing
            told = self._learned, waiting, expired, self.delay, self._target
            return IntervalCertificate(self.method, *told, self._method.coverage, *record)

    def _told(self) -> dict[str, Any]:
        told = {"method": self.method, "coverage": self._target, "score": self._score}
        return told | self._method.options()

    def _state(self) -> tuple[dict[str, Any], Arrays]:
        return self._told(), {"state": self._method.state()}

    def _load(self, own: dict[str, Any], arrays: Arrays, secret: bytes, max_open: int) -> int:
        options = dict(own)
        made = interval_methods.get(options.pop("method"))
        told = options.pop("coverage"), options.pop("score")
        self._begin(made, *told, options, secret, max_open)
        self._method.load(arrays["state"])
        return 3


def _made(made: type[IntervalMethod], coverage: float, options: dict[str, Any]) -> IntervalMethod:
    try:
        return made(coverage, **options)  # type: ignore[call-arg]
    except InvalidType:
        raise
    except TypeError as error:
        told = ", ".join(repr(name) for name in options)
        raise InvalidType(f"options must be ones of method {made.name!r}, got {told}") from error
