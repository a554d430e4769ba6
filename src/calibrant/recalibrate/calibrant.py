"""The default: experts first, calibrate last."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators import Calibrator
from calibrant.core import check
from calibrant.core.codec import Document
from calibrant.core.gate import passing
from calibrant.core.ticket import Ticket
from calibrant.errors import InvalidInput
from calibrant.kernels import safe, scores
from calibrant.kernels.front import put_before
from calibrant.kernels.layout import (
    ADVICE,
    ANSWER,
    ASKED,
    BOUNDLESS,
    CHARGED,
    CLOCK,
    COUNTED,
    ENDLESS,
    EPSILON,
    EXCESS,
    FRONT,
    LOSS,
    MIDDLE,
    NARROW,
    NOTED,
    OVERTAKEN,
    PAIR,
    PASSED,
    RESERVED,
    SETTLED,
    STANDS,
    STOOD,
    WEIGHT,
    pack,
)
from calibrant.recalibrate.chain import Budget, Chain, link
from calibrant.recalibrate.delivery import Pending
from calibrant.recalibrate.recalibrator import Recalibrator
from calibrant.recalibrate.run import Run
from calibrant.transforms import (
    HatMeans,
    Identity,
    Mixture,
    OnlineBeta,
    OnlinePlatt,
    Transform,
    from_description,
)

__all__ = ["Calibrant"]

EXPERTS: Final[tuple[Transform, ...]] = (
    Identity(),
    OnlineBeta(clip=1e-3),
    OnlinePlatt(gamma=0.3, rho=10.0, clip=1e-3, memory=500.0),
    HatMeans(cells=20),
    HatMeans(cells=20, memory=50.0),
    HatMeans(cells=1, scale="logit"),
    HatMeans(cells=1, scale="logit", memory=100.0),
)
"""Lines on the log-odds that remember or forget, and corrections of any shape likewise."""
START: Final = (6.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""Half of the first weights is the raw forecast's: it is right until something speaks against."""
SHARE: Final = 3e-4
BUDGET: Final = (RESERVED, SETTLED, STOOD)
"""Which words of the header a budget keeps."""
MOST_ASKED: Final = 256
"""Predictions without an outcome that are remembered."""


class Calibrant(Recalibrator):
    """Follow the best of several ways to correct a forecast, and calibrate the result.

    The raw forecast goes to a mixture of experts (itself among them), which follows whichever
    does best at present; what the mixture says is the input of Algorithm 1, which comes last
    because mixing destroys calibration and calibrating restores it.

    Parameters
    ----------
    experts
        The transforms that are mixed, or one transform that stands in front as it is.
    share
        Which part of the experts' weights is spread evenly in each round.
    loss
        ``"squared"`` or ``"log"``: under which experts are compared and the certificate reads.
    raw_safe
        A budget: at no time may the announced forecasts have lost more than this beyond the raw
        ones, on average over the outcomes learned.  A draw whose worst case does not fit any
        more stands aside, and the raw forecast is announced.  None for no budget.
    method, resolution, grid, buckets, prior, **parameters
        The last stage, as in :class:`Recalibrator`; its rule must learn from the draw alone.
        By default one bucket with the rule ``"anchored"``, which is pulled towards what the
        experts say for as long as hedging does not beat them; with the paper's own rule,
        ``method="foster_hart"``, more buckets and a prior are needed.
    seed, key, max_open
        As in :class:`Recalibrator`.

    Notes
    -----
    Three theorems make a chain, and :meth:`certificate` shows it: the drawn forecasts are
    calibrated whatever the outcomes; their loss exceeds the mixture's by little; the mixture's
    exceeds that of any expert, the raw forecast included, by little.

    A late outcome is learned when it comes: the last stage learns it for the draw that was
    announced, the mixture for what its experts said then (kept to 15 bits) and in proportion
    to 1/L if L forecasts were made in between, the experts for what they would say now and in
    proportion to 1/sqrt(L); for outcomes that come in crowds tell little more than one.  A
    corrected one is amended in the last stage; experts do not unlearn.

    Examples
    --------
    >>> model = Calibrant(seed=7)
    >>> ticket = model.forecast(0.83)
    >>> 0.0 <= ticket.value <= 1.0, round(ticket.middle, 6)
    (True, 0.83)
    >>> _ = model.observe(ticket, 1)
    >>> model.rounds
    1
    """

    kind: ClassVar = "calibrant"

    __slots__ = ("_advice", "_advice_view", "_safe", "_waiting")

    def __init__(
        self,
        experts: Transform | tuple[Transform, ...] | None = None,
        *,
        share: float = SHARE,
        loss: str = "squared",
        raw_safe: float | None = None,
        method: str | Calibrator = "anchored",
        buckets: int = 1,
        **options: Any,
    ) -> None:
        check.choice(loss, "loss", ("squared", "log"))
        self._safe = _budget(raw_safe)
        self._front = _front(experts, share, loss)
        super().__init__(method, loss=loss, buckets=buckets, **options)
        if self._rule.weighted or self._many:
            raise InvalidInput(
                f"method must be one that learns from its draws alone, got {self._rule!r}"
            )

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
        front = self._front if front is None else front
        super()._set_up(rule, buckets, prior, loss, max_open, secret, front)
        guarded = self._safe is not None
        self._functions = put_before(self._program, self.front.kernel, guarded)
        if guarded:
            self._program = self._program.guarded
            self._use_functions(self._program)
            self._to_flat().view(np.float64)[EPSILON] = self._safe
        self._waiting: dict[float, tuple[int, float, float, int]] = {}
        first = int(self._to_flat()[ADVICE])
        self._advice = range(first, first + self._functions.kept)

    @property
    def front(self) -> Transform:
        """The transform that raw forecasts go through first."""
        assert self._front is not None
        return self._front

    @property
    def raw_safe(self) -> float | None:
        """The budget of losses beyond the raw forecast's, on average; None for none."""
        return self._safe

    def _use_steps(self) -> None:
        super()._use_steps()
        if self._steps is not None:
            self._advice_view = self._view[self._advice.start : self._advice.stop]

    # ---------------------------------------------------------------- one by one

    def correct(self, ticket: Ticket, outcome: int) -> Ticket:
        """Replace the outcome of a closed ticket that turned out to be wrong.

        The last stage is amended, and with it the calibration; the experts keep what they
        learned.
        """
        outcome = check.outcome(outcome)
        super().correct(ticket, outcome)
        with passing(self._gate):
            words, middle = self._to_plain(), ticket.middle or 0.0
            if self._safe is not None and not ticket.aside:
                for told, sign in ((1 - outcome, -1.0), (outcome, 1.0)):
                    words[EXCESS] += sign * safe.excess(words, ticket.value, ticket.raw, told)
            for told, book in ((1 - outcome, scores.refund), (outcome, scores.enter)):
                book(words, words, PASSED, BOUNDLESS, scores.charge(words[LOSS], middle, told))
            self._use_steps()
        return ticket

    def _announce(self, raw: float) -> tuple[int, float, float, int, tuple[int, ...]]:
        if self._steps is not None:
            if self._ticketed + self._booked >= self._capacity:
                self._check_room()
            place, reals = self._steps.issue_flat(self._machine, raw), self._real_view
            kept = tuple(self._advice_view)
            return place, reals[WEIGHT], reals[MIDDLE], self._view[COUNTED], kept
        words = self._words or self._to_plain()
        middle = self._functions.pass_through(words, words, raw)
        self._functions.store(words, words, words, words[ADVICE])
        kept = tuple([words[k] for k in self._advice])
        j = bisect_right(self._edges, middle) - 1
        at = self._starts[j]
        clock = words[at + CLOCK]
        coins = self._coins[j] or self._toss(words, j, at)
        cell, side, weight = self._issue(
            words, words, at, self._cells, self._table, raw, coins.pop()
        )
        place = pack(j, cell, side)
        if self._safe is not None:
            sizes = self._cells, self._table, raw
            place |= safe.decide(words, words, *sizes, cell, side, weight)
            safe.hold(words, words, *sizes, place, weight, 1)
        return place, weight, middle, clock, kept

    def _learn(self, ticket: Ticket, outcome: int, lag: int) -> None:
        place, weight, middle, raw = ticket._place, ticket._weight, ticket.middle, ticket.raw
        steps = self._steps
        words = self._view if steps is not None else self._words or self._to_plain()
        if lag > 1:
            # What the experts said then is read of late outcomes alone.
            for k, word in zip(self._advice, ticket._kept, strict=True):
                words[k] = word
        if steps is not None:
            steps.settle_flat(self._machine, place, weight, middle, raw, outcome, float(lag))
            return
        at = self._starts[ticket.bucket]
        words[MIDDLE] = middle
        if self._safe is not None:
            sizes = self._cells, self._table, raw
            safe.hold(words, words, *sizes, place, weight, -1)
            safe.settle(words, words, *sizes, place, outcome)
            words[STANDS] = (place >> 36) & 1
        self._settle(words, words, at, self._table, place, weight, raw, outcome, float(lag))
        words[STANDS] = 0
        rest = float(lag), words, words[ADVICE]
        self._functions.absorb_late(words, words, raw, middle, outcome, *rest)

    def _look(self, raw: float) -> tuple[int, float, float, int]:
        if self._steps is not None:
            place, reals = self._steps.note_flat(self._machine, raw), self._real_view
            noted = place, reals[WEIGHT], reals[MIDDLE], self._view[COUNTED]
        else:
            words = self._words or self._to_plain()
            middle = self._functions.pass_through(words, words, raw)
            j = bisect_right(self._edges, middle) - 1
            at = self._starts[j]
            coins = self._coins[j] or self._toss(words, j, at)
            sizes = self._cells, self._table, raw
            self._note(words, words, at, *sizes, coins[-1])
            place = pack(j, 0, 0) | words[at + ANSWER]
            if self._safe is not None:
                place |= safe.foresee(words, words, at, *sizes)
            noted = place, words[at + NOTED], middle, words[at + CLOCK]
        self._waiting[raw] = noted
        if len(self._waiting) > MOST_ASKED:
            del self._waiting[next(iter(self._waiting))]
        return noted

    def _book_round(self, raw: float, outcome: int) -> bool:
        noted = self._waiting.pop(raw) if raw in self._waiting else self._looked(raw)
        place, weight, middle, clock = noted
        at = self._starts[(place >> 16) & NARROW]
        words = self._view if self._steps is not None else self._words or self._to_plain()
        if words[at + CLOCK] != clock:
            reals = self._real_view if self._steps is not None else words
            if reals[at + ASKED] == OVERTAKEN:
                return False
            place, weight, middle, clock = self._looked(raw)
        if self._steps is not None:
            if self.issued >= self._capacity:
                self._check_room()
            told = place, weight, middle, raw, outcome
            booked: bool = self._steps.book_flat(self._machine, *told)
            return booked
        j = (place >> 16) & NARROW
        coins = self._coins[j] or self._toss(words, j, at)
        words[MIDDLE], words[at + ANSWER], words[at + NOTED] = middle, place & PAIR, weight
        sizes = self._cells, self._table, raw
        if self._safe is not None:
            if not safe.ready(words, words, at, *sizes, place):
                return False
            words[STANDS] = (place >> 36) & 1
        # The clock did not move, so nothing can have overtaken it.
        self._book(words, words, at, *sizes, coins[-1], outcome)
        words[STANDS] = 0
        if self._safe is not None:
            safe.settle(words, words, *sizes, place, outcome)
        self._functions.absorb(words, words, raw, middle, outcome)
        coins.pop()
        return True

    def _looked(self, raw: float) -> tuple[int, float, float, int]:
        self._look(raw)
        return self._waiting.pop(raw)

    # ------------------------------------------------------------------- batches

    def _replay_at_once(self, raw: NDArray[np.float64], outcomes: NDArray[np.uint8]) -> Run:
        forecast, mean, middle = (np.empty(len(raw)) for _ in range(3))
        with passing(self._gate):
            self._check_room(len(raw))
            first, clocks = self.issued, self._clocks()
            if (machine := self._batch_program(len(raw))) is not None:
                flat = self._to_flat()
                columns = raw, outcomes, forecast, mean, middle
                machine.replay(flat, flat.view(np.float64), *columns)
            else:
                words, rows = self._to_plain(), (raw.tolist(), outcomes.tolist())
                self._functions.replay(words, words, *rows, forecast, mean, middle)
            self._overtake(clocks)
            self._use_steps()
            self._ledger.make_way(first, len(raw))
            self._booked += len(raw)
            self._crowded(len(raw))
        return Run(forecast, mean, self._buckets, middle, first, Pending())

    # --------------------------------------------------------------------- state

    def certificate(self) -> Chain:
        """Return what was measured so far, and the chain of theorems beside it."""
        made = super().certificate()
        with passing(self._gate):
            flat = self._to_flat()
            passed = float("inf") if flat[BOUNDLESS] else float(flat.view(np.float64)[PASSED])
            first, last = int(flat[FRONT]), int(flat[ADVICE])
            budget = None if self._safe is None else self._spent(flat)
            return link(made, self.front, self._to_plain()[first:last], passed, budget)

    def _spent(self, flat: NDArray[np.int64]) -> Budget:
        reals = flat.view(np.float64)
        charged = float("inf") if flat[ENDLESS] else float(reals[CHARGED])
        excess, settled = float(reals[EXCESS]), int(flat[SETTLED])
        return Budget(float(reals[EPSILON]), settled, int(flat[STOOD]), excess, charged)

    def _more_state(
        self, flat: NDArray[np.int64]
    ) -> tuple[dict[str, Any], dict[str, NDArray[np.int64]]]:
        words = flat[int(flat[FRONT]) : int(flat[ADVICE])].copy()
        words[self.front.note_positions()] = 0
        passed = float(flat.view(np.float64)[PASSED]).hex()
        kept: dict[str, Any] = {"front": self.front.description, "passed": passed}
        kept |= {"boundless": int(flat[BOUNDLESS]), "raw_safe": None}
        if self._safe is not None:
            kept["raw_safe"] = self._safe.hex()
            kept["excess"] = float(flat.view(np.float64)[EXCESS]).hex()
            kept["safe"] = [int(flat[k]) for k in BUDGET]
        return kept, {"front": words}

    def _front_of(self, settings: dict[str, Any]) -> Transform:
        told = settings.get("raw_safe")
        self._safe = None if told is None else _budget(float.fromhex(told))
        return from_description(settings["front"])

    def _load_more(self, document: Document) -> None:
        flat, settings = self._to_flat(), document.settings
        flat.view(np.float64)[PASSED] = float.fromhex(settings["passed"])
        flat[BOUNDLESS] = check.whole(settings["boundless"], "boundless")
        if self._safe is not None:
            flat.view(np.float64)[EXCESS] = float.fromhex(settings["excess"])
            flat[list(BUDGET)] = [check.whole(k, "safe") for k in settings["safe"]]
        own = flat[int(flat[FRONT]) : int(flat[ADVICE])]
        words = document.arrays["front"]
        if len(words) != len(own):
            raise ValueError(f"{len(words)} words of the front instead of {len(own)}")
        self.front.verify(words)
        own[:] = words

    def __repr__(self) -> str:
        told = super().__repr__().removeprefix("Recalibrator(")
        return f"Calibrant({self.front!r}, {told}"


def _budget(raw_safe: Any) -> float | None:
    if raw_safe is None:
        return None
    return check.real(raw_safe, "raw_safe", low=0.0, rule="a finite number of at least 0")


def _front(experts: Any, share: float, loss: str) -> Transform:
    if isinstance(experts, Transform):
        return experts
    if experts is None:
        return Mixture(EXPERTS, share=share, start=START, loss=loss)
    return Mixture(experts, share=share, loss=loss)
