"""The rounds of a table's batch whose outcomes come later: which tickets, and in which order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Bits, Reals, Words
from calibrant.core.desk import SHIFT, Found
from calibrant.recalibrate.crowd import Crowd, Turns
from calibrant.recalibrate.delivery import Schedule, schedule
from calibrant.recalibrate.keyed import KeyedPending
from calibrant.recalibrate.keyed_parts import Due
from calibrant.recalibrate.late import Columns


@dataclass(frozen=True, eq=False)
class Plan:
    """What happens to which tickets, and when each outcome becomes known."""

    events: Schedule
    tickets: Due
    arrives: Reals


@dataclass(frozen=True, eq=False)
class LateRounds:
    """Rounds of a batch, those of each row together.

    Attributes
    ----------
    rows, numbers, order
        The row of each round, the number of its ticket there, and its place in the batch.
    raw, outcomes, when, known, stamps
        Forecasts and outcomes, and when these are made and known.
    due
        Outcomes of earlier tickets that become known meanwhile.
    max_open, kept
        After how many newer ones a ticket expires, and how many words of advice each keeps.
    """

    rows: Words
    numbers: Words
    order: Words
    raw: Reals
    outcomes: Bits
    when: Reals
    known: Reals
    stamps: Reals
    due: KeyedPending
    max_open: int
    kept: int

    def plan(self, held: list[Found]) -> Plan:
        """Plan the batch; the earlier tickets are those that are due, and some that will expire."""
        before = np.array([found[1:3] for found in held], np.int64).reshape(-1, 2)
        row = np.concatenate([before[:, 0], self.rows])
        number = np.concatenate([before[:, 1], self.numbers])
        gone = len(held) - len(self.due)
        arrives = np.concatenate([self.due.available, np.full(gone, np.inf), self.known])
        outcomes = np.concatenate([self.due.outcome, np.zeros(gone, np.uint8), self.outcomes])
        columns = Columns(held, self.raw, self.stamps, self.kept)
        names = self.rows << SHIFT | self.numbers
        tickets = Due(held, row, number, columns, outcomes, names, self.order)
        _, part = np.unique(row, return_inverse=True)
        events = schedule(len(held), number, arrives, self.when, self.max_open, part)
        return Plan(events, tickets, arrives)

    def turns(self, plan: Plan) -> Turns:
        """Return when each event happens, by the rows of the batch."""
        first = len(plan.tickets.held)
        positions = np.concatenate([np.full(first, -1), self.order])
        prompt = np.concatenate([np.zeros(first, bool), self.known <= self.when])
        return Turns.of(plan.events, plan.tickets.row, positions, prompt)

    def limited(self, plan: Plan, crowd: Crowd, safe: bool) -> Plan:
        """Return the plan of a table that has no room for all tickets: the oldest are lost."""
        turns = self.turns(plan)
        if turns.most() + len(crowd.desk) <= crowd.most:
            return plan
        turns.count(crowd, plan.tickets.words, self.max_open)
        lost = crowd.lost_before(plan.tickets.held)
        plan = self.plan([*plan.tickets.held, *lost])
        words, rows = plan.tickets.words, plan.tickets.row
        events = self.turns(plan).without(crowd.lost, words, rows, safe)
        return Plan(events, plan.tickets, plan.arrives)
