"""How each kind of model is asked, and how its tickets lie in the log.

A form is of one model.  Binary models have the oldest form: what all of them need, and words of the
transform behind.  Models of other kinds store what their desk keeps of a ticket, word by word.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, TypeAlias

from calibrant.classes import ClassCalibrant, MendedTicket
from calibrant.core import check
from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput, InvalidType
from calibrant.groups import GroupRecalibrator, GroupTicket
from calibrant.journal.events import Asked, Group
from calibrant.recalibrate import Recalibrator, Table
from calibrant.recalibrate.earlier import was
from calibrant.recalibrate.keyed import Key, KeyedTicket

HEAD: Final = struct.Struct("<qqqdd")
NUMBER: Final = struct.Struct("<q")

Model: TypeAlias = Recalibrator | Table | GroupRecalibrator | ClassCalibrant
AnyTicket: TypeAlias = Ticket | MendedTicket


class Form(ABC):
    """How a model is asked, and how its tickets lie in the log.

    Attributes
    ----------
    kinds
        The classes of models.
    past
        How raw forecast, time and the outcome that stood lie before the ticket in a correction.
    batches
        Whether many events can be played at once.
    slow
        Whether rounds one by one take so long that machine code is worth its start.
    """

    kinds: ClassVar[tuple[type[Any], ...]]
    past: ClassVar[struct.Struct] = struct.Struct("<ddI")
    batches: bool = False
    slow: bool = False

    def __init__(self, model: Any) -> None:
        self.model = model

    def make_machine(self) -> None:
        """Make machine code for the rounds of the model, for which nobody who asks waits."""
        self.model.copy().compile()

    def forecast(self, asked: Asked) -> Any:
        """Make a forecast; return its ticket."""
        self._refuse(asked, "key", "groups")
        return self.model.forecast(asked.x, id=asked.id, time=asked.time)

    @abstractmethod
    def packed(self, ticket: Any) -> bytes:
        """Return all of a ticket but what was asked."""

    @abstractmethod
    def revived(
        self, told: bytes, id: str, key: Key | None, x: Any, time: Any, groups: tuple[Group, ...]
    ) -> Any:
        """Return a ticket from its packed form, and what was asked."""

    def outcome(self, told: Any) -> int:
        """Return an outcome, if it is one."""
        return check.outcome(told)

    def secret(self, key: Key | None) -> bytes:
        """Return the secret of the draws, for a key where there are keys."""
        return bytes(self.model._secret)

    def like(self, other: Any) -> bool:
        """Say whether another model has the same settings."""
        return isinstance(other, self.kinds) and bool(other._spec == self.model._spec)

    def made_of(self, pattern: Any) -> bool:
        """Say whether the model is what would be made of a pattern."""
        return self.like(pattern)

    def _refuse(self, asked: Asked, *names: str) -> None:
        """Refuse what forecasts of this kind do not have."""
        if "key" in names and asked.key is not None:
            raise InvalidInput(f"key must be left out in a stream without keys, got {asked.key!r}")
        if "groups" in names and asked.groups:
            rule = "groups must be left out in a stream without groups"
            raise InvalidInput(f"{rule}, got {list(asked.groups)!r}")


class Lone(Form):
    """A recalibrator of binary outcomes."""

    kinds: ClassVar[tuple[type[Any], ...]] = (Recalibrator,)
    past = struct.Struct("<ddB")

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.kept: int = model._spec.kept
        self.batches = not model._spec.issuer(bytes(16)).full_support
        # A rule alone takes no longer than the ticket.
        self.slow = model._spec.transform is not None

    def make_machine(self) -> None:
        """Make machine code for the rounds of all models with these settings."""
        self.model._spec.compile()

    def made_of(self, pattern: Any) -> bool:
        """Say whether the model is what is made of a pattern, or was before."""
        return isinstance(pattern, Recalibrator) and was(self.model._spec, pattern)

    def packed(self, ticket: Ticket) -> bytes:
        """Return all of a ticket but what was asked."""
        place, weight, _, _, clock, mixed, *kept = ticket.fields
        told = HEAD.pack(ticket.number, place, clock, weight, mixed)
        if kept:
            told += struct.pack(f"<{len(kept)}q", *kept)
        if ticket._law is not None:
            told += struct.pack(f"<{len(ticket._law)}d", *ticket._law)
        return told

    def revived(
        self, told: bytes, id: str, key: Key | None, x: Any, time: Any, groups: tuple[Group, ...]
    ) -> Ticket:
        """Return a ticket from its packed form, and what was asked."""
        number, place, clock, weight, mixed = HEAD.unpack_from(told)
        words = struct.unpack_from(f"<{self.kept}q", told, HEAD.size)
        issuer, law = self._issuer(key), None
        if issuer.full_support:
            rest = told[HEAD.size + 8 * self.kept :]
            law = struct.unpack(f"<{len(rest) // 8}d", rest)
        parts = number, place, weight, x, time, None if clock < 0 else clock, law, mixed, words
        if key is None:
            return Ticket(issuer, id, *parts)
        made = KeyedTicket(issuer, id, *parts)
        made._key = key
        return made

    def _issuer(self, key: Key | None) -> Any:
        return self.model._issuer


class Keyed(Lone):
    """A table: a recalibrator for each key."""

    kinds = (Table,)

    def forecast(self, asked: Asked) -> Any:
        """Make a forecast; return its ticket."""
        if asked.key is None:
            raise InvalidType("key must be given to a stream that is keyed, got None")
        self._refuse(asked, "groups")
        return self.model.forecast(asked.key, asked.x, id=asked.id, time=asked.time)

    def secret(self, key: Key | None) -> bytes:
        """Return the secret of the draws of a key."""
        return bytes(self.model._secret(self.model._number_of(key)))

    def _issuer(self, key: Key | None) -> Any:
        return self.model._issuer(self.model._number_of(key))


class Filed(Form):
    """A model of another kind, whose tickets lie in the log as on its desk."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._line = struct.Struct(f"<{model._counter.desk.fields}")

    def outcome(self, told: Any) -> int:
        """Return an outcome, if it is one for the model."""
        return int(self.model._outcome(told))

    def like(self, other: Any) -> bool:
        """Say whether another model has the same settings."""
        return isinstance(other, type(self.model)) and bool(other._spec == self.model._spec)

    def packed(self, ticket: Any) -> bytes:
        """Return all that the desk would keep of a ticket."""
        return NUMBER.pack(ticket.number) + self._line.pack(*ticket.fields)

    def revived(
        self, told: bytes, id: str, key: Key | None, x: Any, time: Any, groups: tuple[Group, ...]
    ) -> Any:
        """Return a ticket from its packed form."""
        counter = self.model._counter
        return counter.kind.revived(counter.issuer, id, *self._unpacked(told))

    def _unpacked(self, told: bytes) -> tuple[int, tuple[Any, ...]]:
        """Return number and fields of a ticket."""
        return NUMBER.unpack_from(told)[0], self._line.unpack_from(told, NUMBER.size)


class InGroups(Filed):
    """A recalibrator whose forecasts belong to groups."""

    kinds = (GroupRecalibrator,)

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        if model._rules.rules:
            raise InvalidInput("groups of a stream on disk must be names, got rules")

    def forecast(self, asked: Asked) -> Any:
        """Make a forecast; return its ticket."""
        self._refuse(asked, "key")
        told = {"groups": list(asked.groups), "id": asked.id, "time": asked.time}
        return self.model.forecast(asked.x, **told)

    def revived(
        self, told: bytes, id: str, key: Key | None, x: Any, time: Any, groups: tuple[Group, ...]
    ) -> GroupTicket:
        """Return a ticket from its packed form, and what was asked."""
        number, fields = self._unpacked(told)
        # The names of closed tickets are not at the model's hand: they come from the log.
        made = super(GroupTicket, GroupTicket).revived(self.model._issuer, id, number, fields[:-1])
        made._groups = groups
        return made

    def like(self, other: Any) -> bool:
        """Say whether another model has the same settings."""
        mine = self.model._rules.declared
        return super().like(other) and bool(other._rules.declared == mine)


class InClasses(Filed):
    """The default for several classes; outcomes are numbers of classes."""

    kinds = (ClassCalibrant,)
    slow = True

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        if model._parts.full_support:
            raise InvalidInput("method must draw one of two points where there are classes")

    def like(self, other: Any) -> bool:
        """Say whether another model has the same settings."""
        return super().like(other) and bool(other.classes == self.model.classes)

    def made_of(self, pattern: Any) -> bool:
        """Say whether the model is what is made of a pattern, or was before."""
        classes = pattern.classes if isinstance(pattern, ClassCalibrant) else 0
        return bool(classes == self.model.classes) and was(self.model._spec, pattern)


FORMS: Final[tuple[type[Form], ...]] = (Keyed, Lone, InGroups, InClasses)


def form_type(model: Any) -> type[Form] | None:
    """Return how a model is kept on disk; None if it cannot be, or does not say that it can."""
    known = (form for form in FORMS if isinstance(model, form.kinds))
    return next(known, Filed if getattr(model, "filed", False) else None)


def form_of(model: Any) -> Form:
    """Return the form of a model, if it can be kept on disk.

    >>> form_of(3)
    Traceback (most recent call last):
    calibrant.errors.InvalidInput: model must be a recalibrator of binary outcomes, with groups or
    with classes, or a table, got 3
    """
    if (form := form_type(model)) is not None:
        return form(model)
    rule = "a recalibrator of binary outcomes, with groups or with classes, or a table"
    raise InvalidInput(f"model must be {rule}, got {model!r}")
