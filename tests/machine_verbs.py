"""One object of a kind at play, as the contract of verbs looks at it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from machine_draws import first
from machine_kinds import KINDS, Kind

__all__ = ["Play", "altered", "told_by"]


class Play:
    """One object of a kind, and the same raw forecast and outcome each time."""

    def __init__(self, name: str, max_open: int = 100) -> None:
        self.kind: Kind = KINDS[name]
        self.rec = self.kind.make(1, max_open)
        self.raw, self.outcome = first(self.kind.raws), first(self.kind.outcomes)
        self.other = self.kind.other(self.outcome)
        self.times = {} if self.kind.has("learn") else {"time": 1.0}

    def forecast(self, rec: Any = None, **named: Any) -> Any:
        """Make a forecast, at a time if the kind needs one."""
        return self.kind.forecast(rec or self.rec, self.raw, **self.times | named)

    def filed(self, **named: Any) -> Any:
        """Return an open ticket that is not the latest."""
        ticket = self.forecast(**named)
        self.forecast()
        return ticket

    def closed(self) -> Any:
        """Return a ticket whose outcome is known."""
        return self.rec.observe(self.forecast(), self.outcome)

    @contextmanager
    def refused(self, error: type[Exception], text: str) -> Iterator[None]:
        """Expect this very error, and nothing changed."""
        before = self.rec.to_bytes()
        with pytest.raises(error, match=f"^{re.escape(text)}$") as found:
            yield
        assert type(found.value) is error
        assert self.rec.to_bytes() == before


def altered(ticket: Any, **changes: Any) -> Any:
    """Return what was stored of a ticket, with changes."""
    return type(ticket).from_dict(ticket.to_dict() | changes)


def told_by(play: Play) -> list[Callable[[Any], Any]]:
    """Return the verbs that close a ticket."""
    return [lambda given: play.rec.observe(given, play.outcome), play.rec.expire]
