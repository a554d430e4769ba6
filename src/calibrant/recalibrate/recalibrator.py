"""Algorithm 1 of the paper, as one object."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Final, Self

from calibrant.bounds.game import probable
from calibrant.calibrators import Calibrator
from calibrant.core import check
from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput
from calibrant.kernels.layout import ASIDE, CELL, ISSUED, ROUNDS
from calibrant.kernels.on_array import SEEN
from calibrant.losses import LossLike, registered_name, require_proper
from calibrant.recalibrate.batches import Batches
from calibrant.recalibrate.binary import OFTEN, blank
from calibrant.recalibrate.certificate import Certificate
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.promise import FAILURE
from calibrant.recalibrate.record import certificate_of
from calibrant.recalibrate.rows import NOTHING
from calibrant.recalibrate.run import Run
from calibrant.recalibrate.secret import secret_of
from calibrant.recalibrate.sizing import sized
from calibrant.recalibrate.spec import Spec, made_rule, shared_spec

ZERO: Final = 0
ONE: Final = 1
"""The usual outcomes as objects: to compare these is quicker than to compare numbers."""


class Recalibrator(Batches):
    """Turn raw forecasts into calibrated ones, one at a time, whatever the outcomes.

    The raw forecasts are split into ``buckets`` intervals of equal length, and each has a
    calibrator of its own that learns which probability its forecasts deserve.

    Parameters
    ----------
    method
        Name of a calibrator (``calibrant.registry.calibrators.names()``) or a calibrator itself.
    resolution, grid, **parameters
        The calibrator's own parameters; see its class.
    buckets
        Number M of buckets: half-open, [j/M, (j+1)/M), the last one closed.
    seed, key, secret
        What the draws depend on, besides the order of forecasts: by default secret entropy of the
        system.  A ``seed`` makes a run repeatable, at the cost of secrecy.  A ``secret``, 16 bytes
        or more, can be kept apart from the state (:meth:`to_bytes`).  With either, ``key``
        distinguishes streams.
    prior
        Strength of the identity prior: each bucket starts as if every grid point had
        been announced that many times, with outcomes of the bucket's middle on average.
        0 switches it off.
    loss
        The proper loss under which the certificate compares with the raw forecast.
    max_open
        A ticket expires once this many newer forecasts have been made.

    Notes
    -----
    The drawn forecasts are calibrated in expectation against every adversary that does not see the
    draw before it chooses the outcome; the mean forecast is sharper and has no such promise.  Safe
    to call from several threads: every call holds the object's gate.  ``sample_one`` and
    ``learn_one`` make *one* round out of two calls: threads that share a bucket use tickets.

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

    __slots__ = ()

    kind: ClassVar = "recalibrator"

    def __init__(
        self,
        method: str | Calibrator = "foster_hart",
        *,
        buckets: int = 20,
        seed: int | None = None,
        key: str | int | None = None,
        secret: bytes | None = None,
        prior: int = 1,
        loss: str = "squared",
        max_open: int = 1_000_000,
        **parameters: Any,
    ) -> None:
        name = registered_name(require_proper(loss))
        if name is None:
            raise InvalidInput(f"loss must be a registered one, got {loss!r}")
        spec = Spec(made_rule(method, parameters), buckets, prior, name)
        self._begin(shared_spec(spec), secret_of(seed, key, secret), max_open)

    @classmethod
    def from_epsilon(
        cls, epsilon: float, loss: LossLike = "squared", method: str = "foster_hart", **options: Any
    ) -> Self:
        """Choose resolution and buckets so that the regret tends to at most ``epsilon``.

        What the options say is kept, and refused if the target cannot be met with it.

        >>> rec = Recalibrator.from_epsilon(0.1, loss="squared", seed=1)
        >>> rec.calibrator.resolution, rec.buckets
        (15, 15)
        """
        return cls(method=method, **sized(epsilon, loss, method, options))

    # ---------------------------------------------------------------- one by one

    def forecast(self, raw: float, *, id: str | None = None, time: check.When = None) -> Ticket:
        """Announce a calibrated forecast for a raw one, and keep a ticket for its outcome.

        Parameters
        ----------
        raw
            The raw forecast, in [0, 1].
        id
            A name for the ticket; by default its number.
        time
            When the forecast is made, in any unit; needed by a rule that forgets in time.
        """
        if type(raw) is not float or not 0.0 <= raw <= 1.0:
            raw = check.probability(raw)
        if id is not None or time is not None or self._timed:
            id, time = self._named(id, time)
        gate, counter = self._gate, self._counter
        token = gate.token
        while True:
            try:
                del token[0]
                break
            except IndexError:
                gate.wait()
        try:
            rows, row, before = self._rows, self._row, -1
            words = self._arena.listed or rows.plain_words()
            if words is not None:
                before = words[row + ISSUED]
            if id is not None:
                counter.refuse_open(id)
            # The spec's program announces a draw in the row ...
            if words is None:
                number, place, weight, mixed, clock = rows.steps.issue_flat(rows.machine, row, raw)
            elif before < rows.capacity:
                issue = rows.plain_issue
                number, place, weight, mixed, clock = issue(words, words, row, raw)
            else:
                number, place, weight, mixed, clock = rows.announce(row, raw)
            if number < 0:
                rows.check_room(row)
            # ... and a ticket remembers where it fell: made by hand, for __init__ takes long.
            ticket = blank(Ticket)
            ticket._issuer, ticket._number = self._issuer, number
            ticket._id, ticket._time = number if id is None else id, time
            ticket._raw, ticket._place, ticket._weight = raw, place, weight
            ticket._mixed, ticket._clock, ticket._outcome = mixed, clock, None
            ticket._law, ticket._kept = NOTHING if rows.bare else rows.law_and_advice(words)
            if counter.latest is not None:
                counter.move_on()
            counter.latest = ticket
            if number >= counter.max_open:
                self._expire_old(number + 1)
        except BaseException:
            self._withdraw(before)
            raise
        finally:
            token.append(None)
        return ticket

    def observe(self, ticket: Ticket | int | str, outcome: int, time: check.When = None) -> Ticket:
        """Report the outcome of an open ticket, given itself or its id; in any order.

        Returns the ticket with its outcome, which :meth:`correct` needs later.
        """
        if outcome is not ONE and outcome is not ZERO:
            outcome = check.outcome(outcome)
        gate, counter = self._gate, self._counter
        token = gate.token
        while True:
            try:
                del token[0]
                break
            except IndexError:
                gate.wait()
        found = counter.latest
        try:
            if found is None or found is not ticket:
                found = counter.find(ticket, self._own(ISSUED))
            if time is not None or self._timed:
                self._check_time(time, found)
            words, told, learn = self._arena.listed, found._time, self._rows.plain_learn
            if words is None:
                rows, steps, when = self._rows, self._rows.steps, 0.0 if told is None else told
                if steps is None or self._reads is not None:
                    rows.learn_ticket(self._row, found, outcome)
                elif steps.learn_flat(rows.machine, self._row, found._number, when, outcome) < 0:
                    rows.learn_filed(self._row, found, when, outcome)
            elif found._kept:
                self._learn_ticket(found, outcome, words)
            else:
                learn(
                    words, words, self._row, found._number, found._place, found._weight,
                    found._mixed, found._raw, 0.0 if told is None else told, outcome,
                )  # fmt: skip
            found._outcome = outcome
            if found is counter.latest and found._id is found._number:
                counter.latest = None
            else:
                counter.close(found)
        except BaseException:
            self._close_learned(found, outcome)
            raise
        finally:
            token.append(None)
        return found

    def sample_one(self, raw: float) -> float:
        """Return the draw that the next round with this raw forecast would announce.

        Changes nothing; :meth:`learn_one` with the same raw forecast makes it a round.
        """
        if self._timed:
            raise self._no_time("sample_one, which takes none")
        if type(raw) is not float or not 0.0 <= raw <= 1.0:
            raw = check.probability(raw)
        gate = self._gate
        token = gate.token
        while True:
            try:
                del token[0]
                break
            except IndexError:
                gate.wait()
        try:
            if self._asked is not None:
                self._note_asked()
            rows = self._rows
            if rows.steps is None:
                words, peek = self._arena.listed or self._arena.words(), rows.plain_peek
                self._looked = look = peek(words, words, self._row, raw)
                place = look[0]
                cell = -1 if place & ASIDE else place & CELL
            else:
                cell = rows.steps.peek_flat(rows.machine, self._row, raw)
            self._asked, self._how = raw, SEEN
        finally:
            token.append(None)
        return raw if cell < 0 else self._issuer.values[cell]

    predict_one = sample_one
    """An older name of ``sample_one``, which stays."""

    def learn_one(self, raw: float, outcome: int) -> None:
        """Make a round of the last :meth:`sample_one` with this raw forecast.

        Without one, the round is drawn now.  Refused if a forecast in the same bucket
        came between: the announced draw would no longer be this round's.
        """
        if self._timed:
            raise self._no_time("learn_one, which takes none")
        # What was asked for last has been checked.
        if type(raw) is not float or (raw is not self._asked and not 0.0 <= raw <= 1.0):
            raw = check.probability(raw)
        if outcome is not ONE and outcome is not ZERO:
            outcome = check.outcome(outcome)
        gate = self._gate
        token = gate.token
        while True:
            try:
                del token[0]
                break
            except IndexError:
                gate.wait()
        try:
            # Usually this is what was asked for last, and takes no call more than it needs.
            rows, look, number = self._rows, self._looked, -1
            if raw == self._asked and not self._notes:
                how, row = self._how, self._row
                if look is None:
                    number = rows.steps.learn_flat(rows.machine, row, how, raw, outcome)
                elif (words := self._arena.listed) and words[row + ISSUED] < self._most:
                    commit, (at, w, mixed, clock, seen) = rows.plain_commit, look
                    if how == SEEN or words[row + ROUNDS] == seen:
                        number = commit(words, words, row, at, w, mixed, clock, seen, raw, outcome)
                    if number & OFTEN == OFTEN and number > 0:
                        self._asked = self._looked = None
                        self._go_over()
            if number < 0:
                self._commit(raw, outcome)
            elif number >= self._most:
                self._expire_old(number + 1)
            self._asked = None
        except BaseException:
            self._expire_old(self._own(ISSUED))
            raise
        finally:
            token.append(None)

    # ------------------------------------------------------------------- batches

    def replay(
        self,
        raw: Any,
        outcomes: Any,
        *,
        available: Any = None,
        time: Any = None,
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
        carry
            What an earlier batch left pending.  A batch that is interrupted changes nothing.
        """
        return self._replay(raw, outcomes, available, time, carry)

    # --------------------------------------------------------------------- state

    def certificate(self, failure: float = FAILURE) -> Certificate:
        """Return what was measured so far, and each theorem's bound beside it.

        What is said to hold about this very run may fail with probability ``failure``.
        """
        chance = probable(failure)
        with self._gate:
            made = certificate_of(self._spec, self._arena.row(), len(self._counter), chance)
            return replace(made, seeded=self._secret.seeded)
