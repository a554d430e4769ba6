"""One binary calibrator a level, fed with whether the PIT was below it."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from calibrant.bounds import Bound
from calibrant.calibrators.layout import Layout
from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.ticket import Ticket
from calibrant.errors import ForeignTicket, InvalidInput
from calibrant.kernels.coin import coin
from calibrant.kernels.layout import (
    CELL,
    COUNT,
    ISSUED,
    LONGEST_LAG,
    MOST_OUTSTANDING,
    RAW_LOSS,
    ROUNDS,
    ROW,
    SECRET,
    STATE,
    Section,
)
from calibrant.losses import get_loss
from calibrant.recalibrate import Certificate
from calibrant.recalibrate.binary import on_grid
from calibrant.recalibrate.certificate import certify
from calibrant.recalibrate.rows import Rows
from calibrant.recalibrate.secret import block_key, secret_of
from calibrant.recalibrate.spec import made_rule
from calibrant.regression.certificate import LevelRow
from calibrant.regression.distribution import Distributions
from calibrant.regression.level import CENTRE, LevelSpec, write_first
from calibrant.regression.level import LevelCalibrator as LevelCalibrator
from calibrant.regression.level_method import (
    Arrays,
    LevelMethod,
    Played,
    Said,
    Ties,
    check_once,
    events_of,
)
from calibrant.regression.registry import quantile_methods
from calibrant.regression.rows import ask
from calibrant.regression.seat import OWN, Seat, row_layout
from calibrant.regression.ticket import QuantileTicket
from calibrant.regression.version1 import write_own

LOSS: Final = "squared"
COUNTS: Final = (ISSUED, ROUNDS, LONGEST_LAG, MOST_OUTSTANDING)
"""Every calibrator sees every round: these are the same in all rows."""
TAILS: Final = (0.0001, 0.001, 0.01, 0.03, 0.97, 0.99, 0.999, 0.9999)
"""Raw levels that are learned besides: where the raw distributions are too narrow, the outer
quantiles of the recalibrated ones lie there."""


@quantile_methods.add("pit")
class Pit(LevelMethod):
    """Learn for each level how often outcomes really fall below the raw quantile there.

    The raw distribution says that the outcome is below its quantile at p with probability p; a
    two-point calibrator turns that into a probability that is right.  The recalibrated CDF goes
    through these, sorted.  Eight levels in the tails are learned besides.

    Parameters
    ----------
    calibrator, **parameters
        Name of a calibrator and its own parameters (``resolution``, ``grid``...).
    prior
        Pseudo-rounds with which each grid point starts, as if the raw quantile were right.
    """

    name = "pit"
    guarantee = "of the calibrator, for each level: E C2 of the chances drawn there"
    assumption = "the adversary does not see the draw"
    reference = "Kuleshov, Fenner and Ermon (2018); Kuleshov and Ermon (2017)"

    def __init__(
        self,
        levels: Reals,
        *,
        calibrator: str = "foster_hart",
        prior: int = 1,
        resolution: int = 50,
        **parameters: Any,
    ) -> None:
        _check_name(calibrator)
        self.levels = levels
        self._learned = np.union1d(levels, TAILS)
        self.drawn = len(self._learned)
        rule = made_rule(calibrator, {"resolution": resolution} | parameters)
        if rule.timed:
            raise InvalidInput(f"calibrator must not forget in time, got {rule!r}")
        self._specs = [
            LevelSpec(rule, 1, prior, LOSS, level=level, divisor=CENTRE)
            for level in self._learned.tolist()
        ]
        self._options = {"calibrator": calibrator, "prior": prior, "resolution": resolution}
        self._options |= parameters

    # ------------------------------------------------------------------- the row

    @functools.cached_property
    def layout(self) -> Layout:
        """How often each level covered the outcome, and a row of the binary kind for each."""
        hits, many = Section(), len(self.levels)
        hits.whole("COVERED", STATE, "How often each level covered.", COUNT, words=many)
        own, rows = row_layout(hits, [0.0] * many), [spec.layout for spec in self._specs]
        stored = rows[0].stored.copy()
        stored[SECRET : SECRET + 2] = False  # It follows from the secret of all.
        parts = (
            np.concatenate([getattr(layout, name) for layout in (own, *rows)])
            for name in ("fresh", "real", "low", "high")
        )
        fresh, real, low, high = parts
        kept = np.concatenate([own.stored, np.tile(stored, len(rows))])
        shared, shared_real = rows[0].shared, rows[0].shared_real
        sizes = OWN, len(rows[0].fresh), 0
        return Layout(shared, fresh, ROW, *sizes, shared_real, real, kept, low, high)

    @functools.cached_property
    def _size(self) -> int:
        """Words in the row of a level."""
        return len(self._specs[0].layout.fresh)

    def _part(self, row: Words, k: int) -> Words:
        """Return the row of a level within the row of all."""
        start = OWN + len(self.levels) + k * self._size
        return row[start : start + self._size]

    def sit(self, seat: Seat, secret: bytes) -> None:
        """Work in that part of a row from now on, with draws that follow from the secret."""
        self._seat, self._rows = seat, Rows(self._specs[0], seat.arena)
        row = seat.arena.flat()[seat.row :]
        for k, spec in enumerate(self._specs):
            spec.seat(self._part(row, k), _secret(secret, k))
        first = seat.at + len(self.levels)
        self._at = [first + k * self._size for k in range(self.drawn)]
        self._issuer = self._specs[0].issuer(secret)

    def verify(self, row: Words) -> None:
        """Refuse rows of levels that counted other rounds, or what is no number."""
        real = self.layout.real
        same = all(
            (self._part(row, k)[[*COUNTS]] == row[[*COUNTS]]).all() for k in range(self.drawn)
        )
        if not same or np.isnan(row.view(np.float64)[real]).any():
            raise ValueError(f"calibrators that are not of {len(self.levels)} levels")

    def compile(self) -> None:
        """Compile the steps of the calibrators, if there is a compiler."""
        if self._rows.compile():
            self._seat.use_views()

    # ------------------------------------------------------------------- a round

    @property
    def width(self) -> int:
        """All raw levels, to learn from, and the positions to announce."""
        return len(self._learned) + len(self.levels)

    def announce(self) -> Said:
        """Draw a chance for each raw level."""
        made = [self._issued(at, p) for at, p in zip(self._at, self._learned.tolist(), strict=True)]
        drawn, mean = [t.value for t in made], [t.mean for t in made]
        draws = tuple(t.place for t in made), tuple(t.weight for t in made)
        return self._said(np.array(drawn), np.array(mean), *draws)

    def _issued(self, at: int, level: float) -> Ticket:
        number, place, weight, _, clock, _, law = self._rows.issue(at, level)
        return Ticket(self._issuer, number, number, place, weight, level, None, clock, law)

    def look(self) -> Said:
        """Return what would be drawn."""
        drawn, mean = np.empty(self.drawn), np.empty(self.drawn)
        for k, (at, level) in enumerate(zip(self._at, self._learned.tolist(), strict=True)):
            place, weight, *_ = self._rows.peek(at, level)
            drawn[k] = self._issuer.values[place & CELL]
            mean[k] = self._rows.mean_of(place, weight)
        return self._said(drawn, mean)

    def _said(self, drawn: Reals, mean: Reals, *draws: Any) -> Said:
        outer = np.sort(drawn)
        asked = np.append(self._learned, self._positions(outer[None])[0])
        return Said(asked, self._learned, outer, np.sort(mean), drawn, *draws)

    def _positions(self, outer: Reals) -> Reals:
        """Return which raw levels become ours: where the moved levels reach them."""
        knots = np.hstack([np.zeros((len(outer), 1)), outer, np.ones((len(outer), 1))])
        raw = np.tile([0.0, *self._learned.tolist(), 1.0], (len(outer), 1))
        return ask(raw, knots, self.levels[None])[0]

    def learn(self, ticket: QuantileTicket, events: list[int]) -> None:
        """Tell each calibrator whether the outcome was below its raw quantile."""
        many, levels = self.drawn, self._learned.tolist()
        draws = zip(self._at, levels, ticket.places, ticket.weights, events[:many], strict=True)
        for at, p, place, weight, event in draws:
            self._rows.learn(at, ticket.number, place, weight, p, p, 0.0, event)
        words = self._seat.state()[0]
        for m, event in enumerate(events[many:], self._seat.at):
            words[m] += event

    def amend(self, ticket: QuantileTicket, before: list[int], after: list[int]) -> None:
        """Tell each calibrator that was told wrong, and count coverage anew."""
        if len(ticket.places) != self.drawn:
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        changed = [k for k in range(self.drawn) if before[k] != after[k]]
        fresh = self.layout.fresh
        for k in changed:
            own = self._at[k], ticket.places[k], after[k], ticket
            self._rows.check_counted(*own, self._part(fresh, k))
        words, at, many = self._seat.state()[0], self._seat.at, self.drawn
        moves = [new - old for new, old in zip(after[many:], before[many:], strict=True)]
        for m, move in enumerate(moves, at):
            check_once(words[m] + move, words[self._seat.row + ROUNDS])
        for m, move in enumerate(moves, at):
            words[m] += move
        levels = self._learned.tolist()
        for k in changed:
            told = ticket.number, ticket.places[k], ticket.weights[k], levels[k], levels[k]
            self._rows.correct(self._at[k], (*told, 0.0), after[k])

    # ------------------------------------------------------------------ batches

    def play(self, raw: Distributions, outcomes: Reals, first: int, ties: Ties) -> Played:
        """Play a batch level by level."""
        events = self._events(raw, outcomes, self._learned[None], first, ties)[1]
        drawn, mean = np.empty(events.shape), np.empty(events.shape)
        for k, level in enumerate(self._learned.tolist()):
            told = events[:, k].astype(np.uint8)
            given = np.full(len(outcomes), level)
            drawn[:, k], mean[:, k], _ = self._rows.replay(self._at[k], given, told)
        self._rows.use_array()
        outer = np.sort(drawn, axis=1)
        quantiles, covered = self._events(raw, outcomes, self._positions(outer), first, ties)
        words = self._seat.counts()
        for m, hits in enumerate(covered.sum(axis=0).tolist(), self._seat.at):
            words[m] += hits
        inner = np.tile(self._learned, (len(outcomes), 1))
        return Played(quantiles, inner, outer, np.sort(mean, axis=1), drawn)

    def _events(
        self, raw: Distributions, outcomes: Reals, asked: Reals, first: int, ties: Ties
    ) -> tuple[Reals, Mask]:
        quantiles, shares = ask(raw.values, raw.levels, asked, random=ties.random)
        return quantiles, events_of(quantiles, shares, outcomes, first, ties.key)

    # ------------------------------------------------------------------- records

    def rows(self, rounds: int, delay: int) -> tuple[LevelRow, ...]:
        """Return coverage, and the calibration error of the chances drawn at each level."""
        row, many = self._seat.arena.row(), len(self.levels)
        hits = row[OWN : OWN + many] / rounds if rounds else np.full(many, np.nan)
        places = np.searchsorted(self._learned, self.levels).tolist()
        found = zip(self.levels.tolist(), hits.tolist(), places, strict=True)
        return tuple(_row(p, hit, self._record(row, k, delay)) for p, hit, k in found)

    def _record(self, row: Words, k: int, delay: int) -> Certificate:
        part, spec = self._part(row, k), self._specs[k]
        charged = float(part.view(np.float64)[RAW_LOSS])
        return certify(spec.rule, spec.account_of(part, delay), get_loss(LOSS), charged, 0, 0)

    def options(self) -> dict[str, Any]:
        """Return what it was made with."""
        return dict(self._options)

    def coin(self, secret: bytes, ticket: QuantileTicket, level: int) -> float:
        """Return the coin that drew a chance for one of the levels that are learned."""
        k = check.whole(level, "level", high=self.drawn - 1)
        return coin(block_key(_secret(secret, k), 0), ticket.number)

    def sound(self, words: Words, reals: Reals) -> Mask:
        """Say which tickets could have been issued: on the grid, with weights in [0, 1]."""
        place, weight = words[:, : self.drawn], reals[:, self.drawn :]
        rule = self._specs[0].rule
        paired = (weight < 1.0) & (not self._issuer.full_support)
        inside = on_grid(place, paired, rule.lattice.cells, rule.doublings)
        inside &= (place >= 0) & ((place >> 16) & 0xFFFFF == 0) & (weight >= 0.0) & (weight <= 1.0)
        return np.asarray(inside.all(axis=1))

    # ------------------------------------------------------- states of the first version

    def read_first(
        self, row: Words, settings: dict[str, Any], arrays: Arrays, slots: list[int]
    ) -> Words:
        """Read all calibrators of the first version, each with open tickets of its own."""
        engines, hits, many = settings["own"]["state"]["engines"], arrays["hits"], len(self.levels)
        if len(hits) != many or len(engines) != self.drawn:
            raise ValueError(f"levels other than {many}")
        row[OWN : OWN + many] = hits
        secret = bytes.fromhex(settings["secret"])
        drawn = np.empty((len(slots), 2, self.drawn), np.int64)
        for k, (spec, told) in enumerate(zip(self._specs, engines, strict=True)):
            self._check_first(spec, told, _secret(secret, k), k)
            part, start = self._part(row, k), f"level {k} "
            write_own(part, told)
            part[SECRET : SECRET + 2] = 0
            write_first(part, spec, told, arrays[start + "touched"], arrays[start + "blocks"])
            lines = arrays[start + "tickets"].reshape(-1, 6)
            kept = dict(zip(lines[:, 1].tolist(), lines[:, 2:4].tolist(), strict=True))
            drawn[:, :, k] = np.array([kept[slot] for slot in slots]).reshape(-1, 2)
        return drawn.reshape(len(slots), -1)

    def _check_first(self, spec: LevelSpec, told: dict[str, Any], secret: bytes, k: int) -> None:
        expected = {"secret": secret.hex(), "level": spec.level, "method": spec.rule.name}
        expected |= {"parameters": spec.rule.parameters, "prior": spec.prior}
        if any(told[name] != value for name, value in expected.items()):
            raise ValueError(f"another's calibrator at level {k}")


def _secret(secret: bytes, k: int) -> bytes:
    """Return the secret of a level, which follows from the secret of all."""
    return secret_of(int.from_bytes(secret, "little", signed=True), k)


def _check_name(calibrator: Any) -> None:
    if not isinstance(calibrator, str):
        raise InvalidInput(f"calibrator must be the name of one, got {calibrator!r}")


def _row(level: float, coverage: float, record: Certificate) -> LevelRow:
    for quantity, measured in (("C2", record.c2), ("C1", record.c1)):
        bounds = [b for b in record.bounds if b.quantity == quantity]
        if bounds:
            least: Bound = min(bounds, key=float)
            return LevelRow(level, coverage, quantity, measured, least)
    return LevelRow(level, coverage, "C2", record.c2, None)
