"""Predictive distributions that become calibrated, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.gate import passing
from calibrant.core.stateful import Migration
from calibrant.errors import ForeignTicket, InvalidInput, InvalidType
from calibrant.kernels.coin import coin
from calibrant.kernels.quantiles import covers
from calibrant.recalibrate.delivery import Pending, times
from calibrant.recalibrate.secret import block_key, secret_of
from calibrant.regression.base import NumberStream, made_with
from calibrant.regression.certificate import QuantileCertificate
from calibrant.regression.distribution import Distribution, Distributions
from calibrant.regression.level_method import LevelMethod, Played, Ties
from calibrant.regression.registry import quantile_methods
from calibrant.regression.rows import ask
from calibrant.regression.run import QuantileRun
from calibrant.regression.tables import finite, target_levels
from calibrant.regression.ticket import Issuer, QuantileTicket
from calibrant.regression.version1 import quantile_migrated

TIES: Final = ("random", "below")


class QuantileRecalibrator(NumberStream[QuantileTicket]):
    """Turn predictive distributions into calibrated ones, whatever the outcomes.

    Parameters
    ----------
    method
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
    seed, key
        What the draws and coins depend on, besides the order of forecasts.
    max_open
        A ticket expires once this many newer forecasts have been made.
    **options
        Those of the method: ``calibrator``, ``prior``, ``resolution``... or ``step``.

    Notes
    -----
    Memory is proportional to the number of levels, and for each open ticket at most six numbers
    a level and 36 more.  Safe to call from several threads: every call holds the object's
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

    __slots__ = ("_method", "_ties_named")

    kind: ClassVar = "quantile recalibrator"
    tickets: ClassVar = QuantileTicket
    migrations: ClassVar[dict[int, Migration]] = {1: quantile_migrated}

    def __init__(
        self,
        method: str = "pit",
        levels: Any = 19,
        *,
        ties: str = "random",
        seed: int | None = None,
        key: str | int | None = None,
        max_open: int = 1_000_000,
        **options: Any,
    ) -> None:
        self._configure({"method": method, "levels": levels, "ties": ties, "options": options})
        self._begin(secret_of(seed, key), max_open)

    def _configure(self, settings: dict[str, Any]) -> None:
        made, levels = quantile_methods.get(settings["method"]), target_levels(settings["levels"])
        self._ties_named = check.choice(settings["ties"], "ties", TIES)
        self._method = made_with(made, levels, settings["options"])

    @property
    def _way(self) -> LevelMethod:
        return self._method

    # ------------------------------------------------------------------ facts

    @property
    def levels(self) -> Reals:
        """The levels that are followed."""
        return self._method.levels.copy()

    @property
    def _ties(self) -> Ties:
        return Ties(self._ties_named == "random", block_key(self._secret, 0))

    # -------------------------------------------------------------- one by one

    def forecast(
        self, raw: Distribution, *, id: str | None = None, time: float | None = None
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
        said, random = self._method.announce(), self._ties_named == "random"
        ticket = QuantileTicket(self._issuer, self._seat.count_forecast())
        found, shares = ask(raw.rows.values, raw.rows.levels, said.asked[None], random=random)
        ticket.raw, ticket.inner, ticket.outer = raw, said.inner, said.outer
        ticket.outer_mean, ticket.drawn = said.outer_mean, said.drawn
        ticket.found, ticket.shares = tuple(found[0].tolist()), tuple(shares[0].tolist())
        ticket.places, ticket.weights = said.places, said.weights
        return ticket

    def sample_one(self, raw: Distribution) -> Distribution:
        """Return the distribution that the next round would announce; change nothing."""
        given = _one(raw)
        with passing(self._gate):
            said = self._method.look()
            self._note()
        return given.rows.moved(said.inner[None], said.outer[None])[0]

    def predict_one(self, raw: Distribution) -> Distribution:
        """Return the distribution that the next round would announce; change nothing."""
        return self.sample_one(raw)

    def predict_mean_one(self, raw: Distribution) -> Distribution:
        """Return the same with the expected levels, which have no guarantee; note nothing."""
        given = _one(raw)
        with passing(self._gate):
            said = self._method.look()
        return given.rows.moved(said.inner[None], said.outer_mean[None])[0]

    def learn_one(self, raw: Distribution, outcome: float) -> None:
        """Make a round of the last :meth:`predict_one`; without one, of a forecast made now."""
        told, given = check.real(outcome, "outcome"), _one(raw)
        with passing(self._gate):
            self._play_round(given, told)

    def _covered(self, ticket: QuantileTicket, outcome: float) -> list[int]:
        """Return which of the quantiles that were asked for cover an outcome."""
        u = coin(self._ties.key, ticket.number)
        pairs = zip(ticket.found, ticket.shares, strict=True)
        return [covers(x, share, outcome, u) for x, share in pairs]

    def _learn(self, ticket: QuantileTicket, outcome: float) -> None:
        self._method.learn(ticket, self._covered(ticket, outcome))
        self._seat.count_outcome(ticket.number)

    def correct(self, ticket: QuantileTicket, outcome: float) -> QuantileTicket:
        """Replace the outcome of a closed ticket that turned out to be wrong.

        Coverage is counted anew.  The tracker's levels move to where they would stand, were it not
        for what was announced since; calibrators of ``pit`` are corrected as binary ones are.

        The ticket is the one that :meth:`observe` returned, or what was stored of it: nothing is
        kept here of closed tickets.
        """
        return super().correct(ticket, outcome)

    def _correct(self, ticket: QuantileTicket, outcome: float) -> None:
        if len(ticket.found) != self._method.width:
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        assert ticket.outcome is not None
        before, after = (self._covered(ticket, told) for told in (ticket.outcome, outcome))
        self._method.amend(ticket, before, after)

    def coin_of(self, ticket: QuantileTicket, level: int | None = None) -> float:
        """Return the coin of a ticket's round, which decides about an outcome on an atom.

        With ``level``, the one that drew the chance ``ticket.drawn[level]``.  For audits.
        """
        if not isinstance(ticket, QuantileTicket) or ticket.whose != self._counter.whose:
            raise ForeignTicket(f"ticket must be of this recalibrator, got another's: {ticket!r}")
        if level is None:
            return coin(self._ties.key, ticket.number)
        return self._method.coin(self._secret, ticket, level)

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
        rows, told = _many(raw), finite(outcomes, "outcomes")
        check.same_length(raw=rows, outcomes=told)
        times(time, len(told))
        with passing(self._gate):
            first, levels, pending = self.issued, self._method.levels, Pending()
            if available is None and carry is None:
                played = self._method.play(rows, told, first, self._ties)
                self._seat.count_rounds(len(told))
                self._expire_old(first + len(told))
            else:
                raws = [rows[t] for t in range(len(told))]
                late = self._play_late(raws, told.tolist(), available, time, carry)
                played, pending = self._gathered(late[0]), late[1]
        ordered = np.sort(played.quantiles, axis=1)
        return QuantileRun(levels, ordered, played.quantiles, rows, *played[1:], first, pending)

    def _gathered(self, tickets: list[QuantileTicket]) -> Played:
        """Return what tickets announced as tables, a ticket a row."""
        if not tickets:
            return self._method.play(Distributions.normal([], []), np.empty(0), 0, self._ties)
        names = "tracked", "inner", "outer", "outer_mean", "drawn"
        return Played(*(np.stack([getattr(t, name) for t in tickets]) for name in names))

    # ------------------------------------------------------------------ state

    def certificate(self) -> QuantileCertificate:
        """Return what was measured at each level, and its bound beside it."""
        with passing(self._gate):
            rounds, waiting = self.rounds, len(self._counter)
            rows = self._method.rows(rounds, self.delay)
            told = rounds, waiting, self.issued - rounds - waiting, self.delay
            return QuantileCertificate(self.method, *told, rows)

    def _told(self) -> dict[str, Any]:
        told = {"method": self.method, "levels": len(self._method.levels)}
        return told | {"ties": self._ties_named} | self._method.options()

    def _settings(self) -> dict[str, Any]:
        told = {"method": self.method, "levels": self._method.levels.tolist()}
        return told | {"ties": self._ties_named, "options": self._method.options()}

    def _made_issuer(self, whose: str) -> Issuer:
        return Issuer(whose, self._method.levels, self._method.drawn)

    def _fields(self) -> str:
        width, drawn = self._method.width, self._method.drawn
        return "d" + "d" * (2 * width) + "q" * drawn + "d" * drawn

    def _sound(self, words: Words, reals: Reals) -> Mask:
        width = self._method.width
        found, shares = reals[:, :width], reals[:, width : 2 * width]
        fits = ~np.isnan(found).any(axis=1) & ((shares >= 0.0) & (shares <= 1.0)).all(axis=1)
        return fits & self._method.sound(words[:, 2 * width :], reals[:, 2 * width :])


def _one(raw: Any) -> Distribution:
    if not isinstance(raw, Distribution):
        raise InvalidType(f"raw forecast must be a Distribution, got {raw!r}")
    _not_moved(raw.rows)
    return raw


def _many(raw: Any) -> Distributions:
    if isinstance(raw, Distribution):
        raise InvalidType(f"raw forecasts must be Distributions or a list, got {raw!r}")
    rows = raw if isinstance(raw, Distributions) else _joined(raw)
    _not_moved(rows)
    return rows


def _joined(raw: Any) -> Distributions:
    given = [_one(each).rows for each in _listed(raw)]
    if not given:
        return Distributions.normal([], [])
    if len({(each.values.shape, each.levels.shape) for each in given}) > 1:
        raise InvalidInput("raw forecasts must be of one form and size to be replayed together")
    values, levels, inner = (
        np.concatenate(parts)
        for parts in zip(*((e.values, e.levels, e.inner) for e in given), strict=True)
    )
    shared = levels[:1] if (levels == levels[0]).all() else levels
    return Distributions(values, shared, inner, inner)


def _listed(raw: Any) -> list[Any]:
    try:
        return list(raw)
    except TypeError:
        told = f"Distributions or a list of Distribution, got {raw!r}"
        raise InvalidType(f"raw forecasts must be {told}") from None


def _not_moved(rows: Distributions) -> None:
    if rows.inner.shape[1]:
        raise InvalidInput(
            "raw forecast must be a normal distribution as it was given, got a recalibrated one"
        )
