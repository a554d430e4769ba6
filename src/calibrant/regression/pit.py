"""One binary calibrator a level, fed with whether the PIT was below it."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from calibrant.bounds.game import share
from calibrant.calibrators.layout import Layout, layout_of
from calibrant.core import check
from calibrant.core.arrays import Mask, Reals, Words
from calibrant.core.codec import Document
from calibrant.core.stateful import Migration
from calibrant.core.ticket import Ticket
from calibrant.errors import ForeignTicket, InvalidInput
from calibrant.kernels import layout as kernel
from calibrant.kernels.anchor import CAUTION, DOUBT
from calibrant.kernels.crowd import count_correction
from calibrant.kernels.whole import copied
from calibrant.recalibrate import Certificate, Recalibrator
from calibrant.recalibrate.binary import possible
from calibrant.recalibrate.body import check_gaps, check_made
from calibrant.recalibrate.record import certificate_of
from calibrant.recalibrate.rows import Notes, Rows
from calibrant.recalibrate.secret import COIN_CODES, OLD, coin_at, part_of, secret_of
from calibrant.recalibrate.spec import LOSS_CODES, Spec, made_rule
from calibrant.recalibrate.version1 import moved, moved_blocks, write_own
from calibrant.regression.curves import ask, with_ends
from calibrant.regression.distribution import Distributions
from calibrant.regression.level_method import LevelMethod, Played, Said, quantile_methods
from calibrant.regression.method import OWN, Seat, Ties, check_once, row_layout
from calibrant.regression.record import LevelRow
from calibrant.regression.ticket import QuantileTicket

Asked: TypeAlias = tuple[Reals, Mask]
LOSS: Final = "squared"
COUNTS: Final = [kernel.ISSUED, kernel.ROUNDS, kernel.LONGEST_LAG, kernel.MOST_OUTSTANDING]
"""Every calibrator sees every round: these are the same in all rows."""
TAILS: Final = (0.0001, 0.001, 0.01, 0.03, 0.97, 0.99, 0.999, 0.9999)
"""Raw levels that are learned besides: where the raw distributions are too narrow, the outer
quantiles of the recalibrated ones lie there."""
CENTRE: Final = 10_000
"""Common denominator of the levels at which calibrators start, so that gaps stay exact."""


@dataclass(frozen=True)
class LevelSpec(Spec):
    """One bucket that starts at ``level``; specs with one ``divisor`` can share an arena.

    ``doubts`` says whether it is known how much outcomes are alike that wait together.
    """

    level: float = 0.5
    divisor: int = 1
    doubts: bool = False

    @property
    def centre(self) -> Fraction:
        """The level, as exact as gaps can be."""
        return Fraction(round(self.level * CENTRE), CENTRE)

    @functools.cached_property
    def layout(self) -> Layout:
        """The words of a row, and of what all rows share."""
        code = LOSS_CODES[self.loss]
        centres = (self.centre,)
        told = {"loss": code, "divisor": self.divisor, "coins": COIN_CODES[self.coins]}
        return layout_of(self.rule, 1, self.prior, centres, **told)

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The spec as JSON-ready data."""
        return super().settings | {"level": self.level}

    @property
    def caution(self) -> float:
        """After how many crowds of late outcomes these are believed by half, at most."""
        return DOUBT if self.doubts else CAUTION

    @property
    def centres(self) -> Reals:
        """The level, as the middle of the only bucket."""
        return np.array([float(self.centre)])


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

    whole = True
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
        if not isinstance(calibrator, str):
            raise InvalidInput(f"calibrator must be the name of one, got {calibrator!r}")
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
        own = {"calibrator": calibrator, "prior": prior, "resolution": resolution}
        self._options = own | parameters

    def throw(self, how: str) -> None:
        """Throw coins so."""
        self._specs = [dataclasses.replace(spec, coins=how) for spec in self._specs]

    # ------------------------------------------------------------------- the row

    @functools.cached_property
    def layout(self) -> Layout:
        """How often each level covered the outcome, and a row of the binary kind for each."""
        hits, many, (experts, fresh) = kernel.Section(), len(self.levels), self._expert_words()
        hits.whole(
            "COVERED", kernel.STATE, "How often each level covered.", kernel.COUNT, words=many
        )
        own = row_layout(kernel.Section(hits, experts), [0.0] * many + fresh)
        parts = [own, *(spec.layout for spec in self._specs)]
        words: Any = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("fresh", "real", "stored", "low", "high")
        }
        # Secrets of levels follow from the secret of all.
        self._parts(words["stored"])[:, kernel.SECRET : kernel.SECRET + 2] = False
        return dataclasses.replace(parts[1], blocks=OWN, stride=len(parts[1].fresh), **words)

    def _expert_words(self) -> tuple[kernel.Section, list[float]]:
        """Return the words of experts who come before the levels, and what these are at first."""
        return kernel.Section(), []

    @functools.cached_property
    def _before(self) -> int:
        """How many words of the method stand before the rows of the levels."""
        return len(self.levels) + len(self._expert_words()[0])

    def _parts(self, row: Words) -> Words:
        """Return the rows of all levels within the row of all."""
        return row[OWN + self._before :].reshape(self.drawn, -1)

    def sit(self, seat: Seat, secret: bytes) -> None:
        """Work in that part of a row from now on, with draws that follow from the secret."""
        self._seat, self._rows = seat, Rows(self._specs[0], seat.arena)
        self._undo: Notes = []
        self._drawn_for = -1
        parts, first = self._parts(seat.arena.flat()[seat.row :]), seat.at + self._before
        for k, spec in enumerate(self._specs):
            spec.seat(parts[k], part_of(secret, k))
        places = range(first, first + parts.size, parts.shape[1])
        self._at = list(zip(places, self._learned.tolist(), strict=True))
        self._issuer = self._specs[0].issuer(secret)

    def verify(self, row: Words) -> None:
        """Refuse rows of levels that counted other rounds, or what is no number."""
        strange = np.isnan(row.view(np.float64)[self.layout.real]).any()
        if strange or (self._parts(row)[:, COUNTS] != row[COUNTS]).any():
            raise ValueError(f"calibrators that are not of {len(self.levels)} levels")
        spec = self._specs[0]
        blocks, size = self._parts(row)[:, spec.layout.blocks :], len(spec.rule.kernels.cell)
        gaps = blocks[:, len(spec.rule.kernels.head) :]
        if size > 1:
            check_gaps(gaps[:, ::size], gaps[:, kernel.VISITS :: size], *spec.layout.values)
        for clock in blocks[:, kernel.CLOCK].tolist():
            check_made(clock, int(row[kernel.ISSUED]))

    def compile(self) -> None:
        """Compile the steps of the calibrators, if there is a compiler."""
        if self._rows.compile():
            self._seat.use_views()

    # ------------------------------------------------------------------- a round

    def announce(self) -> Said:
        """Draw a chance for each raw level."""
        made, places, weights = list[Ticket](), list[int](), list[float]()
        self._undo, self._drawn_for = [], self._seat.issued - 1
        for at, p in self._at:
            number, place, weight, _, clock, _, law = self._rows.issue_part(at, p, self._undo)
            made.append(Ticket(self._issuer, number, number, place, weight, p, None, clock, law))
            places.append(place)
            weights.append(weight)
        drawn, mean = [t.value for t in made], [t.mean for t in made]
        return self._said(np.array(drawn), np.array(mean), tuple(places), tuple(weights))

    def look(self) -> Said:
        """Return what would be drawn."""
        drawn, mean = np.empty(self.drawn), np.empty(self.drawn)
        for k, (at, level) in enumerate(self._at):
            place, weight, *_ = self._rows.peek(at, level)
            drawn[k] = self._issuer.values[place & kernel.CELL]
            mean[k] = self._rows.mean_of(place, weight)
        return self._said(drawn, mean)

    def _said(self, drawn: Reals, mean: Reals, *draws: Any) -> Said:
        outer = np.sort(drawn)
        asked = np.append(self._learned, self._positions(outer[None])[0])
        return Said(asked, self._learned, outer, np.sort(mean), drawn, *draws)

    def _positions(self, outer: Reals) -> Reals:
        """Return which raw levels become ours: where the moved levels reach them."""
        raw = np.tile([0.0, *self._learned.tolist(), 1.0], (len(outer), 1))
        return ask(raw, with_ends(outer), self.levels[None])[0]

    def learn(self, ticket: QuantileTicket, met: list[int]) -> None:
        """Tell each calibrator whether the outcome was below its raw quantile."""
        number, events, many = ticket.number, met[self.drawn :], self.drawn
        draws = zip(self._at, ticket.places, ticket.weights, met[:many], strict=True)
        parts = [(at, number, place, w, p, p, 0.0, y) for (at, p), place, w, y in draws]
        words, own = self._seat.state()[0], self._seat.row
        kept = copied(words, own, self._seat.at + len(self.levels))
        try:
            self._rows.learn_parts(parts)
            self._count(number, events)
        except BaseException:
            words[own : own + len(kept)] = kept
            # Either all calibrators were told, or none.
            if words[self._at[0][0] + kernel.ROUNDS] != words[own + kernel.ROUNDS]:
                self._count(number, events)
            raise

    def _count(self, number: int, events: list[int]) -> None:
        """Count an outcome, and the levels that covered it."""
        words = self._seat.state()[0]
        for m, event in enumerate(events, self._seat.at):
            words[m] += event
        self._seat.count_outcome(number)

    def withdraw(self, number: int) -> None:
        """Take back the chances that were drawn for the forecast of that number."""
        if self._drawn_for == number:
            self._rows.withdraw_parts(self._undo)
            self._drawn_for = -1

    def amend(self, ticket: QuantileTicket, before: list[int], after: list[int]) -> None:
        """Tell each calibrator that was told wrong, and count coverage anew."""
        if len(ticket.places) != self.drawn:
            raise ForeignTicket(f"ticket must be as it was issued, got an altered one: {ticket!r}")
        changed = [k for k in range(self.drawn) if before[k] != after[k]]
        fresh = self._parts(self.layout.fresh)
        for k in changed:
            own = self._at[k][0], ticket.places[k], after[k], ticket
            self._rows.check_counted(*own, fresh[k])
        words, at, many = self._seat.state()[0], self._seat.at, self.drawn
        moves = [new - old for new, old in zip(after[many:], before[many:], strict=True)]
        for m, move in enumerate(moves, at):
            check_once(words[m] + move, words[self._seat.row + kernel.ROUNDS])
        for m, move in enumerate(moves, at):
            words[m] += move
        for at, _ in self._at:
            count_correction(words, at, ticket.number)
        for k in changed:
            at, p = self._at[k]
            said = ticket.number, ticket.places[k], ticket.weights[k], p, p, 0.0
            self._rows.correct(at, said, after[k])

    # ------------------------------------------------------------------ batches

    def play(self, raw: Distributions, outcomes: Reals, ties: Ties) -> Played:
        """Play a batch level by level."""
        events = self._events(raw, self._learned[None], outcomes, ties)[1]
        drawn, mean = np.empty(events.shape), np.empty(events.shape)
        for k, (at, level) in enumerate(self._at):
            told, given = events[:, k].astype(np.uint8), np.full(len(outcomes), level)
            drawn[:, k], mean[:, k], _ = self._rows.replay(at, given, told)
        self._rows.use_array()
        outer = np.sort(drawn, axis=1)
        quantiles, covered = self._events(raw, self._positions(outer), outcomes, ties)
        words = self._seat.counts()
        for m, hits in enumerate(covered.sum(axis=0).tolist(), self._seat.at):
            words[m] += hits
        inner = np.tile(self._learned, (len(outcomes), 1))
        return quantiles, inner, outer, np.sort(mean, axis=1), drawn, raw

    def _events(self, raw: Distributions, asked: Reals, told: Reals, ties: Ties) -> Asked:
        """Return quantiles, and which of each row cover its outcome; on an atom a coin decides."""
        quantiles, shares = ask(raw.values, raw.levels, asked, random=ties.random)
        first, y = self._seat.issued, told[:, None]
        covered, tied = y < quantiles, y == quantiles
        covered |= tied & (shares >= 1.0)
        for t in np.flatnonzero((tied & (shares < 1.0)).any(axis=1)).tolist():
            covered[t] |= tied[t] & (ties.coins.at(first + t) < shares[t])
        return quantiles, np.asarray(covered)

    # ------------------------------------------------------------------- records

    def rows(self, rounds: int, delay: int, failure: float) -> tuple[LevelRow, ...]:
        """Return coverage, and the calibration error of the chances drawn at each level."""
        row, many, specs = self._seat.arena.row(), len(self.levels), self._specs
        hits = row[OWN : OWN + many] / rounds if rounds else np.full(many, np.nan)
        places, parts = np.searchsorted(self._learned, self.levels).tolist(), self._parts(row)
        found = zip(self.levels.tolist(), hits.tolist(), places, strict=True)
        chance = share(failure, len(specs))
        told = [
            certificate_of(spec, part, 0, chance) for spec, part in zip(specs, parts, strict=True)
        ]
        return tuple(_row(p, hit, told[k]) for p, hit, k in found)

    def coin(self, secret: bytes, ticket: QuantileTicket, level: int) -> float:
        """Return the coin that drew a chance for one of the levels that are learned."""
        k = check.whole(level, "level", high=self.drawn - 1)
        return coin_at(part_of(secret, k), self._specs[k].coins, 0, ticket.number)

    def sound(self, words: Words, reals: Reals) -> Mask:
        """Say which tickets could have been issued: on the grid, with weights in [0, 1]."""
        draws = slice(2 * self.width, None)
        place, weight = words[:, draws][:, : self.drawn], reals[:, draws][:, self.drawn :]
        weight = weight[:, : self.drawn]
        nothing = np.empty((place.size, 0), np.int64)
        fits = possible(self._specs[0], place.ravel(), weight.reshape(-1, 1), nothing)
        return super().sound(words, reals) & fits.reshape(place.shape).all(axis=1)

    # ------------------------------------------------------- states of the first version

    def read_first(self, row: Words, document: Document, slots: list[int]) -> Words:
        """Read all calibrators of the first version, each with open tickets of its own."""
        settings, arrays, many = document.settings, document.arrays, len(self.levels)
        engines, hits = settings["own"]["state"]["engines"], arrays["hits"]
        if len(hits) != many or len(engines) != self.drawn:
            raise ValueError(f"levels other than {many}")
        row[OWN : OWN + many] = hits
        secret = bytes.fromhex(settings["secret"])
        drawn = np.empty((len(slots), 2, self.drawn), np.int64)
        for k, (spec, told) in enumerate(zip(self._specs, engines, strict=True)):
            own = {"secret": part_of(secret, k).hex(), "level": spec.level, "prior": spec.prior}
            own |= {"method": spec.rule.name, "parameters": spec.rule.parameters}
            if any(told[name] != value for name, value in own.items()):
                raise ValueError(f"another's calibrator at level {k}")
            part, start = self._parts(row)[k], f"level {k} "
            write_own(part, told, spec)
            part[kernel.SECRET : kernel.SECRET + 2] = 0
            write_first(part, spec, arrays[start + "touched"], arrays[start + "blocks"])
            lines = arrays[start + "tickets"].reshape(-1, 6)
            kept = dict(zip(lines[:, 1].tolist(), lines[:, 2:4].tolist(), strict=True))
            drawn[:, :, k] = np.array([kept[slot] for slot in slots]).reshape(-1, 2)
        return drawn.reshape(len(slots), -1)


def _row(level: float, coverage: float, record: Certificate) -> LevelRow:
    for quantity, measured in (("C2", record.c2), ("C1", record.c1)):
        bounds = [bound for bound in record.bounds if bound.quantity == quantity]
        if bounds:
            sure = [b for b in record.sure if b.quantity == quantity and b.value < 1.0]
            told = min(bounds, key=float), min(sure, key=float, default=None), record.early
            return LevelRow(level, coverage, quantity, measured, *told)
    return LevelRow(level, coverage, "C2", record.c2, None)


def write_first(row: Words, spec: LevelSpec, touched: Words, blocks: Words) -> None:
    """Write the block of one level of the first version into its row."""
    _check_touched(touched)
    block = spec.layout.blocks_of(row)
    moved_blocks(block, touched, blocks, spec.rule)
    # Gaps had a smaller common denominator where no other level shared it.
    alone = dataclasses.replace(spec, divisor=1).layout
    factor = int(spec.layout.shared[kernel.SCALE]) // int(alone.shared[kernel.SCALE])
    if len(touched) and factor > 1:
        spec.rule.cells_of(block)[..., 0] *= factor
        names = [field.name for field in spec.rule.kernels.head.fields]
        if "TOTAL" in names:
            block[:, names.index("TOTAL")] *= factor


def _check_touched(touched: Words) -> None:
    if touched.tolist() not in ([], [0]):
        raise ValueError(f"buckets {touched.tolist()} of one")


def _spec_of(s: dict[str, Any]) -> LevelSpec:
    """Return the spec of a level that settings describe."""
    rule, level = made_rule(s["method"], s["parameters"]), check.probability(s["level"], "level")
    buckets = check.whole(s["buckets"], "buckets", low=1, high=1)
    return LevelSpec(rule, buckets, s["prior"], s["loss"], level=level, coins=s["coins"])


def level_migrated(document: Document) -> Document:
    """Return the document of one level of the first version as one of the second."""
    _check_touched(document.arrays["touched"])
    return moved(document, _spec_of(document.settings | {"coins": OLD}))


class LevelCalibrator(Recalibrator):
    """A recalibrator with one bucket, which starts as if its level were right."""

    __slots__ = ()

    kind: ClassVar = "level"
    migrations: ClassVar[dict[int, Migration]] = Recalibrator.migrations | {1: level_migrated}

    def __init__(
        self,
        level: float,
        method: str = "foster_hart",
        *,
        seed: int | None = None,
        key: str | int | None = None,
        secret: bytes | None = None,
        prior: int = 1,
        **parameters: Any,
    ) -> None:
        rule, start = made_rule(method, parameters), check.probability(level, "level")
        spec = LevelSpec(rule, 1, prior, "squared", level=start)
        self._begin(spec, secret_of(seed, key, secret), 1_000_000)

    def _described(self, document: Document) -> tuple[Spec, int]:
        return _spec_of(document.settings), document.settings["max_open"]
