"""What must be refused, with which error, and without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import machine_naive as naive
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from machine_draws import BAD_OUTCOME, BAD_RAW, BY, OUTCOME, PAST, RAW, having
from machine_kinds import Kind

from calibrant.core.ticket import Ticket
from calibrant.errors import (
    ExpiredTicket,
    ForeignTicket,
    InvalidInput,
    InvalidType,
    RepeatedTicket,
    UnknownTicket,
)

__all__ = ["Refusals"]


class Refusals(RuleBasedStateMachine):
    """The rules of a machine that must fail."""

    kind: Kind
    subject: Any
    stranger: Any
    watched: bool
    book: naive.Book

    @having("forecast")
    @rule(raw=BAD_RAW)
    def refuse_to_forecast(self, raw: Any) -> None:
        with self.refused(InvalidInput, InvalidType):
            self.kind.forecast(self.subject, raw, **self.facts(None, False))

    @having("observe")
    @rule(
        what=st.sampled_from(["past", "past", "never", "strange", "early", "bad"]),
        number=PAST,
        by=BY,
        raw=RAW,
        outcome=OUTCOME,
        bad=BAD_OUTCOME,
    )
    def refuse_to_observe(
        self, what: str, number: int | None, by: str, raw: Any, outcome: Any, bad: Any
    ) -> None:
        if what == "past" and number is not None:
            self._not_open(self.book.rounds[number], by, outcome)
        elif what == "never":
            self._never_issued(outcome)
        elif what == "strange":
            self._strange(raw, outcome)
        elif what in ("early", "bad") and self.book.open():
            self._bad(self.book.open()[0], bad if what == "bad" else outcome, what == "early")

    @having("observe", "id")
    @rule(raw=RAW, outcome=OUTCOME)
    def refuse_a_ticket_whose_name_was_given_again(self, raw: Any, outcome: Any) -> None:
        for made in [made for made in self.book.open() if made.name == "again"]:
            self.settle(made, "ticket", outcome, False)
        self.announce(raw, self.facts("again", False))
        first = self.book.rounds[-1]
        self.settle(first, "ticket", outcome, False)
        self.announce(raw, self.facts("again", False))
        self._not_open(first, "ticket", outcome)

    @having("correct")
    @rule(what=st.sampled_from(["blank", "strange", "again", "again"]), raw=RAW, outcome=OUTCOME)
    def refuse_to_correct(self, what: str, raw: Any, outcome: Any) -> None:
        if what == "blank":
            self._without_outcome(outcome)
        elif what == "strange":
            self._strange_and_closed(raw, outcome)
        elif self.kind.has("again"):
            self._corrected_twice()

    def _not_open(self, made: naive.Round, by: str, outcome: Any) -> None:
        by = self.possible(made, by)
        taken = by == "name" and any(r.name == made.name for r in self.book.open())
        if not taken:
            with self.refused(self.book.refusal(made, by)):
                self.subject.observe(self.handle(made, by), outcome)
            with self.refused(self.book.refusal(made, by)):
                self.subject.expire(self.handle(made, by))

    def _never_issued(self, outcome: Any) -> None:
        for id in (self.book.issued + 1, -1, "nobody"):
            with self.refused(UnknownTicket):
                self.subject.observe(id, outcome)
            with self.refused(UnknownTicket):
                self.subject.expire(id)

    def _strange(self, raw: Any, outcome: Any) -> None:
        ticket = self.kind.forecast(self.stranger, raw, **self.facts(None, False))
        with self.refused(ForeignTicket):
            self.subject.observe(ticket, outcome)
        with self.refused(ForeignTicket):
            self.subject.expire(ticket)

    def _bad(self, made: naive.Round, outcome: Any, early: bool) -> None:
        if early and made.time is None:
            return
        when = {"time": made.time - 1.0} if early else {}
        with self.refused(InvalidInput, InvalidType):
            self.subject.observe(self.handle(made, "ticket"), outcome, **when)

    def _without_outcome(self, outcome: Any) -> None:
        blank = [r for r in self.book.rounds if r.ticket is not None and r.outcome is None]
        for made in blank[:1] + blank[-1:]:
            with self.refused(ExpiredTicket if self.book.known_to_expire(made) else InvalidInput):
                self.subject.correct(made.ticket, outcome)

    def _strange_and_closed(self, raw: Any, outcome: Any) -> None:
        ticket = self.kind.forecast(self.stranger, raw, **self.facts(None, False))
        ticket = self.stranger.observe(ticket, outcome)
        with self.refused(ForeignTicket):
            self.subject.correct(ticket, self.kind.other(outcome))

    def _corrected_twice(self) -> None:
        for made in self.corrected_alone()[:1]:
            stale = type(made.stale).from_dict(made.stale.to_dict())
            with self.refused(RepeatedTicket):
                self.subject.correct(stale, made.outcome)

    def refuse_all_that_is_over(self) -> None:
        """Tell outcomes again, of the oldest and the latest rounds that cannot take one."""
        over = self.past() if self.book.learned and self.kind.has("observe") else []
        for made in over[:4] + over[4:][-4:]:
            for by in ("ticket", "number", "name"):
                self._not_open(made, by, self.book.learned[0].outcome)

    def past(self) -> list[naive.Round]:
        """Return the rounds whose outcome cannot be told any more."""
        waiting = {id(made) for made in self.book.open()}
        return [made for made in self.book.rounds if id(made) not in waiting]

    def corrected_alone(self) -> list[naive.Round]:
        """Return corrected rounds whose cell no other round was announced in."""
        cells = [(r.said.bucket, r.said.value) for r in self.book.learned]
        return [
            made
            for made in self.book.learned
            if isinstance(made.stale, Ticket)
            and not made.said.fallback
            and made.stale.outcome != made.outcome
            and cells.count((made.said.bucket, made.said.value)) == 1
        ]

    @contextmanager
    def refused(self, *errors: type[Exception]) -> Iterator[None]:
        """Expect one of these errors, and nothing changed."""
        before = self.subject.to_bytes() if self.watched else None
        with pytest.raises(errors):
            yield
        assert before is None or self.subject.to_bytes() == before
