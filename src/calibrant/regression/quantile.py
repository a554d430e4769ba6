"""Predictive distributions that become calibrated, one at a time."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from calibrant.bounds import probable
from calibrant.core import check
from calibrant.core.arrays import Reals, Words
from calibrant.core.stateful import Migration, untold
from calibrant.errors import ForeignTicket, InvalidInput, InvalidType
from calibrant.kernels.layout import ROUNDS
from calibrant.kernels.quantiles import covers
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.in_turn import Answers
from calibrant.recalibrate.promise import FAILURE
from calibrant.recalibrate.secret import coin_at, secret_of
from calibrant.regression.curves import ask
from calibrant.regression.distribution import Distribution, Distributions, finite, target_levels
from calibrant.regression.level_method import LevelMethod, quantile_methods
from calibrant.regression.record import QuantileCertificate, QuantileRun
from calibrant.regression.stream import NumberStream
from calibrant.regression.ticket import CURVES, QuantileTicket
from calibrant.regression.version1 import quantile_migrated


class QuantileRecalibrator(NumberStream[QuantileTicket, LevelMethod]):
    """Turn predictive distributions into calibrated ones, whatever the outcomes.

    Parameters
    ----------
    method
        ``"mixed"``: experts, the raw forecast among them, shift and scale the distribution; their
        mixture under the CRPS is calibrated as by ``"pit"``.
        ``"pit"``: a binary calibrator for each level learns how often outcomes fall below the
        raw quantile there, and the recalibrated CDF goes through what it draws, sorted.
        ``"tracker"``: each level moves along the raw quantile function until its coverage is
        right; no draws, and a guarantee for any sequence.
    levels
        The levels to follow: numbers between 0 and 1 in order, or how many at equal distances.
    ties
        An outcome on an atom, such as no rain: ``"random"`` counts it as below a quantile with
        the share of the atom that the level needs, by a coin of the round (randomised PIT);
        ``"below"`` always, as a plain comparison would.
    seed, key, secret
        What the draws and coins depend on, as in :class:`calibrant.Recalibrator`.
    max_open
        A ticket expires once this many newer forecasts have been made.
    **options
        Those of the method: ``calibrator``, ``prior``, ``resolution``... or ``step``.

    Notes
    -----
    To correct an outcome counts coverage anew; experts do not unlearn.  The tracker's levels move
    to where they would stand, were it not for what was announced since; calibrators of ``mixed``
    and ``pit`` are corrected as binary ones are.

    Memory is proportional to the number of levels, and for each open ticket at most six numbers
    a level and 68 more.  Safe to call from several threads: every call holds the object's
    gate.

    References
    ----------
    Kuleshov, Fenner and Ermon (2018), "Accurate uncertainties for deep learning using calibrated
    regression"; Deshpande, Marx and Kuleshov (2024), "Online calibrated and conformal prediction
    improves Bayesian optimization".

    Examples
    --------
    >>> rec = QuantileRecalibrator("tracker", levels=[0.1, 0.5, 0.9], seed=7)
    >>> ticket = rec.forecast(Distribution.normal(20.0, 2.0))
    >>> ticket.quantiles.round(2).tolist()
    [17.44, 20.0, 22.56]
    >>> _ = rec.observe(ticket, 24.1)
    >>> rec.forecast(Distribution.normal(20.0, 2.0)).quantiles.round(2).tolist()
    [17.46, 20.05, 22.78]
    """

    __slots__ = ()

    kind: ClassVar = "quantile recalibrator"
    tickets: ClassVar = QuantileTicket
    methods: ClassVar = quantile_methods
    aim: ClassVar = ("levels", target_levels)
    choice: ClassVar = ("ties", ("random", "below"))
    version: ClassVar[int] = 6
    migrations: ClassVar[dict[int, Migration]] = NumberStream.migrations | {
        1: quantile_migrated,
        # Experts go on to learn late outcomes as if these came at once, and calibrators of levels
        # to believe them by their number.
        3: untold(4, alike=False),
        # Outcomes that came before others waited counted more.
        4: untold(5, even=False),
        # One outcome goes on to move weights by anything.
        5: untold(6, capped=False),
    }

    def __init__(
        self,
        method: str = "mixed",
        levels: Any = 19,
        *,
        ties: str = "random",
        seed: int | None = None,
        key: str | int | None = None,
        secret: bytes | None = None,
        max_open: int = 1_000_000,
        **options: Any,
    ) -> None:
        self._configure({"method": method, "levels": levels, "ties": ties, "options": options})
        self._begin(secret_of(seed, key, secret), max_open)

    # ------------------------------------------------------------------ facts

    @property
    def levels(self) -> Reals:
        """The levels that are followed."""
        return self._method.levels.copy()

    # -------------------------------------------------------------- one by one

    def forecast(
        self, raw: Distribution, *, id: str | None = None, time: check.When = None
    ) -> QuantileTicket:
        """Announce a recalibrated distribution, and keep a ticket for its outcome.

        Parameters
        ----------
        raw
            The distribution that a model gives.
        id, time
            As in :meth:`calibrant.Recalibrator.forecast`.
        """
        return self._forecast(_one(raw), id, time)

    def _issue(self, raw: Distribution) -> QuantileTicket:
        rows, advice = self._method.mixed(raw.rows)
        random = self._ties.random
        # Counted first, so that the row says whether there is something to be taken back.
        ticket = QuantileTicket(self._issuer, self._seat.count_forecast())
        said = self._method.announce()
        asked, *curves = said[:5]
        ticket._announce(raw, tuple(curves))
        ticket._places, ticket._weights = said[5:]
        ticket._advice = advice
        if rows is not raw.rows:
            ticket._mixed = Distribution(rows)
        found, shares = ask(rows.values, rows.levels, asked[None], random=random)
        ticket._found, ticket._shares = tuple(found[0].tolist()), tuple(shares[0].tolist())
        return ticket

    def sample_one(self, raw: Distribution) -> Distribution:
        """Return the distribution that the next round would announce; change nothing."""
        return self._looked(raw, "outer", note=True)

    def predict_one(self, raw: Distribution) -> Distribution:
        """Return the distribution that the next round would announce; change nothing."""
        return self.sample_one(raw)

    def predict_mean_one(self, raw: Distribution) -> Distribution:
        """Return the same with the expected levels, which have no guarantee; note nothing."""
        return self._looked(raw, "outer_mean", note=False)

    def _looked(self, raw: Any, what: str, note: bool) -> Distribution:
        given = _one(raw)
        with self._gate:
            said, (rows, _) = self._method.look(), self._method.mixed(given.rows)
            if note:
                self._note()
        return rows.moved(said.inner[None], getattr(said, what)[None])[0]

    def learn_one(self, raw: Distribution, outcome: float) -> None:
        """Make a round of the last :meth:`predict_one`; without one, of a forecast made now."""
        told = check.real(outcome, "outcome")
        self._play_round(_one(raw), told)

    def _met(self, ticket: QuantileTicket, outcome: float) -> list[int]:
        """Return which of the quantiles that were asked for cover an outcome."""
        if len(ticket.found) != self._method.width:
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        u = self._tie_coin(ticket.number) if outcome in ticket.found else 0.0
        pairs = zip(ticket.found, ticket.shares, strict=True)
        return [covers(x, share, outcome, u) for x, share in pairs]

    def _learn(self, ticket: QuantileTicket, outcome: float) -> None:
        kept, rounds = self._kept([self._method.experts]), self._own(ROUNDS)
        try:
            self._method.heed(ticket, outcome)
            super()._learn(ticket, outcome)
        except BaseException:
            if self._own(ROUNDS) == rounds:
                self._put_back(kept)
            raise

    def _tie_coin(self, number: int) -> float:
        """Return the coin of a round, which decides about an outcome on an atom."""
        if self._earlier:
            return coin_at(self._secret_at(number), self._spec.coins, 0, number)
        return self._ties.coins.at(number)

    def coin_of(self, ticket: QuantileTicket | int | str, level: int | None = None) -> float:
        """Return the coin of a ticket's round, which decides about an outcome on an atom.

        With ``level``, the one that drew the chance ``ticket.drawn[level]``.  For audits.  An open
        ticket may be given by its id.
        """
        found = self._ours(ticket)
        if level is None:
            return self._tie_coin(found.number)
        return self._method.coin(self._secret_at(found.number), found, level)

    # ---------------------------------------------------------------- batches

    def replay(
        self,
        raw: Distributions | Sequence[Distribution],
        outcomes: Any,
        *,
        available: Any = None,
        time: Any = None,
        carry: Pending | None = None,
    ) -> QuantileRun:
        """Play a whole batch of rounds, exactly as the calls one by one would.

        Parameters
        ----------
        raw
            A table of distributions, or a list of single ones that are all of one form.
        outcomes
            The numbers that came, one for each.
        available, time, carry
            As in :meth:`calibrant.Recalibrator.replay`.
        """
        rows, y = _many(raw), finite(outcomes, "outcomes")
        check.same_length(raw=rows, outcomes=y)
        play = functools.partial(self._method.play, rows, y, self._ties)
        raws, late = map(rows.__getitem__, range(len(y))), (available, time, carry)
        played, first, pending = self._play(play, raws, y, *late)
        found, *curves, mixed = played
        told = self._method.levels, np.sort(found, axis=1), found, rows, *curves, first, pending
        return QuantileRun(*told, mixed=mixed)

    def play(self, kind: Any, id: Any, x: Any, time: Any = None) -> Answers:
        """Play a log of forecasts and outcomes in its order, as the calls one by one would.

        Parameters
        ----------
        kind, id, time
            As in :meth:`calibrant.Recalibrator.play`.
        x
            The distribution that a model gives, or the number that came.
        """
        return self._log(kind, id, x, time, _at_event)

    def forecast_many(
        self, raw: Distributions | Sequence[Distribution], *, id: Any = None, time: Any = None
    ) -> Answers:
        """Announce many forecasts, one after the other, and keep a ticket for each."""
        rows = raw if isinstance(raw, list) else _many(raw)
        told = [rows[t] for t in range(len(rows))]
        return self._log(np.zeros(len(told), np.int64), id, told, time, _at_event)

    @property
    def _blank(self) -> None:
        """Distributions do not fit in a column: they are listed, and None is one not known."""

    def _gathered(self, tickets: list[QuantileTicket]) -> Any:
        if not tickets:
            return self._method.play(Distributions.normal([], []), np.empty(0), self._ties)
        mixed = Distributions._joined([t._whole().rows for t in tickets])
        told = [np.stack([getattr(t, name) for t in tickets]) for name in ("tracked", *CURVES)]
        return [*told, mixed]

    # ------------------------------------------------------------------ state

    def _stored(self) -> tuple[dict[str, Any], dict[str, Words]]:
        settings, arrays = super()._stored()
        told = {name: getattr(self._spec, name) for name in ("alike", "even", "capped")}
        return settings | told, arrays

    def certificate(self, failure: float = FAILURE) -> QuantileCertificate:
        """Return what was measured at each level, and its bound beside it.

        What is said to hold about this very run may fail with probability ``failure``, where
        chances are drawn; with the method ``"tracker"`` nothing is.
        """
        chance = probable(failure)
        with self._gate:
            rows = self._method.rows(self.rounds, self.delay, chance)
            drawn = chance if self._method.drawn else None
            seeded = self._secret.seeded if self._method.drawn else None
            return QuantileCertificate(*self._counted(), rows, drawn, seeded=seeded)


def _one(raw: Any) -> Distribution:
    if not isinstance(raw, Distribution):
        raise InvalidType(f"raw forecast must be a Distribution, got {raw!r}")
    _not_moved(raw.rows)
    return raw


def _at_event(raw: Any, event: int) -> Distribution:
    return _one(raw)


def _many(raw: Any) -> Distributions:
    if isinstance(raw, Distribution):
        raise InvalidType(f"raw forecasts must be Distributions or a list, got {raw!r}")
    rows = raw if isinstance(raw, Distributions) else _joined(raw)
    _not_moved(rows)
    return rows


def _joined(raw: Any) -> Distributions:
    listed = check.listed(raw, "raw forecasts", "be Distributions or a list of Distribution")
    return Distributions._joined([_one(each).rows for each in listed])


def _not_moved(rows: Distributions) -> None:
    if rows.inner.shape[1]:
        raise InvalidInput(
            "raw forecast must be a normal distribution as it was given, got a recalibrated one"
        )
