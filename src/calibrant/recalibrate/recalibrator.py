"""Algorithm 1 of the paper, as one object."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators import Account, Calibrator, Fading, Growing
from calibrant.calibrators.base import MAX_BUCKETS, MAX_GAP, MAX_PRIOR
from calibrant.calibrators.storage import Storage
from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.core.gate import Gate, passing, wait
from calibrant.core.ledger import MAX_OPEN, Entry, Ledger, entry_of, revive
from calibrant.core.stored import Stored
from calibrant.core.ticket import Issuer, Ticket
from calibrant.errors import (
    CorruptState,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    StaleForecast,
)
from calibrant.kernels import scores
from calibrant.kernels.coin import coin
from calibrant.kernels.layout import (
    ANSWER,
    ASIDE,
    ASKED,
    BLOCKS,
    CELL,
    CELLS,
    CHARGED,
    CLOCK,
    COUNTED,
    ENDLESS,
    FIRST_NUMBER,
    FRESH,
    HEAD,
    IDLE,
    KEY,
    LAG,
    LOSS,
    MIDDLE,
    NARROW,
    NOTED,
    NOW,
    OVERTAKEN,
    POSITION,
    SCALE,
    STEP,
    STRIDE,
    TABLE,
    WEIGHT,
    WIDTH,
    Reals,
    Words,
    unpack,
)
from calibrant.kernels.rounds import Program
from calibrant.losses import LossLike, get_loss, registered_name, require_proper
from calibrant.recalibrate.certificate import Certificate, certify
from calibrant.recalibrate.delivery import (
    Pending,
    Schedule,
    arrivals,
    checked,
    schedule,
    times,
)
from calibrant.recalibrate.run import Run
from calibrant.recalibrate.secret import block_key, fingerprint, secret_of
from calibrant.recalibrate.sizing import sized
from calibrant.registry import calibrators
from calibrant.transforms import Transform

__all__ = ["Recalibrator"]

blank: Final = object.__new__
ZERO: Final = 0
ONE: Final = 1
"""The usual outcomes as objects: to compare these is quicker than to compare numbers."""
LOSS_CODES: Final = {
    "squared": scores.SQUARED,
    "log": scores.LOG,
    "misclassification": scores.MISCLASSIFICATION,
    "spherical": scores.SPHERICAL,
}
SHORT: Final = 20_000
"""Batches up to this long do not start the compiler: it would take longer than they do."""
FIRST_COINS: Final = 64
COINS: Final = 1024
"""Coins of a bucket that are made at a time: singly they cost as much as the forecast."""
ALL_COINS: Final = 1 << 16
"""Coins that all buckets together may have made ahead, eight each apart."""
SWEEP_MASK: Final = (1 << 20) - 1
"""Rounds without a ticket after which tickets that expired are looked for, less one."""


class Recalibrator(Stored):
    """Turn raw forecasts into calibrated ones, one at a time, whatever the outcomes.

    The raw forecasts are split into ``buckets`` intervals of equal length, and each has a
    calibrator of its own that learns which probability its forecasts deserve.

    Parameters
    ----------
    method
        Name of a calibrator (``calibrant.registry.calibrators.names()``) or a
        calibrator itself.
    resolution, grid, **parameters
        The calibrator's own parameters; see its class.
    buckets
        Number M of buckets: half-open, [j/M, (j+1)/M), the last one closed.
    seed, key
        What the draws depend on, besides the order of forecasts.  ``seed=None`` takes
        secret entropy from the system; with a seed, ``key`` tells streams apart.
    prior
        Strength of the identity prior: each bucket starts as if every grid point had
        been announced so many times, with outcomes of the bucket's middle on average.
        0 switches it off.
    loss
        The proper loss under which the certificate compares with the raw forecast.
    max_open
        A ticket expires once this many newer forecasts have been made.

    Notes
    -----
    The drawn forecasts are calibrated in expectation against every adversary that does
    not see the draw before it chooses the outcome; the mean forecast is sharper and
    has no such promise.  Safe to call from several threads: every call holds the
    object's gate.  ``predict_one`` and ``learn_one`` make *one* round out of two calls,
    so threads that share a bucket should use tickets.

    References
    ----------
    Kuleshov and Ermon (2017), "Estimating Uncertainty Online Against an Adversary".

    Examples
    --------
    >>> rec = Recalibrator("foster_hart", resolution=20, buckets=20, seed=7)
    >>> ticket = rec.forecast(0.83)
    >>> ticket.value, round(ticket.mean, 3)
    (0.85, 0.825)
    >>> _ = rec.observe(ticket, 1)
    >>> rec.rounds
    1
    """

    __slots__ = (
        "__weakref__",
        "_asked",
        "_book",
        "_booked",
        "_bucket",
        "_buckets",
        "_capacity",
        "_cells",
        "_coins",
        "_crowd",
        "_doublings",
        "_edges",
        "_filed",
        "_front",
        "_functions",
        "_gate",
        "_issue",
        "_issuer",
        "_lag",
        "_latest",
        "_loss",
        "_machine",
        "_many",
        "_max_open",
        "_note",
        "_observed",
        "_prior",
        "_program",
        "_real_view",
        "_rule",
        "_secret",
        "_settle",
        "_starts",
        "_steps",
        "_storage",
        "_stride",
        "_table",
        "_ticketed",
        "_timed",
        "_values",
        "_view",
        "_words",
    )

    kind: ClassVar = "recalibrator"

    # The steps of kinds that have a transform in front: make a forecast (place, weight, what the
    # transform said, clock, what it keeps); learn an outcome so many forecasts later; note the
    # next draw (place, what the transform said); make a round of it, if that is possible.
    _announce: ClassVar[Callable[[Any, float], tuple[int, float, float, int, tuple[int, ...]]]]
    _learn: ClassVar[Callable[[Any, Ticket, int, int], None]]
    _look: ClassVar[Callable[[Any, float], tuple[int, float, float, int]]]
    _book_round: ClassVar[Callable[[Any, float, int], bool]]

    def __init__(
        self,
        method: str | Calibrator = "foster_hart",
        *,
        buckets: int = 20,
        seed: int | None = None,
        key: str | int | None = None,
        prior: int = 1,
        loss: str = "squared",
        max_open: int = 1_000_000,
        **parameters: Any,
    ) -> None:
        rule = _rule(method, parameters)
        name = registered_name(require_proper(loss))
        if name is None:
            raise InvalidInput(f"loss must be a registered one, got {loss!r}")
        check.choice(name, "loss", tuple(LOSS_CODES))
        size, strength, cap = _sizes(buckets, prior, max_open)
        self._set_up(rule, size, strength, name, cap, secret_of(seed, key))

    def _set_up(
        self,
        rule: Calibrator,
        buckets: int,
        prior: int,
        loss: str,
        max_open: int,
        secret: bytes,
        front: Transform | None = None,
    ) -> None:
        self._rule, self._program, self._front = rule, rule.program, front
        self._buckets, self._prior, self._loss, self._secret = buckets, prior, loss, secret
        keys = [block_key(secret, j) for j in range(buckets)]
        flat = rule.flat(buckets, prior=prior, centres=self._centres(), keys=keys)
        flat[LOSS] = LOSS_CODES[loss]
        kept = 0 if front is None else front.kernel.kept
        self._storage = Storage(rule, flat, front.fresh() if front is not None else (), kept)
        self._cells, self._table, self._stride = map(int, flat[[CELLS, TABLE, STRIDE]])
        self._starts = [int(flat[BLOCKS]) + j * self._stride for j in range(buckets)]
        self._edges = [j / buckets for j in range(buckets)]
        # Rounds beyond which a gap could leave 63 bits.
        self._capacity = MAX_GAP // int(flat[SCALE]) - prior
        shape = (front.description,) if front is not None else ()
        whose = fingerprint(secret, rule.name, rule.parameters, buckets, prior, *shape)
        self._issuer = Issuer(whose, rule.lattice, rule.program.many, front is not None, kept)
        self._values = self._issuer.values
        self._filed = Ledger(self._issuer, max_open)
        self._latest: Ticket | None = None
        self._max_open = max_open
        self._lag = self._crowd = 0
        self._ticketed = self._observed = self._booked = 0
        self._words: list[Any] | None = None
        self._forget_coins()
        self._asked, self._bucket = IDLE - 1.0, 0
        self._steps: Any = None
        self._many = rule.program.many
        self._timed = isinstance(rule, Fading) and rule.timed
        self._doublings = rule.doublings if isinstance(rule, Growing) else 0
        self._functions: Any = rule.program
        self._use_functions(rule.program)
        self._gate: Gate = [None]

    @classmethod
    def from_epsilon(
        cls,
        epsilon: float,
        loss: LossLike = "squared",
        method: str = "foster_hart",
        **options: Any,
    ) -> Self:
        """Choose resolution and buckets so that the regret tends to at most ``epsilon``.

        What the options say is kept, and refused if the target cannot be met with it.

        >>> rec = Recalibrator.from_epsilon(0.1, loss="squared", seed=1)
        >>> rec.calibrator.resolution, rec.buckets
        (15, 15)
        """
        return cls(method=method, **sized(epsilon, loss, method, options))

    # ------------------------------------------------------------------ facts

    @property
    def calibrator(self) -> Calibrator:
        """The rule that runs in each bucket."""
        return self._rule

    @property
    def buckets(self) -> int:
        """Number of buckets M."""
        return self._buckets

    @property
    def prior(self) -> int:
        """Strength of the identity prior."""
        return self._prior

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
        """How many outcomes that came later were outstanding when a forecast was made, at most.

        Counted from above: neither more than outcomes were ever missing at a forecast, nor
        more than forecasts were made between one and its outcome.
        """
        return min(self._lag, self._crowd)

    # ---------------------------------------------------------------- one by one

    def forecast(
        self,
        raw: float,
        *,
        id: str | None = None,
        time: float | None = None,
        groups: Any = None,
        context: Any = None,
    ) -> Ticket:
        """Announce a calibrated forecast for a raw one, and keep a ticket for its outcome.

        Parameters
        ----------
        raw
            The raw forecast, in [0, 1].
        id
            A name for the ticket; by default its number.
        time
            When the forecast is made, in the caller's units; needed by a rule that forgets in
            time.
        groups, context
            Not used by this class.
        """
        if type(raw) is not float or not 0.0 <= raw <= 1.0:
            raw = check.probability(raw)
        if id is not None or time is not None or groups is not None or context is not None:
            id, time = _checked(id, time, groups, context)
        if self._timed and time is None:
            raise _no_time(time)
        gate = self._gate
        try:
            del gate[0]
        except IndexError:
            wait(gate)
        try:
            number = self._ticketed + self._booked
            if id is not None and self._ledger.holds(id, number):
                raise RepeatedTicket(f"id must not be that of an open ticket, got {id!r}")
            law, middle = None, None
            kept: tuple[int, ...] = ()
            if self._front is not None:
                place, weight, middle, clock, kept = self._announce(raw)
            elif self._steps is not None:
                if number >= self._capacity:
                    self._check_room()
                place = self._steps.issue_flat(self._machine, raw)
                weight = self._real_view[WEIGHT]
                clock = self._view[COUNTED]
            else:
                j = bisect_right(self._edges, raw) - 1
                at, words = self._starts[j], self._words or self._to_plain()
                clock = words[at + CLOCK]
                coins = self._coins[j] or self._toss(words, j, at)
                cell, side, weight = self._issue(
                    words, words, at, self._cells, self._table, raw, coins.pop()
                )
                place = (j << 16) | (side << 15) | cell
                if self._many:
                    law = tuple(self._rule.law(words))
                    words[at + FRESH] = number
            # Ticket(...) without the call of its __init__, which takes as long as the rule.
            ticket = blank(Ticket)
            ticket.id = number if id is None else id
            ticket.issuer, ticket.number, ticket.clock = self._issuer, number, clock
            ticket.raw, ticket._place, ticket._weight = raw, place, weight
            ticket.time, ticket._law, ticket.outcome = time, law, None
            ticket.middle, ticket._kept = middle, kept
            waiting = self._ticketed - self._observed
            if waiting > self._crowd:
                self._crowd = waiting
            self._ticketed += 1
            if self._latest is not None:
                self._filed.add(self._latest, number)
            self._latest = ticket
        except BaseException:
            self._forget_coins()
            raise
        finally:
            gate.append(None)
        return ticket

    def observe(
        self, ticket: Ticket | int | str, outcome: int, time: float | None = None
    ) -> Ticket:
        """Report the outcome of an open ticket, given itself or its id; in any order.

        Returns the ticket with its outcome, which :meth:`correct` needs later.
        """
        if outcome is not ONE and outcome is not ZERO:
            outcome = check.outcome(outcome)
        gate = self._gate
        try:
            del gate[0]
        except IndexError:
            wait(gate)
        try:
            latest = self._latest
            if latest is not None and latest is ticket:
                found, age, lag = latest, 1, 1.0
            else:
                issued = self._ticketed + self._booked
                latest, found = None, self._ledger.find(ticket, issued)
                age = issued - found.number
                lag = float(age)
            if time is not None:
                _not_before(time, found)
            if self._timed:
                self._set_now(found)
            place, weight = found._place, found._weight
            if self._front is not None:
                self._learn(found, outcome, age)
            elif self._steps is not None:
                self._steps.settle_flat(self._machine, place, weight, found.raw, outcome, lag)
            else:
                words = self._words or self._to_plain()
                at = self._starts[(place >> 16) & NARROW]
                if self._many and not self._recall(words, at, found.number):
                    weight = -1.0
                raw, table = found.raw, self._table
                self._settle(words, words, at, table, place, weight, raw, outcome, lag)
            if latest is not None:
                self._latest = None
            else:
                self._ledger.close(found)
                self._lag = max(self._lag, age - 1)
            self._observed += 1
            found.outcome = outcome
            if found is not ticket and type(ticket) is Ticket:
                ticket.outcome = outcome
        finally:
            gate.append(None)
        return found

    def correct(self, ticket: Ticket, outcome: int) -> Ticket:
        """Replace the outcome of a closed ticket that turned out to be wrong.

        The ticket is the one that :meth:`observe` returned: it carries what is needed, and
        nothing is kept of closed tickets.
        """
        outcome = check.outcome(outcome)
        with passing(self._gate):
            self._ledger.check_closed(ticket, outcome, self.issued)
            words = self._to_plain()
            if not ticket.aside:
                at, change = self._check_place(ticket, outcome), 2 * outcome - 1
                words[MIDDLE] = ticket.raw if ticket.middle is None else ticket.middle
                words[NOW] = _time_of(ticket) if self._timed else 0.0
                words[LAG] = float(self.issued - ticket.number)
                told = *unpack(ticket.place)[1:], ticket.weight, change
                self._program.amend(words, words, at, self._table, *told)
                words[LAG] = 1.0
            before = scores.charge(words[LOSS], ticket.raw, 1 - outcome)
            scores.refund(words, words, CHARGED, ENDLESS, before)
            scores.bill(words, words, ticket.raw, outcome)
            self._use_steps()
            ticket.outcome = outcome
        return ticket

    def _check_place(self, ticket: Ticket, outcome: int) -> int:
        """Return where the block of a closed ticket starts; raise if it cannot have been ours."""
        bucket, cell, side = unpack(ticket.place)
        if (
            bucket >= self._buckets
            or cell >= self._cells
            or side >> WIDTH > self._doublings
            or ticket.issuer.grid != self._rule.lattice
        ):
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        words, at = self._to_plain(), self._starts[bucket]
        where, value = at + HEAD + self._rule.cell_words * cell, words[self._table + cell]
        # What the prior put there, exactly: the centre is (2j + 1) / 2M, and 2M divides the scale.
        centre = words[SCALE] * (2 * bucket + 1) // (2 * self._buckets)
        prior = self._prior if self._rule.prior_in_cells else 0
        count = words[where + 1] - prior
        gained = words[where] - prior * (centre - value)
        ones = (gained + count * value) // words[SCALE]
        if not 0 <= ones + 2 * outcome - 1 <= count:
            raise RepeatedTicket(
                f"outcome {1 - outcome} must have been counted where it is corrected, "
                f"got {ones} ones in {count} rounds: was it corrected already?"
            )
        return at

    def coin_of(self, ticket: Ticket) -> float:
        """Return the coin that decided a ticket's draw: ``ticket.mixture.draw(coin)`` is its index.

        For audits.  Only the ticket that :meth:`forecast` returned knows its clock.
        """
        self._ledger.check_issuer(ticket)
        if ticket.clock is None:
            raise InvalidInput(f"ticket must be the one that forecast() returned, got {ticket!r}")
        return coin(block_key(self._secret, ticket.bucket), ticket.clock)

    def predict_one(self, raw: float) -> float:
        """Return the draw that the next round with this raw forecast would announce.

        Changes nothing; call :meth:`learn_one` with the same raw forecast to make it
        a round.
        """
        if self._timed:
            raise _no_time("predict_one, which takes none")
        if type(raw) is not float or not 0.0 <= raw <= 1.0:
            raw = check.probability(raw)
        gate = self._gate
        try:
            del gate[0]
        except IndexError:
            wait(gate)
        try:
            if self._front is not None:
                place = self._look(raw)[0]
                if place & ASIDE:
                    return raw
                cell = place & CELL
            elif self._steps is not None:
                cell = self._steps.note_flat(self._machine, raw)
            else:
                self._bucket = j = bisect_right(self._edges, raw) - 1
                self._asked = raw
                at, words = self._starts[j], self._words or self._to_plain()
                coins = self._coins[j] or self._toss(words, j, at)
                cell = self._note(words, words, at, self._cells, self._table, raw, coins[-1])
        finally:
            gate.append(None)
        return self._values[cell]

    def learn_one(self, raw: float, outcome: int) -> None:
        """Make a round of the last :meth:`predict_one` with this raw forecast.

        Without one, the round is drawn now.  Refused if a forecast in the same bucket
        came between: the announced draw would no longer be this round's.
        """
        if self._timed:
            raise _no_time("learn_one, which takes none")
        # What was asked for last has been checked.
        if raw is not self._asked and (type(raw) is not float or not 0.0 <= raw <= 1.0):
            raw = check.probability(raw)
        if outcome is not ONE and outcome is not ZERO:
            outcome = check.outcome(outcome)
        gate = self._gate
        try:
            del gate[0]
        except IndexError:
            wait(gate)
        try:
            if self._front is not None:
                booked = self._book_round(raw, outcome)
            elif self._steps is not None:
                if self._ticketed + self._booked >= self._capacity:
                    self._check_room()
                booked = self._steps.book_flat(self._machine, raw, outcome)
            else:
                j = self._bucket if raw is self._asked else bisect_right(self._edges, raw) - 1
                at, words = self._starts[j], self._words or self._to_plain()
                coins = self._coins[j] or self._toss(words, j, at)
                u = coins[-1]
                booked = self._book(words, words, at, self._cells, self._table, raw, u, outcome)
                if booked:
                    coins.pop()
            if not booked:
                raise _overtaken(raw)
            if self._ticketed != self._observed:
                self._crowded()
            self._booked += 1
            if self._booked & SWEEP_MASK == 0:
                self._ledger.make_way(self._ticketed + self._booked, 0)
        except BaseException:
            self._forget_coins()
            raise
        finally:
            gate.append(None)

    def compile(self) -> Self:
        """Let Numba compile the steps of one-by-one calls, which then take half the time.

        Takes some seconds the first time on a machine, less from the cache on disk; does
        nothing where Numba is not installed, or for rules whose update needs the whole
        mixture.  The forecasts are the same to the bit.
        """
        machine = self._functions.machine
        if machine is not None and not self._rule.weighted:
            with passing(self._gate):
                self._steps = machine.steps(self._to_flat().copy())
                self._use_steps()
        return self

    # ------------------------------------------------------------------- batches

    def replay(
        self,
        raw: Any,
        outcomes: Any,
        *,
        available: Any = None,
        time: Any = None,
        groups: Any = None,
        carry: Pending | None = None,
    ) -> Run:
        """Play a whole batch of rounds, exactly as the calls one by one would.

        Parameters
        ----------
        raw, outcomes
            Flat arrays of one length.
        available
            When each outcome became known: it is learned before the first later
            forecast that was not made before then.  Infinite or not a number: never.
        time
            When each forecast was made, in order; the row number by default, except for a rule
            that forgets in time.
        groups
            Not used by this class.
        carry
            What an earlier batch left pending.
        """
        if groups is not None:
            raise InvalidInput(f"groups must be None: this class keeps none, got {groups!r}")
        raws = check.probabilities(raw)
        told = check.outcomes(outcomes)
        check.same_length(raw=raws, outcomes=told)
        if self._timed and time is None:
            raise _no_time(time)
        at_once = available is None and carry is None and not self._timed
        if at_once and time is None:
            return self._replay_at_once(raws, told)
        when = times(time, len(raws))
        if at_once:
            return self._replay_at_once(raws, told)
        known = when if available is None else arrivals(available, when)
        stamps = np.full(len(raws), np.nan) if time is None else when
        carried = Pending() if carry is None else checked(carry)
        return self._replay_late(raws, told, known, when, stamps, carried)

    def _replay_at_once(self, raw: NDArray[np.float64], outcomes: NDArray[np.uint8]) -> Run:
        forecast, mean = np.empty(len(raw)), np.empty(len(raw))
        with passing(self._gate):
            self._check_room(len(raw))
            first, clocks = self.issued, self._clocks()
            if (machine := self._batch_program(len(raw))) is not None:
                flat = self._to_flat()
                machine.replay(flat, flat.view(np.float64), raw, outcomes, forecast, mean)
            else:
                words, rows = self._to_plain(), (raw.tolist(), outcomes.tolist())
                self._program.replay(words, words, *rows, forecast, mean)
            self._overtake(clocks)
            self._use_steps()
            self._ledger.make_way(first, len(raw))
            self._booked += len(raw)
            self._crowded(len(raw))
        return Run(forecast, mean, self._buckets, raw, first, Pending())

    def _replay_late(
        self,
        raw: NDArray[np.float64],
        outcomes: NDArray[np.uint8],
        available: NDArray[np.float64],
        time: NDArray[np.float64],
        stamps: NDArray[np.float64],
        carry: Pending,
    ) -> Run:
        with passing(self._gate):
            first = self.issued
            carry = carry.since(first - self._ledger.max_open)
            held = [self._ledger.find(number, first) for number in carry.number.tolist()]
            for ticket in held if self._timed else ():
                _time_of(ticket)
            numbers = np.concatenate([carry.number, first + np.arange(len(raw))]).astype(np.int64)
            arrives = np.concatenate([carry.available, available])
            raws = np.concatenate([[ticket.raw for ticket in held], raw])
            told = np.concatenate([carry.outcome, outcomes]).astype(np.uint8)
            plan = schedule(len(held), numbers, arrives, time, self._ledger.max_open)
            learned = len(plan.events) - len(raw)
            self._check_room(learned)
            self._lag = max(self._lag, plan.lag)
            if len(raw):
                waiting = self._ticketed - self._observed
                self._crowd = max(self._crowd, waiting + plan.crowd)
            forecast, mean, *kept = self._play(held, raws, told, stamps, plan)
            self._close(held, plan.waiting)
            self._ledger.make_way(first, len(raw))
            self._ticketed += len(raw)
            self._observed += learned
            fresh = plan.waiting[plan.waiting >= len(held)]
            place, weight, *more = (column[fresh].tolist() for column in kept)
            number = numbers[fresh].tolist()
            columns = number, number, place, weight, raws[fresh].tolist()
            self._keep(*columns, stamps[fresh - len(held)].tolist(), *more)
            pending = Pending(numbers[plan.waiting], arrives[plan.waiting], told[plan.waiting])
        own = slice(len(held), None)
        return Run(forecast[own], mean[own], self._buckets, raw, first, pending)

    def _play(
        self,
        held: list[Ticket],
        raws: NDArray[np.float64],
        outcomes: NDArray[np.uint8],
        stamps: NDArray[np.float64],
        plan: Schedule,
    ) -> tuple[NDArray[Any], ...]:
        """Play the events of a batch whose first rows are tickets that were held open.

        Returns forecasts, means, and what an open ticket keeps: its place, its weight and,
        behind a transform, what that made of the raw forecast and what it keeps besides.
        """
        rows, events = len(raws), plan.events
        forecast, mean, weight, middle = (np.empty(rows) for _ in range(4))
        places = np.empty(rows, np.int64)
        advice = np.zeros((rows, self._issuer.kept), np.int64)
        moments = np.concatenate([np.empty(len(held)), stamps])
        played: tuple[Any, ...] = forecast, mean, weight, places
        if self._front is not None:
            played += middle, advice.reshape(-1)
        played += (plan.lags,)
        clocks, words = self._clocks(), self._to_plain()
        words[FIRST_NUMBER] = base = self.issued - len(held)
        for row, ticket in enumerate(held):
            entry = entry_of(ticket)
            places[row], weight[row], middle[row] = entry.place, entry.weight, entry.middle
            advice[row], moments[row] = entry.kept, entry.time
            at = self._starts[ticket.bucket]
            if self._many and words[at + FRESH] == ticket.number:
                words[at + FRESH] = base + row
        if (machine := self._batch_program(len(events))) is not None:
            flat = self._to_flat()
            reals = flat.view(np.float64)
            machine.replay_late(flat, reals, raws, outcomes, events, *played, moments)
        else:
            listed = raws.tolist(), outcomes.tolist(), events.tolist()
            self._functions.replay_late(words, words, *listed, *played, moments.tolist())
        self._unmark(held, base)
        self._overtake(clocks)
        self._use_steps()
        more = () if self._front is None else (middle, advice)
        return forecast, mean, places, weight, *more

    def _unmark(self, held: list[Ticket], base: int) -> None:
        """Give carried tickets that still wait in an unchanged bucket their own numbers back."""
        words = self._to_plain() if self._many else []
        for row, ticket in enumerate(held):
            at = self._starts[ticket.bucket]
            if self._many and words[at + FRESH] == base + row:
                words[at + FRESH] = ticket.number

    def _close(self, held: list[Ticket], waiting: NDArray[np.int64]) -> None:
        """Close the tickets whose outcome was told, or that expired."""
        still = set(waiting[waiting < len(held)].tolist())
        for row, ticket in enumerate(held):
            if row not in still:
                self._ledger.close(ticket)

    def _keep(self, *columns: list[Any]) -> None:
        """Open the tickets of rows that still wait, given the columns of their entries."""
        for row in zip(*columns, strict=True):
            entry = Entry(*row)
            entry = entry._replace(kept=tuple(entry.kept))
            self._ledger.add(revive(self._issuer, entry.number, entry), self.issued)

    # --------------------------------------------------------------------- state

    def certificate(self) -> Certificate:
        """Return what was measured so far, and each theorem's bound beside it."""
        with passing(self._gate):
            self._ledger.sweep(self.issued)
            waiting = len(self._ledger)
            gone = self.issued - self.rounds - waiting
            flat = self._to_flat()
            charged = float("inf") if flat[ENDLESS] else float(flat.view(np.float64)[CHARGED])
            loss = get_loss(self._loss)
            return certify(self._rule, self._account(), loss, charged, waiting, gone)

    def __repr__(self) -> str:
        told = ", ".join(f"{k}={v!r}" for k, v in self._rule.parameters.items())
        return (
            f"Recalibrator({self._rule.name!r}, {told}, buckets={self._buckets}, "
            f"prior={self._prior}, rounds={self.rounds})"
        )

    def _repr_html_(self) -> str:
        from calibrant.recalibrate.notebook import page

        return page(self)

    # ------------------------------------------------------------------ internals

    @property
    def _ledger(self) -> Ledger:
        """The open tickets, all filed.

        The latest is filed only when it is asked for or followed by another round: most
        outcomes come before the next forecast, and filing takes a tenth of a round.
        """
        self._file_latest()
        return self._filed

    def _crowded(self, rounds: int = 1) -> None:
        """Note how many tickets waited while rounds were made that know their outcome at once."""
        self._file_latest()
        if rounds > 0:
            self._crowd = max(self._crowd, self._ticketed - self._observed)

    def _file_latest(self) -> None:
        if self._latest is not None:
            self._filed.add(self._latest, self.issued)
            self._latest = None

    def _to_plain(self) -> list[Any]:
        """Go over to the list of words, on which plain Python is fast."""
        self._words = self._storage.words()
        return self._words

    def _to_flat(self) -> NDArray[np.int64]:
        """Go over to the array, on which compiled code works."""
        self._words = None
        return self._storage.flat()

    def _use_steps(self) -> None:
        """With compiled steps, keep the array at hand through fast views."""
        if self._steps is not None:
            self._machine = self._to_flat()
            self._view: Words = self._machine.data
            self._real_view: Reals = self._machine.view(np.float64).data

    def _set_now(self, ticket: Ticket) -> None:
        """Say when the forecast was made whose outcome is about to be learned."""
        reals = self._real_view if self._steps is not None else self._words or self._to_plain()
        reals[NOW] = _time_of(ticket)

    def _use_functions(self, program: Program) -> None:
        self._note, self._book = program.note, program.book
        self._issue, self._settle = program.issue, program.settle

    def _forget_coins(self) -> None:
        """Make coins anew when they are needed: for the clock has moved, or was interrupted."""
        self._coins: list[list[float]] = [[] for _ in range(self._buckets)]

    def _toss(self, words: list[Any], j: int, at: int) -> list[float]:
        """Make the next coins of bucket ``j``, the first of them last."""
        self._check_room()
        start, size = words[at + CLOCK], min(FIRST_COINS, max(ALL_COINS // self._buckets, 8))
        if start > 0:
            # Neither pays for a few rounds: writing functions out takes as long as thousands.
            self._use_functions(self._program.written_out)
            size = min(COINS, max(ALL_COINS // self._buckets, 8))
        clocks = np.arange(start, start + size, dtype=np.uint64)[::-1]
        coins: list[float] = coin(np.uint64(words[at + KEY]), clocks).tolist()  # type: ignore[arg-type, attr-defined]
        self._coins[j] = coins
        return coins

    def _recall(self, words: list[Any], at: int, number: int) -> bool:
        return self._program.recall(words, words, at, self._cells, self._table, number)

    def _overtake(self, clocks: NDArray[np.int64]) -> None:
        """Mark noted predictions as overtaken where the clock has moved; forget the coins."""
        blocks = self._blocks(self._to_flat())
        asked = blocks.view(np.float64)[:, ASKED]
        asked[(asked != IDLE) & (blocks[:, CLOCK] != clocks)] = OVERTAKEN
        self._forget_coins()

    def _clocks(self) -> NDArray[np.int64]:
        """Return how many forecasts each bucket has made."""
        return self._blocks(self._to_flat())[:, CLOCK].copy()

    def _check_room(self, rounds: int = 1) -> None:
        if self._observed + self._booked + rounds > self._capacity:
            raise InvalidInput(
                f"rounds must be at most {self._capacity} at this resolution and number of "
                f"buckets, got {self.rounds + rounds}"
            )

    def _batch_program(self, rounds: int) -> Any:
        """Return the compiled program if it is worth it: for long batches, or once it exists."""
        made = self._functions.__dict__.get("machine")
        return made if made is not None or rounds <= SHORT else self._functions.machine

    def _centres(self) -> list[Fraction]:
        return [Fraction(2 * j + 1, 2 * self._buckets) for j in range(self._buckets)]

    def _blocks(self, flat: NDArray[np.int64]) -> NDArray[np.int64]:
        first = int(flat[BLOCKS])
        return flat[first : first + self._buckets * self._stride].reshape(self._buckets, -1)

    def _account(self) -> Account:
        flat = self._to_flat()
        step, end = self._rule.cell_words, HEAD + self._rule.cell_words * self._cells
        fresh = self._rule.flat(self._buckets, prior=self._prior, centres=self._centres())
        gained = (self._blocks(flat) - self._blocks(fresh))[:, HEAD:end]
        numerators = flat[self._table : self._table + self._cells]
        gaps, counts = gained[:, 0::step], gained[:, 1::step]
        ones = (gaps + counts * numerators) // flat[SCALE]
        centres = np.array([float(centre) for centre in self._centres()])
        return Account(counts, ones, self._prior, centres, flat, self.delay)

    # ------------------------------------------------------------------- documents

    def _document(self) -> Document:
        with passing(self._gate):
            flat = self._to_flat()
            blocks = self._blocks(flat)
            touched = np.flatnonzero(blocks[:, CLOCK] > 0)
            settings = {
                "method": self._rule.name,
                "parameters": self._rule.parameters,
                "buckets": self._buckets,
                "prior": self._prior,
                "loss": self._loss,
                "max_open": self._ledger.max_open,
                "secret": self._secret.hex(),
                "issued": self.issued,
                "learned": self.rounds,
                "lag": self._lag,
                "crowd": self._crowd,
                "charged": float(flat.view(np.float64)[CHARGED]).hex(),
                "endless": int(flat[ENDLESS]),
            }
            kept = blocks[touched]
            kept[:, [ASKED, ANSWER, NOTED]] = 0
            arrays = {
                "blocks": kept.reshape(-1),
                "touched": touched.astype(np.int64),
                "tickets": self._ledger.to_words(self.issued),
            }
            more, words = self._more_state(flat)
        return Document(self.kind, settings | more, arrays | words)

    def _more_state(
        self, flat: NDArray[np.int64]
    ) -> tuple[dict[str, Any], dict[str, NDArray[np.int64]]]:
        """Return what a kind of recalibrator keeps besides: settings and arrays."""
        return {}, {}

    def _load_more(self, document: Document) -> None:
        """Take in what :meth:`_more_state` gave."""

    def _restore(self, document: Document) -> None:
        s, arrays = document.settings, document.arrays
        try:
            size, strength, cap = _sizes(s["buckets"], s["prior"], s["max_open"])
            loss = check.choice(s["loss"], "loss", tuple(LOSS_CODES))
            rule, secret = _rule(s["method"], s["parameters"]), bytes.fromhex(s["secret"])
            self._set_up(rule, size, strength, loss, cap, secret, self._front_of(s))
            self._ticketed = check.whole(s["issued"], "issued")
            self._observed = check.whole(s["learned"], "learned", high=self._ticketed)
            self._lag = check.whole(s["lag"], "lag")
            self._crowd = check.whole(s["crowd"], "crowd")
            self._to_flat().view(np.float64)[CHARGED] = float.fromhex(s["charged"])
            self._to_flat()[ENDLESS] = check.whole(s["endless"], "endless")
            self._load_blocks(arrays["touched"], arrays["blocks"])
            self._ledger.load_words(arrays["tickets"], self._ticketed, size, self._doublings)
            self._load_more(document)
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise CorruptState(f"state must be of a recalibrator, got {error}") from error

    def _front_of(self, settings: dict[str, Any]) -> Transform | None:
        """Return the transform in front, if a kind of recalibrator has one."""
        return None

    def _load_blocks(self, touched: NDArray[np.int64], words: NDArray[np.int64]) -> None:
        blocks = words.reshape(len(touched), self._stride)
        all_blocks = self._blocks(self._to_flat())
        if (np.diff(touched, prepend=-1) <= 0).any():
            raise ValueError("buckets that are not in order")
        if (blocks[:, KEY] != all_blocks[touched, KEY]).any() or (blocks[:, CLOCK] <= 0).any():
            raise ValueError("buckets with other coins")
        if ((blocks[:, POSITION] < 0) | (blocks[:, POSITION] >= self._cells)).any():
            raise ValueError("positions off the grid")
        if ((blocks[:, STEP] < 0) | (blocks[:, STEP] > self._doublings)).any():
            raise ValueError("grids that are too coarse or too fine")
        all_blocks[touched] = blocks


def _sizes(buckets: Any, prior: Any, max_open: Any) -> tuple[int, int, int]:
    return (
        check.whole(buckets, "buckets", low=1, high=MAX_BUCKETS),
        check.whole(prior, "prior", high=MAX_PRIOR),
        check.whole(max_open, "max_open", low=1, high=MAX_OPEN),
    )


def _rule(method: str | Calibrator, parameters: dict[str, Any]) -> Calibrator:
    if isinstance(method, Calibrator):
        if parameters:
            listed = ", ".join(parameters)
            raise InvalidInput(f"parameters must be given to the calibrator itself, got {listed}")
        return method
    made = calibrators.get(method)
    known = {field.name for field in dataclasses.fields(made)}
    for name in parameters:
        if name not in known:
            listed = ", ".join(sorted(known))
            raise InvalidType(f"parameters of {method} must be among {listed}, got {name!r}")
    rule: Calibrator = made(**parameters)
    return rule


def _checked(id: Any, time: Any, groups: Any, context: Any) -> tuple[str | None, float | None]:
    for name, value in (("groups", groups), ("context", context)):
        if value is not None:
            raise InvalidInput(f"{name} must be None: this class keeps none, got {value!r}")
    if id is not None and (not isinstance(id, str) or not id):
        raise InvalidType(f"id must be a string that is not empty, got {id!r}")
    return id, None if time is None else check.real(time, "time")


def _no_time(given: Any) -> InvalidInput:
    told = "time must be given to a rule that forgets in time, by forecast or replay"
    return InvalidInput(f"{told}, got {given}")


def _time_of(ticket: Ticket) -> float:
    if ticket.time is None:
        raise _no_time(f"{ticket!r} without one")
    return ticket.time


def _overtaken(raw: float) -> StaleForecast:
    return StaleForecast(
        f"a forecast in the bucket of {raw!r} came between predict_one and learn_one; "
        "use forecast and observe where rounds overlap"
    )


def _not_before(time: Any, ticket: Ticket) -> None:
    told = check.real(time, "time")
    if ticket.time is not None and told < ticket.time:
        raise InvalidInput(f"time must not be before the forecast's {ticket.time!r}, got {told!r}")
