"""Algorithm 1 with groups: one object whose draws are calibrated in every group at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from calibrant import bounds
from calibrant.calibrators.base import MAX_BUCKETS, MAX_GAP, MAX_PRIOR
from calibrant.calibrators.storage import Storage
from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.core.gate import Gate, passing
from calibrant.core.ledger import MAX_OPEN
from calibrant.core.place import bucket as bucket_of
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import (
    CorruptState,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    StaleForecast,
)
from calibrant.groups.certificate import GroupCertificate, GroupRow, row_of, rows_of
from calibrant.groups.checking import RECENT, CheckingRules, History
from calibrant.groups.names import Name, Period, Roster, names_of
from calibrant.groups.rule import FORMS, GroupRule
from calibrant.groups.ticket import GroupLedger, GroupTicket, read, written
from calibrant.kernels.coin import coin
from calibrant.kernels.groups import FIRST, LOGS, MEMBERSHIPS, gather, learn, revise
from calibrant.kernels.layout import (
    BLOCKS,
    CELLS,
    CHARGED,
    CLOCK,
    HEAD,
    INDEX,
    KEY,
    LOSS,
    POSITION,
    SCALE,
    SCRATCH,
    STRIDE,
    TABLE,
    pack,
)
from calibrant.kernels.scores import bill, charge
from calibrant.kernels.two_point import mean
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.run import Run
from calibrant.recalibrate.secret import block_key, fingerprint, secret_of

__all__ = ["GroupRecalibrator"]

MAX_GROUPS: Final = 1 << 20
SHORT: Final = 20_000
"""Batches up to this long do not start the compiler: it would take longer than they do."""
LOOKS: Final = 256
"""How many predictions without an outcome are remembered."""


class GroupRecalibrator:
    """Turn raw forecasts into ones that are calibrated in every group, whatever the outcomes.

    A round belongs to the bucket of its raw forecast, as in Algorithm 1, and to any number of
    groups besides.  Each of them has a calibrator's gaps; the forecast is that of the two-point
    rule for the sum of their scores.

    Parameters
    ----------
    groups
        What is known of the groups beforehand; more may appear at any time.  None; names, for
        masks; a checking rule or several, functions of context and :class:`History` that return
        the names that apply (:class:`TimeIntervals` is one); or a mapping of names to rules that
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
    seed, key
        What the draws depend on, besides the order of forecasts.

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

    kind: ClassVar = "group recalibrator"

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
    ) -> None:
        settings = {
            "form": check.choice(form, "form", FORMS),
            "resolution": resolution,
            "grid": grid,
            "buckets": check.whole(buckets, "buckets", low=1, high=MAX_BUCKETS),
            "prior": check.whole(prior, "prior", high=MAX_PRIOR),
            "horizon": check.whole(horizon, "horizon", low=1),
            "max_groups": check.whole(max_groups, "max_groups", low=1, high=MAX_GROUPS),
            "max_open": check.whole(max_open, "max_open", low=1, high=MAX_OPEN),
        }
        self._set_up(settings, CheckingRules(groups), secret_of(seed, key))
        self._enter(self._rules.declared)

    def _set_up(self, settings: dict[str, Any], rules: CheckingRules, secret: bytes) -> None:
        self._settings, self._rules, self._secret = settings, rules, secret
        self._buckets, self._prior = settings["buckets"], settings["prior"]
        self._rule = _rule(settings)
        flat = self._fresh()
        self._cells, self._table, self._stride = map(int, flat[[CELLS, TABLE, STRIDE]])
        self._start = int(flat[BLOCKS])
        if (self._buckets + settings["max_groups"]) * self._stride > INDEX:
            most = INDEX // self._stride - self._buckets
            raise InvalidInput(
                f"max_groups must be at most {most} at this resolution and number of buckets, "
                f"got {settings['max_groups']}"
            )
        self._storage = Storage(self._rule, flat)
        # Rounds beyond which a gap could leave 63 bits.
        self._capacity = MAX_GAP // int(flat[SCALE]) - self._prior
        self._roster, self._rooms = Roster(settings["max_groups"]), 0
        told = [settings[name] for name in ("form", "resolution", "grid", "buckets", "prior")]
        self._issuer = Issuer(fingerprint(secret, self.kind, *told), self._rule.lattice)
        self._ledger = GroupLedger(self._issuer, settings["max_open"])
        self._ticketed = self._observed = self._booked = 0
        self._lag = self._crowd = 0
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT)
        self._looks: dict[tuple[float, tuple[Name, ...]], tuple[int, int]] = {}
        self._gate: Gate = [None]

    # ------------------------------------------------------------------ facts

    @property
    def calibrator(self) -> GroupRule:
        """The rule that runs in every bucket and group."""
        return self._rule

    @property
    def buckets(self) -> int:
        """Number of buckets M."""
        return int(self._buckets)

    @property
    def prior(self) -> int:
        """Pseudo-rounds with which buckets start."""
        return int(self._prior)

    @property
    def groups(self) -> tuple[Name, ...]:
        """All groups so far, in the order in which they appeared."""
        return tuple(self._roster.names())

    @property
    def rounds(self) -> int:
        """Outcomes learned so far."""
        return self._observed + self._booked

    @property
    def issued(self) -> int:
        """Forecasts made so far."""
        return self._ticketed + self._booked

    @property
    def open(self) -> int:
        """Tickets that wait for their outcome."""
        with passing(self._gate):
            self._ledger.sweep(self.issued)
            return len(self._ledger)

    @property
    def delay(self) -> int:
        """How many outcomes that came later were outstanding when a forecast was made, at most."""
        return min(self._lag, self._crowd)

    # ---------------------------------------------------------------- one by one

    def forecast(
        self,
        raw: float,
        *,
        groups: Any = None,
        context: Any = None,
        id: str | None = None,
        time: float | None = None,
    ) -> GroupTicket:
        """Announce a calibrated forecast for a raw one, and keep a ticket for its outcome.

        Parameters
        ----------
        raw
            The raw forecast, in [0, 1].
        groups
            The groups of the round: a name or several (strings, whole numbers,
            :class:`Period`), a mask over the declared ones, or a mapping of names to
            True and False.
        context
            Whatever the checking rules look at.
        id
            A name for the ticket; by default its number.
        time
            When the forecast is made, in the caller's units.
        """
        raw = check.probability(raw)
        if id is not None and (not isinstance(id, str) or not id):
            raise InvalidType(f"id must be a string that is not empty, got {id!r}")
        when = None if time is None else check.real(time, "time")
        with passing(self._gate):
            number = self.issued
            if id is not None and self._ledger.holds(id, number):
                raise RepeatedTicket(f"id must not be that of an open ticket, got {id!r}")
            names = self._names(groups, context, raw)
            bucket, clock, (cell, side, weight) = self._announce(raw, names)
            named = number if id is None else id
            place = pack(bucket, cell, side)
            ticket = GroupTicket(self._issuer, named, number, place, weight, raw, when, clock, None)
            ticket.groups = names
            self._crowd = max(self._crowd, self._ticketed - self._observed)
            self._ticketed += 1
            self._ledger.add(ticket, number)
        return ticket

    def observe(
        self, ticket: GroupTicket | int | str, outcome: int, time: float | None = None
    ) -> GroupTicket:
        """Report the outcome of an open ticket, given itself or its id; in any order.

        It counts in each of the ticket's groups, a period that is over excepted.  Returns the
        ticket with its outcome, which :meth:`correct` needs later.
        """
        outcome = check.outcome(outcome)
        told = None if time is None else check.real(time, "time")
        with passing(self._gate):
            found = self._found(ticket)
            if told is not None and found.time is not None and told < found.time:
                raise InvalidInput(
                    f"time must not be before the forecast's {found.time!r}, got {told!r}"
                )
            self._list(found.bucket, self._roster.running(found.groups))
            self._learn(found.raw, found.index, outcome)
            self._ledger.close(found)
            self._lag = max(self._lag, self.issued - 1 - found.number)
            self._observed += 1
            found.outcome = outcome
            if isinstance(ticket, GroupTicket):
                ticket.outcome = outcome
        return found

    def correct(self, ticket: GroupTicket, outcome: int) -> GroupTicket:
        """Replace the outcome of a closed ticket that turned out to be wrong.

        The ticket is the one that :meth:`observe` returned: it carries what is needed, and
        nothing is kept of closed tickets.
        """
        outcome = check.outcome(outcome)
        with passing(self._gate):
            self._ledger.check_closed(ticket, outcome, self.issued)
            self._check_place(ticket, outcome)
            words = self._list(ticket.bucket, self._roster.running(ticket.groups))
            at, change = words[SCRATCH], 2 * outcome - 1
            revise(words, words, at, self._table, ticket.index, change)
            words[CHARGED] -= charge(words[LOSS], ticket.raw, 1 - outcome)
            bill(words, words, ticket.raw, outcome)
            ticket.outcome = outcome
        return ticket

    def coin_of(self, ticket: GroupTicket) -> float:
        """Return the coin that decided a ticket's draw: ``ticket.mixture.draw(coin)`` is its index.

        For audits.
        """
        self._ledger.check_issuer(ticket)
        if ticket.clock is None:
            raise InvalidInput(f"ticket must be the one that forecast() returned, got {ticket!r}")
        return coin(block_key(self._secret, ticket.bucket), ticket.clock)

    def predict_one(self, raw: float, *, groups: Any = None, context: Any = None) -> float:
        """Return the draw that the next round with this raw forecast and groups would announce.

        Changes nothing; call :meth:`learn_one` with the same arguments to make it a round.
        """
        raw = check.probability(raw)
        with passing(self._gate):
            names = self._names(groups, context, raw)
            bucket = bucket_of(raw, self._buckets)
            words = self._list(bucket, self._roster.running(names))
            cell, _, _ = self._draw(words)
            self._looks.pop((raw, names), None)
            self._looks[raw, names] = words[words[words[SCRATCH] + FIRST] + CLOCK], cell
            if len(self._looks) > LOOKS:
                del self._looks[next(iter(self._looks))]
        return self._issuer.values[cell]

    def learn_one(
        self, raw: float, outcome: int, *, groups: Any = None, context: Any = None
    ) -> None:
        """Make a round of the last :meth:`predict_one` with this raw forecast and groups.

        Without one, the round is drawn now.  Refused if a forecast in the same bucket came
        between: the announced draw would no longer be this round's.
        """
        raw, outcome = check.probability(raw), check.outcome(outcome)
        with passing(self._gate):
            self._book(raw, outcome, self._names(groups, context, raw))

    # ------------------------------------------------------------------- batches

    def replay(self, raw: Any, outcomes: Any, *, groups: Any = None, contexts: Any = None) -> Run:
        """Play a whole batch of rounds, exactly as the calls one by one would.

        Parameters
        ----------
        raw, outcomes
            Flat arrays of one length.
        groups
            The groups of each round: a column of names, which is quickest, or a list of
            what :meth:`forecast` takes, or a table of masks, or a dictionary of names to columns
            of True and False.
        contexts
            What the checking rules look at, one for each round.

        Notes
        -----
        Rules that look at outcomes are asked round by round, in plain Python.  A rule
        with an attribute ``pure`` that is true looks at nothing in the history but ``issued`` and
        ``raw``, and is asked beforehand.
        """
        raws, told = check.probabilities(raw), check.outcomes(outcomes)
        check.same_length(raw=raws, outcomes=told)
        given = [None] * len(raws) if contexts is None else list(contexts)
        check.same_length(raw=raws, contexts=given)
        with passing(self._gate):
            first = self.issued
            self._check_room(len(raws))
            if self._rules.pure:
                forecast, means = self._replay_ahead(raws, told, groups, given)
            else:
                with self._undone_on_error():
                    forecast, means = self._replay_rows(raws, told, groups, given)
        return Run(forecast, means, self._buckets, raws, first, Pending())

    def _replay_rows(
        self, raw: NDArray[np.float64], outcomes: NDArray[np.uint8], groups: Any, contexts: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        forecast, means = np.empty(len(raw)), np.empty(len(raw))
        given = rows_of(groups, len(raw), self._rules.declared)
        rows = zip(raw.tolist(), outcomes.tolist(), given, contexts, strict=True)
        for t, (p, y, names, context) in enumerate(rows):
            forecast[t], means[t] = self._book(p, y, self._names(names, context, p), False)
        return forecast, means

    def _replay_ahead(
        self, raw: NDArray[np.float64], outcomes: NDArray[np.uint8], groups: Any, contexts: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        forecast, means = np.empty(len(raw)), np.empty(len(raw))
        roster = self._roster.copy()
        offsets, members = self._columns(roster, raw, groups, contexts)
        self._roster = roster
        self._reserve()
        made = self._rule.score.__dict__.get("machine")
        if made is None and len(raw) > SHORT:
            made = self._rule.score.machine
        if made is not None:
            flat = self._storage.flat()
            columns = raw, outcomes, offsets, members, forecast, means
            made.replay(flat, flat.view(np.float64), *columns)
        else:
            words = self._storage.words()
            lists = [part.tolist() for part in (raw, outcomes, offsets, members)]
            self._rule.score.replay(words, words, *lists, forecast, means)
        self._booked += len(raw)
        last = slice(max(len(raw) - RECENT, 0), None)
        self._recent.extend(zip(forecast[last].tolist(), outcomes[last].tolist(), strict=True))
        return forecast, means

    def _columns(
        self, roster: Roster, raw: NDArray[np.float64], groups: Any, contexts: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where each round's groups start in one list, and the list."""
        rows = len(raw)
        plain = isinstance(groups, np.ndarray) and groups.ndim == 1 and groups.dtype.kind in "iuU"
        if plain and not self._rules.rules:
            check.same_length(raw=raw, groups=groups)
            return np.arange(rows + 1), roster.enter_column(groups)
        given = rows_of(groups, rows, self._rules.declared)
        if self._rules.rules:
            given = self._with_rules(raw.tolist(), given, contexts)
        # Places of names that come again; a period has to be looked at each time.
        known: dict[tuple[Name, ...], list[int]] = {}
        sizes, members = np.zeros(rows + 1, np.int64), list[int]()
        for t, names in enumerate(given):
            if (codes := known.get(names)) is None:
                codes = roster.enter(names)
                if not any(isinstance(name, Period) for name in names):
                    known[names] = codes
            sizes[t + 1] = len(codes)
            members += codes
        return np.cumsum(sizes), np.array(members, np.int64)

    def _with_rules(
        self, raw: list[float], given: list[tuple[Name, ...]], contexts: Any
    ) -> list[tuple[Name, ...]]:
        """Add the names of rules that need not wait for outcomes."""
        issued, rounds, found = self.issued, self.rounds, []
        for t, (p, names, context) in enumerate(zip(raw, given, contexts, strict=True)):
            history = History(issued + t, rounds + t, p, ())
            found.append(self._rules.names(names, context, history))
        return found

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """Put everything back if something in the block goes wrong."""
        before = self._document()
        try:
            yield
        except BaseException:
            gate = self._gate
            self._restore(before, self._rules)
            self._gate = gate
            raise

    # --------------------------------------------------------------------- state

    def certificate(self) -> GroupCertificate:
        """Return what was measured so far in each group, with each theorem's bound beside it."""
        with passing(self._gate):
            self._ledger.sweep(self.issued)
            flat = self._storage.flat()
            counts, ones = self._counted(flat)
            own = slice(self._buckets)
            values, rounds = self._rule.lattice.values, self.rounds
            all_rounds = row_of("all", values, counts[own].sum(0), ones[own].sum(0), None)
            hits, visits = ones[own].sum(0), counts[own].sum(0)
            lost = float(hits @ (1.0 - values) ** 2 + (visits - hits) @ values**2)
            largest = float(np.abs(ones - counts * values).max())
            return GroupCertificate(
                form=self._rule.form,
                rounds=rounds,
                open=len(self._ledger),
                expired=self.issued - rounds - len(self._ledger),
                delay=self.delay,
                memberships=int(flat[MEMBERSHIPS]),
                c1=all_rounds.c1,
                c2=all_rounds.c2,
                loss=lost / max(rounds, 1),
                raw_loss=float(flat.view(np.float64)[CHARGED]) / max(rounds, 1),
                groups=self._rows(counts, ones),
                largest_gap=largest / max(rounds, 1),
                largest_gap_bound=self._gap_bound(),
            )

    def _rows(self, counts: NDArray[np.int64], ones: NDArray[np.int64]) -> tuple[GroupRow, ...]:
        """Return a row for each group; no error is above 1, whatever a theorem says."""
        groups, values = slice(self._buckets, None), self._rule.lattice.values
        total = self._promised(counts, ones)
        return tuple(
            row_of(name, values, n, y, min(total / n.sum(), 1.0) if total and n.any() else None)
            for name, n, y in zip(self._roster.names(), counts[groups], ones[groups], strict=True)
        )

    def _promised(self, counts: NDArray[np.int64], ones: NDArray[np.int64]) -> float | None:
        """Return the bound on C2 (l2) or C1 of a group, times its rounds."""
        if self.rounds == 0:
            return None
        if self._rule.form == "exponential":
            gap = self._gap_bound()
            return None if gap is None else gap * self._cells * self.rounds
        flat = self._storage.flat()
        memberships, logs = int(flat[MEMBERSHIPS]), float(flat.view(np.float64)[LOGS])
        n, centres = counts[: self._buckets], np.array([float(c) for c in self._centres()])
        means = ones[: self._buckets] / np.maximum(n, 1)
        bias = self._prior * n / np.maximum(n + self._prior, 1) * (means - centres[:, None]) ** 2
        bound = bounds.group_average_gap_measured(
            memberships,
            logs,
            self._rule.lattice.half_cell,
            rounds=self.rounds,
            bias=float(bias.sum()),
            delay=self.delay,
        )
        return bound.value * self.rounds

    def _gap_bound(self) -> float | None:
        if self._rule.form == "l2" or self.rounds == 0 or self.delay > 0:
            return None
        return bounds.multivalid_gap(
            self.rounds,
            self._cells,
            self._rule.lattice.half_cell,
            groups=self._buckets + len(self._roster),
            rate=self._rule.rate,
            prior=self._prior,
        )

    def to_bytes(self) -> bytes:
        """Return the whole state, rules excepted; treat it as secret: it holds the key of coins."""
        with passing(self._gate):
            return self._document().to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, groups: Any = None) -> Self:
        """Return the recalibrator whose :meth:`to_bytes` this is; give it its rules again."""
        return cls._from_document(Document.from_bytes(data, cls.kind), groups)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON-ready data, rules excepted; treat it as secret."""
        with passing(self._gate):
            return self._document().to_dict()

    @classmethod
    def from_dict(cls, data: dict[str, Any], groups: Any = None) -> Self:
        """Return the recalibrator whose :meth:`to_dict` this is; give it its rules again."""
        return cls._from_document(Document.from_dict(data, cls.kind), groups)

    def copy(self) -> Self:
        """Return an independent recalibrator in the same state, with the same rules."""
        return type(self).from_bytes(self.to_bytes(), self._rules.given)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GroupRecalibrator):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"GroupRecalibrator(form={self._rule.form!r}, resolution={self._rule.resolution}, "
            f"buckets={self._buckets}, groups={len(self._roster)}, rounds={self.rounds})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(), self._rules.given)

    # ------------------------------------------------------------------ internals

    def _names(self, groups: Any, context: Any, raw: float) -> tuple[Name, ...]:
        if not self._rules.rules:
            return names_of(groups, self._rules.declared)
        history = History(self.issued, self.rounds, raw, tuple(self._recent))
        return self._rules.names(groups, context, history)

    def _enter(self, names: tuple[Name, ...]) -> list[int]:
        """Give new groups their places, and the storage room for them."""
        self._check_room(1)
        codes = self._roster.enter(names)
        self._reserve()
        return codes

    def _reserve(self) -> None:
        """Make the storage large enough for all groups, with some room to grow."""
        if len(self._roster) > self._rooms:
            more = min(len(self._roster) * 3 // 2 + 16, self._roster.most) - self._rooms
            room = np.zeros(more * self._stride, np.int64)
            self._storage = Storage(self._rule, np.concatenate([self._storage.flat(), room]))
            self._rooms += more

    def _list(self, bucket: int, codes: list[int]) -> list[Any]:
        """List the blocks of a round; return the words."""
        words = self._storage.words()
        gather(words, words, words[SCRATCH], bucket, codes, 0, len(codes))
        return words

    def _draw(self, words: list[Any]) -> tuple[int, int, float]:
        at = words[SCRATCH]
        own = words[at + FIRST]
        u = coin(words[own + KEY], words[own + CLOCK])
        return self._rule.score.draw(words, words, at, self._cells, self._table, u)

    def _announce(
        self, raw: float, names: tuple[Name, ...], cell: int | None = None
    ) -> tuple[int, int, tuple[int, int, float]]:
        """Make a forecast, or the one that was looked at; return bucket, clock and draw."""
        bucket, codes = bucket_of(raw, self._buckets), self._enter(names)
        words = self._list(bucket, codes)
        drawn = self._draw(words) if cell is None else (cell, 0, 1.0)
        own = words[words[SCRATCH] + FIRST]
        clock = words[own + CLOCK]
        words[own + POSITION] = drawn[0]
        words[own + CLOCK] = clock + 1
        return bucket, clock, drawn

    def _learn(self, raw: float, cell: int, outcome: int) -> None:
        """Learn an outcome in the blocks that are listed."""
        words = self._storage.words()
        learn(words, words, words[SCRATCH], self._table, cell, outcome)
        bill(words, words, raw, outcome)
        self._recent.append((self._issuer.values[cell], outcome))

    def _book(
        self, raw: float, outcome: int, names: tuple[Name, ...], looked: bool = True
    ) -> tuple[float, float]:
        """Make a round; return its draw and mean."""
        noted = self._looks.pop((raw, names), None) if looked else None
        words, bucket = self._storage.words(), bucket_of(raw, self._buckets)
        clock = words[self._start + bucket * self._stride + CLOCK]
        if noted is not None and noted[0] != clock:
            raise StaleForecast(
                f"a forecast in the bucket of {raw!r} came between predict_one and learn_one; "
                "use forecast and observe where rounds overlap"
            )
        seen = None if noted is None else noted[1]
        _, _, (cell, side, weight) = self._announce(raw, names, seen)
        self._learn(raw, cell, outcome)
        self._booked += 1
        words = self._storage.words()
        middle = mean(words, words, self._cells, self._table, cell, side, weight)
        return self._issuer.values[cell], middle

    def _found(self, ticket: Any) -> GroupTicket:
        return cast(GroupTicket, self._ledger.find(ticket, self.issued))

    def _check_place(self, ticket: Ticket, outcome: int) -> None:
        """Raise if a closed ticket cannot have been ours, or was corrected before."""
        inside = ticket.bucket < self._buckets and ticket.index < self._cells
        if not isinstance(ticket, GroupTicket) or not inside:
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        words, bucket = self._storage.words(), ticket.bucket
        where = self._start + bucket * self._stride + HEAD + 2 * ticket.index
        value, scale = words[self._table + ticket.index], words[SCALE]
        # What the prior put there, exactly: the centre is (2j + 1) / 2M, and 2M divides the scale.
        centre = scale * (2 * bucket + 1) // (2 * self._buckets)
        count = words[where + 1] - self._prior
        one = (words[where] - self._prior * (centre - value) + count * value) // scale
        if not 0 <= one + 2 * outcome - 1 <= count:
            raise RepeatedTicket(
                f"outcome {1 - outcome} must have been counted where it is corrected, "
                f"got {one} ones in {count} rounds: was it corrected already?"
            )

    def _check_room(self, rounds: int) -> None:
        if self.issued + rounds > self._capacity:
            raise InvalidInput(
                f"rounds must be at most {self._capacity} at this resolution and number of "
                f"buckets, got {self.issued + rounds}"
            )

    def _centres(self) -> list[Fraction]:
        return [Fraction(2 * j + 1, 2 * self._buckets) for j in range(self._buckets)]

    def _fresh(self) -> NDArray[np.int64]:
        keys = [block_key(self._secret, j) for j in range(self._buckets)]
        return self._rule.flat(self._buckets, prior=self._prior, centres=self._centres(), keys=keys)

    def _blocks(self, flat: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the blocks of all buckets and groups, one a row."""
        last = self._start + (self._buckets + len(self._roster)) * self._stride
        return flat[self._start : last].reshape(-1, self._stride)

    def _counted(self, flat: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rounds and ones of each block (row) and grid point, prior left out."""
        cells = slice(HEAD, HEAD + 2 * self._cells)
        gained = self._blocks(flat)[:, cells].copy()
        fresh = self._fresh()[self._start :].reshape(-1, self._stride)
        gained[: self._buckets] -= fresh[:, cells]
        gaps, counts = gained[:, 0::2], gained[:, 1::2]
        numerators = flat[self._table : self._table + self._cells]
        return counts, (gaps + counts * numerators) // flat[SCALE]

    # ------------------------------------------------------------------- documents

    def _document(self) -> Document:
        flat, issued = self._storage.flat(), self.issued
        reals = flat.view(np.float64)
        self._ledger.sweep(issued)
        state = {
            "secret": self._secret.hex(),
            "issued": issued,
            "learned": self.rounds,
            "lag": self._lag,
            "crowd": self._crowd,
            "memberships": int(flat[MEMBERSHIPS]),
            "logs": float(reals[LOGS]).hex(),
            "charged": float(reals[CHARGED]).hex(),
            "rules": len(self._rules.rules),
            "declared": [written(name) for name in self._rules.declared],
            "groups": [written(name) for name in self._roster.names()],
            "recent": [[value, outcome] for value, outcome in self._recent],
            "tickets": [ticket.to_dict() for ticket in self._ledger.young.values()],
        }
        arrays = {"blocks": self._blocks(flat).reshape(-1).copy()}
        return Document(self.kind, self._settings | state, arrays)

    @classmethod
    def _from_document(cls, document: Document, groups: Any) -> Self:
        made = cls.__new__(cls)
        told = document.settings.get("declared")
        rules = CheckingRules(groups if groups is not None else _again(told))
        made._restore(document, rules)
        return made

    def _restore(self, document: Document, rules: CheckingRules) -> None:
        s = document.settings
        _check_rules(rules, s.get("rules"), s.get("declared"))
        try:
            settings = {name: s[name] for name in SETTINGS}
            self._set_up(settings, rules, bytes.fromhex(s["secret"]))
            self._ticketed = check.whole(s["issued"], "issued")
            self._observed = check.whole(s["learned"], "learned", high=self._ticketed)
            self._lag, self._crowd = check.whole(s["lag"], "lag"), check.whole(s["crowd"], "crowd")
            for part in s["groups"]:
                self._roster.enter(names_of([read(part)]))
            self._reserve()
            self._load_words(s, document.arrays["blocks"])
            self._recent.extend(
                (check.probability(value), check.outcome(outcome)) for value, outcome in s["recent"]
            )
            for part in s["tickets"]:
                ticket = GroupTicket.from_dict(part).issued_by(self._issuer)
                self._ledger.young[ticket.id] = ticket
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise CorruptState(f"state must be of a group recalibrator, got {error}") from error

    def _load_words(self, s: dict[str, Any], words: NDArray[np.int64]) -> None:
        flat = self._storage.flat()
        flat[MEMBERSHIPS] = check.whole(s["memberships"], "memberships")
        flat.view(np.float64)[[LOGS, CHARGED]] = [float.fromhex(s[k]) for k in ("logs", "charged")]
        blocks = self._blocks(flat)
        kept = words.reshape(blocks.shape)
        own = kept[: self._buckets]
        if (own[:, KEY] != blocks[: self._buckets, KEY]).any():
            raise ValueError("buckets with other coins")
        if ((own[:, POSITION] < 0) | (own[:, POSITION] >= self._cells)).any():
            raise ValueError("positions off the grid")
        blocks[:] = kept


SETTINGS: Final = (
    "form",
    "resolution",
    "grid",
    "buckets",
    "prior",
    "horizon",
    "max_groups",
    "max_open",
)


def _rule(settings: dict[str, Any]) -> GroupRule:
    plain = GroupRule(
        form=settings["form"], resolution=settings["resolution"], grid=settings["grid"]
    )
    if plain.form == "l2":
        return plain
    cells, most = plain.lattice.cells, settings["buckets"] + settings["max_groups"]
    rate = bounds.multivalid_rate(settings["horizon"], cells, most)
    return GroupRule(form=plain.form, resolution=plain.resolution, grid=settings["grid"], rate=rate)


def _again(declared: Any) -> Any:
    return [read(part) for part in declared] if isinstance(declared, list) else None


def _check_rules(rules: CheckingRules, count: Any, declared: Any) -> None:
    if len(rules.rules) != count or [written(name) for name in rules.declared] != declared:
        raise InvalidInput(
            f"groups must be the {count} rules and the names {declared} that the state was "
            f"made with, got {len(rules.rules)} and {[written(n) for n in rules.declared]}"
        )
