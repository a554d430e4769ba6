"""Algorithm 1 with groups: one object whose draws are calibrated in every group at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from calibrant.bounds.game import probable
from calibrant.core import check
from calibrant.core.arrays import Bits, Reals
from calibrant.core.codec import Document
from calibrant.core.seal import opened, opened_data
from calibrant.errors import CorruptState, InvalidInput
from calibrant.groups.certificate import GroupCertificate, certificate_of, rows_of
from calibrant.groups.grouped import Grouped
from calibrant.groups.names import CheckingRules
from calibrant.groups.spec import KIND, GroupSpec, GroupTicket, names_again, written
from calibrant.kernels.layout import CELL
from calibrant.recalibrate.delivery import Pending, checked, times
from calibrant.recalibrate.in_turn import Answers
from calibrant.recalibrate.promise import FAILURE
from calibrant.recalibrate.run import Run
from calibrant.recalibrate.secret import secret_of, with_secret
from calibrant.recalibrate.stream import overtaken


class GroupRecalibrator(Grouped):
    """Turn raw forecasts into ones that are calibrated in every group, whatever the outcomes.

    A round belongs to the bucket of its raw forecast, as in Algorithm 1, and to any number of
    groups besides.  Each of them has a calibrator's gaps; the forecast is that of the two-point
    rule for the sum of their scores.

    Parameters
    ----------
    groups
        What is known of the groups beforehand; more may appear at any time.  None; names, for
        masks; a checking rule or several, functions of context and :class:`.History` that return
        the names that apply (:class:`.TimeIntervals` is one); or a mapping of names to rules that
        return True or False.
    form
        ``"l2"``: average gaps, no step size, bounds C2 in each group.  ``"exponential"``: bounds
        the largest gap of any cell in any group, for many small groups.
    resolution, grid
        Of the forecasts, as in :class:`calibrant.Recalibrator`.
    buckets, prior
        Number of buckets, and pseudo-rounds with which they start.  Groups start with nothing.
    horizon
        For how many rounds the rate of the exponential form is made.
    max_groups
        More groups than this are refused.
    max_open
        A ticket expires once this many newer forecasts have been made.
    seed, key, secret
        What the draws depend on, as in :class:`calibrant.Recalibrator`.

    Notes
    -----
    The drawn forecasts are calibrated in expectation against every adversary that does not see
    the draw before it chooses the outcome; the mean forecast is sharper and has no such promise.
    The cost of a round is proportional to the number of its groups.  Safe to call from several
    threads: every call holds the object's gate, also while rules run, which must not call it.

    References
    ----------
    Gupta, Jung, Noarov, Pai and Roth (2022), "Online multivalid learning"; Foster and Hart
    (2021), "Forecast hedging and calibration".

    Examples
    --------
    >>> rec = GroupRecalibrator(seed=7)
    >>> ticket = rec.forecast(0.83, groups=["north", "summer"])
    >>> ticket.value, ticket.groups
    (0.85, ('north', 'summer'))
    >>> _ = rec.observe(ticket, 1)
    >>> [row.group for row in rec.certificate().groups]
    ['north', 'summer']
    """

    kind: ClassVar = KIND

    __slots__ = ()

    def __init__(
        self,
        groups: Any = None,
        *,
        form: str = "l2",
        resolution: int = 20,
        grid: str = "endpoints",
        buckets: int = 20,
        prior: int = 1,
        horizon: int = 100_000,
        max_groups: int = 10_000,
        max_open: int = 1_000_000,
        seed: int | None = None,
        key: str | int | None = None,
        secret: bytes | None = None,
    ) -> None:
        spec = GroupSpec.made(form, resolution, grid, buckets, prior, horizon, max_groups)
        self._rules = CheckingRules(groups)
        self._begin(spec, secret_of(seed, key, secret), max_open)
        self._enter(self._rules.declared)
        self._entered = None

    # ---------------------------------------------------------------- one by one

    def forecast(
        self,
        raw: float,
        *,
        groups: Any = None,
        context: Any = None,
        id: str | None = None,
        time: check.When = None,
    ) -> GroupTicket:
        """Announce a calibrated forecast for a raw one, and keep a ticket for its outcome.

        Parameters
        ----------
        raw
            The raw forecast, in [0, 1].
        groups
            The groups of the round: a name or several (strings, whole numbers,
            :class:`.Period`), a mask over the declared ones, or a mapping of names to
            True and False.
        context
            Whatever the checking rules look at.
        id, time
            As in :meth:`calibrant.Recalibrator.forecast`.
        """
        asked = check.probability(raw), groups, context
        return cast(GroupTicket, self._forecast(asked, id, time))

    def observe(
        self, ticket: GroupTicket | int | str, outcome: int, time: check.When = None
    ) -> GroupTicket:
        """Report the outcome of an open ticket, given itself or its id; in any order.

        It counts in each of the ticket's groups, a period that is over excepted.  Returns the
        ticket with its outcome, which :meth:`correct` needs later.
        """
        return cast(GroupTicket, self._observe(ticket, check.outcome(outcome), time))

    def sample_one(self, raw: float, *, groups: Any = None, context: Any = None) -> float:
        """Return the draw that the next round with this raw forecast and groups would announce.

        Changes nothing; call :meth:`learn_one` with the same arguments to make it a round.
        """
        raw = check.probability(raw)
        with self._gate:
            names = self._names(groups, context, raw)
            note = self._look(raw, names)
            self._noted((raw, names), note)
        return self._issuer.values[note[0] & CELL]

    def predict_one(self, raw: float, *, groups: Any = None, context: Any = None) -> float:
        """Return the draw, as :meth:`sample_one` does: an older name for it."""
        return self.sample_one(raw, groups=groups, context=context)

    def predict_mean_one(self, raw: float, *, groups: Any = None, context: Any = None) -> float:
        """Return the mean that the next round with this raw forecast and groups would announce.

        Changes nothing, and notes nothing; the mean has no guarantee of its own.
        """
        raw = check.probability(raw)
        with self._gate:
            place, weight, *_ = self._look(raw, self._names(groups, context, raw))
            return self._rows.mean_of(place, weight)

    def learn_one(
        self, raw: float, outcome: int, *, groups: Any = None, context: Any = None
    ) -> None:
        """Make a round of the last :meth:`sample_one` with this raw forecast and groups.

        Without one, the round is drawn now.  Refused if a forecast in the same bucket came
        between: the announced draw would no longer be this round's.
        """
        raw, outcome = check.probability(raw), check.outcome(outcome)
        with self._gate:
            names = self._names(groups, context, raw)
            note: Any = self._notes.get((raw, names))
            if note is not None and not self._rows.committable(self._row, note, raw):
                del self._notes[raw, names]
                raise overtaken(raw)
            number = self.issued
            try:
                self._make_round(raw, outcome, names, note)
                self._notes.pop((raw, names), None)
                self._expire_old(self.issued)
            except BaseException:
                if self.issued == number:
                    self._leave(number)
                self._expire_old(self.issued)
                raise

    # ------------------------------------------------------------------- batches

    def replay(
        self,
        raw: Any,
        outcomes: Any,
        *,
        groups: Any = None,
        context: Any = None,
        available: Any = None,
        time: Any = None,
        carry: Pending | None = None,
        contexts: Any = None,
    ) -> Run:
        """Play a whole batch of rounds, exactly as the calls one by one would.

        Parameters
        ----------
        raw, outcomes
            Flat arrays of one length.
        groups
            The groups of each round: a column of names, which is quickest, or a list of
            what :meth:`forecast` takes, or a table of masks, or a dictionary of names to columns
            of True and False.
        context
            What the checking rules look at, one for each round.
        available, time, carry
            As in :meth:`calibrant.Recalibrator.replay`.
        contexts
            The old name of ``context``.

        Notes
        -----
        Rules that look at outcomes are asked round by round, in plain Python.  A rule
        with an attribute ``pure`` that is true looks at nothing in the history but ``issued`` and
        ``raw``, and is asked beforehand.  A batch that goes wrong on the way, in a rule or
        otherwise, changes nothing.
        """
        if context is not None and contexts is not None:
            raise InvalidInput("context must be given by one name, got contexts as well")
        raws, told = check.probabilities(raw), check.outcomes(outcomes)
        check.same_length(raw=raws, outcomes=told)
        contexts = contexts if context is None else context
        contexts = [None] * len(raws) if contexts is None else contexts
        contexts = check.listed(contexts, "context", "have one entry for each round", plain=False)
        check.same_length(raw=raws, context=contexts)
        times(time, len(raws))
        late = available is not None or carry is not None
        if carry is not None:
            checked(carry)
        when = (available, time, carry) if late else None
        with self._gate:
            first = self.issued
            if not late:
                self._rows.check_room(self._row, len(raws))
            forecast, means, left = self._whole(
                lambda: self._played_in_groups(raws, told, groups, contexts, when)
            )
        return Run(forecast, means, self.buckets, raws, first, left)

    def play(
        self,
        kind: Any,
        id: Any,
        x: Any,
        time: Any = None,
        *,
        groups: Any = None,
        context: Any = None,
    ) -> Answers:
        """Play a log of forecasts and outcomes in its order, as the calls one by one would.

        Parameters
        ----------
        kind, id, x, time
            As in :meth:`calibrant.Recalibrator.play`.
        groups, context
            As in :meth:`replay`, an entry for each event; those of outcomes are not looked at.
        """
        listed = x if groups is None and context is None else check.listed(x, "x")
        names = None if groups is None else rows_of(groups, len(listed), self._rules.declared)
        known = None if context is None else check.listed(context, "context", plain=False)
        if known is not None:
            check.same_length(x=listed, context=known)

        def asked(raw: Any, event: int) -> tuple[float, Any, Any]:
            own = None if names is None else names[event]
            return check.probability(raw), own, None if known is None else known[event]

        return self._log(kind, id, listed, time, asked)

    def forecast_many(
        self, raw: Any, *, groups: Any = None, context: Any = None, id: Any = None, time: Any = None
    ) -> Answers:
        """Announce many forecasts, one after the other, and keep a ticket for each."""
        values = check.probabilities(raw).tolist()
        kinds = np.zeros(len(values), np.int64)
        return self.play(kinds, id, values, time, groups=groups, context=context)

    def _played_in_groups(
        self, raws: Reals, told: Bits, groups: Any, contexts: list[Any], when: Any
    ) -> tuple[Reals, Reals, Pending]:
        """Play a batch; return what was drawn, what was expected, and what is pending."""
        first, left = self.issued, Pending()
        if when is None and self._rules.pure:
            forecast, means = self._replay_ahead(raws, told, groups, contexts)
        else:
            names = rows_of(groups, len(raws), self._rules.declared)
            asked = list(zip(raws.tolist(), names, contexts, strict=True))
            if when is None:
                made = self._replay_rows(asked, told.tolist())
            else:
                tickets, left = self._play_late(asked, told.tolist(), *when)
                made = [(ticket.value, ticket.mean) for ticket in tickets]
            forecast, means = np.array(made, np.float64).reshape(-1, 2).T.copy()
        self._expire_old(first + len(raws))
        return forecast, means, left

    # --------------------------------------------------------------------- state

    def certificate(self, failure: float = FAILURE) -> GroupCertificate:
        """Return what was measured so far in each group, with each theorem's bound beside it.

        What is said to hold about this very run may fail with probability ``failure``.
        """
        chance = probable(failure)
        with self._gate:
            flat, names = self._arena.snapshot(), self._roster.names()
            own, blocks, waiting = flat[self._row :], self._blocks(flat), len(self._counter)
        made = certificate_of(self._spec, own, blocks, names, waiting, chance)
        return replace(made, seeded=self._secret.seeded)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        groups: Any = None,
        *,
        secret: Any = None,
        key: Any = None,
        authenticate: bytes | None = None,
    ) -> Self:
        """Return the recalibrator whose :meth:`to_bytes` this is; give it its rules again.

        And its ``secret`` and ``key``, if it was stored without the secret.
        """
        state = opened(data, authenticate)
        document = Document.from_bytes(state, cls.kind, cls.version)
        return cls._from_document(with_secret(document, secret, key), groups)

    @classmethod
    def from_dict(
        cls,
        data: dict[str, Any],
        groups: Any = None,
        *,
        secret: Any = None,
        key: Any = None,
        authenticate: bytes | None = None,
    ) -> Self:
        """Return the recalibrator whose :meth:`to_dict` this is, as :meth:`from_bytes` does."""
        state = opened_data(data, authenticate)
        document = Document.from_dict(state, cls.kind, cls.version)
        return cls._from_document(with_secret(document, secret, key), groups)

    def copy(self) -> Self:
        """Return an independent recalibrator in the same state, with the same rules."""
        return self._from_document(self._document(), self._rules.given)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(), self._rules.given)

    @classmethod
    def _from_document(cls, document: Document, groups: Any = None) -> Self:
        made = cls.__new__(cls)
        count, told = (document.settings.get(name) for name in ("rules", "declared"))
        try:
            again = names_again(told) if isinstance(told, list) else None
        except TypeError as error:
            raise CorruptState(f"state must hold names of groups, got {error}") from error
        made._rules = CheckingRules(again if groups is None else groups)
        rules, names = len(made._rules.rules), [written(name) for name in made._rules.declared]
        if (rules, names) != (count, told):
            way = ": give them again, by load(data, groups=...) or {}.from_bytes(data, groups=...)"
            raise InvalidInput(
                f"groups must be the {count} rules and the names {told} that the state was "
                f"made with, got {rules} and {names}"
                + (way.format(cls.__name__) if groups is None else "")
            )
        made._become(document)
        return made

    def __repr__(self) -> str:
        rule = self.calibrator
        return (
            f"GroupRecalibrator(form={rule.form!r}, resolution={rule.resolution}, "
            f"buckets={self.buckets}, groups={len(self._roster)}, rounds={self.rounds})"
        )
