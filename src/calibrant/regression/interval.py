"""Intervals around point forecasts that hold as many outcomes as they should."""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar, TypeAlias

import numpy as np

from calibrant.bounds import Bound, probable
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.stateful import Migration, untold
from calibrant.errors import InvalidInput
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.in_turn import Answers
from calibrant.recalibrate.promise import FAILURE
from calibrant.recalibrate.secret import secret_of
from calibrant.regression.distribution import finite
from calibrant.regression.interval_method import (
    IntervalMethod,
    Met,
    Played,
    Record,
    interval_methods,
)
from calibrant.regression.record import IntervalCertificate, IntervalRun
from calibrant.regression.stream import NumberStream
from calibrant.regression.ticket import IntervalTicket
from calibrant.regression.version1 import interval_migrated

Ends: TypeAlias = tuple[float, float]


class ConformalInterval(NumberStream[IntervalTicket, IntervalMethod]):
    """Find intervals that cover the wanted part of outcomes, whatever the outcomes.

    Parameters
    ----------
    method
        ``"blend"``, ``"agaci"``, ``"dtaci"``, ``"aci_quantile"``, ``"aci"``, ``"sf_ogd"``,
        ``"pid"`` or ``"saocp"``; see ``calibrant.regression.interval_methods``.
    coverage
        Which part of outcomes should be inside.
    score
        ``"residual"``: a point forecast comes in, and the score is its distance to the outcome.
        ``"given"``: any score of yours; outcomes are scores, and the radius is announced.
    seed, key, secret
        What tells tickets of several objects apart; nothing here is random.
    max_open
        A ticket expires once this many newer forecasts have been made.
    **options
        Those of the method: ``step``, ``scale``...

    Notes
    -----
    Coverage is right in the long run for any sequence, not given what is known in a round.

    A correction counts coverage anew, and the levels of ``blend`` and ``aci_quantile`` with it.
    Radii move by one more step of the present size, which is exact for ``aci`` with a given scale.
    A score is replaced while it is among the last ones; the range of all scores keeps the wrong
    one, and learners of ``blend`` and ``saocp``, and levels of ``agaci`` and ``dtaci``, keep what
    they learned from it.

    Safe to call from several threads: every call holds the object's gate.

    Examples
    --------
    >>> band = ConformalInterval("aci", coverage=0.9, step=0.1, scale=10.0)
    >>> ticket = band.forecast(20.0)
    >>> ticket.low, ticket.high
    (20.0, 20.0)
    >>> _ = band.observe(ticket, 23.0)
    >>> print(band.forecast(21.0))
    IntervalTicket(id=1, [20.1, 21.9], open)
    """

    __slots__ = ()

    kind: ClassVar = "conformal interval"
    tickets: ClassVar = IntervalTicket
    methods: ClassVar = interval_methods
    aim: ClassVar = ("coverage", functools.partial(check.inside, name="coverage"))
    choice: ClassVar = ("score", ("residual", "given"))
    version: ClassVar[int] = 4
    migrations: ClassVar[dict[int, Migration]] = NumberStream.migrations | {
        1: interval_migrated,
        # Ends go on to move evenly, however far the level is away and however late outcomes are.
        3: untold(4, bent=False),
    }

    def _configure(self, settings: dict[str, Any]) -> None:
        super()._configure(settings)
        self._method.face(2 if self._spec.choice == "residual" else 1)

    def __init__(
        self,
        method: str = "blend",
        *,
        coverage: float = 0.9,
        score: str = "residual",
        seed: int | None = None,
        key: str | int | None = None,
        secret: bytes | None = None,
        max_open: int = 1_000_000,
        **options: Any,
    ) -> None:
        told = {"method": method, "coverage": coverage, "score": score, "options": options}
        self._configure(told)
        self._begin(secret_of(seed, key, secret), max_open)

    # ------------------------------------------------------------------ facts

    @property
    def coverage(self) -> float:
        """The target: which part of outcomes should be inside."""
        told = self._spec.target
        assert isinstance(told, float)
        return told

    # -------------------------------------------------------------- one by one

    def forecast(
        self,
        centre: float | None = None,
        *,
        scorecast: float = 0.0,
        id: str | None = None,
        time: check.When = None,
    ) -> IntervalTicket:
        """Announce an interval, and keep a ticket for its outcome.

        Parameters
        ----------
        centre
            The point forecast; none where scores are given.
        scorecast
            What you expect of the score (the part D of PID control); the radius is that much
            larger, and the method learns the rest.
        id, time
            As in :meth:`calibrant.Recalibrator.forecast`.
        """
        return self._forecast(self._given(centre, scorecast), id, time)

    def _issue(self, raw: tuple[float | None, float]) -> IntervalTicket:
        ticket = IntervalTicket(self._issuer, self._seat.count_forecast())
        (ticket._centre, ticket._scorecast), ticket._base = raw, self._method.radius
        ticket._below = self._method.below
        return ticket

    def predict_one(self, centre: float | None = None, *, scorecast: float = 0.0) -> Ends:
        """Return the ends of the interval that the next round would announce; change nothing."""
        ends = self.predict_mean_one(centre, scorecast=scorecast)
        with self._gate:
            self._note()
        return ends

    def sample_one(self, centre: float | None = None, *, scorecast: float = 0.0) -> Ends:
        """Return the same as :meth:`predict_one`: nothing is drawn here."""
        return self.predict_one(centre, scorecast=scorecast)

    def predict_mean_one(self, centre: float | None = None, *, scorecast: float = 0.0) -> Ends:
        """Return the same as :meth:`predict_one`, and note nothing: nothing is drawn here."""
        point, cast = self._given(centre, scorecast)
        with self._gate:
            radius, below = self._method.radius, self._method.below
        middle = 0.0 if point is None else point
        return middle - ((radius if below is None else below) + cast), middle + (radius + cast)

    def learn_one(self, centre: float | None, outcome: float, *, scorecast: float = 0.0) -> None:
        """Make a round of the last :meth:`predict_one`; without one, of a forecast made now."""
        told = check.real(outcome, "outcome")
        self._play_round(self._given(centre, scorecast), told)

    def coin_of(self, ticket: IntervalTicket | int | str) -> float:
        """Refuse: nothing is drawn here."""
        raise InvalidInput(f"coin must be asked of a forecast that was drawn, got {ticket!r}")

    def _given(self, centre: Any, scorecast: Any = 0.0) -> tuple[float | None, float]:
        point = check.real(centre, "centre") if self._spec.choice == "residual" else None
        if point is None and centre is not None:
            raise InvalidInput(f"centre must be None where scores are given, got {centre!r}")
        return point, check.real(scorecast, "scorecast")

    def _met(self, ticket: IntervalTicket, outcome: float) -> Met:
        """Return the scores that the method learns of an outcome, above and below the centre."""
        centre, cast = ticket.centre, ticket.scorecast
        if centre is None:
            return outcome - cast, -math.inf
        return (outcome - centre) - cast, (centre - outcome) - cast

    # ---------------------------------------------------------------- batches

    @np.errstate(over="ignore")
    def replay(
        self,
        centres: Any,
        outcomes: Any,
        *,
        scorecasts: Any = None,
        available: Any = None,
        time: Any = None,
        carry: Pending | None = None,
    ) -> IntervalRun:
        """Play a whole batch of rounds, exactly as the calls one by one would.

        Parameters
        ----------
        centres
            The point forecasts; None where scores are given.
        outcomes
            What came, or the scores.
        scorecasts
            What was expected of each score; nothing by default.
        available, time, carry
            As in :meth:`calibrant.Recalibrator.replay`.
        """
        told = finite(outcomes, "outcomes")
        points = self._points(centres, told)
        casts = np.zeros(len(told)) if scorecasts is None else finite(scorecasts, "scorecasts")
        check.same_length(centres=points, outcomes=told, scorecasts=casts)
        ups = (told - points) - casts
        downs = np.full(len(told), -np.inf) if centres is None else (points - told) - casts
        middles = [None] * len(told) if centres is None else points.tolist()
        play, late = functools.partial(self._method.play, ups, downs), (available, time, carry)
        raws = zip(middles, casts.tolist(), strict=True)
        (found, below), first, pending = self._play(play, raws, told, *late)
        low, radius = points - (below + casts), found + casts
        ends = (low, points + radius) if centres is not None else (radius[:0],) * 2
        return IntervalRun(radius, *ends, (ups <= found) & (downs <= below), first, pending)

    def play(
        self, kind: Any, id: Any, x: Any, time: Any = None, *, scorecasts: Any = None
    ) -> Answers:
        """Play a log of forecasts and outcomes in its order, as the calls one by one would.

        Parameters
        ----------
        kind, id, time
            As in :meth:`calibrant.Recalibrator.play`.
        x
            The point forecast, None where scores are given; or the outcome.
        scorecasts
            What was expected of each score; those of outcomes are not looked at.
        """
        casts = None if scorecasts is None else check.listed(scorecasts, "scorecasts")
        listed = x if casts is None else check.listed(x, "x")
        if casts is not None:
            check.same_length(x=listed, scorecasts=casts)

        def asked(centre: Any, event: int) -> tuple[float | None, float]:
            return self._given(centre, 0.0 if casts is None else casts[event])

        return self._log(kind, id, listed, time, asked)

    def forecast_many(
        self, centres: Any, *, scorecasts: Any = None, id: Any = None, time: Any = None
    ) -> Answers:
        """Announce many intervals, one after the other, and keep a ticket for each.

        Where scores are given, ``centres`` is None for each.
        """
        points = check.listed(centres, "centres")
        return self.play(np.zeros(len(points), np.int64), id, points, time, scorecasts=scorecasts)

    @property
    def _blank(self) -> Reals:
        return np.full(2, np.nan)

    def _gathered(self, tickets: list[IntervalTicket]) -> Played:
        found = np.array([(ticket.base, ticket.below) for ticket in tickets]).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _points(self, centres: Any, told: Reals) -> Reals:
        if self._spec.choice == "residual":
            return finite(centres, "centres")
        self._given(centres)
        return np.zeros(len(told))

    # ------------------------------------------------------------------ state

    def _stored(self) -> tuple[dict[str, Any], dict[str, Words]]:
        settings, arrays = super()._stored()
        return settings | {"bent": self._spec.bent}, arrays

    def certificate(self, failure: float = FAILURE) -> IntervalCertificate:
        """Return what was measured, and the bound beside it.

        Nothing is drawn here, so no bound fails with any probability: ``failure`` changes nothing.
        """
        probable(failure)
        with self._gate:
            record = self._method.record(self.delay) if self.rounds else Record("C1", None, None)
            told = *self._counted(), self.coverage, self._method.coverage, *record[:3]
            return IntervalCertificate(*told, *_promise(record, self.rounds))


def _promise(record: Record, rounds: int) -> tuple[Bound | None, int | None]:
    """Return the bound if it says something, or else from about which round on it does.

    A bound on coverage falls about as the rounds grow, one on regret as their square root.
    """
    if record.bound is None or record.bound.value < record.most:
        return record.bound, None
    ratio = record.bound.value / record.most
    first = rounds * ratio ** (2 if record.quantity == "regret" else 1)
    return None, math.ceil(first) if first < math.inf else None
