"""Predictive distributions that become calibrated, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from calibrant.classes.waiting import Entry
from calibrant.core import check
from calibrant.core.gate import passing
from calibrant.core.ledger import MAX_OPEN
from calibrant.errors import InvalidInput, InvalidType
from calibrant.kernels.coin import coin
from calibrant.kernels.quantiles import covers
from calibrant.recalibrate.secret import block_key, secret_of
from calibrant.regression.base import Arrays, NumberForecaster, reals_of, words_of
from calibrant.regression.certificate import QuantileCertificate
from calibrant.regression.distribution import Distribution, Distributions
from calibrant.regression.level_method import LevelMethod, Said, Ties
from calibrant.regression.registry import quantile_methods
from calibrant.regression.rows import ask
from calibrant.regression.run import QuantileRun
from calibrant.regression.tables import Reals, finite, target_levels
from calibrant.regression.ticket import QuantileTicket

__all__ = ["TIES", "QuantileRecalibrator"]

TIES: Final = ("random", "below")


class QuantileRecalibrator(NumberForecaster[QuantileTicket]):
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
    Memory is proportional to the number of levels, and for each open ticket at most four numbers
    a level and sixteen more.  Safe to call from several threads: every call holds the object's
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
    >>> rec.observe(ticket, 24.1)
    >>> rec.forecast(Distribution.normal(20.0, 2.0)).quantiles.round(2).tolist()
    [17.46, 20.05, 22.78]
    """

    kind: ClassVar = "quantile recalibrator"

    def __init__(
        self,
        method: str = "pit",
        levels: Any = 19,
        *,
        ties: str = "random",
        seed: int | None = None,
        key: str | int | None = None,
        max_open: int = 100_000,
        **options: Any,
    ) -> None:
        made = quantile_methods.get(method)
        cap = check.whole(max_open, "max_open", low=1, high=MAX_OPEN)
        self._begin(made, target_levels(levels), ties, options, secret_of(seed, key), cap)

    def _begin(
        self,
        made: type[LevelMethod],
        levels: Reals,
        ties: str,
        options: dict[str, Any],
        secret: bytes,
        max_open: int,
    ) -> None:
        self._ties_named = check.choice(ties, "ties", TIES)
        self._ties = Ties(ties == "random", block_key(secret, 0))
        self._method = _made(made, levels, secret, max_open, options)
        self._set_up(secret, max_open, (made.name, levels.tolist(), ties))

    # ------------------------------------------------------------------ facts

    @property
    def method(self) -> str:
        """The name of the method."""
        return self._method.name

    @property
    def levels(self) -> Reals:
        """The levels that are followed."""
        return self._method.levels.copy()

    # -------------------------------------------------------------- one by one

    def forecast(
        self, raw: Distribution, *, id: str | None = None, time: float | None = None
    ) -> QuantileTicket:
        """Announce a recalibrated distribution, and keep a ticket for its outcome.

        Parameters
        ----------
        raw
            The distribution that a model gives.
        id
            A name for the ticket; by default its number.
        time
            When the forecast is made, in the caller's units.
        """
        given = _one(raw)
        with passing(self._gate):
            id, time = self._named(id, time)
            said = self._method.announce()
            found, shares = self._asked(given, said)
            ticket = QuantileTicket(self._issuer, self._issued, id, time)
            self._write(ticket, given, said, found)
            return self._keep(ticket, [*found.tolist(), *shares.tolist()], said.slot)

    def predict_one(self, raw: Distribution) -> Distribution:
        """Return the distribution that the next round would announce; change nothing."""
        given = _one(raw)
        with passing(self._gate):
            said = self._method.look()
            self._note()
        return given.rows.moved(said.inner[None], said.outer[None])[0]

    def learn_one(self, raw: Distribution, outcome: float) -> None:
        """Make a round of the last :meth:`predict_one`; without one, of a forecast made now."""
        told = check.real(outcome, "outcome")
        _one(raw)
        with passing(self._gate):
            self._check_fresh()
        self.observe(self.forecast(raw), told)

    def _asked(self, raw: Distribution, said: Said) -> tuple[Reals, Reals]:
        rows = raw.rows
        found, shares = ask(rows.values, rows.levels, said.asked[None], random=self._ties.random)
        return found[0], shares[0]

    def _write(self, ticket: QuantileTicket, raw: Distribution, said: Said, found: Reals) -> None:
        ticket.raw, ticket.levels = raw, self._method.levels
        ticket.tracked = found[-len(ticket.levels) :]
        ticket.quantiles = np.sort(ticket.tracked)
        ticket.inner, ticket.outer, ticket.outer_mean = said.inner, said.outer, said.outer_mean
        ticket.drawn = said.drawn

    def _settle(self, entry: Entry, kept: list[float], outcome: float) -> None:
        u, many = coin(self._ties.key, entry.number), self._method.width
        pairs = zip(kept[:many], kept[many:], strict=True)
        self._method.learn(entry.slot, [covers(x, share, outcome, u) for x, share in pairs])

    # ---------------------------------------------------------------- batches

    def replay(self, raw: Distributions | Sequence[Distribution], outcomes: Any) -> QuantileRun:
        """Play a whole batch of rounds, exactly as the calls one by one would.

        Parameters
        ----------
        raw
            A table of distributions, or a list of single ones that are all of one form.
        outcomes
            The numbers that came, one for each.
        """
        rows, told = _many(raw), finite(outcomes, "outcomes")
        check.same_length(raw=rows, outcomes=told)
        with passing(self._gate):
            first, levels = self._issued, self._method.levels
            played = self._method.play(rows, told, first, self._ties)
            self._count(len(told))
        ordered = np.sort(played.quantiles, axis=1)
        return QuantileRun(levels, ordered, played.quantiles, rows, *played[1:], first)

    # ------------------------------------------------------------------ state

    def certificate(self) -> QuantileCertificate:
        """Return what was measured at each level, and its bound beside it."""
        waiting = self.open
        with passing(self._gate):
            expired = self._issued - self._learned - waiting
            rows = self._method.rows(self._learned, self.delay)
            told = self._learned, waiting, expired, self.delay
            return QuantileCertificate(self.method, *told, rows)

    def _told(self) -> dict[str, Any]:
        told = {"method": self.method, "levels": len(self._method.levels)}
        return told | {"ties": self._ties_named} | self._method.options()

    def _state(self) -> tuple[dict[str, Any], Arrays]:
        own, arrays = self._method.state()
        settings = {"method": self.method, "ties": self._ties_named, "state": own}
        settings["options"] = self._method.options()
        return settings, arrays | {"levels": words_of(self._method.levels)}

    def _load(self, own: dict[str, Any], arrays: Arrays, secret: bytes, max_open: int) -> int:
        made, levels = (
            quantile_methods.get(own["method"]),
            target_levels(reals_of(arrays["levels"])),
        )
        self._begin(made, levels, own["ties"], own["options"], secret, max_open)
        self._method.load(own["state"], arrays)
        return 2 * self._method.width


def _made(
    made: type[LevelMethod], levels: Reals, secret: bytes, cap: int, options: dict[str, Any]
) -> LevelMethod:
    try:
        return made(levels, secret, cap, **options)  # type: ignore[call-arg]
    except InvalidType:
        raise
    except TypeError as error:
        told = ", ".join(repr(name) for name in options)
        raise InvalidType(f"options must be ones of method {made.name!r}, got {told}") from error


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
