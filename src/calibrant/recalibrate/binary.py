"""A stream of binary outcomes: one row of a spec, and its tickets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, Self

import numpy as np

from calibrant.calibrators import Account, Calibrator
from calibrant.calibrators.arena import Arena
from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.codec import Document
from calibrant.core.gate import Gate, HandyGate
from calibrant.core.stateful import Migration
from calibrant.core.ticket import Ticket
from calibrant.errors import ForeignTicket
from calibrant.kernels import bodies
from calibrant.kernels import layout as word
from calibrant.kernels.on_array import GLANCED, SEEN
from calibrant.kernels.rounds import Peeked
from calibrant.recalibrate import at_once, version1, version2, version3
from calibrant.recalibrate.at_once import OFTEN as OFTEN
from calibrant.recalibrate.body import unpacked
from calibrant.recalibrate.context import unread, words_of
from calibrant.recalibrate.counter import Counter, clock_of
from calibrant.recalibrate.intact import Found
from calibrant.recalibrate.record import account_of
from calibrant.recalibrate.rows import Rows
from calibrant.recalibrate.secret import Secret, coin_at, secret_read
from calibrant.recalibrate.spec import MAX_OPEN, SECRETS, Spec, made_rule, shared_spec
from calibrant.recalibrate.stream import Stream, overtaken
from calibrant.transforms import from_description

blank: Final = object.__new__


class Binary(Stream[Ticket]):
    """What a recalibrator of one stream of probabilities does beneath its verbs."""

    __slots__ = (
        "_asked", "_glances", "_how", "_issuer", "_looked", "_most", "_near", "_reads", "_rows",
        "_spec",
    )  # fmt: skip

    _gate: HandyGate
    _reads: Any
    """How many features an expert reads; None is what a call without context is compared with."""

    version: ClassVar[int] = 4
    migrations: ClassVar[dict[int, Migration]] = {
        1: version1.migrated,
        2: version2.migrated,
        3: version3.migrated,
    }
    _gates: ClassVar[type[Gate]] = HandyGate
    _tickets: ClassVar[Any] = Ticket
    _counters: ClassVar[Any] = Counter

    def _begin(
        self, spec: Spec, secret: Secret, max_open: Any, words: list[Any] | Words | None = None
    ) -> None:
        """Set up a row of that spec, before its first round or as given."""
        cap = check.whole(max_open, "max_open", low=1, high=MAX_OPEN)
        arena = spec.arena(secret) if words is None else spec.arena_of(secret, words)
        self._start(spec, secret, cap, arena, words is not None)

    def _start(
        self, spec: Spec, secret: Secret, cap: int, arena: Arena, loaded: bool = True
    ) -> None:
        """Go on with a row of that spec, where it was left if it was ``loaded``."""
        self._spec, self._secret, self._issuer = spec, secret, spec.issuer(secret)
        whose = self._issuer.fingerprint
        self._open(arena, self._counters(self._tickets, self._issuer, whose, spec.fields, cap))
        self._rows = Rows(spec, arena)
        # A new stream goes on with machine code that another one has loaded, as a read one does.
        if arena.listed is None and (loaded or spec.transform is not None):
            self._rows.begin_compiled(spec.ready)
        self._timed, self._reads = spec.rule.timed, spec.slots or None
        # Where a look is as good later as long as nothing is learned.
        self._glances = spec.raw_safe is None and not spec.slots
        # What a ticket keeps is read where newer forecasts were made, and features always are.
        self._near = 0 if spec.slots else 1
        self._most = min(self._rows.capacity, cap)

    def _open(self, arena: Arena, counter: Counter[Ticket]) -> None:
        super()._open(arena, counter)
        self._asked: float | None = None
        self._looked: Peeked | None = None
        self._how = SEEN

    # ------------------------------------------------------------------ facts

    @property
    def calibrator(self) -> Calibrator:
        """The rule that runs in each bucket."""
        return self._spec.rule

    @property
    def buckets(self) -> int:
        """Number of buckets M."""
        return self._spec.buckets

    @property
    def prior(self) -> int:
        """Strength of the identity prior."""
        return self._spec.prior

    @property
    def spec(self) -> Spec:
        """What this stream is, apart from its state."""
        return self._spec

    # ----------------------------------------------------------------- a round

    def _issue(self, raw: float) -> Ticket:
        number, place, weight, mixed, clock, kept, law = self._rows.issue(self._row, raw)
        # Ticket(...) without the call of its __init__, which takes as long as the rule.
        ticket = blank(Ticket)
        ticket._issuer, ticket._id, ticket._number = self._issuer, number, number
        ticket._raw, ticket._place, ticket._weight, ticket._mixed = raw, place, weight, mixed
        ticket._law, ticket._kept, ticket._clock, ticket._outcome = law, kept, clock, None
        return ticket

    def _learn(self, ticket: Ticket, outcome: int) -> None:
        self._rows.learn_ticket(self._row, ticket, outcome)

    def __repr__(self) -> str:
        told = ", ".join(f"{k}={v!r}" for k, v in self.calibrator.parameters.items())
        return (
            f"Recalibrator({self.calibrator.name!r}, {told}, buckets={self.buckets}, "
            f"prior={self.prior}, rounds={self.rounds})"
        )

    def _learn_ticket(self, ticket: Ticket, outcome: int, words: list[Any]) -> None:
        """Learn the outcome of a ticket that kept advice, in words that are given."""
        rows, row, number, time = self._rows, self._row, ticket._number, ticket._time
        if words[row + word.ISSUED] - number > self._near:
            rows.learn_ticket(row, ticket, outcome)
        else:
            rows.plain_learn(
                words, words, row, number, ticket._place, ticket._weight,
                ticket._mixed, ticket._raw, 0.0 if time is None else time, outcome,
            )  # fmt: skip
        if number & OFTEN == OFTEN:
            self._go_over()

    def _withdraw(self, before: int) -> None:
        """Take back the last forecast if an interrupt came before its ticket was handed out.

        So many were announced ``before``; compiled steps remember that themselves.
        """
        counter, words, row = self._counter, self._rows.state()[0], self._row
        number = before if self._rows.steps is None else words[word.UNDO_NUMBER]
        if words[row + word.ISSUED] != number + 1 or number < 0:
            return
        latest = counter.latest
        if (latest is None or latest.number != number) and not counter.holds(number):
            self._rows.program.withdraw(words, row, number)
        else:
            self._expire_old(number + 1)

    def _close_learned(self, ticket: Ticket | None, outcome: int) -> None:
        """Close a ticket if an interrupt came after its outcome was learned."""
        counter, learned = self._counter, self._rows.state()[0][word.UNDO_LEARNED]
        if ticket is not None and learned == ticket.number and counter.is_open(ticket):
            ticket._outcome = outcome
            counter.close(ticket)

    def _correct(self, ticket: Ticket, outcome: int) -> None:
        if ticket.issuer.grid != self._spec.rule.lattice:
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        if self._timed and ticket.time is None:
            raise self._no_time(f"{ticket!r} without one")
        if not ticket.fallback:
            self._rows.check_counted(self._row, ticket.place, outcome, ticket)
        told = ticket.number, ticket.place, ticket.weight, ticket._mixed, ticket.raw
        time = 0.0 if ticket.time is None else ticket.time
        if self._how == GLANCED:
            self._asked = None
        self._rows.correct(self._row, (*told, time), outcome)

    @property
    def _reserves(self) -> bool:
        return self._spec.raw_safe is not None

    def _forget(self, tickets: Iterable[Found]) -> None:
        for place, weight, raw, *_ in tickets:
            self._rows.forget(self._row, place, weight, raw)

    def _outcome(self, outcome: Any) -> int:
        return check.outcome(outcome)

    def _peek(self, raw: float, told: list[int] | None = None) -> Peeked:
        """Look at the next draw, with what is known besides; nothing is remembered."""
        self._note_asked()
        if self._reads is not None:
            self._rows.tell(told or [0] * self._reads)
        return self._rows.peek(self._row, raw)

    def _note_asked(self) -> None:
        """Move what is remembered of the last prediction to the other notes; forget a mean."""
        if self._asked is not None and self._how == SEEN:
            self._noted(self._asked, self._looked or self._rows.looked_at())
        self._asked = self._looked = None

    def _features(self, context: Any) -> list[int]:
        """Return what is known of a round as an expert reads it, where one does."""
        if self._reads is None:
            raise unread(context)
        return words_of(context, self._reads)

    def _sample_with(self, raw: float, context: Any) -> float:
        """Return the next draw with that context, and note what was seen."""
        told = self._features(context)
        with self._gate:
            seen = self._peek(raw, told)
            self._noted((raw, *told), seen)
        return raw if seen[0] & word.ASIDE else self._issuer.values[seen[0] & word.CELL]

    def _learn_with(self, raw: float, outcome: int, context: Any) -> None:
        """Make a round of such a look, or of a draw made now."""
        told = self._features(context)
        with self._gate:
            try:
                self._rows.tell(told)
                self._commit(raw, outcome, (raw, *told))
            except BaseException:
                self._expire_old(self._own(word.ISSUED))
                raise
            if self._own(word.ISSUED) & OFTEN == OFTEN:
                self._go_over()

    def _commit(self, raw: float, outcome: int, key: Any = None) -> None:
        """Make a round of a prediction, noted under its raw forecast or a key, or drawn now."""
        rows, row = self._rows, self._row
        key = raw if key is None else key
        if raw == self._asked and self._looked is None and self._how == SEEN:
            number = rows.commit_look(row, raw, outcome)
        else:
            self._note_asked()
            note = self._notes.get(key) or rows.peek(row, raw)
            number = rows.commit(row, note, raw, outcome)
        # A refused round leaves its note: asked again, the answer is the same.
        if number < 0:
            raise overtaken(raw)
        self._asked = None
        if self._notes:
            self._notes.pop(key, None)
        if number >= self._counter.max_open:
            self._expire_old(number + 1)

    def coin_of(self, ticket: Ticket | int | str) -> float:
        """Return the coin that decided a ticket's draw: ``ticket.mixture.draw(coin)`` is its index.

        For audits.  An open ticket may be given by its id.
        """
        found = self._ours(ticket)
        clock = clock_of(found, self.issued)
        return coin_at(self._secret_at(found.number), self._spec.coins, found.bucket, clock)

    def _reseat(self) -> None:
        plain, arena = self._arena.listed is not None, self._arena
        self._spec.seat(arena.flat()[self._row :], self._secret)
        if plain:
            arena.words()
        self._asked = self._looked = None
        self._issuer = self._spec.issuer(self._secret)
        self._counter.issue_as(self._issuer, self._issuer.fingerprint)

    def _become_again(self, kept: Any) -> None:
        super()._become_again(kept)
        self._rows.use_array()

    def _compile(self) -> None:
        self._note_asked()
        self._rows.compile()

    def _go_over(self) -> None:
        """Go on with machine code if there is some: of this process, or from the cache on disk.

        Of a rule alone the plain steps take as long as a ticket: for that nothing is loaded.
        """
        if self._spec.transform is not None and self._spec.is_made():
            self._take_over()

    def _account(self) -> Account:
        """Return the counts from which every measured quantity follows."""
        return account_of(self._spec, self._arena.row())

    # ------------------------------------------------------------------- documents

    def _stored(self) -> tuple[dict[str, Any], dict[str, Words]]:
        told = {"max_open": self.max_open, "secret_from": self._secret.origin}
        return self._spec.settings | told, {}

    def _restore(self, document: Document) -> None:
        spec, cap = self._described(document)
        arrays, flat = document.arrays, None
        at_once.look_for_machine(spec)
        if spec.ready is not None and bodies.made and "row" not in arrays:
            flat = spec.body.flat(*_body(arrays), bodies.made[0].unpack)
        words = self._flat(spec, arrays) if flat is None else flat
        first = spec.layout.row + word.SECRET
        secret = secret_read(document, SECRETS.pack(*words[first : first + 2]))
        self._begin(spec, secret, cap, words)
        self._load_tickets(arrays)
        at_once.remember(document, spec, cap, self.version)

    @staticmethod
    def _flat(spec: Spec, arrays: dict[str, Words]) -> Words:
        """Return the shared part and the row of a document, if kernels can work with it."""
        body = spec.body
        if "row" in arrays:
            told = unpacked(arrays["row"], spec.layout)[body.places]
        else:
            told = body.told(*_body(arrays))
        return np.concatenate([spec.layout.shared, body.row(told)])

    def _body(self) -> bytes | None:
        """Return the row as it is stored, or None where that takes other ways."""
        spec, words = self._spec, self._arena.listed
        if words is not None and spec.lists is not None:
            return spec.lists.packed(words)
        if self._rows.steps is not None and bodies.made:
            return spec.body.packed_flat(self._arena.flat(), bodies.made[0].pack).tobytes()
        return None

    def _rowed(self, row: Words | None = None) -> dict[str, Words]:
        body = self._spec.body
        if row is None and self._rows.steps is not None and bodies.made:
            return {"body": body.packed_flat(self._arena.flat(), bodies.made[0].pack)}
        return {"body": body.packed(self._arena.row() if row is None else row)}

    @classmethod
    def _unborn(cls, document: Document) -> Self:
        """Return a stream before its first round, with the settings of a document."""
        spec, cap = spec_of(document.shape, document.settings)
        made = cls.__new__(cls)
        made._begin(spec, Secret.of(bytes(16), None), cap)
        return made

    def _described(self, document: Document) -> tuple[Spec, int]:
        """Return the spec of a document, and the cap on open tickets."""
        return spec_of(document.origin, document.settings)

    def _check_tickets(self, lines: Words) -> None:
        key, number, place = lines[:, :3].T
        reals = np.ascontiguousarray(lines).view(np.float64)
        shares = reals[:, [3, 4, 7]]
        fits = ((key >= 1 << 62) | (key == number)) & (number >= 0) & (number < self.issued)
        fits &= possible(self._spec, place, shares, lines[:, 8:])
        if not fits.all() or (np.diff(number, prepend=-1) <= 0).any():
            raise ValueError("tickets that were never issued")
        if self.rounds + len(lines) > self.issued:
            raise ValueError(
                f"{len(lines)} open tickets after {self.rounds} of {self.issued} rounds"
            )


def _body(arrays: dict[str, Words]) -> tuple[Words, bool]:
    """Return a body, and whether it is of the first form."""
    old = arrays.get(version3.OLD_BODY)
    return (arrays["body"], False) if old is None else (old, True)


def possible(spec: Spec, place: Words, shares: Reals, kept: Words) -> Mask:
    """Say which lines may be of open tickets: their places, what was kept, and their shares.

    The shares are columns: weight, raw and mixed forecast.
    """
    inside = (place >= 0) & (((place >> 16) & word.NARROW) < spec.buckets)
    paired = (shares[:, 0] < 1.0) & (not spec.rule.kernels.full_support)
    inside &= on_grid(place, paired, spec.rule.lattice.cells, spec.rule.doublings)
    inside &= ((shares >= 0.0) & (shares <= 1.0)).all(1) & (kept >= 0).all(1)
    return inside


def spec_of(shape: bytes, settings: dict[str, Any]) -> tuple[Spec, int]:
    """Return the spec that settings describe, parsed once, and the cap on open tickets."""
    found = _specs.get(shape)
    if found is None:
        told, transform = settings.get("raw_safe"), settings.get("transform")
        spec = Spec(
            made_rule(settings["method"], settings["parameters"]),
            settings["buckets"],
            settings["prior"],
            settings["loss"],
            None if transform is None else from_description(transform),
            None if told is None else float.fromhex(told),
            settings["coins"],
        )
        if len(_specs) >= MOST_SPECS:
            _specs.clear()
        found = _specs[shape] = shared_spec(spec), settings["max_open"]
    return found


MOST_SPECS: Final = 256
_specs: dict[bytes, tuple[Spec, int]] = {}


def on_grid(place: Words, paired: Mask, cells: int, doublings: int) -> Mask:
    """Say which places are on the grid, with their pair, which is 2**doublings wide at most."""
    told, cell = place >> (15 + word.WIDTH), place & word.CELL
    width = np.clip(told, 0, doublings)
    low = cell - (((place >> 15) & 1) << width)
    high = np.maximum(cell, low + (paired.astype(np.int64) << width))
    fits: Mask = (told == width) & (low >= 0) & (high < cells)
    return fits
